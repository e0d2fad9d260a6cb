"""Leave-one-model-out Elo: every model placed by judge, and by humans, as if it were new.

For each model: anchors are fitted without its battles, then it is placed among them by its
own. Done with votes it gives the reference; done with a judge's outcomes, hard, smoothed, soft at
a slope that never saw the model's votes, or any other, it gives what the judge would have said of
a new model. The difference is the residual that the intervals are made of.

Only models with votes are anchors. Judge targets use every judged battle between them, voted
on or not; a model without votes is placed among all of them, a newcomer like any other.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.elo.battles import CodedBattles
from judgeline.elo.beta import BetaFolds, fit_beta_folds
from judgeline.elo.connectivity import cut_models
from judgeline.elo.gap import QUARTERS, GapFit, fit_gap, gap_features
from judgeline.elo.mixtures import Mixture, basis_of, mixed, mixtures
from judgeline.elo.own_battles import OwnBattles
from judgeline.elo.scale import ELO_PER_LOGIT, strength_to_rating
from judgeline.elo.settings import SMOOTHING_LEVELS, RatingSettings
from judgeline.elo.soft import soft_totals
from judgeline.elo.std_errors import OwnShares, require_clusters, std_errors
from judgeline.elo.tally import OutcomeTally, tally_outcomes
from judgeline.elo.targets import (
    FoldOutcomes,
    Placed,
    Target,
    fold_anchors,
    linear_target,
    other_anchors,
    outcome_target,
    own_target,
    place_targets,
    require_anchors_connected,
    require_votes,
    soft_target,
)
from judgeline.verdict.outcomes import smooth_outcome

Floats = NDArray[np.float64]

HEADLINE = "auto"
"""Method that ranks unless another one is asked for: `judgeline.elo.mixtures` has its rule."""

JUDGE_METHODS: tuple[str, ...] = (
    "hard",
    "soft",
    *(f"smoothed-{level!r}" for level in SMOOTHING_LEVELS),
    "gap",
    "hard-rescaled",
    "soft-rescaled",
    "average",
    HEADLINE,
)
"""Methods that rate by a judge, at the paper's smoothing levels."""

FEW_BATTLES = 20
"""Battles against anchors below which a model is flagged: its standard error is a guess."""

_HALVES = np.array([0.0, 0.5, 1.0])
_RESERVED = ("human", *JUDGE_METHODS)


class HeldOutRatings(NamedTuple):
    """One row per model and method.

    `rating`, `human_rating`, `residual` (rating minus human rating), `std_error` (bootstrap),
    `std_error_analytic` (its closed form), `human_std_error` (of the human rating, closed form) and
    `vote_std_error` (of a human rating, were each of the model's judged battles voted on once) are
    in Elo points, `beta` in logits per rubric point. NaN means that the value does not exist;
    `flags` says why a rating does not. `basis` says what ``auto`` stands for.
    """

    model: NDArray[np.str_]
    method: NDArray[np.str_]
    basis: NDArray[np.str_]
    rating: Floats
    human_rating: Floats
    residual: Floats
    std_error: Floats
    std_error_analytic: Floats
    human_std_error: Floats
    vote_std_error: Floats
    beta: Floats
    n_battles: NDArray[np.int64]
    n_votes: NDArray[np.int64]
    flags: NDArray[np.str_]


@dataclass(frozen=True)
class ScoringMethod:
    """How battles are scored, in one of two ways.

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
    """Where every base method places every model, before any ruler.

    `targets`, `placed` and `shares` are by base method: ``human``, ``hard``, ``soft``, smoothed
    ones, ``gap`` and others that were given. `beta` has the slopes (M,) of those that have them.
    `mixtures` are the ratings made of bases, `gaps` the fits of the bases that predict votes.
    `voted` (M,) says which models are anchors.
    """

    voted: NDArray[np.bool_]
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
        """Return what a method is made of; ValueError, with the known ones, if there is none."""
        if method in self.placed:
            return {method: np.ones(self.voted.size)}
        if method not in self.mixtures:
            known = ", ".join((*self.placed, *self.mixtures))
            raise ValueError(f"no ratings by method {method!r}; there are {known}")
        return self.mixtures[method]


def rate(
    battles: CodedBattles,
    settings: RatingSettings,
    methods: Mapping[str, ScoringMethod] | None = None,
    *,
    beta_folds: BetaFolds | None = None,
    cluster: ArrayLike | None = None,
    models: Collection[str] | None = None,
) -> HeldOutRatings:
    """Return the leave-one-model-out rating of every model by every method.

    Methods: ``human`` (votes), ``hard`` (judge outcomes), ``soft`` (``sigmoid(beta_m s)``),
    ``smoothed-c`` per level, ``gap``, further ones as given; ``-rescaled`` ones on the ruler of
    the model's fold, ``average`` and the headline ``auto``. No row of a model depends on a vote
    on that model, but for its human rating.

    Parameters
    ----------
    battles : CodedBattles
        Judged battles, n of them over M models, with votes on some.
    settings : RatingSettings
        Penalty, resamples, seed and smoothing levels.
    methods : mapping of str to ScoringMethod, optional
        Further scorings of the same battles, by name.
    beta_folds : BetaFolds, optional
        Slope per held-out model, in the order of ``battles.models``; fitted here by default. A
        model whose slope is NaN has no soft rating.
    cluster : array_like of int or str, shape (n,), optional
        Cluster of each battle, such as its question; standard errors then treat a cluster's
        battles as drawn together.
    models : collection of str, optional
        Models to return, such as one newcomer; all by default.

    Returns
    -------
    HeldOutRatings
        Rows by model, then method; rows of models without votes have no ``human`` method.

    Raises
    ------
    ValueError
        If nobody voted, slopes belong to other models, a method has a name that is taken or not
        one finite score per battle, or votes or judged battles do not connect the voted models.
    RuntimeError
        If an iteration does not converge.

    References
    ----------
    Kargi and Salinas (2026), arXiv:2606.13221, Algorithm 1, for ``hard`` and ``soft``. The
    penalty here is ``l2 * |strength|^2``, not half of it.
    """
    require_clusters(cluster, len(battles))
    wanted = np.isin(battles.models, list(battles.models if models is None else models))
    tally = tally_outcomes(battles)
    found = _placements(battles, settings, methods or {}, beta_folds, tally)
    return tabulate(battles, found, tally, settings, cluster, wanted)


def place(
    battles: CodedBattles,
    beta_folds: BetaFolds,
    *,
    l2: float,
    smoothing_levels: tuple[float, ...] = (),
) -> Placements:
    """Return the placements that ratings are made from: by votes, and by the judge.

    Parameters
    ----------
    battles, beta_folds
        As of `rate`.
    l2 : float
        Penalty on squared strengths, per squared logit.
    smoothing_levels : tuple of float
        Levels of label smoothing to place by as well.

    Raises
    ------
    ValueError, RuntimeError
        As there.
    """
    settings = RatingSettings(l2=l2, n_resamples=0, smoothing_levels=smoothing_levels)
    return _placements(battles, settings, {}, beta_folds, tally_outcomes(battles))


def human_anchors(battles: CodedBattles, *, l2: float) -> tuple[NDArray[np.bool_], Floats]:
    """Return which of the M models are anchors, and people's strengths of them in every fold.

    Parameters
    ----------
    battles : CodedBattles
        With votes on some.
    l2 : float
        Penalty on squared strengths, per squared logit.

    Returns
    -------
    voted, anchors : ndarray, shapes (M,) and (M, A)
        Logits; a model's own place in its fold holds zero.
    """
    voted = require_votes(battles)
    target = linear_target(tally_outcomes(battles).human[:, voted], _HALVES, voted)
    return voted, fold_anchors(target, voted, l2, np.array(battles.models)[voted])


def _placements(
    battles: CodedBattles,
    settings: RatingSettings,
    methods: Mapping[str, ScoringMethod],
    beta_folds: BetaFolds | None,
    tally: OutcomeTally,
) -> Placements:
    voted = require_votes(battles)
    folds = fit_beta_folds(battles) if beta_folds is None else beta_folds
    _require_matching(battles, folds)
    judge = tally.judge[:, voted]
    gap = fit_gap(battles, gap_features(battles, tally, l2=settings.l2))
    targets = {
        "human": human_target(battles, tally, voted),
        "hard": linear_target(judge, QUARTERS, voted),
        "soft": soft_target(judge, soft_totals(battles, folds.beta, voted), voted),
    }
    shares: dict[str, OwnShares] = {
        "human": human_shares,
        "hard": lambda _, own: own.judge / 4,
        "soft": lambda model, own: expit(folds.beta[model] * own.score),
    }
    for level in settings.smoothing_levels:
        name = f"smoothed-{level!r}"
        targets[name] = linear_target(judge, smooth_outcome(QUARTERS, level), voted)
        shares[name] = partial(_smoothed, level)
    targets["gap"] = own_target(battles, judge, gap.of_own, voted)
    shares["gap"] = gap.of_own
    beta = {"soft": folds.beta}
    for name, method in methods.items():
        outcomes, slopes = _outcomes(name, method, battles)
        targets[name] = outcome_target(battles, judge, outcomes, voted)
        shares[name] = partial(_turned, outcomes)
        beta |= {} if slopes is None else {name: slopes}
    placed = place_targets(targets, voted, settings.l2, np.array(battles.models)[voted])
    return Placements(voted, targets, placed, shares, beta, mixtures(placed, voted), {"gap": gap})


def human_target(battles: CodedBattles, tally: OutcomeTally, voted: NDArray[np.bool_]) -> Target:
    """Return the target of people's votes; ValueError unless they connect the voted models."""
    target = linear_target(tally.human[:, voted], _HALVES, voted)
    require_anchors_connected(target, voted, battles.models)
    return target


def human_shares(_: int, own: OwnBattles) -> Floats:
    """Return a model's share of the vote in each of its own battles; NaN where nobody voted."""
    return np.where(own.human >= 0, own.human / 2, np.nan)


def _smoothed(level: float, _: int, own: OwnBattles) -> Floats:
    return np.asarray(smooth_outcome(own.judge / 4, level))


def _turned(outcomes: FoldOutcomes, model: int, own: OwnBattles) -> Floats:
    return own.turned(outcomes(model))


def _require_matching(battles: CodedBattles, beta_folds: BetaFolds) -> None:
    if tuple(beta_folds.held_out_model) != battles.models:
        raise ValueError(
            f"beta folds are for {len(beta_folds.held_out_model)} models, battles have "
            f"{len(battles.models)}; fit the folds on these battles"
        )


def _outcomes(
    name: str, method: ScoringMethod, battles: CodedBattles
) -> tuple[FoldOutcomes, Floats | None]:
    """Return a method's outcomes by fold, and the slopes (M,) behind them if there are any."""
    if name in _RESERVED:
        raise ValueError(f"a method is called {name!r}, which is made from the battles themselves")
    if method.score_difference is not None:
        score = _require_scores(name, method.score_difference, len(battles))
        beta = fit_score_slopes(battles, score).beta
        return lambda model: expit(beta[model] * score), beta
    outcome = np.asarray(method.outcome, dtype=float)
    shapes = (len(battles),), (len(battles.models), len(battles))
    if outcome.shape not in shapes:
        raise ValueError(
            f"outcomes of {name!r} have shape {outcome.shape}; expected {shapes[0]} or {shapes[1]}"
        )
    return (lambda _: outcome) if outcome.ndim == 1 else (lambda model: outcome[model]), None


def fit_score_slopes(battles: CodedBattles, score_difference: Floats) -> BetaFolds:
    """Return the slope of every fold for other scores of the same battles.

    Parameters
    ----------
    battles : CodedBattles
        Battles with votes, n of them.
    score_difference : ndarray, shape (n,)
        Score of A minus B, on any scale.

    Returns
    -------
    BetaFolds
        Slopes in logits per unit of that scale.
    """
    return fit_beta_folds(replace(battles, score_difference=score_difference, denominator=0))


def _require_scores(name: str, score_difference: Floats, n_battles: int) -> Floats:
    score = np.asarray(score_difference, dtype=float)
    if score.shape != (n_battles,):
        raise ValueError(f"scores of {name!r} have shape {score.shape}; expected ({n_battles},)")
    if not np.isfinite(score).all():
        row = int(np.argmin(np.isfinite(score)))
        raise ValueError(
            f"the score difference of battle {row} by {name!r} is {score[row]}; leave out battles "
            "that a method did not score"
        )
    return score


def tabulate(
    battles: CodedBattles,
    found: Placements,
    tally: OutcomeTally,
    settings: RatingSettings,
    cluster: ArrayLike | None,
    wanted: NDArray[np.bool_],
) -> HeldOutRatings:
    """Return placements and what is mixed of them as ratings, rows by model, then method.

    Parameters
    ----------
    battles, settings, cluster
        As of `rate`.
    found : Placements
        Of these battles.
    tally : OutcomeTally
        Of these battles.
    wanted : ndarray of bool, shape (M,)
        Which models have rows.
    """
    errors = std_errors(battles, found.voted, found.placed, found.shares, settings, cluster, wanted)
    for name, fit in found.gaps.items():
        own = [np.where(part > 0, np.hypot(part, fit.own_error), part) for part in errors[name]]
        errors[name] = (own[0], own[1])
    strengths = {name: fit.strength for name, fit in found.placed.items()}
    bootstrap, closed = ({name: pair[kind] for name, pair in errors.items()} for kind in (0, 1))
    human = strength_to_rating(strengths["human"])
    votes = found.targets["human"].n_battles.sum(axis=1).astype(np.int64)
    judged = found.judged.n_battles.sum(axis=1).astype(np.int64)
    flags, names = _flags(found, tally), np.array(battles.models)
    nothing, basis = np.full(names.size, np.nan), basis_of(found.voted)
    columns: list[HeldOutRatings] = []
    for method in (*found.placed, *found.mixtures):
        mixture = found.mixture(method)
        strength = mixed(mixture, strengths)
        rating = strength_to_rating(strength)
        base = method.removesuffix("-rescaled")
        columns.append(
            HeldOutRatings(
                names,
                np.full(names.size, method),
                basis if method == HEADLINE else np.full(names.size, ""),
                rating,
                human,
                rating - human,
                ELO_PER_LOGIT * mixed(mixture, bootstrap),
                ELO_PER_LOGIT * mixed(mixture, closed),
                ELO_PER_LOGIT * closed["human"],
                ELO_PER_LOGIT * _vote_std_error(found, strength),
                found.beta.get(base, nothing),
                votes if method == "human" else judged,
                votes,
                flags,
            )
        )
    rows = [wanted & found.voted if part.method[0] == "human" else wanted for part in columns]
    kept = [[column[row] for column in part] for part, row in zip(columns, rows, strict=True)]
    joined = [np.concatenate(parts) for parts in zip(*kept, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return HeldOutRatings(*(column[order] for column in joined))


def _vote_std_error(found: Placements, strength: Floats) -> Floats:
    """Return the standard error of a placement by one vote on every judged battle, logits (M,)."""
    counts, anchors = found.judged.n_battles, found.placed["human"].anchors
    error = np.full(strength.size, np.nan)
    for model, others in enumerate(other_anchors(found.voted)):
        chance = expit(strength[model] - anchors[model][others])
        information = float((counts[model][others] * chance * (1 - chance)).sum())
        error[model] = 1 / math.sqrt(information) if information > 0 else math.nan
    return error


def _flags(found: Placements, tally: OutcomeTally) -> NDArray[np.str_]:
    """Say in words what limits a model's rating; joined by semicolons."""
    voted, judge = found.voted, found.judged
    cut = np.zeros(voted.size, dtype=bool)
    for target in (found.targets["human"], judge):
        cut[voted] |= cut_models(target.n_battles[voted])
    met, won = judge.n_battles.sum(axis=1), judge.own_wins.sum(axis=1)
    votes, zeros = tally.human.sum(axis=1), np.zeros(voted.size)
    squares = (fit.own_squares for fit in found.targets.values() if fit.fold_wins is None)
    raised = {
        "no-votes": ~voted,
        "no-battles-with-anchors": met == 0,
        "few-battles": (met > 0) & (met < FEW_BATTLES),
        "anchors-disconnected": cut,
        "no-slope": np.isnan(found.beta.get("soft", zeros)),
        "no-ruler": np.isnan(sum(found.mixtures.get("average", {}).values(), start=zeros)),
        "no-weights": (met > 0) & np.isnan(sum(squares, start=zeros)),
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
