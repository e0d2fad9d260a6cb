import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.elo import CodedBattles, code_battles, connected_components, require_connected


def battles_of(pairs: list[tuple[str, str]]) -> CodedBattles:
    tie = [0.5] * len(pairs)
    return code_battles(
        [a for a, _ in pairs],
        [b for _, b in pairs],
        human_outcome=tie,
        judge_outcome=tie,
        score_difference=[0.0] * len(pairs),
    )


def flood(size: int, pairs: list[tuple[int, int]]) -> list[set[int]]:
    """Components by spreading from every model until nothing is added."""
    parts = []
    for model in range(size):
        part = {model}
        while True:
            grown = part | {b for a, b in pairs if a in part} | {a for a, b in pairs if b in part}
            if grown == part:
                break
            part = grown
        if part not in parts:
            parts.append(part)
    return parts


@given(
    size=st.integers(1, 9),
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=9),
)
def test_labels_are_the_connected_parts(size: int, pairs: list[tuple[int, int]]) -> None:
    pairs = [(a, b) for a, b in pairs if a < size and b < size and a != b]
    counts = np.zeros((size, size), dtype=int)
    for a, b in pairs:
        counts[a, b] += 1
        counts[b, a] += 1
    labels = connected_components(counts)
    parts = [set(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]
    assert sorted(map(sorted, parts)) == sorted(map(sorted, flood(size, pairs)))


def test_a_one_sided_table_is_enough() -> None:
    assert len(set(connected_components([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).tolist())) == 1


def test_a_chain_of_battles_connects() -> None:
    require_connected(battles_of([("a", "b"), ("c", "b"), ("c", "d")]))


def test_the_stray_models_are_named() -> None:
    with pytest.raises(ValueError, match=r"2 of 5 models .*x, y"):
        require_connected(battles_of([("x", "y"), ("a", "b"), ("b", "c")]))
