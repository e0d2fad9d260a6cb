"""The three LMArena releases, as small files with the published columns and types."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from resources.config.corpora import CorpusDefinition
from resources.corpora.reading import CorpusRead, read_corpus


def read(reader: str, location: Path) -> CorpusRead:
    return read_corpus(
        CorpusDefinition(slug="t", display_name="T", reader=reader, location=str(location))
    )


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def turns(*texts: str) -> list[dict[str, object]]:
    roles = ("user", "assistant")
    return [
        {"role": roles[place % 2], "content": text, "num_tokens": 3}
        for place, text in enumerate(texts)
    ]


def row_100k(number: int, **changes: object) -> dict[str, object]:
    return {
        "question_id": f"q{number}",
        "model_a": "ant",
        "model_b": "bee",
        "winner": "model_a",
        "judge_hash": "h",
        "conversation_a": turns("Hi?", "Hello."),
        "conversation_b": turns("Hi?", "Yo."),
        "turn": 1,
        "anony": True,
        "language": "English",
        "tstamp": 1700000000.5,
        "dedup_tag": {"high_freq": False, "sampled": True},
        **changes,
    }


def blocks(*texts: str | None) -> list[dict[str, object]]:
    return [
        {"type": "text" if text is not None else "image", "text": text, "image": None}
        for text in texts
    ]


def row_140k(number: int, **changes: object) -> dict[str, object]:
    return {
        "id": f"b{number}",
        "model_a": "ant",
        "model_b": "bee",
        "winner": "model_b",
        "evaluation_session_id": "s1",
        "evaluation_order": number,
        "conversation_a": [
            {"role": "user", "content": blocks("See:", None, "what?")},
            {"role": "assistant", "content": blocks("A cat.")},
        ],
        "conversation_b": [
            {"role": "user", "content": blocks("See:", None, "what?"), "num_tokens": 4},
            {"role": "assistant", "content": blocks(), "num_tokens": 0},
        ],
        "language": "pl",
        "timestamp": pd.Timestamp("2025-06-01 12:00:00"),
        **changes,
    }


def row_55k(number: int, **changes: object) -> dict[str, object]:
    return {
        "id": str(number),
        "model_a": "ant",
        "model_b": "bee",
        "prompt": json.dumps(["One?", "Two?"]),
        "response_a": json.dumps(["1", "2"]),
        "response_b": json.dumps(["i", None]),
        "winner_model_a": 0,
        "winner_model_b": 0,
        "winner_tie": 1,
        **changes,
    }


def test_100k_in_our_words(tmp_path: Path) -> None:
    long = turns("First?", "One.", "Second?", "Two.")
    rows = [
        row_100k(0),
        row_100k(1, winner="model_b", language="Russian", conversation_a=long, conversation_b=long),
        row_100k(2, winner="tie", language="unknown"),
        row_100k(3, winner="tie (bothbad)"),
    ]
    found = read("lmarena-100k", write(tmp_path / "x.parquet", rows))
    battles = found.battles
    assert battles["human_outcome"].tolist() == [1.0, 0.0, 0.5, 0.5]
    assert battles["language"].tolist()[:2] == ["en", "ru"]
    assert battles["language"].isna().tolist() == [False, False, True, False]
    assert battles["instruction"].tolist() == ["Hi?", "First?", "Hi?", "Hi?"]
    assert battles["completion_a"].tolist()[:2] == ["Hello.", "One.\n\nTwo."]
    assert battles["completion_b"][0] == "Yo."
    assert battles["n_turns"].tolist() == [1, 2, 1, 1]
    assert battles["timestamp"][0] == pd.Timestamp("2023-11-14 22:13:20.5", tz="UTC")
    assert (
        battles["battle_id"].tolist() == battles["cluster_id"].tolist() == ["q0", "q1", "q2", "q3"]
    )
    assert found.quarantine.empty
    assert found.verdicts.empty


def test_conversations_may_be_json(tmp_path: Path) -> None:
    rows = [
        row_100k(
            0,
            conversation_a=json.dumps(turns("Hi?", "Hello.")),
            conversation_b=json.dumps(turns("Hi?", "Half \ud83d.")),
        )
    ]
    battles = read("lmarena-100k", write(tmp_path / "x.parquet", rows)).battles
    assert battles["completion_a"][0] == "Hello."
    assert battles["completion_b"][0] == "Half ?."  # half a surrogate pair fits no file
    assert battles["n_turns"][0] == 1


@pytest.mark.parametrize(
    ("changes", "reason", "told"),
    [
        ({"winner": "both_bad"}, "unknown-winner", "'both_bad'; expected one of model_a, model_b"),
        ({"winner": "A"}, "unknown-winner", "'A'"),
        ({"winner": None}, "unknown-winner", ""),
        ({"model_a": None}, "missing-model", "model_a is empty"),
        ({"model_b": "ant"}, "self-battle", "'ant'"),
        ({"question_id": "q0"}, "duplicate-battle", "'q0' came before"),
        ({"question_id": None}, "missing-battle-id", "empty"),
        ({"dedup_tag": {"high_freq": True, "sampled": False}}, "frequent-prompt", "q1"),
    ],
)
def test_100k_rows_that_fit_no_rule(tmp_path: Path, changes, reason, told) -> None:
    rows = [row_100k(0), row_100k(1, **changes), row_100k(2)]
    found = read("lmarena-100k", write(tmp_path / "x.parquet", rows))
    assert found.battles["battle_id"].tolist() == ["q0", "q2"]
    assert found.quarantine[["row", "file", "reason"]].to_numpy().tolist() == [
        [1, "x.parquet", reason]
    ]
    assert told in found.quarantine["detail"][0]


@pytest.mark.parametrize(
    "text", ["not json", "3", '[{"content": "x"}]', '[{"role": "user", "content": 3}]']
)
def test_texts_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    good = json.dumps(turns("Hi?", "Hello."))
    rows = [
        row_100k(0, conversation_a=good, conversation_b=good),
        row_100k(1, conversation_a=good, conversation_b=text),
    ]
    found = read("lmarena-100k", write(tmp_path / "x.parquet", rows))
    assert found.battles["battle_id"].tolist() == ["q0"]
    assert found.quarantine["reason"].tolist() == ["unreadable-text"]
    assert "conversation_b" in found.quarantine["detail"][0]


def test_140k_in_our_words(tmp_path: Path) -> None:
    rows = [row_140k(0), row_140k(1, winner="both_bad", language="und"), row_140k(2, winner="tie")]
    found = read("lmarena-140k", write(tmp_path / "x.parquet", rows))
    battles = found.battles
    assert battles["human_outcome"].tolist() == [0.0, 0.5, 0.5]
    assert battles["battle_id"].tolist() == ["b0", "b1", "b2"]
    assert battles["cluster_id"].tolist() == ["s1"] * 3
    assert battles["instruction"][0] == "See:\nwhat?"
    assert battles["completion_a"][0] == "A cat."
    assert battles["completion_b"][0] == ""
    assert battles["language"][0] == "pl"
    assert battles["language"].isna()[1]
    assert battles["timestamp"][0] == pd.Timestamp("2025-06-01 12:00", tz="UTC")


def test_140k_does_not_know_the_codes_of_100k(tmp_path: Path) -> None:
    rows = [row_140k(0), row_140k(1, winner="tie (bothbad)")]
    found = read("lmarena-140k", write(tmp_path / "x.parquet", rows))
    assert found.quarantine["reason"].tolist() == ["unknown-winner"]


def test_shards_are_one_corpus(tmp_path: Path) -> None:
    write(tmp_path / "train-00001-of-00002.parquet", [row_140k(1), row_140k(0)])
    write(tmp_path / "train-00000-of-00002.parquet", [row_140k(0), row_140k(2, winner="?")])
    found = read("lmarena-140k", tmp_path / "train-*.parquet")
    assert found.battles["battle_id"].tolist() == ["b0", "b1"]
    assert found.quarantine[["row", "file", "reason"]].to_numpy().tolist() == [
        [1, "train-00000-of-00002.parquet", "unknown-winner"],
        [1, "train-00001-of-00002.parquet", "duplicate-battle"],
    ]


def test_55k_in_our_words(tmp_path: Path) -> None:
    rows = [
        row_55k(0),
        row_55k(1, winner_model_a=1, winner_tie=0),
        row_55k(2, winner_model_b=1, winner_tie=0),
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "train.csv", index=False)
    found = read("lmarena-55k", tmp_path / "train.csv")
    battles = found.battles
    assert battles["human_outcome"].tolist() == [0.5, 1.0, 0.0]
    assert battles["instruction"][0] == "One?"
    assert battles["completion_a"][0] == "1\n\n2"
    assert battles["completion_b"][0] == "i\n\n"
    assert battles["n_turns"].tolist() == [2, 2, 2]
    assert battles[["language", "timestamp"]].isna().all(axis=None)
    assert found.quarantine.empty


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"winner_tie": 0}, "unknown-winner"),
        ({"winner_model_a": 1}, "unknown-winner"),
        ({"winner_model_a": -1, "winner_model_b": 1}, "unknown-winner"),
        ({"winner_tie": ""}, "unknown-winner"),
        ({"prompt": "One?"}, "unreadable-text"),
        ({"response_a": "[1]"}, "unreadable-text"),
    ],
)
def test_55k_rows_that_fit_no_rule(tmp_path: Path, changes, reason) -> None:
    pd.DataFrame([row_55k(0), row_55k(1, **changes)]).to_csv(tmp_path / "t.csv", index=False)
    found = read("lmarena-55k", tmp_path / "t.csv")
    assert found.battles["battle_id"].tolist() == ["0"]
    assert found.quarantine["reason"].tolist() == [reason]


def test_another_layout_names_columns_and_the_reader_that_fits(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", [row_140k(0)])
    with pytest.raises(
        ValueError,
        match=r"x\.parquet lacks question_id, tstamp for reader 'lmarena-100k'; it has id, .*"
        "Reader lmarena-140k or battles might fit",
    ):
        read("lmarena-100k", path)


def test_no_rows_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([row_100k(0)]).slice(0, 0), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet holds a header and no rows"):
        read("lmarena-100k", tmp_path / "x.parquet")
    (tmp_path / "y.parquet").touch()
    with pytest.raises(ValueError, match=r"y\.parquet is empty \(0 bytes\)"):
        read("lmarena-100k", tmp_path / "y.parquet")
    (tmp_path / "z.parquet").write_text("not parquet at all")
    with pytest.raises(ValueError, match=r"z\.parquet cannot be read as parquet"):
        read("lmarena-100k", tmp_path / "z.parquet")
