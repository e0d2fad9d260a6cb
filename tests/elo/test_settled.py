"""Whose votes count yet: by hand, and against a slow twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.elo import RatingSettings, code_battles, rate, settled_models, with_settled_votes
from judgeline.intervals import calibrating_models


def slow(pairs: list[tuple[int, int]], n_models: int) -> list[bool]:
    """The same in sets and loops."""
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
def test_the_rule_equals_its_slow_twin(pairs):
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    assert settled_models(first, second, 7).tolist() == slow(pairs, 7)


def circle(n_models: int, n_votes: int) -> list[tuple[int, int]]:
    """Each model with n_votes votes, in rounds of a circle; n_votes is even."""
    return [(m, (m + 1) % n_models) for m in range(n_models) for _ in range(n_votes // 2)]


@pytest.mark.parametrize(
    ("n_votes", "few", "counts"),
    [(200, 19, False), (200, 20, True), (8, 1, False), (8, 3, True), (2, 1, True)],
)
def test_a_model_counts_from_twenty_votes_or_a_quarter_of_the_others(n_votes, few, counts):
    pairs = circle(10, n_votes) + [(10, m % 10) for m in range(few)]
    settled = settled_models(*zip(*pairs, strict=True), 11)
    assert settled[:10].all()
    assert settled[10] == counts


@pytest.mark.parametrize(("n_models", "n_votes"), [(7, 10), (8, 10), (12, 15), (30, 2)])
def test_models_that_all_met_one_count_as_well(n_models, n_votes):
    pairs = [(0, 1 + k) for k in range(n_models) for _ in range(n_votes)]
    assert settled_models(*zip(*pairs, strict=True), n_models + 1).all()


def test_where_nobody_would_be_left_everybody_counts():
    """Each vote falls with the next: without this a corpus would lose its scale."""
    pairs = [(0, 1)] * 19 + [(1, 2)] * 19
    assert settled_models(*zip(*pairs, strict=True), 3).all()


def test_many_models_with_one_vote_do_not_lower_the_bar():
    pairs = circle(10, 200) + [(10 + new, new % 10) for new in range(40)]
    assert settled_models(*zip(*pairs, strict=True), 50).tolist() == [True] * 10 + [False] * 40


def test_votes_of_models_that_do_not_count_bring_nobody_in():
    pairs = circle(10, 200) + [(11, 10)] * 6 + [(10, m) for m in range(10)] + [(10, 0)] * 5
    settled = settled_models(*zip(*pairs, strict=True), 12)
    assert settled[:10].all()
    assert not settled[10:].any()  # 21 votes, six of them against a model that does not count


def world(n_young: int) -> tuple:
    """Twenty models with some 200 votes each, and young ones with one vote each."""
    rng = np.random.default_rng(4)
    strength = rng.normal(0, 0.7, 20 + n_young)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(2000)])
    young = np.array([[20 + k, k] for k in range(n_young)]).reshape(-1, 2)
    pairs = np.vstack([pairs, young]).astype(int)
    gap = strength[pairs[:, 0]] - strength[pairs[:, 1]]
    votes = (rng.random(len(pairs)) < 1 / (1 + np.exp(-gap))).astype(float)
    score = np.round(12 * (gap + rng.normal(0, 1, len(pairs)))) / 12
    names = np.array([f"m{k:02d}" for k in range(20 + n_young)])
    return names[pairs[:, 0]], names[pairs[:, 1]], votes, score


def coded(model_a, model_b, votes, score):
    outcome = np.select([score > 0, score < 0], [1.0, 0.0], 0.5)
    return code_battles(
        model_a, model_b, human_outcome=votes, judge_outcome=outcome, score_difference=score
    )


def threshold_of(battles) -> float:
    heldout = rate(battles, RatingSettings(n_resamples=0))
    return calibrating_models(heldout, "soft", "analytic").threshold(0.1)


def test_two_models_with_one_vote_each_take_no_interval_from_the_others():
    battles = coded(*world(n_young=2))
    assert math.isinf(threshold_of(battles))
    settled = with_settled_votes(battles)
    assert not settled.voted_models()[-2:].any()
    model_a, model_b, votes, score = world(n_young=2)
    votes[-2:] = np.nan
    assert threshold_of(settled) == threshold_of(coded(model_a, model_b, votes, score)) < math.inf


def test_where_all_count_nothing_is_touched():
    battles = coded(*world(n_young=0))
    assert with_settled_votes(battles) is battles
