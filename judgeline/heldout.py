"""Leave-one-model-out Elo: every model placed by judge, and by humans, as if it were new.

For each model: anchors are fitted without its battles, then it is placed among them by its
own. Done with votes it gives the reference; done with a judge's outcomes, hard, smoothed or
soft at a slope that never saw the model's votes, it gives what the judge would have said of
a new model. The difference is the residual that the intervals are made of.

Only models with votes are anchors. Judge targets use every judged battle between them, voted
on or not; a model without votes is placed among all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.battles import CodedBattles
from judgeline.beta import BetaFolds
from judgeline.connectivity import cut_models
from judgeline.elo import ELO_PER_LOGIT, strength_to_rating
from judgeline.outcomes import smooth_outcome
from judgeline.own_battles import OwnBattles
from judgeline.rating_settings import SMOOTHING_LEVELS, RatingSettings
from judgeline.recalibration import Ruler, fit_ruler, fit_scale
from judgeline.soft import soft_totals
from judgeline.std_errors import Family, Shares, StdErrors, require_clusters, std_errors
from judgeline.tally import OutcomeTally, tally_outcomes
from judgeline.targets import (
    Placed,
    Target,
    linear_target,
    place_target,
    require_anchors_connected,
    require_votes,
    soft_target,
)

Floats = NDArray[np.float64]

JUDGE_METHODS: tuple[str, ...] = (
    "hard",
    "soft",
    *(f"smoothed-{level!r}" for level in SMOOTHING_LEVELS),
    *(f"{base}-{ruler}" for base in ("hard", "soft") for ruler in ("recalibrated", "rescaled")),
)
"""Methods that rate by a judge, at the paper's smoothing levels."""

FEW_BATTLES = 20
"""Battles against anchors below which a model is flagged: its standard error is a guess."""

_HALVES = np.array([0.0, 0.5, 1.0])
_QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


Ruling = tuple[str, Callable[[Floats, Floats], Ruler]]

RULERS: dict[str, Ruling] = {
    f"{base}-{name}": (base, fit)
    for base in ("hard", "soft")
    for name, fit in (("recalibrated", fit_ruler), ("rescaled", fit_scale))
}
"""Methods on a ruler: the method that each is made from, and how its line is fitted."""


class HeldOutRatings(NamedTuple):
    """One row per model and method.

    `rating`, `human_rating`, `residual` (rating minus human rating), `std_error` (bootstrap)
    and `std_error_analytic` (its closed form) are in Elo points, `beta` in logits per rubric
    point. NaN means that the value does not exist; `flags` says why a rating does not.
    """

    model: NDArray[np.str_]
    method: NDArray[np.str_]
    rating: Floats
    human_rating: Floats
    residual: Floats
    std_error: Floats
    std_error_analytic: Floats
    beta: Floats
    n_battles: NDArray[np.int64]
    n_votes: NDArray[np.int64]
    flags: NDArray[np.str_]


def fit_heldout_ratings(
    battles: CodedBattles,
    beta_folds: BetaFolds,
    settings: RatingSettings,
    *,
    cluster: ArrayLike | None = None,
) -> HeldOutRatings:
    """Return the leave-one-model-out rating of every model by every method.

    Methods: ``human`` (votes), ``hard`` (judge outcomes), ``soft`` (``sigmoid(beta_m s)``),
    ``smoothed-c`` per level, and hard and soft on a ruler fitted to the other models:
    ``-recalibrated`` (a line) and ``-rescaled`` (a slope through 1500).

    Parameters
    ----------
    battles : CodedBattles
        Judged battles, n of them, with votes on some.
    beta_folds : BetaFolds
        Slope per held-out model, in the order of ``battles.models``; a model whose slope is
        NaN has no soft rating.
    settings : RatingSettings
        Penalty, resamples, seed and smoothing levels.
    cluster : array_like of int or str, shape (n,), optional
        Cluster of each battle, such as its question; standard errors then treat a cluster's
        battles as drawn together.

    Returns
    -------
    HeldOutRatings
        Rows by model, then method; rows of models without votes have no ``human`` method.

    Raises
    ------
    ValueError
        If nobody voted, slopes belong to other models, or votes or judged battles do not
        connect the voted models.
    RuntimeError
        If an iteration does not converge.

    References
    ----------
    Kargi and Salinas (2026), arXiv:2606.13221, Algorithm 1. The penalty here is
    ``l2 * |strength|^2``, not half of it.
    """
    _require_matching(battles, beta_folds)
    require_clusters(cluster, len(battles))
    voted = require_votes(battles)
    tally = tally_outcomes(battles)
    targets = dict(_targets(battles, beta_folds.beta, voted, tally, settings))
    require_anchors_connected(targets["human"], voted, battles.models)
    placed = {
        name: place_target(target, voted, settings.l2, np.array(battles.models)[voted])
        for name, target in targets.items()
    }
    families = resampling_families(placed, beta_folds.beta)
    errors = std_errors(battles, voted, placed, families, settings, cluster)
    return tabulate_ratings(
        battles,
        voted,
        targets,
        placed,
        errors,
        tally,
        beta={"soft": beta_folds.beta},
        rulers=RULERS,
    )


class JudgePlacement(NamedTuple):
    """What one method placed each of M models by, among A anchors (the models with votes).

    `strength` (M,) in logits, NaN where a model has no rating; `anchors` (M, A): strengths in
    logits that were fixed while the row's model was placed; `n_battles` and `wins` (M, A): its
    battles and wins against each of them.
    """

    strength: Floats
    anchors: Floats
    n_battles: Floats
    wins: Floats


def place_by_judge(
    battles: CodedBattles, beta_folds: BetaFolds, *, l2: float
) -> dict[str, JudgePlacement]:
    """Return the hard and soft placements that `fit_heldout_ratings` reports as ratings.

    Parameters
    ----------
    battles, beta_folds
        As there.
    l2 : float
        Penalty on squared strengths, per squared logit.

    Returns
    -------
    dict of str to JudgePlacement
        By ``"hard"`` and ``"soft"``; rows in the order of ``battles.models``, columns in that
        of its voted models.

    Raises
    ------
    ValueError, RuntimeError
        As there.
    """
    placed = place_everywhere(battles, beta_folds, l2=l2)
    return {name: placed[name] for name in ("hard", "soft")}


def place_everywhere(
    battles: CodedBattles,
    beta_folds: BetaFolds,
    *,
    l2: float,
    smoothing_levels: tuple[float, ...] = (),
) -> dict[str, JudgePlacement]:
    """Return the placements that ratings are made from: by votes, and by the judge.

    Parameters
    ----------
    battles, beta_folds
        As of `fit_heldout_ratings`.
    l2 : float
        Penalty on squared strengths, per squared logit.
    smoothing_levels : tuple of float
        Levels of label smoothing to place by as well.

    Returns
    -------
    dict of str to JudgePlacement
        By ``"human"``, ``"hard"``, ``"soft"`` and ``"smoothed-c"``; models without votes have no
        strength by ``"human"``.

    Raises
    ------
    ValueError, RuntimeError
        As there.
    """
    _require_matching(battles, beta_folds)
    voted = require_votes(battles)
    settings = RatingSettings(l2=l2, n_resamples=0, smoothing_levels=smoothing_levels)
    targets = dict(_targets(battles, beta_folds.beta, voted, tally_outcomes(battles), settings))
    require_anchors_connected(targets["human"], voted, battles.models)
    names = np.array(battles.models)[voted]
    placed = {name: place_target(target, voted, l2, names) for name, target in targets.items()}
    return {
        name: JudgePlacement(
            fit.strength, fit.anchors, targets[name].n_battles, targets[name].own_wins
        )
        for name, fit in placed.items()
    }


def _require_matching(battles: CodedBattles, beta_folds: BetaFolds) -> None:
    if tuple(beta_folds.held_out_model) != battles.models:
        raise ValueError(
            f"beta folds are for {len(beta_folds.held_out_model)} models, battles have "
            f"{len(battles.models)}; fit the folds on these battles"
        )


def _targets(
    battles: CodedBattles,
    beta: Floats,
    voted: NDArray[np.bool_],
    tally: OutcomeTally,
    settings: RatingSettings,
) -> Iterator[tuple[str, Target]]:
    human, judge = tally.human[:, voted], tally.judge[:, voted]
    yield "human", linear_target(human, _HALVES, voted)
    yield "hard", linear_target(judge, _QUARTERS, voted)
    yield "soft", soft_target(judge, soft_totals(battles, beta, voted), voted)
    for level in settings.smoothing_levels:
        yield f"smoothed-{level!r}", linear_target(judge, smooth_outcome(_QUARTERS, level), voted)


def resampling_families(methods: Iterable[str], beta: Floats) -> tuple[Family, ...]:
    """Group methods that resample together: smoothed outcomes are functions of hard ones.

    Parameters
    ----------
    methods : iterable of str
        ``human``, ``soft``, and ``hard`` before ``smoothed-c`` of every level.
    beta : ndarray, shape (M,)
        Slope of the soft outcomes of each model, in logits per rubric point.
    """
    judged = [name for name in methods if name not in ("human", "soft")]
    levels = [float(name.removeprefix("smoothed-")) for name in judged[1:]]

    def votes(_: int, own: OwnBattles) -> Shares:
        """Which of a model's battles were voted on, and its share of each, (n, 1)."""
        return own.human >= 0, own.human[:, None] / 2

    def hard(_: int, own: OwnBattles) -> Shares:
        """All of a model's battles; its share by the judge, raw and smoothed, (n, levels + 1)."""
        share = own.judge / 4
        smoothed = (smooth_outcome(share, level) for level in levels)
        return own.everything(), np.column_stack([share, *smoothed])

    def soft(model: int, own: OwnBattles) -> Shares:
        """All of a model's battles, and its share of each at the model's slope, (n, 1)."""
        return own.everything(), expit(beta[model] * own.score)[:, None]

    return (
        Family(("human",), votes),
        Family(tuple(judged), hard),
        Family(("soft",), soft),
    )


def tabulate_ratings(
    battles: CodedBattles,
    voted: NDArray[np.bool_],
    targets: Mapping[str, Target],
    placed: Mapping[str, Placed],
    errors: StdErrors,
    tally: OutcomeTally,
    *,
    beta: Mapping[str, Floats],
    rulers: Mapping[str, Ruling],
) -> HeldOutRatings:
    """Return placements as ratings, with those on rulers fitted to the other models.

    Parameters
    ----------
    battles : CodedBattles
        The judged battles, over M models.
    voted : ndarray of bool, shape (M,)
        Which models are anchors.
    targets, placed, errors : mapping
        By method; ``human`` and ``hard`` among them, which flags are made from.
    tally : OutcomeTally
        Of the same battles.
    beta : mapping of str to ndarray, shape (M,)
        Slopes of the methods that have one, in logits per unit of their score.
    rulers : mapping of str to (str, callable)
        Further methods: the base that each is made from, and how its ruler is fitted.
    """
    ratings = {name: strength_to_rating(fit.strength) for name, fit in placed.items()}
    spreads = {
        name: tuple(ELO_PER_LOGIT * error for error in pair) for name, pair in errors.items()
    }
    human = ratings["human"]
    slopes = dict(beta)
    for name, (base, fit) in rulers.items():
        ruler = fit(ratings[base], human)
        ratings[name] = ruler.intercept + ruler.slope * ratings[base]
        spreads[name] = tuple(np.abs(ruler.slope) * error for error in spreads[base])
        if base in beta:
            slopes[name] = beta[base]
    none = np.full(voted.size, np.nan)
    votes = targets["human"].n_battles.sum(axis=1).astype(np.int64)
    judged = targets["hard"].n_battles.sum(axis=1).astype(np.int64)
    flags = _flags(voted, targets, tally)
    columns: list[HeldOutRatings] = []
    for name, rating in ratings.items():
        rows = voted if name == "human" else np.ones(voted.size, dtype=bool)
        columns.append(
            HeldOutRatings(
                np.array(battles.models)[rows],
                np.full(int(rows.sum()), name),
                rating[rows],
                human[rows],
                (rating - human)[rows],
                spreads[name][0][rows],
                spreads[name][1][rows],
                slopes.get(name, none)[rows],
                (votes if name == "human" else judged)[rows],
                votes[rows],
                flags[rows],
            )
        )
    joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return HeldOutRatings(*(column[order] for column in joined))


def _flags(
    voted: NDArray[np.bool_], targets: Mapping[str, Target], tally: OutcomeTally
) -> NDArray[np.str_]:
    """Say in words what limits a model's rating; joined by semicolons."""
    cut = np.zeros(voted.size, dtype=bool)
    for name in ("human", "hard"):
        cut[voted] |= cut_models(targets[name].n_battles[voted])
    met = targets["hard"].n_battles.sum(axis=1)
    won = targets["hard"].own_wins.sum(axis=1)
    votes = tally.human.sum(axis=1)
    raised = {
        "no-votes": ~voted,
        "no-battles-with-anchors": met == 0,
        "few-battles": (met > 0) & (met < FEW_BATTLES),
        "anchors-disconnected": cut,
        "judge-always-prefers": (met > 0) & (won == met),
        "judge-never-prefers": (met > 0) & (won == 0),
        "humans-always-prefer": voted & (votes[:, :2].sum(axis=1) == 0),
        "humans-never-prefer": voted & (votes[:, 1:].sum(axis=1) == 0),
    }
    return np.array(
        [
            ";".join(name for name, rows in raised.items() if rows[model])
            for model in range(voted.size)
        ]
    )
