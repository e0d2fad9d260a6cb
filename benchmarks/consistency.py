"""Time to count subsets of answers that are no weak order, beside a literal definition.

Both count the same made-up questions in the same run, in turns, and must agree; README.md
beside this file says how to read the table.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from judgeline.trust import count_violations

# The twin is the one that the tests trust.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from relations_twin import count_subsets


def make_questions(n_questions: int, n_answers: int, seed: int = 0) -> list[np.ndarray]:
    """Return outcomes of noisy comparisons of normal qualities; those close together tie."""
    rng = np.random.default_rng([seed, n_questions, n_answers])
    quality = rng.normal(size=(n_questions, n_answers))
    gap = quality[:, :, None] - quality[:, None, :]
    gap += rng.normal(0, 0.3, gap.shape)
    upper = np.triu((np.sign(np.where(np.abs(gap) < 0.2, 0, gap)) + 1) / 2, 1)
    lower = np.tril(1 - np.swapaxes(upper, 1, 2), -1)
    return list(upper + lower + np.eye(n_answers) / 2)


def seconds(task: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a count of contradictions, and its result."""
    started = time.perf_counter()
    result = task()
    return time.perf_counter() - started, result


def in_turns(questions: list[np.ndarray], size: int, repeats: int) -> tuple[float, float, float]:
    """Return median seconds of twin and fast count of one question, and their ratio."""
    slow, fast = [], []
    for k in range(repeats):
        question = questions[k % len(questions)]
        slow_time, tally = seconds(lambda q=question: count_subsets(q, size))
        fast_time, counts = seconds(lambda q=question: count_violations([q], sizes=(size,)))
        if tuple(tally) != tuple(int(part[0, 0]) for part in counts[1:]):
            raise RuntimeError(f"the counts differ in question {k}: {tally} and {counts}")
        slow.append(slow_time)
        fast.append(fast_time)
    ratio = statistics.median(a / b for a, b in zip(slow, fast, strict=True))
    return statistics.median(slow), statistics.median(fast), ratio


def main() -> None:
    """Print the times of counting contradictions, beside those of the slow twin."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="one turn, 100 questions")
    parser.add_argument("--answers", type=int, default=20, help="answers to each question")
    parser.add_argument("--questions", type=int, default=1000, help="questions counted at once")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.quick:
        options.questions, options.repeats = min(options.questions, 100), 1
    questions = make_questions(options.questions, options.answers)
    first, _ = seconds(lambda: count_violations(questions[:1]))
    print(f"{options.answers} answers; first call, which lists the subsets: {first * 1e3:.1f} ms")
    print(f"{'k':>2} {'subsets':>8} {'twin, ms':>10} {'ours, ms':>9} {'times':>7}")
    for size in (3, 4, 5):
        slow, fast, ratio = in_turns(questions, size, options.repeats)
        n_subsets = count_violations(questions[:1], sizes=(size,)).n_subsets[0, 0]
        print(f"{size:>2} {n_subsets:>8} {slow * 1e3:>10.1f} {fast * 1e3:>9.2f} {ratio:>7.0f}")
    together, _ = seconds(lambda: count_violations(questions))
    print(
        f"{len(questions)} questions at once, k = 3, 4 and 5: {together:.2f} s, "
        f"{together / len(questions) * 1e3:.2f} ms a question"
    )


if __name__ == "__main__":
    main()
