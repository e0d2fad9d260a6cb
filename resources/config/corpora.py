"""The corpora that a person has configured, as `corpora.yaml` declares them."""

import os
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from judgeline import io
from judgeline.io import language_code, parse_codes, parse_missing
from judgeline.io.layouts.battles import require_names
from judgeline.io.layouts.ratings import RATINGS
from judgeline.judges.options import SLUG, Options
from judgeline.rating_options import RatingOptions, ReferenceFactors
from judgeline.settings import require_method
from resources.config import options
from resources.config.entries import EntryKind

READERS = tuple(sorted(("arena", RATINGS.name, *io.READERS)))
_OF_RATINGS = {"slug", "display_name", "reader", "location", "revision", "embeddings", "rating"}

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def _rating(given: RatingOptions) -> RatingOptions:
    """Return options of ratings with the resamples and the standard error that they ask for."""
    require_method(given.method)
    return given.resolved()


def _as_codes(languages: list[str]) -> list[str]:
    codes = {name: language_code(name) for name in languages}
    if unknown := [name for name, code in codes.items() if code is None]:
        raise ValueError(f"{unknown[0]!r} is no language; write its ISO 639-1 code, such as en")
    if not languages:
        raise ValueError("an empty list keeps nothing; remove the key to keep every language")
    return [str(codes[name]) for name in languages]


class Filters(Options):
    """Filters on the battles of a corpus."""

    languages: Annotated[list[str], AfterValidator(_as_codes)] | None = None
    single_turn: bool = False


class ArenaHardOptions(Options):
    """The baseline of an Arena-Hard file, one name or one per category, and the game it leads."""

    baseline: str | dict[str, str] = Field(min_length=1)
    baseline_first_in: Literal[1, 2] = 1


@dataclass(frozen=True)
class ReferenceOptions(ReferenceFactors):
    """The fixed opponent of reference-anchored ratings; two factors narrow their errors."""

    model: Annotated[str, Field(min_length=1)] | None = None


def _expand(text: Any) -> Any:
    """Return text with ``${NAME}`` and ``${NAME:-default}`` replaced where they have a value."""

    def value(found: re.Match[str]) -> str:
        name, default = found.groups()
        return os.environ.get(name) or (found[0] if default is None else default)

    return _VARIABLE.sub(value, text) or None if isinstance(text, str) else text


def unset_variables(text: str) -> list[str]:
    """Return the environment variables that a text still asks for."""
    return [name for name, _ in _VARIABLE.findall(text)]


def _refuse_secrets(location: str) -> str:
    parts = urlsplit(location) if "://" in location else None
    if location.startswith("sk-") or (parts and "@" in parts.netloc):
        raise ValueError("it holds a key or a password, which belong into the environment alone")
    return location


_Codes = Annotated[str, AfterValidator(lambda codes: parse_codes(codes) and codes)]
_MissingValues = Annotated[
    tuple[str | int | float, ...],
    BeforeValidator(lambda given: given if isinstance(given, list | tuple) else [given]),
    AfterValidator(lambda given: parse_missing(given or None) and given),
]
_Location = Annotated[str, AfterValidator(_refuse_secrets)]


class CorpusDefinition(Options):
    """A corpus by name: its location, reader and options.

    ``${NAME}`` and ``${NAME:-default}`` in location and revision stand for environment variables;
    one that is not set stays as it is, and is an error when the corpus is read.
    """

    slug: str = Field(pattern=SLUG)
    display_name: str = ""
    reader: Annotated[str, options.known("reader", READERS)]
    location: Annotated[_Location | None, BeforeValidator(_expand)] = None
    revision: Annotated[str | None, BeforeValidator(_expand)] = None
    outcomes: _Codes | None = None
    columns: Annotated[dict[str, str], AfterValidator(require_names)] = Field(default_factory=dict)
    allow_quarantine: bool = False
    missing: _MissingValues = ()
    filters: Filters = Field(default_factory=Filters)
    sample_size: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    judges: list[str] | None = None
    embeddings: str | None = Field(default=None, pattern=SLUG)
    rating: Annotated[RatingOptions, AfterValidator(_rating)] = RatingOptions().resolved()
    panel: options.PanelOptions | None = None
    drift: options.DriftOptions | None = None
    gate: options.GateOptions = Field(default_factory=options.GateOptions)
    reference: Annotated[
        ReferenceOptions,
        BeforeValidator(lambda given: {"model": given} if isinstance(given, str) else given),
    ] = ReferenceOptions()
    refresh: options.RefreshOptions | None = None
    candidates: options.CandidateOptions = Field(default_factory=options.CandidateOptions)
    arena: dict[str, Any] = Field(default_factory=dict)
    arena_hard: ArenaHardOptions | None = None

    @model_validator(mode="before")
    @classmethod
    def _require_options_of_its_reader(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        reader = fields.get("reader")
        if fields.get("arena") and reader in set(READERS) - {"arena"}:
            raise ValueError("options under 'arena' need 'reader: arena'; remove them")
        of_battles = sorted({*fields} & {*cls.model_fields} - _OF_RATINGS)
        if reader == RATINGS.name and of_battles:
            raise ValueError(
                f"the key {of_battles[0]!r} is about battles, which 'reader: ratings' has none of; "
                "remove it"
            )
        for key in ("allow_quarantine", "columns", "missing", "outcomes"):
            if key in fields and reader != "battles":
                raise ValueError(f"the key {key!r} needs 'reader: battles'; remove it")
        if (fields.get("arena_hard") is not None) != (reader == "arena-hard"):
            raise ValueError(
                "'reader: arena-hard' and a 'baseline' under 'arena_hard' go together, since the "
                "file does not name it; add or remove the latter"
            )
        return {"display_name": fields.get("slug"), **fields}


KIND = EntryKind(
    "corpus", "corpora", "display_name, reader and so on", CorpusDefinition, {"location"}
)
load_corpora = KIND.load
