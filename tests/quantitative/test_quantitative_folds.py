"""Cross-fitted outcomes, presentations and batches of fits against fits one at a time."""

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quantitative_twin import logistic_weights, spreads

from judgeline.quantitative import (
    CrossFitted,
    Presentations,
    QuantitativeJudge,
    TooLittleToLearnError,
    cross_fitted_outcomes,
    presentations,
    two_headed,
)
from judgeline.quantitative.inputs import battle_outcomes, presentation_weights, presented_outcomes
from judgeline.quantitative.newton import coordinates, fit_many

SEED = np.random.default_rng
GRID = [0.3, 3.0, 30.0]


class Arena(NamedTuple):
    shown: Presentations
    model_a: np.ndarray
    model_b: np.ndarray
    outcome: np.ndarray
    question: np.ndarray


def arena(n: int = 60, n_models: int = 4, d: int = 5, *, seed: int = 0) -> Arena:
    """Battles shown in both orders, some in one or thrice, whose votes lean on texts and score."""
    rng = SEED(seed)
    a = rng.integers(n_models, size=n)
    b = (a + rng.integers(1, n_models, size=n)) % n_models
    battle = np.concatenate([np.arange(n), np.arange(n // 2), rng.integers(0, n, n // 4)])
    swapped = np.repeat([False, True, True], [n, n // 2, n // 4])
    sign, content = np.where(swapped, -1, 1), rng.normal(size=(n, d))
    embeddings = sign[:, None] * content[battle] + 0.5 * rng.normal(size=(battle.size, d))
    base = sign * rng.normal(size=n)[battle] + 0.4 * rng.normal(size=battle.size) + 0.3
    chance = 1 / (1 + np.exp(-content[:, 0] * 1.5 - base[:n]))
    outcome = np.where(rng.random(n) < 0.2, 0.5, rng.random(n) < chance)
    shown = presentations(embeddings, base, battle, swapped)
    return Arena(shown, a, b, outcome, rng.integers(0, n // 3, n))


def fitted(given: Arena, n_models: int = 4, **settings: object) -> CrossFitted:
    options = {"rng": SEED(1), "penalties": GRID, "n_folds": 4, **settings}
    return cross_fitted_outcomes(*given, n_models=n_models, **options)


# ------------------------------------------------------------------ presentations and battles


@given(st.integers(0, 10_000))
def test_swapping_the_answers_mirrors_predictions(seed: int) -> None:
    rng = SEED(seed)
    shown = arena(12, seed=seed).shown
    judge = QuantitativeJudge("btl", *(rng.normal(size=size) for size in (5, 1, ())))
    chance = judge.predict(shown.embeddings, shown.base)
    mirrored = shown._replace(swapped=~shown.swapped)
    total = battle_outcomes(chance, shown) + battle_outcomes(chance, mirrored)
    assert total == pytest.approx(np.ones(12), rel=1e-15)


def test_a_battle_is_the_mean_of_its_orders() -> None:
    shown = presentations(np.zeros((4, 1)), np.zeros(4), [0, 0, 0, 1], np.array([0, 1, 1, 1]) > 0)
    # battle 0: 0.8 shown first, 1 - (0.4 + 0.2) / 2 shown second
    assert battle_outcomes([0.8, 0.4, 0.2, 0.9], shown) == pytest.approx([0.75, 0.1])
    assert presentation_weights(shown).tolist() == [1 / 3, 1 / 3, 1 / 3, 1]
    votes = presented_outcomes([1.0, math.nan], shown)
    assert votes[:3].tolist() == [1, 0, 0]
    assert math.isnan(votes[3])


@given(st.integers(0, 10_000))
def test_two_heads_cannot_tell_a_from_b(seed: int) -> None:
    rng = SEED(seed)
    texts, scores = rng.normal(size=(2, 6, 3)), rng.uniform(1, 10, (2, 6))
    judge = QuantitativeJudge("btl", *(rng.normal(size=size) for size in (3, 1, ())))

    def predicted(first: int, second: int) -> np.ndarray:
        shown = two_headed(texts[first], texts[second], scores[first], scores[second])
        return battle_outcomes(judge.predict(shown.embeddings, shown.base), shown)

    assert predicted(0, 1) + predicted(1, 0) == pytest.approx(np.ones(6), rel=1e-15)
    unbiased = replace(judge, bias=np.zeros(()))
    score = np.log(scores[0]) - np.log(scores[1])
    assert predicted(0, 1) != pytest.approx(np.full(6, 0.5), abs=1e-3)
    once = unbiased.predict(texts[0] - texts[1], score)
    shown = two_headed(texts[0], texts[1], scores[0], scores[1])
    assert battle_outcomes(unbiased.predict(shown.embeddings, shown.base), shown) == pytest.approx(
        once, rel=1e-12
    )


# ------------------------------------------------------------------ against the slow twin


def twin_logits(
    given: Arena, rows: np.ndarray, penalty: float, weights: np.ndarray, votes: np.ndarray
) -> np.ndarray:
    shown = given.shown
    found = logistic_weights(
        shown.embeddings[rows], shown.base[rows], votes[rows], weights[rows], penalty=penalty,
        base_penalty=0.01, scales=spreads(shown.embeddings, shown.base),
    )  # fmt: skip
    return shown.embeddings @ found[:-2] + found[-2] * shown.base + found[-1]


def twin(given: Arena, fold: np.ndarray, n_models: int, n_folds: int) -> CrossFitted:
    """One model, one fold, one fit at a time; the penalty by the loss on the other folds."""
    shown = given.shown
    weights, votes = presentation_weights(shown), presented_outcomes(given.outcome, shown)
    place = fold[shown.battle]
    outcome, penalty = np.empty((n_models, fold.size)), np.empty((n_models, n_folds))
    for m, k in itertools.product(range(n_models), range(n_folds)):
        other = (given.model_a != m) & (given.model_b != m)
        usable = other[shown.battle] & ~np.isnan(votes) & (place != k)
        losses = np.zeros(len(GRID))
        for (g, gamma), j in itertools.product(enumerate(GRID), set(range(n_folds)) - {k}):
            test = usable & (place == j)
            logit = twin_logits(given, usable & (place != j), gamma, weights, votes)[test]
            loss = np.log1p(np.exp(logit)) - votes[test] * logit
            losses[g] += weights[test] @ loss
        penalty[m, k] = GRID[int(np.argmin(losses))]
        logit = twin_logits(given, usable, penalty[m, k], weights, votes)
        battles = battle_outcomes(1 / (1 + np.exp(-logit)), shown)
        outcome[m, fold == k] = battles[fold == k]
    return CrossFitted(outcome, penalty, fold)


@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_those_of_one_fit_at_a_time(seed: int) -> None:
    given = arena(seed=seed)
    given.outcome[SEED(seed).random(60) < 0.2] = math.nan
    found = fitted(given)
    slow = twin(given, found.fold, 4, 4)
    assert (found.penalty == slow.penalty).all()
    assert found.outcome == pytest.approx(slow.outcome, abs=1e-7)
    assert all(len(set(found.fold[given.question == q])) == 1 for q in given.question)
    assert set(found.fold) == {0, 1, 2, 3}


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "n_features"), [(40, 384), (40, 39), (40, 38), (60, 5)])
@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_a_fit_is_that_of_its_own_with_more_features_than_rows_too(n_rows, n_features, penalty):
    rng = SEED(4)
    base = rng.normal(size=n_rows)
    embeddings = rng.normal(size=(n_rows, n_features)) + base[:, None] * rng.normal(size=n_features)
    outcome = (rng.random(n_rows) < 1 / (1 + np.exp(-2 * base))).astype(float)
    weights = rng.choice([0.5, 1.0], n_rows)
    where = coordinates(embeddings, base, weights)
    rows = (weights[:, None], outcome, np.array([penalty]))
    scales = spreads(embeddings, base)
    own = logistic_weights(
        *(embeddings, base, outcome, weights), penalty=penalty, base_penalty=0.01, scales=scales
    )
    expected = embeddings @ own[:-2] + own[-2] * base + own[-1]
    found = fit_many(where, *rows, tolerance=1e-10)[:, 0]
    assert found == pytest.approx(expected, abs=1e-7)
    rough = fit_many(where.single(), *rows, tolerance=1e-4)[:, 0]
    assert rough == pytest.approx(expected, abs=1e-3)


def test_directions_without_rows_are_one_and_a_score_that_explains_nothing_adds_none() -> None:
    rng = SEED(0)
    flat = coordinates(rng.normal(size=(8, 20)), np.ones(8), np.ones(8))
    assert np.isfinite(flat.columns).all()
    assert np.isfinite(flat.mixing).all()
    words = rng.normal(size=(50, 30)) * (np.arange(30) < 12)  # 18 features that no row has
    where = coordinates(words, rng.normal(size=50), np.ones(50))
    assert where.columns.shape == (50, 12 + 2 + 1)


# ------------------------------------------------------------------ no vote leaks


@pytest.mark.parametrize("n", [60, 400])
def test_no_vote_that_must_not_count_touches_a_bit(n: int) -> None:
    """Votes on the held-out model, then votes on the fold's questions; turned, then taken away."""
    given = arena(n)
    before = fitted(given)
    thin = np.arange(n) % 3 > 0
    for m in range(4):
        of_model = (given.model_a == m) | (given.model_b == m)
        of_fold = before.fold == m
        for own in (of_model, of_fold):
            turned = np.where(own, 1 - np.round(given.outcome), given.outcome)
            thinned = np.where(own & thin, math.nan, given.outcome)
            for outcome in (turned, thinned):
                after = fitted(given._replace(outcome=outcome))
                same = after.outcome == before.outcome
                if own is of_model:
                    assert same[m].all()
                    assert (after.penalty[m] == before.penalty[m]).all()
                    assert (~np.delete(same, m, axis=0)).any(axis=1).all()
                elif n == 400 or outcome is turned:  # 60 battles leave too few to take away
                    assert same[:, own].all()
                    assert (~same[:, ~own]).any(axis=1).all()
                    if outcome is turned:
                        assert (after.penalty[:, m] == before.penalty[:, m]).all()


def test_models_without_votes_share_one_set_of_fits() -> None:
    given = arena(80, n_models=6)
    new = np.isin(given.model_a, (2, 4)) | np.isin(given.model_b, (2, 4))
    found = fitted(given._replace(outcome=np.where(new, math.nan, given.outcome)), 6)
    assert found.outcome.shape == (6, 80)
    assert np.isfinite(found.outcome).all()
    assert (found.outcome[2] == found.outcome[4]).all()
    assert (found.outcome[2] != found.outcome[3]).any()


def test_swapping_every_battle_mirrors_every_outcome() -> None:
    given = arena()
    mirrored = Arena(
        given.shown._replace(swapped=~given.shown.swapped),
        given.model_b,
        given.model_a,
        1 - given.outcome,
        given.question,
    )
    assert fitted(mirrored).outcome == pytest.approx(1 - fitted(given).outcome, abs=1e-9)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("changed", "too_little", "message"),
    [
        ({"outcome": np.full(60, 0.5)}, True,
         r"without model 0, fold 0: all \d+ outcomes are 0.5"),
        ({"outcome": np.full(60, math.nan)}, True, "no votes are left without leaving out a model"),
        ({"question": np.zeros(60)}, True, r"on 1 question\(s\), and 4"),
        ({"outcome": np.r_[np.ones(59), 2]}, False, r"outcome is 2 in row 59; expected \[0, 1\]"),
        ({"model_a": np.full(60, 7)}, False, r"the pair of models is \[7, 2\] in row 0"),
        ({"question": np.arange(59)}, False, r"model_a \(60,\), outcome \(60,\), question \(59,\)"),
    ],
)  # fmt: skip
def test_too_little_to_learn_is_told_from_wrong_input(changed, too_little, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        fitted(arena()._replace(**changed))
    assert isinstance(caught.value, TooLittleToLearnError) is too_little


def test_choosing_a_penalty_needs_three_folds() -> None:
    with pytest.raises(ValueError, match="n_folds is 2: choosing among 3 penalties"):
        fitted(arena(), n_folds=2)
    assert fitted(arena(), n_folds=2, penalties=[1.0]).outcome.shape == (4, 60)


def test_battles_without_a_rationale_are_named() -> None:
    given = arena()
    kept = given.shown.battle != 7
    shown = Presentations(*(column[kept] for column in given.shown))
    with pytest.raises(ValueError, match=r"1 of 60 battles have no presentation.*first \[7\]"):
        fitted(given._replace(shown=shown))
    with pytest.raises(ValueError, match="the number of presentations of a battle is 0 in row 7"):
        battle_outcomes(shown.base, shown)
    with pytest.raises(ValueError, match=r"embeddings is nan in row 0, column 0"):
        presentations([[math.nan]], [0.0], [0], np.array([False]))
    with pytest.raises(ValueError, match=r"swapped is dtype\('int64'\)"):
        presentations([[0.0]], [0.0], [0], [1])
