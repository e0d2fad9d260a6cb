import math
from pathlib import Path

import pandas as pd
import pytest

from judgeline.io import SCORE_COLUMNS
from resources.config.corpora import load_corpora
from resources.corpora.reading import read_files

ROW = {
    "question_id": "q1",
    "subset": "koala",
    "model": "ant",
    "reference_model": "bee",
    "judge": "Some Judge",
    "preference": 0.75,
}


def read(folder: Path, *changes: dict, suffix: str = "parquet"):
    table = pd.DataFrame([{**ROW, **change} for change in changes])
    path = folder / f"battles.{suffix}"
    table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False)
    return read_files("reference-battles", [path])


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_row_is_a_battle_of_the_model_against_the_reference(tmp_path: Path, suffix: str) -> None:
    found = read(tmp_path, {}, {"model": "cat", "preference": 0.0}, suffix=suffix)
    battle = found.battles.iloc[0]
    assert (battle["model_a"], battle["model_b"], battle["question_id"]) == ("ant", "bee", "q1")
    assert found.battles["human_outcome"].isna().all()
    assert found.verdicts["judge"].tolist() == ["some-judge"] * 2
    assert found.verdicts["order"].tolist() == ["mean"] * 2
    assert found.verdicts["recorded_outcome"].tolist() == [0.75, 0.0]
    assert found.verdicts[list(SCORE_COLUMNS)].isna().all(axis=None)
    assert found.quarantine.empty


@pytest.mark.parametrize("preference", [None, math.nan])
def test_no_preference_is_a_failed_verdict_and_no_tie(tmp_path: Path, preference) -> None:
    found = read(tmp_path, {}, {"model": "cat", "preference": preference})
    assert found.verdicts["status"].tolist() == ["ok", "parse_error"]
    assert math.isnan(found.verdicts["recorded_outcome"][1])
    assert len(found.battles) == 2
    assert found.quarantine.empty


@pytest.mark.parametrize("preference", [-0.001, 1.001, math.inf, -math.inf])
def test_a_preference_that_is_no_probability_fails_and_is_told(tmp_path: Path, preference) -> None:
    found = read(tmp_path, {}, {"model": "cat", "preference": preference})
    assert found.verdicts["status"].tolist() == ["ok", "parse_error"]
    assert found.quarantine[["row", "reason"]].to_numpy().tolist() == [[1, "unknown-outcome"]]
    assert repr(preference) in found.quarantine["detail"][0]


def test_words_are_no_preference(tmp_path: Path) -> None:
    found = read(tmp_path, {"preference": "tie"}, suffix="csv")
    assert found.verdicts["status"].tolist() == ["parse_error"]
    assert "'tie'" in found.quarantine["detail"][0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model": "bee"}, "self-battle"),
        ({"model": None}, "missing-model"),
        ({"reference_model": " "}, "missing-model"),
        ({"question_id": None}, "missing-question"),
        ({"judge": None}, "missing-judge"),
        ({}, "duplicate-battle"),
    ],
)
def test_rows_that_tell_of_no_battle_are_quarantined(tmp_path: Path, change, reason) -> None:
    found = read(tmp_path, {}, change)
    assert found.quarantine[["row", "reason"]].to_numpy().tolist() == [[1, reason]]
    assert len(found.battles) == len(found.verdicts) == 1


def test_thirty_real_models(data_dir: Path) -> None:
    path = data_dir / "alpacaeval_reference_battles.parquet"
    if not path.is_file():
        pytest.skip(f"no real data: {path} does not exist")
    published = pd.read_parquet(path)
    found = read_files("reference-battles", [path])
    alone = published["model"].eq(published["reference_model"])
    assert found.quarantine["reason"].tolist() == ["self-battle"] * alone.sum()
    told = found.battles.merge(found.verdicts, on="battle_id", validate="one_to_one")
    pd.testing.assert_series_equal(
        told.groupby("model_a")["recorded_outcome"].mean(),
        published[~alone].groupby("model")["preference"].mean(),
        check_names=False,
    )


def test_the_shipped_entry_names_its_reference() -> None:
    entry = load_corpora()["alpacaeval-reference"]
    assert entry.reference.model == "gpt4_1106_preview"
    assert entry.judges == ["gpt-4-1106-preview"]
