"""The base of what is configured, and what a name in a configuration looks like."""

from pydantic import BaseModel, ConfigDict

SLUG = r"^[a-z0-9][a-z0-9._-]*$"


class Options(BaseModel):
    """Base of everything that is configured: frozen, finite, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
