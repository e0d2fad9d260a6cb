"""How often intervals hold the true rating, where the truth is known: the built-in arena.

Every seed is an arena of its own, judged, scored and rated like any corpus; its true ratings
come from unlimited votes. `--help` says the rest; README.md beside this file how to read it.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.elo import HeldOutRatings, RatingSettings, code_battles
from judgeline.elo import rate as rate_battles
from judgeline.intervals import Leaderboard, rank_models
from judgeline.io import score_battles
from resources.arena.simulation import (
    Arena,
    ArenaOptions,
    build_arena,
    draw_battles,
    tabulate,
    true_ratings,
)
from resources.config.judges import JudgeDefinition, load_judges
from resources.judges.annotation import annotate
from resources.judges.catalog import read_template
from resources.judges.simulated.judge import BuiltinJudge

METHODS = ("hard", "soft", "average", "gap", "auto")


class Shares(NamedTuple):
    """Of one seed, judge and method: shares of models whose interval holds what it should.

    `voted` and `new` are shares of models with and without votes whose interval holds the true
    rating, `human` the share of voted models whose interval holds their human rating; `width`
    is the median width in Elo points. `n_voted` and `n_new` count the models.
    """

    judge: str
    method: str
    voted: float
    new: float
    human: float
    width: float
    n_voted: int
    n_new: int


def truth_as_placed(arena: Arena) -> dict[str, float]:
    """Return true ratings on the scale of a held-out rating.

    A held-out rating counts from the mean of the model's anchors, which are the voted models
    other than itself; so must the truth that it is compared with.
    """
    truth = true_ratings(arena)
    voted = arena.models[: arena.options.n_voted]
    return {
        model: 1500 + rating - float(np.mean([truth[name] for name in voted if name != model]))
        for model, rating in truth.items()
    }


def rate(arena: Arena, definition: JudgeDefinition) -> HeldOutRatings:
    """Have one simulated judge grade an arena's battles, and rate its contestants."""
    if definition.builtin is None:
        raise ValueError(f"judge {definition.slug!r} is of kind {definition.kind!r}, not builtin")
    battles = tabulate(arena, draw_battles(arena))
    judge = BuiltinJudge(definition.builtin, definition.family, arena.prompts, read_template())
    scored = score_battles(battles, annotate(judge, battles, slug=definition.slug))
    coded = code_battles(
        scored["model_a"],
        scored["model_b"],
        human_outcome=scored["human_outcome"],
        judge_outcome=scored["judge_outcome"],
        score_difference=scored["score_difference"],
    )
    settings = RatingSettings(n_resamples=0, smoothing_levels=())
    return rate_battles(coded, settings)


def inside(board: Leaderboard, target: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return which intervals hold their target."""
    values = np.asarray(target)
    return (board.lower <= values) & (values <= board.upper)


def shares_of(
    judge: str, heldout: HeldOutRatings, truth: dict[str, float], miscoverage: float
) -> Iterator[Shares]:
    """Yield one judge's shares of one seed, method by method."""
    for method in METHODS:
        board = rank_models(heldout, method=method, miscoverage=miscoverage)
        hits = inside(board, [truth[model] for model in board.model.tolist()])
        voted = board.n_votes > 0
        human = inside(board, board.human_rating)[voted]
        width = float(np.median(board.upper - board.lower))
        new = hits[~voted].mean() if (~voted).any() else math.nan
        counts = int(voted.sum()), int((~voted).sum())
        shares = float(hits[voted].mean()), float(new), float(human.mean())
        yield Shares(judge, method, *shares, width, *counts)


def measure(chosen: argparse.Namespace) -> list[Shares]:
    """Run every seed; tell on stderr how far it is."""
    judges = [j for j in load_judges().values() if j.builtin and j.slug in chosen.judges]
    if len(judges) < len(chosen.judges):
        raise SystemExit(f"not all of {chosen.judges} are built-in judges of config/judges.yaml")
    found, started = [], time.perf_counter()
    for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
        arena = build_arena(ArenaOptions(seed=seed, **json.loads(chosen.arena)))
        truth = truth_as_placed(arena)
        for judge in judges:
            found += shares_of(judge.slug, rate(arena, judge), truth, chosen.miscoverage)
        each = (time.perf_counter() - started) / (seed - chosen.first_seed + 1)
        print(f"\rseed {seed}, {each:.1f} s each ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


class Verdict(NamedTuple):
    """A mean share over seeds, its standard error, and how it stands to the promise."""

    share: float
    error: float
    says: str


def judge_coverage(values: Sequence[float], n_models: int, promise: float) -> Verdict:
    """Return the mean share and whether two standard errors around it hold the promise.

    Models of one seed share their votes, judge and threshold: seeds are the independent unit.
    The error is not let below that of independent models which keep the promise, because few
    seeds that agree by chance would otherwise claim none at all.
    """
    share = float(np.mean(values))
    independent = math.sqrt(promise * (1 - promise) / n_models)
    clustered = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    error = max(independent, clustered)
    if abs(share - promise) <= 2 * error:
        return Verdict(share, error, "consistent")
    return Verdict(share, error, "above" if share > promise else "BELOW")


def tabulate_coverage(found: list[Shares], promise: float) -> Iterator[dict[str, Any]]:
    """Yield a row per judge and method."""
    for (judge, method), rows in pd.DataFrame(found).groupby(["judge", "method"], sort=False):
        row: dict[str, Any] = {"judge": judge, "method": method}
        for kind in ("voted", "new"):
            n_models = int(rows[f"n_{kind}"].sum())
            if n_models:
                row[kind] = judge_coverage(rows[kind].tolist(), n_models, promise)
        yield row | {"human": float(rows["human"].mean()), "width": float(rows["width"].median())}


def show(rows: list[dict[str, Any]], promise: float, n_seeds: int) -> None:
    """Print the table."""
    print(f"True ratings inside {promise:.0%} intervals, {n_seeds} arenas, share +- standard error")
    print(f"{'judge':9}{'method':20}{'voted models':>28}{'new models':>28}{'human':>8}{'width':>8}")
    for row in rows:
        cells = [f"{v.share:.1%} +- {v.error:.1%} {v.says:10}" for v in (row["voted"], row["new"])]
        print(
            f"{row['judge']:9}{row['method']:20}{cells[0]:>28}{cells[1]:>28}"
            f"{row['human']:>8.1%}{row['width']:>8.0f}"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50, help="how many arenas (default 50)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--judges", nargs="+", default=["careful", "hasty"], metavar="SLUG")
    parser.add_argument("--miscoverage", type=float, default=0.1)
    parser.add_argument("--arena", default="{}", metavar="JSON", help="options of the arena")
    parser.add_argument("--quick", action="store_true", help="five arenas")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seeds = min(chosen.seeds, 5)
    return chosen


def main() -> None:
    """Measure and print."""
    chosen = arguments()
    promise = 1 - chosen.miscoverage
    rows = list(tabulate_coverage(measure(chosen), promise))
    if chosen.json:
        print(json.dumps({"seeds": chosen.seeds, "promise": promise, "rows": rows}, indent=1))
    else:
        show(rows, promise, chosen.seeds)


if __name__ == "__main__":
    main()
