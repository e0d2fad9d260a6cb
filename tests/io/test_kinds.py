"""Kinds of file that people publish, rebuilt small: what `doctor` says, and that its command works.

Names and numbers are of this module; the keys are those of the programs and data sets.
"""

import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa
from test_programs import evaluation, output

import judgeline
from judgeline.cli import main
from judgeline.reliability.labels import kappa_of_labels, rank_correlation, share_of
from judgeline.usable import call_text

MODELS = ("ant", "bee", "cat", "dog")
Rows = list[dict[str, Any]]
TEXT = "A sentence that answers the question at some length, so that nobody takes it for a name. "


def mark(question: int, model: int) -> int:
    return (7 * question + 5 * model * model + 3 * model) % 9 + 1


def battles(n: int = 3) -> Iterator[tuple[int, int, int, int]]:
    """Yield question, both models and the winner's side: 0, 1, or 2 for a tie."""
    for question in range(n):
        for a, b in combinations(range(4), 2):
            first, second = (a, b) if (question + a) % 2 else (b, a)
            gap = mark(question, first) - mark(question, second)
            yield question, first, second, 2 if gap == 0 else int(gap < 0)


def told(*codes: object, n: int = 3) -> Iterator[tuple[int, str, str, Any]]:
    for question, a, b, side in battles(n):
        yield question, MODELS[a], MODELS[b], codes[side]


def alpaca(*codes: float | None, judge: str = "gpt_judge", base: str = "hub") -> Rows:
    return [
        {
            "instruction": f"question {q}",
            "output_1": TEXT + "one",
            "output_2": f"{TEXT}{q} {name}",
            "generator_1": base,
            "generator_2": name,
            "annotator": judge,
            "preference": codes[(mark(q, m) + q) % len(codes)],
        }
        for q in range(6)
        for m, name in enumerate(MODELS)
    ]


def pandalm() -> Rows:
    rows = []
    for idx, (q, a, b, code) in enumerate(told(1, 2, 0)):
        texts = {"instruction": f"do {q}", "input": "", "response1": "x", "response2": "y"}
        people = {f"annotator{n}": code if n + idx % 3 else 1 for n in (1, 2, 3)}
        rows.append({"idx": idx, "cmp_key": f"{a}_{b}", **texts, **people})
    return rows


def pandalm_judge() -> Rows:
    codes = ["1", "2", "Tie"]
    rows = [{"idx": i, "gpt_result": codes[one[3]]} for i, one in enumerate(battles())]
    rows[4]["gpt_result"] = "garbage"
    return [{**row, "gpt_reason": TEXT, "gpt_reference": f"{TEXT}{row['idx']}"} for row in rows]


def singles(**names: str) -> dict[str, Rows]:
    """Return scores of single answers, a model a file."""
    found = {}
    for m, name in enumerate(MODELS):
        own = [{"q": f"s{q}", "m": name, "x": mark(q, m)} for q in range(6)]
        found[name] = [{names[key]: value for key, value in one.items()} for one in own]
    return found


def labelled(label: str, *codes: object, **others: Callable[[int], object]) -> Rows:
    """Return pairs of texts with a gold label, and other columns by row."""
    return [
        {
            label: codes[(q * q + q // 3) % len(codes)],
            "question": f"question {q}",
            **{name: value(q) for name, value in others.items()},
        }
        for q in range(24)
    ]


def renamed(rows: Rows, **names: str) -> Rows:
    return [{names.get(key, key): value for key, value in row.items()} for row in rows]


def one(q: int) -> str:
    return f"{TEXT}{q} one"


def two(q: int) -> str:
    return f"{TEXT}{q} two"


def log(model: str, m: int) -> dict[str, Any]:
    samples = [
        {
            "id": q,
            "epoch": 1,
            "input": f"q{q}",
            "scores": {"match": {"value": "CI"[mark(q, m) % 2]}},
        }
        for q in range(6)
    ]
    head = {"task": "words", "model": f"mock/{model}"}
    return {"version": 2, "status": "success", "eval": head, "plan": {}, "samples": samples}


def deepeval(model: str, m: int) -> dict[str, Any]:
    cases = [
        {"name": f"case {q}", "input": f"q{q}", "actualOutput": TEXT, "success": True,
         "metricsData": [{"name": "Helpful", "score": mark(q, m) / 10, "success": True}]}
        for q in range(6)
    ]  # fmt: skip
    named = {"hyperparameters": {"model": model}}
    return {"testCases": cases, "conversationalTestCases": [], "metricsScores": [], **named}


def mlflow(m: int) -> dict[str, Any]:
    names = ["inputs", "outputs", "correctness/v1/score", "correctness/v1/justification"]
    return {"columns": names, "data": [[f"q{q}", TEXT, mark(q, m), TEXT] for q in range(6)]}


def review(a: int, b: int) -> Rows:
    return [
        {"review_id": f"{q}{a}{b}", "question_id": q, "answer1_id": f"x{a}", "answer2_id": f"x{b}",
         "reviewer_id": 1, "metadata": {}, "text": TEXT, "score": [mark(q, a), mark(q, b)]}
        for q in range(6)
    ]  # fmt: skip


def langfuse() -> Rows:
    return [
        {"id": f"{q}{source}", "timestamp": "2026-01-01", "traceId": f"t{q}", "name": "helpful",
         "value": (mark(q, 1) + (source == "EVAL" and q % 3)) / 10, "stringValue": None,
         "source": source, "dataType": "NUMERIC", "comment": None}
        for q in range(24)
        for source in ("ANNOTATION", "EVAL")
    ]  # fmt: skip


def label_studio() -> Rows:
    return [
        {"id": n, "data": {"prompt": f"p{q}", "model_a": a, "model_b": b, "answer1": "x"},
         "annotations": [{"completed_by": 1, "result": [
             {"type": "pairwise", "from_name": "pw", "value": {"selected": code}}]}]}
        for n, (q, a, b, code) in enumerate(told("left", "right", "left"))
    ]  # fmt: skip


def hard(m: int) -> Rows:
    labels = ("A>>B", "A>B", "A=B", "B>A")
    return [
        {"question_id": f"q{q}", "model": MODELS[m], "judge": "j", "games": [
            {"score": labels[(mark(q, m) + game) % 4], "judgment": TEXT} for game in (0, 1)]}
        for q in range(8)
    ]  # fmt: skip


def orq() -> Rows:
    return [
        {"schema_version": 4, "prompt_hash": f"h{q}", "prompt_text": "p", "model_a": a,
         "model_b": b, "judge_votes": [{"model": "j1", "vote": code}], "majority_verdict": code,
         "winner": {"A": a, "B": b, "tie": "tie"}[code], "error": None}
        for q, a, b, code in told("A", "B", "tie")
    ]  # fmt: skip


def judge_arena(**own: Any) -> Rows:
    rows = []
    for n, (q, a, b, code) in enumerate(told("model_a", "model_b", "tie", n=8)):
        whose = {"source": "human", "judge_model": None} if n % 2 else {}
        whose = {"source": "llm-judge", "judge_model": "j", **whose}
        row = {"question_id": f"q{q}", "model_a": a, "model_b": b, "winner": code, **whose}
        rows.append(row | {key: value(code, n) for key, value in own.items()})
    return rows


def share_of_b(code: str, n: int) -> float | None:
    return None if n % 2 else {"model_a": 0.0, "model_b": 1.0}.get(code, 0.5)


def decided(q: int) -> str:
    return ["A>B", "B>A"][q % 2]


def games(q: int) -> Rows:
    """Return JudgeBench's two games of a pair: in the second the answers are exchanged."""
    swapped = "B>A" if decided(q) == "A>B" else "A>B"
    kept = swapped if q % 4 else decided(q)  # a quarter names the first place twice
    return [{"judgment": {}, "decision": decided(q)}, {"judgment": {}, "decision": kept}]


FOOD = [{"left": a, "right": b, "winner": w} for _, a, b, w in told("left", "right", "tie")]
SCORES = singles(q="session_id", m="model_test", x="score")
NAMES = [MODELS[n % 4] for n in range(24)]
BIGGEN = {
    f"task_{q}": {"input": f"q{q}", "response": one(q), "human_score": mark(q, 1) // 2,
                  "judge_score": (mark(q, 1) + q % 2) // 2}
    for q in range(24)
}  # fmt: skip
TWO = {"response_a": one, "response_b": two}
ITEMS = labelled("majority_preference", "A", "B", "Tie", **TWO, source_winner=lambda q: "AB"[q % 2])
META = [{"version": "1", "date": "2024"}]
ARENA_JA = [
    {"model_a": a, "model_b": b, "winner": w} for _, a, b, w in told("model_a", "model_b", "tie")
]
PROMPTFOO = [output(q, m, MODELS[m], tone=mark(q, m) / 10) for q in range(6) for m in range(4)]
BOARD = [{"model": m, "score": 50.0 - i, "CI": "(-1, 1)"} for i, m in enumerate(MODELS)]

Kind = tuple[Mapping[str, Any], str]
"""Files by name, and the one that is named; nothing is their folder."""
KINDS: dict[str, Kind] = {
    "alpaca-eval null model": ({"a.json": alpaca(1, 2, 1.5, 0, base="null")}, "a.json"),
    "alpaca-eval weighted": ({"a.json": alpaca(1.01, 1.93, 1.4, 1.72)}, "a.json"),
    "alpaca-eval folder": (
        {f"{n}.json": [r for r in alpaca(1, 2, 2) if r["generator_2"] == n] for n in MODELS}, ""
    ),
    "pandalm people": ({"testset.json": pandalm()}, "testset.json"),
    "pandalm judge": ({"testset.json": pandalm(), "gpt.json": pandalm_judge()}, "gpt.json"),
    "wildbench": ({f"{name}.json": rows for name, rows in SCORES.items()}, ""),
    "evalica food": ({"food.csv": FOOD}, "food.csv"),
    "evalica simple": ({"simple.csv": FOOD[:6]}, "simple.csv"),
    "evalica golden": ({"golden.json": {"elo": dict.fromkeys(MODELS, 1.5)}}, "golden.json"),
    "evalica codings": (
        {"codings.csv": [{f"rater_{r}": mark(q, r) % 3 for r in range(2)} for q in range(12)]},
        "codings.csv",
    ),
    "arena-hard leaderboard": ({"board.csv": BOARD}, "board.csv"),
    "chatbot-arena-ja": ({"ja.json": {"meta": META, "data": ARENA_JA}}, "ja.json"),
    "inspect json": ({f"{n}.json": log(n, m) for m, n in enumerate(MODELS)}, ""),
    "vicuna reviews": (
        {f"review_{MODELS[a]}_{MODELS[b]}.jsonl": review(a, b)
         for a, b in combinations(range(4), 2)}, "",
    ),
    "llmzoo review": ({"review_ant_bee.jsonl": review(0, 1)}, "review_ant_bee.jsonl"),
    "auto-j pairs": (
        {"a.jsonl": renamed(
            labelled("label", 0, 1, 2, a=one, b=two), a="response 1", b="response 2")},
        "a.jsonl",
    ),
    "auto-j judge": (
        {"a.jsonl": labelled("label", 0, 1, 2, pred_label=lambda q: q % 3, output=one)}, "a.jsonl"
    ),
    "auto-j output": (
        {"a.jsonl": [{"prompt": one(q), "output": two(q)} for q in range(9)]}, "a.jsonl"
    ),
    "llmbar": ({"a.json": labelled("label", 1, 2, output_1=one, output_2=two)}, "a.json"),
    "judgebench pairs": (
        {"a.jsonl": renamed(
            labelled("label", "A>B", "B>A", **TWO, response_model=lambda _: "m"),
            response_a="response_A", response_b="response_B")}, "a.jsonl",
    ),
    "judgebench judge": (
        {"a.jsonl": renamed(
            labelled("label", "A>B", "B>A", **TWO, judgments=games, judge_name=lambda _: "j"),
            response_a="response_A", response_b="response_B")}, "a.jsonl",
    ),
    "hhh": (
        {"a.json": {"name": "hhh", "examples": [
            {"input": one(q), "target_scores": {"yes": q % 2, "no": 1 - q % 2}}
            for q in range(12)]}},
        "a.json",
    ),
    "anchor": ({"anchor.json": {"version": "1.0", "items": ITEMS}}, "anchor.json"),
    "prolific tasks": (
        {"a.csv": [{"item_id": q, "prompt": "p", "response_a": one(q), "response_b": two(q)}
                   for q in range(9)]}, "a.csv",
    ),
    "bayes log": (
        {"log.jsonl": labelled("label", "A", "B", item_id=str, verdict=lambda q: "AB"[q % 2])},
        "log.jsonl",
    ),
    "bayes items": ({"items.jsonl": labelled("label", "A", "B", **TWO)}, "items.jsonl"),
    "composo": (
        {"a.csv": [{"chosen": one(q), "rejected": two(q), "score_chosen": mark(q, 1),
                    "score_rejected": mark(q, 2)} for q in range(24)]}, "a.csv",
    ),
    "prometheus": (
        {"a.json": labelled("gpt4_score", 1, 3, 5, response=one, human_score=lambda q: 1 + q % 5)},
        "a.json",
    ),
    "biggen": ({"a.json": BIGGEN}, "a.json"),
    "alpacafarm answers": (
        {"a.json": [{"instruction": f"q{q}", "output": one(q), "generator": n}
                    for q, n in enumerate(NAMES)]}, "a.json",
    ),
    "alpacafarm pairs": (
        {"a.json": labelled("preference", 1, 2, output_1=one, output_2=two)}, "a.json"
    ),
    "trulens": (
        {"a.csv": labelled("expected_score", 0.1, 0.5, 0.9, response=one,
                           feedback_score=lambda q: q % 5 / 5)}, "a.csv",
    ),
    "label studio": ({"a.json": label_studio()}, "a.json"),
    "judgelens": (
        {"a.csv": [{"a": a, "b": b, "n": 3 + len(a + b) % 4} for a, b in permutations(MODELS, 2)]},
        "a.csv",
    ),
    "faireval text": ({"human.txt": "1\n2\n"}, "human.txt"),
    "promptfoo": ({"a.json": evaluation(*PROMPTFOO)}, "a.json"),
    "inspect eval": ({}, ""),  # its archive is Inspect AI's to write: tests/io/test_programs.py
    # further programs
    "deepeval": ({f"{n}.json": deepeval(n, m) for m, n in enumerate(MODELS)}, ""),
    "lm-eval": (
        {f"{n}/samples_gsm_2026.jsonl": [
            {"doc_id": q, "doc": {"x": 1}, "target": "t", "arguments": [], "resps": [["t"]],
             "filtered_resps": ["t"], "filter": "none", "metrics": ["acc"], "acc": mark(q, m) % 2}
            for q in range(6)] for m, n in enumerate(MODELS)}, "",
    ),
    "mlflow": ({f"{n}.json": mlflow(m) for m, n in enumerate(MODELS)}, ""),
    "langfuse": ({"scores.csv": langfuse()}, "scores.csv"),
    "langsmith": (
        {f"{n}.csv": [{"input.question": f"q{q}", "outputs.answer": TEXT,
                       "feedback.correct": mark(q, m)} for q in range(6)]
         for m, n in enumerate(MODELS)}, "",
    ),
    "orq-arena": ({"battles.jsonl": orq()}, "battles.jsonl"),
    "judge-arena": ({"b.jsonl": judge_arena(pref=share_of_b)}, "b.jsonl"),
    "judge-arena first": ({"b.jsonl": judge_arena()}, "b.jsonl"),
    "arena-hard": ({f"{MODELS[m]}.jsonl": hard(m) for m in range(4)}, ""),
    "mt-bench": (
        {"a.jsonl": [{"question_id": q, "model_1": a, "model_2": b, "g1_winner": c, "g2_winner": c,
                      "judge": ["j", "pair"], "turn": 1, "tstamp": 1.0}
                     for q, a, b, c in told("model_1", "model_2", "tie")]}, "a.jsonl",
    ),
    "reference": (
        {"a.csv": [{"question_id": q, "model": n, "reference_model": "hub", "judge": "j",
                    "preference": mark(q, m) / 10}
                   for q in range(6) for m, n in enumerate(MODELS)]},
        "a.csv",
    ),
    "one model": ({f"{name}.json": rows for name, rows in SCORES.items()}, "ant.json"),
    "lmarena votes": (
        {"a.jsonl": [row | {"question_id": str(n), "judge_hash": "v", "conversation_a": [],
                            "conversation_b": [], "turn": 1, "language": "English"}
                     for n, row in enumerate(ARENA_JA)]}, "a.jsonl",
    ),
}  # fmt: skip


def write(folder: Path, files: Mapping[str, Any]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".csv"):
            pd.DataFrame(content).to_csv(path, index=False)
        elif isinstance(content, str):
            path.write_text(content)
        elif name.endswith(".jsonl"):
            path.write_text("\n".join(map(json.dumps, content)))
        else:
            path.write_text(json.dumps(content))


PLAIN, AGREEMENT, ASK = "judgeline plain ", "judgeline agreement ", "python -c "
OTHER, SCORED = "verdicts of another program", "battles with scores of a judge"
VERDICTS, VOTES = "plain verdicts", "votes of people without verdicts"
GOLD, BESIDE = "pairs of answers with a gold label", "beside a gold label"
MARKS, NOBODY = "marks of a judge beside those of people", "a judge has to read them first"
TOLD: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("alpaca-eval null model", "alpaca-eval weighted"), (OTHER, PLAIN)),
    **dict.fromkeys(("alpaca-eval folder", "arena-hard", "mt-bench"), (OTHER, PLAIN)),
    **dict.fromkeys(
        ("wildbench", "inspect json", "vicuna reviews", "llmzoo review"), (SCORED, PLAIN)
    ),
    **dict.fromkeys(("promptfoo", "deepeval", "lm-eval", "mlflow", "langsmith"), (SCORED, PLAIN)),
    **dict.fromkeys(("judge-arena", "one model"), (SCORED, PLAIN)),
    **dict.fromkeys(("evalica food", "evalica simple", "orq-arena"), (VERDICTS, PLAIN)),
    **dict.fromkeys(("pandalm judge", "judge-arena first"), (VERDICTS, PLAIN)),
    **dict.fromkeys(("pandalm people", "chatbot-arena-ja", "label studio"), (VOTES, PLAIN)),
    "lmarena votes": (VOTES, PLAIN),
    "reference": ("beside a reference model", PLAIN),
    **dict.fromkeys(("auto-j pairs", "llmbar", "judgebench pairs", "hhh"), (GOLD, AGREEMENT)),
    **dict.fromkeys(("bayes items", "alpacafarm pairs"), (GOLD, AGREEMENT)),
    **dict.fromkeys(("auto-j judge", "anchor", "bayes log"), (BESIDE, AGREEMENT)),
    **dict.fromkeys(("judgebench judge", "langfuse"), ("verdicts beside gold labels", AGREEMENT)),
    "evalica codings": ("codes of several raters", AGREEMENT),
    "composo": ("scores of a better and a worse answer", AGREEMENT),
    **dict.fromkeys(("prometheus", "biggen", "trulens"), (MARKS, AGREEMENT)),
    **dict.fromkeys(("auto-j output", "prolific tasks", "alpacafarm answers"), (NOBODY, ASK)),
    **dict.fromkeys(("evalica golden", "arena-hard leaderboard"), ("a leaderboard of 4 rows", "")),
    "judgelens": ("numbers of battles of a and b, without who won them", ""),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_kind_is_named_and_the_command_that_is_printed_works(
    name: str, tmp_path: Path, capsys
) -> None:
    files, named = KINDS[name]
    write(tmp_path, files)
    assert main(["doctor", str(tmp_path / named), "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out)
    holds, command = TOLD[name]
    assert holds in found["layout"]
    assert found["next"].startswith(command)
    assert bool(found["next"]) is bool(command)
    if command == ASK:
        run = [sys.executable, *shlex.split(found["next"])[1:]]
        told = subprocess.run(run, capture_output=True, text=True, check=True, timeout=300).stdout
        assert "budget" in told
    elif command:
        assert main(shlex.split(found["next"])[1:]) == 0
        told = capsys.readouterr().out
        assert ("Bradley-Terry by" if command == PLAIN else "Gold labels of") in told


def test_every_kind_is_told_or_refused_by_its_name(tmp_path: Path, capsys) -> None:
    assert {*KINDS} - {*TOLD} == {"faireval text", "inspect eval"}
    write(tmp_path, KINDS["faireval text"][0])
    assert main(["doctor", str(tmp_path / "human.txt")]) == 1
    assert "ends in '.txt'; expected one of .csv" in capsys.readouterr().err


def test_columns_are_guessed_and_every_option_is_repeated(tmp_path: Path) -> None:
    path = tmp_path / "my food.csv"
    rows = pd.DataFrame(FOOD).replace({"winner": {"left": "L-wins", "right": "R-wins"}})
    rows.to_csv(path, index=False)
    found = judgeline.doctor(path)
    assert found.next == ""
    assert "State the codes of wins and ties with --outcomes" in found.missing[0]
    assert "left: text, 4 different, 100% filled, such as " in found.columns[0]
    found = judgeline.doctor(path, outcomes="L-wins/R-wins/tie")
    assert found.next == (
        f"judgeline plain '{path}' --outcomes L-wins/R-wins/tie "
        "--columns model_a=left,model_b=right,judge_winner=winner"
    )
    assert "if people decided, state human_outcome=winner" in " ".join(found.concerns)
    table = judgeline.doctor(pd.DataFrame(FOOD))
    assert table.next.startswith("judgeline.plain(battles, columns={'model_a': 'left'")


def votes_beside_verdicts(path: Path, votes: list[str | None], verdicts: list[str]) -> Path:
    rng = np.random.default_rng(4)
    rows = {
        "left_model": [f"m{place % 3}" for place in range(300)],
        "right_model": [f"m{3 + place % 4}" for place in range(300)],
        "winner": rng.choice(votes, 300),
        "gpt_says": rng.choice(verdicts, 300),
    }
    pd.DataFrame(rows).to_csv(path / "mine.csv", index=False)
    return path / "mine.csv"


@pytest.mark.parametrize(
    ("verdicts", "stated"),
    [(["left", "right", "tie"], "left/right/tie/draw"), (["A", "B", "tie"], "left/right/draw")],
)
def test_a_verdict_that_is_called_a_machine_s_beside_another_is_the_judge_s(
    verdicts, stated, tmp_path: Path
) -> None:
    path = votes_beside_verdicts(tmp_path, ["left", "right", "draw", None], verdicts)
    found = judgeline.doctor(path)
    columns = "model_a=left_model,model_b=right_model,human_outcome=winner,judge_winner=gpt_says"
    assert found.next.endswith(f"--columns {columns}")
    assert f"--outcomes {stated} " in found.next
    assert "winner is taken as votes of people, beside verdicts of a judge" in " ".join(
        found.concerns
    )


@pytest.mark.parametrize("verdicts", [["1", "2", "0"], ["win", "loss"]])
@pytest.mark.parametrize("votes", [["left", "right", "tie"], ["model_a", "model_b"]])
def test_of_two_codings_the_verdict_s_is_to_be_converted(votes, verdicts, tmp_path: Path) -> None:
    path = votes_beside_verdicts(tmp_path, votes, verdicts)
    found = judgeline.doctor(path)
    assert found.next == ""
    (said,) = found.missing
    assert "two codings" in said
    assert "write gpt_says as A, B and tie" in said
    rows = pd.read_csv(path, dtype=str)
    codes = dict(zip(verdicts, ["A", "B", "tie"], strict=False))
    rows.assign(gpt_says=rows["gpt_says"].map(codes)).to_csv(path, index=False)
    assert "judge_winner=gpt_says" in judgeline.doctor(path).next  # the remedy works


@pytest.mark.parametrize("stated", [{}, {"model_a": "left", "model_b": "right"}])
def test_stated_votes_are_read_or_their_codes_are_asked_for(stated, tmp_path, capsys) -> None:
    path = tmp_path / "a.csv"
    rows = pd.DataFrame(FOOD).rename(columns={"winner": "crowd"}).replace({"tie": "draw"})
    rows.to_csv(path, index=False)
    stated = {**stated, "human_outcome": "crowd"}
    found = judgeline.doctor(path, columns=stated)
    assert found.next == ""  # 'judgeline plain' would refuse the codes
    assert "State the codes with --outcomes left/right/draw" in found.missing[-1]
    found = judgeline.doctor(path, columns=stated, outcomes="left/right/draw")
    assert found.layout == "votes of people without verdicts of a judge"
    assert main(shlex.split(found.next)[1:]) == 0
    assert "Bradley-Terry by" in capsys.readouterr().out


def test_a_blank_vote_is_nobody_s_and_no_lost_row(tmp_path: Path, capsys) -> None:
    path = tmp_path / "a.csv"
    rows = pd.DataFrame(FOOD).rename(columns={"winner": "human_outcome"})
    rows.loc[::3, "human_outcome"] = None
    rows.to_csv(path, index=False)
    stated = {"model_a": "left", "model_b": "right"}
    found = judgeline.doctor(path, columns=stated, outcomes="left/right/tie")
    assert main(shlex.split(found.next)[1:]) == 0
    told = capsys.readouterr().out
    assert "12 battles of a.csv, judged by people; 0 rows quarantined" in told
    assert "6 rows without a vote (blank, or stated as missing) are left out" in told
    rows.assign(human_outcome=None).to_csv(path, index=False)
    with pytest.raises(ValueError, match="column human_outcome holds no vote in any of 18 rows"):
        judgeline.plain(path, columns=stated, outcomes="left/right/tie")


def test_a_stated_column_is_guessed_to_be_nothing_else(tmp_path: Path) -> None:
    path, rng = tmp_path / "a.csv", np.random.default_rng(2)
    rows = pd.DataFrame(FOOD * 20).rename(columns={"winner": "crowd"})
    rows = rows.assign(gpt_score_1=rng.integers(9, size=360), gpt_score_2=rng.integers(9, size=360))
    rows.to_csv(path, index=False)
    found = judgeline.doctor(path, outcomes="left/right/tie")
    assert "judge_score_b=gpt_score_2" in found.next
    found = judgeline.doctor(path, outcomes="left/right/tie", columns={"judge_winner": "crowd"})
    assert "guessed by their names and values: model_a=left, model_b=right." in found.concerns[0]
    assert "--columns model_a=left,model_b=right,judge_winner=crowd" in found.next


def test_a_command_names_a_folder_that_is_free(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "--out ratings --" in call_text("rank", Path("a.csv"), None, "1/2", None)
    (tmp_path / "ratings").mkdir()
    assert call_text("rank", Path("-a.csv"), None, None, None) == (
        "judgeline rank ./-a.csv --out ratings-2"
    )


def test_votes_beside_scores_of_both_sides_are_proposed(tmp_path: Path, capsys) -> None:
    rng, strengths = np.random.default_rng(3), np.linspace(-1, 1, 9)
    a = rng.integers(9, size=800)
    b = (a + rng.integers(1, 9, size=800)) % 9
    gap = strengths[a] - strengths[b] + rng.normal(size=800)
    crowd = np.select([gap > 0.3, gap < -0.3], ["left", "right"], "tie").astype(object)
    rows = pd.DataFrame(
        {
            "prompt_key": [f"p{place % 100}" for place in range(800)],
            "left_model": [f"m{model}" for model in a],
            "right_model": [f"m{model}" for model in b],
            "crowd": np.where(rng.random(800) < 0.6, crowd, None),
            "gpt_score_left": 5 + 2 * strengths[a] + rng.normal(size=800),
            "gpt_score_right": 5 + 2 * strengths[b] + rng.normal(size=800),
            "lang": ["en", "de"] * 400,
        }
    )
    path = tmp_path / "mine.csv"
    rows.to_csv(path, index=False)
    found = judgeline.doctor(path)
    columns = {
        **{"model_a": "left_model", "model_b": "right_model", "question_id": "prompt_key"},
        **{"human_outcome": "crowd", "judge_score_a": "gpt_score_left"},
        "judge_score_b": "gpt_score_right",
    }
    guessed = ", ".join(f"{ours}={own}" for ours, own in columns.items())
    assert f"guessed by their names and values: {guessed}." in found.concerns[0]
    assert "crowd is taken as votes of people" in found.concerns[1]
    assert found.n_votes == rows["crowd"].notna().sum()
    assert found.next.startswith("judgeline rank ")
    command = shlex.split(found.next.replace("--out ratings", f"--out {tmp_path / 'ratings'}"))
    assert main(command[1:]) == 0
    assert "m8" in capsys.readouterr().out
    rows.rename(columns={"crowd": "gpt_verdict"}).to_csv(path, index=False)
    assert "judge_winner=gpt_verdict" in judgeline.doctor(path).next


def test_failed_verdicts_are_no_ties_and_are_stated_in_the_command(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = pd.DataFrame(FOOD)
    rows.loc[:2, "winner"] = "error"
    rows.to_csv(path, index=False)
    found = judgeline.doctor(path)
    assert (found.n_battles, found.n_quarantined) == (15, 3)
    assert found.next.endswith("judge_winner=winner --allow-quarantine")


def test_plain_ratings_are_log_odds_by_judge_and_by_people() -> None:
    rows = [("a", "b", "A")] * 300 + [("a", "b", "B")] * 100
    verdicts = pd.DataFrame(rows, columns=["model_a", "model_b", "judge_winner"])
    rated = judgeline.plain(verdicts)
    assert rated["source"].tolist() == ["judge", "judge"]
    gap = rated["rating"].iloc[0] - rated["rating"].iloc[1]
    assert gap == pytest.approx(400 * math.log10(3), rel=1e-3)  # a small penalty on strengths
    votes = verdicts.rename(columns={"judge_winner": "winner"})
    people = judgeline.plain(votes.assign(winner=votes["winner"].str.lower()))
    assert people["source"].tolist() == ["people", "people"]
    assert people["rating"].tolist() == pytest.approx(rated["rating"].tolist())


def test_probabilities_of_a_win_count_as_they_are(tmp_path: Path) -> None:
    odds = 7 / 3  # of output_1, the hub's
    (tmp_path / "a.json").write_text(json.dumps(alpaca(1.3)))
    rated = judgeline.plain(tmp_path / "a.json").set_index("model")["rating"]
    gap = rated["hub"] - rated[list(MODELS)].mean()
    assert 0.9 * 400 * math.log10(odds) < gap < 400 * math.log10(odds)  # the penalty is little
    against = judgeline.reference_ratings(tmp_path / "a.json", "hub")
    assert against["gap"].to_numpy() == pytest.approx(
        [-400 * math.log10(odds)] * 4, rel=0.2
    )  # smoothed


def test_agreement_is_that_of_known_programs() -> None:
    rng = np.random.default_rng(3)
    label = rng.integers(0, 3, 200)
    verdict = np.where(rng.random(200) < 0.6, label, rng.integers(0, 3, 200))
    table = np.zeros((3, 3))
    np.add.at(table, (label, verdict), 1)
    known = cohens_kappa(table)
    found = kappa_of_labels(label, verdict, miscoverage=0.05)
    assert found == pytest.approx((known.kappa, known.kappa_low, known.kappa_upp))
    wilson = stats.binomtest(37, 90).proportion_ci(0.9, method="wilson")
    assert share_of(37, 90) == pytest.approx((37 / 90, wilson.low, wilson.high))
    marks = rng.normal(size=200)
    others = marks + rng.normal(size=200)
    rho = rank_correlation(marks, others)
    assert rho.value == pytest.approx(stats.spearmanr(marks, others).statistic)
    assert rho.lower < rho.value < rho.upper
    assert math.isnan(kappa_of_labels([1, 1], [1, 1]).value)


def test_an_answer_that_fails_is_no_failed_verdict(tmp_path: Path, capsys) -> None:
    rows = {"label": ["pass", "fail", "fail", None], "verdict": ["pass", "fail", "error", "pass"]}
    found = judgeline.agreement(pd.DataFrame(rows)).set_index("measure")
    assert found.loc["agreement", ["value", "n"]].tolist() == [1, 2]
    assert found.loc["failed verdicts", "value"] == pytest.approx(1 / 3)
    path = tmp_path / "answers.csv"
    pd.DataFrame(rows).assign(verdict="pass").to_csv(path, index=False)
    assert judgeline.doctor(path).next == f"judgeline rates {path}"
    assert main(["rates", str(path)]) == 0
    assert "all answers" in capsys.readouterr().out


def test_agreement_counts_failures_and_both_orders() -> None:
    table = pd.DataFrame(
        {
            "label": ["A", "A", "B", "B", "A"],
            "verdict": ["A", "A", "A", "B", "error"],
            "verdict_swapped": ["B", "A", "B", "A", "B"],  # A is the answer shown first
        }
    )
    found = judgeline.agreement(table).set_index("measure")
    assert found["value"].to_dict() == pytest.approx(
        {
            "always A": 3 / 5,
            "agreement": 2 / 4,  # the second contradicts itself, the third is wrong
            "kappa": (2 / 4 - 3 / 8) / (1 - 3 / 8),
            "first shown preferred": 5 / 8,
            "both orders agree": 3 / 4,
            "failed verdicts": 1 / 5,
        }
    )
    with pytest.raises(ValueError, match="labels are 1, 2 and verdicts A, B: state the codes"):
        judgeline.agreement(pd.DataFrame({"label": [1, 2], "verdict": ["A", "B"]}))
    stated = pd.DataFrame({"label": [1, 2], "verdict": ["A", "B"]})
    stated = judgeline.agreement(stated, outcomes="1/2").set_index("measure")
    assert stated.loc["agreement", "value"] == 1
    with pytest.raises(ValueError, match="none is 'label'"):
        judgeline.agreement(pd.DataFrame({"verdict": ["A"]}))


def test_scores_that_nobody_annotated_are_no_labels(tmp_path: Path) -> None:
    rows = [row for row in langfuse() if row["source"] == "EVAL"]
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    found = judgeline.doctor(tmp_path / "a.csv")
    assert found.next == ""
    assert "holds no labels" in found.missing[0]


NESTED = [
    {"inputs": {"left": a, "right": b}, "outputs": json.dumps({"winner": w}), "id": 2**60 + n}
    for n, (_, a, b, w) in enumerate(told("left", "right", "tie"))
]
PATHS = {"model_a": "inputs.left", "model_b": "inputs.right", "judge_winner": "outputs.winner"}


def test_dotted_names_reach_into_objects_of_every_format(tmp_path: Path) -> None:
    expected = judgeline.plain(pd.DataFrame(FOOD), columns={
        "model_a": "left", "model_b": "right", "judge_winner": "winner"
    })  # fmt: skip
    table = pd.DataFrame(NESTED)
    table.to_parquet(tmp_path / "a.parquet")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for source in (table, tmp_path / "a.parquet", tmp_path / "a.jsonl"):
        pd.testing.assert_frame_equal(judgeline.plain(source, columns=PATHS), expected)
    with pytest.raises(
        ValueError, match=r"nothing stands at 'inputs.up': 'inputs' has left, right"
    ):
        judgeline.plain(table, columns={**PATHS, "model_a": "inputs.up"})
    found = judgeline.doctor(tmp_path / "a.jsonl")
    assert "inputs.left" in found.columns[0]


def shape(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


OURS = pd.DataFrame(FOOD).set_axis(["model_a", "model_b", "judge_winner"], axis="columns")
SPLIT = {"columns": [*OURS], "data": OURS.to_numpy().tolist()}
SHAPES: dict[str, Callable[[Path], object]] = {
    "split.json": shape(json.dumps(SPLIT)),
    "index.json": lambda path: OURS.to_json(path, orient="index"),
    "columns.json": lambda path: OURS.to_json(path, orient="columns"),
    "lists.json": shape(json.dumps({"meta": META, "data": OURS.to_dict("records")})),
    "named.parquet": lambda path: OURS.set_index(["model_a", "model_b"]).to_parquet(path),
    "above.csv": shape("sep=;\n# exported\n" + OURS.to_csv(index=False, sep=";")),
}


@pytest.mark.parametrize("name", SHAPES)
def test_tables_in_other_shapes_are_the_same(name: str, tmp_path: Path) -> None:
    SHAPES[name](tmp_path / name)
    pd.testing.assert_frame_equal(judgeline.plain(tmp_path / name), judgeline.plain(OURS))


def test_folders_of_a_partitioned_data_set_are_columns(tmp_path: Path) -> None:
    for judge, rows in (("one", OURS[:9]), ("two", OURS[9:])):
        folder = tmp_path / f"judge={judge}"
        folder.mkdir()
        rows.to_parquet(folder / "part-0.parquet")
    assert judgeline.doctor(tmp_path, judge="two").n_battles == 9
    assert "--judge names another (two)" in " ".join(judgeline.doctor(tmp_path).concerns)


def test_tables_of_other_libraries_are_read(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.Table.from_pandas(OURS)
    with (
        pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as stream,
    ):
        stream.write_table(table)
    for source in (table, tmp_path / "a.arrow", OURS.to_dict("list"), OURS.to_dict("records")):
        pd.testing.assert_frame_equal(judgeline.plain(source), judgeline.plain(OURS))


def test_whole_numbers_beyond_floats_stay_and_a_key_twice_is_refused(tmp_path: Path) -> None:
    ids = [None, *range(2**60, 2**60 + 17)]  # as floats they would be one
    rows = [row | {"battle_id": own} for row, own in zip(OURS.to_dict("records"), ids, strict=True)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = judgeline.doctor(path)
    assert (found.n_battles, found.n_quarantined) == (18, 0)
    path.write_text('{"model_a": "a", "model_b": "b", "judge_winner": "A", "model_a": "c"}')
    with pytest.raises(ValueError, match="the key 'model_a' occurs twice"):
        judgeline.doctor(path)


def test_an_unanswered_task_is_no_tie(tmp_path: Path) -> None:
    rows = label_studio()
    rows[0]["annotations"][0]["result"][0]["value"] = {}
    (tmp_path / "a.json").write_text(json.dumps(rows))
    whole = judgeline.doctor(tmp_path / "a.json")
    assert "votes of people" in whole.layout
    found = judgeline.plain(tmp_path / "a.json")
    n_battles = found.loc[found["source"].eq("people"), "n_battles"].sum() / 2
    assert n_battles == len(rows) - 1


def test_scores_of_several_names_are_not_mixed(tmp_path: Path) -> None:
    rows = [{**row, "name": name} for row in langfuse() for name in ("helpful", "toxic")]
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=r"several names \(helpful, toxic\)"):
        judgeline.agreement(tmp_path / "a.csv")


def test_models_with_underscores_are_not_guessed_from_a_file_s_name(tmp_path: Path) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in review(0, 1))
    (tmp_path / "review_llama_13b_vicuna.jsonl").write_text(lines)
    with pytest.raises(ValueError, match="rename it to review_MODEL_MODEL"):
        judgeline.plain(tmp_path / "review_llama_13b_vicuna.jsonl")
