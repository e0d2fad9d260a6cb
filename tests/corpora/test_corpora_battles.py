"""Our own layout of battles, in each format."""

import json
from pathlib import Path

import pandas as pd
import pytest

from resources.config.corpora import CorpusDefinition
from resources.corpora.battles import WINNERS
from resources.corpora.reading import CorpusRead, read_corpus


def read(location: Path) -> CorpusRead:
    return read_corpus(
        CorpusDefinition(
            slug="t",
            display_name="T",
            reader="battles",
            location=str(location),
            allow_quarantine=True,
        )
    )


def row(number: int, **changes: object) -> dict[str, object]:
    return {
        "battle_id": f"b{number}",
        "question_id": "q",
        "cluster_id": "c",
        "model_a": "ant",
        "model_b": "bee",
        "winner": "model_a",
        "instruction": "Why?",
        "completion_a": "So.",
        "completion_b": "No.",
        "language": "English",
        "n_turns": 1,
        "timestamp": "2025-01-02T03:04:05Z",
        **changes,
    }


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    table = pd.DataFrame(rows)
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        path.write_text("\n\n".join(json.dumps(one) for one in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_formats_agree(tmp_path: Path, suffix: str) -> None:
    rows = [row(n, winner=winner) for n, winner in enumerate(WINNERS)] + [row(9, winner=None)]
    found = read(write(tmp_path / f"x.{suffix}", rows))
    battles = found.battles
    assert battles["human_outcome"].tolist()[:-1] == list(WINNERS.values())
    assert battles["human_outcome"].isna().tolist() == [False] * 5 + [True]
    first = battles.iloc[0].to_dict()
    assert first == {
        "battle_id": "b0",
        "question_id": "q",
        "cluster_id": "c",
        "model_a": "ant",
        "model_b": "bee",
        "human_outcome": 1.0,
        "instruction": "Why?",
        "completion_a": "So.",
        "completion_b": "No.",
        "language": "en",
        "n_turns": 1,
        "timestamp": pd.Timestamp("2025-01-02 03:04:05", tz="UTC"),
    }
    assert found.quarantine.empty


def test_three_columns_are_enough(tmp_path: Path) -> None:
    rows = [{"model_a": "ant", "model_b": "bee", "human_outcome": vote} for vote in (1, 0.5, 0, "")]
    battles = read(write(tmp_path / "x.csv", rows)).battles
    assert battles["human_outcome"].tolist()[:3] == [1.0, 0.5, 0.0]
    assert battles["human_outcome"].isna()[3]
    assert battles["battle_id"].is_unique
    assert battles["question_id"].tolist() == battles["battle_id"].tolist()
    assert battles[["instruction", "language", "n_turns", "timestamp"]].isna().all(axis=None)


def test_derived_ids_survive_growth_and_tell_content_apart(tmp_path: Path) -> None:
    keys = ("model_a", "model_b", "winner", "instruction", "completion_a", "completion_b")
    rows = [{key: row(0)[key] for key in keys} for _ in range(3)]
    rows[1]["completion_b"] = "Else."
    before = read(write(tmp_path / "x.csv", rows)).battles
    after = read(write(tmp_path / "x.csv", [*rows, {**rows[0], "model_b": "cat"}])).battles
    assert before["battle_id"].is_unique  # the third row repeats the first
    assert len(set(before["question_id"])) == 1
    assert after["battle_id"].tolist()[:3] == before["battle_id"].tolist()
    assert after["battle_id"].is_unique


@pytest.mark.parametrize(
    ("changes", "reason", "told"),
    [
        ({"winner": "A>>B"}, "unknown-winner", "winner is 'A>>B'; expected one of model_a"),
        ({"model_a": ""}, "missing-model", "model_a is empty"),
        ({"model_a": " bee "}, "self-battle", "'bee' is compared with itself"),
        ({"battle_id": "b0"}, "duplicate-battle", "'b0' came before"),
        ({"n_turns": 0}, "unreadable-turns", "n_turns is '0'"),
        ({"n_turns": "1.5"}, "unreadable-turns", "'1.5'"),
        ({"timestamp": "yesterday"}, "unreadable-time", "'yesterday'"),
    ],
)
def test_rows_that_fit_no_rule(tmp_path: Path, changes, reason, told) -> None:
    found = read(write(tmp_path / "x.csv", [row(0), row(1, **changes), row(2)]))
    assert found.battles["battle_id"].tolist() == ["b0", "b2"]
    assert found.quarantine[["row", "reason"]].to_numpy().tolist() == [[1, reason]]
    assert told in found.quarantine["detail"][0]


@pytest.mark.parametrize("vote", ["0.7", "2", "model_a", "yes"])
def test_an_unknown_outcome_is_no_tie(tmp_path: Path, vote: str) -> None:
    rows = [{"model_a": "ant", "model_b": "bee", "human_outcome": v} for v in ("1", vote)]
    found = read(write(tmp_path / "x.csv", rows))
    assert found.battles["human_outcome"].tolist() == [1.0]
    assert found.quarantine["reason"].tolist() == ["unknown-winner"]
    assert repr(vote) in found.quarantine["detail"][0]


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", [{"model_a": "ant", "modelb": "bee", "winner": "tie"}])
    with pytest.raises(ValueError, match=r"lacks model_b for reader 'battles'; it has model_a, "):
        read(path)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.csv", "", r"is empty \(0 bytes\)"),
        ("x.csv", "model_a,model_b,winner\n", "holds a header and no rows"),
        ("x.csv", 'model_a,model_b,winner\n"a,b', "cannot be read as csv"),
        ("x.jsonl", '{"model_a": 1}\n{"mod', "line 2: not JSON"),
        ("x.jsonl", "[1]\n", "line 1: list, expected one object"),
        ("x.xlsx", "?", r"ends in '\.xlsx'; expected one of .*convert it"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=told):
        read(tmp_path / name)
