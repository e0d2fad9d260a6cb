"""Coverage and false alarms where prompts, votes or models of one kind are few.

Coverage of reference-anchored intervals, and false alarms of the surrogacy diagnostic, each
beside what it would be if the error of the pseudo-prompts, or of the strengths, were left out.
Then three simulations in which jackknife+, bands and weights hold and one threshold does not.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgeline.report.drawing import Chart
from judgeline.report.figures import Illustration, picture

# The simulations are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reference"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "elo"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from test_gaps import coverage_of_draws
from test_surrogacy import arena, fit, slopes_of
from unlike_models import MISCOVERAGE, Trials, try_bands, try_jackknife_plus, try_weights


def coverage_rows(battles: Path, n_draws: int) -> list[dict[str, float]]:
    """Return coverage of 90 % intervals at five numbers of prompts, over all models."""
    table = pd.read_parquet(battles)
    met = table[table["model"] != table["reference_model"]]
    preference = met.pivot_table("preference", "model", "question_id").to_numpy()
    return [
        dict(zip(("alone", "ours"), coverage_of_draws(preference, n, n_draws), strict=True))
        | {"n_prompts": n}
        for n in (25, 50, 100, 200, 400)
    ]


def false_alarms(n_models: int, n_arenas: int) -> tuple[float, float]:
    """Return shares of false alarms at 1,000 votes, a third ties: strengths known, jackknife."""
    alarms = []
    for seed in range(n_arenas):
        battles = arena(0.0, seed, 1000, size=n_models, spread=0.3, ties=0.33)
        part = np.random.default_rng(0).permutation(len(battles)) % 5
        slopes, inverse = slopes_of(battles, part)
        errors = np.array([np.sqrt(inverse[1, 1]), fit(battles).gamma_std_error])
        alarms.append(abs(slopes[1]) > 2 * errors)
    known, jackknife = np.mean(alarms, axis=0).tolist()
    return known, jackknife


def alarm_rows(n_arenas: int) -> list[dict[str, float]]:
    """Return false alarms with 10 and 30 models."""
    return [
        dict(zip(("known", "jackknife"), false_alarms(n_models, n_arenas), strict=True))
        | {"n_models": n_models}
        for n_models in (10, 30)
    ]


class Promise(NamedTuple):
    """Coverage of intervals (`se`: standard error), by a method and by one threshold for all.

    `price` is the median over trials of the method's width over that of the one threshold.
    """

    method: str
    scenario: str
    held: float
    se: float
    one_threshold_held: float
    one_threshold_se: float
    price: float
    trials: int


def promise_rows(n_trials: int) -> list[Promise]:
    """Return coverage and price of jackknife+, bands and weights; seeds are fixed."""
    rows = []
    for n_models in (11, 19):
        tried = try_jackknife_plus(n_models, n_trials=n_trials, rng=np.random.default_rng(n_models))
        rows += promises_of("jackknife+", [f"{n_models} models, unstable fits"], tried)
    tried = try_bands(19, n_trials=n_trials, rng=np.random.default_rng(6))
    rows += promises_of("bands", ["band judged well", "band judged badly"], tried)
    tried = try_weights(60, n_trials=n_trials, rng=np.random.default_rng(8))
    return [*rows, *promises_of("weights", ["new models shifted"], tried)]


def promises_of(method: str, scenarios: list[str], tried: Trials) -> list[Promise]:
    """Return one row for each scenario, which is a column of the trials."""
    columns = [np.reshape(column, (-1, len(scenarios))).T for column in tried]
    rows = []
    for name, held, width, plain_held, plain_width in zip(scenarios, *columns, strict=True):
        shares = [(one.mean(), one.std() / np.sqrt(one.size)) for one in (held, plain_held)]
        price = np.median(width / plain_width)
        rows.append(Promise(method, name, *shares[0], *shares[1], float(price), held.size))
    return rows


def as_markdown(rows: list[Promise]) -> str:
    """Return a table of the rows, with standard errors in brackets."""
    cells = [
        {
            "method": row.method,
            "scenario": row.scenario,
            "held": f"{row.held:.3f} ({row.se:.3f})",
            "one threshold held": f"{row.one_threshold_held:.3f} ({row.one_threshold_se:.3f})",
            "price": f"{row.price:.2f}",
        }
        for row in rows
    ]
    return pd.DataFrame(cells).to_markdown(index=False, disable_numparse=True)


def draw(rows: list[Promise], path: Path) -> None:
    """Draw the coverage of intervals by each method beside that of one threshold."""
    names = [row.scenario for row in rows]
    title = "share of new models whose 90 % interval held"
    chart = Chart(title, names=names, x_range=(0.5, 1.01))
    chart.lines([1 - MISCOVERAGE] * 2, [-0.6, len(rows) - 0.4], "muted", dash="3 3")
    for held, role, mark, label in (
        ([row.held for row in rows], "headline", "^", "jackknife+, bands or weights"),
        ([row.one_threshold_held for row in rows], "hard", "s", "one threshold"),
    ):
        chart.marks(held, np.arange(len(rows)), role, mark, label=label)
    svg = chart.svg(key="promises", title=title, description=f"By scenario: {'; '.join(names)}.")
    path.write_text(picture(Illustration(title, "", svg)).svg, encoding="utf-8")


def main() -> None:
    """Print coverage and false alarms of intervals on few models or prompts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("battles", type=Path, nargs="?", help="preferences over a reference")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument("--figure", type=Path, help="SVG to write of the last table")
    chosen = parser.parse_args()
    n = 60 if chosen.quick else 600
    coverage = coverage_rows(chosen.battles, n) if chosen.battles else []
    alarms = alarm_rows(n)
    promises = promise_rows(1000 if chosen.quick else 10_000)
    if chosen.figure:
        draw(promises, chosen.figure)
    if chosen.json:
        found = {"coverage": coverage, "false_alarms": alarms}
        print(json.dumps(found | {"promises": [row._asdict() for row in promises]}, indent=1))
        return
    if coverage:
        print(f"90 % intervals of gaps to the reference, {n} draws per model: share that hold\n")
        print("prompts   spread of prompts alone   with the half prompts")
        for row in coverage:
            print(f"{row['n_prompts']:>7}{row['alone']:>26.3f}{row['ours']:>24.3f}")
    print(f"\nSurrogacy, {n} arenas of 1,000 votes that depend on the score alone: false alarms\n")
    print("models   strengths taken as known   jackknife over models")
    for row in alarms:
        print(f"{row['n_models']:>6}{row['known']:>27.1%}{row['jackknife']:>24.1%}")
    n = promises[0].trials
    print(f"\n90 % intervals of {n:,} new models: share that hold, and the price in width\n")
    print(as_markdown(promises))


if __name__ == "__main__":
    main()
