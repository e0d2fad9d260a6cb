"""Votes needed to place a newcomer: those that the vote desk chooses against a random order.

Each model in turn is new: the judge's rating comes from the fold without it, and its votes arrive
one by one until its interval is as narrow as was asked for. Its other votes then say whether the
interval holds. README.md beside this file says more.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgeline.elo import (
    ELO_PER_LOGIT,
    HEADLINE,
    CodedBattles,
    RatingSettings,
    code_battles,
    human_anchors,
    keyed_rng,
    rate,
    strength_to_rating,
)
from judgeline.elo.strengths import place_models, rating_to_strength
from judgeline.elo.sums import tally_outcomes
from judgeline.intervals.judge_and_votes import (
    CalibratingModels,
    QuestionVotes,
    calibrate_votes,
    combine_with_votes,
    leave_out,
    votes_a_question,
    votes_by_question,
)
from judgeline.sampling import draw_battles, vote_information

MISCOVERAGE, L2, MOST, LEAST_OTHERS = 0.1, 0.01, 400, 50
LOOKS = [*range(4, 48, 4), *range(48, 120, 8), *range(120, MOST + 1, 16)]  # numbers of votes
WAYS = ("desk", "one question each", "random")


class Replay(NamedTuple):
    """Votes on one model until its interval was narrow enough, and whether it held."""

    way: str
    n_votes: float
    held: bool


class Votes(NamedTuple):
    """Votes on one model: opponent's place among the anchors, share of the win, and question."""

    opponent: np.ndarray
    share: np.ndarray
    question: np.ndarray


def coded(table: pd.DataFrame) -> CodedBattles:
    """Return a table of judged battles as arrays."""
    return code_battles(
        table["model_a"],
        table["model_b"],
        human_outcome=table["human_outcome"],
        judge_outcome=(np.sign(table["score_difference"]) + 1) / 2,
        score_difference=table["score_difference"],
    )


def rated(battles: CodedBattles, question: np.ndarray) -> CalibratingModels:
    """Rate every model by the headline, in the fold that leaves it out."""
    heldout = rate(battles, RatingSettings(n_resamples=0, l2=L2), cluster=question)
    own = heldout.take(heldout.method == HEADLINE)
    voted, anchors = human_anchors(battles, l2=L2)
    return CalibratingModels(
        tuple(own.model.tolist()), own.rating, anchors, tally_outcomes(battles).human,
        own.residual, own.human_std_error, own.std_error_analytic, own.design_effect,
        tuple(votes_by_question(battles, voted, question)),
    )  # fmt: skip


def votes_on(battles: CodedBattles, question: np.ndarray, k: int) -> Votes:
    """Return the votes on one model, in the order of the file."""
    is_a, is_b = battles.model_a == k, battles.model_b == k
    rows = np.flatnonzero((is_a | is_b) & (battles.human_outcome >= 0))
    share = battles.human_outcome[rows] / 2
    first = is_a[rows]
    opponent = np.where(first, battles.model_b[rows], battles.model_a[rows]).astype(int)
    return Votes(opponent, np.where(first, share, 1 - share), question[rows])


def order_of(way: str, votes: Votes, models: CalibratingModels, k: int, seed: int) -> np.ndarray:
    """Return the votes in the order in which a way takes them."""
    rng = keyed_rng(seed, way, models.model[k])
    size = votes.share.size
    if way == "random":
        return rng.permutation(size)
    telling = np.ones(size)
    if way == "desk":
        gap = float(rating_to_strength(models.judge_rating[k])) - models.anchors[k][votes.opponent]
        others = np.arange(len(models.model)) != k
        spread = np.full(size, math.sqrt(models.variance(others).variance))
        telling = vote_information(gap, spread)
    return draw_battles(telling, votes.question, n_battles=MOST, rng=rng).rows


def taken(votes: Votes, rows: np.ndarray, n_anchors: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return wins and votes by anchor, and the mean number of votes on the question of a vote."""
    won = np.bincount(votes.opponent[rows], votes.share[rows], n_anchors)
    met = np.bincount(votes.opponent[rows], minlength=n_anchors)
    asked = np.unique(votes.question[rows], return_inverse=True)[1]
    once = np.ones(asked.size, dtype=np.int64)
    return won, met, votes_a_question(QuestionVotes(asked, once, once))


def human_rating(won: np.ndarray, met: np.ndarray, anchors: np.ndarray) -> tuple[float, float]:
    """Return a rating by votes alone and its standard error, in Elo points."""
    strength = place_models([won.sum()], met[None], anchors, l2=L2)[0]
    chance = 1 / (1 + np.exp(anchors - strength))
    information = (met * chance * (1 - chance)).sum() + 2 * L2
    return float(strength_to_rating(strength)), float(ELO_PER_LOGIT / math.sqrt(information))


def replays(table: pd.DataFrame, half_width: float, seeds: range) -> Iterator[Replay]:
    """Yield the replays of every model by every way."""
    battles = coded(table)
    question = np.unique(table["question_id"].astype(str), return_inverse=True)[1]
    models = rated(battles, question)
    calibrations: dict[int, object] = {}
    for k, name in enumerate(models.model):
        votes, anchors = votes_on(battles, question, k), np.nan_to_num(models.anchors[k])
        if votes.share.size < 2 * LEAST_OTHERS:
            continue
        for seed in seeds:
            for way in WAYS:
                order = order_of(way, votes, models, k, seed)
                yield replayed(
                    models, k, name, votes, anchors, order, way, half_width, calibrations
                )


def replayed(models, k, name, votes, anchors, order, way, half_width, calibrations) -> Replay:
    """Take votes in order until the interval is narrow enough."""
    design = float(models.design_effect[k])
    for n in (one for one in LOOKS if one <= min(order.size, votes.share.size - LEAST_OTHERS)):
        won, met, shared = taken(votes, order[:n], anchors.size)
        effect = min(design, shared)
        level = int(max(n / effect, 1)).bit_length() - 1
        if level not in calibrations:
            calibrations[level] = calibrate_votes(models, 2**level, seed=0, l2=L2)
        found = combine_with_votes(
            float(models.judge_rating[k]), won, met, anchors,
            leave_out(calibrations[level], models, name), miscoverage=MISCOVERAGE,
            judge_std_error=float(models.judge_std_error[k]), design_effect=effect,
        )  # fmt: skip
        reach = found.upper - found.rating
        if reach <= half_width:
            rest = np.setdiff1d(np.arange(votes.share.size), order[:n])
            won, met, shared = taken(votes, rest, anchors.size)
            target, noise = human_rating(won, met, anchors)
            noise *= math.sqrt(min(design, shared))
            spread = math.hypot(found.std_error, noise)
            held = abs(found.rating - target) <= reach / found.std_error * spread
            return Replay(way, n, held)
    return Replay(way, math.inf, False)


def summary(rows: list[Replay], share: float) -> pd.DataFrame:
    """Return a row for each way: median and mean votes, and the share of intervals that hold.

    `share` of a file's votes are on one model: votes on any battle in random order take as many
    more.
    """
    table = pd.DataFrame(rows)
    reached = table[np.isfinite(table["n_votes"])]
    by = reached.groupby("way", sort=False)
    found = by.agg(median=("n_votes", "median"), mean=("n_votes", "mean"), held=("held", "mean"))
    found.loc["random, whole file"] = [*(found.loc["random", ["median", "mean"]] / share), np.nan]
    counts = table.groupby("way", sort=False)["n_votes"].agg(["size", lambda n: np.isinf(n).sum()])
    found[["n", "not reached"]] = counts.reindex(found.index).to_numpy()
    return found.assign(ratio=found.loc["desk", "mean"] / found["mean"]).round(3)


def main() -> None:
    """Print votes to a half-width and coverage, by file and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("files", type=Path, nargs="+", help="CSV with votes, scores, question_id")
    parser.add_argument("--half-width", type=float, default=60.0, help="Elo points to either side")
    parser.add_argument("--seeds", type=int, default=3, help="orders of each model's votes")
    chosen = parser.parse_args()
    for path in chosen.files:
        table = pd.read_csv(path)
        rows = list(replays(table, chosen.half_width, range(chosen.seeds)))
        share = 2 / pd.concat([table["model_a"], table["model_b"]]).nunique()
        print(f"{path.stem}\n{summary(rows, share).to_string()}\n", flush=True)


if __name__ == "__main__":
    main()
