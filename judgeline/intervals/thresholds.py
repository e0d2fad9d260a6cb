"""Thresholds of every method from the residuals of voted models, and how they do on splits."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.elo.ratings import HeldOutRatings
from judgeline.elo.resampling import keyed_rng
from judgeline.intervals.conformal import (
    StdErrorKind,
    conformal_quantile,
    coverage_limits,
    interval_half_width,
    n_above_threshold,
    nonconformity_scores,
    require_miscoverage,
)

Floats = NDArray[np.float64]

_NOT_LETTERS = re.compile(r"[\W\d_]")


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
    `HeldOutRatings`.
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

    def scores(self) -> Floats:
        """Return the residuals in units of their spread."""
        spread = self.spread(self.std_error, self.vote_std_error)
        return nonconformity_scores(self.residual, spread)

    def threshold(self, miscoverage: float, alike: NDArray[np.bool_] | None = None) -> float:
        """Return the conformal quantile of the scores, or of models `alike` if they are enough."""
        return conformal_quantile(self.scores(), miscoverage=miscoverage, alike=alike)


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
    require_miscoverage(miscoverage)
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

    ValueError if `std_error` is neither kind, or bootstrap errors were not computed.
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
    """Return the standard errors that scale residuals and intervals, in Elo points."""
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
    notes = (_why_infinite(size, n_calibration, miscoverage), _no_spread(voted.scores()))
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
        if n_above_threshold(count, miscoverage) < 0
    ]
    if not short:
        return ""
    where = "the split threshold" if len(short) == 1 else "every threshold"
    return (
        f"{where} is infinite: {1 - miscoverage:.0%} coverage needs at least {needed} models to "
        f"calibrate, there are {' and '.join(short)}; have humans vote on more models or raise "
        "the miscoverage"
    )
