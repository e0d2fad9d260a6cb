"""Contradictions of a judge: against every subset looked at, closed forms, and by hand."""

import math
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from relations_twin import count_subsets

from judgeline.trust.consistency import (
    ViolationCounts,
    count_violations,
    outcome_matrices,
    score_conflicts,
    violation_rates,
)

SIZES = (3, 4, 5)
ROCK_PAPER_SCISSORS = [[0.5, 1, 0], [0, 0.5, 1], [1, 0, 0.5]]


def relation(n: int, pairs: dict[tuple[int, int], float], default: float = math.nan) -> np.ndarray:
    matrix = np.full((n, n), 0.5)
    for i, j in combinations(range(n), 2):
        matrix[i, j] = pairs.get((i, j), default)
        matrix[j, i] = 1 - matrix[i, j]
    return matrix


@st.composite
def relations(draw: st.DrawFn, values: tuple[float, ...] = (1, 0.5, 0, math.nan)) -> np.ndarray:
    n = draw(st.integers(1, 7))
    pairs = list(combinations(range(n), 2))
    drawn = draw(st.lists(st.sampled_from(values), min_size=len(pairs), max_size=len(pairs)))
    return relation(n, dict(zip(pairs, drawn, strict=True)))


def totals(counts: ViolationCounts) -> list[list[tuple[int, ...]]]:
    """Per question and size: subsets, violating, circular, equality."""
    return np.stack(counts[1:], axis=-1).tolist()


# ------------------------------------------------------------------ against the slow twin


@given(st.lists(relations(), min_size=1, max_size=4))
def test_counts_are_those_of_the_definition(matrices: list[np.ndarray]) -> None:
    expected = [[list(count_subsets(m, size)) for size in SIZES] for m in matrices]
    assert totals(count_violations(matrices)) == expected
    whole = np.where(np.isnan(matrices[0]), 0.5, matrices[0])  # other sizes, and one twice
    expected = [list(count_subsets(whole, size)) for size in (5, 3, 6, 3)]
    assert totals(count_violations([whole], sizes=(5, 3, 6, 3)))[0] == expected


def test_counts_are_those_of_the_definition_in_many_questions_of_twelve() -> None:
    rng = np.random.default_rng(5)
    matrices = []
    for _ in range(6):
        noisy = rng.normal(size=12)
        pairs = {
            (i, j): float((np.sign(np.round(noisy[i] - noisy[j] + rng.normal(0, 0.3))) + 1) / 2)
            for i, j in combinations(range(12), 2)
            if rng.random() < 0.95
        }
        matrices.append(relation(12, pairs))
    expected = [[list(count_subsets(m, size)) for size in SIZES] for m in matrices]
    assert 0 < sum(row[2][1] for row in expected) < sum(row[2][0] for row in expected)
    assert totals(count_violations(matrices)) == expected


@pytest.mark.parametrize("n", [3, 4])
def test_what_breaks_no_rule_is_exactly_what_some_ranking_with_ties_explains(n: int) -> None:
    ranked = {  # oracle: a weak order is what comparing numbers gives
        tuple((np.sign(x - y) + 1) / 2 for x, y in combinations(levels, 2))
        for levels in product(range(n), repeat=n)
    }
    pairs = list(combinations(range(n), 2))
    for drawn in product((1, 0.5, 0), repeat=len(pairs)):
        matrix = relation(n, dict(zip(pairs, drawn, strict=True)))
        violating = count_violations([matrix], sizes=(n,)).n_violating[0, 0]
        assert violating == (drawn not in ranked)


# ------------------------------------------------------------------ closed forms


@given(st.lists(st.integers(-3, 3), min_size=5, max_size=12))
def test_scores_make_no_violations(scores: list[int]) -> None:
    levels = np.array(scores)
    matrix = (np.sign(levels[:, None] - levels) + 1) / 2
    rates = violation_rates(count_violations([matrix]))
    assert rates.ratio.tolist() == [[0, 0, 0]]
    assert rates.n_subsets.tolist() == [[math.comb(levels.size, size) for size in SIZES]]


@pytest.mark.parametrize(
    ("ab", "bc", "ac", "kind"),
    [
        (1, 1, 0, "circular"),
        (1, 1, 0.5, "equality"),
        (1, 0.5, 0, "equality"),
        (1, 0.5, 0.5, "equality"),
        (0.5, 0.5, 0, "equality"),
        (1, 0.5, 1, None),
        (0.5, 0, 0, None),
        (1, 0, 0.5, None),
        (0.5, 0.5, 0.5, None),
        (1, 1, 1, None),
    ],
)
def test_kinds_of_triples_by_hand(ab: float, bc: float, ac: float, kind: str | None) -> None:
    counts = count_violations([relation(3, {(0, 1): ab, (1, 2): bc, (0, 2): ac})], sizes=(3,))
    expected = [1, int(kind is not None), int(kind == "circular"), int(kind == "equality")]
    assert totals(counts) == [[expected]]


@given(relations(values=(1, 0.5, 0)))
def test_two_wins_and_a_tie_break_no_rule_where_mixed_circles_are_left_out(matrix) -> None:
    n_broken = 0
    for x, y, z in combinations(range(len(matrix)), 3):
        once_around = sorted([matrix[x, y], matrix[y, z], matrix[z, x]])
        n_broken += once_around in ([0, 0, 0], [1, 1, 1], [0, 0.5, 0.5], [0.5, 0.5, 1])
    counts = count_violations([matrix], sizes=(3,), mixed=False)
    assert counts.n_violating.tolist() == [[n_broken]]
    assert (counts.n_circular == count_violations([matrix], sizes=(3,)).n_circular).all()


@given(st.integers(3, 12), st.randoms(use_true_random=False))
def test_circular_triples_of_a_tournament_follow_from_its_wins(n: int, random) -> None:
    # Kendall and Babington Smith (1940): C(n, 3) less the sum of C(wins, 2), without ties.
    matrix = relation(n, {pair: float(random.random() < 0.5) for pair in combinations(range(n), 2)})
    wins = (matrix == 1).sum(axis=1).tolist()
    expected = math.comb(n, 3) - sum(math.comb(w, 2) for w in wins)
    counts = count_violations([matrix], sizes=(3,))
    assert totals(counts) == [[[math.comb(n, 3), expected, expected, 0]]]


@pytest.mark.parametrize("n", [5, 9, 20])
def test_one_misplaced_pair_spoils_the_subsets_that_hold_it(n: int) -> None:
    spoilt = [math.comb(n - 2, size - 2) for size in SIZES]
    every = [math.comb(n, size) for size in SIZES]
    ends = (0, n - 1)
    upset = relation(n, {ends: 0.0}, default=1.0)  # a ranking, but the last beats the first
    levelled = relation(n, {ends: 0.5}, default=1.0)
    one_win_among_ties = relation(n, {ends: 1.0}, default=0.5)
    unknown = relation(n, {ends: math.nan}, default=1.0)
    counts = count_violations([upset, levelled, one_win_among_ties, unknown])
    assert counts.n_violating.tolist() == [spoilt, spoilt, spoilt, [0, 0, 0]]
    assert counts.n_circular.tolist() == [spoilt, [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert counts.n_equality.tolist() == [[0, 0, 0], spoilt, spoilt, [0, 0, 0]]
    left = [a - b for a, b in zip(every, spoilt, strict=True)]
    assert counts.n_subsets.tolist() == [every, every, every, left]


# ------------------------------------------------------------------ categories


def test_rates_pool_subsets_not_questions() -> None:
    ranking = relation(4, {}, default=1.0)
    counts = count_violations([ROCK_PAPER_SCISSORS, ranking, [[0.5]]], sizes=(3, 4))
    pooled = violation_rates(counts)
    assert pooled.categories == ["all"]
    assert pooled.n_questions.tolist() == [3]
    assert pooled.n_subsets.tolist() == [[5, 1]]
    assert pooled.ratio.tolist() == [[1 / 5, 0]]
    parted = violation_rates(counts, ["maths", "prose", "maths"])
    assert parted.categories == ["maths", "prose"]
    assert parted.n_questions.tolist() == [2, 1]
    assert parted.n_subsets.tolist() == [[1, 0], [4, 1]]
    assert parted.ratio[:, 0].tolist() == parted.circular[:, 0].tolist() == [1, 0]
    assert np.isnan(parted.ratio[0, 1])  # no four answers in maths: not 0
    assert parted.ratio[1, 1] == 0


# ------------------------------------------------------------------ from rows


def test_rows_become_one_matrix_per_question() -> None:
    made = outcome_matrices(
        ["q2", "q1", "q2", "q2"], ["b", "x", "c", "a"], ["a", "y", "a", "d"], [1, 0.5, 0, math.nan]
    )
    assert made.questions == ["q1", "q2"]
    assert [names.tolist() for names in made.answers] == [["x", "y"], ["a", "b", "c", "d"]]
    nan = math.nan
    np.testing.assert_array_equal(made.outcomes[0], [[nan, 0.5], [0.5, nan]])
    np.testing.assert_array_equal(
        made.outcomes[1],
        [[nan, 0, 1, nan], [1, nan, nan, nan], [0, nan, nan, nan], [nan, nan, nan, nan]],
    )
    assert count_violations(made.outcomes).n_subsets.sum() == 0


@given(relations(), st.randoms(use_true_random=False))
def test_rows_in_any_order_and_direction_give_the_same_counts(matrix: np.ndarray, random) -> None:
    pairs = list(combinations(range(len(matrix)), 2))
    if not pairs:
        return
    rows = [random.choice([(i, j), (j, i)]) for i, j in pairs]
    random.shuffle(rows)
    made = outcome_matrices(
        [7] * len(rows), [i for i, _ in rows], [j for _, j in rows], [matrix[i, j] for i, j in rows]
    )
    assert totals(count_violations(made.outcomes)) == totals(count_violations([matrix]))


# ------------------------------------------------------------------ scores against comparisons


PAIRS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 5), st.sampled_from([1, 0.5, 0])),
    min_size=1,
    max_size=20,
)


@given(PAIRS, st.integers(0, 4))
def test_conflict_ratio_is_the_published_condition(pairs: list[tuple], tolerance: int) -> None:
    n_conflicts = 0
    for x, y, share in pairs:
        x_above, y_above = x > y + tolerance, y > x + tolerance
        n_conflicts += (
            (x_above and share != 1)
            or (y_above and share != 0)
            or (not x_above and not y_above and share != 0.5)
        )
    a, b, outcome = (np.array(column) for column in zip(*pairs, strict=True))
    assert score_conflicts(a, b, outcome, tolerance=tolerance).mean() == n_conflicts / len(pairs)
    assert score_conflicts(b, a, 1 - outcome, tolerance=tolerance).mean() == n_conflicts / len(
        pairs
    )


# ------------------------------------------------------------------ refusals

NAN = math.nan
CIRCLE = count_violations([ROCK_PAPER_SCISSORS])
SPARSE = count_violations([ROCK_PAPER_SCISSORS, relation(5, {})], sizes=(4, 5))
LEVEL = partial(score_conflicts, tolerance=0)


@pytest.mark.parametrize(
    ("door", "arguments", "message"),
    [
        (violation_rates, (count_violations([[[0.5]]]),), "none of 1 questions has 3 answers"),
        (violation_rates, (SPARSE,), "none of 2 questions has 4 answers"),
        (violation_rates, (CIRCLE, ["x", "y"]), r"category is \(2,\); expected"),
        (violation_rates, (CIRCLE, [None]), "category is None in row 0"),
        (outcome_matrices, ("q", "a", "a", 1.0), "question 'q' compares answer a with itself"),
        (outcome_matrices, ("qq", "ab", "ba", [1, 0]), "'q' lists answers a and b 2 times"),
        (outcome_matrices, ("q", "a", "b", [0.7]), "outcome is 0.7 in row 0"),
        (outcome_matrices, ("q", [None], "b", [1]), "answer_a is None in row 0"),
        (outcome_matrices, ("q", "ab", "b", [1]), r"answer_a \(2,\), answer_b \(1,\)"),
        (count_violations, ([],), "the number of questions is 0"),
        (count_violations, ([[[0.5, 1]]],), r"the shape of outcomes\[0\] is \(1, 2\)"),
        (count_violations, ([[[0.5]], [[0.5, 0.7], [0.3, 0.5]]],), r"\[1\] is 0.7 in row 0, col"),
        (count_violations, ([[[0.5, 1], [1, 0.5]]],), r"1.0 at \(0, 1\) but 1.0 at \(1, 0\)"),
        (count_violations, ([[[0.5, 1], [NAN, 0.5]]],), r"1.0 at \(0, 1\) but nan"),
        (partial(count_violations, sizes=(2, 3)), ([[[0.5]]],), "3 or more"),
        (partial(count_violations, sizes=()), ([[[0.5]]],), "3 or more"),
        (count_violations, ([np.full((100, 100), 0.5)],), "100 answers .* 75287520 subsets"),
        (LEVEL, ([1.0], [1.0, 2.0], [1.0]), r"score_a \(1,\), score_b \(2,\)"),
        (LEVEL, ([1.0, NAN], [1.0, 1.0], [1, 1]), "score_a is nan in row 1"),
        (LEVEL, ([1.0], [math.inf], [1]), "score_b is inf in row 0"),
        (LEVEL, ([1.0], [1.0], [NAN]), "outcome is nan in row 0; expected 1, 0.5 or 0"),
        (LEVEL, ([1.0], [1.0], [0.8]), "outcome is 0.8"),
        (partial(score_conflicts, tolerance=-1), ([1], [1], [1]), "tolerance is -1"),
        (partial(score_conflicts, tolerance=NAN), ([1], [1], [1]), "tolerance is nan"),
    ],
)
def test_wrong_input_is_refused_by_value_and_place(door, arguments, message: str) -> None:
    if door is outcome_matrices:
        arguments = [list(one) if isinstance(one, str) else np.atleast_1d(one) for one in arguments]
    with pytest.raises(ValueError, match=message):
        door(*arguments)
