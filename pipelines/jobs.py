"""The jobs of the lineage: one run cannot mix partitions of different kinds."""

import dagster as dg

CORPUS_ASSETS = dg.AssetSelection.groups("corpus")
COMPARISON_ASSETS = dg.AssetSelection.groups("comparison")
DRIFT_ASSETS = dg.AssetSelection.groups("drift")
JUDGED_ASSETS = dg.AssetSelection.all() - CORPUS_ASSETS - COMPARISON_ASSETS - DRIFT_ASSETS

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
drift_job = dg.define_asset_job(
    "drift_job",
    DRIFT_ASSETS,
    description="Asks a judge about its panel afresh, and says whether it still judges the same.",
)
JOBS = (
    corpus_job,
    judge_job,
    comparison_job,
    drift_job,
)
