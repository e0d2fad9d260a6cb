"""Quantitative judges of one fit: twins, scikit-learn and choix; penalties; refusals."""

import itertools
import math
from functools import partial

import choix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quantitative_twin import (
    logistic_weights,
    ranking_chance,
    ranking_weights,
    ridge_weights,
    sklearn_predictions,
    spreads,
)

from judgeline.quantitative import (
    QuantitativeJudge,
    base_judge,
    base_logit,
    base_logit_of_scores,
    fit_judge,
)
from judgeline.quantitative.inputs import log_probabilities, question_folds
from judgeline.quantitative.judges import log_chance

fit_ratings = partial(fit_judge, "ls")
fit_preferences = partial(fit_judge, "btl")
fit_categories = partial(fit_judge, "mn")
fit_choices = partial(fit_judge, "pl")
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


def categories(category: np.ndarray, penalties: list[float]) -> QuantitativeJudge:
    embeddings, _, question = rationales(category.size, 2)
    probabilities = np.full((category.size, 3), 1 / 3)
    return fit_categories(
        embeddings, probabilities, category, question, rng=SEED(0), penalties=penalties
    )


# ------------------------------------------------------------------ the form of the judges


@pytest.mark.parametrize("n_categories", [7, 5])
def test_published_parameter_counts(n_categories: int) -> None:
    judge = base_judge("mn", PUBLISHED_WIDTH, n_categories)
    assert judge.n_parameters == n_categories * (PUBLISHED_WIDTH + n_categories + 1)
    assert base_judge("btl", PUBLISHED_WIDTH).n_parameters == PUBLISHED_WIDTH + 2
    assert base_judge("pl", PUBLISHED_WIDTH).n_parameters == PUBLISHED_WIDTH + 1
    fitted = categories(np.arange(60) % 3, [1.0])
    assert fitted.n_parameters == 3 * (2 + 3 + 1)


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
@pytest.mark.parametrize("n", [60, 12])  # fewer rows than features too
def test_logistic_fit_is_newtons(penalty: float, n: int) -> None:
    embeddings, base, question = rationales(n, 15)
    outcome, weight = shares(n), SEED(4).uniform(0.3, 2, n)
    judge = fit_preferences(
        embeddings, base, outcome, question, rng=SEED(0), weight=weight, penalties=[penalty]
    )
    twin = logistic_weights(
        embeddings, base, outcome, weight, penalty=penalty, base_penalty=0.01,
        scales=spreads(embeddings, base),
    )  # fmt: skip
    found = parameters(judge)
    assert found == pytest.approx(twin, abs=1e-6)


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


# ------------------------------------------------------------------ what is penalised


def test_a_large_penalty_leaves_the_recalibrated_base_judge() -> None:
    embeddings, base, question = rationales(80, 6)
    outcome, nothing = shares(80), np.empty((80, 0))
    strong = fit_preferences(embeddings, base, outcome, question, rng=SEED(0), penalties=[1e7])
    bare = fit_preferences(nothing, base, outcome, question, rng=SEED(0), penalties=[1.0])
    assert strong.predict(embeddings, base) == pytest.approx(bare.predict(nothing, base), abs=1e-4)
    assert np.ptp(bare.predict(nothing, base)) > 0.01  # a judge, not a constant


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
    ("call", "message"),
    [
        (lambda: fit_with(embeddings=MISSING), "embeddings is nan in row 3, column 0"),
        (lambda: fit_with(base=np.r_[np.zeros(19), math.inf]), "base is inf in row 19"),
        (lambda: fit_with(base=np.zeros(3)), r"the shape of base is \(3,\)"),
        (lambda: fit_with(outcome=np.ones(20)), "all 20 outcomes are 1: nothing to learn; add"),
        (lambda: fit_with(outcome=np.r_[np.zeros(19), 1.5]), "outcome is 1.5 in row 19"),
        (lambda: fit_with(outcome=np.r_[np.zeros(19), math.nan]), "outcome is nan in row 19"),
        (lambda: fit_with(weight=np.r_[np.ones(19), 0]), "weight is 0 in row 19; .* positive"),
        (lambda: fit_with(question=np.zeros(20), penalties=[1, 2]), r"on 1 question\(s\), and 5"),
        (lambda: fit_with(penalties=[2, 1]), r"penalties is \[2, 1\]"),
        (lambda: fit_with(penalties=[]), r"penalties is \[\]"),
        (lambda: fit_with(outcome=np.r_[1.0, np.zeros(19)], penalties=[1, 2]),
         "without 1 in 5 of the questions, .*: all 16 outcomes are 0"),
        (lambda: fit_ratings(*rationales(20, 2)[:2], np.full(20, 3.0), range(20), rng=SEED(0)),
         "all 20 ratings are 3: nothing to learn"),
        (lambda: base_logit([0.5, 1.0]), r"probability is 1 in row 1; .* strictly.*-1, 0, 1"),
        (lambda: base_logit_of_scores([1.0], [0.0]), "score_second is 0 in row 0; .* positive"),
        (lambda: base_logit_of_scores([1.0], [0.0, 1.0]), r"\(1,\), score_second \(2,\)"),
        (lambda: log_probabilities([[1.0, 0.0]]), r"ities is 1 in row 0, column 0.*small mass"),
        (lambda: log_probabilities([[0.5, 0.5], [0.5, 0.4]]), "sum .* is 0.9 in row 1"),
        (lambda: log_probabilities([0.5, 0.5]), r"the shape of probabilities is \(2,\)"),
        (lambda: categories(np.arange(20) % 2 * 2, [1.0]), r"\[1\] are absent from the 20"),
        (lambda: categories(np.r_[1, np.arange(19) % 2 * 2], [1.0, 2.0]),
         r"without 1 in 5 of the questions, .*: categories \[1\] are absent"),
        (lambda: categories(np.r_[np.arange(19) % 3, 3], [1.0]), "category is 3 in row 19"),
        (lambda: fit_with().predict(np.zeros((1, 3)), [0.0]), "the number of features is 3"),
        (lambda: question_folds([1, 2], n_folds=1, rng=SEED(0)), "n_folds is 1"),
        (lambda: ranked([[0, 0]] * 6), r"ranking is \[0, 0\] in row 0"),
        (lambda: ranked([[0]] * 5 + [[3]]), r"ranking is \[3\] in row 5"),
        (lambda: ranked([[0]] * 5), r"the shape of ranking is \(5, 1\)"),
        (lambda: ranked([[0, 1, 2, 0]] * 6), r"the shape of ranking is \(6, 4\)"),
        (lambda: ranked([[0]] * 6, math.nan), "embeddings is nan in row 4, column 2, layer 0"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused_by_value_place_and_remedy(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def ranked(ranking: list[list[int]], one: float = 0.0) -> QuantitativeJudge:
    features = np.zeros((6, 3, 1))
    features[4, 2] = one
    return fit_choices(features, np.zeros((6, 3)), ranking, range(6), rng=SEED(0))


# ------------------------------------------------------------------ choices and rankings


def drawn(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rankings from Plackett-Luce: best first by score plus Gumbel noise."""
    return np.argsort(-(scores + rng.gumbel(size=scores.shape)), axis=1)


@given(st.integers(2, 5), st.integers(0, 10_000))
def test_chances_are_those_of_one_by_one_and_add_up(n_items: int, seed: int) -> None:
    scores = 2 * SEED(seed).normal(size=n_items)
    for depth in range(1, n_items + 1):
        rankings = list(itertools.permutations(range(n_items), depth))
        chances = np.exp(log_chance(np.tile(scores, (len(rankings), 1)), rankings))
        assert chances.sum() == pytest.approx(1, rel=1e-12)
        twin = [ranking_chance(scores, ranking) for ranking in rankings]
        assert chances == pytest.approx(twin, rel=1e-10)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_strengths_of_items_are_those_of_choix(depth: int) -> None:
    # An embedding that names the item makes its weights the items' strengths.
    n, n_items = 60, 4
    strength = np.array([0.5, -0.3, 0.1, -0.3])
    order = drawn(np.tile(strength, (n, 1)), SEED(0))[:, :depth]
    alpha, unit = 0.7, np.sqrt(1 - 1 / n_items)
    judge = fit_choices(
        np.tile(np.eye(n_items), (n, 1, 1)),
        np.zeros((n, n_items)),
        order,
        np.arange(n),
        rng=SEED(0),
        penalties=[2 * alpha / unit**2],
    )
    others = [[i for i in range(n_items) if i not in row] for row in order.tolist()]
    if depth == 1:
        tops = list(zip(order[:, 0].tolist(), others, strict=True))
        found = choix.opt_top1(n_items, tops, alpha=alpha, tol=1e-12)
    elif depth < n_items - 1:  # what choix does not take: the rest as losers of each stage
        pairs = zip(order.tolist(), others, strict=True)
        stages = [(r[i], r[i + 1 :] + o) for r, o in pairs for i in range(depth)]
        found = choix.opt_top1(n_items, stages, alpha=alpha, tol=1e-12)
    else:
        full = [row + rest for row, rest in zip(order.tolist(), others, strict=True)]
        found = choix.opt_rankings(n_items, full, alpha=alpha, tol=1e-12)
    assert judge.weights == pytest.approx(found, abs=1e-6)
    assert judge.base_weights == 0


@pytest.mark.parametrize(("n", "d", "depth"), [(40, 3, 1), (40, 3, 3), (6, 9, 2)])
def test_rankings_of_many_are_those_of_a_slow_twin(n: int, d: int, depth: int) -> None:
    rng = SEED(9)
    features, base = rng.normal(size=(n, 4, d)), rng.normal(size=(n, 4))
    order = drawn(base + features[..., 0], rng)[:, :depth]
    judge = fit_choices(features, base, order, np.arange(n), rng=SEED(0), penalties=[1.5])
    twin = ranking_weights(features, base, order, penalty=1.5, base_penalty=0.01)
    assert [*judge.weights, *judge.base_weights] == pytest.approx(twin, abs=1e-4)


def test_the_penalty_is_chosen_by_held_out_likelihood() -> None:
    rng = SEED(6)
    noise, base = rng.normal(size=(150, 3, 20)), 2 * rng.normal(size=(150, 3))
    judge = fit_choices(noise, base, drawn(base, rng), np.arange(150), rng=SEED(0))
    assert judge.choice is not None
    assert judge.choice.penalty >= 100
    assert judge.choice.losses[-1] < judge.choice.losses[0]
