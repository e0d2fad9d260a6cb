"""Placements of every model by every method, and the ratings that are mixed of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Bools, Floats, require
from judgeline.elo.anchors import other_anchors, require_chains, require_votes
from judgeline.elo.battles import CodedBattles, OwnBattles
from judgeline.elo.beta import BetaFolds, fit_beta_folds
from judgeline.elo.gap import QUARTERS, GapFit, fit_gap, gap_features
from judgeline.elo.resampling import OwnShares
from judgeline.elo.smoothing import SMOOTHING_LEVELS, baseline
from judgeline.elo.sums import OutcomeTally, tally_outcomes
from judgeline.elo.targets import (
    FoldOutcomes,
    Placed,
    Target,
    fold_anchors,
    linear_target,
    outcome_target,
    own_target,
    place_targets,
    soft_target,
)
from judgeline.rating_options import RatingOptions
from judgeline.verdict.outcomes import smooth_outcome

HEADLINE = RatingOptions.method
"""Method that ranks unless another one is asked for: `mixtures` has its rule."""

AVERAGE_FROM = 20
"""Other models with votes from which on the headline is ``average``; below, it is ``gap``."""

_RULED = ("hard", "soft")  # base methods beside which there is one on the ruler

JUDGE_METHODS: tuple[str, ...] = (
    *_RULED,
    *map(baseline, SMOOTHING_LEVELS),
    "gap",
    *(f"{name}-rescaled" for name in _RULED),
    "average",
    HEADLINE,
)
"""Methods that rate by a judge, at the paper's smoothing levels."""

_HALVES = np.array([0.0, 0.5, 1.0])
_ROUNDING = 1e-9  # a slope that sums of strengths cannot tell from zero

Mixture = Mapping[str, Floats]
"""Coefficient (M,) of each base's strength in a mixture's; they add up."""


@dataclass(frozen=True)
class ScoringMethod:
    """A scoring method of battles, by outcomes or by score differences.

    Attributes
    ----------
    outcome : ndarray or None
        A's share of the win in [0, 1]: shape (n,), or (M, n) if it was learnt from votes, where
        row m saw none of model m's. Models without votes share one row's values.
    score_difference : ndarray or None
        Score of A minus B, shape (n,), on any scale; its slope is fitted in every fold to the
        votes on battles without the model held out, and the outcome is ``sigmoid(beta_m * s)``.
    """

    outcome: Floats | None = None
    score_difference: Floats | None = None

    def __post_init__(self) -> None:
        """Refuse both ways at once, and neither."""
        if (self.outcome is None) == (self.score_difference is None):
            raise ValueError("a scoring method has either outcomes or score differences")


class Placements(NamedTuple):
    """Strengths of every model by every base method, on the judge's scale, before any ruler.

    `targets`, `placed` and `shares` are by base method: ``human``, ``hard``, ``soft``, smoothed
    ones, ``gap`` and others that were given. `beta` has the slopes (M,) of those that have them.
    `mixtures` are the ratings made of bases, `gaps` the fits of the bases that predict votes.
    `voted` (M,) says which models are anchors, `tally` counts all battles by outcome.
    """

    tally: OutcomeTally
    voted: Bools
    targets: Mapping[str, Target]
    placed: Mapping[str, Placed]
    shares: Mapping[str, OwnShares]
    beta: Mapping[str, Floats]
    mixtures: Mapping[str, Mixture]
    gaps: Mapping[str, GapFit]

    @property
    def judged(self) -> Target:
        """Target of all judged battles: the first that is not people's."""
        return next(target for name, target in self.targets.items() if name != "human")

    def mixture(self, method: str) -> Mixture:
        """Return the coefficients of a method's bases; ValueError names the known methods."""
        if method in self.placed:
            return {method: np.ones(self.voted.size)}
        if method not in self.mixtures:
            known = ", ".join((*self.placed, *self.mixtures))
            raise ValueError(f"no ratings by method {method!r}; there are {known}")
        return self.mixtures[method]

    def mixed(self, method: str, values: Mapping[str, Floats]) -> Floats:
        """Return values of bases as a method mixes them, (M,); without weight none is needed."""
        mixture = self.mixture(method).items()
        parts = [np.where(weight == 0, 0.0, weight * values[name]) for name, weight in mixture]
        return np.asarray(sum(parts))

    def strength(self, method: str) -> Floats:
        """Return every model's strength by a method, (M,) logits."""
        return self.mixed(method, {name: fit.strength for name, fit in self.placed.items()})


def human_anchors(battles: CodedBattles, *, l2: float) -> tuple[Bools, Floats]:
    """Return which models are anchors, (M,), and people's strengths of them by fold, (M, A)."""
    voted, made = require_votes(battles), battles.made
    if ("human", l2) not in made:
        target = linear_target(tally_outcomes(battles).human[:, voted], _HALVES, voted)
        names = np.array(battles.models)[voted]
        made["human", l2] = fold_anchors(target, voted, l2, names)
    return voted, made["human", l2]


def place(
    battles: CodedBattles,
    beta_folds: BetaFolds | None = None,
    *,
    l2: float,
    smoothing_levels: tuple[float, ...] = (),
    methods: Mapping[str, ScoringMethod] | None = None,
    cluster: ArrayLike | None = None,
) -> Placements:
    """Return the placements that ratings are made from: by votes, and by the judge.

    `cluster` (n,) is the question of each battle, which matters to errors alone.
    """
    voted, tally = require_votes(battles), tally_outcomes(battles)
    folds = fit_beta_folds(battles) if beta_folds is None else beta_folds
    held_out = tuple(folds.held_out_model)
    remedy = f"those of the battles, {battles.models}; fit the folds on these battles"
    require(held_out == battles.models, "the models of the beta folds", held_out, remedy)
    gap = fit_gap(battles, gap_features(battles, tally, l2=l2, cluster=cluster))
    judge, beta = tally.judge[:, voted], {"soft": folds.beta}
    targets = {"human": human_target(battles, tally, voted)}
    shares: dict[str, OwnShares] = {"human": human_shares}

    def by_outcomes(name: str, count: Callable[[Floats], Floats]) -> None:
        """Add a method that counts the judge's outcomes, from 0 to 1, as shares of the win."""
        targets[name] = linear_target(judge, count(QUARTERS), voted)
        shares[name] = lambda _, own: count(own.judge / 4)

    by_outcomes("hard", np.asarray)
    targets["soft"] = soft_target(battles, judge, folds.beta, voted)
    shares["soft"] = lambda model, own: expit(folds.beta[model] * own.score)
    for level in smoothing_levels:
        by_outcomes(baseline(level), partial(smooth_outcome, level=level))
    targets["gap"] = own_target(battles, judge, gap.of_both(battles), voted)
    shares["gap"] = gap.of_own
    for name, method in (methods or {}).items():
        outcomes, slopes = _outcomes(name, method, battles)
        targets[name] = outcome_target(battles, judge, outcomes, voted)
        shares[name] = _turned(outcomes)
        beta |= {} if slopes is None else {name: slopes}
    human = human_anchors(battles, l2=l2)[1]
    placed = place_targets(targets, voted, l2, np.array(battles.models)[voted], human)
    mixed = mixtures(placed, voted, (*_RULED, *(methods or {})))
    return Placements(tally, voted, targets, placed, shares, beta, mixed, {"gap": gap})


def human_target(battles: CodedBattles, tally: OutcomeTally, voted: Bools) -> Target:
    """Return the target of people's votes; ValueError unless they connect the voted models."""
    target = linear_target(tally.human[:, voted], _HALVES, voted)
    names = np.array(battles.models)[voted].tolist()
    remedy = (
        "have people vote on battles that connect them, or rank one connected set (component=0, "
        "--component 0)"
    )
    require_chains(target.n_battles[voted], names, "with a vote ", remedy)
    return target


def human_shares(_: int, own: OwnBattles) -> Floats:
    """Return a model's share of the vote in each of its own battles; NaN where nobody voted."""
    return np.where(own.human >= 0, own.human / 2, np.nan)


def _turned(outcomes: FoldOutcomes) -> OwnShares:
    return lambda model, own: own.turned(outcomes(model))


def _outcomes(
    name: str, method: ScoringMethod, battles: CodedBattles
) -> tuple[FoldOutcomes, Floats | None]:
    """Return a method's outcomes by fold, and the slopes (M,) behind them if there are any."""
    if name in ("human", *JUDGE_METHODS):
        raise ValueError(f"a method is called {name!r}, which is made from the battles themselves")
    shapes = (len(battles),), (len(battles.models), len(battles))
    if method.score_difference is not None:
        score = np.asarray(method.score_difference, dtype=float)
        require(score.shape == shapes[0], f"the shape of {name!r}", score.shape, f"{shapes[0]}")
        remedy = "a finite score; leave out battles that a method did not score"
        require(np.isfinite(score), f"score_difference of {name!r}", score, remedy)
        beta = fit_beta_folds(replace(battles, score_difference=score, denominator=0)).beta
        return lambda model: expit(beta[model] * score), beta
    outcome = np.asarray(method.outcome, dtype=float)
    expected = f"{shapes[0]} or {shapes[1]}"
    require(outcome.shape in shapes, f"the shape of {name!r}", outcome.shape, expected)
    return (lambda _: outcome) if outcome.ndim == 1 else (lambda model: outcome[model]), None


def ruler_slopes(base: Placed, human: Placed, voted: Bools) -> Floats:
    """Return the slope from a base's strengths to human ones in every model's fold, (M,).

    ``sum u t / sum u^2`` over the anchors other than the model, whose strengths ``u`` by the base
    and ``t`` by people were both fitted without it and centred.
    """
    slopes = np.full(voted.size, np.nan)
    for model, others in enumerate(other_anchors(voted)):
        judged, people = base.anchors[model][others], human.anchors[model][others]
        product, square = float(judged @ people), float(judged @ judged)
        if others.sum() >= 2 and product > _ROUNDING * square > 0:
            slopes[model] = product / square
    return slopes


def mixtures(
    placed: Mapping[str, Placed], voted: Bools, ruled: Iterable[str]
) -> dict[str, Mixture]:
    """Return the coefficients of every rating that combines base methods.

    ``X-rescaled`` is method X of those `ruled`, on the ruler; ``average`` the mean of hard and soft
    on theirs; ``auto`` the headline: ``average`` for a model beside which `AVERAGE_FROM` others
    have votes, ``gap`` for any other. Neither a model's own votes nor its own rating choose.
    """
    slopes = {name: ruler_slopes(placed[name], placed["human"], voted) for name in ruled}
    many = averaged(voted)
    halves = {name: slopes[name] / 2 for name in _RULED}
    rescaled: dict[str, Mixture] = {f"{name}-rescaled": {name: slopes[name]} for name in slopes}
    headline = {name: np.where(many, half, 0.0) for name, half in halves.items()}
    return {**rescaled, "average": halves, HEADLINE: {**headline, "gap": np.where(many, 0.0, 1.0)}}


def averaged(voted: Bools) -> Bools:
    """Return for which models ``auto`` stands for ``average``, shape (M,)."""
    return np.asarray(voted.sum() - voted >= AVERAGE_FROM)


def basis_of(voted: Bools) -> NDArray[np.str_]:
    """Return the method that ``auto`` stands for by model, with its reason, in words (M,)."""
    texts = [
        f"average: {n} other models have votes"
        if many
        else f"gap: {n} other models have votes, fewer than {AVERAGE_FROM}"
        for n, many in zip((voted.sum() - voted).tolist(), averaged(voted).tolist(), strict=True)
    ]
    return np.array(texts)
