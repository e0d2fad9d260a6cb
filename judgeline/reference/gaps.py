"""Reference-anchored Elo: how far each model is from one fixed opponent, in Elo points.

Every model meets the same reference model on the same prompts, and nobody else. A gap speaks
of that reference and those prompts alone; it takes no other model to estimate it. The reach of a
reference is which models it can anchor.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, logit

from judgeline.arrays import Floats, alike_floats, require
from judgeline.elo.ratings import kendall
from judgeline.elo.strengths import ELO_PER_LOGIT

JEFFREYS = 0.5
"""Prior wins, and prior losses, of every model: Jeffreys' prior of a share is Beta(1/2, 1/2)."""


class AnchoredElo(NamedTuple):
    """One entry per model, all of one shape.

    `win_share` is the posterior mean of the share of wins, ties counted half, with bounds
    `share_lower` and `share_upper`. `gap`, its bounds `lower` and `upper`, and `std_error` are
    in Elo points relative to the reference model (0 is its equal). `n_prompts` counts verdicts.
    """

    win_share: Floats
    share_lower: Floats
    share_upper: Floats
    gap: Floats
    lower: Floats
    upper: Floats
    std_error: Floats
    n_prompts: Floats


def anchored_elo(
    wins: ArrayLike,
    ties: ArrayLike,
    losses: ArrayLike,
    *,
    miscoverage: float = 0.05,
    prior: float = JEFFREYS,
) -> AnchoredElo:
    """Return Elo gaps to the reference with Jeffreys-Beta credible intervals.

    The posterior of the win share is ``Beta(a, b)``, ``a = W + T/2 + 1/2`` and ``b = L + T/2 +
    1/2``: each prompt counts as one independent win or loss, which is exact without ties. With
    ties or soft preferences the interval is too wide; see `anchored_elo_of_preferences`. The gap is
    ``(400 / ln 10) logit(a / (a + b))``, its error by the delta method.

    Parameters
    ----------
    wins, ties, losses : array_like, one shape
        Prompts of each model, not necessarily whole (`soft_counts`); at least one a model.
    miscoverage : float
        Probability outside of the interval, in (0, 1), half of it on either side.
    prior : float
        Wins, and losses, added to every model, above 0: 1/2 is Jeffreys' prior, 1 Laplace's.

    Raises
    ------
    ValueError
        If a count is negative or not finite, shapes differ, a model has no prompt, or the prior
        is not above 0.

    References
    ----------
    L. D. Brown, T. T. Cai and A. DasGupta (2001), "Interval Estimation for a Binomial
    Proportion", Statistical Science 16(2), section 3.2, for the Jeffreys interval; "Robust
    LLM-based Scoring via Reference-Anchored Elo Estimation" (2025) for its use on Elo gaps.
    """
    counts = {"wins": wins, "ties": ties, "losses": losses}
    won, tied, lost = arrays = alike_floats(np.ndim(wins), **counts)
    for name, values in zip(counts, arrays, strict=True):
        require(np.isfinite(values) & (values >= 0), name, values, "finite counts, 0 or more")
    n_prompts: Floats = won + tied + lost
    _require_prompts(n_prompts, 1)
    require(0 < prior < np.inf, "prior", prior, "a finite number above 0")
    model = won + tied / 2 + prior
    reference = lost + tied / 2 + prior
    return _from_beta(model, reference, n_prompts, miscoverage)


def soft_counts(preference: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return fractional wins, no ties, and losses of soft preferences (..., prompts).

    NaN is no verdict. A tie given as 0.5 is half a win and half a loss, as in `anchored_elo`; a
    preference outside [0, 1] raises `ValueError`.
    """
    values = _preferences(preference)
    wins = np.nansum(values, axis=-1)
    return wins, np.zeros_like(wins), np.nansum(1 - values, axis=-1)


def anchored_elo_of_preferences(preference: ArrayLike, *, miscoverage: float = 0.05) -> AnchoredElo:
    """Return Elo gaps to the reference whose errors come from the spread over prompts.

    The gap is that of `anchored_elo` on `soft_counts`, which adds half a prompt won and half a
    prompt lost. The variance of the share counts both halves as prompts too: preferences that
    happen to be near each other do not make it small. It assumes independent prompts and nothing
    about how a single preference is distributed. The standard error is the delta method's, the
    interval that of a Beta with this mean and variance: it stays inside (0, 1) and leans as the
    Jeffreys one does. Source: P. McCullagh and J. A. Nelder (1989), Generalized Linear Models, 2nd
    ed., section 4.5, on shares whose variance differs from the binomial one.

    Preferences (..., prompts) are probabilities that the model's answer beats the reference's; 0.5
    is a tie, NaN a prompt without a verdict. One outside [0, 1], a model with fewer than two
    verdicts, or with equal ones that show no spread, is a `ValueError`.
    """
    values = _preferences(preference)
    n_prompts = np.isfinite(values).sum(axis=-1).astype(float)
    _require_prompts(n_prompts, 2)
    largest = np.nanmax(values, axis=-1)
    remedy = "unequal ones; leave the model out (is it the reference itself?) or use anchored_elo"
    spread = largest > np.nanmin(values, axis=-1)
    require(spread, "every preference of a model", largest, f"{remedy} on its counts")
    wins, _, losses = soft_counts(values)
    total = n_prompts + 2 * JEFFREYS
    share = (wins + JEFFREYS) / total
    squares = np.nansum((values - share[..., None]) ** 2, axis=-1)
    variance = (squares + JEFFREYS * (share**2 + (1 - share) ** 2)) / total**2
    # Variance of a Beta is share (1 - share) / (concentration + 1); solved for the latter.
    concentration = share * (1 - share) / variance - 1
    return _from_beta(
        share * concentration, (losses + JEFFREYS) / total * concentration, n_prompts, miscoverage
    )


def bootstrap_gap_std_error(
    preference: ArrayLike, *, n_resamples: int, rng: np.random.Generator
) -> float:
    """Return the spread of a model's gap, in Elo points, when its prompts are weighed at random.

    The slow twin of the closed standard errors, by D. B. Rubin (1981), "The Bayesian Bootstrap",
    Annals of Statistics 9(1). The half prompt won and the half prompt lost of Jeffreys' prior are
    weighed too: on wins and losses alone this is the Beta posterior of the gap, drawn. It is 0
    where all preferences are equal, which shows no spread rather than none. Preferences (prompts,)
    are as in `anchored_elo_of_preferences`; the spread is known to about ``1 / sqrt(2
    n_resamples)`` of itself.
    """
    values = _preferences(preference)
    require(values.ndim == 1, "the shape of preference", values.shape, "(prompts,)")
    require(n_resamples >= 2, "n_resamples", n_resamples, "at least 2, to show a spread")
    known = values[~np.isnan(values)]
    if not known.size:
        raise ValueError("no prompt has a verdict: there is nothing to resample")
    if known.min() == known.max():
        return 0.0
    prompts = np.append(known, [1.0, 0.0])
    weight = np.append(np.ones(known.size), [JEFFREYS, JEFFREYS])
    drawn = rng.standard_gamma(weight, size=(n_resamples, prompts.size))
    gaps = ELO_PER_LOGIT * np.log((drawn @ prompts) / (drawn @ (1 - prompts)))
    return float(gaps.std(ddof=1))


def subset_std_error(preference: ArrayLike, n_prompts: int) -> Floats:
    """Return the spread of the win share over all subsets of n of a model's prompts, (...).

    Preferences (..., prompts) are as in `anchored_elo_of_preferences`; their M verdicts are the
    population. With S their standard deviation (ddof 1) it is ``n / (n + 1) S sqrt(1/n - 1/M)``,
    of the Jeffreys share, what random subsets drawn without end would show. Fewer than two verdicts
    or than n are a `ValueError`. Source: W. G. Cochran (1977), Sampling Techniques, 3rd ed.,
    theorem 2.2.
    """
    values = _preferences(preference)
    known = np.isfinite(values).sum(axis=-1).astype(float)
    require(n_prompts >= 1, "n_prompts", n_prompts, "at least 1")
    _require_prompts(known, max(2, n_prompts))
    spread = np.nanstd(values, axis=-1, ddof=1)
    shrunk = n_prompts / (n_prompts + 2 * JEFFREYS)
    return np.asarray(shrunk * spread * np.sqrt(1 / n_prompts - 1 / known))


def finite_population_factor(n_prompts: ArrayLike, n_population: int) -> Floats:
    """Return ``sqrt((M - n) / (M - 1))`` for n prompts drawn from a population of M.

    Standard errors are multiplied by it when the claim is about those `n_population` prompts
    themselves, drawn without replacement; for a claim about prompts at large the factor is 1. An
    empty sample or one larger than its population is a `ValueError`. Source: W. G. Cochran (1977),
    Sampling Techniques, 3rd ed., section 2.6.
    """
    drawn = np.asarray(n_prompts, dtype=float)
    require(n_population >= 2, "n_population", n_population, "at least 2 prompts")
    whole = (drawn >= 1) & (drawn <= n_population)
    require(whole, "n_prompts", drawn, f"1 to {n_population}")
    return np.asarray(np.sqrt((n_population - drawn) / (n_population - 1)))


def narrow_intervals(elo: AnchoredElo, factor: ArrayLike) -> AnchoredElo:
    """Return the same gaps with errors and intervals, in Elo points, multiplied by a factor.

    The factor in [0, 1], else `ValueError`, is `finite_population_factor`,
    `judgeline.reliability.reliability_factor` or a product of the two.
    """
    scale = np.asarray(factor, dtype=float)
    require((scale >= 0) & (scale <= 1), "factor", scale, "a factor in [0, 1]")
    lower: Floats = elo.gap - scale * (elo.gap - elo.lower)
    upper: Floats = elo.gap + scale * (elo.upper - elo.gap)
    return elo._replace(
        lower=lower,
        upper=upper,
        share_lower=expit(lower / ELO_PER_LOGIT),
        share_upper=expit(upper / ELO_PER_LOGIT),
        std_error=scale * elo.std_error,
    )


def _from_beta(
    model: Floats, reference: Floats, n_prompts: Floats, miscoverage: float
) -> AnchoredElo:
    require(0 < miscoverage < 1, "miscoverage", miscoverage, "strictly between 0 and 1")
    total = model + reference
    share = model / total
    share_lower = np.asarray(betaincinv(model, reference, miscoverage / 2), dtype=float)
    # The reference's share, from its own side: near 1 the model's would round away.
    reference_lower = np.asarray(betaincinv(reference, model, miscoverage / 2), dtype=float)
    # sqrt(ab / ((a+b)^2 (a+b+1))) / (p (1-p)), without the cancelling powers
    std_error = ELO_PER_LOGIT * total / np.sqrt(model * reference * (total + 1))
    return AnchoredElo(
        win_share=share,
        share_lower=share_lower,
        share_upper=1 - reference_lower,
        gap=ELO_PER_LOGIT * np.log(model / reference),
        lower=np.asarray(ELO_PER_LOGIT * logit(share_lower), dtype=float),
        upper=np.asarray(-ELO_PER_LOGIT * logit(reference_lower), dtype=float),
        std_error=std_error,
        n_prompts=n_prompts,
    )


def _preferences(preference: ArrayLike) -> Floats:
    values = np.asarray(preference, dtype=float)
    if not values.ndim:
        raise ValueError("preference must have shape (..., prompts), got a single number")
    require(~((values < 0) | (values > 1)), "preference", values, "a preference in [0, 1]")
    return values


def _require_prompts(n_prompts: Floats, least: int) -> None:
    require(n_prompts.size, "the number of models", 0, "at least one to rate")
    expected = f"at least {least} with a verdict"
    require(n_prompts >= least, "the number of prompts of a model", n_prompts, expected)


REACH: tuple[float, float] = (0.2, 0.8)
"""Win shares, bounds included, in which a reference tells models (or prompts) apart."""

LEAST_WITHIN = 0.95
"""Least share of models, or prompts, within reach of a fitting reference."""


class Reach(NamedTuple):
    """Win shares within reach of the reference: `within` marks them, `share` is their share.

    `is_adequate` is False, a flag for the reader, when `share` is below the least accepted.
    """

    within: NDArray[np.bool_]
    share: float
    is_adequate: bool


class ReferenceReach(NamedTuple):
    """Reach of one reference over models and over prompts."""

    models: Reach
    prompts: Reach


class ReferenceComparison(NamedTuple):
    """Leaderboards of the same models under R references.

    `kendall` (R, R) holds tau-b between leaderboards. `shift` (R, models) is the centred gap
    minus that under the first reference, in Elo points; `mean_abs_shift` (R,) its mean size.
    """

    kendall: Floats
    shift: Floats
    mean_abs_shift: Floats


class Abstention(NamedTuple):
    """Leaderboard of a judge that abstains where its runs disagree.

    `kept` (models, prompts) marks prompts that count still; `coverage` (models,) is their
    share; `gap` (models,) is the Elo gap on them, `shift` (models,) that minus the gap on all
    prompts and `centred_shift` the same minus its mean over models, in Elo points.
    """

    kept: NDArray[np.bool_]
    coverage: Floats
    gap: Floats
    shift: Floats
    centred_shift: Floats


def diagnose_reference(preference: ArrayLike) -> ReferenceReach:
    """Return how many models, and how many prompts, a reference is within reach of.

    Win shares are the Jeffreys ones of `preference` (models, prompts), of every model over its
    prompts and of every prompt over its models. Preferences outside [0, 1], and a model or prompt
    with NaN throughout, are a `ValueError`. Source: "Robust LLM-based Scoring" (2025).
    """
    values = np.asarray(preference, dtype=float)
    require(values.ndim == 2, "the shape of preference", values.shape, "(models, prompts)")
    for axis, name in enumerate(("model", "prompt")):
        silent = np.flatnonzero(np.isnan(values).all(axis=1 - axis))
        if silent.size:
            raise ValueError(f"{name} {silent[0]} has no verdict; leave it out")
    found = []
    for side in (values, values.T):
        win_share = anchored_elo(*soft_counts(side)).win_share
        within = (win_share >= REACH[0]) & (win_share <= REACH[1])
        share = float(within.mean())
        found.append(Reach(within, share, share >= LEAST_WITHIN))
    return ReferenceReach(*found)


def compare_references(gap: ArrayLike) -> ReferenceComparison:
    """Return how leaderboards under different references differ.

    A reference only moves the origin if strengths are one-dimensional: gaps then differ by a
    constant, centred shifts are 0 and every tau (M. G. Kendall, 1945, Biometrika 33(3)) is 1. What
    is found beyond the standard errors is the reference's own doing. Elo gaps (references, models)
    are of the same models, the reference models left out of all rows; fewer than two of either, a
    gap that is not finite, or a reference that ranks nothing is a `ValueError`.
    """
    gaps = np.asarray(gap, dtype=float)
    is_wide = gaps.ndim == 2 and min(gaps.shape) >= 2
    require(is_wide, "the shape of gap", gaps.shape, "(references >= 2, models >= 2)")
    require(np.isfinite(gaps), "gap", gaps, "finite Elo points")
    require(np.ptp(gaps, axis=1) > 0, "every gap", gaps[:, 0], "gaps that differ under a reference")
    centred = gaps - gaps.mean(axis=1, keepdims=True)
    shift = centred - centred[0]
    tau = np.array([[kendall(ours, theirs) for theirs in gaps] for ours in gaps])
    return ReferenceComparison(tau, shift, np.abs(shift).mean(axis=1))


def abstain(preference: ArrayLike, *, max_spread: float) -> Abstention:
    """Return the leaderboard without the prompts on which a judge's runs disagree.

    Prompts are dropped by what the judge did on them, not at random: the remaining ones are
    easier to judge, and a shift is to be expected. It is reported for that reason. Preferences
    (models, prompts, runs) lie in [0, 1], NaN in all runs of a prompt that the model has no verdict
    on; `max_spread` is the largest standard deviation over the runs (ddof 1) that counts. Another
    shape, a prompt with some runs but not all, or a model that keeps no prompt is a `ValueError`.
    """
    values = np.asarray(preference, dtype=float)
    has_runs = values.ndim == 3 and values.shape[2] >= 2
    require(has_runs, "the shape of preference", values.shape, "(models, prompts, runs >= 2)")
    require(max_spread >= 0, "max_spread", max_spread, "at least 0")
    missing = np.isnan(values)
    whole = missing.all(axis=2) | ~missing.any(axis=2)
    remedy = f"all {values.shape[2]} or none of a model's prompt; judge it again or leave it out"
    require(whole, "the number of runs", (~missing).sum(axis=2), remedy)
    n_judged = (~missing.all(axis=2)).sum(axis=1)
    # Equal runs have no spread, where a rounded mean would leave them one of 1e-17. NaN spreads,
    # of prompts without a verdict, compare as False: they are not kept.
    spread = np.where(np.ptp(values, axis=2) == 0, 0, values.std(axis=2, ddof=1))
    kept = spread <= max_spread
    n_kept, remedy = kept.sum(axis=1), "raise it, or leave the model out"
    expected = f"at least 1 at max_spread {max_spread:g}; {remedy}"
    require(n_kept > 0, "the number of prompts kept of a model", n_kept, expected)
    mean = values.mean(axis=2)
    before = anchored_elo(*soft_counts(mean)).gap
    gap = anchored_elo(*soft_counts(np.where(kept, mean, np.nan))).gap
    shift = gap - before
    return Abstention(kept, n_kept / n_judged, gap, shift, shift - shift.mean())
