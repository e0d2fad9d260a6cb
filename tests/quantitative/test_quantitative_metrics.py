import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from judgeline.quantitative import preference_agreement, rating_agreement


def tau_b(x: np.ndarray, y: np.ndarray) -> float:
    """Kendall's tau-b over all pairs."""
    a, b = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    return float((a * b).sum() / math.sqrt((a != 0).sum() * (b != 0).sum()))


def ranks(values: np.ndarray) -> np.ndarray:
    return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])


@given(st.integers(0, 10_000))
def test_measures_are_scikit_learns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said, human = rng.integers(0, 12, 30) / 11, rng.integers(0, 8, 30) / 7
    found = preference_agreement(said, human).measures
    win, truth = said > 0.5, human > 0.5
    expected = {
        "mse": sk.mean_squared_error(human, said),
        "mae": sk.mean_absolute_error(human, said),
        "accuracy": sk.accuracy_score(truth, win),
        "precision": sk.precision_score(truth, win, zero_division=np.nan),
        "recall": sk.recall_score(truth, win, zero_division=np.nan),
        "f1": sk.f1_score(truth, win, zero_division=np.nan),
        "pearson": np.corrcoef(said, human)[0, 1],
        "spearman": np.corrcoef(ranks(said), ranks(human))[0, 1],
        "kendall": tau_b(said, human),
    }
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


def test_ties_of_human_and_judge() -> None:
    # One tied battle is not classified; a prediction of one half is half a win.
    found = preference_agreement([0.5, 0.9, 0.5, 0.1], [1, 0.5, 0, 0])
    assert found.n == 4
    assert found.n_classified == 3
    assert found.measures["accuracy"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert found.measures["precision"] == 0.5
    assert found.measures["recall"] == 0.5


@given(st.integers(0, 1000))
def test_swapping_the_answers_changes_no_accuracy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said, human = rng.integers(0, 5, 12) / 4, rng.integers(0, 5, 12) / 4
    ours = preference_agreement(said, human).measures
    theirs = preference_agreement(1 - said, 1 - human).measures
    for name in ("mse", "mae", "accuracy", "pearson", "spearman", "kendall"):
        assert theirs[name] == pytest.approx(ours[name], abs=1e-12, nan_ok=True)


def test_what_cannot_be_had_is_nan_with_a_reason() -> None:
    found = preference_agreement([0.1, 0.1], [0, 0])
    reasons = {
        "pearson": "all 2 predictions are 0.1",
        "spearman": "all 2 predictions are 0.1",
        "kendall": "all 2 predictions are 0.1",
        "precision": "no win was predicted",
        "recall": "the human saw no win of the first answer",
        "f1": "no win was predicted and there was none",
    }
    assert found.reasons == reasons
    assert all(math.isnan(found.measures[name]) for name in reasons)
    assert found.measures["accuracy"] == 1
    tied = preference_agreement([0.1, 0.2], [0.5, 0.5])
    assert tied.reasons["accuracy"] == "every human outcome is a tie"
    assert tied.reasons["kendall"] == "all 2 human values are 0.5"


def test_a_rating_is_right_if_its_category_is() -> None:
    found = rating_agreement([1.4, 2.6, 9.0, 2.5], [1, 3, 3, 3], categories=[1, 2, 3])
    assert found.measures["accuracy"] == 0.75  # 2.5 goes to the lower
    assert found.measures["mae"] == pytest.approx((0.4 + 0.4 + 6 + 0.5) / 4)
    bare = rating_agreement([1.0, 2.0], [1, 3])
    assert math.isnan(bare.measures["accuracy"])
    assert bare.reasons == {"accuracy": "no categories were given"}


@pytest.mark.parametrize(
    ("said", "human", "message"),
    [
        ([0.1, math.nan], [0, 1], "prediction is nan in row 1; leave out"),
        ([0.1, 1.2], [0, 1], r"prediction is 1.2 in row 1; expected a share in \[0, 1\]"),
        ([0.1], [0, 1], r"prediction has shape \(1,\), human \(2,\)"),
        ([], [], r"prediction has shape \(0,\)"),
    ],
)
def test_bad_input_names_the_value(said: list[float], human: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        preference_agreement(said, human)


def test_a_rating_that_is_no_category_is_named() -> None:
    with pytest.raises(ValueError, match=r"human is 4 in row 1; expected one of \[1.0, 2.0\]"):
        rating_agreement([1, 2], [1, 4], categories=[1, 2])
