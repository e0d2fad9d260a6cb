"""Drift of a judge: statistics of the same battles, judged at a baseline and now, compared."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, alike, require
from judgeline.reliability.paired import (
    LEAST_BATTLES,
    PairedChange,
    beta_change,
    call_change,
    mean_change,
    refused,
    repeat_change,
    share_change,
)
from judgeline.verdict.outcomes import hard_outcome

FALSE_ALARM = 0.01
"""Probability that an epoch without any change raises an alarm, over all statistics together."""

UNITS: dict[str, str] = {
    "beta": "logits per rubric point",
    "flip_rate": "share",
    "agreement": "share",
    "mean_absolute_score": "rubric points",
    "score_level": "rubric points",
    "position_effect": "rubric points",
    "scored_share": "share",
    "run_distance": "rubric points",
    "call_distance": "rubric points",
}
"""Every statistic, with its unit.

``beta`` is the slope on votes, below zero where a judge sides against them; ``flip_rate`` the
share of battles whose two orders have different winners; ``agreement`` the share of votes, ties
included, that the hard outcome repeats; ``mean_absolute_score`` the mean size of a score
difference; ``score_level`` the mean mark, 1 to 10; ``position_effect`` the mean lead of the
completion that is shown first; ``scored_share`` the share of battles with a usable answer in both
orders; ``run_distance`` the mean distance between two judgements of one battle, ``call_distance``
that between two calls of one battle in different orders; both only count when they grow.
"""

NO_RUNS = "nothing says how far repeats of one day differ: no runs of a reliability panel"


class Judgement(NamedTuple):
    """Battles judged once in both orders, n of them; NaN where an order has no usable answer.

    `difference_ab`, `difference_ba`: score of A minus B with A, respectively B, shown first;
    `level`: mean of all marks of both orders. Rubric points.
    """

    difference_ab: Floats
    difference_ba: Floats
    level: Floats


class Drift(NamedTuple):
    """One row per statistic, in the order of `UNITS`; `PairedChange` has the columns.

    `moved` tells whether it moved beyond what chance explains.
    """

    statistic: NDArray[np.str_]
    unit: NDArray[np.str_]
    baseline: Floats
    now: Floats
    change: Floats
    std_error: Floats
    z: Floats
    p_value: Floats
    n_battles: NDArray[np.int64]
    moved: NDArray[np.bool_]
    note: NDArray[np.str_]


def detect_drift(
    baseline: Judgement,
    now: Judgement,
    human_outcome: ArrayLike,
    *,
    runs: ArrayLike | None = None,
    false_alarm: float = FALSE_ALARM,
) -> Drift:
    """Return which statistics of a judge have moved since the baseline, a row each.

    If nothing changed, each battle's two judgements are exchangeable; if, further, calls are
    independent of each other, any statistic at all has moved with probability at most about
    `false_alarm` (Bonferroni over all of them, whether or not they can be had: O. J. Dunn, 1961,
    JASA 56(293)). It holds for one epoch: of w epochs without a change, `w * false_alarm` are
    expected to raise a false alarm, and since all are held against one baseline, those come
    together. A statistic that cannot be had has no value, and its note says why. On the reason to
    look: L. Chen, M. Zaharia and J. Zou (2023), "How is ChatGPT's behavior changing over time?",
    arXiv:2307.09009.

    Parameters
    ----------
    baseline, now : Judgement
        The same n battles; leave out those whose call never reached the judge.
    human_outcome : array_like, shape (n,)
        A's share of the human win: 1, 0.5, 0, NaN without a vote.
    runs : array_like, shape (n, k), optional
        Score differences of runs of the time of the baseline, its own the first, in rubric
        points; NaN where a battle was not judged so often.
    false_alarm : float
        Tolerated probability of any alarm without a change, in (0, 1).

    Raises
    ------
    ValueError
        If `false_alarm` is outside (0, 1), or the columns differ in length.
    """
    require(0 < false_alarm < 1, "false_alarm", false_alarm, "strictly between 0 and 1")
    votes = np.asarray(human_outcome, dtype=float)
    for when, judged in (("baseline", baseline), ("now", now)):
        columns = {f"{name} of {when}": column for name, column in judged._asdict().items()}
        alike(human_outcome=votes, **columns)
    changes = dict(_changes(baseline, now, votes, runs))
    limit = false_alarm / len(UNITS)
    rows = [
        (name, UNITS[name], *change[:-1], change.p_value <= limit, change.note)
        for name, change in changes.items()
    ]
    return Drift(*(np.array(column) for column in zip(*rows, strict=True)))


def _changes(
    baseline: Judgement, now: Judgement, votes: Floats, runs: ArrayLike | None
) -> Iterator[tuple[str, PairedChange]]:
    both = baseline, now
    scores = [(one.difference_ab + one.difference_ba) / 2 for one in both]
    yield "beta", _with_votes(votes, beta_change(scores[0], scores[1], votes))
    products = [one.difference_ab * one.difference_ba for one in both]
    flips = [np.where(np.isnan(product), np.nan, product < 0) for product in products]
    yield "flip_rate", share_change(*flips)
    yield "agreement", _with_votes(votes, share_change(*(_agrees(one, votes) for one in both)))
    yield "mean_absolute_score", mean_change(*(np.abs(score) for score in scores))
    yield "score_level", mean_change(*(one.level for one in both))
    leads = [(one.difference_ab - one.difference_ba) / 2 for one in both]
    yield "position_effect", mean_change(*leads)
    yield "scored_share", share_change(*(np.isfinite(score) for score in scores))
    distance = refused(NO_RUNS, 0) if runs is None else repeat_change(scores[1], runs)
    if runs is not None and distance.n_battles < LEAST_BATTLES:
        distance = refused(f"{distance.note}, in every run of the panel too", distance.n_battles)
    yield "run_distance", distance
    yield "call_distance", call_change(*(column for one in both for column in one[:2]))


def _agrees(judged: Judgement, votes: Floats) -> Floats:
    """Return where the hard outcome is that of the vote, NaN without either."""
    known = np.isfinite(judged.difference_ab + judged.difference_ba + votes)
    agrees = np.full(votes.size, np.nan)
    ours = hard_outcome(judged.difference_ab[known], judged.difference_ba[known])
    agrees[known] = ours == votes[known]
    return agrees


def _with_votes(votes: Floats, change: PairedChange) -> PairedChange:
    return change if np.isfinite(votes).any() else refused("no battle has a vote", 0)
