import numpy as np
import pytest
from arenas import code, name
from scipy.special import expit
from twins import Battle

from judgeline.battles import CodedBattles
from judgeline.surrogacy import fit_surrogacy

SIZE = 12


def arena(gamma: float, seed: int, n: int = 6000, noise: float = 2.0) -> CodedBattles:
    """Votes on beta 0.5 times the score plus `gamma` times the true gap of the models."""
    rng = np.random.default_rng(seed)
    strengths = rng.normal(0, 1, SIZE)
    battles = []
    for _ in range(n):
        a, b = rng.choice(SIZE, 2, replace=False)
        gap = strengths[a] - strengths[b]
        score = round(12 * np.clip(gap + noise * rng.standard_normal(), -9, 9)) / 12
        vote = float(rng.random() < expit(0.5 * score + gamma * gap))
        battles.append(Battle(name(int(a)), name(int(b)), vote, float(score > 0), score))
    return code(battles)


def fit(battles: CodedBattles, seed: int = 0):
    return fit_surrogacy(battles, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(3))
def test_a_score_that_carries_everything_leaves_nothing_to_the_models(seed: int) -> None:
    found = fit(arena(gamma=0.0, seed=seed))
    assert abs(found.gamma) < 4 * found.gamma_std_error
    assert found.beta == pytest.approx(0.5, abs=0.1)
    assert found.n_battles == 6000


@pytest.mark.parametrize("seed", range(3))
def test_a_noisy_score_leaves_a_share_to_the_models(seed: int) -> None:
    found = fit(arena(gamma=0.8, seed=seed))
    assert found.gamma > 5 * found.gamma_std_error


def test_a_useless_score_leaves_everything_to_the_models() -> None:
    """By construction: scores of pure noise, votes by strength alone, so gamma is one."""
    rng = np.random.default_rng(4)
    strengths = rng.normal(0, 1, SIZE)
    battles = []
    for _ in range(8000):
        a, b = (int(k) for k in rng.choice(SIZE, 2, replace=False))
        vote = float(rng.random() < expit(strengths[a] - strengths[b]))
        score = round(12 * np.clip(2 * rng.standard_normal(), -9, 9)) / 12
        battles.append(Battle(name(a), name(b), vote, float(score > 0), score))
    found = fit(code(battles))
    assert found.gamma == pytest.approx(1, abs=4 * found.gamma_std_error + 0.03)
    assert abs(found.beta) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_no_vote_helps_to_predict_itself(seed: int) -> None:
    """Coin-flip votes between many models: strengths that saw them would seem to explain them."""
    rng = np.random.default_rng([5, seed])
    battles = []
    for _ in range(600):
        a, b = (int(k) for k in rng.choice(60, 2, replace=False))
        score = round(12 * np.clip(2 * rng.standard_normal(), -9, 9)) / 12
        battles.append(Battle(name(a), name(b), float(rng.random() < 0.5), 0.5, score))
    found = fit(code(battles))
    assert abs(found.gamma) < 4 * found.gamma_std_error


def test_too_few_votes_are_refused() -> None:
    battles = [Battle("a", "b", 0.5, 0.5, 0.0), Battle("a", "b", 1.0, 1.0, 1.0)] * 5
    with pytest.raises(ValueError, match="5 decisive votes"):
        fit(code(battles))


def test_scores_that_do_not_vary_cannot_be_told_from_nothing() -> None:
    rng = np.random.default_rng(0)
    votes = (rng.random(400) < 0.7).astype(float)
    with pytest.raises(RuntimeError, match="cannot be told apart"):
        fit(code([Battle(name(0), name(1), float(vote), 0.5, 0.0) for vote in votes]))
