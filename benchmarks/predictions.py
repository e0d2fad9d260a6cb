"""Coverage of intervals stated before people vote, by the number of votes that come later.

Simulated worlds of models of which the newest has no votes; its interval is stated, then people
vote on it. Prints the share of intervals that held, by the votes behind the human rating; also
of intervals by the judge and first votes, scored by votes that came later.
"""

import argparse

import numpy as np
from scipy.special import expit

from judgeline.elo import HEADLINE, CodedBattles, RatingSettings, code_battles, human_anchors, rate
from judgeline.intervals import rank_models, rate_by_votes, rate_with_votes

N_ANCHORS, VOTES_EACH, N_JUDGED = 20, 200, 200
SCORED_AT = (20, 50, 100, 200)
MISCOVERAGE = 0.1
SETTINGS = RatingSettings(n_resamples=0)
NAMES = np.array([f"model-{k:02d}" for k in range(N_ANCHORS)] + ["newest"])
NEWEST = N_ANCHORS


def judged(rng: np.random.Generator, strength: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return score differences of a judge who is noisy, and steeper than people."""
    gap = strength[pairs[:, 0]] - strength[pairs[:, 1]]
    return np.round(12 * np.clip(1.6 * gap + rng.normal(0, 1.2, len(pairs)), -9, 9)) / 12


def voted(rng: np.random.Generator, strength: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return votes of people, 1 or 0."""
    gap = strength[pairs[:, 0]] - strength[pairs[:, 1]]
    return (rng.random(len(pairs)) < expit(gap)).astype(float)


def coded(pairs: np.ndarray, score: np.ndarray, human: np.ndarray) -> CodedBattles:
    return code_battles(
        NAMES[pairs[:, 0]],
        NAMES[pairs[:, 1]],
        human_outcome=human,
        judge_outcome=(np.sign(score) + 1) / 2,
        score_difference=score,
    )


def against_anchors(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.column_stack([np.full(n, NEWEST), rng.integers(0, N_ANCHORS, n)])


def by_both(
    rng: np.random.Generator, strength: np.ndarray, pairs: np.ndarray, score: np.ndarray,
    human: np.ndarray, n_first: int,
) -> list[bool]:  # fmt: skip
    """Return whether the interval by judge and first votes held, at each number of further ones."""
    own = against_anchors(rng, N_JUDGED)
    first = np.where(np.arange(N_JUDGED) < n_first, voted(rng, strength, own), np.nan)
    score, human = np.append(score, judged(rng, strength, own)), np.append(human, first)
    battles = coded(np.vstack([pairs, own]), score, human)
    found = rate_with_votes(
        battles, battles, rate(battles, SETTINGS), method=HEADLINE, miscoverage=MISCOVERAGE
    )
    rating, error, upper = found.rating[NEWEST], found.std_error[NEWEST], found.upper[NEWEST]
    anchors = human_anchors(battles, l2=SETTINGS.l2)[1][NEWEST][:N_ANCHORS]
    held = []
    for n_votes in SCORED_AT:
        more = against_anchors(rng, n_votes)
        won = np.bincount(more[:, 1], voted(rng, strength, more), N_ANCHORS)
        rated = rate_by_votes(won, np.bincount(more[:, 1], minlength=N_ANCHORS), anchors)
        wider = np.hypot(error, rated.std_error) / error
        held.append(bool(abs(rated.rating - rating) <= wider * (upper - rating)))
    return held


def one_world(rng: np.random.Generator, n_first: int) -> tuple[list[bool], list[bool]]:
    """Return whether the newest model's intervals held, scored at each number of votes."""
    strength = rng.normal(0, 0.7, NEWEST + 1)
    pairs = np.array(
        [rng.choice(N_ANCHORS, 2, replace=False) for _ in range(N_ANCHORS * VOTES_EACH // 2)]
    )
    score, human = judged(rng, strength, pairs), voted(rng, strength, pairs)
    battles = coded(pairs, score, human)
    own = against_anchors(rng, N_JUDGED)
    placed = rate(
        coded(
            np.vstack([pairs, own]),
            np.append(score, judged(rng, strength, own)),
            np.append(human, np.full(N_JUDGED, np.nan)),
        ),
        SETTINGS,
        models=["newest"],
    )
    board = rank_models(placed, calibration=rate(battles, SETTINGS), miscoverage=MISCOVERAGE)
    held = []
    for n_votes in SCORED_AT:
        more = against_anchors(rng, n_votes)
        later = coded(
            np.vstack([pairs, more]),
            np.append(score, judged(rng, strength, more)),
            np.append(human, voted(rng, strength, more)),
        )
        after = rate(later, SETTINGS)
        rated = after.human_rating[(after.model == "newest") & (after.method == "human")][0]
        held.append(bool(board.lower[0] <= rated <= board.upper[0]))
    return held, by_both(rng, strength, pairs, score, human, n_first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=400, help="simulated worlds (400)")
    parser.add_argument("--first", type=int, default=20, help="votes beside the judge (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="20 worlds")
    options = parser.parse_args()
    if options.quick:
        options.worlds = 20
    rng = np.random.default_rng(options.seed)
    held = np.array([one_world(rng, options.first) for _ in range(options.worlds)])
    rank = np.ceil((N_ANCHORS + 1) * (1 - MISCOVERAGE)) / (N_ANCHORS + 1)
    print(f"{options.worlds} worlds, {N_ANCHORS} anchors of about {VOTES_EACH} votes; ", end="")
    print(f"promised {rank:.3f}")
    names = ("the judge", f"the judge and {options.first} votes")
    for name, shares in zip(names, held.mean(axis=0), strict=True):
        print(f"by {name}")
        for n_votes, share in zip(SCORED_AT, shares, strict=True):
            error = np.sqrt(share * (1 - share) / len(held))
            print(f"  scored at {n_votes:>4} votes: {share:.3f} of intervals held (+- {error:.3f})")


if __name__ == "__main__":
    main()
