"""Contradictions of a judge: of its scores with its comparisons, and among its comparisons."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.arrays import Floats, alike, alike_floats, require

Counts = NDArray[np.int64]

MOST_SUBSETS = 5_000_000
"""Subsets of the answers to one question that are still counted: those of 58, by fives."""

_MISSING, _CIRCULAR, _EQUALITY = 1, 2, 4
_CHUNK_CELLS = 1 << 22


def score_conflicts(
    score_a: ArrayLike, score_b: ArrayLike, outcome: ArrayLike, *, tolerance: float
) -> NDArray[np.bool_]:
    """Return which pairs (n,) have scores that contradict the comparison of the same two answers.

    The sign of the score difference is not that of the comparison; a tie against a preference, on
    either side, is a conflict too.

    Parameters
    ----------
    score_a, score_b : array_like, shape (n,)
        Scores that the judge gave either answer alone, in points of any one scale.
    outcome : array_like, shape (n,)
        A's share of the win by comparison: 1, 0.5 or 0.
    tolerance : float
        Points that equal scores are at most apart, from 0.

    Raises
    ------
    ValueError
        If lengths differ, a score is not finite or an outcome is another number.

    References
    ----------
    Y. Wang et al. (2025), "TrustJudge", arXiv:2509.21117, conflict ratio.
    """
    ours, theirs, share = alike_floats(score_a=score_a, score_b=score_b, outcome=outcome)
    require(0 <= tolerance < math.inf, "tolerance", tolerance, "zero or more points")
    for name, values in (("score_a", ours), ("score_b", theirs)):
        require(np.isfinite(values), name, values, "a finite score; leave out unscored pairs")
    require(np.isin(share, (0, 0.5, 1)), "outcome", share, "1, 0.5 or 0")
    gap = ours - theirs
    by_score = np.where(np.abs(gap) <= tolerance, 0.0, np.sign(gap))
    return np.asarray(by_score != np.sign(share - 0.5))


def _require_known(values: Floats, name: str) -> None:
    good = np.isin(values, (0, 0.5, 1)) | np.isnan(values)
    require(good, name, values, "1, 0.5, 0 or NaN (not compared)")


def _require_names(names: NDArray[Any], what: str) -> None:
    given = [name is not None and name == name for name in names.tolist()]
    require(given, what, names, "a name; name it or leave the row out")


class Comparisons(NamedTuple):
    """Comparisons by question: `questions`, the `answers` to each, an `outcomes` matrix each."""

    questions: list[Any]
    answers: list[NDArray[Any]]
    outcomes: list[Floats]


def outcome_matrices(
    question: ArrayLike, answer_a: ArrayLike, answer_b: ArrayLike, outcome: ArrayLike
) -> Comparisons:
    """Return one outcome matrix per question from comparisons listed one a row (n,).

    Questions and their answers are in sorted order; pairs without an outcome are NaN.

    Parameters
    ----------
    question, answer_a, answer_b : array_like, shape (n,)
        Names of the question and of the two answers, none of them missing.
    outcome : array_like, shape (n,)
        A's share of the win: 1, 0.5, 0, or NaN where the two were not compared.

    Raises
    ------
    ValueError
        If an outcome is another number, an answer meets itself, or a pair is listed twice.
    """
    columns = {"question": question, "answer_a": answer_a, "answer_b": answer_b}
    *names, share = alike(**columns, outcome=np.asarray(outcome, dtype=float))
    _require_known(share, "outcome")
    for name, column in zip(columns, names, strict=True):
        _require_names(column, name)
    questions, code = np.unique(names[0], return_inverse=True)
    rows = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    tables = [
        _matrix(f"question {key!r}", names[1][part], names[2][part], share[part])
        for key, part in zip(questions.tolist(), rows, strict=True)
    ]
    return Comparisons(questions.tolist(), [t[0] for t in tables], [t[1] for t in tables])


def _matrix(
    place: str, answer_a: NDArray[Any], answer_b: NDArray[Any], share: Floats
) -> tuple[NDArray[Any], Floats]:
    answers, code = np.unique(np.concatenate([answer_a, answer_b]), return_inverse=True)
    first, second = code[: share.size], code[share.size :]
    if (first == second).any():
        own = answers[first[first == second][0]]
        raise ValueError(f"{place} compares answer {own} with itself")
    pair = np.minimum(first, second) * answers.size + np.maximum(first, second)
    pairs, times = np.unique(pair, return_counts=True)
    if (times > 1).any():
        low, high = divmod(int(pairs[times > 1][0]), answers.size)
        raise ValueError(
            f"{place} lists answers {answers[low]} and {answers[high]} {times.max()} times; "
            "merge both orders and replicates into one outcome first"
        )
    matrix = np.full((answers.size, answers.size), np.nan)
    matrix[first, second], matrix[second, first] = share, 1 - share
    return answers, matrix


class ViolationCounts(NamedTuple):
    """Subsets of answers per question (rows, Q) and subset size (columns, as in `sizes`).

    `n_subsets`: all of whose pairs were compared; `n_violating` of them are not a weak order.
    `n_circular` hold three answers that beat each other in a circle; `n_equality` hold three
    whose tie contradicts their other comparisons. A subset may hold both kinds.
    """

    sizes: tuple[int, ...]
    n_subsets: Counts
    n_violating: Counts
    n_circular: Counts
    n_equality: Counts


def count_violations(
    outcomes: Sequence[ArrayLike], *, sizes: Sequence[int] = (3, 4, 5), mixed: bool = True
) -> ViolationCounts:
    """Return, exactly, how many subsets of each question's answers are not a weak order.

    A subset is a weak order (a ranking with ties) unless three of its answers break a rule: x >= y
    and y >= z, one of them strict, force x > z; x = y and y = z force x = z. Without `mixed`, a
    circle of two wins and a tie breaks none: only three wins in a circle, and one win among two
    ties. Source: Y. Wang et al. (2025), "TrustJudge", arXiv:2509.21117, non-transitivity ratio.

    An outcome matrix (n, n) holds, in row i and column j, the share of the win of answer i over j:
    1, 0.5, 0, or NaN where the two were not compared. The two triangles mirror each other, else it
    is a `ValueError`; so are a size below 3, no question, or more than `MOST_SUBSETS`.
    """
    matrices = [_relation(matrix, place) for place, matrix in enumerate(outcomes)]
    require(len(matrices), "the number of questions", 0, "at least one")
    require(bool(sizes) and min(sizes) > 2, "sizes", tuple(sizes), "subsets of 3 or more")
    counts = np.zeros((4, len(matrices), len(sizes)), dtype=np.int64)
    order = np.array([len(matrix) for matrix in matrices])
    for n in np.unique(order[order >= min(sizes)]):
        largest = max(math.comb(n, size) for size in sizes)
        if largest > MOST_SUBSETS:
            raise ValueError(
                f"{n} answers to one question have {largest} subsets, over {MOST_SUBSETS}; "
                "ask for smaller sizes or compare fewer answers"
            )
        places = np.flatnonzero(order == n)
        step = max(1, _CHUNK_CELLS // largest)
        for part in (places[at : at + step] for at in range(0, places.size, step)):
            stack = np.stack([matrices[place] for place in part], axis=-1)
            counts[:, part] = _count_stack(stack, tuple(sizes), mixed=mixed)
    return ViolationCounts(tuple(sizes), *counts)


def _relation(matrix: ArrayLike, place: int) -> Floats:
    values = np.array(matrix, dtype=float)
    name = f"outcomes[{place}]"
    is_square = values.ndim == 2 and values.shape[0] == values.shape[1]
    require(is_square, f"the shape of {name}", values.shape, "(n, n)")
    np.fill_diagonal(values, 0.5)
    _require_known(values, name)
    mirrored = np.isclose(values, 1 - values.T, rtol=0, atol=0, equal_nan=True)
    if not mirrored.all():
        i, j = (int(k) for k in np.argwhere(~mirrored)[0])
        raise ValueError(
            f"{name} holds {values[i, j]} at {i, j} but {values[j, i]} at {j, i}; either share "
            "must be one minus the other"
        )
    return values


def _count_stack(stack: Floats, sizes: tuple[int, ...], *, mixed: bool) -> Counts:
    """Count in Q questions of n answers at once; `stack` has shape (n, n, Q)."""
    n, n_questions = stack.shape[0], stack.shape[2]
    counts = np.zeros((4, n_questions, len(sizes)), dtype=np.int64)
    triples = _subsets(n, 3)
    row = np.empty((n, n, n), dtype=np.intp)
    row[*triples] = np.arange(triples.shape[1])
    kinds = _triple_flags(stack, triples, mixed=mixed)
    for column, size in enumerate(sizes):
        members = _subsets(n, size)
        flags = np.zeros((members.shape[1], n_questions), dtype=np.uint8)
        for triple in combinations(members, 3):
            flags |= kinds[row[*triple]]
        whole = flags & _MISSING == 0
        counts[0, :, column] = whole.sum(axis=0)
        counts[1, :, column] = (whole & (flags != 0)).sum(axis=0)
        for kind, flag in ((2, _CIRCULAR), (3, _EQUALITY)):
            counts[kind, :, column] = (whole & (flags & flag != 0)).sum(axis=0)
    return counts


def _triple_flags(stack: Floats, triples: NDArray[np.intp], *, mixed: bool) -> NDArray[np.uint8]:
    """Mark triples (3, T) of answers of every question: shape (T, Q)."""
    a, b, c = triples
    steps = np.stack([stack[a, b], stack[b, c], stack[c, a]]) * 2 - 1
    missing = np.isnan(steps).any(axis=0)
    # Once around: a ranking goes both up and down, or stays level all the way.
    n_strict, climb = np.abs(steps).sum(axis=0), np.abs(steps.sum(axis=0))
    broken = (climb == n_strict) & (n_strict > 0) & (mixed | (n_strict != 2))
    kind = np.where(n_strict == 3, _CIRCULAR, _EQUALITY)
    return np.where(missing, _MISSING, np.where(broken, kind, 0)).astype(np.uint8)


@lru_cache(maxsize=8)
def _subsets(n: int, size: int) -> NDArray[np.intp]:
    """Return the subsets of 0..n-1, members ascending: shape (size, subsets)."""
    members = chain.from_iterable(combinations(range(n), size))
    return np.fromiter(members, dtype=np.intp).reshape(-1, size).T.copy()


class ViolationRates(NamedTuple):
    """Violations by category (rows, C) and subset size (columns, as in `sizes`).

    `ratio` is the non-transitivity ratio; `circular` and `equality` are the shares of subsets
    with either kind, which may overlap. All are shares of `n_subsets`, NaN where it is 0.
    `n_questions` has shape (C,), the rest (C, len(sizes)).
    """

    categories: list[Any]
    sizes: tuple[int, ...]
    n_questions: Counts
    n_subsets: Counts
    ratio: Floats
    circular: Floats
    equality: Floats


def violation_rates(counts: ViolationCounts, category: ArrayLike | None = None) -> ViolationRates:
    """Return non-transitivity ratios, pooled over the subsets of each `category` of questions (Q,).

    Rows are by category in sorted order; without categories all questions are of one, "all".
    Another number of categories, or no subset at all to take a share of, is a `ValueError`.
    """
    n_questions = len(counts.n_subsets)
    if not counts.n_subsets.any():
        raise ValueError(
            f"none of {n_questions} questions has {min(counts.sizes)} answers that were all "
            "compared with each other; compare more pairs per question"
        )
    labels = np.asarray(["all"] * n_questions if category is None else category)
    require(labels.shape == (n_questions,), "the shape of category", labels.shape, "one a question")
    _require_names(labels, "category")
    names, code = np.unique(labels, return_inverse=True)
    members = (code == np.arange(names.size)[:, None]).astype(np.int64)
    totals = members @ np.stack(counts[1:])
    shares = np.full((3, *totals.shape[1:]), np.nan)
    np.divide(totals[1:], totals[0], out=shares, where=totals[0] > 0)
    return ViolationRates(
        names.tolist(), counts.sizes, np.bincount(code).astype(np.int64), totals[0], *shares
    )
