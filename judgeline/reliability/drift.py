"""Drift of a judge: changes of its verdicts on a frozen panel and on fresh battles, by epoch.

The battles and votes of the panel stay, so that what moves there is the judge; what it says of
fresh battles moves with the judge, and with what it is shown. Values of a battle are exchangeable
over epochs if the judge stays as it is, and fresh battles among each other if, further, models,
questions and voters do. All evidence rests on that, and on calls that are independent.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Bools, Floats, Ints, alike
from judgeline.reliability.evidence import (
    distance_from_mean,
    ever,
    log_evidence,
    name_verdicts,
    sequential_ranks,
    stream_ranks,
    tie_breaks,
)
from judgeline.verdict.outcomes import hard_outcome

FALSE_ALARM = 0.05
"""Probability that a judge and a system that stay as they are ever raise an alarm."""

UNITS: dict[str, str] = {
    "margin": "rubric points",
    "agreement": "share",
    "flip_rate": "share",
    "mean_absolute_score": "rubric points",
    "score_level": "rubric points",
    "position_effect": "rubric points",
    "scored_share": "share",
    "distance": "rubric points",
}
"""Every statistic, with its unit; each is the mean of a value of battles.

``margin`` is the lead of the side that people chose, negative where a judge sides against them;
``agreement`` the share of votes, ties included, that the hard outcome repeats; ``flip_rate`` the
share of battles whose two orders have different winners; ``mean_absolute_score`` the size of a
score difference; ``score_level`` the mean mark, 1 to 10; ``position_effect`` the lead of the
completion that is shown first; ``scored_share`` the share of battles with a usable answer in both
orders; ``distance`` how far a battle's score is from the mean of that battle's scores so far.
"""

_OF_FRESH = tuple(name for name in UNITS if name != "distance")  # a fresh battle is judged once
THRESHOLD = (len(UNITS) + len(_OF_FRESH)) / FALSE_ALARM
"""Evidence from which on a statistic has moved: all tests together alarm as seldom as promised."""

LEAST_BATTLES = 20
"""Battles judged both times, from which on a change is estimated."""

_ROUNDING = 1e-9  # a standard error below it is none


class Judgement(NamedTuple):
    """Battles judged in both orders: shape (n,), or (t, n) over epochs; NaN without an answer.

    `difference_ab`, `difference_ba`: score of A minus B with A, respectively B, shown first;
    `level`: mean of all marks of both orders; rubric points. `reached` tells whether both calls
    reached the judge.
    """

    difference_ab: Floats
    difference_ba: Floats
    level: Floats
    reached: Bools


class Change(NamedTuple):
    """A statistic at the baseline and now; `std_error` is that of the paired change.

    Units are those of the statistic, `z` is in standard errors. What cannot be had is NaN, and
    `note` says why.
    """

    baseline: float
    now: float
    change: float
    std_error: float
    z: float
    n_battles: int
    note: str


class Drift(NamedTuple):
    """A row per epoch and statistic: a `Change` since epoch 0, and the evidence so far.

    `epoch` counts from 1. `e_value` is the evidence that the panel's values moved and
    `fresh_e_value` that those of fresh battles did; `moved` and `fresh_moved` whether they have
    ever reached `THRESHOLD`; `verdict` is of the whole epoch.
    """

    epoch: Ints
    statistic: NDArray[np.str_]
    unit: NDArray[np.str_]
    baseline: Floats
    now: Floats
    change: Floats
    std_error: Floats
    z: Floats
    n_battles: Ints
    note: NDArray[np.str_]
    e_value: Floats
    fresh_e_value: Floats
    moved: Bools
    fresh_moved: Bools
    verdict: NDArray[np.str_]


class Fresh(NamedTuple):
    """Battles outside the panel, each judged once, in the order in which they came.

    `epoch` (n,) is the first whose verdict counts them; 0 are those before the first. By
    `battle_id` (n,) ties are broken.
    """

    judged: Judgement
    human_outcome: Floats
    epoch: Ints
    battle_id: NDArray[np.str_]


def detect_drift(
    panel: Judgement,
    human_outcome: ArrayLike,
    fresh: Fresh | None = None,
    *,
    battle_id: ArrayLike | None = None,
) -> Drift:
    """Return what has moved since the baseline by each epoch, and whether judge or system did.

    If nothing changes, calls are independent, and fresh battles are too, any statistic at all is
    ever said to have moved with probability at most `FALSE_ALARM`, however often one looks. On the
    reason to look: L. Chen, M. Zaharia and J. Zou (2023), arXiv:2307.09009; on two streams, one of
    them an anchor: arXiv:2606.15474.

    Parameters
    ----------
    panel : Judgement
        The same n battles in t epochs, (t, n), the baseline first; NaN where one was not asked.
    human_outcome : array_like, shape (n,)
        A's share of the human win: 1, 0.5, 0, NaN without a vote.
    fresh : Fresh, optional
        What else the judge has judged meanwhile.
    battle_id : array_like of str, shape (n,), optional
        Ids of the panel's battles, by which ties are broken; their places by default.

    Raises
    ------
    ValueError
        If columns differ in shape.
    """
    alike(2, **panel._asdict())
    votes = np.asarray(human_outcome, dtype=float)
    ids = np.arange(votes.size) if battle_id is None else np.asarray(battle_id)
    alike(panel=panel.level[0], human_outcome=votes, battle_id=ids)
    values, ties = battle_values(panel, votes), tie_breaks(ids, len(panel.level))
    logs = {name: log_evidence(_ranks(values[name], ties, name)[1:]) for name in UNITS}
    fresh_logs = _fresh_evidence(fresh, len(panel.level))
    both = [np.column_stack([log[name] for name in UNITS]) for log in (logs, fresh_logs)]
    moved, fresh_moved = (ever(log >= math.log(THRESHOLD)) for log in both)
    verdicts = name_verdicts(moved.any(axis=1), fresh_moved.any(axis=1))
    rows = [
        (epoch, name, UNITS[name], *_since_baseline(values[name][: epoch + 1], name))
        for epoch in range(1, len(panel.level))
        for name in UNITS
    ]
    columns = zip(*rows, strict=True) if rows else [()] * (3 + len(Change._fields))
    evidence = [np.exp(np.minimum(log, 700)).ravel() for log in both]
    told = [moved.ravel(), fresh_moved.ravel(), np.repeat(verdicts, len(UNITS))]
    return Drift._make([*map(np.array, columns), *evidence, *told])


def battle_values(judged: Judgement, votes: Floats) -> dict[str, Floats]:
    """Return the value of each battle by statistic, of the shape of `judged`; NaN for none."""
    first, second = judged.difference_ab, judged.difference_ba
    score, lead, product = (first + second) / 2, (first - second) / 2, first * second
    decisive = np.where(votes == 0.5, np.nan, votes)
    return {
        "margin": score * (2 * decisive - 1),
        "agreement": _agrees(first, second, votes),
        "flip_rate": np.where(np.isnan(product), np.nan, product < 0),
        "mean_absolute_score": np.abs(score),
        "score_level": judged.level,
        "position_effect": lead,
        "scored_share": np.where(judged.reached, np.isfinite(score), np.nan),
        "distance": score,
    }


def _agrees(first: Floats, second: Floats, votes: Floats) -> Floats:
    """Return where the hard outcome is that of the vote, NaN without either."""
    known = np.isfinite(first + second + votes)
    agrees, people = np.full(first.shape, np.nan), np.broadcast_to(votes, first.shape)
    agrees[known] = hard_outcome(first[known], second[known]) == people[known]
    return agrees


def _ranks(values: Floats, ties: Floats, name: str) -> Floats:
    return sequential_ranks(values, ties, strangeness=name == "distance")


def _since_baseline(values: Floats, name: str) -> Change:
    shown = distance_from_mean(values) if name == "distance" else values
    return mean_change(shown[0], shown[-1])


def _fresh_evidence(fresh: Fresh | None, n_epochs: int) -> dict[str, Floats]:
    """Return the evidence of fresh battles by statistic, NaN for what they do not have."""
    logs = dict.fromkeys(UNITS, np.full(n_epochs - 1, np.nan))
    if fresh is None or not fresh.epoch.size:
        return logs
    values = battle_values(fresh.judged, fresh.human_outcome)
    (ties,) = tie_breaks(fresh.battle_id, 1)  # each is ranked once
    for name in _OF_FRESH:
        ranks = stream_ranks(values[name], fresh.epoch, ties, n_epochs=n_epochs)
        logs[name] = log_evidence(ranks)
    return logs


def mean_change(before: ArrayLike, after: ArrayLike) -> Change:
    """Return the change of a mean (n,) of paired values; battles with NaN are left out."""
    first, second = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    known = np.isfinite(first + second)
    n, difference = int(known.sum()), (second - first)[known]
    if n < LEAST_BATTLES:
        note = f"{n} battles were judged both times; {LEAST_BATTLES} are needed"
        return Change(*(math.nan,) * 5, n, note)
    change, std_error = float(difference.mean()), float(difference.std(ddof=1)) / math.sqrt(n)
    z = change / std_error if std_error > _ROUNDING else math.nan
    note = "" if difference.any() else "nothing differs from the baseline"
    means = float(first[known].mean()), float(second[known].mean())
    return Change(*means, change, std_error, z, n, note)
