"""Win rates in people's eyes; computed beside them, coverage over models and labels to buy."""

from typing import Any

import dagster as dg
import pandas as pd

from assets.conditions import follows, table_asset, table_check
from assets.partitions import corpus_and_judge
from assets.settings import rating_of
from judgeline.io import as_outcome_tables, as_table
from judgeline.tables.rules import at_least, none_of
from judgeline.tables.winrate import ADJUSTED_WIN_RATES, ROUNDING
from judgeline.winrate import (
    EACH_MODEL,
    HEADLINE_RULE,
    WinRateCoverage,
    adjust_models,
    leave_out_coverage,
    plan_labels,
)
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.tables.expectations import evaluate
from resources.tables.store import empty_result

SURPRISE = 0.01
"""Chance of a false alarm of a check that counts hits, over all of its rows together."""
NO_VOTES = (
    "nobody voted on a battle that this judge scored, and without votes nothing says how it errs: "
    "use a corpus with votes, or have people label some battles"
)
PUBLISHED = "mean-outcome"


@table_asset("4", follows)
def adjusted_win_rates(
    context: dg.AssetExecutionContext, scored_battles: pd.DataFrame, catalog: Catalog
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's win rate as judged, as estimated for people, and as people voted.

    One row for each model and estimator, in shares of its battles against models that people
    voted on; `headline` marks the row to show and `basis` says its assumption.
    """
    rating = rating_of(context, catalog, "hard_outcome", "miscoverage")
    if _nobody_voted(scored_battles):
        return empty_result(ADJUSTED_WIN_RATES, NO_VOTES)
    table = as_table(
        adjust_models(
            _outcomes(scored_battles, rating),
            by_length=_outcomes(scored_battles, rating, "length"),
            by_strength=_outcomes(scored_battles, rating, "strength"),
            miscoverage=rating.miscoverage,
        )
    )
    shown = table[table["headline"]]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "n_models": len(shown),
            "headline": HEADLINE_RULE,
            "n_without_estimate": int(shown["status"].ne("ok").sum()),
        },
    )


def adjustment_coverage(scored_battles: pd.DataFrame, rating: RatingOptions) -> pd.DataFrame:
    """Return error, width and coverage of each estimator, each voted model left out as if new.

    Rows of the strongest and weakest third leave out that third of the models at once: their
    intervals are calibrated on the others. No rows where nobody voted.
    """
    if _nobody_voted(scored_battles):
        return pd.DataFrame(columns=list(WinRateCoverage._fields))
    return as_table(
        leave_out_coverage(
            _outcomes(scored_battles, rating),
            by_strength=_outcomes(scored_battles, rating, "strength"),
            miscoverage=rating.miscoverage,
        )
    )


def label_plan(scored_battles: pd.DataFrame, rating: RatingOptions) -> pd.DataFrame:
    """Return how many more battles to label, and of which kind, for intervals of a wanted width.

    One row for the corpus or a model and a way of choosing battles; none where nobody voted.
    """
    if _nobody_voted(scored_battles):
        return pd.DataFrame()
    plans = plan_labels(
        _outcomes(scored_battles, rating),
        half_width=rating.win_rate_half_width,
        miscoverage=rating.miscoverage,
    )
    return as_table(plans)


def _outcomes(scored_battles: pd.DataFrame, rating: RatingOptions, by: str = "") -> Any:
    """Return the tables of outcomes by model; None of lengths that are unknown."""
    return as_outcome_tables(scored_battles, rating.hard_outcome, by)


def _nobody_voted(scored_battles: pd.DataFrame) -> bool:
    return bool(scored_battles["human_outcome"].isna().all())


@table_check(adjusted_win_rates)
def judge_is_better_than_chance(adjusted_win_rates: pd.DataFrame) -> dg.AssetCheckResult:
    """The published correction exists only for a judge that does better than chance on votes.

    It is an error where no model has one, and a warning where some have.
    """
    published = adjusted_win_rates[adjusted_win_rates["estimator"].eq(PUBLISHED)]
    some = published["status"].isin(["ok", "refuted"]).any()
    note = "the judge tells won battles from lost ones better than chance"
    return evaluate(
        published,
        [none_of("status", ["chance"], note)],
        ids=["model", "estimator"],
        remedy="These models have no published correction, and their headline rests on votes, not "
        "on this judge: label more battles, or withhold the judge.",
        severity=dg.AssetCheckSeverity.WARN if some else dg.AssetCheckSeverity.ERROR,
    )


@table_check(adjusted_win_rates)
def adjusted_intervals_cover(
    context: dg.AssetCheckExecutionContext, scored_battles: pd.DataFrame, catalog: Catalog
) -> dg.AssetCheckResult:
    """Intervals of the strongest and the weakest models hold about as often as promised.

    They are calibrated on the other models, as those of a new model stronger or weaker than all
    voted ones are. The limit is the number that chance would undercut once in a hundred times
    over both thirds, if models were independent; they share votes, so that it is a rough one.
    """
    corpus, _ = corpus_and_judge(context)
    return covered(adjustment_coverage(scored_battles, catalog.corpus(corpus).rating))


def covered(coverage: pd.DataFrame) -> dg.AssetCheckResult:
    """Return whether intervals of the thirds hold as often as promised, but for chance."""
    from scipy.stats import binom

    table = coverage[coverage["left_out"].ne(EACH_MODEL) & coverage["n_models"].gt(0)]
    table = table.astype({"n_models": float, "win_rate_coverage": float, "miscoverage": float})
    surprise = SURPRISE / max(len(table), 1)
    least = binom.ppf(surprise, table["n_models"], 1 - table["miscoverage"])
    note = (
        "as many intervals hold the human win rate as promised, or as many fewer as chance allows"
    )
    return evaluate(
        table.assign(least=least, n_held=table["win_rate_coverage"] * table["n_models"] + ROUNDING),
        [at_least("n_held", "least", note)],
        ids=["left_out"],
        remedy="The judge errs otherwise on these models than on the rest: have people vote on "
        "battles of new models as strong or as weak, whose own votes then count, and until then "
        "read their intervals as too short.",
        severity=dg.AssetCheckSeverity.WARN,
    )
