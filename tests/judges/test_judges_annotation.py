import json
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd
import pytest
from fake_judges import ByRubric

from judgeline.io import SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.verdict.outcomes import CRITERIA
from resources.judges.annotation import annotate
from resources.judges.budget import Budget
from resources.judges.judge import Answer, Presentation

BATTLES = pd.DataFrame(
    {
        "battle_id": ["b1", "b2"],
        "model_a": ["x", "y"],
        "model_b": ["y", "z"],
        "instruction": ["Q1", "Q2"],
        "completion_a": ["good", "poor"],
        "completion_b": ["poor", "good"],
    }
)


def graded(first: int, second: int) -> str:
    return json.dumps(
        {
            "response_1": dict.fromkeys(CRITERIA, first),
            "response_2": dict.fromkeys(CRITERIA, second),
        }
    )


class Scripted(ByRubric):
    """A judge that gives 8 to "good" and 3 to "poor", and fails where it is told to."""

    identity: Mapping[str, str] = {"kind": "scripted"}

    def __init__(self, **instead: Answer) -> None:
        self.instead = instead
        self.seen: list[Presentation] = []

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Answer]]:
        for position, one in reversed(list(enumerate(presentations))):
            self.seen.append(one)
            marks = {"good": 8, "poor": 3}
            text = graded(marks[one.first_completion], marks[one.second_completion])
            answer = self.instead.get(f"{one.battle_id}{one.order}", Answer(text, None, 11, 7))
            yield position, answer


def test_both_orders_are_shown_and_scores_belong_to_the_models() -> None:
    judge = Scripted()
    verdicts = annotate(judge, BATTLES, slug="s")
    assert list(verdicts.columns) == list(VERDICT_DTYPES)
    assert verdicts.dtypes.astype(str).to_dict() == VERDICT_DTYPES
    assert verdicts["order"].tolist() == ["AB", "BA", "AB", "BA"]
    assert [p.first_completion for p in judge.seen[::-1]] == ["good", "poor", "poor", "good"]
    assert [p.first_model for p in judge.seen[::-1]] == ["x", "y", "y", "z"]
    assert verdicts["clarity_a"].tolist() == [8, 8, 3, 3]
    assert verdicts["clarity_b"].tolist() == [3, 3, 8, 8]
    assert verdicts["recorded_outcome"].isna().all()
    assert verdicts[["prompt_tokens", "completion_tokens"]].to_numpy().tolist() == [[11, 7]] * 4


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer("Well.", None, 1, 1), "parse_error"),
        (Answer("I cannot do that.", None, 1, 1), "refusal"),
        (Answer(None, None, 1, 0), "parse_error"),
        (Answer(None, "transport", 0, 0), "transport"),
        (Answer(graded(8, 3), "truncated", 1, 1), "truncated"),
    ],
)
def test_a_failed_verdict_keeps_its_class_and_has_no_scores(answer: Answer, status: str) -> None:
    verdicts = annotate(Scripted(b1BA=answer), BATTLES, slug="s")
    assert verdicts["status"].tolist() == ["ok", status, "ok", "ok"]
    assert verdicts.loc[1, list(SCORE_COLUMNS)].isna().all()
    assert verdicts.loc[[0, 2, 3], list(SCORE_COLUMNS)].notna().all(axis=None)
    kept = verdicts["answer"][1]
    assert (None if pd.isna(kept) else kept) == answer.text


def test_identity_says_what_was_asked_and_not_which_battle() -> None:
    verdicts = annotate(Scripted(), BATTLES, slug="s", n_replicates=2)
    assert verdicts["identity"].str.fullmatch(r"[0-9a-f]{64}").all()
    assert verdicts["identity"].is_unique
    renamed = annotate(Scripted(), BATTLES.assign(battle_id=["c1", "c2"]), slug="t", n_replicates=2)
    assert renamed["identity"].tolist() == verdicts["identity"].tolist()
    swapped = BATTLES.rename(
        columns={"completion_a": "completion_b", "completion_b": "completion_a"}
    )
    other = annotate(Scripted(), swapped.assign(model_a="p", model_b="q"), slug="s")
    first = verdicts[verdicts["replicate"].eq(0)]
    assert other.loc[other["order"].eq("BA"), "identity"].tolist() == (
        first.loc[first["order"].eq("AB"), "identity"].tolist()
    )


def test_replicates_are_numbered() -> None:
    verdicts = annotate(Scripted(), BATTLES.head(1), slug="s", n_replicates=3)
    assert verdicts[["replicate", "order"]].to_numpy().tolist() == [
        [replicate, order] for replicate in range(3) for order in ("AB", "BA")
    ]


def test_no_battles_make_an_empty_table() -> None:
    verdicts = annotate(Scripted(), BATTLES.head(0), slug="s")
    assert len(verdicts) == 0
    assert verdicts.dtypes.astype(str).to_dict() == VERDICT_DTYPES


def test_battles_without_text_are_refused() -> None:
    mute = BATTLES.assign(completion_b=["poor", None])
    with pytest.raises(ValueError, match=r"1 of 2 battles have no text.*'b2'.*recorded"):
        annotate(Scripted(), mute, slug="s")


@pytest.mark.parametrize(
    ("surplus", "message"), [(-1, "3 answers to 4 presentations"), (1, "presentation 3 of 4 twice")]
)
def test_a_judge_that_loses_count_is_refused(surplus: int, message: str) -> None:
    class Miscounting(Scripted):
        def answer(
            self, presentations: Sequence[Presentation], budget: Budget
        ) -> Iterator[tuple[int, Answer]]:
            answers = list(super().answer(presentations, budget))
            yield from (answers + answers)[: len(answers) + surplus]

    with pytest.raises(RuntimeError, match=message):
        annotate(Miscounting(), BATTLES, slug="s")


def test_a_judge_must_be_asked() -> None:
    with pytest.raises(ValueError, match="n_replicates is 0"):
        annotate(Scripted(), BATTLES, slug="s", n_replicates=0)
