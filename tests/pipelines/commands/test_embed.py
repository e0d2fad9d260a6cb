"""`judgeline embed`: a file with the vectors of a column, from the embedder that is named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgeline
from judgeline.cli import main

REASONS = ["clear, short", "wrong in the second line", "clear, long", "vague", "off the point"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path / "home"))
    rng = np.random.default_rng(6)
    kind = rng.integers(0, len(REASONS), 120)
    table = pd.DataFrame(
        {
            "question_id": [f"q{i // 2}" for i in range(120)],
            "reason": [REASONS[i] for i in kind],
            "judge_score": rng.integers(1, 6, 120),
            "human_rating": kind + 1,
        }
    )
    table.loc[7, "reason"] = None
    table.to_csv(tmp_path / "rated.csv", index=False)
    return tmp_path / "rated.csv"


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_file_goes_from_reasons_to_a_learnt_judge(file: Path, kind: str, capsys) -> None:
    out = file.with_name(f"embedded.{kind}")
    given = ["embed", str(file), "--text", "reason", "--with", "hashed", "--out", str(out)]
    assert main(given) == 0
    said = capsys.readouterr().out
    assert "6 different texts: 5 vectors of 256 numbers made now, 0 from the store" in said
    assert "1 have no vector: empty" in said
    table = pd.read_parquet(out) if kind == "parquet" else pd.read_json(out, lines=True)
    assert table["embedding"].isna().to_numpy().nonzero()[0].tolist() == [7]
    assert table["judge_score"].tolist() == pd.read_csv(file)["judge_score"].tolist()
    learnt = judgeline.learn_ratings(table).predictions["ls"].drop(7)
    assert np.abs(learnt - table["human_rating"].drop(7)).mean() < 0.2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--text": "reasons"}, "unknown column 'reasons'; did you mean 'reason'"),
        ({"--with": "hash"}, "embedding 'hash'"),
        ({"--out": "there.csv"}, "write to a .jsonl or .parquet file"),
    ],
)
def test_what_is_wrong_is_named(file: Path, change: dict[str, str], message: str, capsys) -> None:
    options = {"--text": "reason", "--with": "hashed", "--out": str(file.with_name("o.parquet"))}
    words = [word for pair in (options | change).items() for word in pair]
    assert main(["embed", str(file), *words]) == 1
    assert message in " ".join(capsys.readouterr().err.split())
    assert not file.with_name("o.parquet").exists()
