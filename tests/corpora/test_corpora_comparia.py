"""ComparIA's votes, as small files with the published columns and types."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from resources.config.corpora import CorpusDefinition
from resources.corpora.reading import CorpusRead, read_corpus


def read(location: Path) -> CorpusRead:
    return read_corpus(
        CorpusDefinition(slug="t", display_name="T", reader="comparia", location=str(location))
    )


def conversation(answer: str) -> list[dict[str, object]]:
    return [
        {"role": "system", "content": "Be kind.", "reasoning_content": None},
        {"role": "user", "content": "Bonjour ?", "reasoning_content": None},
        {"role": "assistant", "content": answer, "reasoning_content": "hidden"},
    ]


def row(number: int, **changes: object) -> dict[str, object]:
    return {
        "id": number,
        "timestamp": pd.Timestamp("2025-01-02 03:04:05"),
        "model_a_name": "ant",
        "model_b_name": "bee",
        "model_pair_name": ["ant", "bee"],
        "chosen_model_name": "ant",
        "both_equal": False,
        "opening_msg": "Bonjour ?",
        "conversation_a": conversation("Salut."),
        "conversation_b": conversation("Oui."),
        "conv_turns": 1,
        "conversation_pair_id": f"p{number}",
        "session_hash": "s1",
        "visitor_id": "v",
        **changes,
    }


SCHEMA = pa.Table.from_pylist([row(0)]).schema


def write(path: Path, *rows: dict[str, object]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), path)
    return path


def test_votes_in_our_words(tmp_path: Path) -> None:
    rows = [
        row(0),
        row(1, chosen_model_name="bee", both_equal=None),
        row(2, chosen_model_name=None, both_equal=True),
        row(3, chosen_model_name="ant", both_equal=True, session_hash=None, opening_msg=None),
    ]
    found = read(write(tmp_path / "votes.parquet", *rows))
    battles = found.battles
    assert battles["human_outcome"].tolist() == [1.0, 0.0, 0.5, 0.5]
    assert battles["battle_id"].tolist() == ["p0", "p1", "p2", "p3"]
    assert battles["cluster_id"].tolist() == ["s1", "s1", "s1", "p3"]
    assert set(battles["instruction"]) == {"Bonjour ?"}
    assert battles["completion_a"][0] == "Salut."
    assert battles["completion_b"][0] == "Oui."
    assert set(battles["language"]) == {"fr"}
    assert battles["n_turns"].tolist() == [1] * 4
    assert battles["timestamp"][0] == pd.Timestamp("2025-01-02 03:04:05", tz="UTC")
    assert found.quarantine.empty


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"chosen_model_name": None, "both_equal": None}, "no-decision"),
        ({"chosen_model_name": None, "both_equal": False}, "no-decision"),
        ({"chosen_model_name": "cat"}, "unknown-winner"),
        ({"conversation_pair_id": "p0"}, "duplicate-battle"),
        ({"conversation_pair_id": "p0", "chosen_model_name": "bee"}, "duplicate-battle"),
        ({"model_b_name": "ant"}, "self-battle"),
        ({"model_b_name": None}, "missing-model"),
    ],
)
def test_votes_that_fit_no_rule(tmp_path: Path, changes, reason) -> None:
    found = read(write(tmp_path / "votes.parquet", row(0), row(1, **changes)))
    assert found.battles["battle_id"].tolist() == ["p0"]
    assert found.battles["human_outcome"].tolist() == [1.0]
    assert found.quarantine[["row", "reason"]].to_numpy().tolist() == [[1, reason]]


def test_a_pair_whose_first_vote_is_unreadable_keeps_its_second(tmp_path: Path) -> None:
    nothing = row(0, chosen_model_name=None)
    found = read(write(tmp_path / "votes.parquet", nothing, row(0)))
    assert found.battles["battle_id"].tolist() == ["p0"]
    assert found.quarantine["reason"].tolist() == ["no-decision"]


def test_languages_come_from_the_conversations_beside_the_votes(tmp_path: Path) -> None:
    write(tmp_path / "votes.parquet", row(0), row(1), row(2), row(3))
    pq.write_table(
        pa.table(
            {
                "conversation_pair_id": ["p0", "p1", "p3", "p9"],
                "languages": [["en", "fr"], [], ["br"], ["de"]],
            }
        ),
        tmp_path / "conversations.parquet",
    )
    assert read(tmp_path).battles["language"].tolist() == ["en", "fr", "fr", "br"]


def test_conversations_alone_are_no_corpus(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"conversation_pair_id": ["p0"], "languages": [["en"]]}),
        tmp_path / "conversations.parquet",
    )
    with pytest.raises(ValueError, match=r"conversations and no votes; add votes\.parquet"):
        read(tmp_path)
