"""The settings of the chain from battles to a board: one frozen value, in memory and in Dagster."""

import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from judgeline.elo import JUDGE_METHODS
from judgeline.elo.targets import levels_in
from judgeline.rating_options import RatingOptions, ReferenceFactors
from judgeline.suggest import ArgumentError, near_names

KEYS = ("stream", "judge", "smoothing_levels")
"""Settings that a step may read undeclared: `stream` and `judge` seed its draws, and the smoothing
levels follow from the methods."""


@dataclass(frozen=True)
class Settings(RatingOptions, ReferenceFactors):
    """Settings of one ranking; Elo on the scale 1500 + 400 / ln 10 * strength.

    It has these beside the settings of `RatingOptions` and `ReferenceFactors`, which
    `judgeline.rating_options` declares.

    Attributes
    ----------
    methods : tuple of str
        Methods to write; where none is named, all but the smoothed ones of the paper, such as
        ``smoothed-0.75``, which take a fit each. The leaderboard ranks by ``auto`` if that is
        among them, else by the first. `method` counts where none is named.
    thresholds : mapping of str to float or None
        Limits of the judge gate by criterion; those of `judgeline.reliability` where none is named.
    withhold : collection of str
        Criteria whose failure withholds the judge's ratings. A table of scores can be held to
        ``skill`` alone; a corpus of the lineage has three by default.
    controls : mapping of str to mapping
        Attack controls by name, each with the Elo points that it may be rated above an honest
        judge's rating (``bound``).
    stream : str
        Name that random draws are keyed by beside `seed`; the lineage takes the corpus.
    judge : str
        Name of the judge, which keys the draws of quantitative judges too.
    judge_family : str
        Family of the judge, such as ``openai`` or ``gpt``; by default, what its name begins with.
    reference_model : str, optional
        Fixed opponent of reference-anchored ratings; by default the model whose smallest number
        of battles with any opponent is largest.
    scale : tuple of int
        Lowest and highest number that the judge could say of a single answer.
    tolerance : float
        Two scores, in points of 1 to 10, or two perplexities that are at most this apart are a
        tie. So are a judge's two likeliest choices if their masses are less than twice this apart.
    """

    methods: tuple[str, ...] = ()
    thresholds: Mapping[str, float | None] = field(default_factory=dict, hash=False)
    withhold: Collection[str] = ("skill",)
    controls: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    stream: str = ""
    judge: str = ""
    judge_family: str = ""
    reference_model: str | None = None
    scale: tuple[int, int] = (1, 100)
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Refuse values that no setting can have, and a bootstrap without resamples."""
        super().__post_init__()
        for name in (*self.methods, self.method):
            require_method(name)
        if not _is_scale(self.scale):
            raise ArgumentError(f"scale is {self.scale!r}; expected (lowest, highest)", "scale")

    @property
    def smoothing_levels(self) -> tuple[float, ...]:
        """Levels of label smoothing that are asked for by name: each costs a fit of its own."""
        return levels_in((*self.methods, self.method))


def require_method(name: str) -> None:
    """Raise ArgumentError with the nearest names if there is no such method."""
    if not isinstance(name, str):
        raise ArgumentError(f"method is {name!r}; expected a name such as 'soft'", "method")
    if name not in JUDGE_METHODS:
        raise ArgumentError(f"unknown method {name!r}; {near_names(name, JUDGE_METHODS)}", "method")


def _is_scale(ends: Any) -> bool:
    """Return whether two numbers are the lowest and the highest of a scale."""
    try:
        return bool(operator.lt(*map(float, ends)))
    except (TypeError, ValueError):
        return False


class Restricted(SimpleNamespace):
    """The settings that a step declares to read; another one is an AttributeError.

    So no table depends on a setting that its declaration, and the lineage's record, do not name.
    """

    @classmethod
    def of(cls, settings: Any, names: Collection[str]) -> "Restricted":
        """Return the named settings; `KEYS` are always among them."""
        return cls(**{name: getattr(settings, name) for name in (*names, *KEYS)})

    def __getattr__(self, name: str) -> Any:
        """Refuse a setting that is not declared."""
        known = ", ".join(vars(self))
        raise AttributeError(f"setting {name!r} is not declared by this step, which reads {known}")
