"""Fields of a served judge in `config/judges.yaml`: address, decoding, price."""

from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from resources.judges.live.extras import (
    ENVIRONMENT_NAME,
    require_body,
    require_headers,
    require_query,
)

DEFAULT_TEMPLATE = "fenced-rubric.txt"

Switch = Literal["on", "off", "auto"]


class Decoding(BaseModel):
    """Decoding settings of a judge; null leaves a setting out of the request.

    Attributes
    ----------
    temperature, top_p : float or None
        Sampling; 0 and 1 unless set.
    max_tokens : int
        Most tokens of one answer; a longer one fails as ``truncated``.
    seed : int or None
        Of the endpoint's sampling, where it honours one; plus 1 for each further replicate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    temperature: float | None = Field(default=0.0, ge=0, le=2, strict=True)
    top_p: float | None = Field(default=1.0, gt=0, le=1, strict=True)
    max_tokens: int = Field(default=4096, ge=16, le=10_000_000, strict=True)
    seed: int | None = Field(default=None, strict=True)


class Price(BaseModel):
    """Price of a million prompt and completion tokens, in a currency of three capital letters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    prompt: float = Field(ge=0, strict=True)
    completion: float = Field(ge=0, strict=True)
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of some tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


class EndpointFields(BaseModel):
    """Which model is asked, and where: of a judge as of what makes embeddings.

    Attributes
    ----------
    model, revision : str or None
        The model's name at the endpoint, and its version where the name does not fix it.
    base_url : str or None
        The endpoint's URL up to ``/v1``, or the name of the environment variable that holds it;
        ``OPENAI_BASE_URL``, else the OpenAI API, by default.
    endpoint_name : str or None
        What the identity of a result calls the endpoint; its URL by default. A name keeps
        results valid when a server moves.
    api_key_env : str or None
        Name, never value, of the environment variable that holds the key; ``OPENAI_API_KEY``
        if no `base_url` is given, otherwise no key is sent by default.
    headers, query : dict
        Sent with every request; a header may be ``{env: VARIABLE}``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str | None = Field(default=None, min_length=1)
    revision: str | None = Field(default=None, min_length=1)
    base_url: str | None = None
    endpoint_name: str | None = Field(default=None, min_length=1)
    api_key_env: str | None = None
    headers: Annotated[dict[str, Any], BeforeValidator(require_headers)] = Field(default={})
    query: Annotated[dict[str, str], BeforeValidator(require_query)] = Field(default={})

    @field_validator("base_url")
    @classmethod
    def _require_place(cls, value: str | None) -> str | None:
        if value is not None and not ENVIRONMENT_NAME.fullmatch(value):
            require_url(value)
        return value

    @field_validator("api_key_env")
    @classmethod
    def _require_name(cls, value: str | None) -> str | None:
        if value is not None and not ENVIRONMENT_NAME.fullmatch(value):
            raise ValueError(
                "it is not the name of an environment variable in capitals, such as "
                "OPENAI_API_KEY; a key itself never belongs into this file"
            )
        return value


class ServedFields(EndpointFields):
    """Everything that only a served judge declares.

    Attributes
    ----------
    decoding : Decoding
        Sampling and length.
    structured_output, log_probabilities : str
        ``on`` demands them of the endpoint, ``auto`` uses them if its probe finds them.
    reasoning_effort : str or None
        How long a model thinks, in the endpoint's word for it.
    extra_body : dict
        Further keys of the body of each request.
    expect_model : str
        Whether a reply has to name the model asked for, a name that begins with it, or any.
    replicates : int
        How often each order is asked.
    concurrency : int
        Most requests in flight at a time.
    price_per_million : Price or None
        Of tokens; unknown if left out.
    timeout_s : float
        Seconds until a silent request is given up and tried again.
    template : str
        The prompt: a file in the configuration's ``prompts``, or an absolute path.
    batch : bool
        Whether it is asked in batches, which take up to a day and cost less.
    batch_poll_s : float
        Most seconds between two looks at a batch.
    """

    decoding: Decoding = Decoding()
    structured_output: Switch = "auto"
    log_probabilities: Switch = "off"
    reasoning_effort: str | None = Field(default=None, pattern=r"^[a-z]+$")
    extra_body: Annotated[dict[str, Any], BeforeValidator(require_body)] = Field(default={})
    expect_model: Literal["any", "prefix", "exact"] = "any"
    replicates: int = Field(default=1, ge=1, strict=True)
    concurrency: int = Field(default=16, ge=1, le=1024, strict=True)
    price_per_million: Price | None = None
    timeout_s: float = Field(default=300.0, gt=0, strict=True)
    template: str = Field(default=DEFAULT_TEMPLATE, min_length=1)
    batch: bool = False
    batch_poll_s: float = Field(default=60.0, gt=0)

    @field_validator("structured_output", "log_probabilities", mode="before")
    @classmethod
    def _undo_yaml(cls, value: Any) -> Any:
        """YAML reads a bare ``on`` or ``off`` as a truth value."""
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def require_url(value: str) -> str:
    """Return an endpoint's URL without a slash at its end.

    No error repeats the value, which may hold a password.
    """
    parts = _parts(value)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            "it is neither a URL such as http://127.0.0.1:8000/v1 nor the name of an environment "
            "variable in capitals, such as VLLM_BASE_URL"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "the URL carries credentials or a query; put the key into an environment variable "
            "and its name into 'api_key_env'"
        )
    return value.rstrip("/")


def _parts(value: str) -> SplitResult | None:
    if not value.isascii() or not value.isprintable() or " " in value:
        return None
    try:
        parts = urlsplit(value)
        return None if parts.port == 0 else parts
    except ValueError:  # brackets or a port that are none; what it says would quote the value
        return None


def require_chance(slug: str, form: str, samples: int, decoding: Decoding) -> None:
    """Check that repeated questions can have different answers."""
    if decoding.temperature == 0:
        raise ValueError(
            f"judge {slug!r} is asked each {form} {samples} times, since it gives no "
            "log-probabilities, but at temperature 0 it would always say the same; set "
            "decoding.temperature above 0 for samples (1.0 is usual), or log_probabilities: auto "
            "where the endpoint has them"
        )
