"""Evidence by ranks: an exact supermartingale where everything can be counted, and told rightly."""

import math
from collections import defaultdict
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import kstest

from judgeline.reliability.evidence import (
    GUARD,
    STAKES,
    ever,
    log_evidence,
    name_verdicts,
    sequential_ranks,
    stream_ranks,
    tie_breaks,
)

SIXTHS = (np.arange(6) + 0.5) / 6  # uniform numbers that tell apart one, two and three places


def is_martingale(weighted: list[tuple[float, np.ndarray]]) -> None:
    """Check that each past of ranks has the evidence that all its futures have on average."""
    for row in range(len(weighted[0][1])):
        total = defaultdict(lambda: np.zeros(3))
        for chance, ranks in weighted:
            logs = np.concatenate([[0.0], log_evidence(ranks)])
            past = tuple(ranks[:row].ravel())
            total[past] += chance * np.array([1, math.exp(logs[row]), math.exp(logs[row + 1])])
        for n, before, after in total.values():
            assert after / n == pytest.approx(before / n, rel=1e-12)
            assert after > 0


def test_over_all_orders_of_different_values_the_evidence_is_a_martingale():
    orders = [np.array(one, dtype=float) for one in permutations((1, 2, 3.5, 9))]
    half = np.full((4, 1), 0.5)
    ranks = [(1 / 24, sequential_ranks(one[:, None], half)[1:]) for one in orders]
    assert len({tuple(one.ravel()) for _, one in ranks}) == 24
    is_martingale(ranks)
    both = [  # two battles, three epochs
        (1 / 36, sequential_ranks(np.column_stack(pair), half[:3].repeat(2, axis=1))[1:])
        for pair in product(permutations((1.0, 2.0, 4.0)), repeat=2)
    ]
    is_martingale(both)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("strangeness", [False, True])
def test_equal_values_broken_at_random_leave_it_one(share, strangeness):
    """Of zeros and ones most are equal, and a value that differs comes late by chance alone."""
    found = []
    for values in product((0.0, 1.0), repeat=3):
        chance = math.prod(share if value else 1 - share for value in values) / 36
        for ties in product(SIXTHS, repeat=2):
            breaks = np.array([[0.5], *([one] for one in ties)])
            table = np.array(values)[:, None]
            found.append((chance, sequential_ranks(table, breaks, strangeness=strangeness)[1:]))
    is_martingale(found)


def test_a_rank_is_among_earlier_values_and_missing_ones_do_not_count():
    values = np.array([[3.0, np.nan, 1.0], [5.0, 2.0, np.nan], [4.0, 2.0, 0.0], [1.0, 7.0, 1.0]])
    low = np.zeros(values.shape)
    assert sequential_ranks(values, low).tolist() == [
        [0, 0, 0], [1, 0, 0], [0, -1, -1], [-1, 1, 0],
    ]  # fmt: skip
    high = sequential_ranks(values, low + 0.999)
    assert (high[2, 1], high[3, 2]) == (1, 1)


def test_a_stream_is_ranked_as_a_column_of_one_value_a_row():
    rng = np.random.default_rng(3)
    epoch = np.sort(rng.integers(0, 5, 40))
    values, ties = np.round(rng.normal(size=40), 1), np.full(40, 0.4)
    values[[3, 20]] = np.nan
    slow = sequential_ranks(values[:, None], np.full((40, 1), 0.4))[:, 0]
    rows = stream_ranks(values, epoch, ties, n_epochs=5)
    known = np.isfinite(values)
    for row, found in enumerate(rows, start=1):
        expected = slow[known & (epoch == row)]
        assert found[: expected.size] == pytest.approx(expected)
        assert not found[expected.size :].any()


def test_the_first_epoch_by_hand_and_what_is_past_stays():
    ranks = np.array([[1.0, 1.0, -1.0], [1.0, 1.0, 1.0]])
    begin = (1 / 2 + 1 / 104) / 2
    capital = np.mean([(1 + s) ** 2 * (1 - s) for s in (*STAKES, *(-s for s in STAKES))])
    assert math.exp(log_evidence(ranks)[0]) == pytest.approx(begin * capital + 1 - begin)
    assert log_evidence(ranks)[0] == log_evidence(ranks[:1])[0]
    assert log_evidence(np.zeros((520, 1)))[-1] == pytest.approx(0)  # ten years of nothing
    with pytest.raises(ValueError, match=r"ranks is 1\.5"):
        log_evidence([[1.5]])


def test_ties_are_broken_by_the_ids_of_battles():
    names = [f"b{i}" for i in range(2000)]
    ties = tie_breaks(names, 3)
    np.testing.assert_array_equal(tie_breaks(names[::-2], 2), ties[:2, ::-2])
    assert ((ties >= 0) & (ties < 1)).all()
    assert np.unique(ties).size == ties.size
    for each in (*ties, tie_breaks(names, 1, seed=1)[0]):
        assert kstest(each, "uniform").pvalue > 0.001
    assert abs(np.corrcoef([*ties, tie_breaks(names, 1, seed=1)[0]]) - np.eye(4)).max() < 0.1


def test_ever_exceeding_a_level_is_as_rare_as_promised():
    """The bound of Ville, at its tightest where the evidence moves in small steps."""
    rng, n_trials, level = np.random.default_rng(4), 2000, 5.0
    logs = [log_evidence(rng.uniform(-1, 1, (30, 4))) for _ in range(n_trials)]
    share = np.mean([log.max() >= math.log(level) for log in logs])
    assert share <= 1 / level + 3 * math.sqrt(0.2 * 0.8 / n_trials)
    assert share > 0


def test_the_panel_tells_whether_judge_or_system_moved():
    no = [False] * 8
    at = [row == 2 for row in range(8)]
    assert name_verdicts(no, no) == ["none"] * 8
    assert name_verdicts(at, no) == name_verdicts(at, at) == ["none"] * 2 + ["judge"] * 6
    waits = ["none"] * 2 + ["cannot tell"] * GUARD + ["system"] * 2
    assert name_verdicts(no, at) == waits
    late = [row == 4 for row in range(8)]
    assert name_verdicts(late, at) == ["none"] * 2 + ["cannot tell"] * 2 + ["judge"] * 4
    assert ever([False, True, False]).tolist() == [False, True, True]
