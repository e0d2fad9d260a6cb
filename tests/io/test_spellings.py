"""Names of models: spellings that differ in what a reader hardly sees."""

import pandas as pd
import pytest

import judgeline
from judgeline.io import read_judged_battles
from judgeline.io.spellings import folded_name

SPELLINGS = [
    ("model-a", "model-a\u200b"),
    ("model-a", "model\u2011a"),
    ("model-a", "model\u2212a"),
    ("mod\u00e9l", "mode\u0301l"),
    ("model-a", "org/model-a"),
    ("model-a", "router/org/Model-A"),
    ("model a", "Model\u00a0A"),
    ("o'hara", "o\u2019hara"),
    ("model-1", "model-\uff11"),
    ("model-a", "\ufeffmodel-a"),
]


@pytest.mark.parametrize(("name", "other"), SPELLINGS)
def test_spellings_of_a_name_are_told_and_joined(name: str, other: str) -> None:
    n = 120
    table = pd.DataFrame(
        {
            "model_a": [name if row % 3 else other for row in range(n)],
            "model_b": [f"opponent-{row % 5}" for row in range(n)],
            "score_difference": [row % 7 - 3.0 for row in range(n)],
            "winner": [(name if row % 3 else other) if row % 2 else "model_b" for row in range(n)],
        }
    )
    read = read_judged_battles(table)
    assert read.scored["model_a"].nunique() == 2
    (note,) = (one for one in read.notes if "rated apart" in one)
    assert " and ".join(map(ascii, sorted([name, other]))) in note
    assert "--same-names" in note
    joined = read_judged_battles(table, same_names=True)
    assert {*joined.scored["model_a"]} == {name}
    assert joined.scored["human_outcome"].tolist() == read.scored["human_outcome"].tolist()
    assert not any("rated apart" in one for one in joined.notes)
    assert judgeline.doctor(table, same_names=True).n_models == 6


@pytest.mark.parametrize(
    ("name", "other"), [("gpt-4", "gpt-4o"), ("a_b", "a-b"), ("model-1", "model-2"), ("/", "//x")]
)
def test_other_names_are_other_models(name: str, other: str) -> None:
    assert folded_name(name) != folded_name(other)
