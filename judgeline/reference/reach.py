"""Reach of a reference model: the models that it can anchor, and the effect of abstentions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, require
from judgeline.elo.ratings import kendall
from judgeline.reference.gaps import anchored_elo, soft_counts

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
    partial = np.argwhere(missing.any(axis=2) & ~missing.all(axis=2))
    if partial.size:
        model, prompt = partial[0]
        raise ValueError(
            f"model {model} misses some runs of prompt {prompt} ({len(partial)} such prompts in "
            "all); judge it again or leave the prompt out"
        )
    n_judged = (~missing.all(axis=2)).sum(axis=1)
    # Equal runs have no spread, where a rounded mean would leave them one of 1e-17. NaN spreads,
    # of prompts without a verdict, compare as False: they are not kept.
    spread = np.where(np.ptp(values, axis=2) == 0, 0, values.std(axis=2, ddof=1))
    kept = spread <= max_spread
    bare = np.flatnonzero(~kept.any(axis=1))
    if bare.size:
        raise ValueError(
            f"model {bare[0]} keeps none of its {int(n_judged[bare[0]])} prompts at max_spread "
            f"{max_spread:g}; raise it, or leave the model out"
        )
    mean = values.mean(axis=2)
    before = anchored_elo(*soft_counts(mean)).gap
    gap = anchored_elo(*soft_counts(np.where(kept, mean, np.nan))).gap
    shift = gap - before
    coverage = kept.sum(axis=1) / n_judged
    return Abstention(kept, coverage, gap, shift, shift - shift.mean())
