"""The three jobs of the lineage: one run cannot mix partitions of different kinds."""

import dagster as dg

CORPUS_ASSETS = dg.AssetSelection.groups("corpus")
COMPARISON_ASSETS = dg.AssetSelection.groups("comparison")
PLANNING_ASSETS = dg.AssetSelection.assets("call_plan")
"""For a person who is about to ask; a run that asks says the same in its log."""
JUDGED_ASSETS = dg.AssetSelection.all() - CORPUS_ASSETS - COMPARISON_ASSETS - PLANNING_ASSETS

corpus_job = dg.define_asset_job(
    "corpus_job",
    CORPUS_ASSETS,
    description="Reads a corpus, cleans it and chooses the battles to judge.",
)
judge_job = dg.define_asset_job(
    "judge_job",
    JUDGED_ASSETS,
    description="One judge on one corpus: verdicts, ratings, intervals and diagnostics.",
)
comparison_job = dg.define_asset_job(
    "comparison_job",
    COMPARISON_ASSETS,
    description="Compares the judges of a corpus and writes its report.",
)
call_plan_job = dg.define_asset_job(
    "call_plan_job",
    PLANNING_ASSETS,
    description="What a judge would be asked about a corpus, and its price; asks nobody.",
)
JOBS = (corpus_job, judge_job, comparison_job, call_plan_job)
