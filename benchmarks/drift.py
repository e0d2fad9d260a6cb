"""False alarms of the drift watch, and how soon and how rightly it finds a silent change.

Simulated years of 52 epochs: a panel of 100 battles, judged again each epoch, and
fresh battles, each judged once. A change comes at a random epoch and moves a battle's value by a
share of the standard deviation of its paired difference, which is that of the values of fresh
battles too. README.md beside this file says how to read the table.
"""

import argparse
import math
from typing import NamedTuple

import numpy as np

from judgeline.reliability import THRESHOLD, UNITS, Judgement
from judgeline.reliability.drift import battle_values
from judgeline.reliability.evidence import (
    GUARD,
    STAKES,
    ever,
    log_evidence,
    name_verdicts,
    sequential_ranks,
    stream_ranks,
)

N_EPOCHS, N_PANEL = 53, 100  # the baseline, and a year
LATER = (5, 45)  # epochs in which a change begins
NOISES = (0.05, 0.8)  # points an order: hardly any, so that most answers repeat, and usual
N_FRESH = 50  # each epoch, where nothing changes


class Story(NamedTuple):
    """A story of a judge's year: shift in standard deviations, in which streams, and when.

    `n_fresh` battles come each epoch; `begins` is the range of the first epoch that has changed.
    """

    shift: float
    in_panel: bool
    in_fresh: bool
    begins: tuple[int, int] = (1, 49)
    n_fresh: int = 100
    skewed: bool = False


def year(story: Story, rng: np.random.Generator) -> tuple[int, list[str]]:
    """Return the epoch of the change and the verdict of each epoch of one year."""
    begin = int(rng.integers(*story.begins))
    changed = np.arange(N_EPOCHS) >= begin
    noise = _noise(rng, (N_EPOCHS, N_PANEL), skewed=story.skewed)
    own = rng.normal(0, 1, N_PANEL)
    jump = story.shift * math.sqrt(2) * changed if story.in_panel else np.zeros(N_EPOCHS)
    panel = _moved(own + noise + jump[:, None], rng)
    seen = rng.normal(0, 1, (N_EPOCHS, story.n_fresh))
    seen += _noise(rng, seen.shape, skewed=story.skewed)
    later = story.shift * math.sqrt(2) * changed if story.in_fresh else np.zeros(N_EPOCHS)
    fresh = _fresh_moved(seen + later[:, None], rng)
    return begin, name_verdicts(panel, fresh)


def _noise(rng: np.random.Generator, shape: tuple[int, int], *, skewed: bool) -> np.ndarray:
    """Return verdict noise with a standard deviation of 1."""
    return rng.exponential(1.0, shape) - 1 if skewed else rng.normal(0, 1, shape)


def _moved(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    log = log_evidence(sequential_ranks(values, rng.random(values.shape))[1:])
    return ever(log >= math.log(THRESHOLD))


def _fresh_moved(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    epoch = np.repeat(np.arange(len(values)), values.shape[1])
    ties = rng.random(values.size)
    log = log_evidence(stream_ranks(values.ravel(), epoch, ties, n_epochs=len(values)))
    return ever(log >= math.log(THRESHOLD))


def false_alarms(n_years: int, rng: np.random.Generator, noise: float) -> dict[str, float]:
    """Return the share of years in which any of all statistics alarms, panel and fresh alone.

    A judge marks in sixths of a point, leaves three answers of a hundred unreadable, and has votes.
    """
    shape = (N_EPOCHS, N_PANEL * n_years)
    merit = rng.normal(0, 1.5, shape[1])
    panel = _values(merit + np.zeros(shape), noise, rng)
    ties = rng.random(shape)
    alarms = np.zeros((2, n_years), dtype=bool)
    for name in UNITS:
        ranks = sequential_ranks(panel[name], ties, strangeness=name == "distance")[1:]
        per_year = ranks.reshape(N_EPOCHS - 1, n_years, N_PANEL)
        logs = np.array([log_evidence(per_year[:, one]) for one in range(n_years)])
        alarms[0] |= (logs >= math.log(THRESHOLD)).any(axis=1)
    for one in range(n_years):
        fresh = _values(rng.normal(0, 1.5, (N_EPOCHS, N_FRESH)), noise, rng)
        moved = [_fresh_moved(fresh[name], rng).any() for name in UNITS if name != "distance"]
        alarms[1, one] = any(moved)
    shares = {"panel": alarms[0], "fresh": alarms[1], "any": alarms.any(axis=0)}
    return {name: float(alarm.mean()) for name, alarm in shares.items()}


def _values(merit: np.ndarray, noise: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    first, second = (np.round(6 * (merit + rng.normal(0, noise, merit.shape))) / 6 for _ in "ab")
    fails = rng.random(merit.shape) < 0.03
    level = np.where(fails, np.nan, np.round(24 * rng.normal(6, noise / 3, merit.shape)) / 24)
    first[fails] = np.nan
    votes = rng.choice([0.0, 0.5, 1.0, np.nan], merit.shape[-1], p=[0.4, 0.1, 0.4, 0.1])
    judged = Judgement(first + 0.1, second - 0.1, level, np.ones(merit.shape, dtype=bool))
    return battle_values(judged, votes)


STORIES = {
    "judge, 0.3, in any epoch": Story(0.3, True, True),
    "judge, 0.3, from the first epoch": Story(0.3, True, True, begins=(1, 2)),
    "judge, 0.3, from the second": Story(0.3, True, True, begins=(2, 3)),
    "judge, 0.3, later": Story(0.3, True, True, begins=(4, 49)),
    "judge, 0.3, skewed noise": Story(0.3, True, True, begins=LATER, skewed=True),
    "system, 0.3, 100 fresh": Story(0.3, False, True, begins=LATER),
    "system, 0.3, 200 fresh": Story(0.3, False, True, begins=LATER, n_fresh=200),
}


def measured(story: Story, n_years: int, seed: int) -> dict[str, float]:
    """Return the shares of years with an alarm, found within four epochs, and told right."""
    rng = np.random.default_rng(seed)
    years = [year(story, rng) for _ in range(n_years)]
    begins = np.array([begin for begin, _ in years])
    verdicts = np.array([told for _, told in years])
    wanted = "judge" if story.in_panel else "system"
    epoch = np.arange(1, N_EPOCHS)
    alarm = verdicts != "none"
    before = (alarm & (epoch < begins[:, None])).any(axis=1)
    soon = (epoch >= begins[:, None]) & (epoch < begins[:, None] + 4)
    named = (verdicts == "judge") if wanted == "judge" else alarm
    found = (named & soon).any(axis=1) & ~before
    settled = np.array([told[min(begin + 3 + GUARD, 52) - 1] for begin, told in years])
    return {
        "early": float(before.mean()),
        "found": float(found.mean()),
        "right": float((settled == wanted)[found].mean()),
        "right of all": float((settled == wanted).mean()),
    }


def main() -> None:
    """Print false alarms and findings of the drift watch, a line per story."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--years", type=int, default=500)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--only", default="", help="stories that begin with this")
    wanted = parser.parse_args()
    print(f"{wanted.years} years, threshold {THRESHOLD:.0f}, stakes {STAKES}, guard {GUARD}")
    for noise in NOISES:
        name = f"nothing, noise {noise} points"
        if name.startswith(wanted.only):
            rng = np.random.default_rng(wanted.seed)
            told = false_alarms(wanted.years, rng, noise)
            print(f"{name:36}", *(f"{what} {share:.3f} " for what, share in told.items()))
    for name, story in STORIES.items():
        if name.startswith(wanted.only):
            told = measured(story, wanted.years, wanted.seed)
            print(f"{name:36}", *(f"{what} {share:.3f} " for what, share in told.items()))


if __name__ == "__main__":
    main()
