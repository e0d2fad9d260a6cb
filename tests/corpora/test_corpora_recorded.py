"""Verdicts beside battles of our own layout."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from judgeline.io import SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.verdict.outcomes import CRITERIA
from resources.corpora.reading import CorpusRead, read_files

SCORES = {f"{name}_{side}": 7.0 for name in CRITERIA for side in "ab"}


def verdict(**changes: object) -> dict[str, object]:
    return {
        "battle_id": "b0",
        "judge": "Some Judge",
        "order": "AB",
        "replicate": 0,
        "status": "ok",
        "recorded_outcome": 1.0,
        **changes,
    }


@pytest.fixture
def read(tmp_path: Path):
    """Read two battles with verdicts beside them; none where no rows are given."""
    rows = [{"battle_id": f"b{n}", "model_a": "x", "model_b": "y", "winner": "tie"} for n in (0, 1)]
    pd.DataFrame(rows).to_parquet(tmp_path / "battles.parquet")

    def read(*verdicts: dict[str, object], location: str = "battles.parquet") -> CorpusRead:
        if verdicts:
            pd.DataFrame(verdicts).to_parquet(tmp_path / "verdicts.parquet")
        places = [tmp_path / name for name in location.split()]
        return read_files("battles", places)

    return read


def test_battles_alone_have_no_verdicts(read) -> None:
    found = read()
    assert (len(found.battles), len(found.verdicts)) == (2, 0)


def test_verdicts_beside_battles_come_with_them(read) -> None:
    scored = verdict(battle_id="b1", order="mean", recorded_outcome=None, **SCORES)
    found = read(verdict(), verdict(order="BA", recorded_outcome=0.5), scored)
    assert {name: str(kind) for name, kind in found.verdicts.dtypes.items()} == VERDICT_DTYPES
    assert found.verdicts["judge"].tolist() == ["some-judge"] * 3
    assert found.verdicts["recorded_outcome"].tolist()[:2] == [1.0, 0.5]
    assert found.verdicts[list(SCORE_COLUMNS)].iloc[2].eq(7).all()
    assert found.verdicts["identity"].is_unique
    assert found.quarantine.empty


def test_a_published_verdict_keeps_its_identity(read) -> None:
    assert read(verdict()).verdicts["identity"].tolist() == [
        "13f7a7fd4b959487105e4b9df752d15d1d874bf7fd25808fbb3d1ba578c600df"
    ]


def test_a_folder_of_both_is_read_as_a_pair(read) -> None:
    found = read(verdict(), location="battles.parquet verdicts.parquet")
    assert (len(found.battles), len(found.verdicts)) == (2, 1)


def test_verdicts_alone_are_no_corpus(read) -> None:
    with pytest.raises(ValueError, match="no battles lie beside it"):
        read(verdict(), location="verdicts.parquet")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"battle_id": None}, "incomplete-verdict"),
        ({"judge": None, "order": "BA"}, "incomplete-verdict"),
        ({"battle_id": "b7"}, "unknown-battle"),
        ({"order": "AA"}, "unknown-order"),
        ({"order": "BA", "status": "OK"}, "unknown-status"),
        ({"order": "BA", "status": "success", **SCORES}, "unknown-status"),
        ({"order": "BA", **SCORES, "clarity_a": 11.0}, "score-off-scale"),
        ({"order": "BA", **SCORES, "fluency_b": 0.5}, "score-off-scale"),
        ({"order": "BA", **SCORES, "fluency_b": math.inf}, "score-off-scale"),
        ({"order": "BA", "recorded_outcome": 1.5}, "unknown-outcome"),
        ({"order": "BA", "recorded_outcome": None}, "empty-verdict"),
        ({"order": "BA", "clarity_a": 4.0}, "empty-verdict"),
        ({"status": "refusal"}, "duplicate-verdict"),
        ({}, "duplicate-verdict"),
    ],
)
def test_verdicts_that_fit_no_rule_are_quarantined(read, change, reason) -> None:
    found = read(verdict(), verdict(**change))
    assert len(found.verdicts) == 1
    assert found.quarantine[["row", "file", "reason"]].to_numpy().tolist() == [
        [1, "verdicts.parquet", reason]
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"status": "OK"}, r"^status is 'OK'; expected ok, or of a failed verdict parse_error, "),
        ({**SCORES, "factuality_b": 11.0}, "^factuality_b is 11; expected 1 to 10$"),
    ],
)
def test_the_quarantine_says_which_value_is_wrong(read, change, told) -> None:
    (detail,) = read(verdict(**change)).quarantine["detail"]
    assert re.search(told, detail)


def test_the_ends_of_the_scale_and_half_points_are_scores(read) -> None:
    points = {**SCORES, "clarity_a": 1.0, "clarity_b": 10.0, "fluency_a": 7.5}
    found = read(verdict(**points))
    assert found.quarantine.empty
    assert found.verdicts[list(points)].iloc[0].to_dict() == points


def test_replicates_and_failures_are_kept(read) -> None:
    found = read(verdict(), verdict(replicate=1, status="truncated", recorded_outcome=None))
    assert found.verdicts["status"].tolist() == ["ok", "truncated"]


def test_a_table_of_another_kind_is_refused(read) -> None:
    with pytest.raises(ValueError, match="lacks order, status"):
        read({"battle_id": "b0", "judge": "j"})
    with pytest.raises(ValueError, match="a column has another type"):
        read(verdict(recorded_outcome="A wins"))
