"""Made-up corpora of battles whose judge errs in a known way."""

import numpy as np

from judgeline.elo import CodedBattles, code_battles


def world(
    seed: int,
    *,
    n_models: int = 8,
    n_battles: int = 2400,
    share_voted: float = 1.0,
    accuracy: float | None = 0.8,
    n_new: int = 0,
    ties: float = 0.0,
    judge_ties: float = 0.6,
    torn: bool = False,
) -> tuple[CodedBattles, np.ndarray, np.ndarray]:
    """Battles, their questions and what humans say of all, voted or not (A's share).
    The judge is right with the accuracy, or (None) as far as the models are apart; of human ties it
    ties a share, and on others of them says what it would without a tie, or, torn, tosses."""
    rng = np.random.default_rng([seed, 17])
    strength = np.linspace(-1.5, 1.5, n_models)
    a = rng.integers(n_models, size=n_battles)
    b = (a + rng.integers(1, n_models, size=n_battles)) % n_models
    gap = strength[a] - strength[b]
    human = (gap + rng.logistic(size=n_battles) > 0).astype(float)
    judge = (gap + rng.logistic(size=n_battles) > 0).astype(float)
    if accuracy is not None:
        judge = np.where(rng.random(n_battles) < accuracy, human, 1 - human)
    tied = rng.random(n_battles) < ties
    human[tied] = 0.5
    if torn:
        judge[tied] = rng.integers(2, size=tied.sum())
    judge[tied & (rng.random(n_battles) < judge_ties)] = 0.5
    is_new = np.maximum(a, b) >= n_models - n_new
    voted = (rng.random(n_battles) < share_voted) & ~is_new
    battles = coded(a, b, np.where(voted, human, np.nan), judge)
    return battles, np.arange(n_battles) % 50, human


def coded(a: np.ndarray, b: np.ndarray, human: np.ndarray, judge: np.ndarray) -> CodedBattles:
    names = np.array([f"m{i:02d}" for i in range(30)])
    return code_battles(
        names[np.asarray(a)], names[np.asarray(b)], human_outcome=human, judge_outcome=judge,
        score_difference=np.asarray(judge, dtype=float) - 0.5,
    )  # fmt: skip
