"""Conformal intervals: thresholds from residuals of voted models, and coverage on splits."""

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, stdtrit

from judgeline.elo.ratings import HeldOutRatings
from judgeline.elo.resampling import keyed_rng
from judgeline.elo.strengths import ELO_PER_LOGIT
from judgeline.rating_options import StdErrorKind

Floats = NDArray[np.float64]

COVERAGE_TAIL = 0.005
"""Probability beyond either of the limits that `coverage_limits` gives."""


def conformal_quantile(
    nonconformity: ArrayLike, *, miscoverage: float, weight: ArrayLike | None = None
) -> float:
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
    weight : array_like of bool or float, shape (n,), optional
        Ratio of the density of the fresh model's population to that of the calibrating one, at each
        calibrating model, divided by the same ratio at the fresh model; it may not use votes. True
        within the fresh model's band and False elsewhere is Mondrian conformal: coverage then
        holds within the band.

    Returns
    -------
    float
        Threshold in the unit of the scores; ``inf`` when ``n < 1 / miscoverage - 1``, n being the
        sum of the weights if there are any.

    Raises
    ------
    ValueError
        If the scores are not one-dimensional or hold NaN, `weight` has another length or a value
        below 0, or `miscoverage` is not strictly between 0 and 1.

    References
    ----------
    J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman (2018), "Distribution-
    Free Predictive Inference for Regression", JASA 113(523), Algorithm 2. arXiv:1604.04173.
    V. Vovk (2012), "Conditional Validity of Inductive Conformal Predictors", arXiv:1209.2673.
    R. J. Tibshirani, R. F. Barber, E. J. Candes and A. Ramdas (2019), "Conformal Prediction Under
    Covariate Shift", arXiv:1904.06019.
    """
    scores = np.asarray(nonconformity, dtype=float)
    if scores.ndim != 1:
        raise ValueError(f"nonconformity must have shape (n,), got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"nonconformity holds {np.isnan(scores).sum()} NaN in {scores.size}")
    require_miscoverage(miscoverage)
    if weight is not None:
        weights = np.asarray(weight, dtype=float)
        if weights.shape != scores.shape:
            raise ValueError(f"weight has shape {weights.shape}, nonconformity {scores.shape}")
        if not (weights >= 0).all():
            raise ValueError(f"weight is {weights[~(weights >= 0)][0]:g}; expected 0 or more")
        order = np.argsort(scores, kind="stable")
        below = np.cumsum(weights[order]) + 1e-9  # as exact as the rank of equal weights
        enough = below >= (1 - miscoverage) * (weights.sum() + 1)
        return float(scores[order[int(np.argmax(enough))]]) if enough.any() else math.inf
    n_above = n_above_threshold(scores.size, miscoverage)
    return math.inf if n_above < 0 else float(np.sort(scores)[scores.size - 1 - n_above])


def require_miscoverage(miscoverage: float) -> None:
    """Raise ValueError unless a miscoverage lies strictly between 0 and 1."""
    if not 0 < miscoverage < 1:
        raise ValueError(f"miscoverage must lie strictly between 0 and 1, got {miscoverage}")


def models_needed(miscoverage: float) -> int:
    """Return how many models calibrate a finite threshold at least."""
    return math.ceil(1 / miscoverage - 1 - 1e-9)


def least_miscoverage(n_models: int) -> float:
    """Return the least miscoverage, in hundredths, at which n models give a finite threshold."""
    return math.ceil(100 / (n_models + 1) - 1e-9) / 100


def n_above_threshold(n_scores: int, miscoverage: float) -> int:
    """Return how many scores lie above the threshold; -1 when there are too few for any."""
    # from above the rank is exact: in floats (99 + 1) * (1 - 0.45) is 55.00000000000001
    return math.floor((n_scores + 1) * miscoverage + 1e-9) - 1


def nonconformity_scores(residual: ArrayLike, std_error: ArrayLike) -> Floats:
    """Return absolute residuals (n,) in units of their standard errors (n,), both in Elo points.

    A model without a positive standard error counts as infinitely strange: it can only widen
    intervals. ValueError for a residual that is not finite, or an error negative or infinite.
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


def interval_half_width(threshold: ArrayLike, std_error: ArrayLike) -> Floats:
    """Return how far intervals reach to either side of a rating."""
    reach, spread = np.broadcast_arrays(np.asarray(threshold, float), np.asarray(std_error, float))
    known = spread > 0
    return np.where(known, reach * np.where(known, spread, 1.0), math.inf)


def coverage_limits(
    n_calibration: ArrayLike, n_test: ArrayLike, *, miscoverage: ArrayLike
) -> tuple[Floats, Floats]:
    """Return between which shares coverage on one split lies by chance.

    If calibration and test models are exchangeable, the number of covered test models is
    beta-binomial. The mean over several splits spreads less: the limits err on the quiet side.

    Source: A. N. Angelopoulos and S. Bates (2021), arXiv:2107.07511.
    """
    calibration = np.asarray(n_calibration, dtype=float)
    test = np.asarray(n_test, dtype=float)
    n_above = np.floor((calibration + 1) * np.asarray(miscoverage, dtype=float) + 1e-9)
    infinite = n_above < 1
    beyond = np.where(infinite, 1, n_above)[..., None]
    within = np.maximum(calibration[..., None] + 1 - beyond, 1)
    covered, left = np.arange(test.max(initial=0) + 1), test[..., None]
    missed = np.maximum(left - covered, 0)
    log_chance = betaln(covered + within, missed + beyond) - betaln(within, beyond)
    log_chance -= betaln(covered + 1, missed + 1) + np.log(left + 1)
    reached = np.cumsum(np.where(covered <= left, np.exp(log_chance), 0.0), axis=-1)
    lower, upper = (
        np.where(infinite, 1.0, (reached < share).sum(axis=-1) / test)
        for share in (COVERAGE_TAIL, 1 - COVERAGE_TAIL)
    )
    return lower, upper


def sampling_half_width(n_battles: float, *, miscoverage: float) -> float:
    """Return the half-width, in Elo points, that the sampling of battles alone leaves to a rating.

    A normal interval of decisive outcomes against equal anchors, where the Bradley-Terry
    information per battle is largest, 1/4 per squared logit. Judges that err, unequal opponents and
    few calibrating models widen it; soft outcomes narrow it. ValueError if a setting is out of
    range. Source: R. A. Bradley and M. E. Terry (1952), Biometrika 39.
    """
    if not n_battles > 0:
        raise ValueError(f"n_battles is {n_battles}; it must be positive")
    require_miscoverage(miscoverage)
    std_error = ELO_PER_LOGIT * 2 / math.sqrt(n_battles)
    return NormalDist().inv_cdf(1 - miscoverage / 2) * std_error


class ConformalCalibration(NamedTuple):
    """One row per method: the threshold that intervals use, and how such thresholds do.

    `skill` with its interval and `floor` (Elo points) are those of `Skill`.

    `threshold` times a model's `Calibrating.spread` is half an interval; it and `excess_sd` (Elo
    points) are from all `n_models` residuals, for models without votes.
    `split_threshold` (median), `coverage` (mean), `median_width` and the ranges are over
    `n_splits` random halves: `n_calibration` models calibrate, `n_test` are tested. Intervals
    without ends are not counted as coverage, which is NaN where none has ends. Random halves'
    coverage is near its promise whatever the judge does; `structured_coverage`, over
    `n_structured` models that were set apart by what is known of them, is not. `structured` lists
    those splits, and `structured_below` the ones below what chance allows.
    `published_threshold` and `published_width` (median) are those of the published intervals, whose
    spread is the bootstrap standard error alone; NaN without resamples.
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
    skill: Floats
    skill_lower: Floats
    skill_upper: Floats
    floor: Floats
    published_threshold: Floats
    published_width: Floats
    note: NDArray[np.str_]


class Skill(NamedTuple):
    """Evidence about a judge from n held-out models, which a judge can fail.

    `skill` is ``1 - sum residual^2 / sum (human - mean human)^2``: 1 for a judge that is never
    wrong, 0 for one that knows no more than people's mean rating, below 0 for one that knows less.
    `lower` and `upper` bound it. `floor` is the mean absolute residual that a judge without any
    error would show, since human ratings are noisy: ``sqrt(2 / pi) rms(human_std_error)``, Elo
    points. NaN where there are too few models.
    """

    skill: float
    lower: float
    upper: float
    floor: float


def judge_skill(
    residual: ArrayLike, human_rating: ArrayLike, human_std_error: ArrayLike, *, miscoverage: float
) -> Skill:
    """Return a judge's skill over models that were held out, with a jackknife interval.

    Parameters
    ----------
    residual, human_rating, human_std_error : array_like, shape (n,)
        Held-out rating less the human one, the human one, and its standard error, Elo points.
    miscoverage : float
        Tolerated probability that the interval misses, in (0, 1).

    Returns
    -------
    Skill
        The interval is that of Student's t over the fits without one model, on the scale of
        ``log(1 - skill)``, so that it ends below 1. NaN below 3 models and where human ratings are
        all equal; the interval also where they are, or no residual is left, without one model.

    References
    ----------
    B. Efron and R. J. Tibshirani (1993), An Introduction to the Bootstrap, chapter 11, for the
    jackknife; A. H. Murphy (1988), Monthly Weather Review 116(12), for skill scores.
    """
    error, human, noise = (
        np.asarray(column, dtype=float) for column in (residual, human_rating, human_std_error)
    )
    size, known = error.size, noise[np.isfinite(noise)]
    floor = math.sqrt(2 / math.pi * float(np.mean(known**2))) if known.size else math.nan
    if size < 3 or np.ptp(human) == 0:
        return Skill(math.nan, math.nan, math.nan, floor)

    def log_lack(squares: Floats, ratings: Floats) -> Floats:
        """Return log(1 - skill) of squared residuals (..., n) about human ratings (..., n)."""
        about = ratings - ratings.mean(axis=-1, keepdims=True)
        spread = (about**2).sum(axis=-1)
        lack = squares.sum(axis=-1) / np.where(spread > 0, spread, math.nan)
        return np.asarray(np.log(np.where(lack > 0, lack, math.nan)))

    if not error.any():
        return Skill(1.0, math.nan, math.nan, floor)
    whole = float(log_lack(error**2, human))
    kept = ~np.eye(size, dtype=bool)
    columns = (np.broadcast_to(column, kept.shape)[kept] for column in (error**2, human))
    without = log_lack(*(column.reshape(size, size - 1) for column in columns))
    variance = (size - 1) / size * float(((without - without.mean()) ** 2).sum())
    reach = float(stdtrit(size - 1, 1 - miscoverage / 2)) * math.sqrt(variance)
    skill, lower, upper = (1 - math.exp(whole + sign * reach) for sign in (0, 1, -1))
    return Skill(skill, lower, upper, floor)


class Calibrating(NamedTuple):
    """Inputs of intervals by one method: n models with votes, columns of their ratings.

    Columns of `HeldOutRatings`, Elo points; `vote_std_error` is that of votes that share questions,
    as people's do. `published` takes the spread of the published intervals: the standard error
    alone.
    """

    model: NDArray[np.str_]
    rating: Floats
    human_rating: Floats
    residual: Floats
    std_error: Floats
    human_std_error: Floats
    vote_std_error: Floats
    n_battles: NDArray[np.int64]
    published: bool = False

    def take(self, rows: NDArray[Any]) -> "Calibrating":
        """Return some of the models (boolean mask or positions)."""
        taken = (getattr(self, field)[rows] for field in self._fields[:-1])
        return Calibrating(*taken)._replace(published=self.published)

    @property
    def excess_sd(self) -> float:
        """``sqrt(mean(residual^2 - std_error^2 - human_std_error^2))``, Elo points; 0 for none."""
        if self.published:
            return 0.0
        excess = self.residual**2 - self.std_error**2 - self.human_std_error**2
        known = excess[np.isfinite(excess)]
        return math.sqrt(max(float(known.mean()), 0.0)) if known.size else 0.0

    def spread(self, std_error: Floats, vote_std_error: Floats) -> Floats:
        """Return models' ``sqrt(std_error^2 + vote_std_error^2 + excess_sd^2)``; NaN without."""
        known = np.where(std_error > 0, std_error, math.nan)
        if self.published:
            return known
        spread: Floats = np.sqrt(known**2 + vote_std_error**2 + self.excess_sd**2)
        return spread

    def scores(self) -> Floats:
        """Return the residuals in units of their spread."""
        return nonconformity_scores(self.residual, self.spread(self.std_error, self.vote_std_error))

    def threshold(self, miscoverage: float) -> float:
        """Return the conformal quantile of the scores."""
        return conformal_quantile(self.scores(), miscoverage=miscoverage)


def calibrate_intervals(
    heldout: HeldOutRatings,
    *,
    miscoverage: float = 0.1,
    n_splits: int = 5,
    seed: int = 0,
    std_error: StdErrorKind = "analytic",
    first_day: Mapping[str, float] | None = None,
    family: Mapping[str, str] | None = None,
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
    family : mapping of str to str, optional
        Family of each model, such as its maker, where it is known.

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
    rows = []
    for method in heldout.judge_methods():
        voted = calibrating_models(heldout, method, std_error)
        evidence = judge_skill(
            voted.residual, voted.human_rating, voted.human_std_error, miscoverage=miscoverage
        )
        size, half = voted.residual.size, voted.residual.size // 2
        rng = keyed_rng(seed, "conformal splits")
        halves = [np.isin(np.arange(size), rng.permutation(size)[:half]) for _ in range(n_splits)]
        tried = [_tried(voted, known, miscoverage) for known in halves]
        threshold, held, width = zip(*tried, strict=True)
        coverage = np.array([hits.mean() for hits in held if hits.size] or [math.nan])
        rows.append((
            method, miscoverage, voted.threshold(miscoverage), voted.excess_sd,
            size, n_splits, half, size - half, float(np.median(threshold)),
            coverage.mean(), coverage.min(), coverage.max(),
            float(np.median(width)), np.min(width), np.max(width),
            *_structured(voted, miscoverage, (first_day or {}, family or {})), *evidence,
            *_published(heldout, method, miscoverage), _note(voted, half, miscoverage),
        ))  # fmt: skip
    return ConformalCalibration(*(np.array(column) for column in zip(*rows, strict=True)))


def calibrating_models(
    heldout: HeldOutRatings, method: str, std_error: StdErrorKind, *, published: bool = False
) -> Calibrating:
    """Return the models that calibrate a method: those with votes and a rating by it.

    ValueError if `std_error` is neither kind, or bootstrap errors were not computed.
    """
    columns = heldout._replace(
        std_error=chosen_std_error(heldout, std_error), vote_std_error=clustered_vote_error(heldout)
    )
    every = Calibrating(*(getattr(columns, field) for field in Calibrating._fields[:-1]))
    own = (heldout.method == method) & np.isfinite(heldout.residual.astype(float))
    return every.take(own)._replace(published=published)


def clustered_vote_error(heldout: HeldOutRatings) -> Floats:
    """Return the standard errors of a vote on each judged battle, questions shared, Elo points."""
    return np.asarray(heldout.vote_std_error * np.sqrt(heldout.design_effect), dtype=float)


def chosen_std_error(heldout: HeldOutRatings, kind: StdErrorKind) -> Floats:
    """Return the standard errors that scale residuals and intervals, in Elo points."""
    if kind not in ("analytic", "bootstrap"):
        raise ValueError(f"std_error must be 'analytic' or 'bootstrap', got {kind!r}")
    is_rated = np.isfinite(heldout.rating.astype(float))
    if kind == "bootstrap" and is_rated.any() and np.isnan(heldout.std_error[is_rated]).all():
        raise ValueError("no bootstrap standard errors: set n_resamples to at least 2")
    return heldout.std_error_analytic if kind == "analytic" else heldout.std_error


def _published(heldout: HeldOutRatings, method: str, miscoverage: float) -> tuple[float, float]:
    """Return threshold and median width (Elo points) of the published intervals.

    Residuals are in bootstrap standard errors, and nothing is added to these; NaN without
    resamples. Source: Kargi and Salinas (2026), arXiv:2606.13221.
    """
    own = heldout.take((heldout.method == method) & np.isfinite(heldout.std_error.astype(float)))
    if not np.isfinite(own.residual).any():
        return math.nan, math.nan
    voted = calibrating_models(own, method, "bootstrap", published=True)
    threshold = voted.threshold(miscoverage)
    return threshold, float(2 * np.median(interval_half_width(threshold, voted.std_error)))


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
    voted: Calibrating, first_day: Mapping[str, float], family: Mapping[str, str]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield splits of voted models by rating, battles, age or family: name, calibrating (K,)."""
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
    families = np.array([family.get(name, "") for name in voted.model.tolist()])
    names, counts = np.unique(families, return_counts=True)
    for name in names[(counts > 1) & (counts < families.size) & (names != "")]:
        yield "other families", families != name


def _structured(
    voted: Calibrating, miscoverage: float, groups: tuple[Mapping[str, float], Mapping[str, str]]
) -> tuple[int, float, str, str]:
    """Return structured coverage: models tested, share covered, and all and bad splits in words."""
    tried: dict[str, list[tuple[NDArray[np.bool_], float]]] = {}
    for name, calibrates in structured_splits(voted, *groups):
        _, held, _ = _tried(voted, calibrates, miscoverage)
        if held.size:
            least, _ = coverage_limits(int(calibrates.sum()), held.size, miscoverage=miscoverage)
            tried.setdefault(name, []).append((held, float(least) * held.size))
    words, below, every = [], [], [np.array([], dtype=bool)]
    for name, splits in tried.items():
        held = np.concatenate([hits for hits, _ in splits])
        words.append(f"{name} {held.sum()} of {held.size}")
        if held.sum() < sum(least for _, least in splits) - 1e-9:
            below.append(words[-1])
        every.append(held)
    whole = np.concatenate(every)
    share = float(whole.mean()) if whole.size else math.nan
    return whole.size, share, "; ".join(words), "; ".join(below)


def _note(voted: Calibrating, n_calibration: int, miscoverage: float) -> str:
    """Return in words which thresholds are infinite, and which models have no spread."""
    notes, scores = [], voted.scores()
    short = [
        f"{count} {where}"
        for where, count in (("on each random split", n_calibration), ("with votes", scores.size))
        if n_above_threshold(count, miscoverage) < 0
    ]
    if short:
        is_stated = len(short) == 1  # only halves are too small
        what = (
            "the intervals stand, but random halves of the models cannot try them"
            if is_stated
            else "every threshold is infinite"
        )
        remedy = "; have humans vote on more models or raise the miscoverage" * (not is_stated)
        notes.append(
            f"{what}: {1 - miscoverage:.0%} coverage needs at least "
            f"{models_needed(miscoverage)} models to calibrate, there are "
            f"{' and '.join(short)}{remedy}"
        )
    if count := int(np.isinf(scores).sum()):
        notes.append(
            f"{count} of {scores.size} calibration models have no standard error (one battle, or "
            "battles that all end alike) and count as misses; judge more of their battles"
        )
    return "; ".join(notes)
