"""Split-conformal intervals of ratings: a residual's size is judged against other models'.

Assumption throughout: the models that calibrate an interval and the model it speaks about
are exchangeable - drawn, as it were, from one pool, judged and voted on in the same way.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.elo.rate import HeldOutRatings
from judgeline.elo.streams import keyed_rng

Floats = NDArray[np.float64]
StdErrorKind = Literal["analytic", "bootstrap"]

_NOT_LETTERS = re.compile(r"[\W\d_]")

COVERAGE_TAIL = 0.005
"""Probability beyond either of the limits that `coverage_limits` gives."""


class ConformalCalibration(NamedTuple):
    """One row per method: the threshold that intervals use, and how such thresholds do.

    `threshold` times a model's `Calibrating.spread` is half an interval; it and `excess_sd` (Elo
    points) are from all `n_models` residuals, for models without votes.
    `split_threshold` (median), `coverage` (mean), `median_width` and the ranges are over
    `n_splits` random halves: `n_calibration` models calibrate, `n_test` are tested. Intervals
    without ends are not counted as coverage, which is NaN where none has ends. Random halves'
    coverage is near its promise whatever the judge does; `structured_coverage`, over
    `n_structured` models that were set apart by what is known of them, is not. `structured` lists
    those splits, and `structured_below` the ones below what chance allows.
    Thresholds have no unit, widths are in Elo points; infinite where too few models calibrate,
    and then `note` says so.
    """

    method: NDArray[np.str_]
    miscoverage: Floats
    threshold: Floats
    excess_sd: Floats
    n_models: NDArray[np.int64]
    n_splits: NDArray[np.int64]
    n_calibration: NDArray[np.int64]
    n_test: NDArray[np.int64]
    split_threshold: Floats
    coverage: Floats
    coverage_min: Floats
    coverage_max: Floats
    median_width: Floats
    width_min: Floats
    width_max: Floats
    n_structured: NDArray[np.int64]
    structured_coverage: Floats
    structured: NDArray[np.str_]
    structured_below: NDArray[np.str_]
    note: NDArray[np.str_]


class Calibrating(NamedTuple):
    """What intervals by one method are made from: n models with votes, columns of their ratings.

    `residual`, `std_error`, `human_std_error` and `vote_std_error` in Elo points, as of
    `judgeline.elo.rate.HeldOutRatings`.
    """

    model: NDArray[np.str_]
    rating: Floats
    residual: Floats
    std_error: Floats
    human_std_error: Floats
    vote_std_error: Floats
    n_battles: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> "Calibrating":
        """Return some of the models (boolean mask or positions)."""
        return Calibrating(*(column[rows] for column in self))

    @property
    def excess_sd(self) -> float:
        """Standard deviation of the residuals beyond their sampling errors, in Elo points.

        ``sqrt(mean(residual^2 - std_error^2 - human_std_error^2))``, zero where that is negative
        or no model has both errors.
        """
        excess = self.residual**2 - self.std_error**2 - self.human_std_error**2
        known = excess[np.isfinite(excess)]
        return math.sqrt(max(float(known.mean()), 0.0)) if known.size else 0.0

    def spread(self, std_error: Floats, vote_std_error: Floats) -> Floats:
        """Return the standard deviation that residuals of some models would have, Elo points.

        The error of the judge's rating, the noise that votes on the same battles would have, and
        what the calibrating models show beyond both. NaN where a rating has no positive error:
        nothing is known of its spread.
        """
        known = np.where(std_error > 0, std_error, math.nan)
        spread: Floats = np.sqrt(known**2 + vote_std_error**2 + self.excess_sd**2)
        return spread

    def threshold(self, miscoverage: float) -> float:
        """Return the conformal quantile of the residuals in units of their spread."""
        spread = self.spread(self.std_error, self.vote_std_error)
        return conformal_quantile(
            nonconformity_scores(self.residual, spread), miscoverage=miscoverage
        )


def conformal_quantile(nonconformity: ArrayLike, *, miscoverage: float) -> float:
    """Return the threshold that a fresh nonconformity score stays below, at a stated rate.

    If the ``n`` calibration scores and the fresh one are exchangeable, the fresh score
    exceeds the threshold with probability at most `miscoverage`. The threshold is the
    ``ceil((n + 1) (1 - miscoverage))``-th smallest score, never an interpolation.

    Parameters
    ----------
    nonconformity : array_like, shape (n,)
        Calibration scores in one common unit, such as standard errors; larger is stranger.
    miscoverage : float
        Tolerated probability of a miss, in (0, 1); 0.1 asks for 90 % coverage.

    Returns
    -------
    float
        Threshold in the unit of the scores; ``inf`` when ``n < 1 / miscoverage - 1``.

    Raises
    ------
    ValueError
        If the scores are not one-dimensional or hold NaN, or `miscoverage` is not strictly
        between 0 and 1.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman (2018), "Distribution-
    Free Predictive Inference for Regression", JASA 113(523), Algorithm 2. arXiv:1604.04173.
    """
    scores = np.asarray(nonconformity, dtype=float)
    if scores.ndim != 1:
        raise ValueError(f"nonconformity must have shape (n,), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"nonconformity holds {np.isnan(scores).sum()} NaN in {scores.size}")
    _require_miscoverage(miscoverage)
    n_above = _n_above(scores.size, miscoverage)
    return math.inf if n_above < 0 else float(np.sort(scores)[scores.size - 1 - n_above])


def _require_miscoverage(miscoverage: float) -> None:
    if not 0 < miscoverage < 1:
        raise ValueError(f"miscoverage must lie strictly between 0 and 1, got {miscoverage}")


def _n_above(n_scores: int, miscoverage: float) -> int:
    """Return how many scores lie above the threshold; -1 when there are too few for any.

    Counting from above keeps the rank exact: in floats (99 + 1) * (1 - 0.45) is
    55.00000000000001, and its ceiling one rank too far.
    """
    return math.floor((n_scores + 1) * miscoverage + 1e-9) - 1


def nonconformity_scores(residual: ArrayLike, std_error: ArrayLike) -> Floats:
    """Return absolute residuals in units of their standard errors.

    A model without a standard error (one battle, or battles that all end alike) counts as
    infinitely strange: it can only widen intervals, never narrow them.

    Parameters
    ----------
    residual : array_like, shape (n,)
        Judge rating minus human rating, in Elo points.
    std_error : array_like, shape (n,)
        Standard error of the judge rating, in Elo points.

    Returns
    -------
    ndarray, shape (n,)
        Unitless scores; infinite where there is no positive standard error.

    Raises
    ------
    ValueError
        If a residual is not finite or a standard error is negative or infinite.
    """
    error, spread = np.asarray(residual, dtype=float), np.asarray(std_error, dtype=float)
    wrong = ~np.isfinite(error) | (spread < 0) | np.isinf(spread)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"residual {error[row]:g} with standard error {spread[row]:g} in row {row}: every "
            "calibration model needs a residual, and a standard error that is not negative"
        )
    known = spread > 0
    return np.where(known, np.abs(error) / np.where(known, spread, 1.0), math.inf)


def calibrate_intervals(
    heldout: HeldOutRatings,
    *,
    miscoverage: float = 0.1,
    n_splits: int = 5,
    seed: int = 0,
    std_error: StdErrorKind = "analytic",
    first_day: Mapping[str, float] | None = None,
) -> ConformalCalibration:
    """Return each judge method's conformal threshold, tried on random splits of the models.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings; models with a residual calibrate.
    miscoverage : float
        Tolerated probability of a miss, in (0, 1).
    n_splits : int
        Random halvings of the models on which coverage and width are tried.
    seed : int
        Seed of the halvings; the same for every method, so that methods compare.
    std_error : {"analytic", "bootstrap"}
        Which standard error scales residuals and intervals.
    first_day : mapping of str to float, optional
        Day of each model's first battle, counted from any day, where it is known.

    Returns
    -------
    ConformalCalibration
        One row per method other than ``human``.

    Raises
    ------
    ValueError
        If `miscoverage` or `n_splits` is out of range.
    """
    _require_miscoverage(miscoverage)
    if n_splits < 1:
        raise ValueError(f"n_splits must be at least 1, got {n_splits}")
    methods = [name for name in dict.fromkeys(heldout.method.tolist()) if name != "human"]
    rows = [
        _calibrate(
            name,
            calibrating_models(heldout, name, std_error),
            miscoverage,
            n_splits,
            seed,
            first_day or {},
        )
        for name in methods
    ]
    return ConformalCalibration(*(np.array(column) for column in zip(*rows, strict=True)))


def calibrating_models(
    heldout: HeldOutRatings, method: str, std_error: StdErrorKind
) -> Calibrating:
    """Return the models that calibrate a method: those with votes and a rating by it.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings.
    method : str
        One of its methods.
    std_error : {"analytic", "bootstrap"}
        Which standard error of the judge's rating to take.

    Raises
    ------
    ValueError
        If `std_error` is neither kind, or bootstrap errors were not computed.
    """
    spread = chosen_std_error(heldout, std_error)
    columns = (
        heldout.model,
        heldout.rating,
        heldout.residual,
        spread,
        heldout.human_std_error,
        heldout.vote_std_error,
        heldout.n_battles,
    )
    return Calibrating(*columns).take(
        (heldout.method == method) & np.isfinite(heldout.residual.astype(float))
    )


def chosen_std_error(heldout: HeldOutRatings, kind: StdErrorKind) -> Floats:
    """Return the standard errors that scale residuals and intervals, in Elo points.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings.
    kind : {"analytic", "bootstrap"}
        The closed form, free of resampling noise, or the bootstrap as published.

    Returns
    -------
    ndarray, shape of the columns
        Standard errors.

    Raises
    ------
    ValueError
        If `kind` is neither, or bootstrap errors were not computed.
    """
    if kind not in ("analytic", "bootstrap"):
        raise ValueError(f"std_error must be 'analytic' or 'bootstrap', got {kind!r}")
    if kind == "bootstrap" and np.isnan(heldout.std_error).all():
        raise ValueError("no bootstrap standard errors: set n_resamples to at least 2")
    return heldout.std_error_analytic if kind == "analytic" else heldout.std_error


def _calibrate(
    method: str,
    voted: Calibrating,
    miscoverage: float,
    n_splits: int,
    seed: int,
    first_day: Mapping[str, float],
) -> tuple[object, ...]:
    size = voted.residual.size
    n_calibration = size // 2
    rng = keyed_rng(seed, "conformal splits")
    halves = [
        np.isin(np.arange(size), rng.permutation(size)[:n_calibration]) for _ in range(n_splits)
    ]
    splits = [_tried(voted, half, miscoverage) for half in halves]
    threshold, held, width = zip(*splits, strict=True)
    coverage = np.array([hits.mean() for hits in held if hits.size] or [math.nan])
    scores = nonconformity_scores(
        voted.residual, voted.spread(voted.std_error, voted.vote_std_error)
    )
    notes = (_why_infinite(size, n_calibration, miscoverage), _no_spread(scores))
    return (
        method, miscoverage, voted.threshold(miscoverage), voted.excess_sd,
        size, n_splits, n_calibration, size - n_calibration, float(np.median(threshold)),
        coverage.mean(), coverage.min(), coverage.max(),
        float(np.median(width)), np.min(width), np.max(width),
        *_structured(voted, miscoverage, first_day), "; ".join(filter(None, notes)),
    )  # fmt: skip


def _tried(
    voted: Calibrating, calibrates: NDArray[np.bool_], miscoverage: float
) -> tuple[float, NDArray[np.bool_], float]:
    """Return a split's threshold, which intervals with ends hold, and the median width of all."""
    known, test = voted.take(calibrates), voted.take(~calibrates)
    threshold = known.threshold(miscoverage)
    half_width = interval_half_width(threshold, known.spread(test.std_error, test.vote_std_error))
    width = float(np.median(half_width)) * 2 if half_width.size else math.nan
    held = np.abs(test.residual) <= half_width
    return threshold, held[np.isfinite(half_width)], width


def structured_splits(
    voted: Calibrating, first_day: Mapping[str, float]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield ways to set models apart by what is known without votes, and who then calibrates.

    Those above the judge's upper third are tested on the others, and the reverse; those with
    fewer battles than most on the others; the third that came last on the older ones, where the
    first day of all models is known; each family of models, by the letters that their names begin
    with, on the other families.

    Parameters
    ----------
    voted : Calibrating
        Models with votes.
    first_day : mapping of str to float
        As of `calibrate_intervals`. Models of one day are not parted.

    Yields
    ------
    name, calibrates : str and ndarray of bool, shape (n,)
        Models of one name are tested together, in as many splits as there are of it.
    """
    if not voted.rating.size:
        return
    upper = voted.rating > np.quantile(voted.rating, 2 / 3)
    yield "above the upper third", ~upper
    yield "below it", upper
    yield "fewer battles", voted.n_battles >= np.median(voted.n_battles)
    day = np.array([first_day.get(name, math.nan) for name in voted.model.tolist()])
    newer = day > np.quantile(day, 2 / 3)  # of none, where one day is NaN
    if newer.any():
        yield "newer models", ~newer
    family = np.array([_NOT_LETTERS.split(name.lower())[0] for name in voted.model.tolist()])
    names, counts = np.unique(family, return_counts=True)
    for name in names[(counts > 1) & (counts < family.size) & (names != "")]:
        yield "other families", family != name


def _structured(
    voted: Calibrating, miscoverage: float, first_day: Mapping[str, float]
) -> tuple[int, float, str, str]:
    """Return tested models and covered share over structured splits, all in words, and the bad."""
    tried: dict[str, list[NDArray[np.bool_]]] = {}
    limits: dict[str, float] = {}
    for name, calibrates in structured_splits(voted, first_day):
        _, held, _ = _tried(voted, calibrates, miscoverage)
        if held.size:
            tried.setdefault(name, []).append(held)
            least, _ = coverage_limits(int(calibrates.sum()), held.size, miscoverage=miscoverage)
            limits[name] = limits.get(name, 0.0) + float(least) * held.size
    held_by = {name: np.concatenate(parts) for name, parts in tried.items()}
    words = {name: f"{name} {held.sum()} of {held.size}" for name, held in held_by.items()}
    below = [words[name] for name, held in held_by.items() if held.sum() < limits[name] - 1e-9]
    every = np.concatenate([*held_by.values(), np.array([], dtype=bool)])
    share = float(every.mean()) if every.size else math.nan
    return every.size, share, "; ".join(words.values()), "; ".join(below)


def interval_half_width(threshold: ArrayLike, std_error: ArrayLike) -> Floats:
    """Return how far intervals reach to either side of a rating.

    Parameters
    ----------
    threshold : array_like
        Conformal thresholds, in standard errors.
    std_error : array_like
        Standard errors, in Elo points.

    Returns
    -------
    ndarray
        Their product in Elo points; infinite where there is no positive standard error,
        since nothing is known of such a rating's spread.
    """
    reach, spread = np.broadcast_arrays(np.asarray(threshold, float), np.asarray(std_error, float))
    known = spread > 0
    return np.where(known, reach * np.where(known, spread, 1.0), math.inf)


def coverage_limits(
    n_calibration: ArrayLike, n_test: ArrayLike, *, miscoverage: ArrayLike
) -> tuple[Floats, Floats]:
    """Return between which shares coverage on one split lies by chance.

    If calibration and test models are exchangeable, the number of covered test models is
    beta-binomial. The mean over several splits spreads less: the limits err on the quiet side.

    Parameters
    ----------
    n_calibration, n_test : array_like of int, shape (n,)
        Models on either side of a split; at least one to test.
    miscoverage : array_like, shape (n,)
        Tolerated probability of a miss, in (0, 1).

    Returns
    -------
    lower, upper : ndarray, shape (n,)
        Shares, each exceeded in at most one split of 200; both 1 where too few calibration
        models make every interval infinite.

    References
    ----------
    A. N. Angelopoulos and S. Bates (2021), "A Gentle Introduction to Conformal Prediction and
    Distribution-Free Uncertainty Quantification", arXiv:2107.07511.
    """
    from scipy.stats import betabinom

    calibration = np.asarray(n_calibration, dtype=float)
    test = np.asarray(n_test, dtype=float)
    n_above = np.floor((calibration + 1) * np.asarray(miscoverage, dtype=float) + 1e-9)
    infinite = n_above < 1
    beyond = np.where(infinite, 1, n_above)
    spread = betabinom(test, np.maximum(calibration + 1 - beyond, 1), beyond)
    lower = np.where(infinite, 1.0, spread.ppf(COVERAGE_TAIL) / test)
    upper = np.where(infinite, 1.0, spread.ppf(1 - COVERAGE_TAIL) / test)
    return lower, upper


def _no_spread(scores: Floats) -> str:
    count = int(np.isinf(scores).sum())
    if not count:
        return ""
    return (
        f"{count} of {scores.size} calibration models have no standard error (one battle, or "
        "battles that all end alike) and count as misses; judge more of their battles"
    )


def _why_infinite(n_models: int, n_calibration: int, miscoverage: float) -> str:
    """Say in words which thresholds are infinite and what would make them finite."""
    needed = math.ceil(1 / miscoverage - 1 - 1e-9)
    short = [
        f"{count} {kind} models"
        for kind, count in (("calibration", n_calibration), ("voted", n_models))
        if _n_above(count, miscoverage) < 0
    ]
    if not short:
        return ""
    where = "the split threshold" if len(short) == 1 else "every threshold"
    return (
        f"{where} is infinite: {1 - miscoverage:.0%} coverage needs at least {needed} models to "
        f"calibrate, there are {' and '.join(short)}; have humans vote on more models or raise "
        "the miscoverage"
    )
