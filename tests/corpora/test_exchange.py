"""Writing Soft-Elo annotations: what comes back when the file is read again."""

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgeline.io import typed
from judgeline.tables.corpus import BATTLE_DTYPES, VERDICT_DTYPES
from judgeline.verdict.outcomes import CRITERIA
from resources.corpora.reading import read_files
from resources.exchange.games import Account, judged_battles, require_free, write_together
from resources.exchange.softelo import COLUMNS, NO_QUARTER, write_soft_elo


def battle(number: int, **changes: Any) -> dict[str, Any]:
    ids = dict.fromkeys(("question_id", "cluster_id"), f"q{number}")
    models = {"model_a": "ant", "model_b": "base", "human_outcome": 1.0, "language": "en"}
    texts = {"instruction": f"Why {number}?", "completion_a": "So.", "completion_b": "No, no."}
    return {"battle_id": f"b{number}", **ids, **models, **texts, "n_turns": 1, **changes}


def battles(*rows: dict[str, Any]) -> pd.DataFrame:
    return typed(pd.DataFrame(list(rows), dtype=object), BATTLE_DTYPES)


def verdict(number: int, order: str, outcome: float | None, **changes: Any) -> dict[str, Any]:
    status = "parse_error" if outcome is None else "ok"
    call = {"battle_id": f"b{number}", "judge": "j", "order": order, "replicate": 0}
    said = {"status": status, "recorded_outcome": outcome, "identity": f"{number}-{order}"}
    return {**call, **said, **changes}


def scored(number: int, order: str, a: float, b: float, **changes: Any) -> dict[str, Any]:
    points = {f"{name}_{side}": v for side, v in (("a", a), ("b", b)) for name in CRITERIA}
    return verdict(number, order, None, status="ok", **points, **changes)


def verdicts(*rows: dict[str, Any]) -> pd.DataFrame:
    return typed(pd.DataFrame(list(rows), dtype=object), VERDICT_DTYPES)


class Exported(NamedTuple):
    text: str
    rows: list[dict[str, Any]]
    account: Account


def export(some: pd.DataFrame, said: pd.DataFrame) -> Exported:
    judged, account = judged_battles(some, said)
    text = write_soft_elo(judged, account, "j", "c")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == account.n_written
    return Exported(text, rows, account)


def counted(counts: Counter[str]) -> dict[str, int]:
    return {what: count for what, count in counts.items() if count}


SOME = battles(battle(0), battle(1, model_a="base", model_b="bee", human_outcome=None))


def test_soft_elo_by_hand() -> None:
    said = verdicts(
        scored(0, "AB", 8, 6), scored(0, "BA", 7, 7), verdict(1, "AB", 1.0), verdict(1, "BA", None)
    )
    exported = export(SOME, said)
    assert exported.text.splitlines()[0] == ",".join(COLUMNS)
    first, second = exported.rows
    assert (first["human_pref"], first["judge_pref"]) == ("0.0", "0.25")  # 0 is a win of A
    assert json.loads(first["scores_a"]) == dict.fromkeys(CRITERIA, 7.5)
    assert json.loads(first["scores_b"]) == dict.fromkeys(CRITERIA, 6.5)
    assert (first["len_a"], first["len_b"], first["parse_error"]) == ("3", "7", "False")
    assert (first["source_dataset"], first["row_index"], second["row_index"]) == ("c", "0", "1")
    assert (second["human_pref"], second["judge_pref"]) == ("", "")
    assert (second["scores_a"], second["parse_error"]) == ("{}", "True")


# What the format cannot hold is counted

BOTH = (verdict(0, "AB", 1.0), verdict(0, "BA", 1.0))
FAILED_FIRST = (
    verdict(0, "AB", None, replicate=0),
    verdict(0, "AB", 0.5, replicate=2),
    verdict(0, "AB", 1.0, replicate=1),
    verdict(0, "BA", 0.0, replicate=2),
    verdict(0, "BA", None, replicate=0, status="truncated"),
)
AVERAGED = "battles with both orders averaged into one"
NO_SCORES = "verdicts without rubric scores, written as {}"
ACCOUNTS = [
    ([verdict(0, "mean", 0.3)], "left_out", {NO_QUARTER: 1}),
    ([*BOTH, verdict(0, "AB", 0.0, replicate=1), verdict(9, "AB", 1.0)], "not_read",
     {"verdicts on battles that are not in the sample": 1, "verdicts of further replicates": 1}),
    (FAILED_FIRST, "not_read", {"verdicts of further replicates": 3}),
    (BOTH, "changed", {AVERAGED: 1, NO_SCORES: 1}),
    ([scored(0, "AB", 8, 6), scored(0, "BA", 7, 7)], "changed", {AVERAGED: 1}),
    ([verdict(0, "AB", None), verdict(0, "BA", None, status="refusal")], "changed",
     {"failed battles (parse_error, refusal), written as failed": 1}),
    ([verdict(0, "AB", 0.5)], "changed",
     {"failed battles (never asked), written as failed": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "count", "expected"), ACCOUNTS)
def test_losses_are_counted(rows, count, expected) -> None:
    said = verdicts(*rows)
    exported = export(battles(battle(0)), said.set_index(said.index + 7))
    assert counted(getattr(exported.account, count)) == expected
    assert exported.account.n_written == (0 if count == "left_out" else 1)


@pytest.mark.parametrize(
    ("rows", "preference"),
    [
        (FAILED_FIRST, "0.5"),  # a replicate that was read goes first
        ([verdict(0, "AB", 0.5)], ""),  # never asked is a failure
        ([*BOTH, verdict(0, "AB", 0.0, replicate=1)], "0.0"),
    ],
)
def test_of_replicates_the_first_that_was_read_counts(rows, preference) -> None:
    (row,) = export(battles(battle(0)), verdicts(*rows)).rows
    assert row["judge_pref"] == preference


def test_rows_that_readers_take_for_one_and_battles_without_a_verdict_are_counted() -> None:
    some = battles(battle(0), battle(1, question_id="q0"), battle(2))
    said = verdicts(*(verdict(n, order, 1.0) for n in (0, 1) for order in ("AB", "BA")))
    account = export(some, said).account
    assert account.changed["rows that share question and models with an earlier one"] == 1
    assert counted(account.not_read) == {"battles without a verdict": 1}


def test_scores_beat_nothing_and_a_published_outcome_beats_scores() -> None:
    said = verdicts(scored(0, "mean", 9, 5), scored(1, "mean", 9, 5, recorded_outcome=0.75))
    rows = export(SOME, said).rows
    assert [row["judge_pref"] for row in rows] == ["0.0", "0.25"]


# Round trips

POINTS = st.integers(1, 10).map(float)


@pytest.mark.slow
@given(st.lists(st.tuples(POINTS, POINTS, POINTS, POINTS), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_average_scores_survive_soft_elo(tmp_path_factory, given_points) -> None:
    some = battles(*(battle(n) for n in range(len(given_points))))
    said = []
    for n, (a1, b1, a2, b2) in enumerate(given_points):
        said += [scored(n, "AB", a1, b1), scored(n, "BA", a2, b2)]
    path = tmp_path_factory.mktemp("round") / "one.csv"
    path.write_text(export(some, verdicts(*said)).text, encoding="utf-8")
    found = read_files("softelo-annotations", [path])
    assert found.quarantine.empty
    assert found.battles["human_outcome"].eq(1.0).all()
    assert found.verdicts["clarity_a"].tolist() == [(a1 + a2) / 2 for a1, _, a2, _ in given_points]
    assert found.verdicts["fluency_b"].tolist() == [(b1 + b2) / 2 for _, b1, _, b2 in given_points]
    wins = [(np.sign(a1 - b1) + np.sign(a2 - b2)) / 4 + 0.5 for a1, b1, a2, b2 in given_points]
    assert found.verdicts["recorded_outcome"].tolist() == wins


MODELS = ("model_a", "model_b")


def test_the_released_sample_comes_out_as_it_went_in(sample: Path, tmp_path: Path) -> None:
    first = read_files("softelo-annotations", [sample])
    exported = export(first.battles, first.verdicts)
    path = tmp_path / "again.csv"
    path.write_text(exported.text, encoding="utf-8")
    with sample.open(encoding="utf-8", newline="") as lines:
        published = list(csv.DictReader(lines))
    for ours_row, row in zip(exported.rows, published, strict=True):
        for name in ("human_pref", "judge_pref"):
            assert float(ours_row[name]) == float(row[name])
        for name in ("scores_a", "scores_b"):
            assert json.loads(ours_row[name]) == json.loads(row[name].replace("'", '"'))
        assert [ours_row[name] for name in MODELS] == [row[name] for name in MODELS]
    second = read_files("softelo-annotations", [path])
    assert second.quarantine.empty
    named = ["battle_id", "identity", "judge"]
    both = (found.verdicts.drop(columns=named) for found in (second, first))
    pd.testing.assert_frame_equal(*both)


# Files


def test_files_appear_together_or_not_at_all(tmp_path: Path) -> None:
    one, two = tmp_path / "new" / "one", tmp_path / "new" / "two"

    def broken(path: Path) -> None:
        path.write_text("half", encoding="utf-8")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_together({one: lambda path: path.write_text("1"), two: broken})
    assert list((tmp_path / "new").iterdir()) == []
    write_together({one: lambda path: path.write_text("1")})
    with pytest.raises(ValueError, match="is there already; add --force"):
        require_free({"out": one}, force=False)
    require_free({"out": one}, force=True)
    with pytest.raises(ValueError, match="is a folder"):
        require_free({"out": tmp_path}, force=True)
    with pytest.raises(ValueError, match="cannot write"):
        write_together({one / "below": lambda path: path.write_text("1")})
