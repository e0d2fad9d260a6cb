"""Declared tables of candidates: answers, battles, verdicts, controls and predictions."""

from judgeline.tables.corpus import SAMPLED_BATTLES
from judgeline.tables.intervals import AMONG_PEOPLE, LEADERBOARD, VOTES_FIRST, WELL_FOUNDED
from judgeline.tables.judging import VERDICTS, parse_check
from judgeline.tables.schema import Table, table, warns

CANDIDATES = Table(
    "candidates",
    "model control file content_hash question_id instruction language completion family metadata",
    key=["model", "question_id"],
)
CANDIDATE_BATTLES = Table(
    "candidate_battles",
    [*SAMPLED_BATTLES.columns, "candidate", "opponent", "control", "content_hash"],
    key=["battle_id"],
)
CANDIDATE_VERDICTS = table(
    "candidate_verdicts",
    VERDICTS.columns,
    VERDICTS.key,
    parse_check(
        "nearly_all_candidate_answers_parse",
        "Battles of a new model without a readable verdict are left out: seldom the easy ones.",
        asked=False,
    ),
)
CANDIDATE_RATINGS = table(
    "candidate_ratings",
    [*LEADERBOARD.columns, "control", "content_hash", "bound", "bound_is", "rise", "note"],
    ["model"],
    warns(
        "candidates_are_placed",
        "A dropped model without a rating, or with a thin one, was dropped in vain so far.",
        "not-judged: materialise candidate_verdicts, within a budget that covers it; "
        "mostly-unscored: look at `status` in candidate_verdicts; else answer more questions.",
        WELL_FOUNDED,
        ids=["model", "flags"],
    ),
    warns(
        "candidates_stand_among_people",
        "Beyond all that people have rated an interval holds less often than promised.",
        VOTES_FIRST,
        AMONG_PEOPLE,
        rows=lambda ratings: ratings[ratings["control"].isna()],
        ids=["model", "judge_rating"],
    ),
)
PREDICTIONS = Table(
    "predictions",
    "model content_hash predicted_at run_id method rating lower upper std_error vote_std_error "
    "miscoverage anchors used_votes scored_at human_rating human_std_error origin_shift n_votes "
    "residual covered",
    key=["model", "method", "content_hash"],
    types={"n_votes": "Int64", "covered": "boolean"},
)
