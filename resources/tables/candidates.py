"""Declared tables of candidates: answers, battles, verdicts, controls and predictions."""

from resources.tables.corpus import SAMPLED_BATTLES
from resources.tables.judging import SCORED_BATTLES, VERDICTS
from resources.tables.schema import Table

CANDIDATES = Table(
    "candidates",
    "model control file content_hash question_id instruction language completion family metadata",
    key=["model", "question_id"],
)
QUARANTINED_CANDIDATES = Table(
    "quarantined_candidates", "file content_hash reason detail", key=["file"]
)
CANDIDATE_BATTLES = Table(
    "candidate_battles",
    f"{SAMPLED_BATTLES.words} candidate opponent control content_hash",
    key=["battle_id"],
)
CANDIDATE_VERDICTS = Table("candidate_verdicts", VERDICTS.words, key=VERDICTS.key)
CANDIDATE_SCORES = Table(
    "candidate_scores", f"{SCORED_BATTLES.words} candidate control content_hash", key=["battle_id"]
)
ATTACK_CONTROLS = Table(
    "attack_controls",
    "control model rating lower upper std_error bound bound_is rise n_battles note",
    key=["control"],
)
PREDICTIONS = Table(
    "predictions",
    "model content_hash predicted_at run_id method rating lower upper std_error vote_std_error "
    "miscoverage anchors used_votes scored_at human_rating human_std_error origin_shift n_votes "
    "residual covered",
    key=["model", "method", "content_hash"],
    types={"n_votes": "Int64", "covered": "boolean"},
)
