"""The settings of ratings, each declared once: name, type, default, meaning and bounds.

`Settings`, the keys under ``rating:`` of a corpus and the options of `judgeline rank` derive from
here. Nothing heavy is imported, so that `--help` answers at once.
"""

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from inspect import getdoc
from numbers import Integral, Real
from types import NoneType
from typing import Any, ClassVar, Literal, Self, get_args

from judgeline.suggest import ArgumentError

StdErrorKind = Literal["analytic", "bootstrap"]
IntervalKind = Literal["calibrated", "published"]

N_RESAMPLES = 200
"""Bootstrap resamples per model and method where no other number is named."""

MOST_RESAMPLED = 100_000
"""Above this many battles no resamples are drawn: the closed form is as good."""

MOST_SPLITS = 10_000
"""Random splits of the models: each takes a millisecond or more, without a sign of life."""

_BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}  # operators


def bounded(default: Any, **bounds: float) -> Any:
    """Return a field with its bounds: named as pydantic names and reads them."""
    return field(default=default, metadata=bounds)


@dataclass(frozen=True)
class Declared:
    """Base of declared settings, which refuse a value of another type, choice or size."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "allow_inf_nan": False}

    def __post_init__(self) -> None:
        """Refuse the first value that its setting cannot have."""
        for each in fields(self):
            _refuse(each, getattr(self, each.name))


@dataclass(frozen=True)
class ReferenceFactors(Declared):
    """Two factors that narrow the errors of reference-anchored ratings.

    Attributes
    ----------
    n_population : int, optional
        Prompts of the population that was drawn from; by default prompts at large.
    mean_kappa : float, optional
        Mean agreement of a pool of judges; by default errors are those of one judge.
    """

    n_population: int | None = bounded(None, ge=2)
    mean_kappa: float | None = bounded(None, gt=0, le=1)


@dataclass(frozen=True)
class FitOptions(Declared):
    """Settings of fits of strengths and of their standard errors.

    Attributes
    ----------
    l2 : float
        Penalty on squared strengths, per squared logit.
    n_resamples : int, optional
        Bootstrap resamples per model and method, of questions where battles share them; 0 for
        none. By default 200; of a file none beyond 100,000 battles unless the bootstrap is asked
        for.
    seed : int
        Seed of every random stream, such as resamples and splits.
    """

    l2: float = bounded(0.01, ge=0)
    n_resamples: int | None = bounded(None, ge=0)
    seed: int = bounded(0, ge=0)

    def __post_init__(self) -> None:
        """Refuse values that no setting can have, and a single resample."""
        super().__post_init__()
        if self.n_resamples == 1:
            raise ArgumentError("n_resamples=1 has no spread: name 0, or 2 or more", "n_resamples")


@dataclass(frozen=True)
class RatingOptions(FitOptions):
    """Settings of the ratings of a corpus or a file, beside those of `FitOptions`.

    Attributes
    ----------
    hard_outcome : str
        Whether hard outcomes are derived from the scores or recorded in the file.
    miscoverage : float
        Tolerated share of misses; 0.1 asks for 90 % coverage.
    n_splits : int
        Random splits of the models on which coverage is measured.
    method : str
        Method that ranks; one of `judgeline.elo.JUDGE_METHODS`.
    std_error : str, optional
        Standard error that scales the intervals; by default the bootstrap's where there are
        resamples, else its closed form (analytic).
    resample_by : str
        What is drawn together: the battles of a question, or each battle by itself.
    intervals : str
        Spread of the judge's intervals: standard error, noise of votes and excess of the residuals;
        or as published, the bootstrap standard error alone.
    families : mapping of str to str
        Families of models by how names begin, before those of `judgeline.io.family_of`.
    win_rate_half_width : float
        Half-width of a win rate's interval that plans of labels aim at, a share of the battles.
    """

    hard_outcome: Literal["derived", "recorded"] = "derived"
    miscoverage: float = bounded(0.1, gt=0, lt=1)
    n_splits: int = bounded(5, ge=1, le=MOST_SPLITS)
    method: str = "auto"
    std_error: StdErrorKind | None = None
    resample_by: Literal["question", "battle"] = "question"
    intervals: IntervalKind = "calibrated"
    families: Mapping[str, str] = field(default_factory=dict, hash=False)
    win_rate_half_width: float = bounded(0.05, gt=0, lt=0.5)

    def __post_init__(self) -> None:
        """Refuse values that no setting can have, and a bootstrap without resamples."""
        super().__post_init__()
        for beginning, family in self.families.items():
            if not all(isinstance(word, str) and word.strip() for word in (beginning, family)):
                raise ArgumentError(
                    f"families has {beginning!r}: {family!r}; expected how names of models begin "
                    "and their family, such as {'gemini': 'google'}",
                    "families",
                )
        if self.intervals == "published" and self.std_error == "analytic":
            raise ArgumentError(
                "published intervals are of bootstrap standard errors: leave out 'std_error'",
                "std_error",
            )
        if self.n_resamples == 0 and self._needs_resamples:
            raise ArgumentError(
                "n_resamples=0 leaves no bootstrap standard error: leave out 'n_resamples', or "
                "name 2 or more",
                "n_resamples",
            )

    @property
    def _needs_resamples(self) -> bool:
        return self.std_error == "bootstrap" or self.intervals == "published"

    def resolved(self, n_battles: int = 0, *, counted: bool = False) -> Self:
        """Return the settings with the resamples and the standard error of `n_battles` battles.

        ValueError if they are counted and resamples, which draw single ones, are asked for.
        """
        n_resamples = self.n_resamples
        if counted and (n_resamples or self._needs_resamples):
            of_kind = "std_error" if self.std_error == "bootstrap" else "intervals"
            argument = "n_resamples" if n_resamples else of_kind
            raise ArgumentError(
                "alike battles were read as one with their number, and resamples draw single ones: "
                f"leave out '{argument}' (the closed form needs none), or rank fewer battles, one "
                "a row",
                argument,
            )
        if n_resamples is None:
            few = n_battles <= MOST_RESAMPLED and not counted
            n_resamples = N_RESAMPLES if few or self._needs_resamples else 0
        by_default: StdErrorKind = "bootstrap" if n_resamples else "analytic"
        kind = "bootstrap" if self.intervals == "published" else self.std_error or by_default
        return replace(self, n_resamples=n_resamples, std_error=kind)


STATED = (
    "l2", "hard_outcome", "n_resamples", "miscoverage", "n_splits", "seed", "std_error",
    "intervals",
)  # fmt: skip
"""Settings that `judgeline rank` takes as options and its report lists."""


def meaning(name: str) -> str:
    """Return the description of a setting of ratings, in one line."""
    texts = "\n\n".join(filter(None, map(getdoc, RatingOptions.__mro__)))
    found = re.search(rf"^{name} : .*\n((?: +.*\n?)+)", texts, re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def _refuse(declared: "Field[Any]", value: Any) -> None:
    """Raise ArgumentError unless a value is one of its setting's choices, or within its bounds."""
    parts = (declared.type, *get_args(declared.type))
    choices = [one for part in parts for one in get_args(part) if isinstance(one, str)]
    if value in choices or (value is None and NoneType in parts):
        return
    kind, word = (Integral, "a whole number") if int in parts else (Real, "a finite number")
    bounds = declared.metadata.items()
    is_number = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    fits = is_number and all(getattr(operator, name)(value, end) for name, end in bounds)
    if (choices or bounds) and not fits:
        limits = " and ".join(f"{_BOUNDS[name]} {end}" for name, end in bounds)
        expected = " or ".join(map(repr, choices)) or f"{word}, {limits}"
        raise ArgumentError(f"{declared.name} is {value!r}; expected {expected}", declared.name)
