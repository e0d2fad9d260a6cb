"""Labels to buy: how many, of which kind, and whether they beat people's votes alone.

Labels chosen by the human outcome feed specificity and sensitivity, labels chosen by the judge's
verdict the conditional estimate alone; labels of one kind distort the other's estimate.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, require
from judgeline.winrate.models import TRANSPORTED
from judgeline.winrate.outcomes import (
    LOSS,
    MIN_OWN_VOTES,
    NO_VOTE,
    WIN,
    Design,
    NoWinRateError,
    OutcomeTables,
    design_of,
    normal_quantile,
    require_battles,
)


class LabelPlans(NamedTuple):
    """One row per model, or for the corpus (`grouping` ``all``), and way of choosing.

    `win_rate_half_width` is what the labels at hand leave, `planned_half_width` what is to be
    expected after `n_more_won` and `n_more_lost` further labels: as humans or as the judge call
    them. Shares of battles. Plans are NaN where `status` is not ok; `plan` says the row in words.
    `note` says whether labels are worth more to calibrate the judge or averaged alone.
    """

    grouping: NDArray[np.str_]
    level: NDArray[np.str_]
    chosen_by: NDArray[np.str_]
    win_rate_half_width: Floats
    wanted_half_width: Floats
    planned_half_width: Floats
    n_more_won: Floats
    n_more_lost: Floats
    plan: NDArray[np.str_]
    status: NDArray[np.str_]
    note: NDArray[np.str_]


def plan_labels(tables: OutcomeTables, *, half_width: float, miscoverage: float) -> LabelPlans:
    """Return plans that bring the intervals of binary win rates to a half-width.

    The battles at hand are those of the binary row of `adjust_models`, ties left out; where people
    tie, they size those rows' sampling error and nothing else. Where the votes on other models
    calibrate, so would the further labels: they shorten the interval and leave its assumption
    as it is. The row of the corpus is the win rate of side A in the battles without a vote.

    Parameters
    ----------
    tables : OutcomeTables
        From `tabulate_outcomes`.
    half_width : float
        Wanted half-width, a share of battles above 0.
    miscoverage : float
        Tolerated share of misses, in (0, 1).

    Returns
    -------
    LabelPlans
        Two rows for the corpus, then two for each model. `status` is ``ok``, one of those of
        `adjust_models`, ``all-voted`` or ``out-of-reach``: the test battles alone leave more.

    References
    ----------
    J. Neyman (1934), JRSS 97(4), for the division: in proportion to standard deviations;
    A. Tenenbein (1970), JASA 65(331), for labels by verdict.
    """
    require(0 < half_width < math.inf, "half_width", half_width, "a positive share of battles")
    quantile = normal_quantile(miscoverage)
    whole = Design(tables.whole[..., NO_VOTE], tables.whole[..., :NO_VOTE], "own")
    subjects = [("all", "", whole, tables.whole, int(tables.n_questions.max()))] + [
        ("model", name, design_of(tables, at), tables.own[at], int(tables.n_questions[at]))
        for at, name in enumerate(tables.models)
    ]
    rows = []
    for grouping, level, design, battles, n_questions in subjects:
        counts = decisive_counts(design.test.sum(axis=0), design.labelled.sum(axis=0))
        try:
            if battles.sum() and not battles[..., NO_VOTE].sum():
                text = "every battle has a vote: there is none left to label"
                raise NoWinRateError("all-voted", text)
            require_battles(design, n_questions)
            plans = [
                _plan_row(grouping, design.calibration, by, counts, half_width, quantile)
                for by in _WAYS
            ]
        except NoWinRateError as error:
            plans = [_no_plan(np.nan, half_width, error.status, str(error))] * len(_WAYS)
        rows += [(grouping, level, by, *plan) for by, plan in zip(_WAYS, plans, strict=True)]
    return LabelPlans(*(np.array(column) for column in zip(*rows, strict=True)))


def judge_or_humans(
    win_rate: ArrayLike,
    *,
    specificity: ArrayLike,
    sensitivity: ArrayLike,
    labels_per_test_battle: float = 0.0,
) -> Floats:
    """Return how many averaged labels one label is worth that calibrates the judge.

    The ratio of the variance of averaged labels to that of the corrected win rate, for as many
    labels: above 1 judge and labels beat humans alone. Labels are divided in the best way;
    variances are asymptotic. For specificity and sensitivity both q and test battles without end,
    it exceeds 1 at win rates within 1/2 -+ sqrt(1/2 - 1 / (4 (2q - 1)^2)), and at none up to
    q = 1/2 + 1 / (2 sqrt 2), about 0.854.

    Parameters
    ----------
    win_rate, specificity, sensitivity : array_like
        In [0, 1], shapes that broadcast; specificity + sensitivity above 1.
    labels_per_test_battle : float
        Calibration battles per test battle, from 0; 0 stands for test battles without end.

    Raises
    ------
    ValueError
        If a share is out of range or the judge is no better than chance.

    References
    ----------
    C. Lee et al. (2025), arXiv:2511.21140, the comparison with human evaluation alone.
    """
    shares = {"win_rate": win_rate, "specificity": specificity, "sensitivity": sensitivity}
    wins, q0, q1 = arrays = [np.asarray(values, dtype=float) for values in shares.values()]
    for name, values in zip(shares, arrays, strict=True):
        require((values >= 0) & (values <= 1), name, values, "a share in [0, 1]")
    is_finite = 0 <= labels_per_test_battle < math.inf
    require(is_finite, "labels_per_test_battle", labels_per_test_battle, "0 or more, and finite")
    skill = q0 + q1 - 1
    remedy = "more than 1: a judge no better than chance is worth no label"
    require(skill > 0, "specificity + sensitivity", q0 + q1, remedy)
    adjusted = _corrected_variance(wins, q0, q1, labels_per_test_battle) / skill**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(_bernoulli(wins) / adjusted)


def _corrected_variance(wins: Any, q0: Any, q1: Any, labels_per_test_battle: float) -> Any:
    """Return the variance, per label in the best division, of the corrected rate times skill."""
    spread = (1 - wins) * np.sqrt(_bernoulli(q0)) + wins * np.sqrt(_bernoulli(q1))
    sampling = _bernoulli(wins * q1 + (1 - wins) * (1 - q0))
    return spread**2 + labels_per_test_battle * sampling


def paying_rates(
    specificity: float, sensitivity: float, *, labels_per_test_battle: float = 0.0
) -> tuple[float, float]:
    """Return the win rates between which `judge_or_humans` exceeds 1; NaN twice if it never does.

    Between them the corrected win rate varies less than as many labels averaged alone. Arguments
    and errors are those of `judge_or_humans`: its ratio exceeds 1 where a parabola in the win
    rate, at most 0 at 0 and at 1, is positive.
    """
    given = {"specificity": specificity, "sensitivity": sensitivity}
    judge_or_humans(0.5, **given, labels_per_test_battle=labels_per_test_battle)
    wins, skill = Polynomial([0, 1]), specificity + sensitivity - 1
    corrected = _corrected_variance(wins, specificity, sensitivity, labels_per_test_battle)
    gain = skill**2 * _bernoulli(wins) - corrected
    _, slope, curvature = [*gain.coef, 0.0, 0.0][:3]
    best = -slope / (2 * curvature) if curvature < 0 else math.nan
    if not (0 < best < 1 and gain(best) > 0):
        return math.nan, math.nan
    reach = math.sqrt(-gain(best) / curvature)
    return float(best - reach), float(best + reach)


def _bernoulli(share: Any) -> Any:
    return share * (1 - share)


class JudgeCounts(NamedTuple):
    """Battles without a vote, lost and won by human outcome, and how many the judge calls so."""

    n_test: Any
    n_test_won: Any
    n_lost: Any
    n_lost_right: Any
    n_won: Any
    n_won_right: Any


class JudgeRates(NamedTuple):
    """Shares of `JudgeCounts`, each with the number of battles behind it."""

    share: Any
    specificity: Any
    sensitivity: Any
    n_test: Any
    n_lost: Any
    n_won: Any

    @property
    def skill(self) -> Any:
        """Youden's index: 1 for a perfect judge, 0 at chance."""
        return self.specificity + self.sensitivity - 1

    @property
    def win_rate(self) -> Any:
        """The corrected win rate before it is clipped to [0, 1]."""
        return (self.share + self.specificity - 1) / self.skill


def decisive_counts(test: ArrayLike, labelled: ArrayLike) -> JudgeCounts:
    """Return the counts of test (3,) and calibration battles (3, 3), ties left out."""
    judged, known = np.asarray(test), np.asarray(labelled)
    won_right, lost_right = known[WIN, WIN], known[LOSS, LOSS]
    n_lost, n_won = lost_right + known[WIN, LOSS], won_right + known[LOSS, WIN]
    n_test = judged[WIN] + judged[LOSS]
    return JudgeCounts(n_test, judged[WIN], n_lost, lost_right, n_won, won_right)


def judge_rates(counts: JudgeCounts, quantile: float = 0.0, extra: int = 0) -> JudgeRates:
    """Return shares; `extra` calibration and quantile^2 / 2 test battles are added a side."""
    n_test, n_test_won, n_lost, n_lost_right, n_won, n_won_right = counts
    n, m0, m1 = n_test + quantile**2, n_lost + 2 * extra, n_won + 2 * extra
    share = (n_test_won + quantile**2 / 2) / n
    return JudgeRates(share, (n_lost_right + extra) / m0, (n_won_right + extra) / m1, n, m0, m1)


def smoothed_rates(counts: JudgeCounts, quantile: float) -> JudgeRates:
    """Return the shares that the interval is made of, of a judge better than chance."""
    for name, (status, remedy) in _REMEDY.items():
        if not getattr(counts, name) > 0:
            raise NoWinRateError(status, f"{name} is 0; {remedy}")
    observed, smoothed = judge_rates(counts), judge_rates(counts, quantile, extra=1)
    for rates, when in ((observed, ""), (smoothed, " after smoothing by one battle a side")):
        if not rates.skill > 0:
            raise NoWinRateError(
                "chance",
                f"specificity {rates.specificity:.4g} + sensitivity {rates.sensitivity:.4g} is at "
                f"most 1{when}: the judge is no better than chance, and no correction can be made; "
                "label more battles or withhold this judge",
            )
    return smoothed


_REMEDY = {
    "n_test": ("all-ties", "a win rate needs test battles that the judge does not tie: judge more"),
    "n_lost": ("class-absent", "specificity needs battles that humans call lost: label some"),
    "n_won": ("class-absent", "sensitivity needs battles that humans call won: label some"),
}


class LabelPlan(NamedTuple):
    """Further battles to label, as humans or the judge call them, and the half-width to expect."""

    n_won: int
    n_lost: int
    half_width: float


def allocate_labels(n_labels: int, counts: JudgeCounts) -> tuple[Any, Any]:
    """Return how many of all labels are to be of lost and of won battles, by the published rule.

    ``n_won = n_labels / (1 + (1 / p - 1) sqrt(k))`` for the judge's share p of test battles won,
    and k the ratio of its error on lost battles to that on won ones, each smoothed by one label a
    side. Labels at hand are the pilot: none is taken back. ValueError if they are more than
    `n_labels`. Source: C. Lee et al. (2025), arXiv:2511.21140, Algorithm 1.
    """
    at_hand = np.max(np.asarray(counts.n_lost) + counts.n_won)
    require(at_hand <= n_labels, "n_labels", n_labels, f"the {at_hand} at hand, or more")
    rates, share = judge_rates(counts, extra=1), judge_rates(counts).share
    error_ratio = (1 - np.asarray(rates.specificity)) / (1 - np.asarray(rates.sensitivity))
    # written so that a share of 0 needs no division by it
    of_won = share / (share + (1 - share) * np.sqrt(error_ratio))
    most = n_labels - np.asarray(counts.n_lost)
    n_won = np.clip(np.round(n_labels * of_won), counts.n_won, most).astype(np.int64)
    return n_labels - n_won, n_won


def _by_human_outcome(
    counts: JudgeCounts, quantile: float
) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """Return sampling variance, and by won and lost that of one label and the labels at hand."""
    rates = smoothed_rates(counts, quantile)
    win_rate, skill = float(rates.win_rate), float(rates.skill)
    spread = (
        float((win_rate / skill) ** 2 * _bernoulli(rates.sensitivity)),
        float(((1 - win_rate) / skill) ** 2 * _bernoulli(rates.specificity)),
    )
    sampling = float(_bernoulli(rates.share) / rates.n_test / skill**2)
    return sampling, spread, (float(rates.n_won), float(rates.n_lost))


def split_labels(counts: JudgeCounts, *, n_labels: int, quantile: float) -> LabelPlan:
    """Return the further labels of `allocate_labels`, and the half-width to expect of them."""
    sampling, spread, have = _by_human_outcome(counts, quantile)
    lost, won = allocate_labels(n_labels, counts)
    more = int(won - counts.n_won), int(lost - counts.n_lost)
    variance = sampling + sum(s / (h + m) for s, h, m in zip(spread, have, more, strict=True))
    return LabelPlan(*more, quantile * math.sqrt(variance))


def half_width_at_hand(counts: JudgeCounts, *, quantile: float) -> float:
    """Return the half-width to expect of the labels at hand."""
    return plan_by_human_outcome(counts, half_width=_ANY_WIDTH, quantile=quantile).half_width


def plan_by_human_outcome(counts: JudgeCounts, *, half_width: float, quantile: float) -> LabelPlan:
    """Return the fewest further labels, by human outcome, for an interval of `adjusted_mean`."""
    return _fewest_labels(*_by_human_outcome(counts, quantile), half_width, quantile)


def plan_by_verdict(counts: JudgeCounts, *, half_width: float, quantile: float) -> LabelPlan:
    """Return the fewest further labels, by verdict, for the conditional estimate.

    Shares of human wins per verdict are smoothed by one battle a side. Labels are to be drawn at
    random within each verdict from the population of the test battles.
    """
    rates = smoothed_rates(counts, quantile)
    n_lost, lost_right, n_won, won_right = (float(part) for part in counts[2:])
    have = (won_right + n_lost - lost_right + 2, lost_right + n_won - won_right + 2)
    if_won, if_lost = (won_right + 1) / have[0], (n_won - won_right + 1) / have[1]
    share = float(rates.share)
    spread = (share**2 * if_won * (1 - if_won), (1 - share) ** 2 * if_lost * (1 - if_lost))
    sampling = (if_won - if_lost) ** 2 * share * (1 - share) / float(rates.n_test)
    return _fewest_labels(sampling, spread, have, half_width, quantile)


def _fewest_labels(
    sampling: float,
    spread: tuple[float, float],
    have: tuple[float, float],
    half_width: float,
    quantile: float,
) -> LabelPlan:
    """Return the fewest labels with ``sampling + sum(spread / n) <= (half_width/quantile)**2``."""
    budget = (half_width / quantile) ** 2 - sampling
    if budget <= 0:
        raise ValueError(
            f"a half-width of {_points(half_width)} is out of reach: the test battles alone leave "
            f"{_points(quantile * math.sqrt(sampling))}; have the judge call more battles"
        )

    def variance(more: tuple[int, int]) -> float:
        """Return the variance of calibration after further labels of either kind."""
        return sum(s / (h + m) for s, h, m in zip(spread, have, more, strict=True))

    roots = [math.sqrt(value) for value in spread]
    need = [root * sum(roots) / budget for root in roots]
    more = (math.ceil(max(need[0] - have[0], 0)), math.ceil(max(need[1] - have[1], 0)))
    # More than needed of one kind, or rounded up twice: the best plan is fewer labels away.
    while True:
        fewer = [(more[0] - 1, more[1]), (more[0], more[1] - 1)]
        enough = [plan for plan in fewer if min(plan) >= 0 and variance(plan) <= budget]
        if not enough:
            return LabelPlan(*more, quantile * math.sqrt(sampling + variance(more)))
        more = min(enough, key=variance)


def _points(share: float) -> str:
    return f"{100 * share:.1f} percentage points"


def plan_text(plan: LabelPlan, *, said_by: str, won: str, lost: str) -> str:
    """Return a plan as a sentence: labels where `said_by` said `won`, and where it said `lost`."""
    total = plan.n_won + plan.n_lost
    reach = f"a half-width of {_points(plan.half_width)}"
    if not total:
        return f"No more labels are needed for {reach}."
    return (
        f"Label {total} more {'battle' if total == 1 else 'battles'}, {plan.n_won} where {said_by} "
        f"said {won} and {plan.n_lost} where {said_by} said {lost}, for {reach}."
    )


def paying_text(pays_from: float, pays_to: float, n_labels: int) -> str:
    """Return the range of `paying_rates` as a sentence about the rows of pass rates.

    It is empty where `n_labels`, those of the class with fewer, are so few that smoothing decides.
    """
    if n_labels < _FEWEST_TOLD:
        return ""
    narrower = "With this judge, labels alone are narrower than 'corrected'"
    if math.isnan(pays_from):
        return f"{narrower} at every rate."
    return f"{narrower} for rates below {pays_from:.0%} or above {pays_to:.0%}."


_WAYS: dict[str, tuple[Callable[..., LabelPlan], str]] = {
    "human outcome": (plan_by_human_outcome, "humans"),
    "verdict": (plan_by_verdict, "the judge"),
}
"""By what divides the battles: the planner, and whose outcomes these are."""
_FEWEST_TOLD = 10  # labels of a class whose share of right verdicts says where labels pay
_ANY_WIDTH = 1e6  # so wide that no label is needed: such a plan tells the width at hand
_OWN = (
    f"votes on its own battles calibrate without that, from {MIN_OWN_VOTES} won and as many lost, "
    "while fewer than half of its battles have one"
)
_SIDES = {"all": ("A", "B"), "model": ("that it won", "that it lost")}


def _plan_row(
    grouping: str,
    calibration: str,
    chosen_by: str,
    counts: JudgeCounts,
    half_width: float,
    quantile: float,
) -> tuple[float | int | str, ...]:
    make, said_by = _WAYS[chosen_by]
    at_hand = make(counts, half_width=_ANY_WIDTH, quantile=quantile).half_width
    try:
        plan = make(counts, half_width=half_width, quantile=quantile)
    except ValueError as error:  # skill and classes were looked at: the width is out of reach
        return _no_plan(at_hand, half_width, "out-of-reach", str(error))
    won, lost = _SIDES[grouping]
    words = plan_text(plan, said_by=said_by, won=won, lost=lost)
    notes = [f"{TRANSPORTED}; {_OWN}"] if calibration == "others" else []
    if chosen_by == "human outcome":
        rates = smoothed_rates(counts, quantile)
        worth = judge_or_humans(
            np.clip(rates.win_rate, 0, 1),
            specificity=rates.specificity,
            sensitivity=rates.sensitivity,
            labels_per_test_battle=float((counts.n_lost + counts.n_won) / counts.n_test),
        )
        cheaper = "the judge with labels is" if worth > 1 else "people alone are"
        notes.append(
            f"a label that corrects the judge counts as much as {worth:.2g} labels averaged alone: "
            f"{cheaper} cheaper"
        )
    row = (at_hand, half_width, plan.half_width, plan.n_won, plan.n_lost)
    return *row, words, "ok", "; ".join(notes)


def _no_plan(
    at_hand: float, half_width: float, status: str, why: str
) -> tuple[float | int | str, ...]:
    return at_hand, half_width, np.nan, np.nan, np.nan, f"No plan: {why}.", status, why
