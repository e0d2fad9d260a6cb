"""Prediction-powered win rates: the judge's mean outcome plus its error as votes measure it.

The error is measured on votes of other models (`difference_estimate`, interval conformal over
models) or on the model's own votes (`power_tuned_estimate`, interval by the central limit
theorem). Ties count half.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from judgeline.arrays import Bools, Floats
from judgeline.intervals.conformal import conformal_quantile, models_needed
from judgeline.winrate.outcomes import NO_VOTE, OUTCOMES, Design, OutcomeTables
from judgeline.winrate.strata import merge_sparse_strata

MIN_CALIBRATING_VOTES = 10
"""Votes from which a model's error calibrates the intervals of other models."""

_T_BELOW = 60  # labels; from here on the normal quantile

_JUDGE = np.repeat(np.array(OUTCOMES)[:, None], 3, axis=1)  # by judge's outcome, then humans'
_HUMAN = _JUDGE.T


class PoweredEstimate(NamedTuple):
    """A win rate, a share of battles that is not clipped, and its sampling variance."""

    win_rate: float
    variance: float


class HeldOutModels(NamedTuple):
    """Difference estimates of M models beside their votes, shape (M,) each.

    `win_rate` and `variance` are NaN without an estimate, `human_win_rate` is NaN without votes.
    """

    win_rate: Floats
    variance: Floats
    human_win_rate: Floats
    n_votes: NDArray[np.int64]

    @property
    def calibrating(self) -> Bools:
        """Models whose error calibrates intervals of other models."""
        return np.isfinite(self.win_rate) & (self.n_votes >= MIN_CALIBRATING_VOTES)


class Estimate(NamedTuple):
    """A rate with its interval, each a share in [0, 1], and its standard error; NaN without one."""

    rate: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    std_error: float = np.nan
    note: str = ""

    @classmethod
    def around(
        cls, rate: float, half_width: float, std_error: float = np.nan, note: str = ""
    ) -> "Estimate":
        """Return an estimate with a symmetric interval, all clipped to [0, 1]."""
        ends = [rate, rate - half_width, rate + half_width]
        middle, lower, upper = np.clip(ends, 0, 1).tolist()
        return cls(middle, lower, upper, float(std_error), note)


class ConformalSpread(NamedTuple):
    """Half-width of each model's interval and the standard error it is a multiple of, (M,)."""

    half_width: Floats
    std_error: Floats


def transfer_design(tables: OutcomeTables, model: int) -> Design:
    """Return all battles of a model beside both views of every voted battle of other models."""
    return Design(tables.own[model].sum(axis=2), tables.others[:, model].sum(axis=0), "others")


def difference_estimates(tables: OutcomeTables) -> HeldOutModels:
    """Return every model's difference estimate, sparse strata merged, beside its votes."""
    rows = []
    for model in range(len(tables.models)):
        design = merge_sparse_strata(transfer_design(tables, model))
        has_both = design.test.any() and design.labelled.any()
        estimate = (
            difference_estimate(design.test, design.labelled) if has_both else (np.nan, np.nan)
        )
        human, _, n_votes = _moments(tables.own[model, :, :, :NO_VOTE], _HUMAN)
        rows.append((*estimate, human if n_votes else np.nan, n_votes))
    win_rate, variance, human_win_rate, votes = np.array(rows, dtype=float).T
    return HeldOutModels(win_rate, variance, human_win_rate, votes.astype(np.int64))


def difference_estimate(test: NDArray[Any], labelled: NDArray[Any]) -> PoweredEstimate:
    """Return a win rate from the votes on other models: their battles `labelled` (S, 3, 3).

    ``sum_s w_s [mean_test,s(j) + mean_labelled,s(h - j)]`` over strata s, of weight ``w_s`` by
    test battles (S, 3). Assumes that within a stratum the judge's mean error on the model is that
    on other models. The variance takes the labelled views for independent. Source: Angelopoulos,
    Bates, Fannjiang, Jordan and Zrnic (2023), "Prediction-Powered Inference", Science 382;
    W. G. Cochran (1977), chapter 5, for strata.
    """
    used = test.sum(axis=1) > 0
    judged = [_moments(counts, np.array(OUTCOMES)) for counts in test[used]]
    errors = [_moments(counts, _HUMAN - _JUDGE) for counts in labelled[used]]
    (mean, variance, n), (shift, of_shift, n_labelled) = (
        np.array(rows).T for rows in (judged, errors)
    )
    weight = n / n.sum()
    return PoweredEstimate(
        float(weight @ (mean + shift)), float(weight**2 @ (variance / n + of_shift / n_labelled))
    )


def power_tuned_estimate(labelled: NDArray[Any], unlabelled: NDArray[Any]) -> PoweredEstimate:
    """Return a win rate from the model's own m votes and its n battles without a vote.

    ``mean_L(y) + lambda (mean_U(f) - mean_L(f))`` with ``lambda = cov_L(y, f) / (var(f)
    (1 + m/n))``, clipped to [0, 1]; var(f) is over all battles, as the authors' program has it.
    Without unvoted battles, or with a judge that never varies, it is the mean of the votes.
    Assumes that the voted battles are a random part of all.

    Parameters
    ----------
    labelled : ndarray of int, shape (3, 3)
        Voted battles by the judge's outcome f and the humans' y. At least one.
    unlabelled : ndarray of int, shape (3,)
        Battles without a vote, by the judge's outcome.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023), "PPI++", arXiv:2311.01453.
    """
    outcomes = np.array(OUTCOMES)
    votes, _, m = _moments(labelled, _HUMAN)
    judged, _, _ = _moments(labelled, _JUDGE)
    of_rest, variance, n = _moments(unlabelled, outcomes)
    covariance = float((labelled * (_HUMAN - votes) * (_JUDGE - judged)).sum()) / m
    spread = _moments(labelled.sum(axis=1) + unlabelled, outcomes)[1] * (m + n) / max(m + n - 1, 1)
    tuned = covariance / (spread * (1 + m / n)) if n and spread > 0 else 0.0
    power = min(max(tuned, 0.0), 1.0)
    rectified = _moments(labelled, _HUMAN - power * _JUDGE)[1] / m
    return PoweredEstimate(
        votes + power * (of_rest - judged), rectified + power**2 * variance / max(n, 1)
    )


def power_tuned_half_width(variance: float, n_labels: int, *, miscoverage: float) -> float:
    """Return the half-width of the interval: by Student's t below 60 labels, else normal."""
    level = 1 - miscoverage / 2
    quantile = stdtrit(n_labels - 1, level) if n_labels < _T_BELOW else ndtri(level)
    return float(quantile * math.sqrt(variance))


def conformal_spread(
    models: HeldOutModels,
    calibrates: Bools,
    *,
    miscoverage: float,
    n_meant: NDArray[np.int64] | None = None,
) -> ConformalSpread:
    """Return the half-widths of difference estimates, calibrated on errors of voted models.

    A voted model k has the error ``e_k``, its estimate minus its human win rate ``h_k`` of
    ``N_k`` votes, and the score ``|e_k| / sqrt(V_k + h_k (1 - h_k) / N_k + tau^2)``. The
    threshold is the exact conformal quantile of the scores, and ``tau^2`` the mean square error
    beyond sampling. If a model is exchangeable with those that calibrate it, its interval holds
    its human win rate about as often as promised; calibrating estimates share votes, so that
    this is no theorem. The human win rate is one of as many votes as the model has or, without
    votes, of as many as the median calibrating model; `n_meant` (M,) are other numbers of votes
    that it is to be about. `calibrates` (M, M) has in row m the models
    that calibrate m; half-widths are infinite where these are too few.
    """
    error = models.win_rate - models.human_win_rate
    votes = np.maximum(models.n_votes, 1)
    known = models.variance + models.human_win_rate * (1 - models.human_win_rate) / votes
    share = np.clip(models.win_rate, 0, 1)
    rows = []
    for at, others in enumerate(calibrates):
        size = np.abs(error[others])
        between = max(0.0, float(np.mean(size**2 - known[others]))) if size.size else 0.0
        scale = np.sqrt(known[others] + between)
        scores = np.divide(size, scale, out=np.full(size.shape, np.inf), where=scale > 0)
        threshold = conformal_quantile(scores, miscoverage=miscoverage)
        typical = votes[at] if models.n_votes[at] or not size.size else np.median(votes[others])
        typical = typical if n_meant is None else n_meant[at]
        spread = math.sqrt(models.variance[at] + share[at] * (1 - share[at]) / typical + between)
        rows.append((math.inf if math.isinf(threshold) else threshold * spread, spread))
    half_width, std_error = np.array(rows, dtype=float).reshape(-1, 2).T
    return ConformalSpread(half_width, std_error)


def transported(
    models: HeldOutModels,
    kind: str,
    *,
    miscoverage: float,
    n_meant: NDArray[np.int64] | None = None,
) -> list[Estimate]:
    """Return each model's difference estimate, its interval calibrated on the other models."""
    calibrates = ~np.eye(models.win_rate.size, dtype=bool) & models.calibrating
    spread = conformal_spread(models, calibrates, miscoverage=miscoverage, n_meant=n_meant)
    needed = models_needed(miscoverage)
    few = "{} other {} calibrate the interval; {} are needed, until then it is [0, 1]"
    counts = calibrates.sum(axis=1).tolist()
    notes = [few.format(n, kind, needed) if n < needed else "" for n in counts]
    return [Estimate.around(*row) for row in zip(models.win_rate, *spread, notes, strict=True)]


def _moments(counts: NDArray[Any], values: Floats) -> tuple[float, float, int]:
    """Return mean and variance of counted values, and their number; zeros of none."""
    n = int(counts.sum())
    if not n:
        return 0.0, 0.0, 0
    mean = float((counts * values).sum()) / n
    return mean, float((counts * (values - mean) ** 2).sum()) / n, n
