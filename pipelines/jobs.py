"""The jobs of the lineage, since one run cannot mix partitions of different kinds; and upkeep."""

import dagster as dg

from pipelines.sensors.upkeep import prune_logs

CORPUS_ASSETS = dg.AssetSelection.groups("corpus")
COMPARISON_ASSETS = dg.AssetSelection.groups("comparison")
CANDIDATE_ASSETS = dg.AssetSelection.assets("candidates", "candidate_battles")
DRIFT_ASSETS = dg.AssetSelection.assets("drift_answers", "judge_drift")
RATED_ASSETS = dg.AssetSelection.assets("learnt_ratings")
VOTE_ASSETS = dg.AssetSelection.groups("voting")
JUDGED_ASSETS = (
    dg.AssetSelection.all()
    - CORPUS_ASSETS
    - COMPARISON_ASSETS
    - CANDIDATE_ASSETS
    - DRIFT_ASSETS
    - RATED_ASSETS
    - VOTE_ASSETS
    - dg.AssetSelection.assets("candidate_verdicts")  # asked in placing_job only
)
PLACED_ASSETS = (dg.AssetSelection.groups("candidates") - CANDIDATE_ASSETS) | (
    dg.AssetSelection.assets("battle_influences", "leaderboard")
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
drift_job = dg.define_asset_job(
    "drift_job",
    DRIFT_ASSETS,
    description="Asks a judge about its panel afresh, and says whether it still judges the same.",
)
ratings_job = dg.define_asset_job(
    "ratings_job",
    RATED_ASSETS,
    description="Learns from people's ratings or rankings of single answers; asks no judge.",
)
votes_job = dg.define_asset_job(
    "votes_job", VOTE_ASSETS, description="Reads the files in a corpus' folder of votes."
)
JOBS = (
    *(corpus_job, judge_job, comparison_job, candidate_job, placing_job, drift_job, ratings_job),
    votes_job,
    prune_logs,
)
