"""Declared tables of a corpus: battles as published, clean, and chosen for judging."""

from judgeline.tables.rules import among, different, has_columns, known, n_rows, unique, within
from judgeline.tables.schema import Table, stops, table
from judgeline.verdict import CRITERIA

BATTLE_DTYPES: dict[str, str] = {
    "battle_id": "str",
    "question_id": "str",
    "cluster_id": "str",
    "model_a": "str",
    "model_b": "str",
    "human_outcome": "float64",
    "instruction": "str",
    "completion_a": "str",
    "completion_b": "str",
    "language": "str",
    "category": "str",
    "n_turns": "Int64",
    "timestamp": "datetime64[us, UTC]",
}
"""Columns of battles: ``human_outcome`` is A's share of the win, times are UTC. Several categories
of a question have ``;`` between them."""

SCORE_COLUMNS: tuple[str, ...] = tuple(f"{name}_{side}" for side in "ab" for name in CRITERIA)
"""Rubric scores of model A's completion, then of model B's, whichever was shown first."""

REPLY_DTYPES: dict[str, str] = {
    "reply_model": "str",
    "system_fingerprint": "str",
    "said": "str",
    "reasoning": "str",
}
"""What a server sent beside an answer; older tables lack these columns."""

VERDICT_DTYPES: dict[str, str] = {
    "battle_id": "str",
    "judge": "str",
    "order": "str",
    "replicate": "int64",
    "status": "str",
    **dict.fromkeys(SCORE_COLUMNS, "float64"),
    "recorded_outcome": "float64",
    "answer": "str",
    "log_probabilities": "str",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "identity": "str",
    **REPLY_DTYPES,
}
"""Columns of the verdicts table and their types."""

QUARANTINE_DTYPES: dict[str, str] = {
    "row": "int64",
    "file": "str",
    "battle_id": "str",
    "reason": "str",
    "detail": "str",
}
"""Columns of rows that fit no rule; ``row`` counts from 0 within its file."""

_BATTLE = list(BATTLE_DTYPES)
RAW_BATTLES = table(
    "raw_battles",
    _BATTLE,
    ["battle_id"],
    stops(
        "battles_have_the_agreed_columns",
        "Everything that follows reads these columns; a corpus without battles stops here.",
        "Check the corpus' reader, location and revision in corpora.yaml.",
        has_columns(_BATTLE, f"the columns are {', '.join(_BATTLE)}"),
        n_rows(1, "there is at least one battle"),
    ),
)
QUARANTINED_BATTLES = Table("quarantined_battles", list(QUARANTINE_DTYPES), key=["file", "row"])
BATTLES = table(
    "battles",
    _BATTLE,
    ["battle_id"],
    stops(
        "battles_are_clean",
        "Ids, models and outcomes are what every estimator assumes of them.",
        "Such rows belong in quarantine: correct the reader, or loosen the filters.",
        n_rows(1, "a battle passes the filters"),
        *known("battle_id", "question_id", "cluster_id", "model_a", "model_b"),
        unique("battle_id"),
        different("model_a", "model_b", "a battle is between two models"),
        among("human_outcome", [0.0, 0.5, 1.0], "human_outcome is 1, 0.5, 0 or null"),
        within("n_turns", 1),
    ),
)
SAMPLED_BATTLES = Table("sampled_battles", [*_BATTLE, "selection_order"], key=["battle_id"])
VOTES = Table(
    "votes",
    "page rater battle_id human_outcome weight place n_possible probability shown_first time "
    "seconds",
    key=["rater", "battle_id"],
)
_CALL = ["battle_id", "judge", "order", "replicate"]
RECORDED_VERDICTS = Table("recorded_verdicts", list(VERDICT_DTYPES), key=_CALL)
