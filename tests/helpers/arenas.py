"""Battles for tests: random ones, and the graphs on which a shared inverse stalls."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import expit
from twins import Battle

from judgeline.elo import CodedBattles, code_battles


def code(battles: Sequence[Battle]) -> CodedBattles:
    """Hand twins' battles to the core."""
    return code_battles(
        [battle.model_a for battle in battles],
        [battle.model_b for battle in battles],
        human_outcome=[math.nan if b.human is None else b.human for b in battles],
        judge_outcome=[battle.judge for battle in battles],
        score_difference=[battle.score for battle in battles],
    )


def name(number: int) -> str:
    return f"model-{number:03d}"


def play(
    rng: np.random.Generator,
    pairs: Sequence[tuple[int, int]],
    strengths: np.ndarray,
    *,
    continuous: bool = False,
    unvoted: Sequence[int] = (),
    vote_share: float = 1.0,
) -> list[Battle]:
    """Let pairs of models meet: votes from Bradley-Terry with ties, a noisy judge beside them."""
    battles = []
    for first, second in pairs:
        gap = float(strengths[first] - strengths[second])
        human: float | None = 0.5 if rng.random() < 0.2 else float(rng.random() < expit(gap))
        if first in unvoted or second in unvoted or rng.random() >= vote_share:
            human = None
        points = float(np.clip(1.5 * gap + 2 * rng.standard_normal(), -9, 9))
        score = points if continuous else round(12 * points) / 12
        judge = 0.5 if abs(score) < 0.3 else float(score > 0)
        battles.append(Battle(name(first), name(second), human, judge, score))
    return battles


def follow_scores(battles: Sequence[Battle], rng: np.random.Generator) -> list[Battle]:
    """The same battles with votes, where there is one, drawn by half of each score difference."""
    votes = [float(rng.random() < expit(b.score / 2)) for b in battles]
    return [
        b if b.human is None else replace(b, human=vote)
        for b, vote in zip(battles, votes, strict=True)
    ]


def random_pairs(rng: np.random.Generator, n_models: int, n_battles: int) -> list[tuple[int, int]]:
    """A random chain through all models, so that they are connected, then random pairs."""
    order = rng.permutation(n_models)
    chain = [(int(a), int(b)) for a, b in zip(order, np.roll(order, -1), strict=True) if a != b]
    rest = [rng.choice(n_models, size=2, replace=False) for _ in range(n_battles - len(chain))]
    return chain + [(int(a), int(b)) for a, b in rest]


def stress_pairs(graph: str, rng: np.random.Generator) -> tuple[int, list[tuple[int, int]]]:
    """Pairs of the named graph of 24 models (so that the fast path of large M is taken)."""
    size = 24
    every = [(a, b) for a in range(size) for b in range(a + 1, size)]
    if graph == "star":
        return size, [(0, other) for other in range(1, size) for _ in range(8)]
    if graph == "hub":  # nine battles in ten are the hub's
        spokes = [(0, 1 + k % (size - 1)) for k in range(540)]
        return size, spokes + random_pairs(rng, size, 60)
    if graph == "very sparse":
        return size, random_pairs(rng, size, size + 4)
    if graph == "two clusters, one bridge":
        halves = [(a, b) for a, b in every if (a < 12) == (b < 12)]
        return size, halves * 2 + [(0, 12)]
    if graph == "long chain":
        return size, [(k, k + 1) for k in range(size - 1) for _ in range(6)]
    if graph == "one weak link":
        return size, [(a, b) for a, b in every if b < size - 1] * 2 + [(0, size - 1)]
    if graph == "lopsided pairs":  # a few pairs hold most of the information
        return size, random_pairs(rng, size, 120) + [(0, 1)] * 400 + [(2, 3)] * 400
    return size, every * 2  # "everybody meets", "deterministic order"


STRESS_GRAPHS = (
    "star", "hub", "very sparse", "two clusters, one bridge", "long chain", "one weak link",
    "lopsided pairs", "everybody meets", "deterministic order",
)  # fmt: skip


def stress_battles(graph: str, seed: int = 0, *, continuous: bool = False) -> list[Battle]:
    rng = np.random.default_rng(seed)
    size, pairs = stress_pairs(graph, rng)
    strengths = rng.normal(0, 1, size)
    battles = play(rng, pairs, strengths, continuous=continuous)
    if graph == "deterministic order":  # the stronger model always wins, for humans and judge
        battles = [
            Battle(b.model_a, b.model_b, float(better), float(better), (12 * better - 6) / 12)
            for b in battles
            for better in [int(strengths[int(b.model_a[-3:])] > strengths[int(b.model_b[-3:])])]
        ]
        # one upset, without which no temperature exists
        first = battles[0]
        battles.append(Battle(first.model_a, first.model_b, 1 - first.human, 0.5, first.score))
    return battles


def dense_battles(seed: int, *, size: int = 12, spread: float = 0.6) -> list[Battle]:
    """Every pair meets eight times among models close in strength: no penalty is needed."""
    rng = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(size) for b in range(a + 1, size)] * 8
    return play(rng, pairs, rng.normal(0, spread, size))
