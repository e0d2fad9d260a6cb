"""Plain verdicts without scores: what `judgeline rank` and a run make of them, and say of them."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from assets.comparison.report import battles_behind, runs_behind
from judgeline.api import Settings, rank_file
from judgeline.cli import COULD_NOT_RUN, main
from judgeline.io import read_judged_battles
from judgeline.tables.corpus import SCORE_COLUMNS
from pipelines.commands.plan import WHOLE, common_part, supported_part
from pipelines.commands.verdicts import import_verdicts
from pipelines.definitions import defs

SAID = "plain verdicts without scores: a win counts as a score difference of 1"
QUICK = Settings(n_resamples=0)
OUTCOMES = {1: 1.0, 0: 0.5, -1: 0.0}
CODINGS = {
    "judge_outcome": (OUTCOMES, None),
    "declared": ({1: "won", 0: "even", -1: "lost"}, "won/lost/even"),
    "verdict": ({1: "A", 0: "tie", -1: "B"}, None),
    "judge_verdict": ({1: "[[A>B]]", 0: "[[A=B]]", -1: "B>A"}, None),
}


@pytest.fixture(scope="module")
def real(data_dir: Path) -> Path:
    """Real battles with votes: GPT-4 as judge, its verdict beside or instead of a score."""
    if not (data_dir / "real").is_dir():
        pytest.skip(f"no real data: {data_dir / 'real'} does not exist")
    return data_dir / "real"


def write(path: Path, table: pd.DataFrame, **columns: object) -> Path:
    table.assign(**columns).to_csv(path, index=False)
    return path


def heldout(path: Path, out: Path, outcomes: str | None = None) -> bytes:
    rank_file(path, out, QUICK, report=False, outcomes=outcomes)
    return (out / "heldout.csv").read_bytes()


@pytest.mark.parametrize("coding", CODINGS)
def test_plain_verdicts_are_rated_like_the_scores_1_0_and_minus_1(real, tmp_path, coding):
    source = real / "llmfao_gpt4_majority.csv"
    table = pd.read_csv(source)
    codes, stated = CODINGS[coding]
    column = "judge_outcome" if stated else coding
    bare = table.drop(columns="score_difference")
    if stated:
        bare = bare.assign(
            human_outcome=bare["human_outcome"].map({1: "won", 0.5: "even", 0: "lost"})
        )
    path = write(tmp_path / "bare.csv", bare, **{column: table["score_difference"].map(codes)})
    assert heldout(path, tmp_path / "bare", stated) == heldout(source, tmp_path / "scored")


@pytest.mark.parametrize("name", ["llmfao_gpt4_votes", "mtbench_gpt4"])
def test_other_real_files_are_rated_the_same_without_their_scores(real, tmp_path, name):
    source = real / f"{name}.csv"
    table = pd.read_csv(source)
    outcome = table.get("judge_outcome", (table["score_difference"] + 1) / 2)
    path = write(tmp_path / "b.csv", table.drop(columns="score_difference"), judge_outcome=outcome)
    assert heldout(path, tmp_path / "bare") == heldout(source, tmp_path / "scored")


def battles(n: int = 400, seed: int = 5) -> pd.DataFrame:
    """Votes and plain verdicts on battles among ten models, the judge right two times in three."""
    rng = np.random.default_rng(seed)
    first, shift = rng.integers(10, size=n), rng.integers(1, 10, size=n)
    second = (first + shift) % 10
    chance = 1 / (1 + np.exp((second - first) / 4))
    return pd.DataFrame(
        {
            "model_a": [f"model-{code}" for code in first],
            "model_b": [f"model-{code}" for code in second],
            "human_outcome": (rng.random(n) < chance).astype(float),
            "verdict": np.where(rng.random(n) < chance, "A", "B"),
        }
    )


def test_the_terminal_and_the_report_say_what_a_win_counts(tmp_path: Path, capsys) -> None:
    path = write(tmp_path / "plain.csv", battles())
    assert main(["rank", str(path), "--out", str(tmp_path / "out"), "--n-resamples", "0"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"the file holds {SAID}." in printed
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"the file holds {SAID}" in html.unescape(report)


def test_a_file_with_scores_is_rated_by_them_and_says_nothing(tmp_path: Path) -> None:
    table = battles()
    scores = np.linspace(-3, 3, len(table))
    read = read_judged_battles(write(tmp_path / "both.csv", table, score_difference=scores))
    assert read.scored["score_difference"].to_numpy() == pytest.approx(scores)
    assert (read.plain, read.outcomes) == ("", "1/0/0.5")


def test_levels_keep_their_strength(tmp_path: Path) -> None:
    texts = ["A>>B", "A>B", "A=B", "B>A", "B>>A", "[[A>>B]]", " [[b>a]] ", "A<<B", "Tie"]
    table = battles(len(texts)).assign(verdict=texts)
    read = read_judged_battles(write(tmp_path / "levels.csv", table))
    assert read.scored["score_difference"].tolist() == [2, 1, 0, -1, -2, 2, -1, -2, 0]
    assert read.scored["recorded_outcome"].tolist() == [1, 1, 0.5, 0, 0, 1, 0, 0, 0.5]
    assert read.plain == f"the file holds {SAID}, and a clear win (A>>B) as 2"


@pytest.mark.parametrize("texts", [["[[A]]", "[[B]]", "[[C]]", "[[c]]"], ["A", "B", "C", "c"]])
def test_the_c_of_mt_bench_is_a_tie_and_the_file_is_said_to_hold_it(tmp_path, texts):
    read = read_judged_battles(write(tmp_path / "c.csv", battles(4), verdict=texts))
    assert read.scored["score_difference"].tolist() == [1, -1, 0, 0]
    assert read.scored["recorded_outcome"].tolist() == [1, 0, 0.5, 0.5]
    assert read.plain == f"the file holds {SAID}, and C as a tie"
    rare = [*["A", "B", "tie"] * 20, "C"]  # another code of ties is there: C is none
    read = read_judged_battles(write(tmp_path / "c.csv", battles(61), verdict=rare))
    assert len(read.scored) == 60
    assert read.plain == f"the file holds {SAID}"


@pytest.mark.parametrize("stated", ["1/-1/0", "left/right/same"])
def test_stated_outcomes_code_a_column_of_verdicts_too(tmp_path: Path, stated: str) -> None:
    codes = dict(zip("ABT", stated.split("/"), strict=True))
    table = battles()
    table["verdict"] = np.where(np.arange(len(table)) % 9 == 0, "T", table["verdict"])
    usual = table.assign(verdict=table["verdict"].replace("T", "tie"))
    coded = table.assign(
        verdict=table["verdict"].map(codes),
        human_outcome=np.where(table["human_outcome"] == 1, codes["A"], codes["B"]),
    )
    boards = [
        heldout(write(tmp_path / f"{name}.csv", each), tmp_path / name, outcomes)
        for name, each, outcomes in (("usual", usual, None), ("coded", coded, stated))
    ]
    assert boards[0] == boards[1]


def test_stated_outcomes_that_a_column_of_verdicts_does_not_have_are_refused(tmp_path):
    table = battles()
    table["human_outcome"] = 2 * table["human_outcome"] - 1
    path = write(tmp_path / "b.csv", table, verdict=table["verdict"].map({"A": 1, "B": 2}))
    with pytest.raises(ValueError, match="column verdict has no -1, but the stated outcomes"):
        read_judged_battles(path, outcomes="1/-1/0")


def test_verdicts_that_say_nothing_are_set_aside_and_are_no_ties(tmp_path: Path) -> None:
    table = battles()
    table.loc[[3, 5], "verdict"] = [None, "neither"]
    read = read_judged_battles(write(tmp_path / "few.csv", table))
    assert len(read.scored) == len(table) - 2
    assert read.scored["score_difference"].abs().eq(1).all()
    assert read.quarantine[["row", "reason"]].to_numpy().tolist() == [
        [3, "unknown-outcome"],
        [5, "unknown-outcome"],
    ]
    assert "verdict is 'neither'; expected" in read.quarantine["detail"][1].replace(",", ";")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"verdict": ["A", "B", "C", "tie"] * 100}, "column verdict .*unknown are 'C'.*outcomes="),
        ({"verdict": ["A", "C", "C", "C"] * 100}, "column verdict .*unknown are 'C'.*outcomes="),
        ({"verdict": ["1", "0", "0.5", "0"] * 100}, "column verdict .*unknown are .*outcomes="),
        ({"verdict": None, "judge_outcome": ["1", "-1"] * 200}, "judge_outcome .*'-1'.*outcomes="),
        ({"judge_verdict": "A"}, "verdict, judge_verdict; leave"),
        ({"scores_difference": 1.0}, "is 'scores_difference' meant as 'score_difference'"),
        (
            {"difference_ab": 1.0, "difference_ba": 1.0},
            "expected also score_difference .or judge_score_a",
        ),
        ({"human_outcome": None}, "expected also human_outcome .or winner; without votes"),
    ],
)
def test_files_that_leave_something_to_guess_are_refused(tmp_path, capsys, change, told):
    dropped = [name for name, values in change.items() if values is None]
    added = {name: values for name, values in change.items() if values is not None}
    path = write(tmp_path / "x.csv", battles().drop(columns=dropped), **added)
    with pytest.raises(ValueError, match=told):
        read_judged_battles(path)
    assert main(["rank", str(path), "--out", str(tmp_path / "out")]) == COULD_NOT_RUN
    assert "x.csv" in capsys.readouterr().err


def test_a_run_rates_plain_verdicts_on_battles_with_votes(
    workshop, tmp_path: Path, monkeypatch
) -> None:
    """A further recorded judge, of whom nothing came with the corpus, has no part in it."""
    monkeypatch.setitem(workshop.judges, "elsewhere", {"kind": "recorded", "family": "none"})
    rated = battles(600)
    winner = {"A": "model_1", "B": "model_2"}
    games = [
        {
            "question_id": place,
            "model_1": one.model_a,
            "model_2": one.model_b,
            "g1_winner": winner[one.verdict],
            "g2_winner": "tie" if place % 5 == 0 else winner[one.verdict],
            "judge": ["recorded", "pair-v2"],
            "turn": 1,
        }
        for place, one in enumerate(rated.itertuples())
    ]
    (tmp_path / "bench.jsonl").write_text("\n".join(map(json.dumps, games)), encoding="utf-8")
    imported = import_verdicts([tmp_path / "bench.jsonl"], "mt-bench", tmp_path / "bench")
    place = imported.files["battles.parquet"]
    votes = pd.read_parquet(place).assign(human_outcome=rated["human_outcome"].to_numpy())
    votes.to_parquet(place)
    workshop.tiny = {
        "reader": "battles",
        "location": str(place),
        "sample_size": 600,
        "rating": {"n_resamples": 0},
    }
    outcome = workshop.run(select=["+leaderboard", "battle_influences"])
    assert outcome.errors == [], workshop.printed
    assert outcome.judges == ("recorded",)
    assert f"judge recorded: {SAID}" in " ".join(workshop.printed.split())
    scored = workshop.stored("scored_battles", "tiny", "recorded")
    assert len(scored) == 600
    assert set(scored["score_difference"]) == {-1.0, -0.5, 0.5, 1.0}
    board = workshop.stored("leaderboard", "tiny", "recorded")
    assert board["rating"].notna().all()
    origin, *_ = runs_behind(workshop.instance, "tiny", "recorded")
    assert origin["score basis"] == SAID  # which the report shows
    assert re.match(r"\d+% from the judge.s verdicts .* Elo\); ", origin["variance of intervals"])
    tables = workshop.tables.create_io_manager(None)
    influences = workshop.stored("battle_influences", "tiny", "recorded")
    evidence = battles_behind(tables, "tiny", "recorded", influences)[0]
    battle = rated.iloc[int(evidence.battle_id.split(":")[0])]
    has_won = (battle["verdict"] == "A") == (battle["model_a"] == evidence.model)
    first = evidence.readings[0]
    assert (first.order, first.unit) == ("AB", "points (plain verdict)")
    assert first.difference == (1 if has_won else -1)


def test_plain_verdicts_without_votes_are_what_they_were() -> None:
    graph = defs.resolve_asset_graph()
    own = pd.DataFrame(
        {"judge": "j", "status": "ok", "order": ["AB", "BA"], "recorded_outcome": [1.0, 0.5]}
    )

    class Store:
        def __init__(self, vote: float) -> None:
            scores = pd.DataFrame(np.nan, index=own.index, columns=list(SCORE_COLUMNS))
            self.tables = {
                "recorded_verdicts": pd.concat([own, scores], axis=1),
                "sampled_battles": pd.DataFrame({"human_outcome": [np.nan, vote]}),
            }

        def stored(self, name: str, corpus: str) -> pd.DataFrame:
            return self.tables[name]

    unrated = supported_part(graph, Store(np.nan), "corpus", "j")
    assert "leaderboard" in {key.to_user_string() for key in unrated.left_out}
    assert "without human votes" in unrated.told
    rated = supported_part(graph, Store(0.5), "corpus", "j")
    assert (rated.left_out, rated.told) == (frozenset(), f"judge j: {SAID}")
    assert common_part({"j": rated}, {"j": True}) == WHOLE
