"""Standard errors from refits of every stage, and the variance that each source contributes."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, require
from judgeline.elo.battles import CodedBattles
from judgeline.elo.placements import JUDGE_METHODS, place
from judgeline.elo.questions import question_codes
from judgeline.elo.ratings import HeldOutRatings
from judgeline.elo.resampling import keyed_rng
from judgeline.elo.strengths import strength_to_rating
from judgeline.elo.targets import levels_in
from judgeline.intervals.conformal import calibrating_models
from judgeline.rating_options import StdErrorKind

MOST_FAILED = 0.05
"""Share of resamples without a rating of a model above which it has no error."""

_SOURCES = {
    "verdicts": "the judge's verdicts on a model's own battles",
    "anchors": "slopes, rulers and anchors, fitted again",
    "votes": "people's votes on as many battles",
    "judge": "what judge and people differ in beyond all that",
}


class RefitErrors(NamedTuple):
    """One row per model: the spread of its rating over resamples, and how many gave it none.

    `std_error` is in Elo points; NaN where more than `MOST_FAILED` of the resamples failed.
    """

    model: NDArray[np.str_]
    std_error: Floats
    n_refits: NDArray[np.int64]
    n_failed: NDArray[np.int64]


def refit_errors(
    battles: CodedBattles,
    *,
    method: str,
    l2: float = 0.01,
    n_refits: int = 100,
    seed: int = 0,
    cluster: ArrayLike | None = None,
) -> RefitErrors:
    """Return standard errors of ratings with nothing held fixed.

    The errors of `rate` take slopes, rulers and anchors as they are. Here clusters of battles,
    with verdicts and votes, are drawn with replacement, and every fold is fitted to each draw.

    Parameters
    ----------
    battles : CodedBattles
        Judged battles, with votes on some; one a row.
    method : str
        ``human`` or one of `JUDGE_METHODS`.
    l2 : float
        Penalty on squared strengths, per squared logit.
    n_refits : int
        Resamples, at least 2; each takes as long as one rating without errors.
    seed : int
        Seed of the draws.
    cluster : array_like, shape (n,), optional
        Cluster of each battle, such as its question; by default each is its own.

    Returns
    -------
    RefitErrors
        Rows in the order of ``battles.models``.

    Raises
    ------
    ValueError
        If battles are counted, a cluster is missing, the method is unknown or `n_refits` is
        below 2.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993), An Introduction to the Bootstrap, chapter 8, on drawing
    the units that are independent.
    """
    battles.require_single("refits")
    question = question_codes(cluster, len(battles))
    require(n_refits >= 2, "n_refits", n_refits, "at least 2, for a spread")
    known = ("human", *JUDGE_METHODS)
    require(method in known, "method", method, f"one of {', '.join(known)}")
    unit = np.arange(len(battles)) if question is None else question
    size = int(unit.max()) + 1
    place(battles, l2=l2, by=[method], levels=levels_in([method]))  # what is wrong is said once
    drawn = []
    for number in range(n_refits):
        rng = keyed_rng(seed, "refits", str(number))
        times = rng.multinomial(size, np.full(size, 1 / size))[unit]
        drawn.append(fold_of(replace(battles, count=times).take(times > 0), {method}, l2))
    ratings = strength_to_rating(np.array([fold.judge[method] for fold in drawn]))
    failed = np.isnan(ratings).sum(axis=0)
    enough = failed <= MOST_FAILED * n_refits
    spread = np.full(enough.size, np.nan)
    spread[enough] = np.nanstd(ratings[:, enough], axis=0, ddof=1)
    names = np.array(battles.models)
    return RefitErrors(names, spread, np.full(names.size, n_refits), failed)


class VarianceShares(NamedTuple):
    """Sources of the variance behind intervals, a row each.

    `elo` is the root of its mean square over the models with votes, in Elo points; `share` its
    part of the sum of all. The excess that intervals are made of holds ``anchors`` and ``judge``.
    """

    source: NDArray[np.str_]
    meaning: NDArray[np.str_]
    elo: Floats
    share: Floats


def variance_by_source(
    heldout: HeldOutRatings, refits: RefitErrors, *, method: str, std_error: StdErrorKind
) -> VarianceShares:
    """Return how much of the ratings' variance each source brings, over the models with votes."""
    models = calibrating_models(heldout, method, std_error)
    error = dict(zip(refits.model.tolist(), refits.std_error.tolist(), strict=True))
    refitted = np.array([error[name] for name in models.model.tolist()])
    parts = np.array([models.std_error, refitted, models.vote_std_error])
    known = np.isfinite(parts).all(axis=0)  # the same models in every mean
    if not known.any():
        nothing = np.full(len(_SOURCES), np.nan)
        return VarianceShares(
            np.array([*_SOURCES]), np.array([*_SOURCES.values()]), nothing, nothing
        )
    verdicts, whole, votes = np.square(parts[:, known]).mean(axis=1).tolist()
    anchors = max(whole - verdicts, 0.0)
    # residuals exceed own errors and votes by the error of anchors too
    judge = max(models.excess_sd**2 - anchors, 0.0)
    square = np.array([verdicts, anchors, votes, judge])
    return VarianceShares(
        np.array([*_SOURCES]),
        np.array([*_SOURCES.values()]),
        np.sqrt(square),
        square / square.sum() if square.sum() else np.full(square.size, np.nan),
    )


class _Fold(NamedTuple):
    """Strengths (M,) of a placement, by judge and by people, and people's anchors (M, A)."""

    judge: dict[str, Floats]
    human: Floats
    anchors: Floats


def fold_of(battles: CodedBattles, methods: set[str], l2: float, *, may_fail: bool = True) -> _Fold:
    """Return the placement of every model in the fold without its own votes; NaN if it may fail."""
    try:
        found = place(battles, l2=l2, by=methods, levels=levels_in(methods))
    except (ValueError, RuntimeError):  # votes tie nothing together, or a fit has no end
        if not may_fail:
            raise
        nothing = np.full(len(battles.models), np.nan)
        return _Fold(dict.fromkeys(methods, nothing), nothing, nothing[:, None])
    human = found.placed["human"]
    judge = {name: found.strength(name) for name in methods}
    return _Fold(judge, human.strength, human.anchors)
