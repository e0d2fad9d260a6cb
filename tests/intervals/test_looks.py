"""Errors over many looks: sums and expectations exactly, tails by scipy, error by simulation."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm, t

from judgeline.intervals import BROKEN_FROM, evidence_against, level_of_look, tail_ratio
from judgeline.intervals.looks import STAKES


def test_levels_of_all_looks_sum_to_the_error() -> None:
    looks = 200
    exact = sum(Fraction(1, 20) / (k * (k + 1)) for k in range(1, looks + 1))
    assert exact == Fraction(1, 20) * (
        1 - Fraction(1, looks + 1)
    )  # telescopes: below 1/20 for ever
    spent = [level_of_look(0.05, k) for k in range(1, looks + 1)]
    assert math.fsum(spent) == pytest.approx(float(exact), rel=1e-12)
    assert math.fsum(level_of_look(0.05, k, 12) for k in range(1, 13)) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((0.5, 1), "error is 0.5; expected 1e-06 or more, below 1/2"),
        ((1e-30, 1), "error is 1e-30; expected 1e-06 or more, below 1/2, such as 0.05"),
        ((0.05, 0), "look is 0; expected 1 or more"),
        ((0.05, 13, 12), "look is 13; expected at most 12, as many as were planned"),
    ],
)
def test_a_look_beyond_the_plan_is_refused(values, told) -> None:
    with pytest.raises(ValueError, match=told):
        level_of_look(*values)


@pytest.mark.parametrize(("n", "tails"), [(9, t(8)), (58, t(57)), (8, t(7)), (7, norm), (0, norm)])
def test_half_widths_grow_as_students_t_where_models_calibrate(n, tails) -> None:
    found = tail_ratio(
        0.004, miscoverage=0.1, n_calibrating=n
    )  # below eight beside two, votes alone
    assert found == pytest.approx(tails.ppf(0.996) / tails.ppf(0.95), rel=1e-9)
    assert tail_ratio(0.05, miscoverage=0.1, n_calibrating=n) == 1
    late = tail_ratio(1e-18, miscoverage=0.1, n_calibrating=n)  # the look of 1e6 of a long ledger
    assert late == pytest.approx(tails.isf(1e-18) / tails.isf(0.05), rel=1e-6)


def by_hand(missed: tuple[int, ...], promised: Fraction) -> Fraction:
    capitals = [Fraction(str(stake)) for stake in STAKES]
    products = [
        math.prod(1 + stake / promised * (miss - promised) for miss in missed) for stake in capitals
    ]
    return sum(products, Fraction()) / len(products)


def test_evidence_is_a_martingale_and_reaches_20_at_most_once_in_20() -> None:
    """All 1,024 sequences of ten releases, in rational arithmetic."""
    promised, n = Fraction(1, 10), 10
    expected = passed = Fraction()
    for missed in product((0, 1), repeat=n):
        chance = promised ** sum(missed) * (1 - promised) ** (n - sum(missed))
        expected += chance * by_hand(missed, promised)
        found = evidence_against(missed, np.full(n, 0.1))
        assert found[-1] == pytest.approx(float(by_hand(missed, promised)), rel=1e-9)
        passed += chance * bool(found.max() >= BROKEN_FROM)
    assert expected == 1
    assert 0 < passed <= Fraction(1, 20)


def test_predictions_of_one_release_count_once_however_they_hang_together() -> None:
    together = evidence_against([1.0], [0.1])[-1]
    assert together == pytest.approx(1 + 9 * np.mean(STAKES))
    halves = [evidence_against([share], [0.1])[-1] for share in (0.0, 1.0)]
    assert 0.9 * halves[0] + 0.1 * halves[1] == pytest.approx(1)  # all miss, or none
    assert evidence_against([], []).size == 0


def test_a_year_of_looks_errs_at_most_once_in_twenty() -> None:
    """Conformal intervals at an exact rank, whose pool grows by each release that was scored."""
    rng, releases, broken, runs = np.random.default_rng(5), 52, 0, 1500
    for _ in range(runs):
        scores = rng.random(20 + releases)
        stranger = [(scores[: 20 + k] > scores[20 + k]).sum() for k in range(releases)]
        allowed = [math.floor((21 + k) / 10) for k in range(releases)]
        missed = np.less(stranger, allowed)
        broken += evidence_against(missed, np.full(releases, 0.1)).max() >= BROKEN_FROM
    assert broken / runs <= 0.05
    kept = evidence_against(np.zeros(33), np.full(33, 0.1))
    assert np.all(np.diff(kept) < 0)
    lost = evidence_against(np.arange(52) % 3 == 0, np.full(52, 0.1))  # misses a third, not a tenth
    assert lost[-1] > BROKEN_FROM


@pytest.mark.parametrize(
    ("missed", "level", "told"), [([1.5], [0.1], "missed is 1.5"), ([1], [0], "miscoverage is 0")]
)
def test_impossible_shares_are_refused(missed, level, told) -> None:
    with pytest.raises(ValueError, match=told):
        evidence_against(missed, level)
