"""Whether win rates keep their promises, on real votes and where the truth is known.

First real files of battles, each model left out; then the published interval over true win
rates, with calibration battles divided evenly and by the adaptive rule; then five estimators when
calibration and test battles differ; then pass rates of one system. README.md beside this file
says how to read the tables.
"""

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from judgeline.io import as_coded, read_judged_battles
from judgeline.winrate import (
    N_STRENGTHS,
    NO_VOTE,
    WEAKEST,
    OutcomeTables,
    leave_out_coverage,
    pass_rates,
    power_tuned_estimate,
    power_tuned_half_width,
    strength_strata,
    tabulate_outcomes,
)
from papers.correct_reporting import ESTIMATORS, adaptive, compare_estimators, play_judge

# The simulated judges are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "winrate"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from judges_that_err import adjusted, coverage, gain_in_theory
from win_rate_peers import SAME, SHIFTED_VERDICTS, sample, table

WIN_RATES = np.round(np.arange(0.05, 0.96, 0.05), 2)
SHIFTS = {
    "one population, 60 % won": (SAME, SAME),
    "label shift: 40 % won, test 80 %": (table(0.8), table(0.4)),
    "label shift: 50 % won, test 30 %": (table(0.3), table(0.5)),
    "verdicts' mix shifts": (SHIFTED_VERDICTS, SAME),
}
PASS_RATES = (0.02, 0.04, 0.1, 0.3, 0.5, 0.7, 0.9, 0.96, 0.98)
LABELS = (20, 25, 30, 50, 100)
N_ANSWERS = 500
JUDGES = {"good": (0.9, 0.7), "coin": (0.5, 0.5), "reversed": (0.3, 0.1)}
"""Sensitivity and specificity."""

REPLICATES = 40
N_VOTES = 50


def real_row(path: Path) -> dict[str, Any]:
    """Return errors, 90 % coverage and widths over the models of a file, each left out."""
    scored = read_judged_battles(path).scored
    battles, question = as_coded(scored, "derived"), scored["question_id"].to_numpy(str)
    first, second = strength_strata(battles)
    tables = tabulate_outcomes(battles, question)
    found = leave_out_coverage(
        tables,
        by_strength=tabulate_outcomes(
            battles, question, stratum_a=first, stratum_b=second, n_strata=N_STRENGTHS
        ),
        miscoverage=0.1,
    )
    row: dict[str, Any] = {"file": path.stem, "n_models": len(tables.models)}
    for at, (estimator, left_out) in enumerate(zip(found.estimator, found.left_out, strict=True)):
        row[estimator if left_out == "each model" else left_out] = {
            "error": float(found.mean_absolute_error[at]),
            "coverage": float(found.win_rate_coverage[at]),
            "width": float(found.mean_width[at]),
        }
    return row | {"own_votes": own_votes(tables, np.random.default_rng(2023))}


def own_votes(tables: OutcomeTables, rng: np.random.Generator) -> dict[str, float]:
    """Return how the win rate fares with 50 votes on each model, the rest of its votes hidden."""
    outcomes, errors, direct, hits, widths = np.array([1, 0.5, 0]), [], [], [], []
    for own in tables.own[:, 0, :, :NO_VOTE]:
        if own.sum() < 2 * N_VOTES:
            continue
        truth = own.sum(axis=0) @ outcomes / own.sum()
        drawn = rng.multivariate_hypergeometric(own.ravel(), N_VOTES, size=REPLICATES)
        for labelled in drawn.reshape(-1, 3, 3):
            found = power_tuned_estimate(labelled, (own - labelled).sum(axis=1))
            reach = power_tuned_half_width(found.variance, N_VOTES, miscoverage=0.1)
            errors.append(abs(found.win_rate - truth))
            direct.append(abs(labelled.sum(axis=0) @ outcomes / N_VOTES - truth))
            hits.append(errors[-1] <= reach)
            widths.append(2 * reach)
    means = [float(np.mean(part)) if part else math.nan for part in (errors, hits, widths, direct)]
    return dict(zip(("error", "coverage", "width", "votes_alone"), means, strict=True))


def show_real(rows: list[dict[str, Any]]) -> None:
    """Print the real files, a line each, and their means."""
    print("Real votes: mean absolute error, coverage of 90 % intervals, mean width, over models")
    print(f"{'':22}{'naive':>8}{'published':>16}{'difference':>22}{'thirds':>8}", end="")
    print(f"{'50 own votes':>22}{'alone':>8}")
    for row in rows:
        published, shown, own = (row[key] for key in ("mean-outcome", "difference", "own_votes"))
        print(
            f"{row['file']:22}{row['naive']['error']:8.3f}"
            f"{published['error']:9.3f}{published['coverage']:7.2f}"
            f"{shown['error']:10.3f}{shown['coverage']:6.2f}{shown['width']:6.2f}"
            f"{min(row['strongest third']['coverage'], row[WEAKEST]['coverage']):8.2f}"
            f"{own['error']:10.3f}{own['coverage']:6.2f}{own['width']:6.2f}"
            f"{own['votes_alone']:8.3f}"
        )


def mean_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over files, of those that have a value."""
    parts = [key for key, value in rows[0].items() if isinstance(value, dict)]
    return {"file": "mean"} | {
        part: {key: float(np.nanmean([row[part][key] for row in rows])) for key in rows[0][part]}
        for part in parts
    }


def interval_row(win_rate: float, n: int) -> dict[str, float]:
    """Return coverage and mean width of both ways of dividing 200 calibration battles."""
    rng = np.random.default_rng([2025, round(100 * win_rate)])
    even = adjusted(play_judge(rng, win_rate, n_replications=n))
    ours = adjusted(adaptive(rng, win_rate, n))
    widths = [found.upper - found.lower for found in (even, ours)]
    ratio = widths[1].mean() / widths[0].mean()
    noise = sum((width.std() / width.mean()) ** 2 for width in widths)
    return {
        "win_rate": float(win_rate),
        "fixed": coverage(even.lower, even.upper, win_rate),
        "adaptive": coverage(ours.lower, ours.upper, win_rate),
        "width": float(widths[0].mean()),
        "ratio": float(ratio),
        "error": float(ratio * math.sqrt(noise / n)),
        "theory": 1 - gain_in_theory(win_rate),
    }


def shift_row(name: str) -> dict[str, Any]:
    """Return the bias of the five estimators, in points of the win rate in per cent."""
    test, calibration = SHIFTS[name]
    counts = sample(np.random.default_rng(11), test, calibration)
    estimates = compare_estimators(counts)
    bias = estimates.mean(axis=1) - test[1].sum()
    error = estimates.std(axis=1, ddof=1) / math.sqrt(estimates.shape[1])
    return {
        "shift": name,
        "bias": dict(zip(ESTIMATORS, (100 * bias).tolist(), strict=True)),
        "error": 100 * float(error.max()),
    }


def rates_row(rate: float, n_labels: int, n_files: int) -> dict[str, float]:
    """Return how the shown pass rate of one system fares, and how often its judge is accused."""
    rng = np.random.default_rng([2026, round(100 * rate), n_labels])
    label_alone = np.arange(N_ANSWERS) < n_labels
    row, held, widths = {"rate": rate, "n_labels": n_labels}, [], []
    for judge, (sensitivity, specificity) in JUDGES.items():
        n_accused = 0
        for _ in range(n_files):
            good = rng.random(N_ANSWERS) < rate
            verdict = rng.random(N_ANSWERS) < np.where(good, sensitivity, 1 - specificity)
            label = np.where(label_alone, good, np.nan)
            found = pass_rates(["x"] * N_ANSWERS, verdict, label, miscoverage=0.1)
            n_accused += int((found.status == "chance").any())
            if judge == "good":
                held += list(((found.lower <= rate) & (rate <= found.upper))[found.headline])
                widths += list((found.upper - found.lower)[found.headline])
        row[judge] = n_accused / n_files
    shown = (held, widths)
    coverage, width = (float(np.mean(part)) if part else math.nan for part in shown)
    return row | {"without": 1 - len(held) / n_files, "coverage": coverage, "width": width}


def show_rates(rows: list[dict[str, float]], n_files: int) -> None:
    """Print pass rates, a line for each true rate and number of labels."""
    print(
        f"\nPass rates of one system, {N_ANSWERS} answers, {n_files} files a line, 90 % intervals"
    )
    print("true  labels   no headline    coverage    width    accused: good      coin  reversed")
    for row in rows:
        print(
            f"{row['rate']:.2f}{row['n_labels']:>8}{row['without']:>14.1%}{row['coverage']:>12.3f}"
            f"{row['width']:>9.3f}{row['good']:>17.1%}{row['coin']:>10.1%}{row['reversed']:>10.1%}"
        )


def show(intervals: list[dict[str, float]], shifts: list[dict[str, Any]], n: int) -> None:
    """Print bias and coverage of simulated win rates as tables."""
    print(
        f"95 % intervals: specificity 0.7, sensitivity 0.9, 1,000 test battles, {n:,} replications"
    )
    print("true    coverage, 100 + 100    adaptive    width    ratio of widths    in theory")
    for row in intervals:
        print(
            f"{row['win_rate']:.2f}{row['fixed']:>16.2%}{row['adaptive']:>18.2%}"
            f"{row['width']:>9.3f}{row['ratio']:>10.3f} +- {row['error']:.3f}{row['theory']:>13.3f}"
        )
    print("\nBias in points of the win rate, 5,000 test and 2,000 calibration battles")
    heads = [name.replace("_", " ").removeprefix("misclassification ") for name in ESTIMATORS]
    print(f"{'':34}" + "".join(f"{head:>18}" for head in heads))
    for row in shifts:
        cells = "".join(f"{row['bias'][name]:>+18.2f}" for name in ESTIMATORS)
        print(f"{row['shift']:34}{cells}   +- {row['error']:.2f}")


def main() -> None:
    """Print errors and coverage of win rates, on files and in simulations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--replications", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="1,000 replications")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument(
        "--data", default=os.environ.get("JUDGELINE_DATA"), help="folder with real/"
    )
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.replications = 1000
    n_files = 100 if chosen.quick else 1000
    files = sorted(Path(chosen.data, "real").glob("*.csv")) if chosen.data else []
    real = [real_row(path) for path in files]
    real += [mean_row(real)] if real else []
    intervals = [interval_row(win_rate, chosen.replications) for win_rate in WIN_RATES]
    shifts = [shift_row(name) for name in SHIFTS]
    rates = [rates_row(rate, n, n_files) for rate in PASS_RATES for n in LABELS]
    if chosen.json:
        found = {"real": real, "intervals": intervals, "shifts": shifts, "rates": rates}
        print(json.dumps(found, indent=1))
    else:
        show_real(real) if real else print("no --data or JUDGELINE_DATA with real/*.csv: not run")
        print()
        show(intervals, shifts, chosen.replications)
        show_rates(rates, n_files)


if __name__ == "__main__":
    main()
