"""The jobs of the lineage: one run cannot mix partitions of different kinds."""

import dagster as dg

CORPUS_ASSETS = dg.AssetSelection.groups("corpus")
COMPARISON_ASSETS = dg.AssetSelection.groups("comparison")
CANDIDATE_ASSETS = dg.AssetSelection.groups("candidates")
JUDGED_ASSETS = (
    dg.AssetSelection.all()
    - CORPUS_ASSETS
    - COMPARISON_ASSETS
    - CANDIDATE_ASSETS
    - dg.AssetSelection.groups("drift")
    - dg.AssetSelection.key_substring("candidate_verdicts")  # asked in placing_job only
)
PLACED_ASSETS = (
    dg.AssetSelection.groups("placing")
    | dg.AssetSelection.assets("leaderboard")
    | dg.AssetSelection.key_substring("battle_influences")
)

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
candidate_job = dg.define_asset_job(
    "candidate_job",
    CANDIDATE_ASSETS,
    description="Reads what was dropped for new models, and chooses their battles; asks nobody.",
)
placing_job = dg.define_asset_job(
    "placing_job",
    PLACED_ASSETS,
    description="One judge on the battles of new models: asks it, and places them among anchors.",
)
JOBS = (
    corpus_job,
    judge_job,
    comparison_job,
    candidate_job,
    placing_job,
)
