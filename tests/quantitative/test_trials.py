"""Trials of ratings and rankings, and their measures: twins, scikit-learn, scipy, known truths."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quantitative_twin import ridge_weights
from scipy.stats import kendalltau
from sklearn.metrics import confusion_matrix as sk_confusion

from judgeline.quantitative import (
    Design,
    Labels,
    LearningCurve,
    TooLittleToLearnError,
    confusion_matrix,
    ranking_agreement,
    trials,
)

SEED = np.random.default_rng
N = 300
QUESTION = np.arange(N) // 2
SCALE = [1.0, 2.0, 3.0, 4.0]
ONE_SET = Design(sizes=[100], n_sets=1, penalties=[2.0])


def ratings(form: str = "ls", *, scale: list[float] = SCALE, seed: int = 0) -> Labels:
    """A judge two points too high; its rationales know what its scores do not."""
    rng = SEED(seed)
    rationale = rng.normal(size=(N, 3))
    score = 2.5 + rng.normal(size=N)
    rating = np.clip(np.round(score + rationale[:, 0]), 1, 4)
    chance = np.exp(-((score[:, None] + 2 - SCALE) ** 2)) + 1e-6
    chance /= chance.sum(axis=1, keepdims=True)
    base = chance if form == "mn" else score + 2
    return Labels.of(form, rationale, base, rating, QUESTION, scale=scale)


def at(curve: LearningCurve, n_train: int, metric: str, field: str = "value") -> float:
    (row,) = np.flatnonzero((curve.n_train == n_train) & (curve.metric == metric))
    return float(getattr(curve, field)[row])


def test_least_squares_of_a_set_are_a_twins() -> None:
    labels, tested = ratings(), QUESTION >= 100
    found = trials(labels, ONE_SET._replace(sizes=[200], tested=tested), rng=SEED(0))
    train = np.flatnonzero(~tested)  # all of them, in some order
    features, score, rating = labels.embeddings, labels.scores, labels.target
    twin = ridge_weights(
        features[train], score[train], rating[train], penalty=2.0, base_penalty=0.01
    )
    said = np.column_stack([features, score, np.ones(N)]) @ twin
    assert found.fits[0].ours == pytest.approx(said, abs=1e-6)
    curve = found.curve()
    assert at(curve, 200, "mse") == pytest.approx(((said - rating)[tested] ** 2).mean(), rel=1e-6)
    wrong = (score - rating)[tested]
    assert at(curve, 200, "mae", "base") == pytest.approx(np.abs(wrong).mean(), rel=1e-12)
    assert at(curve, 200, "mse", "score_only") > at(curve, 200, "mse")
    assert (set(curve.n_test), set(curve.n_sets)) == ({100.0}, {1})


def test_no_set_trains_on_a_question_that_is_tested() -> None:
    """Ratings on tested questions that are not tested themselves move no prediction."""
    labels, tested = ratings(), np.zeros(N, dtype=bool)
    tested[::6] = True  # one of two answers to each third question
    other = np.isin(QUESTION, QUESTION[tested])
    rating = np.where(other, 5 - labels.target, labels.target)
    turned = Labels.of("ls", labels.embeddings, labels.scores, rating, QUESTION, scale=SCALE)
    design = ONE_SET._replace(tested=tested)
    first, second = (trials(one, design, rng=SEED(1)) for one in (labels, turned))
    assert (first.fits[0].ours == second.fits[0].ours).all()
    assert (first.tested[0] == np.flatnonzero(tested)).all()


def test_rankings_reach_the_loss_of_the_truth() -> None:
    rng, n, k = SEED(3), 900, 4
    rationale, score = rng.normal(size=(n, k, 5)), rng.normal(size=(n, k))
    truth = score + 1.5 * rationale[..., 2]
    order = np.argsort(-(truth + rng.gumbel(size=truth.shape)), axis=1)
    labels = Labels.of("pl", rationale, score, order, np.arange(n))
    tested = np.arange(n) >= 600
    curve = trials(labels, Design(n_sets=3, tested=tested), rng=SEED(4)).curve()
    best = ranking_agreement(truth[tested], order[tested])
    assert curve.metric[:3].tolist() == ["accuracy", "kendall", "log_loss"]
    assert at(curve, 500, "log_loss") == pytest.approx(best["log_loss"], abs=0.05)
    assert at(curve, 500, "log_loss") < at(curve, 100, "log_loss") - 0.02
    assert at(curve, 500, "log_loss") < at(curve, 500, "log_loss", "base") - 0.5
    assert at(curve, 500, "kendall") > at(curve, 500, "kendall", "base") + 0.2


def test_sets_that_teach_too_little_are_left_out_and_counted() -> None:
    labels = ratings("mn")
    rare = np.where(np.arange(N) < 3, 3, labels.target % 3)  # 3 of 300 have the fourth category
    scarce = Labels("mn", labels.embeddings, labels.scores, rare, QUESTION, np.array(SCALE))
    tested = np.arange(N) >= 200
    curve = trials(scarce, Design([50, 200], 8, 2, [1.0], tested=tested), rng=SEED(5)).curve()
    assert set(curve.n_sets[curve.n_train == 50]) < set(range(1, 8))
    assert set(curve.n_sets[curve.n_train == 200]) == {8}
    alike = Labels.of("ls", labels.embeddings, labels.base, np.ones(N), QUESTION, scale=SCALE)
    with pytest.raises(TooLittleToLearnError, match="all 100 ratings are 1: nothing to learn; add"):
        trials(alike, ONE_SET, rng=SEED(0))
    with pytest.raises(TooLittleToLearnError, match="cannot fill a training set of 400; add"):
        trials(labels, Design([400]), rng=SEED(0))
    with pytest.raises(ValueError, match="no row is tested; name some"):
        trials(labels, ONE_SET._replace(tested=np.zeros(N, dtype=bool)), rng=SEED(0))
    with pytest.raises(ValueError, match=r"label is 4 in row \d+; expected one of \[1.0, 2.0\]"):
        ratings(scale=[1.0, 2.0])
    assert math.isnan(trials(ratings(scale=[]), ONE_SET, rng=SEED(0)).curve(["accuracy"]).value[0])


# ------------------------------------------------------------------ measures


def test_confusion_is_scikit_learns() -> None:
    rng = SEED(6)
    human, said = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    noisy = said + rng.uniform(-0.49, 0.49, 200)
    found = confusion_matrix(noisy, human, categories=[3, 2, 1, 0])
    assert (found == sk_confusion(human, said)).all()


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(0, 10_000))
def test_agreement_of_rankings_is_scipys(n_items: int, seed: int) -> None:
    rng = SEED(seed)
    order = np.argsort(rng.random((7, n_items)), axis=1)
    scores = rng.random((7, n_items))
    found = ranking_agreement(scores, order)
    place = np.argsort(order, axis=1)
    taus = [kendalltau(-p, s).statistic for p, s in zip(place, scores, strict=True)]
    assert found["kendall"] == pytest.approx(np.mean(taus), abs=1e-12)
    assert found["accuracy"] == (scores.argmax(axis=1) == order[:, 0]).mean()


def test_places_that_nobody_ordered_count_for_nothing() -> None:
    # 0 is best; the judge ties it with 1 and puts 2 last: two of three pairs are ordered by people
    found = ranking_agreement([[1.0, 1.0, 0.0]], [[0]])
    assert (found["accuracy"], found["kendall"]) == (0.5, 0.5)
    assert found["log_loss"] == pytest.approx(math.log(2 + math.exp(-1)))
