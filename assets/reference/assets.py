"""The asset of ratings against a reference; with its diagnostics and checks."""

import dagster as dg
import pandas as pd

from assets.checks import table_check
from assets.conditions import AFTER_THE_BOARD
from assets.engine import step_asset
from assets.partitions import corpus_and_judge, corpus_judge_key
from assets.provenance import latest, metadata_of
from judgeline.reference import LEAST_WITHIN, REACH
from judgeline.steps import reference
from judgeline.steps.reference import DIAGNOSTICS, REFERENCE_DIAGNOSTICS, STD_ERROR_TOLERANCE
from judgeline.tables.rules import within
from resources.tables.expectations import evaluate

_UNMEASURED = dg.AssetCheckResult(
    passed=False,
    severity=dg.AssetCheckSeverity.WARN,
    description="These reference_ratings came without diagnostics, so that nothing was measured: "
    "make reference_ratings again.",
)

reference_ratings = step_asset(
    reference.reference_ratings,
    "2",
    needs=("soft_outcomes", "choice_verdicts"),
    op_tags=AFTER_THE_BOARD,
)


def diagnostics_of(instance: dg.DagsterInstance, corpus: str, judge: str) -> pd.DataFrame | None:
    """Return the diagnostics that the last ratings of a judge came with; None of older ones."""
    record = latest(instance, "reference_ratings", corpus_judge_key(corpus, judge))
    rows = metadata_of(record).get(DIAGNOSTICS)
    return None if rows is None else REFERENCE_DIAGNOSTICS.filled(pd.DataFrame(rows))


@table_check(reference_ratings)
def reference_has_reach(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """A reference far above or below the models tells them apart by a handful of prompts."""
    return reach_result(diagnostics_of(context.instance, *corpus_and_judge(context)))


def reach_result(diagnostics: pd.DataFrame | None) -> dg.AssetCheckResult:
    """Return the check that most win shares lie within the reach of the reference."""
    if diagnostics is None:
        return _UNMEASURED
    rule = within(
        "value",
        LEAST_WITHIN,
        note=f"at least {LEAST_WITHIN:.0%} of win shares, over models and over prompts, "
        "lie in [{:g}, {:g}]".format(*REACH),
    )
    return evaluate(
        diagnostics[diagnostics["diagnostic"].astype("str").str.endswith("_within_reach")],
        [rule],
        ids=["diagnostic"],
        remedy="Choose a 'reference' nearer to the models in corpora.yaml; gaps flagged "
        "'beyond-reach' rest on few prompts.",
        severity=dg.AssetCheckSeverity.WARN,
    )


@table_check(reference_ratings)
def errors_are_those_of_resampling(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
    """A closed standard error that is not that of prompts drawn again misstates the intervals."""
    return errors_result(diagnostics_of(context.instance, *corpus_and_judge(context)))


def errors_result(diagnostics: pd.DataFrame | None) -> dg.AssetCheckResult:
    """Return whether each closed standard error is that of prompts drawn again."""
    if diagnostics is None:
        return _UNMEASURED
    rule = within(
        "value",
        high=STD_ERROR_TOLERANCE,
        note="every model's standard error is within "
        f"{STD_ERROR_TOLERANCE:.0%} of that of resampling its prompts",
    )
    return evaluate(
        diagnostics[diagnostics["diagnostic"].eq("std_error_difference")],
        [rule],
        ids=["note"],
        remedy="Judge more battles of the models with few prompts: see 'std_error_ratio' of each "
        "model in the reference_diagnostics of reference_ratings. Until then read their intervals "
        "as rough.",
        severity=dg.AssetCheckSeverity.WARN,
    )
