import numpy as np
import pytest
from arenas import STRESS_GRAPHS, code, name, stress_battles
from scipy.optimize import minimize
from scipy.special import expit
from twins import Battle

from judgeline.elo import (
    CodedBattles,
    code_battles,
    fit_strengths,
    fit_surrogacy,
    surrogacy_finding,
)
from judgeline.elo.battle_counts import Sums
from judgeline.elo.surrogacy import _TrainingSet

SIZE = 12


def arena(
    gamma: float,
    seed: int,
    n: int = 6000,
    noise: float = 2.0,
    *,
    size: int = SIZE,
    spread: float = 1.0,
    ties: float = 0.0,
    beta: float = 0.5,
    informed: float = 1.0,
) -> CodedBattles:
    """Votes on beta times the score plus `gamma` times the true gap of the models."""
    rng = np.random.default_rng([seed, size])
    strengths = rng.normal(0, spread, size)
    a = rng.integers(size, size=n)
    b = (a + rng.integers(1, size, size=n)) % size
    gap = strengths[a] - strengths[b]
    score = np.round(12 * np.clip(informed * gap + noise * rng.standard_normal(n), -9, 9)) / 12
    vote = (rng.random(n) < expit(beta * score + gamma * gap)).astype(float)
    vote[rng.random(n) < ties] = 0.5
    names = np.array([name(model) for model in range(size)])
    return code_battles(
        names[a], names[b], human_outcome=vote, judge_outcome=(score > 0).astype(float),
        score_difference=score,
    )  # fmt: skip


def fit(battles: CodedBattles, seed: int = 0):
    return fit_surrogacy(battles, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(3))
def test_gamma_is_what_the_score_leaves_to_the_models(seed: int) -> None:
    found = fit(arena(gamma=0.0, seed=seed))
    assert abs(found.gamma) < 4 * found.gamma_std_error
    assert found.beta == pytest.approx(0.5, abs=0.1)
    assert found.n_battles == 6000
    found = fit(arena(gamma=0.8, seed=seed))
    assert found.gamma > 5 * found.gamma_std_error


def test_a_useless_score_leaves_everything_to_the_models() -> None:
    """Scores of pure noise, votes by strength alone: gamma is one."""
    found = fit(arena(gamma=1.0, seed=4, n=8000, beta=0.0, informed=0.0))
    assert found.gamma == pytest.approx(1, abs=4 * found.gamma_std_error + 0.03)
    assert abs(found.beta) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_no_vote_helps_to_predict_itself(seed: int) -> None:
    """Coin-flip votes between many models: strengths that saw them would seem to explain them."""
    found = fit(arena(gamma=0.0, seed=seed, n=600, size=60, beta=0.0, informed=0.0))
    assert abs(found.gamma) < 4 * found.gamma_std_error


def star() -> list[Battle]:
    rng = np.random.default_rng(0)
    return [
        Battle(name(0), name(int(other)), float(rng.random() < 0.6), 0.5, float(score))
        for other, score in zip(rng.integers(1, 6, 200), rng.integers(-3, 4, 200), strict=True)
    ]


@pytest.mark.parametrize(
    ("battles", "error", "complaint"),
    [
        ([Battle("a", "b", 0.5, 0.5, 0.0), Battle("a", "b", 1.0, 1.0, 1.0)] * 5, ValueError,
         "5 decisive votes"),
        ([Battle("a", "b", float(k % 10 < 7), 0.5, 0.0) for k in range(400)], RuntimeError,
         "cannot be told apart"),
        (star(), ValueError, f"without the votes on {name(0)}: 0 decisive votes"),
    ],
    ids=["too few votes", "scores that do not vary", "a model whose votes carry the finding"],
)  # fmt: skip
def test_votes_that_show_nothing_are_refused(battles, error, complaint):
    with pytest.raises(error, match=complaint):
        fit(code(battles))


# ------------------------------------------------------------------ the standard error


def slopes_of(battles: CodedBattles, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and inverse information with the strengths taken as known, by scipy: a slow twin."""
    strength = np.array([strengths_of(battles.take(part != held_out)) for held_out in range(5)])
    gap = strength[part, battles.model_a] - strength[part, battles.model_b]
    rows = (battles.human_outcome != 1) & np.isfinite(gap)
    design = np.column_stack([battles.rubric_points(), gap])[rows]
    sign = battles.human_outcome[rows] - 1.0
    found = minimize(
        lambda slopes: np.logaddexp(0, -sign * (design @ slopes)).sum(), [0.3, 0.3], tol=1e-10
    )
    chance = expit(design @ found.x)
    return found.x, np.linalg.inv(design.T @ (design * (chance * (1 - chance))[:, None]))


def strengths_of(battles: CodedBattles) -> np.ndarray:
    votes = Sums.of(battles).human
    strength = fit_strengths(votes.sum(axis=2), (votes @ [0, 0.5, 1]).sum(axis=1))
    return np.where(battles.voted_models(), strength, np.nan)


def jackknife_twin(battles: CodedBattles, seed: int = 0) -> float:
    """Refit strengths and slopes from nothing without each model, on the same fifths."""
    part = np.random.default_rng(seed).permutation(len(battles)) % 5
    rest = [(battles.model_a != m) & (battles.model_b != m) for m in range(len(battles.models))]
    gammas = np.array([slopes_of(battles.take(kept), part[kept])[0][1] for kept in rest])
    factor = (len(rest) - 2) / (2 * len(rest))
    known = slopes_of(battles, part)[1][1, 1]
    return float(np.sqrt(max(factor * ((gammas - gammas.mean()) ** 2).sum(), known)))


@pytest.mark.parametrize(
    ("gamma", "size", "ties"), [(0.0, 10, 0.2), (0.8, 10, 0.0), (0.4, 25, 0.1)]
)
def test_std_error_is_that_of_deleting_one_model_at_a_time(gamma, size, ties):
    battles = arena(gamma, 1, 3000, size=size, ties=ties)
    assert fit(battles).gamma_std_error == pytest.approx(jackknife_twin(battles), rel=1e-5)


@pytest.mark.parametrize("l2", [0.01, 0.0])
@pytest.mark.parametrize("graph", STRESS_GRAPHS)
def test_deletions_fitted_together_are_those_fitted_alone(graph: str, l2: float) -> None:
    votes = _TrainingSet.of(code(stress_battles(graph)), 0.01)
    alone = np.eye(len(votes.strength), dtype=bool)
    deleted = np.concatenate([alone, alone[::2] | alone[np.arange(0, len(alone), 2) - 1]])
    together = votes.strengths_without(deleted, l2)
    done = np.isfinite(together).all(axis=1)
    assert done.all() if l2 and graph == "everybody meets" else l2 or not done.any()
    for row in np.flatnonzero(done):
        expected = votes.strength_without(deleted[row], l2)
        assert together[row] == pytest.approx(expected, abs=1e-9)


def test_a_finding_is_two_standard_errors_away() -> None:
    known = {0.62: "(gamma 0.62, SE 0.08): raw soft", -0.3: "too far apart", 0.1: "no sign"}
    assert all(said in surrogacy_finding(gamma, 0.08) for gamma, said in known.items())
