"""How many battles humans should label, and of which kind, before any of them is.

Calibration battles can be chosen by the human outcome, where votes exist and are only revealed,
or by the judge's verdict, which is known before anybody votes. The two feed different
estimators: the first specificity and sensitivity, which a choice by verdict would distort; the
second the conditional estimate, which a choice by human outcome would distort.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from judgeline.winrate.counts import (
    JudgeCounts,
    bernoulli_variance,
    judge_rates,
    normal_quantile,
    smoothed_rates,
)


class LabelPlan(NamedTuple):
    """Battles to label beyond those labelled, and the half-width to expect then.

    `n_won` and `n_lost` are further battles of either kind: as humans or as the judge call them,
    by the function that made the plan. `half_width` is a share of battles.
    """

    n_won: int
    n_lost: int
    half_width: float


def plan_by_human_outcome(
    counts: JudgeCounts, *, half_width: float, miscoverage: float = 0.05
) -> LabelPlan:
    """Return the fewest further labels, by human outcome, that reach a half-width.

    Of the interval of `adjusted_mean`, if the judge goes on as in the battles at hand.

    Parameters
    ----------
    counts : JudgeCounts
        Whole numbers: the battles at hand, a pilot.
    half_width : float
        Wanted half-width, a share of battles above 0.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    LabelPlan
        By human outcome; nothing to label where the interval is short enough.

    Raises
    ------
    ValueError
        If the counts have no interval, or the test battles alone make it wider than wanted.

    References
    ----------
    J. Neyman (1934), JRSS 97(4), for the division: in proportion to standard deviations.
    """
    rates = smoothed_rates(_scalars(counts), miscoverage=miscoverage)
    win_rate, skill = float(rates.win_rate), float(rates.skill)
    spread = (
        float((win_rate / skill) ** 2 * bernoulli_variance(rates.sensitivity)),
        float(((1 - win_rate) / skill) ** 2 * bernoulli_variance(rates.specificity)),
    )
    sampling = float(bernoulli_variance(rates.share) / rates.n_test / skill**2)
    have = (float(rates.n_won), float(rates.n_lost))
    return _plan(sampling, spread, have, half_width, normal_quantile(miscoverage))


def plan_by_verdict(
    counts: JudgeCounts, *, half_width: float, miscoverage: float = 0.05
) -> LabelPlan:
    """Return the fewest further labels, by the judge's verdict, that reach a half-width.

    Of the conditional estimate of `compare_estimators`, whose assumption is that verdicts mean
    the same in calibration and test battles: draw the battles to label from the test battles'
    population, at random within each verdict. Labels so chosen must not enter
    `adjusted_mean`. Shares of human wins per verdict are smoothed by one battle a side.

    Parameters
    ----------
    counts : JudgeCounts
        Whole numbers: the battles at hand, a pilot.
    half_width : float
        Wanted half-width, a share of battles above 0.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    LabelPlan
        By the judge's verdict; `plan_in_words` says it.

    Raises
    ------
    ValueError
        If the counts have no interval, or the test battles alone make it wider than wanted.

    References
    ----------
    A. Tenenbein (1970), JASA 65(331), and J. Neyman (1934), JRSS 97(4).
    """
    checked = _scalars(counts)
    rates = smoothed_rates(checked, miscoverage=miscoverage)
    n_lost, lost_right, n_won, won_right = (float(np.asarray(part)) for part in checked[2:])
    have = (won_right + n_lost - lost_right + 2, lost_right + n_won - won_right + 2)
    if_won, if_lost = (won_right + 1) / have[0], (n_won - won_right + 1) / have[1]
    share = float(rates.share)
    spread = (
        share**2 * if_won * (1 - if_won),
        (1 - share) ** 2 * if_lost * (1 - if_lost),
    )
    sampling = (if_won - if_lost) ** 2 * share * (1 - share) / float(rates.n_test)
    return _plan(sampling, spread, have, half_width, normal_quantile(miscoverage))


def plan_in_words(
    plan: LabelPlan, *, said_by: str = "the judge", won: str = "A", lost: str = "B"
) -> str:
    """Return a plan as a sentence.

    Parameters
    ----------
    plan : LabelPlan
        From `plan_by_verdict`, or from `plan_by_human_outcome` with ``said_by="humans"``.
    said_by : str
        Whose outcome divides the battles.
    won, lost : str
        What they said where the model of interest won, and lost.

    Returns
    -------
    str
        Such as ``Label 140 more battles, 90 where the judge said A and 50 where the judge said
        B, for a half-width of 3.0 points of the win rate in per cent.``
    """
    total = plan.n_won + plan.n_lost
    reach = f"a half-width of {100 * plan.half_width:.1f} points of the win rate in per cent"
    if not total:
        return f"No more labels are needed for {reach}."
    return (
        f"Label {total} more {'battle' if total == 1 else 'battles'}, {plan.n_won} where {said_by} "
        f"said {won} and {plan.n_lost} where {said_by} said {lost}, for {reach}."
    )


def _plan(
    sampling: float,
    spread: tuple[float, float],
    have: tuple[float, float],
    half_width: float,
    quantile: float,
) -> LabelPlan:
    """Return the fewest labels with ``sampling + sum(spread / n) <= (half_width/quantile)**2``."""
    if not 0 < half_width < math.inf:
        raise ValueError(f"half_width must be a positive share of battles, got {half_width}")
    budget = (half_width / quantile) ** 2 - sampling
    if budget <= 0:
        raise ValueError(
            f"half-width {half_width:.4g} is out of reach: the test battles alone leave "
            f"{quantile * math.sqrt(sampling):.4g}; have the judge call more battles"
        )

    def variance(more: tuple[int, int]) -> float:
        return sum(s / (h + m) for s, h, m in zip(spread, have, more, strict=True))

    roots = [math.sqrt(value) for value in spread]
    need = [root * sum(roots) / budget for root in roots]
    more = (math.ceil(max(need[0] - have[0], 0)), math.ceil(max(need[1] - have[1], 0)))
    # More than needed of one kind, or rounded up twice: the best plan is fewer labels away.
    while (fewer := _one_fewer(more, variance, budget)) is not None:
        more = fewer
    return LabelPlan(*more, quantile * math.sqrt(sampling + variance(more)))


def _one_fewer(
    more: tuple[int, int], variance: Callable[[tuple[int, int]], float], budget: float
) -> tuple[int, int] | None:
    """Return the plan with one label less that still keeps the budget, if there is one."""
    candidates = [(more[0] - 1, more[1]), (more[0], more[1] - 1)]
    kept = [plan for plan in candidates if min(plan) >= 0 and variance(plan) <= budget]
    return min(kept, key=variance) if kept else None


def _scalars(counts: JudgeCounts) -> JudgeCounts:
    shape = judge_rates(counts).share.shape
    if shape:
        raise ValueError(f"a plan is for one win rate, got counts of shape {shape}")
    return counts
