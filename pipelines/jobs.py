"""The jobs of the lineage, since one run cannot mix partitions of different kinds; and upkeep."""

import dagster as dg

from pipelines.log_retention import prune_logs

CORPUS_ASSETS = dg.AssetSelection.groups("corpus")
COMPARISON_ASSETS = dg.AssetSelection.groups("comparison")
JUDGED_ASSETS = dg.AssetSelection.all() - CORPUS_ASSETS - COMPARISON_ASSETS

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
JOBS = (
    corpus_job,
    judge_job,
    comparison_job,
    prune_logs,
)
