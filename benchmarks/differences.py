"""Coverage and width of the intervals of differences, and the pairs that they decide.

Beside it stands the rule "the two intervals lie apart". Simulations have models with votes and
newcomers without, real files votes alone; README.md beside this file says how to read the tables.
"""

import argparse
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, ndtri

from judgeline.elo import (
    CodedBattles,
    RatingSettings,
    keyed_rng,
    rate,
    strength_to_rating,
    with_settled_votes,
)
from judgeline.intervals import (
    conformal_quantile,
    nonconformity_scores,
    rank_models,
    rate_with_votes,
)
from judgeline.intervals.differences import (
    RatedModels,
    compare_models,
    difference_by_judge,
    joined_interval,
    votes_that_tell,
)
from judgeline.io import as_coded, read_judged_battles

SETTINGS = RatingSettings(n_resamples=0, smoothing_levels=())
MISCOVERAGE = 0.1
NEWCOMERS = 4
LARGE = 30  # models from which there are a quarter of the arenas and no plans
PER_MODEL = 130  # judged battles; people vote on half of those between models with votes


class World(NamedTuple):
    """A simulated judge: spread of its error on a model, and of that on a battle, in logits.

    `heavy` draws errors on models from Student's t with 3 degrees of freedom, `question` is the
    spread of what a question adds to its battles in the eyes of people.
    """

    bias: float = 0.25
    noise: float = 1.0
    heavy: bool = False
    question: float = 0.0


WORLDS = {
    "usual": World(),
    "near people": World(bias=0.08),
    "far": World(bias=0.5, noise=2.0),
    "heavy tails": World(heavy=True),
}


class Pair(NamedTuple):
    """A comparison of one pair against its truth; half-widths in Elo points."""

    kind: str
    held: bool
    half_width: float
    of_both: float
    decided: bool
    apart: bool
    wrong: bool


class Arena(NamedTuple):
    """Judged battles, all their votes (some hidden from the first), and true strengths, logits."""

    table: pd.DataFrame
    votes: np.ndarray
    strength: np.ndarray


def simulate(
    world: World, rng: np.random.Generator, n_voted: int, strength: np.ndarray | None = None
) -> Arena:
    """Return an arena whose last models are newcomers, on which nobody has voted."""
    size = n_voted + NEWCOMERS
    drawn, bias = rng.normal(0, 0.6, size), world.bias * rng.standard_normal(size)
    strength = drawn if strength is None else strength
    if world.heavy:
        bias = world.bias * rng.standard_t(3, size) / math.sqrt(3)
    n = PER_MODEL * size // 2
    a = rng.integers(size, size=n)
    b = (a + rng.integers(1, size, size=n)) % size
    gap = strength[a] - strength[b]
    vote = (rng.random(n) < expit(gap)).astype(float)
    score = 1.5 * (gap + bias[a] - bias[b] + world.noise * rng.standard_normal(n))
    names = np.array([f"model-{k:02d}" for k in range(size)])
    known = (a < n_voted) & (b < n_voted) & (rng.random(n) < 0.5)
    columns = {
        "battle_id": [f"battle-{k}" for k in range(n)],
        "model_a": names[a],
        "model_b": names[b],
        "score_difference": np.round(12 * np.clip(score, -9, 9)) / 12,
        "human_outcome": np.where(known, vote, math.nan),
    }
    return Arena(pd.DataFrame(columns), vote, strength)


def coded(table: pd.DataFrame) -> CodedBattles:
    """Return battles of a table as the core takes them, with every vote."""
    return as_coded(read_judged_battles(table).scored, "derived", every_vote=True)


def rated(every_vote: CodedBattles, question: np.ndarray | None = None) -> RatedModels:
    """Return the models of a board, each by its best evidence."""
    settled = with_settled_votes(every_vote)
    heldout = rate(settled, SETTINGS, cluster=question)
    options = {"method": "auto", "miscoverage": MISCOVERAGE}
    together = rate_with_votes(every_vote, settled, heldout, cluster=question, **options)
    board = rank_models(heldout, together, **options)
    return RatedModels(*(getattr(board, name) for name in RatedModels._fields))


# ------------------------------------------------------------------ pairs


def pair_of(
    kind: str, ends: tuple[float, float], singles: tuple[float, float], truth: float
) -> Pair:
    """Return the comparison of two models; `singles` are half-widths of their own intervals."""
    difference, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    decided, of_both = abs(difference) > half, sum(singles)
    return Pair(
        kind,
        ends[0] <= truth <= ends[1],
        half,
        of_both,
        decided,
        abs(difference) > of_both,
        decided and difference * truth < 0,
    )


def judge_half_width(models: RatedModels) -> np.ndarray:
    """Return half-widths of all models as newcomers: threshold and excess of every residual."""
    known = np.isfinite(models.residual)
    spread = models.spread(known)
    scores = nonconformity_scores(models.residual[known], spread[known])
    return conformal_quantile(scores, miscoverage=MISCOVERAGE) * spread


def by_judge(kind: str, models: RatedModels) -> Iterator[Pair]:
    """Yield every two voted models, as if nobody had voted on them, against their human ratings."""
    single = judge_half_width(models)
    voted = np.flatnonzero(np.isfinite(models.residual)).tolist()
    for a, b in combinations(voted, 2):
        found = difference_by_judge(models, a, b, miscoverage=MISCOVERAGE)
        if math.isfinite(found.threshold):
            truth = float(models.human_rating[a] - models.human_rating[b])
            yield pair_of(kind, found[:2], (single[a], single[b]), truth)


def true_ratings(strength: np.ndarray) -> np.ndarray:
    """Return true ratings, Elo points: those of voted models are about the mean of the others."""
    size = len(strength) - NEWCOMERS
    total = strength[:size].sum()
    of_voted = strength - (total - strength) / (size - 1)
    is_voted = np.arange(len(strength)) < size
    return np.asarray(strength_to_rating(np.where(is_voted, of_voted, strength - total / size)))


def against_truth(models: RatedModels, strength: np.ndarray) -> Iterator[Pair]:
    """Yield pairs of newcomers, of voted models and of one of each, against true strengths."""
    codes = np.array([int(name.rpartition("-")[2]) for name in models.model.tolist()])
    truth = true_ratings(strength)[codes]
    half = (models.upper - models.lower) / 2
    kinds = {0: "with votes", 1: "one of each", 2: "newcomers"}
    rated_rows = np.flatnonzero(np.isfinite(models.rating)).tolist()
    for a, b in combinations(rated_rows, 2):
        kind = kinds[int(models.by_judge[a]) + int(models.by_judge[b])]
        found = compare_models(models, a, b, miscoverage=MISCOVERAGE)
        if math.isfinite(found.upper):
            ends = found.lower, found.upper
            yield pair_of(kind, ends, (half[a], half[b]), float(truth[a] - truth[b]))


def promised_votes(arena: Arena, models: RatedModels, rng: np.random.Generator) -> float:
    """Return the half-width after the votes of a plan, in units of the difference; NaN for none.

    Of the undecided pairs of voted models whose plan the hidden votes can serve, one is drawn.
    """
    table, hidden = arena.table, arena.table["human_outcome"].isna().to_numpy()
    names = models.model.tolist()
    of = {
        name: np.flatnonzero(hidden & (table["model_a"].eq(name) ^ table["model_b"].eq(name)))
        for name in names
    }
    plans = []
    for a, b in combinations(np.flatnonzero(~models.by_judge).tolist(), 2):
        lower, upper = joined_interval(models, a, b)
        if lower < 0 < upper:
            votes = votes_that_tell(models, a, b, miscoverage=MISCOVERAGE)
            if all(n <= of[names[k]].size for n, k in zip(votes, (a, b), strict=True)):
                plans.append((a, b, *votes))
    if not plans:
        return math.nan
    a, b, *votes = plans[rng.integers(len(plans))]
    shown = np.concatenate(
        [rng.permutation(of[names[k]])[: int(n)] for n, k in zip(votes, (a, b), strict=True)]
    )
    more = table.copy()
    more.loc[shown, "human_outcome"] = arena.votes[shown]
    after = rated(coded(more))
    c, d = (after.model.tolist().index(names[k]) for k in (a, b))
    lower, upper = joined_interval(after, c, d)
    return float((upper - lower) / 2 / abs(models.rating[a] - models.rating[b]))


# ------------------------------------------------------------------ real votes


def half_seen(
    every_vote: CodedBattles, question: np.ndarray, seed: int
) -> tuple[RatedModels, dict[str, float], dict[str, float]]:
    """Return models rated by judge and half of the votes; people's ratings by the others, errors.

    Votes are halved by question.
    """
    names = np.unique(question)
    rng = keyed_rng(seed, "hidden questions")
    chosen = np.isin(question, names[rng.permutation(names.size)[: names.size // 2]])
    seen, hidden = (
        replace(every_vote, human_outcome=np.where(part, every_vote.human_outcome, -1).astype("i1"))
        for part in (chosen, ~chosen)
    )
    models = rated(seen, question)
    people = rate(with_settled_votes(hidden), SETTINGS, cluster=question)
    people = people.take(people.method == "human")
    truth, error = (
        dict(zip(people.model.tolist(), column.tolist(), strict=True))
        for column in (people.rating, people.human_std_error)
    )
    return models, truth, error


def halves(every_vote: CodedBattles, question: np.ndarray, seed: int) -> Iterator[Pair]:
    """Yield pairs rated by judge and half of the votes, against the other half's ratings.

    Ends are moved out by the error of the hidden half's ratings.
    """
    models, truth, error = half_seen(every_vote, question, seed)
    half, normal = (models.upper - models.lower) / 2, float(ndtri(1 - MISCOVERAGE / 2))
    voted = [row for row in np.flatnonzero(~models.by_judge) if str(models.model[row]) in truth]
    for a, b in combinations(voted, 2):
        ends = joined_interval(models, a, b)
        one, other = str(models.model[a]), str(models.model[b])
        if math.isfinite(ends[1]):
            pair = pair_of("with votes", ends, (half[a], half[b]), truth[one] - truth[other])
            noise = normal * math.hypot(error[one], error[other])
            off = abs((ends[0] + ends[1]) / 2 - truth[one] + truth[other])
            yield pair._replace(held=off <= math.hypot(pair.half_width, noise))


def of_files(folder: Path, seeds: range) -> Iterator[tuple[str, Pair]]:
    """Yield the pairs of every file: by the judge alone, and with half of the votes."""
    for path in sorted(folder.glob("*.csv")):
        scored = read_judged_battles(path).scored
        every_vote = as_coded(scored, "derived", every_vote=True)
        question = scored["question_id"].astype(str).to_numpy()
        for pair in by_judge("judge", rated(every_vote, question)):
            yield path.stem, pair
        for seed in seeds:
            for pair in halves(every_vote, question, seed):
                yield path.stem, pair


# ------------------------------------------------------------------ tables


def summary(rows: list[tuple[str, int, Pair]]) -> pd.DataFrame:
    """Return coverage with its error over arenas, median half-widths, and decided pairs."""
    pairs = pd.DataFrame([(name, run, *pair) for name, run, pair in rows],
                         columns=["data", "run", *Pair._fields])  # fmt: skip
    by = pairs.groupby(["data", "kind"], sort=False)
    by_run = pairs.groupby(["data", "kind", "run"], sort=False)["held"].mean()
    spread = by_run.groupby(["data", "kind"], sort=False).agg(["std", "size"])
    return pd.DataFrame(
        {
            "pairs": by.size(),
            "held": by["held"].mean().round(3),
            "+-": (spread["std"] / np.sqrt(spread["size"])).round(3),
            "half-width": by["half_width"].median().round(),
            "of both": by["of_both"].median().round(),
            "decided": by["decided"].mean().round(2),
            "apart": by["apart"].mean().round(2),
            "wrong": (by["wrong"].sum() / by["decided"].sum()).round(3),
        }
    ).reset_index()


def simulations(
    sizes: tuple[int, ...], arenas: int, reached: dict[int, list[float]]
) -> Iterator[tuple[str, int, Pair]]:
    """Yield pairs of simulated arenas; `reached` gets what planned votes have come to, by size."""
    for (name, world), size in product(WORLDS.items(), sizes):
        for run in range(arenas if size < LARGE else max(arenas // 4, 1)):
            rng = keyed_rng(run, "differences", name, str(size))
            arena = simulate(world, rng, size)
            models = rated(coded(arena.table))
            for pair in by_judge("judge", models):
                yield f"{name}, {size}", run, pair
            for pair in against_truth(models, arena.strength):
                yield f"{name}, {size}", run, pair
            if size < LARGE:
                reached.setdefault(size, []).append(promised_votes(arena, models, rng))


def print_plans(reached: dict[int, list[float]]) -> None:
    """Print how near planned votes have brought the half-width to the difference."""
    print("half-width after planned votes, in units of the difference\n")
    for size, ratios in reached.items():
        known = np.array(ratios)[np.isfinite(ratios)]
        if known.size:
            low, middle, high = np.quantile(known, [0.1, 0.5, 0.9])
            ends = f"{low:.2f} to {high:.2f}"
            print(f"{size} models: {middle:.2f}, 80 % {ends}, {known.size} arenas")


def main() -> None:
    """Print the coverage of intervals of rating differences, on files and in simulated arenas."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--data", type=Path, default=os.environ.get("JUDGELINE_DATA"))
    parser.add_argument("--quick", action="store_true", help="two arenas of 11 models, one split")
    parser.add_argument("--arenas", type=int, default=30, help="per world and number of models")
    chosen = parser.parse_args()
    sizes, arenas = ((11,), 2) if chosen.quick else ((11, 15, 55), chosen.arenas)
    reached: dict[int, list[float]] = {}
    made = summary(list(simulations(sizes, arenas, reached)))
    print("simulation: world and number of models with votes\n")
    print(made.to_string(index=False), end="\n\n")
    print_plans(reached)
    if chosen.data:
        splits = range(1 if chosen.quick else 5)
        rows = [(name, 0, pair) for name, pair in of_files(Path(chosen.data) / "real", splits)]
        print("\nreal votes\n")
        print(summary(rows).drop(columns="+-").to_string(index=False))


if __name__ == "__main__":
    main()
