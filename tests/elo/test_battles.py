"""Battles in codes, the chains that connect models, and whose votes count yet."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components as components

from judgeline.elo import (
    CodedBattles,
    code_battles,
    connected_components,
    require_connected,
    settled_models,
    with_settled_votes,
)


def coded(**changes: Any) -> CodedBattles:
    """Three good battles of three models, with some columns changed."""
    columns: dict[str, Any] = {
        "model_a": ["owl", "elk", "owl"],
        "model_b": ["elk", "yak", "yak"],
        "human_outcome": [1.0, 0.5, math.nan],
        "judge_outcome": [1.0, 0.0, 0.75],
        "score_difference": [1 / 12, -9.0, 3.0],
    }
    columns.update(changes)
    return code_battles(columns.pop("model_a"), columns.pop("model_b"), **columns)


def test_battles_are_small_integers_over_sorted_names() -> None:
    """Outcomes in halves and quarters, -1 for no vote, rubric scores in twelfths."""
    battles = coded()
    assert (battles.models, len(battles)) == (("elk", "owl", "yak"), 3)
    assert [battles.model_a.tolist(), battles.model_b.tolist()] == [[1, 0, 1], [0, 2, 2]]
    assert battles.human_outcome.tolist() == [2, 1, -1]
    assert battles.judge_outcome.tolist() == [4, 0, 3]
    assert battles.human_outcome.dtype == battles.judge_outcome.dtype == np.int8
    assert (battles.score_difference.tolist(), battles.denominator) == ([1, -108, 36], 12)


def test_scores_off_the_grid_keep_their_value() -> None:
    battles = coded(score_difference=[0.1234567, -2.5, 0.05])
    assert battles.denominator == 0
    assert battles.score_difference.tolist() == [0.1234567, -2.5, 0.05]


@pytest.mark.parametrize(
    "kind", ["list", "object", "str dtype", "categorical", "with idle names", "arrow"]
)
def test_every_form_of_names_gives_the_same_codes(kind: str) -> None:
    names_a, names_b = ["owl", "elk", "owl"], ["elk", "yak", "yak"]
    form = {
        "list": list,
        "object": lambda names: np.array(names, dtype=object),
        "str dtype": np.array,
        "categorical": pd.Categorical,
        "with idle names": partial(
            pd.Series, dtype=pd.CategoricalDtype([*"zab", "yak", "owl", "elk"])
        ),
        "arrow": lambda names: pd.Series(names, dtype="string[pyarrow]"),
    }[kind]
    battles = coded(model_a=form(names_a), model_b=form(names_b))
    assert battles.models == ("elk", "owl", "yak")
    assert battles.model_a.tolist() == [1, 0, 1]
    assert battles.model_b.tolist() == [0, 2, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_b": ["elk", "elk", "yak"]}, r"itself.*row 1.*'elk'"),
        ({"model_a": ["owl", "", "owl"]}, "model_a is '' in row 1"),
        ({"model_b": ["elk", None, "yak"]}, "model_b is None in row 1"),
        ({"model_b": ["elk", math.nan, "yak"]}, "model_b is nan in row 1"),
        ({"model_b": ["elk", {}, "yak"]}, r"model_b is \{\} in row 1"),
        ({"model_b": pd.Categorical(["elk", None, "yak"])}, "model_b is missing in row 1"),
        ({"score_difference": [0.0, math.nan, math.nan]}, r"nan.*row 1.*2 such rows"),
        ({"score_difference": [0.0, 0.0, math.inf]}, "inf.*row 2"),
        ({"human_outcome": [1.0, 0.25, 0.0]}, r"human_outcome is .*0\.25.* in row 1"),
        ({"human_outcome": [1.0, 1.5, 0.0]}, r"human_outcome is .*1\.5.* in row 1"),
        ({"human_outcome": [-0.5, 1.0, 0.0]}, r"human_outcome is .*-0\.5.* in row 0"),
        ({"human_outcome": [-1, 1, 0]}, r"human_outcome is .*-1.* in row 0"),
        ({"judge_outcome": [0.0, 1.0, 0.3]}, r"judge_outcome is .*0\.3.* in row 2"),
        ({"judge_outcome": [0.0, 1.0, 2.0]}, r"judge_outcome is .*2\.0.* in row 2"),
        ({"judge_outcome": [0.0, math.nan, 1.0]}, "judge_outcome is .*nan.* in row 1"),
        ({"judge_outcome": [1.0, 0.0]}, r"human_outcome \(3,\), judge_outcome \(2,\)"),
        ({"model_a": [], "model_b": []}, "no battles"),
        ({"model_a": ["elk"] * 3, "model_b": ["elk"] * 3}, "one model only"),
    ],
)
def test_a_bad_row_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coded(**changes)


# ------------------------------------------------------------------ connected models


def battles_of(pairs: list[tuple[str, str]]) -> CodedBattles:
    tie = [0.5] * len(pairs)
    first, second = zip(*pairs, strict=True)
    return code_battles(
        first, second, human_outcome=tie, judge_outcome=tie, score_difference=[0.0] * len(pairs)
    )


@given(
    size=st.integers(1, 9),
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=9),
)
@settings(max_examples=60)
def test_labels_are_the_connected_parts(size: int, pairs: list[tuple[int, int]]) -> None:
    """A table with battles on one side of its diagonal is enough."""
    pairs = [(a, b) for a, b in pairs if a < size and b < size and a != b]
    counts = np.zeros((size, size), dtype=int)
    for a, b in pairs:
        counts[a, b] += 1
    labels, known = connected_components(counts), components(counts, directed=False)[1]
    assert ((labels[:, None] == labels) == (known[:, None] == known)).all()
    assert (labels == 0).sum() == np.bincount(labels).max()


def test_models_outside_the_largest_part_are_named() -> None:
    require_connected(battles_of([("a", "b"), ("c", "b"), ("c", "d")]))
    with pytest.raises(ValueError, match=r"2 of 5 models .*x, y"):
        require_connected(battles_of([("x", "y"), ("a", "b"), ("b", "c")]))


# ------------------------------------------------------------------ whose votes count yet


def slow(pairs: list[tuple[int, int]], n_models: int) -> list[bool]:
    """`settled_models` in sets and loops."""
    count = [sum(model in pair for pair in pairs) for model in range(n_models)]
    if not pairs:
        return [False] * n_models
    least = min(20.0, sum(min(count[a], count[b]) for a, b in pairs) / len(pairs) / 4)
    inside = kept_all = {model for model in range(n_models) if count[model]}
    while True:
        counted = [pair for pair in pairs if set(pair) <= inside]
        kept = {m for m in inside if 0 < sum(m in pair for pair in counted) >= least}
        if kept == inside:
            return [model in (inside or kept_all) for model in range(n_models)]
        inside = kept


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] != pair[1]),
        max_size=60,
    )
)
@settings(max_examples=60)
def test_the_rule_of_settled_models_equals_its_slow_twin(pairs) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    assert settled_models(first, second, 7).tolist() == slow(pairs, 7)


def circle(n_models: int, n_votes: int) -> list[tuple[int, int]]:
    """Each model with n_votes votes, in rounds of a circle; n_votes is even."""
    return [(m, (m + 1) % n_models) for m in range(n_models) for _ in range(n_votes // 2)]


BY_TWENTY_ONE = [(11, 10)] * 6 + [(10, m) for m in range(10)] + [(10, 0)] * 5


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ([(10, m % 10) for m in range(19)], [False]),
        ([(10, m % 10) for m in range(20)], [True]),
        ([(10 + new, new % 10) for new in range(40)], [False] * 40),  # they lower no bar
        (BY_TWENTY_ONE, [False] * 2),  # six of 21 are against a model that does not count
    ],
)
def test_who_has_votes_enough_beside_ten_models_with_200_each(more, counts) -> None:
    pairs = circle(10, 200) + more
    assert settled_models(*zip(*pairs, strict=True), 10 + len(counts)).tolist() == [
        *[True] * 10, *counts,
    ]  # fmt: skip
    battles = battles_of([(f"m{a:02d}", f"m{b:02d}") for a, b in pairs])
    settled = with_settled_votes(battles)
    assert settled.voted_models().tolist() == [*[True] * 10, *counts]
    assert (settled is battles) is all(counts)
    assert settled.human_outcome[:1000].tolist() == [1] * 1000
    rows = Counter(pairs)
    counted = battles_of([(f"m{a:02d}", f"m{b:02d}") for a, b in rows])
    counted = replace(counted, count=np.array([*rows.values()]))
    assert with_settled_votes(counted).voted_models().tolist() == [*[True] * 10, *counts]
