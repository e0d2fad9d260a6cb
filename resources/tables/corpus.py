"""Declared tables of a corpus: battles as published, clean, and chosen for judging."""

from judgeline.io import BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES
from resources.tables.rules import among, different, has_columns, known, n_rows, unique, within
from resources.tables.schema import Table, stops, table

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
_CALL = ["battle_id", "judge", "order", "replicate"]
RECORDED_VERDICTS = Table("recorded_verdicts", list(VERDICT_DTYPES), key=_CALL)
