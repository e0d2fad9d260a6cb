"""Leave-one-model-out Elo: every model placed by judge, and by humans, as if it were new.

For each model: anchors are fitted without its battles, then it is placed among them by its
own. Done with votes it gives the reference; done with a judge's outcomes, hard, smoothed or
soft at a slope that never saw the model's votes, it gives what the judge would have said of
a new model. The difference is the residual that the intervals are made of.

Only models with votes are anchors. Judge targets use every judged battle between them, voted
on or not; a model without votes is placed among all of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.battles import CodedBattles
from judgeline.beta import BetaFolds
from judgeline.bootstrap import (
    ResamplingUnits,
    bootstrap_strengths,
    unit_std_error,
    units_of_battles,
    units_of_clusters,
)
from judgeline.bradley_terry import fit_strengths
from judgeline.connectivity import connected_components, cut_models
from judgeline.elo import ELO_PER_LOGIT, strength_to_rating
from judgeline.leave_one_out import fit_leave_one_out
from judgeline.outcomes import smooth_outcome
from judgeline.placement import analytic_std_error, place_models
from judgeline.recalibration import fit_ruler, fit_scale
from judgeline.soft import SoftTotals, soft_totals
from judgeline.streams import keyed_rng
from judgeline.tally import OutcomeTally, tally_outcomes

Floats = NDArray[np.float64]

SMOOTHING_LEVELS: tuple[float, ...] = (0.55, 0.65, 0.75, 0.85, 0.95)
"""Label-smoothing baselines of the paper: what a decisive judge outcome counts as."""

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


@dataclass(frozen=True)
class RatingSettings:
    """Settings of leave-one-out ratings.

    Attributes
    ----------
    l2 : float
        Penalty on squared strengths, per squared logit.
    n_resamples : int
        Bootstrap resamples per model and method; 0 for the closed form alone.
    seed : int
        Seed of every random stream.
    stream : tuple of str
        What the ratings are of, such as (corpus, judge); keys the random streams.
    smoothing_levels : tuple of float
        Levels of the label-smoothing baselines.
    """

    l2: float = 0.01
    n_resamples: int = 200
    seed: int = 0
    stream: tuple[str, ...] = ()
    smoothing_levels: tuple[float, ...] = SMOOTHING_LEVELS

    def __post_init__(self) -> None:
        """Refuse settings that no fit can follow."""
        if not 0 <= self.l2 < np.inf:
            raise ValueError(f"l2 must be finite and not negative, got {self.l2}")
        if self.n_resamples < 0 or self.n_resamples == 1:
            raise ValueError(f"n_resamples must be 0 or at least 2, got {self.n_resamples}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")
        for level in self.smoothing_levels:
            smooth_outcome(0.5, level)


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


class _Target(NamedTuple):
    """Everything about one kind of outcome that placing needs; anchors are the A voted models.

    `n_battles` and `own_wins` (M, A): battles and wins of every model against each anchor;
    `own_squares` (M,): sum of squared outcomes; `fold_wins` (A, A): row m, the anchors' wins
    in battles without m; `full_wins` (A,): the anchors' wins in all of them.
    """

    n_battles: Floats
    own_wins: Floats
    own_squares: Floats
    fold_wins: Floats
    full_wins: Floats


class _Placed(NamedTuple):
    """Strengths (M,) in logits, their closed-form errors (M,), and each one's anchors (M, A)."""

    strength: Floats
    std_error: Floats
    anchors: Floats


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
    D. Kargi and D. Salinas (2026), arXiv:2606.13221, Algorithm 1. The penalty here is
    ``l2 * |strength|^2``, not half of it.
    """
    _require_matching(battles, beta_folds)
    if cluster is not None and np.shape(cluster) != (len(battles),):
        raise ValueError(f"cluster has shape {np.shape(cluster)}; expected ({len(battles)},)")
    _require_clusters(cluster)
    voted = _voted(battles)
    tally = tally_outcomes(battles)
    targets = dict(_targets(battles, beta_folds.beta, voted, tally, settings))
    _require_anchors_connected(targets["human"], voted, battles.models)
    placed = {
        name: _place(target, voted, settings.l2, np.array(battles.models)[voted])
        for name, target in targets.items()
    }
    errors = _std_errors(battles, beta_folds.beta, voted, placed, settings, cluster)
    return _table(battles, beta_folds.beta, voted, targets, placed, errors, tally)


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
    _require_matching(battles, beta_folds)
    voted = _voted(battles)
    settings = RatingSettings(l2=l2, n_resamples=0, smoothing_levels=())
    targets = dict(_targets(battles, beta_folds.beta, voted, tally_outcomes(battles), settings))
    _require_anchors_connected(targets.pop("human"), voted, battles.models)
    names = np.array(battles.models)[voted]
    placed = {name: _place(target, voted, l2, names) for name, target in targets.items()}
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


def _voted(battles: CodedBattles) -> NDArray[np.bool_]:
    voted = battles.voted_models()
    if not voted.any():
        raise ValueError("nobody voted on any battle: there is no human scale to calibrate to")
    return voted


def _require_clusters(cluster: ArrayLike | None) -> None:
    labels = np.asarray([] if cluster is None else cluster, dtype=object).tolist()
    for row, label in enumerate(labels):
        if label is None or label != label:  # NaN alone differs from itself
            raise ValueError(f"cluster is missing in row {row}; give every battle one, or its id")


def _targets(
    battles: CodedBattles,
    beta: Floats,
    voted: NDArray[np.bool_],
    tally: OutcomeTally,
    settings: RatingSettings,
) -> Iterator[tuple[str, _Target]]:
    human, judge = tally.human[:, voted], tally.judge[:, voted]
    yield "human", _linear_target(human, _HALVES, voted)
    yield "hard", _linear_target(judge, _QUARTERS, voted)
    yield "soft", _soft_target(judge, soft_totals(battles, beta, voted), voted)
    for level in settings.smoothing_levels:
        yield f"smoothed-{level!r}", _linear_target(judge, smooth_outcome(_QUARTERS, level), voted)


def _linear_target(counts: NDArray[np.int64], share: Floats, voted: NDArray[np.bool_]) -> _Target:
    """Return the target under which each outcome counts as a fixed share of the win."""
    own_wins = counts @ share
    full_wins = own_wins[voted].sum(axis=1)
    return _Target(
        counts.sum(axis=2).astype(float),
        own_wins,
        (counts @ share**2).sum(axis=1),
        full_wins - own_wins[voted].T,
        full_wins,
    )


def _soft_target(counts: NDArray[np.int64], soft: SoftTotals, voted: NDArray[np.bool_]) -> _Target:
    n_battles = counts.sum(axis=2).astype(float)
    own_wins = soft.own_wins[:, voted]
    totals = soft.totals[np.ix_(voted, voted)]
    # in fold m the anchor i loses what it won against m at the slope of m: n_im - own_wins_mi
    fold_wins = totals - (n_battles[voted] - own_wins[voted])
    unvoted = soft.totals[~voted][:, voted]
    candidates = unvoted[:1] if np.isfinite(unvoted).all() and unvoted.size else totals
    known = candidates[np.isfinite(candidates).all(axis=1)]
    start = known.mean(axis=0) if known.size else np.full(totals.shape[1], np.nan)
    full_wins = start + (n_battles[voted].sum() / 2 - start.sum()) / start.size
    return _Target(n_battles, own_wins, soft.own_squares, fold_wins, full_wins)


def _require_anchors_connected(
    target: _Target, voted: NDArray[np.bool_], models: tuple[str, ...]
) -> None:
    labels = connected_components(target.n_battles[voted])
    stray = [models[code] for code in np.flatnonzero(voted)[labels > 0]]
    if stray:
        raise ValueError(
            f"{len(stray)} of {labels.size} voted models have no chain of battles with a vote to "
            f"the others: {', '.join(stray[:10])}; have people vote on battles that connect them, "
            "or remove their votes and let the judge place them"
        )


def _place(
    target: _Target, voted: NDArray[np.bool_], l2: float, names: NDArray[np.str_]
) -> _Placed:
    """Fit every fold's anchors, then place the held-out models and those without votes."""
    among = target.n_battles[voted]
    anchors = np.full(target.n_battles.shape, np.nan)
    anchors[voted] = fit_leave_one_out(
        among, target.fold_wins, target.full_wins, l2=l2, names=names
    )
    unvoted = ~voted & np.isfinite(target.own_squares) & (target.n_battles.sum(axis=1) > 0)
    if unvoted.any():
        anchors[unvoted] = fit_strengths(among, target.full_wins, l2=l2)
    split = np.zeros(voted.size, dtype=bool)
    split[voted] = cut_models(among)
    wins = np.where(split, np.nan, target.own_wins.sum(axis=1))
    strength = place_models(wins, target.n_battles, anchors, l2=l2)
    return _Placed(strength, _closed_form(target, strength, anchors, l2), anchors)


def _closed_form(target: _Target, strength: Floats, anchors: Floats, l2: float) -> Floats:
    chance = expit(strength[:, None] - anchors)
    expected = target.n_battles * chance
    residual_sum = (target.own_wins - expected).sum(axis=1)
    squares = target.own_squares - ((2 * target.own_wins - expected) * chance).sum(axis=1)
    information = (expected * (1 - chance)).sum(axis=1) + 2 * l2
    return analytic_std_error(residual_sum, squares, information, target.n_battles.sum(axis=1))


_Errors = dict[str, tuple[Floats, Floats]]


def _std_errors(
    battles: CodedBattles,
    beta: Floats,
    voted: NDArray[np.bool_],
    placed: Mapping[str, _Placed],
    settings: RatingSettings,
    cluster: ArrayLike | None,
) -> _Errors:
    """Return (bootstrap, closed form) standard errors in logits by method, each (M,)."""
    missing = np.full(len(battles.models), np.nan)
    errors = {name: (missing.copy(), fit.std_error.copy()) for name, fit in placed.items()}
    if not settings.n_resamples and cluster is None:
        return errors
    place = np.cumsum(voted) - 1
    for model, own in enumerate(_OwnBattles.of_all(battles, voted, cluster)):
        for family in _families(placed):
            kept, outcome = own.outcomes(family, beta[model])
            strengths = np.array([placed[name].strength[model] for name in family])
            if not np.isfinite(strengths).all() or not kept.any():
                continue
            units = own.units(kept, outcome, place, int(voted.sum()))
            anchors = np.array([placed[name].anchors[model] for name in family])
            if cluster is not None:
                closed = unit_std_error(units, strengths, anchors, l2=settings.l2)
                for name, error in zip(family, closed, strict=True):
                    errors[name][1][model] = error
            key = (*settings.stream, battles.models[model], family[0])
            refits = _resample(units, strengths, anchors, settings, key)
            for name, column in zip(family, refits.T, strict=True):
                errors[name][0][model] = column.std(ddof=1) if column.size > 1 else np.nan
    return errors


def _families(methods: Iterable[str]) -> list[list[str]]:
    """Group methods that resample together: smoothed outcomes are functions of hard ones."""
    judged = [name for name in methods if name not in ("human", "soft")]
    return [["human"], judged, ["soft"]]


def _resample(
    units: ResamplingUnits,
    strengths: Floats,
    anchors: Floats,
    settings: RatingSettings,
    key: tuple[str, ...],
) -> Floats:
    if units.copies.sum() < 2 or not settings.n_resamples:
        return np.empty((0, strengths.size))
    rng = keyed_rng(settings.seed, *key)
    return bootstrap_strengths(
        units, strengths, anchors, l2=settings.l2, n_resamples=settings.n_resamples, rng=rng
    )


@dataclass(frozen=True)
class _OwnBattles:
    """One model's battles against anchors, turned so that the model comes first."""

    opponent: NDArray[np.intp]
    score: Floats
    judge: NDArray[np.int64]
    human: NDArray[np.int64]  # -1 where nobody voted
    cluster: NDArray[np.intp] | None

    @classmethod
    def of_all(
        cls, battles: CodedBattles, voted: NDArray[np.bool_], cluster: ArrayLike | None
    ) -> Iterator["_OwnBattles"]:
        """Yield every model's own battles, in the order of ``battles.models``."""
        codes = None if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)[1]
        side = np.concatenate([battles.model_a, battles.model_b])
        order = np.argsort(side, kind="stable")
        ends = np.cumsum(np.bincount(side, minlength=len(battles.models)))
        for first, last in zip(np.r_[0, ends[:-1]], ends, strict=True):
            yield cls._of_one(battles, voted, codes, order[first:last])

    @classmethod
    def _of_one(
        cls,
        battles: CodedBattles,
        voted: NDArray[np.bool_],
        codes: NDArray[np.intp] | None,
        sides: NDArray[np.intp],
    ) -> "_OwnBattles":
        rows, as_b = sides % len(battles), sides >= len(battles)
        opponent = np.where(as_b, battles.model_a[rows], battles.model_b[rows])
        kept = voted[opponent]
        rows, as_b, opponent = rows[kept], as_b[kept], opponent[kept]
        points = battles.score_difference[rows].astype(float) / (battles.denominator or 1)
        judge, human = (
            battles.judge_outcome[rows].astype(int),
            battles.human_outcome[rows].astype(int),
        )
        return cls(
            opponent.astype(np.intp),
            np.where(as_b, -points, points),
            np.where(as_b, 4 - judge, judge),
            np.where(as_b & (human >= 0), 2 - human, human),
            None if codes is None else codes[rows],
        )

    def outcomes(self, family: list[str], beta: float) -> tuple[NDArray[np.bool_], Floats]:
        """Return which battles a family of methods counts, and the model's share (n, K) in each."""
        everything = np.ones(self.opponent.size, dtype=bool)
        if family == ["human"]:
            return self.human >= 0, self.human[:, None] / 2
        if family == ["soft"]:
            return everything, expit(beta * self.score)[:, None]
        hard = self.judge / 4
        levels = [float(name.removeprefix("smoothed-")) for name in family[1:]]
        return everything, np.column_stack([hard, *(smooth_outcome(hard, c) for c in levels)])

    def units(
        self, kept: NDArray[np.bool_], outcome: Floats, place: NDArray[np.intp], n_anchors: int
    ) -> ResamplingUnits:
        """Return resampling units in an order that does not depend on the battles' order."""
        opponent, share = place[self.opponent[kept]], outcome[kept]
        if self.cluster is not None:
            return units_of_clusters(opponent, share, self.cluster[kept], n_anchors)
        order = np.lexsort((share[:, 0], opponent))  # the first kind determines the others
        opponent, share = opponent[order], share[order]
        fresh = np.r_[True, (np.diff(opponent) != 0) | (np.diff(share[:, 0]) != 0)]
        copies = np.diff(np.r_[np.flatnonzero(fresh), opponent.size])
        return units_of_battles(opponent[fresh], share[fresh], copies, n_anchors)


def _table(
    battles: CodedBattles,
    beta: Floats,
    voted: NDArray[np.bool_],
    targets: Mapping[str, _Target],
    placed: Mapping[str, _Placed],
    errors: _Errors,
    tally: OutcomeTally,
) -> HeldOutRatings:
    ratings = {name: strength_to_rating(fit.strength) for name, fit in placed.items()}
    spreads = {
        name: tuple(ELO_PER_LOGIT * error for error in pair) for name, pair in errors.items()
    }
    human = ratings["human"]
    for base in ("hard", "soft"):
        for name, fit in (("recalibrated", fit_ruler), ("rescaled", fit_scale)):
            ruler = fit(ratings[base], human)
            ratings[f"{base}-{name}"] = ruler.intercept + ruler.slope * ratings[base]
            spreads[f"{base}-{name}"] = tuple(
                np.abs(ruler.slope) * error for error in spreads[base]
            )
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
                (beta if name.startswith("soft") else np.full(beta.size, np.nan))[rows],
                (votes if name == "human" else judged)[rows],
                votes[rows],
                flags[rows],
            )
        )
    joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return HeldOutRatings(*(column[order] for column in joined))


def _flags(
    voted: NDArray[np.bool_], targets: Mapping[str, _Target], tally: OutcomeTally
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
