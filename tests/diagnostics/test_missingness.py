import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from judgeline.diagnostics.missingness import battle_status, excess_p_values, length_bins

FAILURES = ("parse_error", "refusal", "truncated")


class Answer(NamedTuple):
    battle: int
    order: str
    replicate: int
    status: str


def statuses(answers: list[Answer], n_battles: int) -> list[str]:
    columns = [list(column) for column in zip(*answers, strict=True)] or [[], [], [], []]
    return battle_status(*columns, n_battles=n_battles).tolist()


def by_hand(answers: list[Answer], n_battles: int) -> list[str]:
    """The rule read aloud, one battle after the other."""
    told = []
    for battle in range(n_battles):
        failed: list[Answer] = []
        read = set()
        for order in ("AB", "BA", "mean"):
            own = sorted(a for a in answers if a.battle == battle and a.order == order)
            if any(answer.status == "ok" for answer in own):
                read.add(order)
            else:
                failed += own[:1]
        scored = {"AB", "BA"} <= read or "mean" in read
        told.append("ok" if scored else failed[0].status if failed else "not_judged")
    return told


answers = st.lists(
    st.builds(
        Answer,
        st.integers(0, 5),
        st.sampled_from(["AB", "BA", "mean"]),
        st.integers(0, 2),
        st.sampled_from(["ok", *FAILURES]),
    ),
    max_size=40,
    unique_by=lambda answer: answer[:3],
)


@given(answers=answers, random=st.randoms(use_true_random=False))
def test_every_battle_has_the_status_that_the_rule_read_aloud_gives(answers, random) -> None:
    expected = by_hand(answers, 7)
    random.shuffle(answers)
    assert statuses(answers, 7) == expected


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"AB": ["ok"], "BA": ["ok"]}, "ok"),
        ({"AB": ["ok"], "BA": ["refusal"]}, "refusal"),
        ({"AB": ["truncated"], "BA": ["refusal"]}, "truncated"),
        ({"AB": ["refusal", "ok"], "BA": ["ok", "ok"]}, "ok"),
        ({"AB": ["refusal", "parse_error"], "BA": ["ok", "truncated"]}, "refusal"),
        ({"AB": ["ok"]}, "not_judged"),
        ({"mean": ["ok"]}, "ok"),
        ({"mean": ["parse_error"]}, "parse_error"),
        ({}, "not_judged"),
    ],
)
def test_a_battle_without_a_score_has_the_class_of_its_first_failed_order(told, expected) -> None:
    rows = [
        Answer(0, order, replicate, status)
        for order, fates in told.items()
        for replicate, status in enumerate(fates)
    ]
    assert statuses(rows, 1) == [expected]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(0, "ab", 0, "ok"), "order is 'ab' in row 0; expected AB, BA or mean"),
        (Answer(2, "AB", 0, "ok"), "battle is 2 in row 0; expected 0 to 1"),
        (Answer(-1, "AB", 0, "ok"), "battle is -1 in row 0"),
    ],
)
def test_impossible_answers_are_refused_by_name(answer: Answer, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        statuses([answer], 2)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"different lengths: \[1, 2\]"):
        battle_status([0, 0], ["AB"], [0], ["ok"], n_battles=1)


# ------------------------------------------------------------------ length


@given(lengths=st.lists(st.integers(0, 30), min_size=1, max_size=60), n_bins=st.integers(1, 6))
def test_bins_follow_the_order_of_lengths_and_never_part_equal_ones(lengths, n_bins) -> None:
    bins = length_bins(lengths, n_bins=n_bins)
    for shorter, low in zip(lengths, bins, strict=True):
        for longer, high in zip(lengths, bins, strict=True):
            assert low <= high if shorter <= longer else low >= high
            assert low == high or shorter != longer
    assert set(bins.tolist()) == set(range(bins.max() + 1))
    assert bins.max() < n_bins


@given(n=st.integers(4, 200), seed=st.integers(0, 99))
def test_bins_of_different_lengths_are_quarters(n: int, seed: int) -> None:
    lengths = np.random.default_rng(seed).permutation(np.arange(n) * 7.0)
    sizes = np.bincount(length_bins(lengths))
    assert sizes.size == 4
    assert sizes.max() - sizes.min() <= 1


def test_unknown_lengths_have_no_bin() -> None:
    assert length_bins([math.nan, 3.0, math.nan]).tolist() == [-1, 0, -1]
    assert length_bins([math.nan]).tolist() == [-1]
    with pytest.raises(ValueError, match="at least 1, got 0"):
        length_bins([1.0], n_bins=0)


# ------------------------------------------------------------------ chance


def exact_tail(missing: int, battles: int, all_missing: int, all_battles: int) -> Fraction:
    """Count the ways to choose which battles are missing."""
    ways = sum(
        math.comb(battles, k) * math.comb(all_battles - battles, all_missing - k)
        for k in range(missing, min(battles, all_missing) + 1)
    )
    return Fraction(ways, math.comb(all_battles, all_missing))


@given(data=st.data(), all_battles=st.integers(1, 60))
def test_one_models_chance_is_the_counted_one_and_fishers(data, all_battles: int) -> None:
    all_missing = data.draw(st.integers(0, all_battles))
    battles = data.draw(st.integers(0, all_battles))
    least = max(0, all_missing + battles - all_battles)
    missing = data.draw(st.integers(least, min(battles, all_missing)))
    found = excess_p_values([missing], [battles], all_missing=all_missing, all_battles=all_battles)
    assert found == pytest.approx([float(exact_tail(missing, battles, all_missing, all_battles))])
    rest = all_missing - missing
    table = [[missing, battles - missing], [rest, all_battles - battles - rest]]
    assert found == pytest.approx([fisher_exact(table, alternative="greater").pvalue])


def test_holms_correction_by_hand() -> None:
    """Chances 1/66 and 1/3 of two models, and 1: times 3, 2 and 1, never falling."""
    alone = [
        excess_p_values([k], [n], all_missing=2, all_battles=12)[0]
        for k, n in ((2, 2), (1, 2), (0, 4))
    ]
    assert alone == pytest.approx([1 / 66, 21 / 66, 1.0])
    together = excess_p_values([1, 2, 0], [2, 2, 4], all_missing=2, all_battles=12)
    assert together == pytest.approx([42 / 66, 3 / 66, 1.0])


def test_false_alarms_over_all_models_stay_below_the_level() -> None:
    rng, n_models, n_battles, level = np.random.default_rng(11), 10, 300, 0.05
    pairs = np.array([rng.choice(n_models, 2, replace=False) for _ in range(n_battles)])
    alarms = []
    for _ in range(1500):
        gone = rng.choice(n_battles, 40, replace=False)
        found = excess_p_values(
            np.bincount(pairs[gone].ravel(), minlength=n_models),
            np.bincount(pairs.ravel(), minlength=n_models),
            all_missing=40,
            all_battles=n_battles,
        )
        alarms.append(found.min() < level)
    assert np.mean(alarms) <= level + 4 * math.sqrt(level * (1 - level) / len(alarms))


def test_a_judge_that_shuns_one_model_is_noticed() -> None:
    found = excess_p_values([20, 12, 8], [100, 150, 150], all_missing=20, all_battles=200)
    assert found[0] < 1e-4
    assert found[1:] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(("missing", "battles"), [([3], [2]), ([6], [8]), ([1], [11]), ([-1], [4])])
def test_parts_that_exceed_their_whole_are_refused(missing: list[int], battles: list[int]) -> None:
    with pytest.raises(ValueError, match=f"{missing[0]} of {battles[0]} battles missing in row 0"):
        excess_p_values(missing, battles, all_missing=5, all_battles=10)
