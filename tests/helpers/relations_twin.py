"""The slow, obvious twin of `consistency`: every subset, every rule, as it reads."""

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

Matrix = Sequence[Sequence[float]] | np.ndarray


class Tally(NamedTuple):
    subsets: int
    violating: int
    circular: int
    equality: int


def count_subsets(outcomes: Matrix, size: int) -> Tally:
    """Count the subsets of one question that are complete, and those that break a rule."""
    tally = [0, 0, 0, 0]
    for subset in combinations(range(len(outcomes)), size):
        if any(np.isnan(outcomes[x][y]) for x, y in combinations(subset, 2)):
            continue
        tally[0] += 1
        tally[1] += holds(broken, outcomes, subset)
        tally[2] += holds(circular, outcomes, subset)
        tally[3] += holds(equality, outcomes, subset)
    return Tally(*tally)


def holds(
    test: Callable[[Matrix, int, int, int], bool], outcomes: Matrix, subset: tuple[int, ...]
) -> bool:
    return any(test(outcomes, x, y, z) for x, y, z in permutations(subset, 3))


def broken(outcomes: Matrix, x: int, y: int, z: int) -> bool:
    """Whether x, y, z in this order break one of the two rules."""
    xy, yz, xz = outcomes[x][y], outcomes[y][z], outcomes[x][z]
    if xy >= 0.5 and yz >= 0.5 and (xy == 1 or yz == 1):
        return xz != 1
    return xy == 0.5 and yz == 0.5 and xz != 0.5


def circular(outcomes: Matrix, x: int, y: int, z: int) -> bool:
    return outcomes[x][y] == outcomes[y][z] == outcomes[z][x] == 1


def equality(outcomes: Matrix, x: int, y: int, z: int) -> bool:
    a_tie = 0.5 in (outcomes[x][y], outcomes[y][z], outcomes[x][z])
    return a_tie and broken(outcomes, x, y, z)
