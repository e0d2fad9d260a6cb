"""Whether two statistics hold their promise where prompts or votes are few.

Coverage of reference-anchored intervals, and false alarms of the surrogacy diagnostic, each
beside what it would be if the error of the pseudo-prompts, or of the strengths, were left out.
"""

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

# The simulations are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "reference"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "elo"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from test_gaps import coverage_of_draws
from test_surrogacy import false_alarms


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


def alarm_rows(n_arenas: int) -> list[dict[str, float]]:
    """Return false alarms with 10 and 30 models."""
    return [
        dict(zip(("known", "jackknife"), false_alarms(n_models, n_arenas), strict=True))
        | {"n_models": n_models}
        for n_models in (10, 30)
    ]


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("battles", type=Path, nargs="?", help="preferences over a reference")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    chosen = parser.parse_args()
    n = 60 if chosen.quick else 600
    coverage = coverage_rows(chosen.battles, n) if chosen.battles else []
    alarms = alarm_rows(n)
    if chosen.json:
        print(json.dumps({"coverage": coverage, "false_alarms": alarms}, indent=1))
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


if __name__ == "__main__":
    main()
