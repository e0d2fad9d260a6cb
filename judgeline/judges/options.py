"""Options of a judge: how it answers, and how long. Errors quote no value that may be secret."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judgeline.suggest import near_names

SLUG = r"^[a-z0-9][a-z0-9._-]{0,99}$"  # with two of them in a file's name


class Options(BaseModel):
    """Base of everything that is configured: frozen, finite, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Decoding(Options):
    """Decoding settings of a judge; null leaves a setting out of the request."""

    temperature: float | None = Field(default=0.0, ge=0, le=2, strict=True)
    top_p: float | None = Field(default=1.0, gt=0, le=1, strict=True)
    max_tokens: int = Field(default=4096, ge=16, le=10_000_000, strict=True)
    seed: int | None = Field(default=None, strict=True)

    def identity(self) -> dict[str, Any]:
        """Return the settings that shape answers; a later one than these where it is set alone."""
        first = ("temperature", "top_p", "max_tokens", "seed")
        given = self.model_dump().items()
        return {name: value for name, value in given if name in first or value is not None}


M = TypeVar("M", bound=BaseModel)


def checked(
    model: type[M],
    fields: Mapping[str, Any],
    *,
    named: str,
    never_shown: Collection[str] = (),
    place: Callable[..., str] = lambda *_: "",
) -> M:
    """Return fields as a checked model, or ValueError with a line for each mistake.

    `named` says whose fields they are, `place` gives the words before a mistake in a key. Values of
    `never_shown` keys are quoted by no error.
    """
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        mistakes = [
            f"{place(*_path(each))}{_mistake(model, named, never_shown, each)}"
            for each in error.errors()
        ]
    raise ValueError(".\n".join(mistakes))  # not from the error, which shows what may be a key


def _mistake(model: type[BaseModel], named: str, never_shown: Collection[str], error: Any) -> str:
    path, value = _path(error), error["input"]
    key = ".".join(map(str, path))
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        near = near_names(str(path[-1]), _keys(model, *path[:-1]) - {"slug"})
        return f"{named} has the unknown key '{key}'; {near} Correct or remove it"
    if error["type"] == "missing":
        return f"{named} lacks the key '{key}'; add it"
    if key == "slug":
        remedy = "rename it" if isinstance(value, str) else "put it in quotes"
        return f"{named}: a slug is lower-case letters, digits, dots, dashes; {remedy}"
    where = f", key '{key}'," if key else ""
    above = {key[: place.start()] for place in re.finditer(r"\.", key)} | {key}
    hidden = not above.isdisjoint(never_shown) or isinstance(value, dict | BaseModel)
    shown = "" if hidden else f" (found {value!r})"
    message = error["msg"].removeprefix("Value error, ")
    return f"{named}{where} is wrong: {message}{shown}; correct it"


def _path(error: Any) -> tuple[Any, ...]:
    """Return the path to the key that is wrong; a refusal may name a key of the group it is for."""
    argument = getattr(error.get("ctx", {}).get("error"), "argument", None)
    path: tuple[Any, ...] = error["loc"]
    return path if argument in (None, *path[-1:]) else (*path, argument)


def _keys(model: type[BaseModel], *above: Any) -> set[str]:
    """Return the keys of a model, or of the group of options under a key."""
    if not above:
        return {*model.model_fields}
    hint = model.model_fields[str(above[0])].annotation
    kinds = (hint, *get_args(hint))
    keys = (getattr(one, "model_fields", getattr(one, "__dataclass_fields__", ())) for one in kinds)
    return {name for each in keys for name in each}
