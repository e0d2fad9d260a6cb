"""The asset of win rates in people's eyes; with its checks."""

import dagster as dg
import pandas as pd

from assets.checks import table_check
from assets.conditions import AFTER_THE_BOARD
from assets.engine import step_asset
from assets.partitions import corpus_and_judge
from judgeline.steps import winrate
from judgeline.tables.rules import at_least, none_of
from judgeline.tables.winrate import ROUNDING
from judgeline.winrate import EACH_MODEL
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate

SURPRISE = 0.01
"""Chance of a false alarm of a check that counts hits, over all of its rows together."""
PUBLISHED = "mean-outcome"

adjusted_win_rates = step_asset(winrate.adjusted_win_rates, "4", op_tags=AFTER_THE_BOARD)


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
    return covered(winrate.adjustment_coverage(scored_battles, catalog.corpus(corpus).rating))


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
