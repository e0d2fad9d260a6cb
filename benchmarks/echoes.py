"""How often the echo check refuses a judge's own scores, on pairs of real completions.

    python benchmarks/echoes.py COMPLETIONS.parquet

Without a file nothing is run. The file has `question_id`, `instruction` and `completion`, several
completions per question. No completion dictates anything, so that every refusal is a false alarm.
"""

import argparse
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from judgeline.verdict import is_dictated, scripts

Scores = tuple[bytes, bytes]


def scores(rng: np.random.Generator) -> dict[str, list[Scores]]:
    """Return scores that a judge might give two answers, by kind."""
    around = np.clip(rng.integers(2, 11, (20, 2, 1)) + rng.integers(-1, 2, (20, 2, 6)), 1, 10)
    drawn = {"random": rng.integers(1, 11, (20, 2, 6)), "around one grade": around}
    uniform = [(bytes([a] * 6), bytes([b] * 6)) for a in range(1, 11) for b in range(1, 11)]
    return {
        **{
            kind: [(bytes(a), bytes(b)) for a, b in sets.astype(np.uint8)]
            for kind, sets in drawn.items()
        },
        "the same for every criterion": uniform,
    }


def pairs(table: pd.DataFrame, rng: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    """Yield each question with the answers of random pairs of models."""
    for _, rows in table.groupby("question_id"):
        texts = rng.permutation(rows["completion"].to_numpy(dtype=object))
        for one, two in zip(texts[::2], texts[1::2], strict=False):
            yield rows["instruction"].iloc[0], one, two


def main() -> None:
    """Print the refusals of each kind of scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("completions", nargs="?")
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions")
    options = parser.parse_args()
    if options.completions is None:
        print("skipped: needs a file of completions")
        return
    rng = np.random.default_rng(0)
    table = pd.read_parquet(options.completions)
    if options.quick:
        table = table[table["question_id"].isin(table["question_id"].unique()[::10])]
    asked, refused = Counter[str](), Counter[str]()
    for question, one, two in pairs(table, rng):
        texts = scripts(one + two + one), scripts(question)
        for kind, sets in scores(rng).items():
            asked[kind] += len(sets)
            refused[kind] += sum(is_dictated(*marks, *texts) for marks in sets)
    for kind, n in asked.items():
        print(f"{kind:30} {refused[kind]:6,} of {n:9,} refused ({refused[kind] / n:.4%})")


if __name__ == "__main__":
    main()
