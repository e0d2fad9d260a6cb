"""Time to fit Bradley-Terry ratings to simulated battles, beside other libraries.

Every size runs in a process of its own, one thread, everything in memory. `--help` says the
rest; README.md beside this file says how to read the table.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize
from scipy.special import expit, log_expit

from judgeline.elo import (
    Categorical,
    CodedBattles,
    RatingSettings,
    code_battles,
    fit_beta_folds,
    fit_strengths,
    rate,
)
from judgeline.elo.battle_counts import Sums
from judgeline.elo.gap import fit_gap, gap_features
from judgeline.elo.placements import fold_anchors
from judgeline.elo.targets import by_slope, own_target

SIZES = ("25000x55", "1000000x55", "1000000x200", "10000000x200")
QUICK = ("25000x55", "1000000x55")
PEER_LIMIT = 60.0  # seconds that one fit of a peer may take, by its time at the size before
TWIN_FOLDS = 3
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
MIB = 1 << 20


# ------------------------------------------------------------------ battles


class Made(NamedTuple):
    """Columns of made-up battles: codes, votes, and score differences in twelfths of a point."""

    size: int
    model_a: np.ndarray
    model_b: np.ndarray
    human: np.ndarray
    score: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Return the models' names, by code."""
        return tuple(f"model-{k:04d}" for k in range(self.size))


def make_battles(n: int, size: int, seed: int = 0, strengths: np.ndarray | None = None) -> Made:
    """Return battles of random pairs: strengths normal, a fifth ties, a judge with noise."""
    rng = np.random.default_rng([seed, n, size])
    if strengths is None:
        strengths = rng.normal(0, 0.8, size).astype(np.float32)
    first = rng.integers(0, size, n, dtype=np.int16)
    second = ((first + rng.integers(1, size, n, dtype=np.int16)) % size).astype(np.int16)
    gap = strengths[first] - strengths[second]
    human = (rng.random(n, dtype=np.float32) < expit(gap)).astype(np.float32)
    human[rng.random(n, dtype=np.float32) < 0.2] = 0.5
    score = gap + rng.standard_normal(n, dtype=np.float32)
    twelfths = np.clip(np.rint(18 * score), -108, 108).astype(np.int16)
    return Made(size, first, second, human, twelfths)


def coded(made: Made) -> CodedBattles:
    """Return coded battles of the columns, with models' names as categoricals."""
    return code_battles(
        Categorical(made.model_a, made.names),
        Categorical(made.model_b, made.names),
        human_outcome=made.human,
        judge_outcome=(np.sign(made.score) + 1).astype(np.float32) / 2,
        score_difference=made.score.astype(np.float32) / 12,
    )


# ------------------------------------------------------------------ time and memory


def median_seconds(task: Callable[[], Any], repeats: int) -> float:
    """Return the median time; tasks of many seconds are run once."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        task()
        times.append(time.perf_counter() - started)
        if times[0] > 10:
            break
    return statistics.median(times)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status: memory is measured on Linux only")


def extra_peak_memory(task: Callable[[], Any]) -> int:
    """Return by how many bytes the resident set peaks above where it stood before."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak
    before = _status("VmRSS")
    task()
    return max(0, _status("VmHWM") - before)


# ------------------------------------------------------------------ the core


def soft_alone(battles: CodedBattles) -> Any:
    """Compute soft ratings alone: slopes, their target, and the anchors of every fold."""
    sums = Sums.of(battles)
    soft = by_slope(battles, sums, fit_beta_folds(battles).beta)
    return fold_anchors(soft.target, sums, 0.01)


def gap_alone(battles: CodedBattles) -> Any:
    """Compute gap ratings alone: the regression of votes, and its target."""
    fit = fit_gap(battles, gap_features(battles))
    return own_target(battles, Sums.of(battles), fit.of_both(battles))


def core_rows(made: Made, repeats: int) -> Iterator[dict[str, Any]]:
    """Time coding, slopes, and all leave-one-out folds with and without resampling."""
    battles = coded(made)
    folds = fit_beta_folds(battles)

    def rated(n_resamples: int, levels: tuple[float, ...] = ()) -> None:
        settings = RatingSettings(n_resamples=n_resamples, smoothing_levels=levels)
        rate(battles, settings, beta_folds=folds)

    tasks: dict[str, Callable[[], Any]] = {
        "code battles": lambda: coded(made),
        "beta, all folds": lambda: fit_beta_folds(battles),
        "soft alone: slopes, totals, anchors": lambda: soft_alone(battles),
        "gap alone: gaps, weights, own wins": lambda: gap_alone(battles),
        "all folds, all methods but smoothings": lambda: rated(0),
        "all folds, with five smoothings": lambda: rated(0, RatingSettings().smoothing_levels),
        "... and 20 resamples, 4 targets": lambda: rated(20),
        "... and 200 resamples, 4 targets": lambda: rated(200),
    }
    for name, task in tasks.items():
        memory = extra_peak_memory(task)
        yield {"what": name, "seconds": median_seconds(task, repeats), "bytes": memory}


# ------------------------------------------------------------------ peers on one plain fit


class Peer(NamedTuple):
    """A library's plain Bradley-Terry fit of the human votes.

    `prepare` puts battles in the library's own form, untimed; `fit` returns strengths in
    logits, or anything that `strengths` turns into them.
    """

    name: str
    module: str
    prepare: Callable[[Made], Any]
    fit: Callable[[Any], np.ndarray]


def _as_frame(made: Made) -> Any:
    pandas = importlib.import_module("pandas")
    winner = np.array(["model_b", "tie", "model_a"])[np.rint(2 * made.human).astype(int)]
    names = np.array(made.names)
    return pandas.DataFrame(
        {"model_a": names[made.model_a], "model_b": names[made.model_b], "winner": winner}
    )


def _fit_arena_rank(frame: Any) -> np.ndarray:
    models = importlib.import_module("arena_rank.models.bradley_terry")  # turns 64 bits on
    data = importlib.import_module("arena_rank.utils.data_utils").PairDataset.from_pandas(frame)
    model = models.BradleyTerry(n_competitors=len(data.competitors))
    model.fit(data)
    return np.asarray(model.params["ratings"])


def _as_winners(made: Made) -> Any:
    kinds = importlib.import_module("evalica").Winner
    winner = [kinds.Y, kinds.Draw, kinds.X]
    names = np.array(made.names)
    outcome = [winner[code] for code in np.rint(2 * made.human).astype(int).tolist()]
    return names[made.model_a].tolist(), names[made.model_b].tolist(), outcome


def _fit_evalica(columns: Any) -> np.ndarray:
    result = importlib.import_module("evalica").bradley_terry(*columns, tolerance=1e-8, limit=1000)
    return np.log(result.scores.sort_index().to_numpy())


def win_matrix(made: Made) -> np.ndarray:
    """Return wins of row over column, ties as half a win for both, by one pass over battles."""
    flat = made.model_a.astype(np.int32) * made.size + made.model_b
    cells = made.size**2
    won = np.bincount(flat, weights=made.human, minlength=cells).reshape(made.size, made.size)
    met = np.bincount(flat, minlength=cells).reshape(made.size, made.size)
    return won + (met - won).T


def _fit_choix(made: Made) -> np.ndarray:
    choix = importlib.import_module("choix")
    return choix.ilsr_pairwise_dense(win_matrix(made), alpha=0.0, tol=1e-8)


def _fit_logistic(made: Made) -> np.ndarray:
    """Fit a weighted logistic regression with two rows per pair that met, as leaderboards do."""
    linear_model = importlib.import_module("sklearn.linear_model")
    wins = win_matrix(made)
    first, second = np.nonzero(wins)
    design = np.zeros((2 * first.size, made.size))
    rows = np.arange(first.size)
    design[rows, first], design[rows, second] = 1, -1
    design[first.size :] = -design[: first.size]
    label = np.repeat([1, 0], first.size)
    weight = np.tile(wins[first, second], 2) / 2
    model = linear_model.LogisticRegression(C=1e10, fit_intercept=False, tol=1e-8, max_iter=1000)
    model.fit(design, label, sample_weight=weight)
    return model.coef_[0]


PEERS = (
    Peer("arena-rank", "arena_rank", _as_frame, _fit_arena_rank),
    Peer("evalica", "evalica", _as_winners, _fit_evalica),
    Peer("choix, on a win matrix", "choix", lambda made: made, _fit_choix),
    Peer("scikit-learn pivot logistic", "sklearn", lambda made: made, _fit_logistic),
)


def plain_fit(battles: CodedBattles) -> np.ndarray:
    """Return strengths of one fit to all votes, without penalty as the peers fit it."""
    votes = Sums.of(battles).human
    wins = (votes @ np.array([0.0, 0.5, 1.0])).sum(axis=1)
    return fit_strengths(votes.sum(axis=2), wins, l2=0.0)


def from_names(made: Made, repeats: int) -> float:
    """Return the median time of coding lists of names and fitting, in seconds."""
    names, nothing = np.array(made.names), np.zeros(made.human.size, np.float32)
    sides = names[made.model_a].tolist(), names[made.model_b].tolist()

    def fit() -> np.ndarray:
        battles = code_battles(
            *sides, human_outcome=made.human, judge_outcome=nothing, score_difference=nothing
        )
        return plain_fit(battles)

    return median_seconds(fit, repeats)


def peer_rows(made: Made, repeats: int, before: dict[str, float]) -> Iterator[dict[str, Any]]:
    """Time ours from codes, from names, and each peer that is there and quick enough."""
    battles = coded(made)
    ours = plain_fit(battles)
    base = median_seconds(lambda: plain_fit(battles), repeats)
    yield {"what": "judgeline, coded battles", "seconds": base}
    yield {"what": "judgeline, lists of names", "seconds": from_names(made, repeats)}
    for peer in PEERS:
        yield peer_row(peer, made, repeats, before, ours) | {"ours": base}


def peer_row(
    peer: Peer, made: Made, repeats: int, before: dict[str, float], ours: np.ndarray
) -> dict[str, Any]:
    """Time one peer, or say why not; `disagreement` is its largest distance from our strengths."""
    expected = before.get(peer.name, 0.0) * made.human.size / before.get("n", made.human.size)
    if expected > PEER_LIMIT:
        reason = f"skipped: would take about {expected:.0f} s, the limit is {PEER_LIMIT:.0f} s"
        return {"what": peer.name, "seconds": None, "note": reason}
    try:
        importlib.import_module(peer.module)
    except ImportError as error:
        return {"what": peer.name, "seconds": None, "note": f"skipped: not importable ({error})"}
    data = peer.prepare(made)
    found = peer.fit(data)  # untimed: a compiler's first run is no part of a fit
    seconds = median_seconds(lambda: peer.fit(data), repeats)
    gap = np.abs((found - found.mean()) - ours).max()
    return {"what": peer.name, "seconds": seconds, "disagreement": float(gap)}


# ------------------------------------------------------------------ the literal way


def literal_fold(rows: list[dict[str, Any]], model: int, size: int, n_resamples: int) -> float:
    """Hold one model out the way the algorithm reads: rows, general optimisers, refits.

    Returns the standard error of its soft rating in logits, so that nothing is left undone.
    """
    rest = [row for row in rows if model not in (row["a"], row["b"])]
    own = [row for row in rows if model in (row["a"], row["b"])]
    slope = _literal_slope(rest)
    result = 0.0
    for outcome in (
        lambda row: row["human"],
        lambda row: row["hard"],
        lambda row: float(expit(slope * row["score"])),
    ):
        anchors = _literal_anchors(rest, outcome, size)
        faced = np.array([anchors[row["b"] if row["a"] == model else row["a"]] for row in own])
        y = np.array([outcome(r) if r["a"] == model else 1 - outcome(r) for r in own])
        rng = np.random.default_rng(model)
        draws = [rng.integers(len(own), size=len(own)) for _ in range(n_resamples)]
        placed = [_literal_place(faced[rows_], y[rows_]) for rows_ in [slice(None), *draws]]
        result = float(np.std(placed[1:], ddof=1))
    return result


def _literal_slope(rows: list[dict[str, Any]]) -> float:
    margin = np.array([(2 * r["human"] - 1) * r["score"] for r in rows if r["human"] != 0.5])
    found = optimize.minimize_scalar(
        lambda beta: -log_expit(beta * margin).sum(), bounds=(1e-6, 20), method="bounded"
    )
    return float(found.x)


def _literal_anchors(
    rows: list[dict[str, Any]], outcome: Callable[[dict[str, Any]], float], size: int
) -> np.ndarray:
    a, b = np.array([row["a"] for row in rows]), np.array([row["b"] for row in rows])
    y = np.array([outcome(row) for row in rows])

    def loss(t: np.ndarray) -> tuple[float, np.ndarray]:
        gap = t[a] - t[b]
        miss = expit(gap) - y
        value = -(y * log_expit(gap) + (1 - y) * log_expit(-gap)).sum() + 0.01 * t @ t
        slope = np.bincount(a, miss, size) - np.bincount(b, miss, size) + 0.02 * t
        return value, slope

    found = optimize.minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B")
    return found.x - found.x.mean()


def _literal_place(faced: np.ndarray, y: np.ndarray) -> float:
    def loss(t: float) -> float:
        gap = t - faced
        return -(y * log_expit(gap) + (1 - y) * log_expit(-gap)).sum() + 0.01 * t * t

    return float(optimize.minimize_scalar(loss).x)


def literal_rows(made: Made) -> Iterator[dict[str, Any]]:
    """Time a few folds row by row with 20 resamples, and extrapolate to all of them."""
    columns = (made.model_a, made.model_b, made.human, made.score / 12)
    rows = [
        {"a": a, "b": b, "human": h, "score": s, "hard": 0.5 + 0.5 * ((s > 0) - (s < 0))}
        for a, b, h, s in zip(*(column.tolist() for column in columns), strict=True)
    ]
    started = time.perf_counter()
    for model in range(TWIN_FOLDS):
        literal_fold(rows, model, made.size, 20)
    seconds = (time.perf_counter() - started) / TWIN_FOLDS * made.size
    note = f"extrapolated from {TWIN_FOLDS} of {made.size} folds"
    yield {"what": "the algorithm row by row, 20 resamples", "seconds": seconds, "note": note}


# ------------------------------------------------------------------ one process per size


def measure(size: str, repeats: int, before: dict[str, float]) -> dict[str, Any]:
    """Return the times of ratings of one number of battles; runs in its own process."""
    n, models = (int(part) for part in size.split("x"))
    made = make_battles(n, models)
    core = list(core_rows(made, repeats))
    peers = list(peer_rows(made, repeats, before))
    literal = list(literal_rows(made)) if n <= 50_000 else []
    return {"size": size, "core": core, "literal": literal, "peers": peers}


def measure_apart(size: str, repeats: int, before: dict[str, float]) -> dict[str, Any]:
    """Run `measure` in a fresh interpreter, so that no size inherits another's memory."""
    command = [sys.executable, __file__, "--one", size, "--repeats", str(repeats)]
    command += ["--before", json.dumps(before)]
    # one thread, told before numpy loads: two on a busy machine are slower than one
    environment = os.environ | ONE_THREAD
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"measuring {size} ended with status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.1f} ms"


def show(result: dict[str, Any]) -> None:
    """Print the times of one number of battles as a table."""
    n, models = result["size"].split("x")
    print(f"\n{int(n):,} battles, {models} models")
    for row in result["core"]:
        print(f"  {row['what']:40}{_seconds(row['seconds']):>12}  +{row['bytes'] / MIB:.0f} MiB")
    resampled = next(r["seconds"] for r in result["core"] if r["what"].startswith("... and 20 "))
    for row in result["literal"]:
        ratio = row["seconds"] / resampled
        print(f"  {row['what']:40}{_seconds(row['seconds']):>12}  {ratio:,.0f}x; {row['note']}")
    print("  one plain fit of the votes:")
    for row in result["peers"]:
        line = f"    {row['what']:38}{_seconds(row['seconds']):>12}"
        if row["seconds"] is not None and "ours" in row:
            line += f"  {row['seconds'] / row['ours']:,.1f}x"
            line += f"  (strengths within {row['disagreement']:.0e} logits of ours)"
        print(line + (f"  {row['note']}" if "note" in row else ""))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=None, metavar="BATTLESxMODELS")
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    parser.add_argument("--repeats", type=int, default=3, help="take the median of this many")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--before", type=json.loads, default={}, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure numbers of battles one after another, smallest first."""
    chosen = arguments()
    if chosen.one:
        print(json.dumps(measure(chosen.one, chosen.repeats, chosen.before)))
        return
    sizes = chosen.sizes or (QUICK if chosen.quick else SIZES)
    results, before = [], {}
    for size in sizes:
        results.append(measure_apart(size, chosen.repeats, before))
        timed = {r["what"]: r["seconds"] for r in results[-1]["peers"] if r["seconds"]}
        before = before | timed | {"n": int(size.split("x")[0])}
        if not chosen.json:
            show(results[-1])
    if chosen.json:
        print(json.dumps({"python": platform.python_version(), "results": results}, indent=1))


if __name__ == "__main__":
    main()
