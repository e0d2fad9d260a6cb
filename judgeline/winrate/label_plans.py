"""How many more battles humans should label, and of which kind, model by model."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.winrate.counts import (
    JudgeCounts,
    NoWinRateError,
    normal_quantile,
    smoothed_rates,
)
from judgeline.winrate.label_counts import (
    LabelPlan,
    plan_by_human_outcome,
    plan_by_verdict,
    plan_in_words,
)
from judgeline.winrate.models import TRANSPORTED
from judgeline.winrate.outcome_tables import (
    MIN_OWN_VOTES,
    NO_VOTE,
    Design,
    OutcomeTables,
    decisive_counts,
    design_of,
    require_battles,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHOSEN_BY: tuple[str, ...] = ("human outcome", "verdict")
"""Ways of choosing battles to label, in the order of the rows.

``human outcome``: by votes that exist and need only be revealed; feeds `adjusted_mean`.
``verdict``: by what the judge said, known before anybody votes; feeds the conditional estimate
alone. Labels so chosen must not enter `adjusted_mean`."""


class LabelPlans(NamedTuple):
    """One row per model, or for the corpus (`grouping` ``all``), and way of choosing.

    `win_rate_half_width` is what the labels at hand leave, `planned_half_width` what is to be
    expected after `n_more_won` and `n_more_lost` further labels: as humans or as the judge call
    them. Shares of battles. Plans are NaN where `status` is not ok; `plan` says the row in words.
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
    as it is. The row of the corpus is of the win rate of whoever stood on side A, in the
    battles without a vote.

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

    Raises
    ------
    ValueError
        If an option is out of range.

    References
    ----------
    Those of `plan_by_human_outcome` and `plan_by_verdict`.
    """
    if not 0 < half_width < np.inf:
        raise ValueError(f"half_width must be a positive share of battles, got {half_width}")
    normal_quantile(miscoverage)
    whole = Design(tables.whole[..., NO_VOTE], tables.whole[..., :NO_VOTE], "own")
    subjects = [_Subject("all", "", whole, tables.whole, int(tables.n_questions.max()))] + [
        _Subject("model", name, design_of(tables, at), tables.own[at], int(tables.n_questions[at]))
        for at, name in enumerate(tables.models)
    ]
    rows = [
        (subject.grouping, subject.level, by, *_row(subject, by, half_width, miscoverage))
        for subject in subjects
        for by in CHOSEN_BY
    ]
    return LabelPlans(*(np.array(column) for column in zip(*rows, strict=True)))


class _Subject(NamedTuple):
    """Whose win rate it is, the battles that serve for it, and all of its battles."""

    grouping: str
    level: str
    design: Design
    battles: Ints
    n_questions: int


class _Way(NamedTuple):
    """A planner, and who says which kind a battle is."""

    make: Callable[..., LabelPlan]
    said_by: str


_WAYS = {
    "human outcome": _Way(plan_by_human_outcome, "humans"),
    "verdict": _Way(plan_by_verdict, "the judge"),
}
_ANY_WIDTH = 1e6  # so wide that no label is needed: such a plan tells the width at hand
_OWN = (
    f"votes on its own battles calibrate without that, from {MIN_OWN_VOTES} won and as many lost, "
    "while fewer than half of its battles have one"
)
_SIDES = {"all": ("A", "B"), "model": ("that it won", "that it lost")}


def _row(
    subject: _Subject, chosen_by: str, half_width: float, miscoverage: float
) -> tuple[float | int | str, ...]:
    design, way = subject.design, _WAYS[chosen_by]
    counts = decisive_counts(design.test.sum(axis=0), design.labelled.sum(axis=0))
    try:
        _require_plan(subject, counts, miscoverage)
    except NoWinRateError as refusal:
        return _none(np.nan, half_width, refusal.status, str(refusal))
    at_hand = way.make(counts, half_width=_ANY_WIDTH, miscoverage=miscoverage).half_width
    try:
        plan = way.make(counts, half_width=half_width, miscoverage=miscoverage)
    except ValueError as error:  # skill and classes were looked at: the width is out of reach
        return _none(at_hand, half_width, "out-of-reach", str(error))
    won, lost = _SIDES[subject.grouping]
    words = plan_in_words(plan, said_by=way.said_by, won=won, lost=lost)
    note = f"{TRANSPORTED}; {_OWN}" if design.calibration == "others" else ""
    return at_hand, half_width, plan.half_width, plan.n_won, plan.n_lost, words, "ok", note


def _require_plan(subject: _Subject, counts: JudgeCounts, miscoverage: float) -> None:
    if subject.battles.sum() and not subject.battles[..., NO_VOTE].sum():
        raise NoWinRateError("all-voted", "every battle has a vote: there is none left to label")
    require_battles(subject.design, subject.n_questions)
    smoothed_rates(counts, miscoverage=miscoverage)


def _none(
    at_hand: float, half_width: float, status: str, why: str
) -> tuple[float | int | str, ...]:
    return at_hand, half_width, np.nan, np.nan, np.nan, f"No plan: {why}.", status, why
