"""A judge asked from a notebook: what is said first, what a kill leaves, what is ranked of it."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fault_server import FENCED, FaultServer, serving

import judgeline

N_BATTLES = 200
IN_FLIGHT, AT_HAND = 4, 8  # calls at a time, and replies that are being read, when a kill comes
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def a_home(home: Path) -> Path:
    return home


def battles(n: int = N_BATTLES) -> pd.DataFrame:
    """Battles of six models with votes; all texts differ."""
    rng = np.random.default_rng(5)
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in range(n)])
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(n)],
            "question_id": [f"q{i}" for i in range(n)],
            "model_a": [f"m{a}" for a, _ in pairs],
            "model_b": [f"m{b}" for _, b in pairs],
            "instruction": [f"Question {i}" for i in range(n)],
            "completion_a": [f"first of {i}" for i in range(n)],
            "completion_b": [f"second of {i}" for i in range(n)],
            "human_outcome": rng.choice([0.0, 0.5, 1.0], n),
        }
    )


def at(server: FaultServer, **fields: Any) -> dict[str, Any]:
    return {"model": "tiny", "base_url": server.url, "concurrency": 4, **fields}


def test_the_price_is_said_before_anything_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    price = {"prompt": 2.0, "completion": 10.0, "currency": "USD"}
    with serving(FaultServer()) as server:
        judge = at(server, price_per_million=price)
        with pytest.raises(ValueError, match=r"no budget .* 400 calls; about .* USD.*'400calls'"):
            judgeline.ask(battles(), judge)
        assert server.presentations == []
        with pytest.raises(RuntimeError, match="the budget of 7 calls is spent"):
            judgeline.ask(battles(), judge, budget="7calls")
        assert len(server.presentations) == 7
        judgeline.ask(battles(4), judge, budget="8calls", form="rubric")
        assert len(server.presentations) == 8
    told = capsys.readouterr().err
    assert "tiny: 400 calls" in told
    assert "tiny: 1 calls (7 answered already)" in told
    assert "tiny answered 8 of 8" in told


def test_a_killed_call_goes_on_and_buys_nothing_twice(home: Path) -> None:
    program = """
        import sys
        import judgeline
        from test_ask import at, battles
        judgeline.ask(battles(), {"model": "tiny", "base_url": sys.argv[1], "concurrency": 4},
                      budget="none")
    """
    with serving(FaultServer()) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), server.url],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        while len(server.presentations) < N_BATTLES and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        n_sent = len(server.presentations)
        verdicts = judgeline.ask(battles(), at(server), budget="none")
        assert N_BATTLES <= n_sent < 2 * N_BATTLES
        n_twice = len(server.presentations) - 2 * N_BATTLES
        assert 0 <= n_twice <= IN_FLIGHT + AT_HAND
        again = judgeline.ask(battles(), at(server), budget="none")
        assert len(server.presentations) == 2 * N_BATTLES + n_twice
    pd.testing.assert_frame_equal(again, verdicts)
    assert verdicts["status"].eq("ok").all()
    assert len(verdicts) == 2 * N_BATTLES


def test_the_secret_of_the_marks_lies_in_the_home_or_beside_the_answers(home, tmp_path) -> None:
    with serving(FaultServer()) as server:
        judgeline.ask(battles(1), at(server), budget="none")
        judgeline.ask(battles(1), at(server), budget="none", store=tmp_path / "own")
    prompts = [body["messages"][0]["content"] for body in server.presentations]
    marks = [FENCED.findall(prompt)[0][0] for prompt in prompts]
    assert marks[0] == marks[1] != marks[2] == marks[3]  # both orders, under either secret
    kept = [file / "marks.secret" for file in (home, tmp_path / "own")]
    assert len({file.read_bytes() for file in kept}) == 2
    assert not (home / "verdicts" / "marks.secret").exists()


def test_what_was_asked_is_ranked() -> None:
    with serving(FaultServer()) as server:
        verdicts = judgeline.ask(battles(), at(server), budget="none")
    scored = judgeline.score(battles(), verdicts)
    assert len(scored) == N_BATTLES
    of_people = scored["human_outcome"]
    assert of_people.tolist() == battles()["human_outcome"].tolist()
    agreeing = scored["judge_outcome"].where(scored.index % 4 > 0, of_people)
    board = judgeline.rank(scored.assign(human_outcome=agreeing))
    assert sorted(board.leaderboard["model"]) == [f"m{i}" for i in range(6)]


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ({"modle": "m"}, r"judge 'judge' has the unknown key 'modle'; did you mean 'model'"),
        ({}, "needs the name of its 'model'"),
        ({"model": "m", "kind": "recorded"}, "kind 'recorded' cannot be asked here|not served"),
        ({"model": "m", "api_key_env": "sk-0123456789abcdef0"}, "'api_key_env', is wrong"),
        ("gpt", "the judge is 'gpt'; expected a mapping"),
    ],
)
def test_a_judge_that_is_none_is_refused(judge: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        judgeline.ask(battles(2), judge, budget="none")
    assert "sk-0123456789abcdef0" not in str(caught.value)


@pytest.mark.parametrize("name", ["instruction", "completion_a", "completion_b", "question_id"])
def test_battles_without_a_column_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        judgeline.ask(battles(2).drop(columns=name), {"model": "m"}, budget="none")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"budget": ""}, "budget is .*caps nothing"),
        ({"budget": []}, "budget is .*caps nothing"),
        ({"budget": 5}, "budget is 5, which caps nothing"),
        ({"budget": "5USD"}, "has no price; add 'price_per_million'"),
        ({"form": "nonsense"}, "no form 'nonsense'; there are rubric"),
        ({"n_replicates": 0}, "n_replicates is 0"),
        ({"n_replicates": "2"}, "n_replicates is '2'"),
    ],
)
def test_a_wrong_word_costs_nothing(told: dict[str, Any], said: str) -> None:
    with serving(FaultServer()) as server:
        with pytest.raises(ValueError, match=said):
            judgeline.ask(battles(2), at(server), **{"budget": "none", **told})
        odd = battles(2).assign(completion_a=[None, "x"])
        with pytest.raises(ValueError, match="completion_a is no text in 1 of 2 battles"):
            judgeline.ask(odd, at(server), budget="none")
        alone = battles(2).assign(model_b=battles(2)["model_a"].where([True, False], "other"))
        with pytest.raises(ValueError, match=r"1 of 2 battles compare a model with itself.*'b0'"):
            judgeline.ask(alone, at(server), budget="none")
    assert server.bodies == []


def test_an_empty_answer_is_judged_as_by_every_other_door() -> None:
    with serving(FaultServer()) as server:
        silent = battles(1).assign(completion_a="")
        verdicts = judgeline.ask(silent, at(server), budget="none")
    assert verdicts["status"].tolist() == ["ok", "ok"]


def test_an_error_names_the_argument_and_no_option_of_a_command() -> None:
    every = FaultServer(lambda texts, n: "prose")
    with serving(every) as server, pytest.raises(RuntimeError, match="retry='parse_e") as caught:
        judgeline.ask(battles(60), at(server), budget="none")
    assert "--retry" not in str(caught.value)


def test_choices_make_a_board_and_single_scores_say_what_else_they_are_for() -> None:
    own = battles(300)
    strength = own[["model_a", "model_b"]].apply(lambda names: names.str[1:].astype(float))
    share = (strength["model_a"] > strength["model_b"]).astype(float)
    noisy = share.where(own.index % 4 > 0, 1 - share)
    own["human_outcome"] = noisy
    names = own[["battle_id"]].assign(judge="j", status="ok", replicate=0)
    verdicts = pd.concat([names.assign(order=order, choice=share) for order in ("AB", "BA")])
    verdicts.loc[verdicts["battle_id"].eq("b1") & verdicts["order"].eq("BA"), "choice"] = 0.5
    scored = judgeline.score(own, verdicts).set_index("battle_id")
    assert scored.loc["b0", "judge_outcome"] == share[0]
    assert scored.loc["b1", "score_difference"] == share[1] - 0.5  # a win or loss, and a tie
    board = judgeline.rank(scored.reset_index()).leaderboard
    assert board["model"].iloc[0] == "m5"
    alone = pd.DataFrame({"completion_id": ["c"], "score": [3.0], "status": ["ok"]})
    with pytest.raises(ValueError, match="ask with form 'rubric' or 'choice'"):
        judgeline.score(own, alone)


def test_the_keys_of_an_entry_count() -> None:
    with serving(FaultServer()) as server:
        verdicts = judgeline.ask(battles(2), at(server, replicates=2), budget="100 calls")
    assert sorted(verdicts["replicate"].unique()) == [0, 1]


def test_scores_need_votes_by_their_name_and_both_orders() -> None:
    voted = battles(2).drop(columns="human_outcome").assign(winner="model_a")
    verdicts = pd.DataFrame({"battle_id": ["b0"], "order": ["AB"], "status": ["parse_error"]})
    marks = verdicts.assign(helpfulness_a=np.nan)
    with pytest.raises(ValueError, match="name people's votes human_outcome"):
        judgeline.score(voted, marks)
    with pytest.raises(ValueError, match="no battle has an answer in both orders: 1 of 1"):
        judgeline.score(battles(2), marks)


def test_failures_are_asked_again_on_request() -> None:
    server = FaultServer(lambda texts, n: "refusal-prose" if n < 2 else None)
    with serving(server):
        for retry, n_sent in (((), 4), ((), 4), ("refusal", 8), (["refusal"], 12), ("refusal", 12)):
            verdicts = judgeline.ask(battles(2), at(server), budget="none", retry=retry)
            assert len(server.presentations) == n_sent
        assert verdicts["status"].eq("ok").all()
        with pytest.raises(ValueError, match=r"unknown failure class 'boredom'; known: .*refusal"):
            judgeline.ask(battles(2), at(server), budget="none", retry="boredom")


RUNS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
)
"""Four raters of six targets: P. E. Shrout and J. L. Fleiss (1979), Psychological Bulletin 86(2),
table 2, where table 4 has their ICC(3,1) of .71 and ICC(3,4) of .91."""


def test_the_gate_takes_replicates() -> None:
    table = agreeing()
    table.loc[:5, "score_difference"] = RUNS[:, 0] - 1.0
    runs = {k: table.head(6).assign(score_difference=RUNS[:, k] - 1.0) for k in (1, 2, 3)}
    back = {"model_a": "model_b", "model_b": "model_a"}
    turned = runs[2].rename(columns=back).drop(columns="human_outcome")
    runs[2] = turned.assign(score_difference=-turned["score_difference"])
    gate = judgeline.judge_gate(table, replicates=runs).set_index("criterion")
    assert round(gate.loc["single_run_reliability", "value"], 2) == 0.71
    assert round(gate.loc["icc_average", "value"], 2) == 0.91
    assert gate.loc["icc_average", "note"] == "6 of 6 battles in 4 runs"
    together = pd.concat(
        [table.assign(run=0), *(run.assign(run=k) for k, run in runs.items())]
    ).sample(frac=1, random_state=1)
    again = judgeline.judge_gate(together, replicates="run").set_index("criterion")
    pd.testing.assert_series_equal(again["value"], gate["value"])
    alone = judgeline.judge_gate(table).set_index("criterion")
    assert pd.isna(alone.loc["icc_average", "value"])
    for odd, said in (
        ("round", "replicates is 'round'; expected a column"),
        ({1: runs[1].drop(columns="battle_id")}, "a run has no column 'battle_id'"),
        ({1: runs[1].assign(model_a="other")}, "'b0' has other models in another run"),
    ):
        with pytest.raises(ValueError, match=said):
            judgeline.judge_gate(table, replicates=odd)


def agreeing() -> pd.DataFrame:
    """Battles of a judge that agrees with three votes of four."""
    scored = battles(300).assign(score_difference=np.arange(300) % 7 - 3.0)
    share, other = (np.sign(scored["score_difference"]) + 1) / 2, scored["human_outcome"]
    return scored.assign(human_outcome=share.where(scored.index % 4 > 0, other))


def test_the_gate_has_a_door() -> None:
    table = agreeing()
    gate = judgeline.judge_gate(table, thresholds={"kappa": 0.99})
    assert not gate.set_index("criterion").loc["kappa", "passed"]
    with pytest.raises(ValueError, match=r"no criterion|unknown"):
        judgeline.judge_gate(table, withhold="nonsense")
    with pytest.raises(ValueError, match="expected a number"):
        judgeline.judge_gate(table, thresholds={"kappa": "x"})
    with pytest.raises(judgeline.QualityGateError, match="constant"):
        judgeline.judge_gate(table.assign(score_difference=1.0))
