"""What a corpus asks of its judges week after week, so that a silent change is seen."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from judgeline.reliability import LEAST_BATTLES
from resources.judges.budget import Budget


class DriftOptions(BaseModel):
    """Battles that a judge judges again, epoch after epoch.

    Attributes
    ----------
    battles : int
        How many of the voted battles; each is two calls an epoch.
    budget : list of str
        Cap on what each judge is asked in one run, written as for ``--budget``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    battles: int = Field(default=100, ge=LEAST_BATTLES)
    budget: list[str] = Field(default_factory=lambda: ["2000calls"], min_length=1)

    @field_validator("budget", mode="before")
    @classmethod
    def _is_a_budget(cls, budget: Any) -> Any:
        texts = budget.split() if isinstance(budget, str) else budget
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            Budget.parse(texts)
        return texts
