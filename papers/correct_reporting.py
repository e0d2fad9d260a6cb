"""Tables and figures of "How to Correctly Report LLM-as-a-Judge Evaluations" (Lee et al. 2025).

Nearly all of them are simulations of a binary judge; Table 2 needs battles with votes and verdicts.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom

from judgeline.elo import keyed_rng
from judgeline.winrate import NoWinRateError, adjusted_mean, allocate_labels, judge_or_humans
from judgeline.winrate.labels import JudgeCounts, judge_rates
from judgeline.winrate.outcomes import normal_quantile
from papers.files import Say, named_files, read_battles
from papers.tables import Cell, Items, Paper, in_print, printed_names, row_of

FILE = "chatbot_arena"
"""Battles of the 2023 arena with ``human_outcome`` and the verdicts of one judge."""
N_TEST, N_LABELS, N_PILOT, N_REPLICATIONS = 1000, 200, 10, 10_000
Q0, Q1 = 0.7, 0.9
GRID = np.round(np.arange(0, 1.0001, 0.05), 2).tolist()
N_SPLITS, CALIBRATION_SHARE = 100, 0.1

Floats = NDArray[np.float64]


# ------------------------------------------------------------------ simulated judges


def judge_share(win_rate: float, specificity: float = Q0, sensitivity: float = Q1) -> float:
    """Return the share of battles that a judge calls won."""
    return win_rate * sensitivity + (1 - win_rate) * (1 - specificity)


def play_judge(
    rng: np.random.Generator,
    win_rate: float,
    *,
    n_replications: int,
    n_test: int = N_TEST,
    n_lost: Any = N_LABELS // 2,
    n_won: Any = N_LABELS // 2,
    specificity: float = Q0,
    sensitivity: float = Q1,
) -> JudgeCounts:
    """Return counts of shape (n_replications,) with given numbers of labels by human outcome."""
    size = n_replications
    return JudgeCounts(
        np.full(size, n_test),
        rng.binomial(n_test, judge_share(win_rate, specificity, sensitivity), size),
        np.broadcast_to(n_lost, size),
        rng.binomial(n_lost, specificity, size),
        np.broadcast_to(n_won, size),
        rng.binomial(n_won, sensitivity, size),
    )


def adaptive(
    rng: np.random.Generator,
    win_rate: float,
    n_replications: int,
    *,
    n_labels: int = N_LABELS,
    specificity: float = Q0,
    sensitivity: float = Q1,
) -> JudgeCounts:
    """Return counts where a pilot of ten labels per class divides all labels; the pilot counts."""
    few = play_judge(
        rng,
        win_rate,
        n_replications=n_replications,
        n_lost=N_PILOT,
        n_won=N_PILOT,
        specificity=specificity,
        sensitivity=sensitivity,
    )
    n_lost, n_won = allocate_labels(n_labels, few)
    return few._replace(
        n_lost=n_lost,
        n_lost_right=few.n_lost_right + rng.binomial(n_lost - N_PILOT, specificity),
        n_won=n_won,
        n_won_right=few.n_won_right + rng.binomial(n_won - N_PILOT, sensitivity),
    )


def outcome_tables(counts: JudgeCounts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return counts as tables of test and calibration battles, in one stratum, without ties."""
    n, x, m0, k0, m1, k1 = np.broadcast_arrays(*counts)
    none = np.zeros_like(n)
    test = np.stack([x, none, n - x], axis=-1)
    cells = [k1, none, m0 - k0, none, none, none, m1 - k1, none, k0]
    known = np.stack(cells, axis=-1).reshape(*n.shape, 3, 3)
    return test[..., None, :], known[..., None, :, :]


# ------------------------------------------------------------------ five estimators

ESTIMATORS: tuple[str, ...] = (
    "naive", "calibration_only", "difference", "conditional", "misclassification_adjusted",
)  # fmt: skip
"""Rows of `compare_estimators`.

``naive``: the judge's win rate on test battles, unbiased only for a judge whose two errors
cancel. ``calibration_only``: the humans' on calibration battles; one population.
``difference`` (prediction-powered): naive plus the humans' minus the judge's on calibration
battles; one population. ``conditional``: the share of human wins among battles that the judge
calls won, and lost, weighed by its verdicts on test battles; verdicts mean the same in both.
``misclassification_adjusted``: as `adjusted_mean`; the judge errs alike in both.
"""


def compare_estimators(counts: JudgeCounts) -> Floats:
    """Return five estimates of the test battles' win rate, (5, ...); only the last is clipped."""
    rates = judge_rates(JudgeCounts(*(np.asarray(part, dtype=float) for part in counts)))
    right, wrong = rates.sensitivity * rates.n_won, (1 - rates.specificity) * rates.n_lost
    missed, rejected = rates.n_won - right, rates.n_lost - wrong
    total = rates.n_lost + rates.n_won
    if_won, if_lost = right / (right + wrong), missed / (missed + rejected)
    return np.stack(
        [
            rates.share,
            rates.n_won / total,
            rates.share + (missed - wrong) / total,
            rates.share * if_won + (1 - rates.share) * if_lost,
            np.clip(rates.win_rate, 0, 1),
        ]
    )


# ------------------------------------------------------------------ tables


def naive_bias(_: Any) -> Iterator[Cell]:
    """Yield Figure 2: the judge's own win rate minus the true one, in expectation."""
    row = f"q1={Q1}, q0={Q0}"
    for theta in GRID:
        yield Cell(row, f"bias at theta={theta}", judge_share(theta) - theta)
    yield Cell(row, "theta where the naive bias changes sign", (1 - Q0) / (2 - Q0 - Q1))


def interval_lengths(_: Any) -> Iterator[Cell]:
    """Yield Figure 3: length of intervals by number of labels, test battles without end."""
    labels, n_test = np.arange(20, 1001, 20), 10**9
    for share in (0.3, 0.5, 0.7, 0.9):
        half = labels // 2
        right = [np.round(q * half) for q in (Q0, Q1)]
        counts = JudgeCounts(n_test, round(share * n_test), half, right[0], half, right[1])
        found = adjusted_mean(*outcome_tables(counts))
        length = found.upper - found.lower
        for at in (4, 9, 24, 49):
            yield Cell(f"p={share}", f"length at m={labels[at]}", float(length[at]))
        row = f"p={share}, q0={Q0}, q1={Q1}, n infinite, m0=m1"
        short = labels[length < 0.1]
        value = float(short[0]) if short.size else np.nan
        yield Cell(row, "m for an interval shorter than 0.1", value, "steps of 20 labels")


def judge_against_humans(_: Any) -> Iterator[Cell]:
    """Yield Figure 4: win rates at which a label is worth more to calibrate than averaged alone."""
    wins = np.linspace(0, 1, 10_001)
    for q in (0.85, 0.86, 0.9, 0.95, 0.99):
        better = wins[judge_or_humans(wins, specificity=q, sensitivity=q) > 1]
        ends = (better.min(), better.max()) if better.size else (np.nan, np.nan)
        note = "" if better.size else "at no win rate"
        for name, end in zip(("from theta", "to theta"), ends, strict=True):
            yield Cell(f"q0=q1={q}", name, float(end), note)


def bias_under_shift(_: Any) -> Iterator[Cell]:
    """Yield Figure 5: bias of the five estimators at a true win rate of 0.5 under label shift."""
    for theta in GRID[5:16]:
        rng = keyed_rng(0, "label shift", str(theta))
        n_won = rng.binomial(N_LABELS, theta, N_REPLICATIONS)
        counts = play_judge(
            rng, 0.5, n_replications=N_REPLICATIONS, n_lost=N_LABELS - n_won, n_won=n_won
        )
        bias = compare_estimators(counts).mean(axis=1) - 0.5
        for name, value in zip(ESTIMATORS, bias.tolist(), strict=True):
            yield Cell(name, f"bias at calibration theta={theta}", value)


def coverage_over_grid(settings: Any, _: Any) -> Iterator[Cell]:
    """Yield Figures 6 and 9 to 16: coverage and mean length of 95 % intervals at 21 win rates."""
    for (q0, q1), m, theta in product(*settings, GRID):
        rng, rates = keyed_rng(0, "grid", str(theta)), {"specificity": q0, "sensitivity": q1}
        size = N_REPLICATIONS
        even = play_judge(rng, theta, n_replications=size, n_lost=m // 2, n_won=m // 2, **rates)
        ways = {"even": even, "adaptive": adaptive(rng, theta, size, n_labels=m, **rates)}
        for name, counts in ways.items():
            found, row = adjusted_mean(*outcome_tables(counts)), f"q0={q0}, q1={q1}, m={m}, {name}"
            held = 100 * float(((found.lower <= theta) & (theta <= found.upper)).mean())
            yield Cell(row, f"coverage at theta={theta}", held)
            length = float((found.upper - found.lower).mean())
            yield Cell(row, f"length at theta={theta}", length)


def naive_coverage(_: Any) -> Iterator[Cell]:
    """Yield Figure 6b: how often the judge's share with its normal 95 % interval holds a win rate.

    Exact, by the binomial distribution of what the judge says.
    """
    said, quantile = np.arange(N_TEST + 1), normal_quantile(0.05)
    share = said / N_TEST
    half = quantile * np.sqrt(share * (1 - share) / N_TEST)
    for theta in GRID:
        chance = binom.pmf(said, N_TEST, judge_share(theta))
        held = 100 * float(chance[np.abs(share - theta) <= half].sum())
        row = f"q0={Q0}, q1={Q1}, n={N_TEST}, naive"
        yield Cell(row, f"coverage at theta={theta}", held)
        yield Cell(row, f"length at theta={theta}", 2 * float(chance @ half))


MAIN = [(Q0, Q1)], (N_LABELS,)
EXTRA = [(0.9, 0.9), (0.9, 0.7), (0.7, 0.7), (0.7, 0.9)], (N_LABELS, 500)


def listing(_: Any) -> Iterator[Cell]:
    """Yield the interval of the printed program's example, whose listing has two misprints."""
    found = adjusted_mean(*outcome_tables(JudgeCounts(1000, 500, 100, 70, 100, 90)))
    row = "p=0.5, q0=0.7, q1=0.9, n=1000, m0=m1=100"
    yield from row_of(row, lower=float(found.lower), upper=float(found.upper))


# ------------------------------------------------------------------ real battles


def read(data: Path | None, say: Say) -> pd.DataFrame:
    """Return decisive battles of `FILE` from the view of either model: human and judge wins."""
    sides = [pd.DataFrame(columns=["model", "human", "judge"])]
    for _, path in named_files(data, [FILE]):
        say(f"reading {path.name}")
        scored = read_battles(path, say).scored.dropna(subset="human_outcome")
        scored = scored[scored["human_outcome"].ne(0.5) & scored["judge_outcome"].ne(0.5)]
        sides = [
            pd.DataFrame(
                {
                    "model": scored[f"model_{side}"],
                    "human": scored["human_outcome"].gt(0.5) ^ (side == "b"),
                    "judge": scored["judge_outcome"].gt(0.5) ^ (side == "b"),
                }
            )
            for side in "ab"
        ]
    return pd.concat(sides)


def coverage_on_splits(battles: pd.DataFrame) -> Iterator[Cell]:
    """Yield Table 2: how often intervals hold the win rate of 90 % of a model's battles."""
    for model, own in battles.groupby("model"):
        rng, found = keyed_rng(0, "splits", str(model)), []
        n_labels = round(CALIBRATION_SHARE * len(own))
        for _ in range(N_SPLITS):
            human, judge = own[["human", "judge"]].to_numpy(bool)[rng.permutation(len(own))].T
            won, test = human[:n_labels], judge[n_labels:]
            right = judge[:n_labels] == won
            lost = (~won).sum(), (right & ~won).sum()
            counts = JudgeCounts._make(
                (test.size, test.sum(), *lost, won.sum(), (right & won).sum())
            )
            try:
                interval = adjusted_mean(*outcome_tables(counts))
            except NoWinRateError:  # a class without a label, or no skill in so few labels
                continue
            is_held = interval.lower <= human[n_labels:].mean() <= interval.upper
            found.append((100 * is_held, interval.upper - interval.lower))
        row = in_print(str(model), printed_names("correct_reporting.table2", "row"))
        means = np.mean(found, axis=0) if found else (np.nan, np.nan)
        for column, mean in zip(("coverage", "ci_length"), means, strict=True):
            yield Cell(row, column, mean, f"{len(found)} of {N_SPLITS} splits")


def bias_by_model(battles: pd.DataFrame) -> Iterator[Cell]:
    """Yield Figure 7: the judge's win rate of each model minus people's."""
    for model, own in battles.groupby("model"):
        yield Cell(str(model), "naive bias", own["judge"].mean() - own["human"].mean())


_SIMULATED = f"simulation of {N_REPLICATIONS:,} replications"
_FORMULA, _BATTLES = "the formulas", f"{FILE}, battles with votes and verdicts"
_GRID, _MORE = partial(coverage_over_grid, MAIN), partial(coverage_over_grid, EXTRA)
ITEMS: Items = {
    "table2": ("coverage by model", _BATTLES, coverage_on_splits),
    "fig2": ("bias of the naive win rate", _FORMULA, naive_bias),
    "fig3": ("interval length by labels", _FORMULA, interval_lengths),
    "fig4": ("judge or humans alone", _FORMULA, judge_against_humans),
    "fig5": ("label shift", _SIMULATED, bias_under_shift),
    "fig6": ("coverage and length over the grid", _SIMULATED, _GRID),
    "fig6b": ("coverage of the naive interval", _FORMULA, naive_coverage),
    "fig7": ("naive bias by model", _BATTLES, bias_by_model),
    "fig9-16": ("the same for other judges and more labels", _SIMULATED, _MORE),
    "listing": ("interval of the printed example", _FORMULA, listing),
}
ALLOWED = {" / coverage": 200 * np.sqrt(2 * 0.95 * 0.05 / N_SPLITS)}
"""Random splits of Table 2: two standard deviations of the difference of two shares of 100 splits.

The splits are independent draws; the shares are taken as 95 %.
"""
PAPER = Paper("correct_reporting", ITEMS, read, ALLOWED)
