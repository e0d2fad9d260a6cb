"""Wrong answers of the release gate: on real votes, at the margin by simulation, over many looks.

Real pairs are replayed with the votes of both models left out, and with half of the votes hidden.
README.md beside this file says how to read the tables.
"""

import argparse
import math
import os
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from differences import (
    MISCOVERAGE,
    NEWCOMERS,
    WORLDS,
    World,
    coded,
    half_seen,
    rated,
    simulate,
    true_ratings,
)

from judgeline.elo import keyed_rng
from judgeline.gating import LEAST_VOTED
from judgeline.intervals import compare_models, evidence_against, level_of_look, tail_ratio
from judgeline.intervals.differences import RatedModels, difference_by_judge
from judgeline.io import as_coded, read_judged_battles

ERROR = 0.05
MARGINS = (0, 20, 50)
MARGIN = 20.0
N_LOOKS = 12
RULES = {"every look at 5 %": None, "any number": (None,), "12 planned": (N_LOOKS,)}


class Told(NamedTuple):
    """One answer of a gate: new better than -margin (1), worse (-1) or untold (0), and its truth.

    `beyond` is the true difference plus the margin, and `noise` the standard error of the former,
    Elo points.
    """

    data: str
    kind: str
    margin: float
    answer: int
    beyond: float
    noise: float = 0.0


def answer_of(ends: tuple[float, float], margin: float) -> int:
    return int(ends[0] > -margin) - int(ends[1] < -margin)


def widened(ends: tuple[float, float], level: float, n_voted: int) -> tuple[float, float]:
    ratio = tail_ratio(level, miscoverage=MISCOVERAGE, n_calibrating=n_voted)
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    return middle - ratio * half, middle + ratio * half


def others(models: RatedModels) -> int:
    """Return how many voted models there are beside two of them."""
    return int(np.isfinite(models.residual).sum()) - 2


# ------------------------------------------------------------------ real votes


def replayed(
    name: str, models: RatedModels, kind: str, truth: dict[str, float], error: dict[str, float]
) -> Iterator[Told]:
    """Yield the answers on every ordered pair of voted models, at each margin, at one look."""
    names = models.model.tolist()
    for a, b in permutations(np.flatnonzero(np.isfinite(models.residual)).tolist(), 2):
        if names[a] not in truth or names[b] not in truth:
            continue
        if kind == "judge":
            ends = difference_by_judge(models, a, b, miscoverage=MISCOVERAGE)[:2]
        else:
            found = compare_models(models, a, b, miscoverage=MISCOVERAGE)
            ends = found.lower, found.upper
        if math.isfinite(ends[1] - ends[0]):
            ends = widened(ends, level_of_look(ERROR, 1, 1), others(models))
            for margin in MARGINS:
                beyond = truth[names[a]] - truth[names[b]] + margin
                noise = math.hypot(error[names[a]], error[names[b]])
                yield Told(name, kind, margin, answer_of(ends, margin), beyond, noise)


def of_files(folder: Path, seeds: range) -> Iterator[Told]:
    for path in sorted(folder.glob("*.csv")):
        scored = read_judged_battles(path).scored
        every_vote = as_coded(scored, "derived", every_vote=True)
        question = scored["question_id"].astype(str).to_numpy()
        models = rated(every_vote, question)
        n_voted = others(models)
        name = path.stem + " (refused)" * (n_voted < LEAST_VOTED)
        people = (
            dict(zip(models.model.tolist(), column.tolist(), strict=True))
            for column in (models.human_rating, models.human_std_error)
        )
        yield from replayed(name, models, "judge", *people)
        for seed in seeds:
            models, *people = half_seen(every_vote, question, seed)
            yield from replayed(path.stem, models, "half of the votes", *people)


# ------------------------------------------------------------------ at the margin


def at_margin(strength: np.ndarray, new: int, current: int, difference: float) -> None:
    """Set the strength of a model so that its true rating is so far above another's (in place)."""
    gaps = []
    for own in (0.0, 1.0):
        strength[new] = own
        truth = true_ratings(strength)
        gaps.append(float(truth[new] - truth[current]))
    strength[new] = (difference - gaps[0]) / (gaps[1] - gaps[0])


def margin_arena(world: World, rng: np.random.Generator, n_voted: int, off: float):
    """Return an arena with a pair of each kind whose difference is `off` above -MARGIN."""
    strength = rng.normal(0, 0.6, n_voted + NEWCOMERS)
    pairs = {
        "with votes": (0, 1),
        "one of each": (n_voted, 2),
        "newcomers": (n_voted + 1, n_voted + 2),
    }
    for new, current in pairs.values():
        at_margin(strength, new, current, off - MARGIN)
    return simulate(world, rng, n_voted, strength), pairs


def rows_of(models: RatedModels, pair: tuple[int, int]) -> list[int] | None:
    rows = {int(name.rpartition("-")[2]): row for row, name in enumerate(models.model.tolist())}
    found = [rows.get(code, -1) for code in pair]
    usable = min(found) >= 0 and np.isfinite(models.rating[found]).all()
    return found if usable else None


def near_margin(sizes: tuple[int, ...], arenas: int, offs: tuple[float, ...]) -> Iterator[Told]:
    """Yield answers of simulated gates, one look each."""
    for (name, world), size, off in (
        (one, size, off) for one in WORLDS.items() for size in sizes for off in offs
    ):
        for run in range(arenas):
            rng = keyed_rng(run, "gate", name, str(size), str(off))
            arena, pairs = margin_arena(world, rng, size, off)
            models = rated(coded(arena.table))
            for kind, pair in pairs.items():
                if rows := rows_of(models, pair):
                    found = compare_models(models, *rows, miscoverage=MISCOVERAGE)
                    n_voted = int(np.delete(np.isfinite(models.residual), rows).sum())
                    ends = widened((found.lower, found.upper), level_of_look(ERROR, 1, 1), n_voted)
                    yield Told(f"{name}, {size}", kind, MARGIN, answer_of(ends, MARGIN), off)


def many_looks(arenas: int, size: int = 15) -> pd.DataFrame:
    """Return how often any of several looks, votes arriving, passes a model at -MARGIN exactly."""
    passed = dict.fromkeys(RULES, 0)
    for run in range(arenas):
        rng = keyed_rng(run, "gate looks")
        arena, pairs = margin_arena(WORLDS["usual"], rng, size, 0.0)
        order = rng.random(len(arena.table))
        done = set()
        for look in range(1, N_LOOKS + 1):
            shown = arena.table["human_outcome"].where(order < 0.4 + 0.6 * look / N_LOOKS)
            models = rated(coded(arena.table.assign(human_outcome=shown)))
            if not (rows := rows_of(models, pairs["with votes"])):
                continue
            found = compare_models(models, *rows, miscoverage=MISCOVERAGE)
            for rule, plan in RULES.items():
                level = level_of_look(ERROR, look, *plan) if plan else ERROR
                ends = widened((found.lower, found.upper), level, others(models))
                done |= {rule} if answer_of(ends, MARGIN) == 1 else set()
        for rule in done:
            passed[rule] += 1
    rows = [(rule, count / arenas, arenas) for rule, count in passed.items()]
    return pd.DataFrame(rows, columns=["looks", "any wrong pass", "arenas"])


def ledger_errors(runs: int, releases: int = 52) -> pd.DataFrame:
    """Return how often evidence against a kept promise of 90 % ever reaches 20."""
    rows = []
    for start, grows in ((20, True), (60, True), (20, False), (60, False)):
        kind, broken = f"{start}, and each release later" if grows else f"the same {start}", 0
        for run in range(runs):
            scores = keyed_rng(run, "ledger", kind).random(start + releases)
            missed = []
            for k in range(releases):
                pool = scores[: start + k * grows]
                n_above = math.floor((pool.size + 1) * MISCOVERAGE + 1e-9)
                missed.append(float((pool > scores[start + k]).sum() < n_above))
            broken += evidence_against(missed, np.full(releases, MISCOVERAGE)).max() >= 20
        rows.append((kind, broken / runs, runs))
    return pd.DataFrame(rows, columns=["calibrating models", "ever called broken", "runs"])


# ------------------------------------------------------------------ tables


def summary(told: list[Told]) -> pd.DataFrame:
    """Return shares of all answers: told, wrongly passed, wrongly called worse."""
    table = pd.DataFrame(told, columns=Told._fields)
    table = table.assign(
        told=table["answer"].ne(0),
        wrong_pass=table["answer"].eq(1) & table["beyond"].le(0),
        wrong_worse=table["answer"].eq(-1) & table["beyond"].ge(0),
    )
    by = table.groupby(["data", "kind", "margin"], sort=False)
    shares = by[["told", "wrong_pass", "wrong_worse"]].mean().round(3)
    wrong = by["wrong_pass"].sum() + by["wrong_worse"].sum()
    ratio = (wrong / by["told"].sum()).round(3)
    clear = table["beyond"].abs() > 1.645 * table["noise"]  # the truth's own 90 % interval is off 0
    sure = table[clear & (table["wrong_pass"] | table["wrong_worse"])]
    beyond_noise = sure.groupby(["data", "kind", "margin"]).size().reindex(by.size().index)
    surely = (beyond_noise.fillna(0) / by["told"].sum()).round(3)
    return shares.assign(wrong_of_told=ratio, surely=surely, n=by.size()).reset_index()


def of_ledger(chosen: argparse.Namespace) -> None:
    print("evidence against a kept promise of 90 %, 52 releases\n")
    print(ledger_errors(100 if chosen.quick else 2000).to_string(index=False), flush=True)


def of_real(chosen: argparse.Namespace) -> None:
    if chosen.data:
        told = list(of_files(Path(chosen.data) / "real", range(1 if chosen.quick else 5)))
        print("\nreal votes, one look at 5 %\n")
        print(summary(told).to_string(index=False), flush=True)


def of_margin(chosen: argparse.Namespace) -> None:
    print(f"\nsimulation, one look at 5 %, true difference so far above -{MARGIN:g}\n", flush=True)
    for off, sizes in ((0.0, (12, 15)), (-100.0, (15,)), (100.0, (15,))):
        told = list(near_margin(sizes, chosen.arenas if off == 0 else chosen.arenas // 4, (off,)))
        print(f"{off:+g} Elo\n{summary(told).drop(columns='surely').to_string(index=False)}\n")
        alike = [one._replace(data="all worlds") for one in told]
        print(summary(alike).drop(columns="surely").to_string(index=False), flush=True)


def of_looks(chosen: argparse.Namespace) -> None:
    print(f"\n{N_LOOKS} looks as votes arrive, true difference at -{MARGIN:g}\n")
    print(many_looks(chosen.looks).to_string(index=False))


PARTS = {"ledger": of_ledger, "real": of_real, "margin": of_margin, "looks": of_looks}


def main() -> None:
    """Print wrong answers of the gate, on files, at the margin, over looks; and of the ledger."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--data", type=Path, default=os.environ.get("JUDGELINE_DATA"))
    parser.add_argument("--arenas", type=int, default=100, help="per world and number of models")
    parser.add_argument("--looks", type=int, default=50, help="arenas that are looked at 12 times")
    parser.add_argument("--part", choices=PARTS, action="append", help="this table alone")
    parser.add_argument("--quick", action="store_true", help="few arenas, one split")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.arenas, chosen.looks = 4, 2
    for name in chosen.part or PARTS:
        PARTS[name](chosen)


if __name__ == "__main__":
    main()
