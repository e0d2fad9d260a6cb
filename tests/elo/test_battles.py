import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judgeline.elo import CodedBattles, code_battles


def coded(**changes: Any) -> CodedBattles:
    """Three good battles of three models, with some columns changed."""
    columns: dict[str, Any] = {
        "model_a": ["owl", "elk", "owl"],
        "model_b": ["elk", "yak", "yak"],
        "human_outcome": [1.0, 0.5, math.nan],
        "judge_outcome": [1.0, 0.0, 0.75],
        "score_difference": [1 / 12, -9.0, 3.0],
    }
    columns.update(changes)
    return code_battles(columns.pop("model_a"), columns.pop("model_b"), **columns)


def test_codes_stand_for_sorted_names() -> None:
    battles = coded()
    assert battles.models == ("elk", "owl", "yak")
    assert [battles.models[c] for c in battles.model_a] == ["owl", "elk", "owl"]
    assert [battles.models[c] for c in battles.model_b] == ["elk", "yak", "yak"]
    assert len(battles) == 3


def test_outcomes_are_halves_quarters_and_minus_one_for_no_vote() -> None:
    battles = coded()
    assert battles.human_outcome.tolist() == [2, 1, -1]
    assert battles.judge_outcome.tolist() == [4, 0, 3]
    assert battles.human_outcome.dtype == battles.judge_outcome.dtype == np.int8


def test_rubric_scores_survive_as_twelfths() -> None:
    battles = coded()
    points = np.asarray(battles.score_difference) / battles.denominator
    assert battles.denominator == 12
    assert points.tolist() == pytest.approx([1 / 12, -9.0, 3.0], abs=1e-15)


def test_scores_off_the_grid_keep_their_value() -> None:
    battles = coded(score_difference=[0.1234567, -2.5, 0.05])
    assert battles.denominator == 0
    assert np.asarray(battles.score_difference).tolist() == [0.1234567, -2.5, 0.05]


@pytest.mark.parametrize("kind", ["list", "object", "str dtype", "categorical", "arrow"])
def test_every_form_of_names_gives_the_same_codes(kind: str) -> None:
    names_a, names_b = ["owl", "elk", "owl"], ["elk", "yak", "yak"]
    form = {
        "list": list,
        "object": lambda names: np.array(names, dtype=object),
        "str dtype": np.array,
        "categorical": pd.Categorical,
        "arrow": lambda names: pd.Series(names, dtype="string[pyarrow]"),
    }[kind]
    battles = coded(model_a=form(names_a), model_b=form(names_b))
    assert battles.models == ("elk", "owl", "yak")
    assert battles.model_a.tolist() == [1, 0, 1]
    assert battles.model_b.tolist() == [0, 2, 2]


def test_categories_without_a_battle_are_no_models() -> None:
    dtype = pd.CategoricalDtype(["zebra", "yak", "owl", "elk"])
    battles = coded(
        model_a=pd.Series(["owl", "elk", "owl"], dtype=dtype),
        model_b=pd.Series(["elk", "yak", "yak"], dtype=dtype),
    )
    assert battles.models == ("elk", "owl", "yak")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_b": ["elk", "elk", "yak"]}, r"itself.*row 1.*'elk'"),
        ({"model_a": ["owl", "", "owl"]}, "model_a is '' in row 1"),
        ({"model_b": ["elk", None, "yak"]}, "model_b is None in row 1"),
        ({"model_b": ["elk", math.nan, "yak"]}, "model_b is nan in row 1"),
        ({"model_b": pd.Categorical(["elk", None, "yak"])}, "model_b is missing in row 1"),
        ({"score_difference": [0.0, math.nan, math.nan]}, r"nan.*row 1.*2 such rows"),
        ({"score_difference": [0.0, 0.0, math.inf]}, "inf.*row 2"),
        ({"human_outcome": [1.0, 0.25, 0.0]}, r"human_outcome is .*0\.25.* in row 1"),
        ({"human_outcome": [1.0, 1.5, 0.0]}, r"human_outcome is .*1\.5.* in row 1"),
        ({"human_outcome": [-0.5, 1.0, 0.0]}, r"human_outcome is .*-0\.5.* in row 0"),
        ({"human_outcome": [-1, 1, 0]}, r"human_outcome is .*-1.* in row 0"),
        ({"judge_outcome": [0.0, 1.0, 0.3]}, r"judge_outcome is .*0\.3.* in row 2"),
        ({"judge_outcome": [0.0, 1.0, 2.0]}, r"judge_outcome is .*2\.0.* in row 2"),
        ({"judge_outcome": [0.0, math.nan, 1.0]}, "judge_outcome is .*nan.* in row 1"),
        ({"judge_outcome": [1.0, 0.0]}, r"different lengths: \[2, 3\]"),
    ],
)
def test_a_bad_row_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coded(**changes)


def test_no_battles_are_refused() -> None:
    with pytest.raises(ValueError, match="no battles"):
        code_battles([], [], human_outcome=[], judge_outcome=[], score_difference=[])
