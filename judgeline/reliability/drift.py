"""Drift of a judge: statistics of the same battles, judged at a baseline and now, compared.

The battles and their votes are the same both times, so that an error of the change is that of
paired differences; the errors of the two estimates, taken apart, would be far too large. Without
a change the two judgements of a battle are exchangeable, and a difference is as likely as its
opposite. All tests here rest on that, and on calls that are independent of each other.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, expit, stdtr

from judgeline.arrays import Floats, alike, alike_floats, require
from judgeline.elo.beta import BetaFit, fit_beta
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


class PairedChange(NamedTuple):
    """A statistic at the baseline and now, and its change, in the unit of the statistic.

    `std_error` is that of the change and `z` the change in standard errors; `p_value` the
    probability of one at least as large without a change. What cannot be had is NaN, and `note`
    says why.
    """

    baseline: float
    now: float
    change: float
    std_error: float
    z: float
    p_value: float
    n_battles: int
    note: str


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


LEAST_BATTLES = 20
"""Battles judged both times, from which on a change is estimated."""

_ROUNDING = 1e-9  # differences this much alike, relative to their size, are equal
_DECIMALS = 9  # of distances, in rubric points
_NO_CHANGE = 1e-9  # standard errors, below which a change is lost in rounding


def refused(note: str, n_battles: int, baseline: float = math.nan) -> PairedChange:
    """Return a change that cannot be had, with the reason."""
    return PairedChange(baseline, *(math.nan,) * 5, n_battles, note)


def mean_change(before: ArrayLike, after: ArrayLike, *, only_rises: bool = False) -> PairedChange:
    """Return the change of a mean (n,), tested by Student's t on the differences.

    Battles with NaN are left out. Equal differences have no standard error: where all are zero
    there is no p-value, else it is that of their signs. B. Efron (1969), JASA 64(328): differences
    that are symmetric about zero, however distributed, keep the tails of t from growing.
    """
    first, second = _known_in_all(before=before, after=after)
    n, difference = first.size, second - first
    if n < LEAST_BATTLES:
        return _too_few(n)
    centre = float(first.mean()), float(second.mean())
    if not difference.any():
        note = "nothing differs from the baseline"
        return PairedChange(*centre, 0.0, 0.0, math.nan, math.nan, n, note)
    if np.ptp(difference) <= _ROUNDING * np.abs(difference).max():
        note = "every battle changed by the same: a change without spread has no standard error"
        p_value = _sign_test(difference, only_rises)
        return PairedChange(*centre, centre[1] - centre[0], 0.0, math.nan, p_value, n, note)
    change = float(difference.mean())
    std_error = float(difference.std(ddof=1)) / math.sqrt(n)
    z = change / std_error
    tail = float(stdtr(n - 1, -z if only_rises else -abs(z)))
    p_value = tail if only_rises else min(1.0, 2 * tail)
    return PairedChange(*centre, change, std_error, z, p_value, n, "")


def share_change(before: ArrayLike, after: ArrayLike) -> PairedChange:
    """Return the change of a share, tested exactly on the battles that changed sides.

    A battle (n,) counts, 1, or not, 0; NaN is left out. `p_value` is McNemar's in its exact form,
    doubled for both directions: Q. McNemar (1947), Psychometrika 12(2).
    """
    test = mean_change(before, after)
    first, second = _known_in_all(before=before, after=after)
    known = np.array([first, second])
    require(np.isin(known, (0, 1)), "a battle of a share", known, "1 if it counts, 0 if not")
    if math.isnan(test.z):
        return test
    return test._replace(p_value=_sign_test(second - first, only_rises=False))


def repeat_change(now: ArrayLike, runs: ArrayLike) -> PairedChange:
    """Return how much further now (n,) is from earlier runs (n, k) than those from each other.

    The baseline is the mean distance between two runs, in rubric points. Without a change runs and
    now are exchangeable, and the mean distance from now to the runs is expected to be the same.
    Only a larger one counts. Its differences are skewed to the right: t is then rather too small.
    """
    latest, earlier = np.asarray(now, dtype=float), np.asarray(runs, dtype=float)
    matches = earlier.ndim == 2 and earlier.shape[1] >= 2 and latest.shape == earlier.shape[:1]
    expected = f"(n, k) with k of 2 or more and n as in now, {latest.shape}"
    require(matches, "the shape of runs", earlier.shape, expected)
    first, second = np.triu_indices(earlier.shape[1], 1)
    between = np.abs(earlier[:, first] - earlier[:, second]).mean(axis=1)
    return mean_change(between, np.abs(latest[:, None] - earlier).mean(axis=1), only_rises=True)


def call_change(
    ab_before: ArrayLike, ba_before: ArrayLike, ab_after: ArrayLike, ba_after: ArrayLike
) -> PairedChange:
    """Return how much further two calls of a battle are apart over time than at one time.

    Calls in different orders are compared: of one time, and of both times. Without a change,
    exchanging the battle's two calls in one order exchanges the two distances, so that their
    difference is symmetric about zero. It is an energy distance, not negative in expectation: only
    a larger one counts. A lead of the first position, the same in all calls, cancels. Source: G. J.
    Szekely and M. L. Rizzo (2013), "Energy statistics: A class of statistics based on distances",
    Journal of Statistical Planning and Inference 143(8).
    """
    first, turned, latest, latest_turned = _known_in_all(
        ab_before=ab_before, ba_before=ba_before, ab_after=ab_after, ba_after=ba_after
    )
    within = np.abs(first - turned) + np.abs(latest - latest_turned)
    across = np.abs(first - latest_turned) + np.abs(latest - turned)
    sums = np.round([within, across], _DECIMALS) / 2  # sums of the same distances are equal
    return mean_change(*sums, only_rises=True)


def beta_change(
    score_before: ArrayLike, score_after: ArrayLike, human_outcome: ArrayLike
) -> PairedChange:
    """Return the change of a judge's slope on the same votes, in logits per rubric point.

    Unlike the slope that calibrates ratings, this one may be negative: a judge that turned against
    people has changed as far as a judge can. The test is a score test: with the margin
    ``m = s (2 y - 1)`` and the one slope ``b`` that fits both judgements together, a battle's pull
    is ``m sigma(-b m)``, and without a change the pulls of its two judgements have one mean.
    Exchanging the judgements leaves ``b`` and turns the sign of the difference, which is exactly
    symmetric; neither slope needs to exist. `std_error` is that of the sum of differences times the
    change per unit of that sum, so that `z` is the score's and ``change / std_error`` at once.

    Only decisive votes, 1 and 0, count. A slope without an end, since scores predict or contradict
    every vote, is NaN with a note, as are change and error; the test stands. There is no test where
    that is so both times in one direction, or where all scores are equal.

    Sources: D. D. Boos (1992), "On Generalized Score Tests", The American Statistician 46(4);
    B. Efron (1969), JASA 64(328), on t under symmetry.
    """
    first, second, votes = _known_in_all(
        score_before=score_before, score_after=score_after, human_outcome=human_outcome
    )
    n_battles = fit_beta(first, votes).n_battles  # names a vote without a meaning
    if n_battles < LEAST_BATTLES:
        return _too_few(n_battles, "with a decisive vote ")
    decisive = votes != 0.5
    margins = [score[decisive] * (2 * votes[decisive] - 1) for score in (first, second)]
    slopes, common = [_slope(margin) for margin in margins], _slope(np.concatenate(margins))
    note = _without_slope(slopes)
    if not math.isfinite(common.beta) or not all(margin.any() for margin in margins):
        return refused(note, n_battles, slopes[0].beta)
    test = mean_change(*(margin * expit(-common.beta * margin) for margin in margins))
    change = slopes[1].beta - slopes[0].beta
    if abs(test.z) > _NO_CHANGE:
        per_pull = change / test.change
    else:  # the limit at no change
        per_pull = test.n_battles * sum(fit.std_error**2 for fit in slopes) / 2
    return test._replace(
        baseline=slopes[0].beta,
        now=slopes[1].beta,
        change=change,
        std_error=test.std_error * per_pull,
        note="; ".join(filter(None, [note, test.note])),
    )


def _slope(margin: Floats) -> BetaFit:
    """Return the slope of margins, which may be zero or negative; NaN where it has no end."""
    fit = fit_beta(margin, np.ones(margin.size))
    beta = fit.slope if math.isfinite(fit.slope) else math.nan
    return fit._replace(beta=beta, std_error=fit.slope_std_error)


def _without_slope(slopes: list[BetaFit]) -> str:
    """Return which of two judgements has no slope, and why; nothing where both have one."""
    reasons = {
        math.inf: "scores predict every vote, so that it has no end",
        -math.inf: "scores contradict every vote, so that it has no end",
    }
    equal = "scores are equal in every battle with a decisive vote"
    return "; ".join(
        f"there is no slope {when}: {reasons.get(slope.slope, equal)}"
        for when, slope in zip(("at the baseline", "now"), slopes, strict=True)
        if not math.isfinite(slope.slope)
    )


def _known_in_all(**columns: ArrayLike) -> Floats:
    """Return columns of one length without the battles that are not finite in all of them."""
    both = np.stack(alike_floats(**columns))
    return both[:, np.isfinite(both).all(axis=0)]


def _sign_test(difference: Floats, only_rises: bool) -> float:
    n_up, n_down = int((difference > 0).sum()), int((difference < 0).sum())
    tail = float(bdtrc((n_up if only_rises else max(n_up, n_down)) - 1, n_up + n_down, 0.5))
    return tail if only_rises else min(1.0, 2 * tail)


def _too_few(n_battles: int, what: str = "") -> PairedChange:
    return refused(
        f"{n_battles} battles {what}were judged both times; {LEAST_BATTLES} are needed", n_battles
    )
