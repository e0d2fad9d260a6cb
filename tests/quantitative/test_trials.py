"""Trials of ratings and rankings, and their measures: twins, scikit-learn, scipy, known truths."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quantitative_twin import ridge_weights
from scipy.special import expit
from scipy.stats import kendalltau
from sklearn import metrics as sk

from judgeline.quantitative import (
    METRICS,
    Battles,
    Design,
    Labels,
    LearningCurve,
    Presentations,
    TooLittleToLearnError,
    confusion_matrix,
    preference_agreement,
    presentations,
    ranking_agreement,
    rating_agreement,
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


# ------------------------------------------------------------------ battles

B, D = 600, 6


def corpus(weight: float) -> tuple[Presentations, ...]:
    """Battles in both orders; votes follow the score, and features with the given weight."""
    rng = SEED(0)
    features, score = rng.standard_normal((B, D)), rng.standard_normal(B)
    logit = 2 * score + weight * features[:, 0]
    outcome = (rng.random(B) < expit(logit)).astype(float)
    both = presentations(
        np.concatenate([features, -features]),
        np.concatenate([score, -score]),
        np.tile(np.arange(B), 2),
        np.repeat([False, True], B),
    )
    question = np.array([f"q{i // 3}" for i in range(B)])
    return both, (1 + np.sign(score)) / 2, outcome, question


def learnt(given: tuple[Presentations, ...], seed: int = 0, **settings: object) -> LearningCurve:
    task, rng = Battles.of(*given), SEED(seed)
    return trials(task, Design(**settings), rng=rng).curve(METRICS)


def test_reasons_lower_the_error_where_they_tell_more_than_scores_and_else_cost_little():
    design = {"seed": 3, "sizes": (50, 200), "n_sets": 4}
    curve = learnt(corpus(3.0), **design)
    assert at(curve, 200, "mse") < at(curve, 50, "mse") < at(curve, 50, "mse", "score_only")
    assert at(curve, 200, "accuracy") > at(curve, 200, "accuracy", "score_only") + 0.05
    wrong = at(curve, 50, "mse", "base")  # outcomes 1 and 0 on votes 1 and 0: the share of errors
    assert wrong == pytest.approx(1 - at(curve, 50, "accuracy", "base"), abs=1e-12)
    assert wrong == pytest.approx(at(curve, 200, "mse", "base"))  # the same test battles
    nothing = learnt(corpus(0.0), **design)
    assert at(nothing, 200, "mse") <= 1.03 * at(nothing, 200, "mse", "score_only")
    alone = learnt(corpus(3.0), **design, penalties=(1e9,))
    assert alone.value == pytest.approx(alone.score_only, abs=1e-9)


def test_sizes_that_cannot_be_filled_are_left_out_and_rows_are_complete():
    curve = learnt(corpus(1.0), sizes=(100, 500), n_sets=2)
    assert set(curve.n_train) == {100}  # 67 of 200 questions are tested, and 399 votes left
    assert curve.metric.tolist() == list(METRICS)
    assert set(curve.n_test) == {201.0}


def test_votes_on_tested_questions_change_no_fit():
    both, base, outcome, question = corpus(1.0)
    settings = {"seed": 5, "sizes": (100,), "n_sets": 1, "penalties": (1.0,)}
    first = learnt((both, base, outcome, question), **settings)
    (draw,) = SEED(5).spawn(1)
    names = np.unique(question)
    tested = np.isin(question, names[draw.permutation(names.size)[: round(names.size / 3)]])
    flipped = np.where(tested, 1 - outcome, outcome)
    second = learnt((both, base, flipped, question), **settings)
    # the same predictions, all of the compared votes turned round
    assert at(second, 100, "accuracy") == pytest.approx(1 - at(first, 100, "accuracy"), abs=1e-12)
    assert at(second, 100, "pearson") == pytest.approx(-at(first, 100, "pearson"), abs=1e-9)


@pytest.mark.parametrize(
    ("votes", "error", "message"),
    [
        (np.full(B, np.nan), TooLittleToLearnError, "no battle has a vote"),
        (np.full(B, 0.5), TooLittleToLearnError, r"outcomes are 0.5: nothing to learn"),
        (
            *(np.where(np.arange(B) < 60, 1.0, np.nan), TooLittleToLearnError),
            "39 votes .* cannot fill a training set of 100",
        ),
        (np.where(np.arange(B) == 7, 2.0, 1.0), ValueError, r"outcome is 2 in row 7; expected"),
        (np.ones(B - 1), ValueError, r"base_outcome \(600,\), outcome \(599,\)"),
    ],
)
def test_votes_that_teach_nothing_and_wrong_votes_are_refused(votes, error, message: str):
    both, base, _, question = corpus(1.0)
    with pytest.raises(ValueError, match=message) as caught:
        learnt((both, base, votes, question))
    assert type(caught.value) is error


def test_a_that_always_wins_is_learnt_from_both_orders_and_has_no_correlation():
    both, base, outcome, question = corpus(1.0)
    curve = learnt((both, base, np.ones_like(outcome), question), sizes=(100,))
    assert np.isnan(at(curve, 100, "pearson"))
    assert at(curve, 100, "mse") < 0.5


# ------------------------------------------------------------------ measures of agreement


def tau_b(x: np.ndarray, y: np.ndarray) -> float:
    """Kendall's tau-b over all pairs."""
    a, b = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    return float((a * b).sum() / math.sqrt((a != 0).sum() * (b != 0).sum()))


def ranks(values: np.ndarray) -> np.ndarray:
    return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_measures_are_scikit_learns(seed: int) -> None:
    rng = SEED(seed)
    said, human = rng.integers(0, 12, 30) / 11, rng.integers(0, 8, 30) / 7
    found = preference_agreement(said, human)
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
    said, human = np.round(4 * said) / 4, np.round(4 * human) / 4  # ties of either
    ours = preference_agreement(said, human)
    swapped = preference_agreement(1 - said, 1 - human)
    for name in ("mse", "mae", "accuracy", "pearson", "spearman", "kendall"):
        assert swapped[name] == pytest.approx(ours[name], abs=1e-12, nan_ok=True)


def test_ties_of_human_and_judge() -> None:
    # One tied battle is not classified; a prediction of one half is half a win.
    found = preference_agreement([0.5, 0.9, 0.5, 0.1], [1, 0.5, 0, 0])
    assert found["accuracy"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert (found["precision"], found["recall"]) == (0.5, 0.5)


def test_what_cannot_be_had_is_nan() -> None:
    found = preference_agreement([0.1, 0.1], [0, 0])
    absent = {"pearson", "spearman", "kendall", "precision", "recall", "f1"}
    assert {name for name, value in found.items() if math.isnan(value)} == absent
    assert found["accuracy"] == 1
    tied = preference_agreement([0.1, 0.2], [0.5, 0.5])
    assert math.isnan(tied["accuracy"] + tied["kendall"])


def test_a_rating_is_right_if_its_category_is() -> None:
    found = rating_agreement([1.4, 2.6, 9.0, 2.5], [1, 3, 3, 3], categories=[1, 2, 3])
    assert found["accuracy"] == 0.75  # 2.5 goes to the lower
    assert found["mae"] == pytest.approx((0.4 + 0.4 + 6 + 0.5) / 4)
    assert math.isnan(rating_agreement([1.0, 2.0], [1, 3])["accuracy"])


@pytest.mark.parametrize(
    ("said", "human", "message"),
    [
        ([0.1, math.nan], [0, 1], "prediction is nan in row 1"),
        ([0.1, 1.2], [0, 1], r"prediction is 1.2 in row 1; expected a share in \[0, 1\]"),
        ([0.1], [0, 1], r"prediction \(1,\), human \(2,\)"),
        ([], [], "the number of predictions is 0"),
    ],
)
def test_bad_input_names_the_value(said: list[float], human: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        preference_agreement(said, human)
    with pytest.raises(ValueError, match=r"human is 4 in row 1; expected one of \[1.0, 2.0\]"):
        rating_agreement([1, 2], [1, 4], categories=[1, 2])


def test_confusion_is_scikit_learns() -> None:
    rng = SEED(6)
    human, said = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    noisy = said + rng.uniform(-0.49, 0.49, 200)
    found = confusion_matrix(noisy, human, categories=[3, 2, 1, 0])
    assert (found == sk.confusion_matrix(human, said)).all()


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
