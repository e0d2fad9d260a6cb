"""Results of Inspect AI, JudgeArena and promptfoo, and several files at once, read as battles."""

import json
import pathlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judgeline
from judgeline.io import read_judged_battles

ANSWERS = {"mockllm/right": ["one", "two", "three"], "mockllm/half": ["one", "no", "no"]}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of logs that Inspect AI wrote: two models on three questions."""
    from inspect_ai import Task
    from inspect_ai import eval as run_inspect
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match

    folder = tmp_path_factory.mktemp("logs")
    samples = [
        Sample(id=word, input=f"Say {word}.", target=word) for word in ANSWERS["mockllm/right"]
    ]
    for name, words in ANSWERS.items():
        outputs = [ModelOutput.from_content(name, word) for word in words]
        for output in outputs:
            output.usage = ModelUsage()  # or a tokenizer is downloaded
        model = get_model(name, custom_outputs=outputs)
        task = Task(dataset=samples, scorer=match(), name="words")
        run_inspect(task, model=model, log_dir=str(folder), display="none", max_connections=1)
    return folder


@pytest.mark.slow
def test_logs_of_inspect_are_battles_of_their_models(logs: Path) -> None:
    read = read_judged_battles(logs, with_votes=False)
    scored = read.scored.sort_values("question_id")
    assert read.judge == "match"
    assert scored["question_id"].tolist() == ["words/one", "words/three", "words/two"]
    assert {*scored["model_a"]} == {"mockllm/half"}
    assert scored["score_difference"].tolist() == [0, -1, -1]
    assert judgeline.reference_ratings(logs)["n_prompts"].tolist() == [3]
    alone = f"judgeline plain {logs}"
    assert judgeline.doctor(logs).next == alone
    with pytest.raises(ValueError, match="no votes of people") as refused:
        judgeline.rank(logs)
    assert str(refused.value).endswith(f"Ratings by the judge alone: {alone}")
    one = next(iter(logs.iterdir()))
    with pytest.raises(ValueError, match="score no two models on the same samples"):
        read_judged_battles(one)
    (logs / "votes.csv").write_text("model_a")
    with pytest.raises(ValueError, match=r"holds logs of Inspect AI and votes\.csv"):
        read_judged_battles(logs)
    (logs / "votes.csv").unlink()
    (logs / f"copy-{one.name}").write_bytes(one.read_bytes())
    with pytest.raises(ValueError, match=r"copy-.*\.eval hold scores of model 'mockllm/"):
        read_judged_battles(logs)
    (logs / "broken.eval").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"broken\.eval cannot be read as a log of Inspect AI"):
        read_judged_battles(logs)


def test_battles_of_judge_arena_keep_judge_and_people_apart() -> None:
    rows = [
        # both orders of a battle are one, B's share 0.35; two people voted on it, one turned about
        ("a", "b", "model_a", "llm-judge", 0.1, "q1", "j"),
        ("b", "a", "model_a", "llm-judge", 0.4, "q1", "j"),
        ("a", "b", "tie", "human", np.nan, "q1", None),
        ("b", "a", "model_b", "human", np.nan, "q1", None),
        ("b", "c", "model_b", "llm-judge", 1.0, None, None),
        ("a", "c", "model_a", "human", np.nan, "q9", None),  # no judge saw it
        ("a", None, "model_a", "llm-judge", 0.2, "q2", "j"),
    ]
    names = ["model_a", "model_b", "winner", "source", "pref", "question_id", "judge_model"]
    battles = pd.DataFrame(rows, columns=names)
    read = read_judged_battles(battles, judge="j")
    assert read.scored["score_difference"].tolist() == pytest.approx([0.3, 0.3])
    assert read.scored["human_outcome"].tolist() == [0.5, 1.0]
    assert read.quarantine["reason"].tolist() == ["missing-model"]
    assert read.scored[["difference_ab", "difference_ba"]].to_numpy().ravel() == pytest.approx(
        [0.8, -0.2] * 2
    )
    assert read.notes == (
        "both orders of 1 battle are averaged: another row has the models exchanged",
        "several votes on 1 battle count one by one and are drawn together",
        "1 of 3 votes are on battles that no judge saw: they are left out",
    )
    (other,) = read_judged_battles(battles, judge="judge").scored.itertuples()
    assert (other.model_a, other.score_difference) == ("b", -1.0)
    with pytest.raises(ValueError, match="7 rows have the source 'crowd'"):
        read_judged_battles(battles.assign(source="crowd"))


def output(
    test: int, column: int, provider: str, thumb: bool | None = None, **rubrics: float | None
) -> dict[str, Any]:
    """Return an output as promptfoo writes it; None is a grader's failure, which it scores 0."""
    parts: list[Mapping[str, Any]] = [
        {
            "pass": score == 1,
            "score": score or 0,
            "assertion": {"type": "llm-rubric", "metric": metric},
            **({"metadata": {"graderError": True}} if score is None else {}),
        }
        for metric, score in rubrics.items()
    ]
    if thumb is not None:
        parts.append({"pass": thumb, "score": int(thumb), "assertion": {"type": "human"}})
    parts.append({"pass": True, "score": 1, "assertion": {"type": "contains"}})
    graded = {"pass": True, "score": 0.5, "componentResults": parts if rubrics else []}
    named = {"id": provider, "label": ""}
    return {"testIdx": test, "promptIdx": column, "provider": named, "gradingResult": graded}


def evaluation(*outputs: Mapping[str, Any], version: int = 3) -> str:
    results = {"version": version, "prompts": [], "results": outputs, "stats": {}}
    return json.dumps({"evalId": "e", "results": results, "config": {}, "shareableUrl": None})


def test_results_of_promptfoo_are_battles_of_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    outputs = (
        output(0, 0, "small", tone=0.25, help=1.0),
        output(0, 1, "large", tone=0.75, help=None),
        output(1, 0, "small", tone=0.5, help=0.0),
        {**output(1, 1, "large"), "gradingResult": None, "error": "HTTP 500", "failureReason": 2},
    )
    path.write_text(evaluation(*outputs), encoding="utf-8")
    with pytest.raises(ValueError, match=r"choose one with 'judge': contains, help, tone"):
        read_judged_battles(path, with_votes=False)
    for source in (path, pd.DataFrame([json.loads(path.read_text(encoding="utf-8"))])):
        read = read_judged_battles(source, judge="tone", with_votes=False)
        sides = read.scored[["question_id", "model_a", "model_b", "score_difference"]]
        assert sides.to_numpy().tolist() == [["e/0", "large", "small", 0.5]]
        # an output that the provider never gave has no score, and is no battle
        assert read.quarantine["reason"].tolist() == ["nan-score"]
    with pytest.raises(ValueError, match=r"no row of .* can be rated: 2 nan-score"):
        read_judged_battles(path, judge="help", with_votes=False)
    with pytest.raises(ValueError, match=r"50\.0% of 2 rows are lost"):
        judgeline.reference_ratings(path, judge="tone")
    with pytest.raises(ValueError, match="no votes of people"):
        judgeline.rank(path, judge="tone")


def test_repeated_tests_of_promptfoo_are_one_question(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    scores = {0: (0.2, 0.4), 1: (0.4, 0.8), 2: (1.0, 0.0)}  # test 1 repeats test 0
    asked = {0: {"q": "one", "n": 1}, 1: {"n": 1, "q": "one"}, 2: {"q": "two", "n": 1}}
    outputs = [
        {**output(test, column, name, True, tone=scores[test][column]), "vars": asked[test]}
        for test in asked
        for column, name in enumerate(("small", "large"))
    ]
    path.write_text(evaluation(*outputs), encoding="utf-8")
    read = read_judged_battles(path, judge="tone", with_votes=False)
    sides = read.scored.set_index("question_id")["score_difference"]  # large less small
    assert sides.to_dict() == pytest.approx({"e/0": 0.3, "e/2": -1.0})
    assert "1 of 3 tests have the variables of an earlier one" in " ".join(read.notes)
    assert read.scored["human_outcome"].tolist() == [0.5, 0.5]  # people passed all of them
    assert "6 outputs have a person's rating" in " ".join(read.notes)
    assert "judgeline rates" in " ".join(judgeline.doctor(path, judge="tone").concerns)


def test_thumbs_on_both_outputs_of_a_test_are_a_vote(tmp_path: Path) -> None:
    path, rng = tmp_path / "results.json", np.random.default_rng(1)
    names = ("large", "middle", "small")  # in the order of sides
    thumbs = [[[True, False, None][rng.integers(3)] for _ in names] for _ in range(90)]
    path.write_text(
        evaluation(
            *(
                output(test, at, name, thumb, tone=(int(rng.integers(11)) + 5 * bool(thumb)) / 15)
                for test in range(90)
                for at, (name, thumb) in enumerate(zip(names, thumbs[test], strict=True))
            )
        ),
        encoding="utf-8",
    )
    found = read_judged_battles(path, judge="tone").scored
    votes = found.set_index(["question_id", "model_a", "model_b"])["human_outcome"]
    assert len(votes) == 3 * 90
    for (question, one, two), vote in votes.items():
        a, b = (thumbs[int(question.split("/")[1])][names.index(name)] for name in (one, two))
        assert np.isnan(vote) if None in (a, b) else vote == 0.5 + (a - b) / 2
    assert len(judgeline.rank(path, judge="tone").leaderboard) == 3


def test_thumbs_that_a_second_file_repeats_count_once_and_are_refused_where_they_differ(
    tmp_path: Path,
) -> None:
    names = ("large", "middle", "small")
    rows = [
        (test, at, name, (test * 7 + at) % 3 != 0)
        for test in range(90)
        for at, name in enumerate(names)
    ]
    scored = [output(*row, tone=(test * 5 % 11) / 11) for test, row in enumerate(rows)]
    only_rated = [output(*row) for row in rows[:30]]
    for one, (*_, thumb) in zip(only_rated, rows, strict=False):
        one["gradingResult"]["componentResults"] = [
            {"pass": thumb, "score": int(thumb), "assertion": {"type": "human"}}
        ]
    (tmp_path / "whole.json").write_text(evaluation(*scored), encoding="utf-8")
    before = read_judged_battles(tmp_path, judge="tone")
    (tmp_path / "rated.json").write_text(evaluation(*only_rated), encoding="utf-8")
    both = read_judged_battles(tmp_path, judge="tone")
    pd.testing.assert_series_equal(both.scored["human_outcome"], before.scored["human_outcome"])
    assert both.notes == before.notes  # on how many outputs people have rated
    (part,) = only_rated[4]["gradingResult"]["componentResults"]
    part["pass"] = not part["pass"]
    (tmp_path / "rated.json").write_text(evaluation(*only_rated), encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"differ in people's ratings of model 'middle' on test e/1"
    ):
        read_judged_battles(tmp_path, judge="tone")


def test_a_score_of_zero_is_asked_about_in_the_words_of_promptfoo(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    outputs = (
        output(test, column, name, tone=0.0 if test % 3 == 0 else 0.8 + (test % 5) / 25)
        for test in range(40)
        for column, name in enumerate(("small", "large"))
    )
    path.write_text(evaluation(*outputs), encoding="utf-8")
    with pytest.raises(ValueError, match=r"results\.json: score is 0 28 times .*missing=nothing"):
        judgeline.doctor(path, judge="tone")


def test_votes_are_added_to_results_of_promptfoo_as_the_refusal_says(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    rng = np.random.default_rng(0)
    outputs = (
        output(test, column, name, tone=float(rng.integers(0, 11)) / 10)
        for test in range(60)
        for column, name in enumerate(("small", "middle", "large"))
    )
    path.write_text(evaluation(*outputs), encoding="utf-8")
    with pytest.raises(ValueError, match="results of promptfoo have no place for them") as refused:
        judgeline.rank(path, judge="tone")
    lines = str(refused.value).partition("In Python: ")[2].split("; ")
    space: dict[str, Any] = {"judgeline": judgeline, "pathlib": pathlib}
    exec(lines[0], space)  # noqa: S102 - the call that the message states
    battles = space["battles"]
    battles["human_outcome"] = battles["score_difference"] + rng.normal(0, 0.5, len(battles)) > 0
    battles["human_outcome"] = battles["human_outcome"].astype(float)
    assert len(judgeline.rank(battles).leaderboard) == 3


def test_what_is_left_of_results_with_failures_can_be_rated(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    outputs = (
        output(test, column, name, tone=None if test == 0 else test % 2 / 2 + column / 2)
        for test in range(10)
        for column, name in enumerate(("small", "large"))
    )
    path.write_text(evaluation(*outputs), encoding="utf-8")
    with pytest.raises(ValueError, match="what is left with allow_quarantine=True"):
        judgeline.reference_ratings(path, judge="tone")
    rated = judgeline.reference_ratings(path, judge="tone", allow_quarantine=True)
    assert rated["n_prompts"].max() == 9


def test_prompts_of_one_provider_are_told_by_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(evaluation(*(output(0, n, "small", tone=n / 2) for n in range(3))))
    read = read_judged_battles(path, judge="tone", with_votes=False)
    assert read.scored[["model_a", "model_b", "score_difference"]].to_numpy().tolist() == [
        ["small, column 1", "small, column 2", -0.5],
        ["small, column 1", "small, column 3", -1.0],
        ["small, column 2", "small, column 3", -0.5],
    ]
    path.write_text(evaluation(output(0, 0, "small", tone=1.0)))
    with pytest.raises(ValueError, match=r"results\.json score no two models .* \(models: small\)"):
        read_judged_battles(path)
    path.write_text(evaluation({"testIdx": 0, "promptIdx": 0}))
    with pytest.raises(ValueError, match=r"keys of promptfoo and other values \(KeyError\('prov"):
        read_judged_battles(path)
    path.write_text(evaluation(output(0, 0, "small", tone=1.0), version=2))
    with pytest.raises(ValueError, match="promptfoo of version 2, expected 3: write it again by"):
        read_judged_battles(path)


def test_a_folder_and_a_pattern_are_their_files_in_order(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "model_a": "a",
            "model_b": ["b", "c", "c"],
            "score_difference": [1.0, 2.0, np.nan],
            "human_outcome": [1.0, 0.0, 1.0],
        }
    )
    table[:1].to_csv(tmp_path / "1.csv", index=False)
    table[1:].to_json(tmp_path / "2.jsonl", orient="records", lines=True)
    (tmp_path / "notes.txt").write_text("not a table")
    for source in (tmp_path, tmp_path / "*.*s*"):
        read = read_judged_battles(source)
        assert read.scored["model_b"].tolist() == ["b", "c"]
        assert read.judge == f"the judge of {tmp_path.name}"
        assert "2 files were read as battles of one judge" in read.notes[0]
        assert read.quarantine[["file", "row"]].to_numpy().tolist() == [
            [str(tmp_path / "2.jsonl"), 1]
        ]
    table.drop(columns="human_outcome").to_csv(tmp_path / "3.csv", index=False)
    with pytest.raises(
        ValueError, match=r"1\.csv and .*3\.csv have other columns \(human_outcome\)"
    ):
        judgeline.rank(tmp_path)
    with pytest.raises(ValueError, match=r"no file at .*none"):
        judgeline.rank(tmp_path / "none*")
    with pytest.raises(ValueError, match="holds no file that ends in one of"):
        judgeline.rank(tmp_path.joinpath("empty").mkdir() or tmp_path / "empty")
