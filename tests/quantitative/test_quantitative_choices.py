import itertools
from functools import partial

import choix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quantitative_twin import ranking_chance

from judgeline.quantitative import fit_judge
from judgeline.quantitative.judges import log_chance

SEED = np.random.default_rng
fit_choices = partial(fit_judge, "pl")


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


def test_pairs_are_bradley_terry_luce() -> None:
    rng = SEED(4)
    features, base = rng.normal(size=(50, 2, 3)), rng.normal(size=(50, 2))
    judge = fit_choices(
        features, base, drawn(base, rng)[:, :1], np.arange(50), rng=SEED(0), penalties=[3.0]
    )
    score = judge.score(features, base)
    alone = 1 / (1 + np.exp(score[:, 1] - score[:, 0]))
    assert judge.predict(features, base)[:, 0] == pytest.approx(alone, rel=1e-12)
    assert judge.bias == 0


def test_rankings_recover_the_truth() -> None:
    rng, n, truth = SEED(2), 4000, np.array([0.8, -0.5, 0.7])
    features, base = rng.normal(size=(n, 4, 2)), rng.normal(size=(n, 4))
    columns = np.concatenate([features, base[..., None]], axis=2)
    order = drawn(columns @ truth, rng)
    judge = fit_choices(features, base, order[:, :1], np.arange(n), rng=SEED(0), penalties=[1e-3])
    worth = np.exp(columns @ truth)
    chance = (worth / worth.sum(axis=1, keepdims=True))[..., None]
    centred = columns - (chance * columns).sum(axis=1, keepdims=True)
    information = np.einsum("nkd,nke->de", chance * centred, centred)
    std_error = np.sqrt(np.diag(np.linalg.inv(information)))
    assert (np.abs([*judge.weights, *judge.base_weights] - truth) < 4 * std_error).all()


def test_the_penalty_is_chosen_by_held_out_likelihood() -> None:
    rng = SEED(6)
    noise, base = rng.normal(size=(150, 3, 20)), 2 * rng.normal(size=(150, 3))
    judge = fit_choices(noise, base, drawn(base, rng), np.arange(150), rng=SEED(0))
    assert judge.choice is not None
    assert judge.choice.penalty >= 100
    assert judge.choice.losses[-1] < judge.choice.losses[0]


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        ([[0, 0]] * 6, r"ranking is \[0, 0\] in row 0; expected distinct"),
        ([[0]] * 5 + [[3]], r"ranking is \[3\] in row 5; expected distinct positions 0 to 2"),
        ([[0]] * 5, r"ranking has shape \(5, 1\), scores \(6, 3\)"),
        ([[0, 1, 2, 0]] * 6, "a ranking of 4 out of 3"),
    ],
)
def test_bad_rankings_are_named(ranking: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_choices(np.zeros((6, 3, 1)), np.zeros((6, 3)), ranking, range(6), rng=SEED(0))


def test_missing_rationales_are_named() -> None:
    features = np.zeros((6, 3, 1))
    features[4, 2] = np.nan
    with pytest.raises(ValueError, match=r"1 of 18 embeddings are missing.*row \(4, 2\)"):
        fit_choices(features, np.zeros((6, 3)), [[0]] * 6, range(6), rng=SEED(0))
