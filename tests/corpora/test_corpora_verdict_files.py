"""Arena-Hard, MT-bench and AlpacaEval files: whose win is what, and what becomes of bad rows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judgeline.io import (
    BATTLE_DTYPES,
    QUARANTINE_DTYPES,
    SCORE_COLUMNS,
    VERDICT_DTYPES,
    score_battles,
)
from resources.config.corpora import ArenaHardOptions, CorpusDefinition, load_corpora
from resources.corpora.reading import CorpusRead, read_corpus, read_files
from resources.corpora.verdict_files import joined, labelled, split_answer

BASE = ArenaHardOptions(baseline="base")
HARD = {
    "uid": "u1",
    "model": "ant",
    "judge": "GPT 4",
    "games": [{"score": "A>B"}, {"score": "A=B"}],
}
BENCH = {
    "question_id": 81,
    "model_1": "ant",
    "model_2": "bee",
    "g1_winner": "model_1",
    "g2_winner": "tie",
    "judge": ["gpt-4", "pair-v2"],
    "turn": 1,
    "tstamp": 1687222222.5,
}
ALPACA = {
    "instruction": "Why?",
    "output_1": "So.",
    "output_2": "No.",
    "generator_1": "ant",
    "generator_2": "bee",
    "annotator": "weighted_gpt4",
    "preference": 1.25,
}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write records as JSON lines, raw text as it is; or all of them as one JSON list."""

    def write(*records: Any, name: str = "one.jsonl", as_list: bool = False) -> Path:
        lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
        text = f"[{','.join(lines)}]" if as_list else "\n".join(lines)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def hard(path: Path, options: ArenaHardOptions = BASE) -> CorpusRead:
    return read_files("arena-hard", [path], options)


def said(found: CorpusRead) -> dict[tuple[str, str], float | None]:
    """Outcome by battle and order; None where the verdict failed."""
    verdicts = found.verdicts
    ok = verdicts["status"].eq("ok")
    assert verdicts.loc[~ok, "status"].eq("parse_error").all()
    assert ok.equals(verdicts["recorded_outcome"].notna())
    outcomes = verdicts["recorded_outcome"].astype(object).where(ok, None)
    return dict(
        zip(zip(verdicts["battle_id"], verdicts["order"], strict=True), outcomes, strict=True)
    )


def reasons(found: CorpusRead) -> dict[int, str]:
    return dict(zip(found.quarantine["row"], found.quarantine["reason"], strict=True))


@pytest.mark.parametrize(
    ("reader", "record", "options"),
    [("arena-hard", HARD, BASE), ("mt-bench", BENCH, None), ("alpaca-eval", ALPACA, None)],
)
def test_tables_have_the_agreed_columns_and_no_scores(write: Write, reader, record, options):
    found = read_files(reader, [write(record, "{}", "[1]")], options)
    for table, dtypes in zip(
        found, (BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES), strict=True
    ):
        assert {name: str(dtype) for name, dtype in table.dtypes.items()} == dtypes
    assert found.battles["human_outcome"].isna().all()
    assert found.verdicts[list(SCORE_COLUMNS)].isna().all(axis=None)
    assert found.verdicts["identity"].is_unique
    assert reasons(found)[2] == "unreadable-record"


# Arena-Hard


@pytest.mark.parametrize(
    ("game_1", "game_2", "baseline_first", "model_first"),
    [
        # game 1 shows the baseline as A: "A wins" there is a loss of the model
        ("A>>B", "A>>B", 0.0, 1.0),
        ("A>B", "B>A", 0.0, 0.0),
        ("A=B", "A=B", 0.5, 0.5),
        ("B>A", "A>B", 1.0, 1.0),
        ("B>>A", "B>>A", 1.0, 0.0),
        ("A<B", "B<<A", 1.0, 1.0),
    ],
)
def test_game_1_of_arena_hard_shows_the_baseline_first(
    write: Write, game_1, game_2, baseline_first, model_first
):
    path = write({**HARD, "games": [{"score": game_1}, {"score": game_2}]})
    found = hard(path)
    battle = found.battles.iloc[0]
    assert (battle["model_a"], battle["model_b"]) == ("ant", "base")
    assert said(found) == {
        ("u1:ant:base", "BA"): baseline_first,
        ("u1:ant:base", "AB"): model_first,
    }
    turned = hard(path, ArenaHardOptions(baseline="base", baseline_first_in=2))
    assert said(turned) == {
        ("u1:ant:base", "AB"): 1 - baseline_first,
        ("u1:ant:base", "BA"): 1 - model_first,
    }


def test_strength_and_words_of_a_label_are_kept(write: Write) -> None:
    games = [
        {"score": "A>>B", "judgment": "clearly\n[[A>>B]]"},
        {"score": "A>B", "judgment": {"answer": "a little"}},
    ]
    answers = hard(write({**HARD, "games": games})).verdicts["answer"].tolist()
    assert answers == ["A>>B\nclearly\n[[A>>B]]", "A>B\na little"]


def test_a_failed_game_is_no_tie(write: Write) -> None:
    games = [[None, {"score": None}], [{"score": "C"}, {"score": ["A>B"]}], [{}, "A>B"]]
    found = hard(write(*({**HARD, "uid": n, "games": g} for n, g in enumerate(games))))
    assert set(said(found).values()) == {None}
    assert len(found.verdicts) == 6
    assert len(found.battles) == 3
    assert reasons(found) == {1: "unknown-outcome", 2: "unknown-outcome"}
    assert "'C' is no outcome; expected A>>B" in found.quarantine["detail"][0]
    assert found.verdicts["answer"].tolist()[2] == "C"


def test_a_baseline_can_depend_on_the_category(write: Write) -> None:
    options = ArenaHardOptions(baseline={"math": "one", "prose": "two"})
    rows = [{**HARD, "category": category} for category in ("math", "prose", "dance")]
    found = hard(write(*rows), options)
    assert found.battles["model_b"].tolist() == ["one", "two"]
    assert reasons(found) == {2: "unknown-baseline"}


def test_a_baseline_has_to_be_named(write: Write, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not name the model it compares with"):
        read_files("arena-hard", [write(HARD)])
    config = tmp_path / "corpora.yaml"
    config.write_text("x: {reader: arena-hard, location: one.jsonl}", encoding="utf-8")
    with pytest.raises(ValueError, match="'baseline' under 'arena_hard' go together"):
        load_corpora(config)
    config.write_text(
        f"x: {{reader: arena-hard, location: {write(HARD)}, arena_hard: {{baseline: base}}}}",
        encoding="utf-8",
    )
    assert len(read_corpus(load_corpora(config)["x"]).verdicts) == 2
    config.write_text(
        "x: {reader: arena-hard, location: one, arena_hard: {baselin: base}}", encoding="utf-8"
    )
    with pytest.raises(ValueError, match="did you mean 'baseline'"):
        load_corpora(config)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"uid": None}, "missing-question"),
        ({"uid": True}, "missing-question"),
        ({"model": ""}, "missing-model"),
        ({"model": 7}, "missing-model"),
        ({"model": "base"}, "self-battle"),
        ({"judge": None}, "missing-judge"),
        ({"games": [{"score": "A>B"}]}, "unreadable-games"),
        ({"games": "A>B"}, "unreadable-games"),
        ({}, "duplicate-battle"),
    ],
)
def test_rows_that_tell_of_no_battle_are_quarantined(write: Write, change, reason) -> None:
    found = hard(write(HARD, {**HARD, **change}))
    assert reasons(found) == {1: reason}
    assert len(found.battles) == 1
    assert len(found.verdicts) == 2


def test_names_are_data(write: Write) -> None:
    names = ["../../etc/passwd", "[red]x[/]", "a:b", "{row}", "${HOME}", "\ud800"]
    found = hard(write(*({**HARD, "model": name} for name in names)))
    assert found.battles["model_a"].tolist() == [*names[:-1], "?"]
    assert found.battles["battle_id"].is_unique
    assert found.quarantine.empty


# MT-bench


@pytest.mark.parametrize(
    ("winner", "share"), [("model_1", 1.0), ("model_2", 0.0), ("tie", 0.5), ("error", None)]
)
def test_mt_bench_names_winners_by_model(write: Write, winner: str, share: float | None) -> None:
    path = write({**BENCH, "g1_winner": winner}, {**BENCH, "turn": 2, "g2_winner": winner})
    found = read_files("mt-bench", [path])
    assert said(found) == {
        ("81:1:ant:bee", "AB"): share,
        ("81:1:ant:bee", "BA"): 0.5,
        ("81:2:ant:bee", "AB"): 1.0,
        ("81:2:ant:bee", "BA"): share,
    }
    assert found.battles["question_id"].tolist() == ["81", "81:turn-2"]
    assert found.battles["cluster_id"].tolist() == ["81", "81"]
    assert found.battles["n_turns"].tolist() == [1, 2]
    assert set(found.verdicts["judge"]) == {"gpt-4"}
    assert found.quarantine.empty


def test_an_unknown_winner_is_a_failure_and_told(write: Write) -> None:
    changes = [{"g1_winner": "inconsistent"}, {"g1_winner": None, "g2_winner": 1}]
    rows = [{**BENCH, "turn": n + 1, **change} for n, change in enumerate(changes)]
    found = read_files("mt-bench", [write(*rows)])
    assert list(said(found).values()) == [None, 0.5, None, None]
    assert reasons(found) == {0: "unknown-outcome", 1: "unknown-outcome"}
    assert "g2_winner: 1 is no outcome" in found.quarantine["detail"][1]


@pytest.mark.parametrize("turn", [0, -1, 1.5, "1", True, 10**400])
def test_an_impossible_turn_is_quarantined(write: Write, turn) -> None:
    found = read_files("mt-bench", [write(BENCH, {**BENCH, "turn": turn})])
    assert reasons(found) == {1: "unreadable-turn"}


def test_a_turn_may_be_missing_and_a_judge_plain(write: Write) -> None:
    row = {name: value for name, value in BENCH.items() if name != "turn"}
    found = read_files("mt-bench", [write({**row, "judge": "gpt-4"})])
    assert found.battles["n_turns"].isna().all()
    assert found.battles["question_id"].tolist() == ["81"]


def test_two_judges_share_battles(write: Write) -> None:
    other = {**BENCH, "judge": ["claude-v1", "pair-v2"], "g1_winner": "model_2"}
    found = read_files("mt-bench", [write(BENCH, other)])
    assert len(found.battles) == 1
    assert found.verdicts.groupby("judge")["recorded_outcome"].first().to_dict() == {
        "claude-v1": 0.0,
        "gpt-4": 1.0,
    }


# AlpacaEval


@pytest.mark.parametrize(
    ("preference", "share"),
    [(1, 1.0), (2.0, 0.0), (1.5, 0.5), (0, 0.5), (1.25, 0.75), (None, None), (float("nan"), None)],
)
@pytest.mark.parametrize("as_list", [True, False])
def test_a_preference_of_1_is_a_win_of_output_1(write: Write, preference, share, as_list) -> None:
    found = read_files(
        "alpaca-eval", [write({**ALPACA, "preference": preference}, as_list=as_list)]
    )
    battle = found.battles.iloc[0]
    assert (battle["model_a"], battle["completion_a"]) == ("ant", "So.")
    assert (battle["model_b"], battle["completion_b"]) == ("bee", "No.")
    assert battle["instruction"] == "Why?"
    assert said(found) == {(battle["battle_id"], "mean"): share}
    assert found.quarantine.empty


@pytest.mark.parametrize("preference", [0.5, 2.01, -1, "1", True, float("inf"), 10**400, [1]])
def test_a_preference_off_the_scale_is_a_failure_and_told(write: Write, preference) -> None:
    found = read_files("alpaca-eval", [write({**ALPACA, "preference": preference})])
    assert list(said(found).values()) == [None]
    assert reasons(found) == {0: "unknown-outcome"}


def test_log_probabilities_stay_in_the_answer(write: Write) -> None:
    raw = {"text": "m", "logprobs": {"content": [{"token": "m", "logprob": -0.5}]}}
    rows = [{**ALPACA, "raw_completion": raw}, {**ALPACA, "output_1": "?", "raw_completion": "m"}]
    answers = read_files("alpaca-eval", [write(*rows)]).verdicts["answer"]
    assert json.loads(answers[0]) == raw
    assert answers[1] == "m"


def test_a_battle_is_its_models_and_texts(write: Write) -> None:
    changes = [{}, {"output_2": "Yes."}, {"generator_2": "cat"}, {"instruction": "How?"}, {}]
    found = read_files("alpaca-eval", [write(*({**ALPACA, **one} for one in changes))])
    assert found.battles["battle_id"].is_unique
    assert found.battles["question_id"].nunique() == 2
    assert reasons(found) == {4: "duplicate-battle"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"instruction": None}, "missing-instruction"),
        ({"instruction": 3}, "unreadable-text"),
        ({"output_2": ["No."]}, "unreadable-text"),
        ({"generator_2": None}, "missing-model"),
        ({"generator_2": "ant"}, "self-battle"),
        ({"annotator": ""}, "missing-judge"),
    ],
)
def test_annotations_without_a_battle_are_quarantined(write: Write, change, reason) -> None:
    found = read_files("alpaca-eval", [write(ALPACA, {**ALPACA, **change})])
    assert reasons(found) == {1: reason}
    assert len(found.verdicts) == 1


def test_real_preferences_keep_their_meaning(data_dir: Path, write: Write) -> None:
    """The models' win rates must come out as the data's own mean preference."""
    source = data_dir / "alpacaeval_reference_battles.parquet"
    if not source.is_file():
        pytest.skip(f"no real data: {source} does not exist")
    real = pd.read_parquet(source).dropna(subset=["preference"])
    rows = [
        {
            "instruction": one.question_id,
            "output_1": f"{one.chars_reference} characters",
            "output_2": f"{one.chars_model} characters",
            "generator_1": one.reference_model,
            "generator_2": one.model,
            "annotator": one.judge,
            "preference": 1 + one.preference,  # AlpacaEval puts the reference first
        }
        for one in real.itertuples()
    ]
    found = read_files("alpaca-eval", [write(*rows, name="annotations.json", as_list=True)])
    assert len(found.battles) + len(found.quarantine) == len(real)
    alone = real["model"].eq(real["reference_model"])
    assert found.quarantine["reason"].eq("self-battle").sum() == alone.sum()
    assert set(found.quarantine["reason"]) <= {"duplicate-battle", "self-battle"}
    assert len(found.battles) > 0.95 * len(real)
    told = found.battles.merge(found.verdicts, on="battle_id", validate="one_to_one")
    assert told["model_a"].unique().tolist() == real["reference_model"].unique().tolist()
    ours = 1 - told.groupby("model_b")["recorded_outcome"].mean()
    first = real[~alone].drop_duplicates(["question_id", "model", "chars_model", "chars_reference"])
    theirs = first.groupby("model")["preference"].mean()
    assert ours.to_dict() == pytest.approx(theirs.to_dict(), abs=1e-12)


# Files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("[1, 2", "begins like a JSON list and is none"),
        ('{"uid": 1}', "lacks model, judge, games for reader 'arena-hard'"),
        (json.dumps(BENCH), "Reader mt-bench might fit"),
        ("nonsense", "it has no columns"),
    ],
)
def test_a_file_of_another_kind_is_refused(write: Write, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hard(write(text))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"uid": "\xff"}')
    with pytest.raises(ValueError, match="is not UTF-8"):
        hard(tmp_path / "x.jsonl")


def test_torn_lines_are_quarantined_with_their_place(write: Write) -> None:
    torn = json.dumps(HARD)[:40]
    found = hard(write("", torn, HARD, '"text"', "[" * 100_000))
    assert reasons(found) == dict.fromkeys([0, 2, 3], "unreadable-record")
    assert len(found.battles) == 1


def test_judges_with_one_slug_are_refused(write: Write) -> None:
    with pytest.raises(ValueError, match="share the slug 'gpt-4'"):
        hard(write(HARD, {**HARD, "judge": "gpt-4"}))


@pytest.mark.parametrize("words", [None, "", "why\nso", "A>B\nA>B"])
@pytest.mark.parametrize("label", ["A>B", "", None])
def test_an_answer_comes_apart_as_it_was_put_together(label, words) -> None:
    answer = labelled(label, words)
    assert split_answer(answer, ("A>B", "")) == (label or "", words or "")


def test_parts_of_an_id_cannot_be_confused() -> None:
    parts = [("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c"), ("a", "b", "c")]
    assert len({joined(*one) for one in parts}) == len(parts)


def test_only_arena_hard_takes_its_options() -> None:
    corpus = CorpusDefinition(slug="t", reader="mt-bench", location="x")
    assert corpus.arena_hard is None


def test_games_of_either_program_are_scored_as_wins_ties_and_losses(write: Write) -> None:
    """The strength of a label is kept in the answer and is none of an outcome."""
    games = [[{"score": "B>>A"}, {"score": "A>B"}], [{"score": "A=B"}, None]]
    read = hard(write(*[{**HARD, "uid": f"u{n}", "games": pair} for n, pair in enumerate(games)]))
    scored = score_battles(read.battles, read.verdicts)
    assert scored[["model_a", "score_difference"]].to_numpy().tolist() == [["ant", 1.0]]
    read = read_files("mt-bench", [write(BENCH)], None)
    scored = score_battles(read.battles, read.verdicts)
    assert scored[["model_a", "score_difference"]].to_numpy().tolist() == [["ant", 0.5]]
