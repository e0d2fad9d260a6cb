"""Dry runs of judges that are asked in several forms: all of them are counted and priced."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from test_plan import N_BATTLES, URL, Desk

from judgeline.io import SCORE_COLUMNS, VERDICT_DTYPES
from pipelines.commands.plan import plan_run, require_covered
from resources.config.judges import JudgeDefinition
from resources.config.options import PanelOptions
from resources.corpora.reading import read_corpus
from resources.judges.budget import Budget
from resources.judges.judge_plan import JudgePlan, told
from resources.judges.live.probe import Capabilities, remember

ALL = ("rubric", "score", "choice")
N_RUBRIC = N_CHOICES = 2 * N_BATTLES
N_SCORES = 2 * N_BATTLES  # every text is another


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JUDGELINE_CONFIG", raising=False)
    return Desk(tmp_path)


def known(desk: Desk, *, logs: bool = True, alternatives: int | None = 20) -> None:
    found = Capabilities("max_tokens", True, logs, None, alternatives)
    remember(desk.folder / "home" / "endpoints", URL, "tiny", found)


def plan(desk: Desk, **fields: object) -> JudgePlan:
    """The plan of a judge that is read as a file would be."""
    given = desk.judge.model_dump(exclude_unset=True) | fields
    _, (step,) = plan_run(
        desk.corpus, [JudgeDefinition.model_validate(given)], desk.tables, desk.buyer
    )
    return step


def test_calls_and_price_are_those_of_all_forms(desk: Desk) -> None:
    known(desk)
    each = {form: plan(desk, asks=[form]) for form in ALL}
    assert [step.n_calls for step in each.values()] == [N_RUBRIC, N_SCORES, N_CHOICES]
    whole = plan(desk, asks=list(ALL))
    assert whole.by_form == {"rubric": N_RUBRIC, "score": N_SCORES, "choice": N_CHOICES}
    assert whole.n_calls == sum(whole.by_form.values())
    assert whole.money == pytest.approx(sum(step.money for step in each.values()))
    assert whole.most_money == pytest.approx(sum(step.most_money for step in each.values()))
    assert "(rubric 120, score 120, choice 120)" in told(whole)[0]
    assert "score: " in whole.tokens.basis
    assert (each["score"].half_width, bool(whole.half_width)) == ("", True)


def test_the_rubric_alone_is_told_as_ever(desk: Desk) -> None:
    assert told(plan(desk))[0] == "c|j: 120 calls"


def test_a_completion_in_several_battles_is_one_score(desk: Desk) -> None:
    known(desk)
    battles = pd.read_parquet(desk.corpus.location)
    battles.assign(instruction="one question", completion_a="the same").to_parquet(
        desk.corpus.location
    )
    step = plan(desk, asks=["score"])
    # equal texts are one call whoever wrote them
    assert step.n_calls == 1 + battles["completion_b"].nunique()


def test_samples_are_counted_where_there_are_no_log_probabilities(desk: Desk) -> None:
    warm = {"max_tokens": 50, "temperature": 1.0}
    known(desk, logs=False, alternatives=None)
    assert plan(desk, asks=["choice"], decoding=warm).n_calls == 10 * N_CHOICES
    few = plan(desk, asks=["choice"], decoding=warm, choice={"samples": 4})
    assert few.n_calls == 4 * N_CHOICES
    known(desk)
    assert plan(desk, asks=["choice"], decoding=warm).n_calls == N_CHOICES
    off = plan(desk, asks=["choice"], decoding=warm, log_probabilities="off")
    assert off.n_calls == 10 * N_CHOICES
    assert off.note == ""


@pytest.mark.parametrize("is_half_known", [True, False])
def test_an_endpoint_that_was_never_asked_says_what_may_come(
    desk: Desk, is_half_known: bool
) -> None:
    if is_half_known:  # by a program that knew the rubric alone
        known(desk, alternatives=None)
    step = plan(desk, asks=["score", "choice"])
    assert step.n_calls == N_SCORES + N_CHOICES
    assert "score: each question 10 times instead if the endpoint has no" in step.note
    assert any(step.note in line for line in told(step))


def test_a_budget_must_cover_every_form(desk: Desk) -> None:
    known(desk)
    step = plan(desk, asks=list(ALL))
    require_covered([step], Budget(calls=360))
    with pytest.raises(ValueError, match=r"about 360 calls would be needed, --budget allows 359"):
        require_covered([step], Budget(calls=359))


@pytest.mark.parametrize("has_scores", [True, False])
def test_what_came_with_the_corpus_is_not_asked_and_the_rest_is(
    desk: Desk, has_scores: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rubric scores are no choices; preferences without scores stand where choices would."""
    known(desk)
    columns = {"battle_id": ["b0"], "judge": ["j"], "order": ["AB"], "replicate": [0]}
    columns |= {"status": ["ok"], "recorded_outcome": [1.0]}
    columns |= {column: [5.0 if has_scores else None] for column in SCORE_COLUMNS}
    came = pd.DataFrame(columns).reindex(columns=list(VERDICT_DTYPES)).astype(VERDICT_DTYPES)
    desk.corpus = desk.corpus.model_copy(update={"panel": PanelOptions(battles=10, runs=3)})
    monkeypatch.setattr(
        "pipelines.commands.plan.read_corpus",
        lambda corpus: read_corpus(corpus)._replace(verdicts=came),
    )
    step = plan(desk, asks=list(ALL))
    expected = {"score": N_SCORES} | ({"choice": N_CHOICES} if has_scores else {})
    assert step.by_form == expected
    assert step.n_calls == sum(expected.values())


def test_without_texts_nobody_is_asked_for_scores_and_choices(desk: Desk) -> None:
    known(desk)
    battles = pd.read_parquet(desk.corpus.location)
    battles.assign(completion_a=None, completion_b=None).to_parquet(desk.corpus.location)
    assert plan(desk, asks=["score", "choice"]).n_calls == 0
