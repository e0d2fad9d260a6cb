"""The corpora that a person has configured, as `config/corpora.yaml` declares them."""

import difflib
import os
import re
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from judgeline.elo import HEADLINE, JUDGE_METHODS
from judgeline.io import language_code, parse_codes
from resources.config.candidate_options import CandidateOptions
from resources.config.drift_options import DriftOptions
from resources.config.entries import Entries, read_entries
from resources.config.gate_options import GateOptions, PanelOptions
from resources.config.paths import config_dir
from resources.config.refresh_options import RefreshOptions
from resources.suggest import unknown_name

SLUG = r"^[a-z0-9][a-z0-9._-]*$"

Reader = Literal[
    "alpaca-eval",
    "arena",
    "arena-hard",
    "battles",
    "comparia",
    "lmarena-100k",
    "lmarena-140k",
    "lmarena-55k",
    "mt-bench",
    "reference-battles",
    "softelo-annotations",
]
READERS: tuple[str, ...] = get_args(Reader)

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class RatingOptions(BaseModel):
    """How the models of a corpus are rated.

    Attributes
    ----------
    l2 : float
        Penalty on the sum of squared strengths.
    hard_outcome : str
        Whether a hard outcome is derived from scores or the one recorded with the corpus.
    n_resamples : int
        Bootstrap resamples behind a standard error; 0 for none.
    miscoverage : float
        Tolerated probability that an interval misses, in (0, 1).
    n_splits : int
        Random splits of the models that evaluate coverage.
    seed : int
        Of bootstrap and splits.
    method : str
        The method that ranks.
    std_error : str
        Which standard error intervals are made of.
    resample_by : str
        What the bootstrap draws: single battles, or all battles of a question at once.
    win_rate_half_width : float
        Half-width that label plans aim at, a share of battles in (0, 0.5).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    l2: float = Field(default=0.01, gt=0)
    hard_outcome: Literal["derived", "recorded"] = "derived"
    n_resamples: int = Field(default=200, ge=0)  # and not 1, which has no spread
    miscoverage: float = Field(default=0.1, gt=0, lt=1)
    n_splits: int = Field(default=5, ge=1)
    seed: int = Field(default=0, ge=0)
    method: str = Field(default=HEADLINE, min_length=1)
    std_error: Literal["analytic", "bootstrap"] = "analytic"
    resample_by: Literal["battle", "question"] = "battle"
    win_rate_half_width: float = Field(default=0.05, gt=0, lt=0.5)

    @field_validator("n_resamples")
    @classmethod
    def _has_spread(cls, n_resamples: int) -> int:
        if n_resamples == 1:
            raise ValueError("one resample has no spread; write 0 for none, or at least 2")
        return n_resamples

    @field_validator("method")
    @classmethod
    def _is_known(cls, method: str) -> str:
        if method not in JUDGE_METHODS:
            near = difflib.get_close_matches(method, JUDGE_METHODS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"{hint}the methods are {', '.join(JUDGE_METHODS)}")
        return method


class Filters(BaseModel):
    """Which battles of a corpus count.

    Attributes
    ----------
    languages : list of str or None
        Names or codes of the languages to keep, as codes; None keeps all.
    single_turn : bool
        Whether to keep only battles in which one thing was asked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    languages: list[str] | None = None
    single_turn: bool = False

    @field_validator("languages")
    @classmethod
    def _as_codes(cls, languages: list[str] | None) -> list[str] | None:
        if languages is None:
            return None
        if unknown := [name for name in languages if language_code(name) is None]:
            raise ValueError(f"{unknown[0]!r} is no language; write its ISO 639-1 code, such as en")
        if not languages:
            raise ValueError("an empty list keeps nothing; remove the key to keep every language")
        return [str(language_code(name)) for name in languages]


class ArenaHardOptions(BaseModel):
    """What an Arena-Hard file does not say of itself.

    Attributes
    ----------
    baseline : str or dict of str to str
        Name of the model that all others were compared with, or one name per ``category``.
    baseline_first_in : int
        The game, 1 or 2, in which the judge saw the baseline as assistant A.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    baseline: str | dict[str, str] = Field(min_length=1)
    baseline_first_in: Literal[1, 2] = 1


class ReferenceOptions(BaseModel):
    """The fixed opponent of reference-anchored ratings, and what narrows their errors.

    Neither factor is applied unless it is asked for here.

    Attributes
    ----------
    model : str or None
        Name of the reference model; None for the one that met every other most evenly.
    n_population : int or None
        Prompts of the finite population that a claim is about; None for prompts at large.
    mean_kappa : float or None
        Mean pairwise kappa between the judges of a pool, in (0, 1]; None for one judge alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str | None = Field(default=None, min_length=1)
    n_population: int | None = Field(default=None, ge=2)
    mean_kappa: float | None = Field(default=None, gt=0, le=1)


class CorpusDefinition(BaseModel):
    """A corpus by name, where it lies, and what is done with it.

    Attributes
    ----------
    slug, display_name : str
        The name in tables and partitions, and the one for people (the slug if left out).
    reader : str
        The published layout, one of `READERS`.
    location, revision : str or None
        A file, folder, glob or ``hf://datasets/owner/name/path`` address, and for the latter the
        commit or tag. ``${NAME}`` and ``${NAME:-default}`` stand for environment variables; one
        that is not set stays as it is, and is an error when the corpus is read.
    outcomes : str or None
        Of the reader ``battles``: codes of outcomes, A's, B's, then any of ties, as in ``1/-1/0``;
        None for the usual ones.
    allow_quarantine : bool
        Of the reader ``battles``: whether to go on where more than 2 % of the votes are unknown.
    filters : Filters
        Which battles count.
    sample_size : int or None
        How many battles to judge; None for all.
    seed : int
        Of the sample, and of the built-in arena.
    judges : list of str or None
        Slugs of the judges that make sense here; None leaves them to each run.
    embeddings : str or None
        Slug of what embeds the judges' explanations, from `config/embeddings.yaml`; None makes
        no quantitative judges.
    rating : RatingOptions
        How models are rated.
    panel : PanelOptions or None
        Battles that a judge judges several times, so that its reliability is known; None for none.
    drift : DriftOptions or None
        Battles that judges judge again on a schedule, so that a change is seen; None for none.
    gate : GateOptions
        What a judge must do well enough before ratings by it are shown.
    reference : ReferenceOptions
        Who anchors reference-anchored ratings; in the file a model's name is enough.
    refresh : RefreshOptions or None
        What the weekly schedule does with it; None leaves it alone.
    candidates : CandidateOptions
        How new models are placed, and which attack controls stand beside them.
    arena : dict
        Options of the built-in arena, and of no other reader.
    arena_hard : ArenaHardOptions or None
        Needed by the reader ``arena-hard``, and by no other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: str = Field(pattern=SLUG)
    display_name: str = ""
    reader: str
    location: str | None = None
    revision: str | None = None
    outcomes: str | None = None
    allow_quarantine: bool = False
    filters: Filters = Field(default_factory=Filters)
    sample_size: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0)
    judges: list[str] | None = None
    embeddings: str | None = Field(default=None, pattern=SLUG)
    rating: RatingOptions = Field(default_factory=RatingOptions)
    panel: PanelOptions | None = None
    drift: DriftOptions | None = None
    gate: GateOptions = Field(default_factory=GateOptions)
    reference: ReferenceOptions = Field(default_factory=ReferenceOptions)
    refresh: RefreshOptions | None = None
    candidates: CandidateOptions = Field(default_factory=CandidateOptions)
    arena: dict[str, Any] = Field(default_factory=dict)
    arena_hard: ArenaHardOptions | None = None

    @field_validator("reader")
    @classmethod
    def _require_reader(cls, reader: str) -> str:
        if reader not in READERS:
            raise ValueError(unknown_name("reader", reader, READERS, "resources/corpora"))
        return reader

    @field_validator("outcomes")
    @classmethod
    def _require_codes(cls, outcomes: str | None) -> str | None:
        if outcomes is not None:
            parse_codes(outcomes)
        return outcomes

    @field_validator("location", "revision", mode="before")
    @classmethod
    def _expand(cls, text: Any) -> Any:
        return expand_variables(text) or None if isinstance(text, str) else text

    @field_validator("reference", mode="before")
    @classmethod
    def _named(cls, reference: Any) -> Any:
        return {"model": reference} if isinstance(reference, str) else reference


_GROUPS: dict[str, type[BaseModel]] = {
    "rating": RatingOptions,
    "filters": Filters,
    "panel": PanelOptions,
    "drift": DriftOptions,
    "gate": GateOptions,
    "reference": ReferenceOptions,
    "refresh": RefreshOptions,
    "candidates": CandidateOptions,
    "arena_hard": ArenaHardOptions,
}


def expand_variables(text: str) -> str:
    """Return text with ``${NAME}`` and ``${NAME:-default}`` replaced from the environment.

    As in a shell the default stands in for an empty variable too. A variable without value and
    default is left as it is.
    """

    def value(found: re.Match[str]) -> str:
        name, default = found.groups()
        return os.environ.get(name) or (found[0] if default is None else default)

    return _VARIABLE.sub(value, text)


def unset_variables(text: str) -> list[str]:
    """Return the environment variables that a text still asks for."""
    return [name for name, _ in _VARIABLE.findall(text)]


def load_corpora(path: Path | None = None) -> dict[str, CorpusDefinition]:
    """Return the configured corpora by slug, in the order of the file.

    Parameters
    ----------
    path : Path, optional
        A corpora file; that of the configuration folder by default.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no mapping of slugs to corpora, with file, line, key and what to do.
    """
    file = path or config_dir() / "corpora.yaml"
    entries = read_entries(file, "corpora")
    return {slug: _define(slug, given, file, entries) for slug, given in entries.values.items()}


def _define(slug: Any, fields: Any, file: Path, entries: Entries) -> CorpusDefinition:
    here = f"{file}, line {entries.line(slug)}, corpus {slug!r}"
    if not isinstance(slug, str):
        raise ValueError(f"{here}: the slug is no text; put it in quotes")
    if not isinstance(fields, dict):
        raise ValueError(f"{here}: found {fields!r}; expected display_name, reader and so on")
    if "slug" in fields:
        raise ValueError(f"{here}: remove the key 'slug'; the key above is the slug")
    if fields.get("arena") and fields.get("reader") in set(READERS) - {"arena"}:
        raise ValueError(f"{here}: options under 'arena' need 'reader: arena'; remove them")
    of_battles = sorted(fields.keys() & {"outcomes", "allow_quarantine"})
    if of_battles and fields.get("reader") != "battles":
        raise ValueError(f"{here}: the key {of_battles[0]!r} needs 'reader: battles'; remove it")
    if (fields.get("arena_hard") is not None) != (fields.get("reader") == "arena-hard"):
        raise ValueError(
            f"{here}: 'reader: arena-hard' and a 'baseline' under 'arena_hard' go together, since "
            "an Arena-Hard file does not name the model it compares with; add or remove the latter"
        )
    try:
        return CorpusDefinition.model_validate({"display_name": slug, **fields, "slug": slug})
    except ValidationError as error:
        told = [_explained(one, slug, file, entries) for one in error.errors()]
        raise ValueError("\n".join(told)) from error


def _explained(error: Any, slug: str, file: Path, entries: Entries) -> str:
    path = tuple(str(part) for part in error["loc"])
    where = f"{file}, line {entries.line(slug, *path)}, corpus {slug!r}, key {'.'.join(path)!r}"
    if error["type"] == "extra_forbidden":
        group = _GROUPS.get(path[0], CorpusDefinition)
        keys = set(group.model_fields) - {"slug"}
        return f"{where}: {_unknown_key(path[-1], keys)}"
    if error["type"] == "missing":
        return f"{where}: it is missing; add it"
    if path == ("slug",):
        return (
            f"{where}: {slug!r} is no slug; use lower-case letters, digits, '.', '-' and '_', and "
            "put the name for people under display_name"
        )
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"{where}: found {error['input']!r}: {message}; correct it"


def _unknown_key(key: str, known: set[str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}."
    return f"it is unknown; {hint} Correct or remove it"
