"""Battles for people to vote on: drawn where a vote tells most, with known probabilities."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from judgeline.arrays import Floats, Ints, alike, alike_floats, require

_NODES, _SHARES = np.array([-1.7320508, 0.0, 1.7320508]), np.array([1 / 6, 2 / 3, 1 / 6])
_SHARPNESS = 4  # power of the information: a vote that tells half as much is drawn 16 times less
_ASKED = 0.02  # times the weight of a battle for each draw of its question beyond those of others
_MOST_AHEAD = 5  # of which so many count: no battle that is left becomes impossible


class Draws(NamedTuple):
    """Battles in the order of their draws: positions, and the probability of each draw.

    `probability` is that of the battle among those that were left when it was drawn.
    """

    rows: Ints
    probability: Floats


def vote_information(gap: ArrayLike, spread: ArrayLike) -> Floats:
    """Return what a vote on each battle is expected to tell, per squared logit, (n,).

    The mean of ``p (1 - p)`` for ``p = sigmoid(g)`` and g normal about the `gap` of both strengths
    (logits) with a standard deviation of `spread`, by Gauss-Hermite quadrature of three nodes.
    At most 1/4, for models that are equal.
    """
    centre, about = alike_floats(gap=gap, spread=spread)
    chance = expit(centre[:, None] + about[:, None] * _NODES)
    return np.asarray((chance * (1 - chance)) @ _SHARES)


def draw_battles(
    information: ArrayLike, question: ArrayLike, *, n_battles: int, rng: np.random.Generator
) -> Draws:
    """Return battles drawn one after the other without replacement, where votes tell most.

    The weight of a battle is a power of its information, and falls steeply with the draws on its
    question, since votes of one question go together. Every battle that is left can be drawn.

    Parameters
    ----------
    information, question : array_like, shape (n,)
        What a vote on each battle tells, above 0, and the question that it is about.
    n_battles : int
        Draws; where there are fewer battles, all of them.
    rng : numpy.random.Generator
        Source of the draws.

    Raises
    ------
    ValueError
        If information is not positive and finite, or columns differ in length.

    References
    ----------
    D. Raj (1956), Journal of the American Statistical Association 51(274), for draws without
    replacement whose probabilities are known one by one.
    """
    telling, asked = alike(information=np.asarray(information, dtype=float), question=question)
    sound = np.isfinite(telling) & (telling > 0)
    require(sound, "information", telling, "positive and finite")
    require(n_battles >= 0, "n_battles", n_battles, "0 or more")
    own = (telling / telling.max(initial=1e-300)) ** _SHARPNESS
    names, group = np.unique(asked, return_inverse=True)
    times, left = np.zeros(names.size), np.ones(own.size, dtype=bool)
    rows, chances = [], []
    for _ in range(min(n_battles, own.size)):
        ahead = times[group] - times[group[left]].min()
        chance = np.where(left, own * _ASKED ** np.clip(ahead, 0, _MOST_AHEAD), 0.0)
        chance /= chance.sum()
        row = int(rng.choice(own.size, p=chance))
        rows.append(row)
        chances.append(chance[row])
        times[group[row]] += 1
        left[row] = False
    return Draws(np.array(rows, dtype=np.int64), np.array(chances))


def draw_weights(probability: ArrayLike, n_possible: int, place: ArrayLike | None = None) -> Floats:
    """Return the weights (m,) that make a mean over drawn battles one over all possible ones.

    ``1 + (N - M) / (N - m) (1 / ((N - m + 1) q_m) - 1)`` for draw m of M among N with probability
    q_m; 1 throughout where all are drawn alike. Bradley-Terry strengths need none: given both
    models, which battle was drawn says nothing of its vote. `place` has the numbers of draws, from
    1, where some of them have no vote.

    Source: S. Farquhar, Y. Gal and T. Rainforth (2021), On Statistical Bias in Active Learning,
    ICLR, arXiv:2101.11665, equation 9.
    """
    chance = np.asarray(probability, dtype=float)
    require((chance > 0) & (chance <= 1), "probability", chance, "above 0, at most 1")
    m = np.arange(1, chance.size + 1) if place is None else np.asarray(place)
    n_draws = int(m.max(initial=0))
    require(n_possible >= n_draws, "n_possible", n_possible, f"{n_draws} draws or more")
    left = np.maximum(n_possible - m, 1)
    ratio = (n_possible - n_draws) / left
    return np.asarray(1 + ratio * (1 / ((n_possible - m + 1) * chance) - 1))
