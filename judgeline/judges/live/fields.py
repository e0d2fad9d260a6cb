"""Fields of a served judge in `judges.yaml`: address, decoding, price, additions.

Secrets are named by the environment variable that holds them, and stand in headers only: a URL is
logged, and the body is part of a verdict's identity.
"""

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator

from judgeline.judges.budget import Price
from judgeline.judges.options import Decoding, Options

ENVIRONMENT_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
LOOKS_SECRET = re.compile(r"(?<![A-Za-z0-9])(hf_|sk-)[A-Za-z0-9_-]{16,}")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SECRET = re.compile(r"authorization|cookie|secret|passw|credential|key$|token$", re.IGNORECASE)
_SECRET_IN_BODY = re.compile(
    r"authorization|secret|passw|credential|api[-_]?key|(access|auth|bearer|hf)[-_]?token",
    re.IGNORECASE,
)
_OUR_HEADERS = re.compile(
    r"accept-encoding|connection|content-(encoding|length|type)|host|te|trailer|transfer-encoding|"
    r"upgrade",
    re.IGNORECASE,
)
DEFAULT_TEMPLATE = "fenced-rubric.txt"

Switch = Literal["on", "off", "auto"]

MOST_ALTERNATIVES: Literal[20] = 20
"""Most tokens whose log-probabilities hosted APIs and vLLM tell, unless told otherwise."""

FEW_ALTERNATIVES: Literal[5] = 5
"""What is asked for where more are refused."""


def _require_headers(given: Any) -> dict[str, Any]:
    headers = _named(given)
    for name, value in headers.items():
        if _OUR_HEADERS.fullmatch(name):
            raise ValueError(f"the header {name!r} is set for each request; remove it")
        if isinstance(value, str):
            _require_no_secret(name, value)
        elif variable_of(value) is None:
            raise ValueError(
                f"the header {name!r} is neither a text nor {{env: VARIABLE}} with the name of an "
                "environment variable in capitals"
            )
    return headers


def _require_query(given: Any) -> dict[str, str]:
    """Return query parameters as texts; YAML reads some as dates or numbers."""
    query = _named(given)
    for name, value in query.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float | datetime.date):
            raise ValueError(f"the query parameter {name!r} is no text; put it in quotes")
        _require_no_secret(name, str(value))
    return {name: str(value) for name, value in query.items()}


def _require_body(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise ValueError("it is no mapping from keys of the request's body to their values")
    if own := [name for name in given if _OUR_KEYS.fullmatch(name)]:
        raise ValueError(
            f"{own} are set by other keys of the entry, or for each request; remove them here"
        )
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        problem = "it holds what JSON cannot say, such as a date; put that in quotes"
        raise ValueError(problem) from None
    for name, value in _leaves(given):
        if _SECRET_IN_BODY.search(name) or LOOKS_SECRET.search(str(value)):
            raise ValueError(
                f"{name!r} looks like a secret, and the body is stored with every verdict; "
                "send it as a header, {env: VARIABLE}"
            )
    return given


def variable_of(value: Any) -> str | None:
    """Return the environment variable that a header names, or None if it is no such reference."""
    if not isinstance(value, dict) or {*value} != {"env"}:
        return None
    name = value["env"]
    return name if isinstance(name, str) and ENVIRONMENT_NAME.fullmatch(name) else None


def _named(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError("it is no mapping from names to values")
    for name in given:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError("a name in it is no word of letters, digits, '-', '_' and '.'")
    return given


def _require_no_secret(name: str, value: str) -> None:
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"{name!r} has a value with characters that no request can carry")
    if _SECRET.search(name) or LOOKS_SECRET.search(value):
        raise ValueError(
            f"{name!r} looks like a secret, which never belongs into this file; put it into an "
            "environment variable and write the header as {env: VARIABLE}"
        )


def _leaves(value: Mapping[str, Any] | list[Any], name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of an object with the name that it stands under."""
    items = value.items() if isinstance(value, Mapping) else ((name, one) for one in value)
    for key, one in items:
        yield str(key), None if isinstance(one, dict | list) else one
        if isinstance(one, dict | list):
            yield from _leaves(one, str(key))


_SENT = ("reasoning_effort",)
"""Fields of a served judge that are sent under their name, and are part of its identity, if set."""

_OUR_KEYS = re.compile(
    r"messages|model|stream(_options)?|n|best_of|max_completion_tokens|response_format|"
    rf"(top_)?logprobs|tools|functions|{'|'.join((*_SENT, *Decoding.model_fields))}"
)


class EndpointFields(Options):
    """Which model is asked, and where, by a judge or an embedder; docs/judges.md has every key."""

    model: str | None = Field(default=None, min_length=1)
    revision: str | None = Field(default=None, min_length=1)
    base_url: str | None = None
    endpoint_name: str | None = Field(default=None, min_length=1)
    api_key_env: str | None = None
    headers: Annotated[dict[str, Any], BeforeValidator(_require_headers)] = Field(default={})
    query: Annotated[dict[str, str], BeforeValidator(_require_query)] = Field(default={})

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
    """Everything that only a served judge declares; docs/judges.md has every key."""

    decoding: Decoding = Decoding()
    structured_output: Switch = "auto"
    log_probabilities: Switch = "off"
    reasoning_effort: str | None = Field(default=None, pattern=r"^[a-z]+$")
    extra_body: Annotated[dict[str, Any], BeforeValidator(_require_body)] = Field(default={})
    expect_model: Literal["any", "prefix", "exact"] = "any"
    replicates: int = Field(default=1, ge=1, strict=True)
    concurrency: int = Field(default=16, ge=1, le=1024, strict=True)
    price_per_million: Price | None = None
    timeout_s: float = Field(default=300.0, gt=0, strict=True)
    template: str = Field(default=DEFAULT_TEMPLATE, min_length=1)
    batch: bool = False
    batch_poll_s: float = Field(default=60.0, gt=0)

    @property
    def sent(self) -> dict[str, Any]:
        """Values of the fields that are sent under their name; those left out are not in it."""
        return {name: value for name in _SENT if (value := getattr(self, name)) is not None}

    @property
    def model_to_name(self) -> str | None:
        """The model that replies are to name; None where the entry says itself which may."""
        return None if "expect_model" in self.model_fields_set else self.model

    @field_validator("structured_output", "log_probabilities", mode="before")
    @classmethod
    def _undo_yaml(cls, value: Any) -> Any:
        """YAML reads a bare ``on`` or ``off`` as a truth value."""
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def is_named(model: str | None, named: str | None) -> bool:
    """Return whether a name is that of a model, or a longer form of it; nothing is no other."""
    return not model or not named or model.casefold() in named.casefold()


def require_url(value: str) -> str:
    """Return an endpoint's URL without a slash at its end; no error repeats its password."""
    is_word = value.isascii() and value.isprintable() and " " not in value
    try:
        parts = urlsplit(value)
        is_web = parts.scheme in ("http", "https") and parts.hostname
        is_url = is_word and is_web and parts.port != 0
    except ValueError:  # brackets or a port that are none; what it says would quote the value
        is_url = False
    if not is_url:
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


def require_chance(slug: str, form: str, samples: int, decoding: Decoding) -> None:
    """Check that repeated questions can have different answers."""
    if decoding.temperature == 0:
        raise ValueError(
            f"judge {slug!r} is asked each {form} {samples} times, since it gives no "
            "log-probabilities, but at temperature 0 it would always say the same; set "
            "decoding.temperature above 0 for samples (1.0 is usual), or log_probabilities: auto "
            "where the endpoint has them"
        )
