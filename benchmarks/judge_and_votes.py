"""Errors of ratings by the judge, by a few votes on a model, and by both together.

Each model in turn has 10, 50 or 200 of its votes, drawn at random; its other votes, or in the
simulation its true strength, say how far off a rating is. README.md beside this file says more.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit

from judgeline.elo import (
    ELO_PER_LOGIT,
    HEADLINE,
    CodedBattles,
    HeldOutRatings,
    RatingSettings,
    code_battles,
    human_anchors,
    keyed_rng,
    rate,
    strength_to_rating,
)
from judgeline.elo.battle_counts import Sums
from judgeline.elo.strengths import place_models
from judgeline.intervals.judge_and_votes import (
    CalibratingModels,
    calibrate_votes,
    combine_with_votes,
)

BUDGETS = (10, 50, 200)
LEAST_OTHERS = 50  # votes that a model's rating is compared with
HALVES = np.array([0.0, 0.5, 1.0])
MISCOVERAGE, NORMAL_QUANTILE, L2 = 0.1, 1.645, 0.01


class Error(NamedTuple):
    """Of one model with `n` votes: distances in Elo points, and whether intervals hold."""

    n: int
    votes_alone: float
    judge_alone: float
    together: float
    held: bool
    held_by_normal: bool


def rate_by_judge(battles: CodedBattles) -> CalibratingModels:
    """Rate every model by the headline, in the fold that leaves it out; battles as independent."""
    heldout = rate(battles, RatingSettings(n_resamples=0, l2=L2))
    own = HeldOutRatings(*(column[heldout.method == HEADLINE] for column in heldout))
    return CalibratingModels(
        battles.models,
        own.rating,
        human_anchors(battles, l2=L2)[1],
        Sums.of(battles).human,
        own.residual,
        own.human_std_error,
        own.std_error_analytic,
        own.design_effect,
    )


def errors_of(models: CalibratingModels, k: int, seed: int, truth: float | None) -> Iterator[Error]:
    """Yield the errors of one model that the others calibrate."""
    others = np.arange(len(models.model)) != k
    votes, anchors = models.votes[k], np.nan_to_num(models.anchors[k])
    names = tuple(np.array(models.model)[others].tolist())
    rest = CalibratingModels(names, *(column[others] for column in models[1:-1]))
    for n in BUDGETS:
        if votes.sum() < n + (LEAST_OTHERS if truth is None else 0):
            continue
        rng = keyed_rng(seed, "own votes", models.model[k], str(n))
        drawn = rng.multivariate_hypergeometric(votes.ravel(), n).reshape(votes.shape)
        calibration = calibrate_votes(rest, n, seed=seed)
        judge, own = float(models.judge_rating[k]), (drawn @ HALVES, drawn.sum(axis=1), anchors)
        found = combine_with_votes(
            judge,
            *own,
            calibration,
            miscoverage=MISCOVERAGE,
            judge_std_error=float(models.judge_std_error[k]),
        )
        target, noise = (truth, 0.0) if truth is not None else human_rating(votes - drawn, anchors)
        distance = abs(found.rating - target)
        threshold = (found.upper - found.rating) / found.std_error
        spread = float(np.hypot(found.std_error, noise))
        alone = abs(human_rating(drawn, anchors)[0] - target)
        held = distance <= threshold * spread, distance <= NORMAL_QUANTILE * spread
        yield Error(n, alone, abs(judge - target), distance, *held)


def human_rating(votes: np.ndarray, anchors: np.ndarray) -> tuple[float, float]:
    """Return the rating of one model by votes alone and its standard error, in Elo points."""
    met = votes.sum(axis=1)
    strength = place_models([(votes @ HALVES).sum()], met[None], anchors, l2=L2)[0]
    chance = expit(strength - anchors)
    information = (met * chance * (1 - chance)).sum() + 2 * L2
    return float(strength_to_rating(strength)), float(ELO_PER_LOGIT / np.sqrt(information))


def simulate(seed: int, size: int = 30, n: int = 8000) -> tuple[pd.DataFrame, np.ndarray]:
    """Return battles scored by a judge that misjudges models as well as battles, and truths."""
    rng = np.random.default_rng(seed)
    strength, bias = rng.normal(0, 0.6, size), rng.normal(0, 0.25, size)
    a = rng.integers(size, size=n)
    b = (a + rng.integers(1, size, size=n)) % size
    gap = strength[a] - strength[b]
    vote = (rng.random(n) < expit(gap)).astype(float)
    noise = bias[a] - bias[b] + rng.standard_normal(n)
    score = np.round(12 * np.clip(1.5 * (gap + noise), -9, 9)) / 12
    names = np.array([f"model-{k:02d}" for k in range(size)])
    columns = {"model_a": names[a], "model_b": names[b], "human_outcome": vote}
    truth = strength_to_rating(strength - (strength.sum() - strength) / (size - 1))
    return pd.DataFrame({**columns, "score_difference": score}), truth


def errors_in(table: pd.DataFrame, truth: np.ndarray | None, seeds: range) -> Iterator[Error]:
    """Yield the errors of all models of a table, one draw of their votes per seed."""
    models = rate_by_judge(
        code_battles(
            table["model_a"],
            table["model_b"],
            human_outcome=table["human_outcome"],
            judge_outcome=(np.sign(table["score_difference"]) + 1) / 2,
            score_difference=table["score_difference"],
        )
    )
    for seed in seeds:
        for k in range(len(models.model)):
            yield from errors_of(models, k, seed, None if truth is None else float(truth[k]))


def main() -> None:
    """Print errors and coverage of ratings by judge and votes, on files and in simulations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("files", type=Path, nargs="*", help="CSV with votes and score differences")
    parser.add_argument("--quick", action="store_true", help="two simulated arenas, not twelve")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    chosen = parser.parse_args()
    arenas = range(1, 3 if chosen.quick else 13)
    found = {"simulation": [e for seed in arenas for e in errors_in(*simulate(seed), range(1))]}
    found |= {
        path.stem: list(errors_in(pd.read_csv(path), None, range(3))) for path in chosen.files
    }
    errors = pd.concat({name: pd.DataFrame(rows) for name, rows in found.items()}, names=["data"])
    means = errors.groupby(["data", "n"], sort=False)
    shown = means.mean().round(3).assign(n_errors=means.size()).reset_index()
    title = "Mean absolute error in Elo, and shares of 90 % intervals that hold"
    text = f"{title}\n\n{shown.to_string(index=False)}"
    print(shown.to_json(orient="records", indent=1) if chosen.json else text)


if __name__ == "__main__":
    main()
