"""Everything is a target: any way to score battles feeds the same ratings and intervals.

A scoring method gives A's share of the win in every battle: a judge's hard outcome, a calibrated
``sigmoid(beta * score difference)``, the probabilities behind a choice, a quantitative judge. All
go through one leave-one-model-out fit, on the same battles, so that they compare.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.battles import CodedBattles
from judgeline.beta import BetaFolds, fit_beta_folds
from judgeline.heldout import HeldOutRatings, tabulate_ratings
from judgeline.own_battles import OwnBattles
from judgeline.rating_settings import RatingSettings
from judgeline.recalibration import fit_ruler
from judgeline.std_errors import Family, Shares, require_clusters, std_errors
from judgeline.tally import tally_outcomes
from judgeline.targets import (
    FoldOutcomes,
    Target,
    linear_target,
    outcome_target,
    place_target,
    require_anchors_connected,
    require_votes,
)

Floats = NDArray[np.float64]

_HALVES = np.array([0.0, 0.5, 1.0])
_QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


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


class _Scored(NamedTuple):
    """Outcomes by fold, and the slopes (M,) behind them if there are any."""

    at: FoldOutcomes
    beta: Floats | None


def rate_by_methods(
    battles: CodedBattles,
    methods: Mapping[str, ScoringMethod],
    settings: RatingSettings,
    *,
    cluster: ArrayLike | None = None,
) -> HeldOutRatings:
    """Return the leave-one-model-out rating of every model by every scoring method.

    Parameters
    ----------
    battles : CodedBattles
        Judged battles, n of them over M models, with votes on some; all methods score all of
        them.
    methods : mapping of str to ScoringMethod
        By name. ``human`` (votes) and ``hard`` (the battles' judge outcomes) are always there;
        each other one gets a sibling on a ruler fitted to the other models, ``-recalibrated``.
    settings : RatingSettings
        Penalty, resamples and seed; its smoothing levels play no part.
    cluster : array_like, shape (n,), optional
        What is drawn together for standard errors, such as the question; battles by default.

    Returns
    -------
    HeldOutRatings
        As of `fit_heldout_ratings`; ``beta`` is in logits per unit of the method's score.

    Raises
    ------
    ValueError
        If a method is called ``human`` or ``hard``, has not one finite score per battle or an
        outcome outside [0, 1], nobody voted, or battles do not connect the voted models.
    RuntimeError
        If an iteration does not converge.
    """
    require_clusters(cluster, len(battles))
    voted = require_votes(battles)
    tally = tally_outcomes(battles)
    scored = {name: _scored(name, method, battles) for name, method in methods.items()}
    targets: dict[str, Target] = {
        "human": linear_target(tally.human[:, voted], _HALVES, voted),
        "hard": linear_target(tally.judge[:, voted], _QUARTERS, voted),
    }
    require_anchors_connected(targets["human"], voted, battles.models)
    for name, method in scored.items():
        targets[name] = outcome_target(battles, tally.judge[:, voted], method.at, voted)
    anchors = np.array(battles.models)[voted]
    placed = {
        name: place_target(target, voted, settings.l2, anchors) for name, target in targets.items()
    }
    errors = std_errors(battles, voted, placed, _families(scored), settings, cluster)
    return tabulate_ratings(
        battles,
        voted,
        targets,
        placed,
        errors,
        tally,
        beta={name: one.beta for name, one in scored.items() if one.beta is not None},
        rulers={f"{name}-recalibrated": (name, fit_ruler) for name in ("hard", *scored)},
    )


def _scored(name: str, method: ScoringMethod, battles: CodedBattles) -> _Scored:
    if name in ("human", "hard"):
        raise ValueError(f"a method is called {name!r}, which is made from the battles themselves")
    if method.score_difference is not None:
        score = _require_scores(name, method.score_difference, len(battles))
        beta = fit_score_slopes(battles, score).beta
        return _Scored(lambda model: expit(beta[model] * score), beta)
    outcome = np.asarray(method.outcome, dtype=float)
    n_models, n_battles = len(battles.models), len(battles)
    if outcome.shape not in ((n_battles,), (n_models, n_battles)):
        raise ValueError(
            f"outcomes of {name!r} have shape {outcome.shape}; expected ({n_battles},) or "
            f"({n_models}, {n_battles})"
        )
    if outcome.ndim == 1:
        return _Scored(lambda _: outcome, None)
    return _Scored(lambda model: outcome[model], None)


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
    rescored = CodedBattles(
        battles.models,
        battles.model_a,
        battles.model_b,
        battles.human_outcome,
        battles.judge_outcome,
        score_difference,
        0,
    )
    return fit_beta_folds(rescored)


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


def _families(scored: Mapping[str, _Scored]) -> tuple[Family, ...]:
    """Return every method as a family of its own: none is a function of another's outcomes."""

    def votes(_: int, own: OwnBattles) -> Shares:
        return own.human >= 0, own.human[:, None] / 2

    def hard(_: int, own: OwnBattles) -> Shares:
        return own.everything(), own.judge[:, None] / 4

    def by(at: FoldOutcomes, model: int, own: OwnBattles) -> Shares:
        return own.everything(), own.turned(at(model))[:, None]

    return (
        Family(("human",), votes),
        Family(("hard",), hard),
        *(Family((name,), partial(by, method.at)) for name, method in scored.items()),
    )
