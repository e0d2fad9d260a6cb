"""`judgeline.consistency`: the two ratios from a notebook's tables, and what is wrong with them."""

import numpy as np
import pandas as pd
import pytest

import judgeline
from judgeline.tables.trust import CONFLICT, CONSISTENCY, VIOLATION
from judgeline.verdict import CRITERIA

BATTLES = pd.DataFrame(
    {
        "battle_id": ["ab", "bc", "ac"],
        "question_id": "q",
        "model_a": ["ant", "bee", "ant"],
        "model_b": ["bee", "cat", "cat"],
    }
)


def said(*choices: float) -> pd.DataFrame:
    """Choices on the three battles, alike in both orders."""
    own = pd.DataFrame({"battle_id": BATTLES["battle_id"], "choice": choices})
    return pd.concat([own.assign(order=order) for order in ("AB", "BA")], ignore_index=True)


SCORES = pd.DataFrame({"question_id": "q", "model": ["ant", "bee", "cat"], "score": [3, 2, 1]})


def ratio(table: pd.DataFrame, measure: str, size: int | None = None) -> tuple[int, float]:
    rows = table[table["measure"].eq(measure) & table["category"].eq("all")]
    rows = rows if size is None else rows[rows["size"].eq(size)]
    return int(rows["n"].iloc[0]), float(rows["ratio"].iloc[0])


@pytest.mark.parametrize(
    ("choices", "conflicts", "violations"),
    [((1.0, 1.0, 1.0), 0.0, 0.0), ((1.0, 1.0, 0.0), 1 / 3, 1.0), ((0.5, 1.0, 0.5), 2 / 3, 1.0)],
)
def test_a_circle_and_scores_against_a_choice_are_counted(choices, conflicts, violations) -> None:
    table = judgeline.consistency(
        BATTLES, choice_verdicts=said(*choices), score_verdicts=SCORES, scale=(1, 5)
    )
    assert list(table) == CONSISTENCY.columns
    assert ratio(table, CONFLICT) == (3, pytest.approx(conflicts))
    assert ratio(table, VIOLATION, 3) == (1, violations)


def test_a_rubric_or_choices_alone_have_their_own_ratio() -> None:
    marks = {f"{one}_{side}": {"a": 7.0, "b": 3.0}[side] for one in CRITERIA for side in "ab"}
    rubric = said(1.0, 1.0, 1.0).drop(columns="choice").assign(**marks)
    table = judgeline.consistency(BATTLES, verdicts=rubric)
    assert ratio(table, VIOLATION, 3) == (1, 0.0)
    assert set(table["source"]) == {"rubric"}
    alone = judgeline.consistency(BATTLES, choice_verdicts=said(1.0, 1.0, 1.0))
    assert set(alone["measure"]) == {VIOLATION}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, "add 'choice_verdicts' or 'verdicts'"),
        ({"choice_verdicts": said(1, 1, 1).drop(columns="order")}, "no column 'order', AB or BA"),
        ({"choice_verdicts": said(1, 1, 1).drop(columns="choice")}, "none of the columns choice"),
        ({"choice_verdicts": said(1, 1, 1).assign(order="ab")}, "order is 'ab'"),
        ({"choice_verdicts": said(1, 1, 1).assign(choice="A")}, "choice is 'A' in choice_verdicts"),
        ({"choice_verdicts": said(1, 1, 1).assign(battle_id=7)}, "no battle_id of choice_verdicts"),
        ({"verdicts": said(1, 1, 1)}, "verdicts has none of the columns adherence_a"),
        (
            {"choice_verdicts": said(1, 1, 1), "score_verdicts": SCORES.assign(score=[1, 2, 999])},
            "score is 999 in score_verdicts, outside of the scale 1 to 100",
        ),
        (
            {"choice_verdicts": said(1, 1, 1), "score_verdicts": SCORES.assign(completion_id="1")},
            "no column 'completion_a'",
        ),
        ({"choice_verdicts": [1]}, "choice_verdicts is list; expected a DataFrame"),
    ],
)
def test_what_is_wrong_names_table_column_and_remedy(changed, message) -> None:
    with pytest.raises(ValueError, match=message):
        judgeline.consistency(BATTLES, **changed)


def test_battles_need_names_and_stand_once() -> None:
    one = {"choice_verdicts": said(1, 1, 1)}
    with pytest.raises(ValueError, match="battles has no column 'question_id', the name of"):
        judgeline.consistency(BATTLES.drop(columns="question_id"), **one)
    with pytest.raises(ValueError, match="battle_id 'ab' twice"):
        judgeline.consistency(pd.concat([BATTLES, BATTLES]), **one)
    assert np.isfinite(judgeline.consistency(BATTLES, **one)["n"]).all()
