"""People who vote: how far they agree, and who votes as if at random."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, Ints, alike

_EVIDENCE = math.log(20)  # how many times likelier a rater's agreement has to be if by chance


class RaterAgreement(NamedTuple):
    """Agreement of votes on the same battles, by pairs of raters, and each rater's own.

    `agreement` is the share of pairs that chose alike, `kappa` what is left of it without chance.
    Of each rater: `n_pairs`, the share `alike` with others, the share that is `by_chance`, and
    whether it votes `at_random`: its agreement is 20 times likelier by chance than at the rate of
    the other raters among themselves. NaN where there are no pairs.
    """

    agreement: float
    kappa: float
    rater: NDArray[np.str_]
    n_pairs: Ints
    alike: Floats
    by_chance: Floats
    at_random: NDArray[np.bool_]


def rater_agreement(battle: ArrayLike, rater: ArrayLike, outcome: ArrayLike) -> RaterAgreement:
    """Return how far raters agree, from votes (n,): battle, rater, and what was chosen.

    Parameters
    ----------
    battle, rater, outcome : array_like, shape (n,)
        One vote of a rater on a battle each; outcomes are any values, compared as equal or not.

    Raises
    ------
    ValueError
        If the columns differ in length, or a rater voted twice on a battle.

    References
    ----------
    J. L. Fleiss (1971), Psychological Bulletin 76(5), for kappa of many raters by pairs; H.
    Jeffreys (1961), Theory of Probability, appendix B, for the ratio of likelihoods.
    """
    on, by, chosen = alike(battle=battle, rater=rater, outcome=outcome)
    names, who = np.unique(by, return_inverse=True)
    values, choice = np.unique(chosen, return_inverse=True)
    votes = np.full((np.unique(on).size, names.size), -1)
    place = np.unique(on, return_inverse=True)[1]
    if len(set(zip(place.tolist(), who.tolist(), strict=True))) < place.size:
        raise ValueError("a rater voted twice on a battle; keep the last vote of each")
    votes[place, who] = choice
    size = names.size
    pairs, same, chance = np.zeros((3, size, size))
    for one in range(size):
        for other in range(one + 1, size):
            both = votes[(votes[:, one] >= 0) & (votes[:, other] >= 0)][:, [one, other]]
            if not len(both):
                continue
            shares = [np.bincount(side, minlength=values.size) / len(both) for side in both.T]
            found = len(both), (both[:, 0] == both[:, 1]).sum(), len(both) * (shares[0] @ shares[1])
            for table, value in zip((pairs, same, chance), found, strict=True):
                table[one, other] = table[other, one] = value
    total = pairs.sum() / 2
    observed, expected = (
        (same.sum() / 2 / total, chance.sum() / 2 / total) if total else (math.nan, math.nan)
    )
    kappa = (observed - expected) / (1 - expected) if expected < 1 else math.nan
    own, alike_own, by_chance = pairs.sum(axis=1), same.sum(axis=1), chance.sum(axis=1)
    with np.errstate(invalid="ignore"):
        same_own, chance_own = (
            np.where(own > 0, part / own, math.nan) for part in (alike_own, by_chance)
        )
    rest, rest_same = total - own, same.sum() / 2 - alike_own
    at_random = np.array([
        _by_chance(*numbers)
        for numbers in zip(alike_own, own, chance_own, rest_same, rest, strict=True)
    ], dtype=bool)  # fmt: skip
    return RaterAgreement(
        float(observed), float(kappa), names, own.astype(np.int64), same_own, chance_own, at_random
    )


def _by_chance(same: float, n: float, chance: float, rest_same: float, rest: float) -> bool:
    """Return whether so much agreement is 20 times likelier by chance than at the others' rate."""
    if not n or not rest:
        return False
    usual = (rest_same + 0.5) / (rest + 1)
    if not 0 < chance < usual:
        return False
    ratio = same * math.log(chance / usual) + (n - same) * math.log((1 - chance) / (1 - usual))
    return ratio >= _EVIDENCE
