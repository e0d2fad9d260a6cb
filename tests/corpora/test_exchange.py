"""Writing verdicts for other programs: what comes back when the file is read again."""

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
from resources.config.corpora import ArenaHardOptions
from resources.corpora.reading import read_files
from resources.exchange.formats import (
    COLUMNS,
    NO_QUARTER,
    NO_TEXT,
    arena_hard_options,
    write_alpaca_eval,
    write_arena_hard,
    write_mt_bench,
    write_soft_elo,
)
from resources.exchange.games import (
    MEAN_ONLY,
    NO_RESULT,
    Account,
    judged_battles,
    require_free,
    write_together,
)

BASE = ArenaHardOptions(baseline="base")
WRITERS = {
    "arena-hard": lambda *given: write_arena_hard(*given, BASE),
    "mt-bench": write_mt_bench,
    "alpaca-eval": write_alpaca_eval,
    "softelo-annotations": lambda *given: write_soft_elo(*given, "c"),
}
"""Writer by the name of the reader of its format."""


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


def export(style: str, some: pd.DataFrame, said: pd.DataFrame) -> Exported:
    judged, account = judged_battles(some, said)
    text = WRITERS[style](judged, account, "j")
    rows = rows_of(style, text)
    assert len(rows) == account.n_written
    return Exported(text, rows, account)


def rows_of(style: str, text: str) -> list[dict[str, Any]]:
    if style == "softelo-annotations":
        return list(csv.DictReader(io.StringIO(text)))
    return json.loads(text) if style == "alpaca-eval" else list(map(json.loads, text.splitlines()))


def counted(counts: Counter[str]) -> dict[str, int]:
    return {what: count for what, count in counts.items() if count}


# Hand-computed: A won shown first, and the orders disagree on the second battle

SOME = battles(battle(0), battle(1, model_a="base", model_b="bee", human_outcome=None))
SAID = verdicts(
    verdict(0, "AB", 1.0, answer="A>>B\nyes"),
    verdict(0, "BA", 1.0),
    verdict(1, "AB", 0.0),
    verdict(1, "BA", None, answer="banana"),
)


def test_arena_hard_by_hand() -> None:
    _, rows, account = export("arena-hard", SOME, SAID)
    said = [(row["uid"], row["model"], row["judge"]) for row in rows]
    assert said == [("q0", "ant", "j"), ("q1", "bee", "j")]
    # game 1 shows the baseline first. Battle 0: ant won both games. Battle 1: base is A and
    # lost the game that showed it first; the other one failed.
    scores = [[game["score"] for game in row["games"]] for row in rows]
    assert scores == [["B>A", "A>>B"], ["B>A", None]]
    words = [game["judgment"] for row in rows for game in row["games"]]
    assert words == ["", "yes", "", "banana"]
    changed = counted(account.changed)
    assert changed["labels without a strength, which the tables do not have"] == 2
    assert changed["failed games (parse_error), written as failed"] == 1


def test_mt_bench_by_hand() -> None:
    first, second = export("mt-bench", SOME, SAID).rows
    assert (second["g1_winner"], second["g2_winner"]) == ("model_2", "error")
    assert first == {
        **{"question_id": "q0", "turn": 1, "model_1": "ant", "model_2": "base", "tstamp": None},
        **{"g1_winner": "model_1", "g2_winner": "model_1", "judge": ["j", "judgeline"]},
        **{"g1_judgment": "A>>B\nyes", "g2_judgment": ""},
    }


def test_alpaca_eval_by_hand() -> None:
    said = verdicts(
        scored(0, "AB", 8, 6, answer="one"),
        scored(0, "BA", 7, 7, answer="two"),
        verdict(1, "mean", 0.25, answer='{"logprobs":[-0.5]}'),
    )
    _, (first, second), account = export("alpaca-eval", SOME, said)
    assert first["preference"] == 1.25  # a win and a tie of output_1
    assert first["raw_completion"] is None
    assert (first["generator_1"], first["output_1"]) == ("ant", "So.")
    assert second["preference"] == 1.75
    assert second["raw_completion"] == {"logprobs": [-0.5]}
    assert counted(account.changed) == {
        "battles with both orders averaged into one": 1,
        "rubric scores of a verdict, not written": 2,
        "the judge's words, not written": 2,
    }


def test_soft_elo_by_hand() -> None:
    said = verdicts(
        scored(0, "AB", 8, 6), scored(0, "BA", 7, 7), verdict(1, "AB", 1.0), verdict(1, "BA", None)
    )
    exported = export("softelo-annotations", SOME, said)
    assert exported.text.splitlines()[0] == ",".join(COLUMNS)
    first, second = exported.rows
    assert (first["human_pref"], first["judge_pref"]) == ("0.0", "0.25")  # 0 is a win of A
    assert json.loads(first["scores_a"]) == dict.fromkeys(CRITERIA, 7.5)
    assert json.loads(first["scores_b"]) == dict.fromkeys(CRITERIA, 6.5)
    assert (first["len_a"], first["len_b"], first["parse_error"]) == ("3", "7", "False")
    assert (first["source_dataset"], first["row_index"], second["row_index"]) == ("c", "0", "1")
    assert (second["human_pref"], second["judge_pref"]) == ("", "")
    assert (second["scores_a"], second["parse_error"]) == ("{}", "True")


# What a format cannot hold is counted

BOTH = (verdict(0, "AB", 1.0), verdict(0, "BA", 1.0))
FAILED_FIRST = (
    verdict(0, "AB", None, replicate=0),
    verdict(0, "AB", 0.5, replicate=2),
    verdict(0, "AB", 1.0, replicate=1),
    verdict(0, "BA", None, replicate=1, status="refusal"),
    verdict(0, "BA", None, replicate=0, status="truncated"),
)
ACCOUNTS = [
    ("mt-bench", {}, [verdict(0, "mean", 1.0)], "left_out", {MEAN_ONLY: 1}),
    ("arena-hard", {}, [verdict(0, "mean", 1.0)], "left_out", {MEAN_ONLY: 1}),
    ("mt-bench", {}, [verdict(0, "AB", 0.75), BOTH[1]], "left_out", {NO_RESULT: 1}),
    ("mt-bench", {}, [verdict(0, "AB", None, status="ok"), BOTH[1]], "left_out", {NO_RESULT: 1}),
    ("softelo-annotations", {}, [verdict(0, "mean", 0.3)], "left_out", {NO_QUARTER: 1}),
    ("arena-hard", {"model_b": "bee"}, BOTH, "left_out",
     {"neither model is the baseline 'base'": 1}),
    ("alpaca-eval", {"completion_b": None}, BOTH, "left_out", {NO_TEXT: 1}),
    ("mt-bench", {}, [*BOTH, verdict(0, "AB", 0.0, replicate=1), verdict(9, "AB", 1.0)], "not_read",
     {"verdicts on battles that are not in the sample": 1, "verdicts of further replicates": 1}),
    ("mt-bench", {}, FAILED_FIRST, "not_read", {"verdicts of further replicates": 3}),
    ("mt-bench", {}, FAILED_FIRST, "changed",
     {"failed games (truncated), written as failed": 1}),
    ("mt-bench", {}, [verdict(0, "AB", 0.5)], "changed",
     {"failed games (never asked), written as failed": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("style", "change", "rows", "count", "expected"), ACCOUNTS)
def test_what_a_format_has_no_place_for_is_counted(style, change, rows, count, expected) -> None:
    said = verdicts(*rows)
    exported = export(style, battles(battle(0, **change)), said.set_index(said.index + 7))
    assert counted(getattr(exported.account, count)) == expected
    assert exported.account.n_written == (0 if count == "left_out" else 1)


@pytest.mark.parametrize(
    ("rows", "winners"),
    [
        (FAILED_FIRST, ("model_1", "error")),  # a replicate that was read goes first
        ([verdict(0, "AB", 0.5)], ("tie", "error")),  # never asked is a failure
        ([*BOTH, verdict(0, "AB", 0.0, replicate=1)], ("model_1", "model_1")),
    ],
)
def test_of_replicates_the_first_that_was_read_counts(rows, winners) -> None:
    (row,) = export("mt-bench", battles(battle(0)), verdicts(*rows)).rows
    assert (row["g1_winner"], row["g2_winner"]) == winners


def test_rows_that_readers_take_for_one_and_battles_without_a_verdict_are_counted() -> None:
    some = battles(battle(0), battle(1, question_id="q0"), battle(2))
    said = verdicts(*(verdict(n, order, 1.0) for n in (0, 1) for order in ("AB", "BA")))
    account = export("mt-bench", some, said).account
    assert account.changed["rows that share question and models with an earlier one"] == 1
    assert counted(account.not_read) == {"battles without a verdict": 1}


def test_scores_beat_nothing_and_a_published_outcome_beats_scores() -> None:
    said = verdicts(scored(0, "mean", 9, 5), scored(1, "mean", 9, 5, recorded_outcome=0.75))
    rows = export("alpaca-eval", SOME, said).rows
    assert [row["preference"] for row in rows] == [1.0, 1.25]


# Round trips

OUTCOMES = st.sampled_from([1.0, 0.5, 0.0, None])
WORDS = st.none() | st.text(max_size=12) | st.sampled_from(["A>>B\nso", "tie", "error\n"])
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6).map(
    lambda name: f"m{name.strip()}"
)


@st.composite
def corpora(draw) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Battles of distinct questions, each judged in both orders."""
    names = st.lists(NAMES | st.integers(0, 99).map(str), min_size=1, max_size=5, unique=True)
    rows, said = [], []
    for number, question in enumerate(draw(names)):
        model = draw(NAMES.filter(lambda name: name != "base"))
        a, b = draw(st.permutations([model, "base"]))
        turn = draw(st.sampled_from([None, 1, 2]))
        rows.append(battle(number, question_id=question, model_a=a, model_b=b, n_turns=turn))
        orders = ("AB", "BA")
        said += [verdict(number, one, draw(OUTCOMES), answer=draw(WORDS)) for one in orders]
    return battles(*rows), verdicts(*said)


def outcomes(some: pd.DataFrame, said: pd.DataFrame) -> dict[tuple[str, str, str], float | None]:
    """Share of the win of each model in the game that shows it first, by question; None failed."""
    found = {}
    for row in said.merge(some, on="battle_id", validate="many_to_one").itertuples():
        sides = (row.model_a, row.model_b)[:: 1 if row.order == "AB" else -1]
        share = row.recorded_outcome if row.order == "AB" else 1 - row.recorded_outcome
        question = row.question_id.removesuffix(":turn-2")
        found[question, *sides] = share if row.status == "ok" else None
    return found


@pytest.mark.slow
@given(corpora())
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("style", ["arena-hard", "mt-bench"])
def test_outcomes_survive_a_round_trip(tmp_path_factory, style, corpus) -> None:
    some, said = corpus
    exported = export(style, some, said)
    path = tmp_path_factory.mktemp("round") / "one.jsonl"
    path.write_text(exported.text, encoding="utf-8")
    found = read_files(style, [path], BASE)
    assert found.quarantine.empty
    assert exported.account.n_written == len(some)
    assert outcomes(found.battles, found.verdicts) == outcomes(some, said)
    assert export(style, found.battles, found.verdicts).rows == exported.rows


@pytest.mark.slow
@given(corpora())
@settings(max_examples=40, deadline=None)
def test_the_average_survives_alpaca_eval(tmp_path_factory, corpus) -> None:
    some, said = corpus
    path = tmp_path_factory.mktemp("round") / "one.json"
    path.write_text(export("alpaca-eval", some, said).text, encoding="utf-8")
    found = read_files("alpaca-eval", [path])
    assert found.quarantine.empty
    assert found.battles["instruction"].tolist() == some["instruction"].tolist()
    both = said.groupby("battle_id", sort=False)["recorded_outcome"].agg(
        lambda shares: shares.mean() if shares.notna().all() else np.nan
    )
    assert found.verdicts["recorded_outcome"].tolist() == pytest.approx(both.tolist(), nan_ok=True)
    assert found.verdicts["status"].eq("ok").tolist() == both.notna().tolist()


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
    path.write_text(export("softelo-annotations", some, verdicts(*said)).text, encoding="utf-8")
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
    exported = export("softelo-annotations", first.battles, first.verdicts)
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


# The baseline on a command line, and files


def test_baselines_are_named_once_or_by_category() -> None:
    assert arena_hard_options("mt-bench", [], 1) is None
    one = ArenaHardOptions(baseline="a", baseline_first_in=2)
    assert arena_hard_options("arena-hard", ["a"], 2) == one
    by_category = arena_hard_options("arena-hard", ["x=a", "y=b=c"], 1)
    assert by_category == ArenaHardOptions(baseline={"x": "a", "y": "b=c"})
    with pytest.raises(ValueError, match="belongs to the format arena-hard"):
        arena_hard_options("mt-bench", ["a"], 1)
    with pytest.raises(ValueError, match="'b' is one of several"):
        arena_hard_options("arena-hard", ["x=a", "b"], 1)
    judged, account = judged_battles(SOME, SAID)
    with pytest.raises(ValueError, match="--baseline NAME"):
        write_arena_hard(judged, account, "j", by_category)


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
