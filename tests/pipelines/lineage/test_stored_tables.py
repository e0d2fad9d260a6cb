"""What a run stores is what the tables declare, with rows and without."""

from pathlib import PurePosixPath

from resources.tables.declared import TABLES


def test_every_stored_table_is_as_declared(finished):
    stored = {place: PurePosixPath(place).with_suffix("").parts for place in finished.files()}
    found = {
        place: {name: str(kind) for name, kind in finished.stored(*parts).dtypes.items()}
        for place, parts in stored.items()
    }
    assert found == {place: TABLES[parts[0]].dtypes for place, parts in stored.items()}
    assert {parts[0] for parts in stored.values()} >= set(TABLES) - APART


APART = {
    "call_plan",
    "drift_answers",
    "judge_drift",
    "candidates",
    "quarantined_candidates",
    "candidate_battles",
    "candidate_verdicts",
}
"""Tables that a run without candidates, drift watch and plan does not make."""
