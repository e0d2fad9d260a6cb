"""The scoring methods of all judges of a corpus side by side; with the check on them."""

from collections.abc import Mapping

import dagster as dg
import numpy as np
import pandas as pd

from assets.conditions import COMPARES_METHODS, OF_CORPUS, checks_of
from assets.elo.methods import SHOWN
from assets.gates import settled_judges
from assets.partitions import CORPUS, by_judge, of_every_judge
from assets.reliability.gate import withheld_judges
from judgeline.intervals import WITHHELD
from resources.method_table import FIGURES
from resources.tables.elo import METHOD_COMPARISON

_LEADING_HERE = (
    "verdicts",
    "choice_verdicts",
    "score_verdicts",
    "scored_battles",
    "soft_outcomes",
    "quantitative_outcomes",
    "method_ratings",
    "scoring_methods",
)


@dg.asset(
    **OF_CORPUS,
    group_name="comparison",
    code_version="1",
    automation_condition=COMPARES_METHODS,
    ins={
        "scoring_methods": of_every_judge(),
        "leaderboard": of_every_judge("model", "flags"),
    },
)
def method_comparison(
    context: dg.AssetExecutionContext,
    scoring_methods: dict[str, pd.DataFrame],
    leaderboard: dict[str, pd.DataFrame],
) -> dg.MaterializeResult[pd.DataFrame]:
    """A judge by one scoring method: error, order, coverage, width, calls and tokens.

    Errors and widths in Elo points. Only judges whose last run got through the blocking checks of
    what these numbers are made from; a rubric whose scores cannot be calibrated is one method
    without numbers, no reason to hide the others. Figures are null, and the note says why, for a
    judge whose ratings are withheld.
    """
    tables = by_judge(scoring_methods)
    judges, left_out = settled_judges(
        context.instance, context.partition_key, tables, assets=_LEADING_HERE
    )
    if not judges:
        raise ValueError(
            f"no judge of {context.partition_key!r} has scoring methods that passed their checks; "
            "run a judge first"
        )
    table = pd.concat([tables[judge].assign(judge=judge) for judge in judges], ignore_index=True)
    boards = by_judge(leaderboard)
    withheld = withheld_judges({judge: boards[judge] for judge in judges if judge in boards})
    table = without_figures(table[METHOD_COMPARISON.columns], withheld)
    known = table[table["mae"].notna()].sort_values("mae")
    shown = ["judge", *SHOWN]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "by_error": dg.MetadataValue.md(known[shown].round(3).to_markdown(index=False)),
            "judges": judges,
            "left_out": left_out,
            **{f"withheld {judge}": reason for judge, reason in withheld.items()},
        },
    )


def without_figures(comparison: pd.DataFrame, withheld: Mapping[str, str]) -> pd.DataFrame:
    """Return a comparison without what rests on ratings of judges whose ratings are withheld."""
    reason = comparison["judge"].map(dict(withheld))
    hidden = reason.notna()
    why = WITHHELD + reason[hidden].astype(str)
    old = comparison.loc[hidden, "note"]
    table = comparison.copy()
    table.loc[hidden, list(FIGURES)] = np.nan
    table.loc[hidden, "note"] = why.where(old.eq(""), why + "; " + old)
    return table


comparison_checks = checks_of(METHOD_COMPARISON, partitions_def=CORPUS)
