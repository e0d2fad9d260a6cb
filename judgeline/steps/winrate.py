"""Win rates in people's eyes; beside them coverage over models, and labels to buy."""

from typing import Any

import pandas as pd

from judgeline.io import as_outcome_tables, as_table
from judgeline.steps.step import Made, step
from judgeline.tables.winrate import ADJUSTED_WIN_RATES
from judgeline.winrate import (
    HEADLINE_RULE,
    WinRateCoverage,
    adjust_models,
    leave_out_coverage,
    plan_labels,
)

NO_VOTES = (
    "nobody voted on a battle that this judge scored, and without votes nothing says how it errs: "
    "use a corpus with votes, or have people label some battles"
)


@step(ADJUSTED_WIN_RATES, reads=("hard_outcome", "miscoverage"))
def adjusted_win_rates(scored_battles: pd.DataFrame, *, settings: Any) -> Made:
    """A model's win rate as judged, as estimated for people, and as people voted.

    One row for each model and estimator, in shares of its battles against models that people
    voted on; `headline` marks the row to show and `basis` says its assumption.
    """
    if _nobody_voted(scored_battles):
        return Made(ADJUSTED_WIN_RATES.empty(), {"note": NO_VOTES})
    table = as_table(
        adjust_models(
            _outcomes(scored_battles, settings),
            by_length=_outcomes(scored_battles, settings, "length"),
            by_strength=_outcomes(scored_battles, settings, "strength"),
            miscoverage=settings.miscoverage,
        )
    )
    shown = table[table["headline"]]
    without = int(shown["status"].ne("ok").sum())
    notes = {"n_models": len(shown), "headline": HEADLINE_RULE, "n_without_estimate": without}
    return Made(table, notes)


def adjustment_coverage(scored_battles: pd.DataFrame, settings: Any) -> pd.DataFrame:
    """Return error, width and coverage of each estimator, each voted model left out as if new.

    Rows of the strongest and weakest third leave out that third of the models at once: their
    intervals are calibrated on the others. No rows where nobody voted.
    """
    if _nobody_voted(scored_battles):
        return pd.DataFrame(columns=list(WinRateCoverage._fields))
    return as_table(
        leave_out_coverage(
            _outcomes(scored_battles, settings),
            by_strength=_outcomes(scored_battles, settings, "strength"),
            miscoverage=settings.miscoverage,
        )
    )


def label_plan(scored_battles: pd.DataFrame, settings: Any) -> pd.DataFrame:
    """Return how many more battles to label, and of which kind, for intervals of a wanted width.

    One row for the corpus or a model and a way of choosing battles; none where nobody voted.
    """
    if _nobody_voted(scored_battles):
        return pd.DataFrame()
    plans = plan_labels(
        _outcomes(scored_battles, settings),
        half_width=settings.win_rate_half_width,
        miscoverage=settings.miscoverage,
    )
    return as_table(plans)


def _outcomes(scored_battles: pd.DataFrame, settings: Any, by: str = "") -> Any:
    """Return the tables of outcomes by model; None of lengths that are unknown."""
    return as_outcome_tables(scored_battles, settings.hard_outcome, by)


def _nobody_voted(scored_battles: pd.DataFrame) -> bool:
    return bool(scored_battles["human_outcome"].isna().all())
