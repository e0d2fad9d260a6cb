"""Battles in codes, the chains that connect models, and whose votes count yet."""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgeline.elo import (
    CodedBattles,
    RatingSettings,
    code_battles,
    connected_components,
    rate,
    require_connected,
    settled_models,
    with_settled_votes,
)
from judgeline.intervals import calibrating_models


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
    ],
)
def test_a_bad_row_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        coded(**changes)


def test_no_battles_are_refused() -> None:
    with pytest.raises(ValueError, match="no battles"):
        code_battles([], [], human_outcome=[], judge_outcome=[], score_difference=[])


# ------------------------------------------------------------------ connected models


def battles_of(pairs: list[tuple[str, str]]) -> CodedBattles:
    tie = [0.5] * len(pairs)
    first, second = zip(*pairs, strict=True)
    return code_battles(
        first, second, human_outcome=tie, judge_outcome=tie, score_difference=[0.0] * len(pairs)
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
@settings(max_examples=60)
def test_labels_are_the_connected_parts(size: int, pairs: list[tuple[int, int]]) -> None:
    """A table with battles on one side of its diagonal is enough."""
    pairs = [(a, b) for a, b in pairs if a < size and b < size and a != b]
    counts = np.zeros((size, size), dtype=int)
    for a, b in pairs:
        counts[a, b] += 1
    labels = connected_components(counts)
    parts = [set(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]
    assert sorted(map(sorted, parts)) == sorted(map(sorted, flood(size, pairs)))
    assert (labels == 0).sum() == max(map(len, parts))


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


def hub(n_models: int, n_votes: int) -> list[tuple[int, int]]:
    return [(0, 1 + k) for k in range(n_models) for _ in range(n_votes)]


BY_TWENTY_ONE = [(11, 10)] * 6 + [(10, m) for m in range(10)] + [(10, 0)] * 5


@pytest.mark.parametrize(
    ("pairs", "counts"),
    [
        pytest.param(
            circle(10, n_votes) + [(10, m % 10) for m in range(few)],
            [True] * 10 + [eleventh],
            id=f"{few} votes beside models of {n_votes}",
        )
        for n_votes, few, eleventh in (
            (200, 19, False), (200, 20, True), (8, 1, False), (8, 3, True), (2, 1, True),
        )
    ]
    + [
        pytest.param(hub(n, votes), [True] * (n + 1), id=f"{n} models that met one {votes} times")
        for n, votes in ((7, 10), (8, 10), (12, 15), (30, 2))
    ]
    + [
        pytest.param([(0, 1)] * 19 + [(1, 2)] * 19, [True] * 3, id="each vote falls with the next"),
        pytest.param(
            circle(10, 200) + [(10 + new, new % 10) for new in range(40)],
            [True] * 10 + [False] * 40,
            id="many models with one vote do not lower the bar",
        ),
        pytest.param(
            circle(10, 200) + BY_TWENTY_ONE,
            [True] * 10 + [False] * 2,
            id="21 votes, six of them against a model that does not count",
        ),
    ],
)  # fmt: skip
def test_who_has_votes_enough(pairs: list[tuple[int, int]], counts: list[bool]) -> None:
    assert settled_models(*zip(*pairs, strict=True), len(counts)).tolist() == counts


def test_models_with_one_vote_each_take_no_interval_from_the_others() -> None:
    """Twenty models with some 200 votes each, and two with one."""
    rng = np.random.default_rng(4)
    strength = rng.normal(0, 0.7, 22)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(2000)] + [[20, 0], [21, 1]])
    gap = strength[pairs[:, 0]] - strength[pairs[:, 1]]
    votes = (rng.random(len(pairs)) < 1 / (1 + np.exp(-gap))).astype(float)
    score = np.round(12 * (gap + rng.normal(0, 1, len(pairs)))) / 12
    names = np.array([f"m{k:02d}" for k in range(22)])

    def world(n_battles: int = 2002, n_votes: int = 2002) -> CodedBattles:
        return code_battles(
            *names[pairs[:n_battles]].T,
            human_outcome=np.where(np.arange(2002) < n_votes, votes, np.nan)[:n_battles],
            judge_outcome=(np.sign(score[:n_battles]) + 1) / 2,
            score_difference=score[:n_battles],
        )

    def threshold_of(battles: CodedBattles) -> float:
        heldout = rate(battles, RatingSettings(n_resamples=0, smoothing_levels=()))
        return calibrating_models(heldout, "soft", "analytic").threshold(0.1)

    assert math.isinf(threshold_of(world()))
    settled = with_settled_votes(world())
    assert not settled.voted_models()[-2:].any()
    assert threshold_of(settled) == threshold_of(world(n_votes=2000)) < math.inf
    older = world(2000)
    assert with_settled_votes(older) is older
