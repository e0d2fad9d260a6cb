import numpy as np
import pytest
from scipy.special import expit

from judgeline.quantitative import (
    LearningCurve,
    Presentations,
    TooLittleToLearnError,
    learning_curve,
    presentations,
)
from judgeline.quantitative.curve import METRICS

N, D = 600, 6


def corpus(weight: float, *, noise: float = 1.0, seed: int = 0) -> tuple[Presentations, ...]:
    """Battles in both orders; votes follow the score, and features with the given weight."""
    rng = np.random.default_rng(seed)
    features, score = rng.standard_normal((N, D)), rng.standard_normal(N)
    logit = 2 * score + weight * features[:, 0]
    outcome = (rng.random(N) < expit(logit / noise)).astype(float)
    both = presentations(
        np.concatenate([features, -features]),
        np.concatenate([score, -score]),
        np.tile(np.arange(N), 2),
        np.repeat([False, True], N),
    )
    question = np.array([f"q{i // 3}" for i in range(N)])
    return both, (1 + np.sign(score)) / 2, outcome, question


def at(curve: LearningCurve, n_train: int, metric: str, field: str = "value") -> float:
    (row,) = np.flatnonzero((curve.n_train == n_train) & (curve.metric == metric))
    return float(getattr(curve, field)[row])


def fitted(weight: float, **settings: object) -> LearningCurve:
    rng = np.random.default_rng(3)
    return learning_curve(*corpus(weight), rng=rng, sizes=(50, 200), n_sets=4, **settings)


def test_reasons_that_tell_more_than_scores_lower_the_error_and_more_votes_lower_it_further():
    curve = fitted(3.0)
    assert at(curve, 200, "mse") < at(curve, 50, "mse") < at(curve, 50, "mse", "score_only")
    assert at(curve, 200, "accuracy") > at(curve, 200, "accuracy", "score_only") + 0.05


def test_reasons_that_tell_nothing_cost_little():
    curve = fitted(0.0)
    assert at(curve, 200, "mse") <= 1.03 * at(curve, 200, "mse", "score_only")


def test_a_huge_penalty_leaves_the_score_alone():
    curve = fitted(3.0, penalties=(1e9,))
    assert curve.value == pytest.approx(curve.score_only, abs=1e-9)


def test_the_base_judge_is_measured_as_it_is():
    curve = fitted(3.0)
    wrong = at(curve, 50, "mse", "base")  # outcomes 1 and 0 on votes 1 and 0: the share of errors
    assert wrong == pytest.approx(1 - at(curve, 50, "accuracy", "base"), abs=1e-12)
    assert wrong == pytest.approx(at(curve, 200, "mse", "base"))  # the same test battles


def test_sizes_that_cannot_be_filled_are_left_out_and_rows_are_complete():
    both, base, outcome, question = corpus(1.0)
    curve = learning_curve(
        both, base, outcome, question, rng=np.random.default_rng(0), sizes=(100, 500), n_sets=2
    )
    assert set(curve.n_train) == {100}  # 67 of 200 questions are tested, and 399 votes left
    assert curve.metric.tolist() == list(METRICS)
    assert set(curve.n_test) == {201.0}


def test_votes_on_tested_questions_change_no_fit():
    both, base, outcome, question = corpus(1.0)
    settings = {"sizes": (100,), "n_sets": 1, "penalties": (1.0,)}
    first = learning_curve(both, base, outcome, question, rng=np.random.default_rng(5), **settings)
    (draw,) = np.random.default_rng(5).spawn(1)
    names = np.unique(question)
    tested = np.isin(question, names[draw.permutation(names.size)[: round(names.size / 3)]])
    flipped = np.where(tested, 1 - outcome, outcome)
    second = learning_curve(both, base, flipped, question, rng=np.random.default_rng(5), **settings)
    # the same predictions, all of the compared votes turned round
    assert at(second, 100, "accuracy") == pytest.approx(1 - at(first, 100, "accuracy"), abs=1e-12)
    assert at(second, 100, "pearson") == pytest.approx(-at(first, 100, "pearson"), abs=1e-9)


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        (np.full(N, np.nan), "no battle has a vote"),
        (np.full(N, 0.5), "are ties"),
        (np.where(np.arange(N) < 60, 1.0, np.nan), "39 votes .* cannot fill a training set of 100"),
    ],
)
def test_votes_that_teach_nothing_are_refused(votes: np.ndarray, message: str):
    both, base, _, question = corpus(1.0)
    with pytest.raises(TooLittleToLearnError, match=message):
        learning_curve(both, base, votes, question, rng=np.random.default_rng(0))


def test_a_vote_outside_the_scale_is_no_lack_of_votes():
    both, base, outcome, question = corpus(1.0)
    wrong = np.where(np.arange(N) == 7, 2.0, outcome)
    with pytest.raises(ValueError, match=r"outcome is 2 in row 7; expected \[0, 1\]") as caught:
        learning_curve(both, base, wrong, question, rng=np.random.default_rng(0))
    assert not isinstance(caught.value, TooLittleToLearnError)


def test_a_that_always_wins_is_learnt_from_both_orders_and_has_no_correlation():
    both, base, outcome, question = corpus(1.0)
    curve = learning_curve(
        both, base, np.ones_like(outcome), question, rng=np.random.default_rng(0), sizes=(100,)
    )
    assert np.isnan(at(curve, 100, "pearson"))
    assert at(curve, 100, "mse") < 0.5
