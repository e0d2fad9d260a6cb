import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quantitative_twin import logistic_weights, ridge_weights, sklearn_predictions, spreads
from scipy.optimize import minimize
from scipy.special import log_softmax

from judgeline.quantitative import (
    QuantitativeJudge,
    base_judge,
    base_logit,
    base_logit_of_scores,
    fit_judge,
)
from judgeline.quantitative.inputs import log_probabilities
from judgeline.quantitative.penalty import question_folds

fit_ratings = partial(fit_judge, "ls")
fit_preferences = partial(fit_judge, "btl")
fit_categories = partial(fit_judge, "mn")
SEED = np.random.default_rng
PUBLISHED_WIDTH = 4096
"""Features of the embedding in the paper."""


def rationales(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings, base scores that lean on them, and questions with two rows each."""
    rng = SEED(seed)
    embeddings = rng.normal(0.3, 1, (n, d)) * rng.uniform(0.5, 2, d)
    return embeddings, 2 * rng.normal(size=n) + embeddings[:, 0] - 0.4, np.arange(n) // 2


def shares(n: int, seed: int = 0) -> np.ndarray:
    rng = SEED([seed, 1])
    return np.where(rng.random(n) < 0.3, rng.random(n), rng.integers(0, 3, n) / 2)


def parameters(judge: QuantitativeJudge) -> np.ndarray:
    return np.concatenate([judge.weights, judge.base_weights, np.atleast_1d(judge.bias)])


# ------------------------------------------------------------------ the form of the judges


@pytest.mark.parametrize("n_categories", [7, 5])
def test_published_parameter_counts(n_categories: int) -> None:
    judge = base_judge("mn", PUBLISHED_WIDTH, n_categories)
    assert judge.n_parameters == n_categories * (PUBLISHED_WIDTH + n_categories + 1)
    assert base_judge("btl", PUBLISHED_WIDTH).n_parameters == PUBLISHED_WIDTH + 2
    assert base_judge("pl", PUBLISHED_WIDTH).n_parameters == PUBLISHED_WIDTH + 1


def test_a_fit_has_the_parameters_of_the_form() -> None:
    embeddings, _, question = rationales(60, 4)
    probabilities = SEED(1).dirichlet(np.ones(5), 60)
    judge = fit_categories(
        embeddings, probabilities, np.arange(60) % 5, question, rng=SEED(0), penalties=[1.0]
    )
    assert judge.n_parameters == 5 * (4 + 5 + 1)
    assert judge.weights.shape == (4, 5)
    assert judge.base_weights.shape == (5, 5)
    assert judge.bias.shape == (5,)


@given(st.integers(0, 10_000))
def test_base_judges_are_special_cases(seed: int) -> None:
    rng = SEED(seed)
    embeddings, base, _ = rationales(6, 3, seed)
    assert (base_judge("ls", 3).predict(embeddings, base) == base).all()
    p = rng.uniform(0.001, 0.999, 6)
    assert base_judge("btl", 3).predict(embeddings, base_logit(p)) == pytest.approx(p, rel=1e-14)
    b1, b2 = rng.uniform(0.1, 10, (2, 6))
    headed = base_judge("btl", 3).predict(embeddings, base_logit_of_scores(b1, b2))
    assert headed == pytest.approx(b1 / (b1 + b2), rel=1e-14)
    chances = rng.dirichlet(np.ones(4), 6) * 0.99 + 0.0025
    assert base_judge("mn", 3, 4).predict(embeddings, chances) == pytest.approx(chances, rel=1e-13)
    worth = np.exp(base).reshape(2, 3)
    choice = base_judge("pl", 3).predict(embeddings.reshape(2, 3, 3), base.reshape(2, 3))
    assert choice == pytest.approx(worth / worth.sum(axis=1, keepdims=True), rel=1e-13)


# ------------------------------------------------------------------ oracles


@pytest.mark.parametrize("penalty", [0.1, 3.0, 1000.0])
def test_least_squares_solves_the_normal_equations(penalty: float) -> None:
    embeddings, base, question = rationales(40, 5)
    rating = 3 + 0.5 * base + embeddings @ np.arange(5) + SEED(3).normal(size=40)
    judge = fit_ratings(embeddings, base, rating, question, rng=SEED(0), penalties=[penalty])
    twin = ridge_weights(embeddings, base, rating, penalty=penalty, base_penalty=0.01)
    assert parameters(judge) == pytest.approx(twin, rel=1e-9)


@pytest.mark.parametrize("penalty", [0.1, 3.0, 1000.0])
@pytest.mark.parametrize("n", [60, 12])  # fewer rows than features too
def test_logistic_fit_is_newtons(penalty: float, n: int) -> None:
    embeddings, base, question = rationales(n, 15)
    outcome, weight = shares(n), SEED(4).uniform(0.3, 2, n)
    judge = fit_preferences(
        embeddings, base, outcome, question, rng=SEED(0), weight=weight, penalties=[penalty]
    )
    twin = logistic_weights(
        embeddings,
        base,
        outcome,
        weight,
        penalty=penalty,
        base_penalty=0.01,
        scales=spreads(embeddings, base),
    )
    found = parameters(judge)
    assert found == pytest.approx(twin, abs=1e-6)


def multinomial_objective(
    flat: np.ndarray, features: np.ndarray, log_p: np.ndarray, category: np.ndarray, penalty: float
) -> float:
    """As written, in the units given: row s of the parameters is weights, base weights, bias."""
    parameters = flat.reshape(log_p.shape[1], -1)
    design = np.column_stack([features, log_p, np.ones(category.size)])
    chances = log_softmax(design @ parameters.T, axis=1)
    unit, spread = spreads(features, log_p)
    d = features.shape[1]
    squares = penalty * unit**2 * (parameters[:, :d] ** 2).sum()
    squares += ((spread * parameters[:, d:-1]) ** 2).sum()
    return float(-chances[np.arange(category.size), category].sum() + squares / 2)


def test_multinomial_fit_minimises_its_objective() -> None:
    features, _, question = rationales(80, 2)
    probabilities = SEED(5).dirichlet(np.ones(3), 80)
    category = (SEED(6).random((80, 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
    judge = fit_categories(
        features, probabilities, category, question, rng=SEED(0), penalties=[0.7]
    )
    data = features, np.log(probabilities), category, 0.7
    start = np.zeros(3 * (2 + 3 + 1))
    options = {"gtol": 1e-5, "maxiter": 2000}
    best = minimize(multinomial_objective, start, args=data, method="BFGS", options=options)
    found = np.column_stack([judge.weights.T, judge.base_weights.T, judge.bias]).ravel()
    assert multinomial_objective(found, *data) == pytest.approx(best.fun, abs=1e-7)
    twin = best.x.reshape(3, -1)
    assert pytest.approx(twin[:, :2], abs=1e-3) == judge.weights.T
    assert pytest.approx(twin[:, 2:5], abs=1e-3) == judge.base_weights.T


@pytest.mark.parametrize("penalty", [0.1, 3.0, 1000.0])
@pytest.mark.parametrize("form", ["ls", "btl", "mn"])
def test_predictions_are_those_of_scikit_learn(form: str, penalty: float) -> None:
    embeddings, base, question = rationales(60, 8)
    bases = {"mn": SEED(1).dirichlet(np.ones(4), 60)}
    targets = {"ls": base + SEED(2).normal(size=60), "btl": shares(60), "mn": np.arange(60) % 4}
    data = (embeddings, bases.get(form, base), targets[form])
    judge = fit_judge(form, *data, question, rng=SEED(0), penalties=[penalty])
    expected = sklearn_predictions(form, *data, penalty=penalty)
    assert judge.predict(*data[:2]) == pytest.approx(expected, abs=1e-6)


def test_logistic_fit_recovers_the_truth() -> None:
    n, truth = 20_000, np.array([0.8, -0.5, 0.3, 0.6, -0.2])
    embeddings, base, question = rationales(n, 3, seed=8)
    design = np.column_stack([embeddings, base, np.ones(n)])
    chance = 1 / (1 + np.exp(-design @ truth))
    won = (SEED(9).random(n) < chance).astype(float)
    judge = fit_preferences(embeddings, base, won, question, rng=SEED(0), penalties=[1e-3])
    information = (design.T * (chance * (1 - chance))) @ design
    std_error = np.sqrt(np.diag(np.linalg.inv(information)))
    error = parameters(judge) - truth
    assert (np.abs(error) < 4 * std_error).all()


# ------------------------------------------------------------------ what is penalised


def test_a_large_penalty_leaves_the_recalibrated_base_judge() -> None:
    embeddings, base, question = rationales(80, 6)
    outcome, nothing = shares(80), np.empty((80, 0))
    strong = fit_preferences(embeddings, base, outcome, question, rng=SEED(0), penalties=[1e7])
    bare = fit_preferences(nothing, base, outcome, question, rng=SEED(0), penalties=[1.0])
    assert strong.predict(embeddings, base) == pytest.approx(bare.predict(nothing, base), abs=1e-4)
    assert np.ptp(bare.predict(nothing, base)) > 0.01  # a judge, not a constant


def test_a_score_that_separates_the_votes_keeps_a_finite_weight() -> None:
    embeddings, _, question = rationales(40, 3)
    won = np.arange(40) % 2.0
    judge = fit_preferences(embeddings, 2 * won - 1, won, question, rng=SEED(0))
    assert 3 < judge.base_weights[0] < 20
    assert ((judge.predict(embeddings, 2 * won - 1) > 0.5) == (won > 0.5)).all()


def test_scaling_the_embedding_changes_no_prediction() -> None:
    embeddings, base, question = rationales(40, 5)
    moved = 70 * embeddings - 3
    ours = fit_preferences(embeddings, base, shares(40), question, rng=SEED(0))
    theirs = fit_preferences(moved, 10 * base + 1, shares(40), question, rng=SEED(0))
    assert ours.choice is not None
    assert theirs.choice is not None
    assert ours.choice.penalty == theirs.choice.penalty
    assert theirs.predict(moved, 10 * base + 1) == pytest.approx(
        ours.predict(embeddings, base), abs=1e-7
    )


def test_a_constant_score_weighs_nothing() -> None:
    embeddings, base, question = rationales(40, 3)
    rng = SEED(0)
    assert (
        fit_preferences(embeddings, 0 * base + 2, shares(40), question, rng=rng).base_weights == 0
    )
    assert fit_ratings(embeddings, 0 * base + 2, base, question, rng=rng).base_weights == 0


def test_ties_are_half_a_win_and_half_a_loss() -> None:
    embeddings, base, question = rationales(40, 3)
    outcome = np.arange(40) % 3 / 2
    twice = np.repeat(np.arange(40), 2)
    halves = np.where(np.arange(80) % 2, np.ceil(outcome[twice]), np.floor(outcome[twice]))
    one = fit_preferences(embeddings, base, outcome, question, rng=SEED(0), penalties=[2.0])
    two = fit_preferences(
        embeddings[twice],
        base[twice],
        halves,
        question[twice],
        rng=SEED(0),
        weight=np.full(80, 0.5),
        penalties=[2.0],
    )
    assert two.weights == pytest.approx(one.weights, abs=1e-8)
    assert two.bias == pytest.approx(one.bias, abs=1e-8)


# ------------------------------------------------------------------ choosing the penalty


@given(st.integers(2, 6), st.integers(6, 40), st.integers(0, 1000))
def test_questions_are_dealt_whole(n_folds: int, n_questions: int, seed: int) -> None:
    question = SEED(seed).integers(0, n_questions, 200)
    fold = question_folds(question.astype(str), n_folds=n_folds, rng=SEED(seed))
    folds_of = [set(fold[question == q]) for q in np.unique(question)]
    assert all(len(folds) == 1 for folds in folds_of)
    sizes = np.bincount([folds.pop() for folds in folds_of], minlength=n_folds)
    assert np.ptp(sizes) <= 1


def test_the_penalty_is_that_of_the_smallest_held_out_loss() -> None:
    embeddings, base, question = rationales(40, 5)
    rating = embeddings[:, 1] + SEED(2).normal(size=40)
    grid = [0.5, 5.0, 50.0]
    judge = fit_ratings(embeddings, base, rating, question, rng=SEED(3), penalties=grid, n_folds=4)
    fold = question_folds(question, n_folds=4, rng=SEED(3))
    losses = []
    for penalty in grid:
        squares = 0.0
        for k in range(4):
            some, rest = fold != k, fold == k
            twin = ridge_weights(
                embeddings[some], base[some], rating[some], penalty=penalty, base_penalty=0.01
            )
            design = np.column_stack([embeddings, base, np.ones(40)])[rest]
            squares += float(((design @ twin - rating[rest]) ** 2).sum())
        losses.append(squares / 40)
    assert judge.choice is not None
    assert judge.choice.losses == pytest.approx(losses, rel=1e-9)
    assert judge.choice.penalty == grid[int(np.argmin(losses))]
    assert judge.choice.on_edge == (judge.choice.penalty != 5.0)


def test_noise_gets_the_largest_penalty_and_says_so() -> None:
    _, base, question = rationales(200, 1)
    noise = SEED(11).normal(size=(200, 30))
    judge = fit_ratings(noise, base, base, question, rng=SEED(0))
    assert judge.choice is not None
    assert judge.choice.penalty == judge.choice.penalties[-1]
    assert judge.choice.on_edge


# ------------------------------------------------------------------ bad input


def fit_with(**changed: object) -> QuantitativeJudge:
    embeddings, base, question = rationales(20, 2)
    given = {"embeddings": embeddings, "base": base, "outcome": shares(20), "question": question}
    settings = {"rng": SEED(0), "penalties": [1.0], **changed}
    columns = [settings.pop(name, value) for name, value in given.items()]
    return fit_preferences(*columns, **settings)


MISSING = rationales(20, 2)[0].copy()
MISSING[[3, 7]] = math.nan


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"embeddings": MISSING}, r"2 of 20 embeddings are missing.*row 3; leave out"),
        ({"base": np.r_[np.zeros(19), math.inf]}, "base is inf in row 19"),
        ({"base": np.zeros(3)}, r"base scores have shape \(3,\), the embeddings \(20,\)"),
        ({"outcome": np.ones(20)}, r"all 20 outcomes are wins \(1\).*add votes"),
        ({"outcome": np.full(20, 0.5)}, r"all 20 outcomes are ties \(0.5\)"),
        ({"outcome": np.r_[np.zeros(19), 1.5]}, "outcome is 1.5 in row 19"),
        ({"outcome": np.r_[np.zeros(19), math.nan]}, "outcome is nan in row 19"),
        ({"weight": np.r_[np.ones(19), 0]}, "weight is 0 in row 19; expected positive"),
        ({"question": np.zeros(20), "penalties": [1, 2]}, r"1 question\(s\) for 5 folds"),
        ({"penalties": [2, 1]}, r"positive and ascending, got \[2, 1\]"),
        ({"penalties": []}, r"positive and ascending, got \[\]"),
        (
            {"outcome": np.r_[1.0, np.zeros(19)], "penalties": [1, 2]},
            "without fold . of 5: all 16 outcomes are losses",
        ),
    ],
)
def test_bad_input_names_value_place_and_remedy(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_with(**changed)


def test_ratings_that_are_all_alike_are_refused() -> None:
    embeddings, base, question = rationales(20, 2)
    with pytest.raises(ValueError, match="all 20 ratings are 3: nothing to learn"):
        fit_ratings(embeddings, base, np.full(20, 3.0), question, rng=SEED(0))


def test_certainties_have_no_logit() -> None:
    with pytest.raises(ValueError, match=r"probability is 1 in row 1; expected strictly.*-1, 0, 1"):
        base_logit([0.5, 1.0])
    with pytest.raises(ValueError, match="score_second is 0 in row 0; expected positive"):
        base_logit_of_scores([1.0], [0.0])
    with pytest.raises(ValueError, match=r"probabilities is 1 in row \(0, 0\).*small mass"):
        log_probabilities([[1.0, 0.0]])
    with pytest.raises(ValueError, match=r"row 1 of probabilities adds up to 0.9, not 1"):
        log_probabilities([[0.5, 0.5], [0.5, 0.4]])


def categories(category: np.ndarray, penalties: list[float]) -> QuantitativeJudge:
    embeddings, _, question = rationales(category.size, 2)
    probabilities = np.full((category.size, 3), 1 / 3)
    return fit_categories(
        embeddings, probabilities, category, question, rng=SEED(0), penalties=penalties
    )


def test_a_category_without_ratings_is_named() -> None:
    with pytest.raises(ValueError, match=r"categories \[1\] are absent from the 20 training rows"):
        categories(np.arange(20) % 2 * 2, [1.0])
    once = np.r_[1, np.arange(19) % 2 * 2]
    with pytest.raises(ValueError, match=r"without fold . of 5: categories \[1\] are absent"):
        categories(once, [1.0, 2.0])
    with pytest.raises(ValueError, match="category is 3 in row 19; expected a column"):
        categories(np.r_[np.arange(19) % 3, 3], [1.0])


def test_a_judge_refuses_embeddings_of_another_model() -> None:
    with pytest.raises(ValueError, match="3 features, the judge has 2 weights"):
        fit_with().predict(np.zeros((1, 3)), [0.0])
