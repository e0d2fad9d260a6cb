"""Whether adjusted win rates keep their promises, where the truth is known.

First the interval over true win rates, with calibration battles divided evenly and by the
adaptive rule, then five estimators when calibration and test battles differ. README.md beside
this file says how to read the tables.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from judgeline.adjusted import adjusted_win_rate
from judgeline.win_rate_peers import ESTIMATORS, compare_estimators

# The simulated judges are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "judgeline"))

from judges_that_err import coverage, play_judge
from test_adjusted_peers import SAME, SHIFTED_VERDICTS, sample, table
from test_adjusted_plan import adaptive, gain_in_theory

WIN_RATES = np.round(np.arange(0.05, 0.96, 0.05), 2)
SHIFTS = {
    "one population, 60 % won": (SAME, SAME),
    "label shift: 40 % won, test 80 %": (table(0.8), table(0.4)),
    "label shift: 50 % won, test 30 %": (table(0.3), table(0.5)),
    "verdicts' mix shifts": (SHIFTED_VERDICTS, SAME),
}


def interval_row(win_rate: float, n: int) -> dict[str, float]:
    """Return coverage and mean width of both ways of dividing 200 calibration battles."""
    rng = np.random.default_rng([2025, round(100 * win_rate)])
    even = adjusted_win_rate(play_judge(rng, win_rate, n_replications=n))
    ours = adjusted_win_rate(adaptive(rng, win_rate, n))
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
    estimates = compare_estimators(counts).win_rate
    bias = estimates.mean(axis=1) - test[1].sum()
    error = estimates.std(axis=1, ddof=1) / math.sqrt(estimates.shape[1])
    return {
        "shift": name,
        "bias": dict(zip(ESTIMATORS, (100 * bias).tolist(), strict=True)),
        "error": 100 * float(error.max()),
    }


def show(intervals: list[dict[str, float]], shifts: list[dict[str, Any]], n: int) -> None:
    """Print both tables."""
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
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--replications", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    chosen = parser.parse_args()
    intervals = [interval_row(win_rate, chosen.replications) for win_rate in WIN_RATES]
    shifts = [shift_row(name) for name in SHIFTS]
    if chosen.json:
        print(json.dumps({"intervals": intervals, "shifts": shifts}, indent=1))
    else:
        show(intervals, shifts, chosen.replications)


if __name__ == "__main__":
    main()
