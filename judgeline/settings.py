"""The settings of the chain from battles to a board: one frozen value, in memory and in Dagster."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from judgeline.elo import HEADLINE, JUDGE_METHODS, RatingSettings
from judgeline.elo.smoothing import levels_in
from judgeline.intervals import IntervalKind, StdErrorKind, require_miscoverage
from judgeline.io import ArgumentError

_CHOICES = {
    "hard_outcome": ("derived", "recorded"),
    "std_error": (None, "analytic", "bootstrap"),
    "intervals": ("calibrated", "published"),
    "resample_by": ("question", "battle"),
}
_WHOLE = ("n_splits", "seed")

KEYS = ("stream", "judge", "smoothing_levels")
"""Settings that a step may read undeclared: `stream` and `judge` seed its draws, and the smoothing
levels follow from the methods."""

MOST_RESAMPLED = 100_000
"""Above this many battles no resamples are drawn: the closed form is as good."""


@dataclass(frozen=True)
class Settings:
    """Settings of one ranking; Elo on the scale 1500 + 400 / ln 10 * strength.

    Attributes
    ----------
    l2 : float
        Penalty on squared strengths, per squared logit.
    hard_outcome : str
        ``"derived"`` from the scores or ``"recorded"`` in the file.
    n_resamples : int, optional
        Bootstrap resamples per model and method, of questions where battles share them; 0 for the
        closed form alone. By default 200, and none beyond `MOST_RESAMPLED` battles, unless
        `std_error` asks for the bootstrap. Of counted battles there are none.
    miscoverage : float
        Tolerated share of misses, in (0, 1).
    n_splits : int
        Random splits of the models on which coverage is measured.
    seed : int
        Seed of every random stream.
    std_error : {"analytic", "bootstrap"}, optional
        Which standard error scales the intervals; by default the bootstrap's where there are
        resamples, else the closed form.
    intervals : {"calibrated", "published"}
        Spread of the judge's intervals: standard error, noise of votes and excess of the residuals;
        or as published, the bootstrap standard error alone.
    methods : tuple of str
        Methods to write; where none is named, all but the smoothed ones of the paper, such as
        ``smoothed-0.75``, which take a fit each. The leaderboard ranks by ``auto`` if that is
        among them, else by the first.
    resample_by : {"question", "battle"}
        What is drawn together: the battles of a question, or each battle by itself.
    method : str
        Method that ranks, where `methods` names none; one of `judgeline.elo.JUDGE_METHODS`.
    thresholds : mapping of str to float or None
        Limits of the judge gate by criterion; those of `judgeline.reliability` where none is named.
    withhold : collection of str
        Criteria whose failure withholds the judge's ratings. A table of scores can be held to
        ``skill`` alone; a corpus of the lineage has four by default.
    controls : mapping of str to mapping
        Attack controls by name, each with the Elo points that it may be rated above an honest
        judge's rating (``bound``).
    stream : str
        Name that random draws are keyed by beside `seed`; the lineage takes the corpus.
    judge : str
        Name of the judge, which keys the draws of quantitative judges too.
    judge_family : str
        Family of the judge, such as ``openai`` or ``gpt``; by default, what its name begins with.
    families : mapping of str to str
        Families of models by how names begin, before those of `judgeline.io.family_of`.
    win_rate_half_width : float
        Half-width of a win rate's interval that plans of labels aim at, a share of the battles.
    reference_model : str, optional
        Fixed opponent of reference-anchored ratings; by default the model whose smallest number
        of battles with any opponent is largest.
    n_population : int, optional
        Prompts of the population that was drawn from; by default prompts at large.
    mean_kappa : float, optional
        Mean agreement of a pool of judges, which narrows their errors against a reference.
    scale : tuple of int
        Lowest and highest number that the judge could say of a single answer.
    tolerance : float
        Two scores, in points of 1 to 10, or two perplexities that are at most this apart are a
        tie. So are a judge's two likeliest choices if their masses are less than twice this apart.
    """

    l2: float = 0.01
    hard_outcome: Literal["derived", "recorded"] = "derived"
    n_resamples: int | None = None
    miscoverage: float = 0.1
    n_splits: int = 5
    seed: int = 0
    std_error: StdErrorKind | None = None
    intervals: IntervalKind = "calibrated"
    methods: tuple[str, ...] = ()
    resample_by: Literal["question", "battle"] = "question"
    method: str = HEADLINE
    thresholds: Mapping[str, float | None] = field(default_factory=dict, hash=False)
    withhold: Collection[str] = ("skill",)
    controls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    stream: str = ""
    judge: str = ""
    judge_family: str = ""
    families: Mapping[str, str] = field(default_factory=dict, hash=False)
    win_rate_half_width: float = 0.05
    reference_model: str | None = None
    n_population: int | None = None
    mean_kappa: float | None = None
    scale: tuple[int, int] = (1, 100)
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Refuse values that no setting can have, and a bootstrap without resamples."""
        require_miscoverage(self.miscoverage)
        for name in (*_CHOICES, *_WHOLE):
            value = getattr(self, name)
            known = " or ".join(map(repr, _CHOICES.get(name, ())))
            is_known = value in _CHOICES[name] if known else isinstance(value, int | np.integer)
            if not is_known:
                expected = known or "a whole number"
                raise ArgumentError(f"{name} is {value!r}; expected {expected}", name)
        for name in (*self.methods, self.method):
            require_method(name)
        low, high = _two_numbers(self.scale)
        if not low < high:
            raise ArgumentError(f"scale is {self.scale!r}; expected (lowest, highest)", "scale")
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
    def smoothing_levels(self) -> tuple[float, ...]:
        """Levels of label smoothing that are asked for by name: each costs a fit of its own."""
        return levels_in((*self.methods, self.method))

    @property
    def _needs_resamples(self) -> bool:
        return self.std_error == "bootstrap" or self.intervals == "published"

    def resolved(self, n_battles: int, *, counted: bool = False) -> "Settings":
        """Return the settings with the resamples and the standard error of `n_battles` battles.

        ValueError if they are counted and resamples, which draw single ones, are asked for.
        """
        n_resamples = self.n_resamples
        if counted and (n_resamples or self._needs_resamples):
            argument = "n_resamples"
            if not n_resamples:
                argument = "std_error" if self.std_error == "bootstrap" else "intervals"
            raise ArgumentError(
                "alike battles were read as one with their number, and resamples draw single ones: "
                f"leave out '{argument}' (the closed form needs none), or rank fewer battles, one "
                "a row",
                argument,
            )
        if counted:
            n_resamples = 0
        if n_resamples is None:
            wanted = n_battles <= MOST_RESAMPLED or self._needs_resamples
            n_resamples = RatingSettings.n_resamples if wanted else 0
        by_default: StdErrorKind = "bootstrap" if n_resamples else "analytic"
        kind = "bootstrap" if self.intervals == "published" else self.std_error or by_default
        return replace(self, n_resamples=n_resamples, std_error=kind)


def require_method(name: str) -> None:
    """Raise ArgumentError with the nearest name if there is no such method."""
    if name not in JUDGE_METHODS:
        near = difflib.get_close_matches(name, JUDGE_METHODS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        known = ", ".join(JUDGE_METHODS)
        raise ArgumentError(f"unknown method {name!r}; {hint}Known are {known}", "method")


def _two_numbers(scale: Any) -> tuple[float, float]:
    """Return the ends of a scale; ArgumentError if it is no pair of numbers."""
    try:
        low, high = (float(end) for end in scale)
    except (TypeError, ValueError):
        raise ArgumentError(f"scale is {scale!r}; expected (lowest, highest)", "scale") from None
    return low, high


class Restricted:
    """The settings that a step declares to read; another one is an AttributeError.

    So no table depends on a setting that its declaration, and the lineage's record, do not name.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    @classmethod
    def of(cls, settings: Any, names: Collection[str]) -> "Restricted":
        """Return the named settings; `KEYS` are always among them."""
        return cls({name: getattr(settings, name) for name in (*names, *KEYS)})

    def __getattr__(self, name: str) -> Any:
        """Return a declared setting."""
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        raise AttributeError(
            f"setting {name!r} is not declared by this step, which reads {', '.join(values)}"
        )
