"""Strata corrected then aggregated, and why not the other way round."""

import math

import numpy as np
import pytest
from judges_that_err import coverage, play_judge

from judgeline.adjusted import adjusted_win_rate
from judgeline.adjusted_strata import stratified_win_rate
from judgeline.judge_counts import JudgeCounts

SHORT_AND_LONG = JudgeCounts([600, 400], [240, 300], [50, 60], [45, 36], [50, 70], [40, 63])


def test_one_stratum_is_the_plain_win_rate() -> None:
    plain = adjusted_win_rate(JudgeCounts(600, 240, 50, 45, 50, 40))
    ours = stratified_win_rate(JudgeCounts([600], [240], [50], [45], [50], [40]))
    assert ours[:4] == pytest.approx((plain.win_rate, plain.lower, plain.upper, plain.std_error))


def test_the_win_rate_is_the_weighted_mean_by_hand() -> None:
    ours = stratified_win_rate(SHORT_AND_LONG)
    short, long = (0.4 - 0.1) / 0.7, (0.75 - 0.4) / 0.5
    np.testing.assert_allclose(ours.stratum_win_rate, [short, long])
    assert ours.win_rate == pytest.approx(0.6 * short + 0.4 * long)
    weighted = stratified_win_rate(SHORT_AND_LONG, weight=[1, 3])
    assert weighted.win_rate == pytest.approx(0.25 * short + 0.75 * long)
    assert weighted.weight.tolist() == [0.25, 0.75]


def test_variances_add_as_of_independent_strata() -> None:
    each = [
        adjusted_win_rate(JudgeCounts(*(part[row] for part in SHORT_AND_LONG))) for row in (0, 1)
    ]
    ours = stratified_win_rate(SHORT_AND_LONG, weight=[0.3, 0.7])
    expected = math.hypot(0.3 * each[0].std_error, 0.7 * each[1].std_error)
    assert ours.std_error == pytest.approx(expected)


def test_order_of_strata_does_not_matter_and_weight_zero_leaves_one_out() -> None:
    turned = JudgeCounts(*(part[::-1] for part in SHORT_AND_LONG))
    ours, theirs = stratified_win_rate(SHORT_AND_LONG), stratified_win_rate(turned)
    assert ours[:4] == pytest.approx(theirs[:4])
    alone = stratified_win_rate(JudgeCounts(*(part[:1] for part in SHORT_AND_LONG)))
    assert stratified_win_rate(SHORT_AND_LONG, weight=[1, 0])[:4] == pytest.approx(alone[:4])


def test_strata_stay_right_where_one_correction_for_all_is_biased() -> None:
    """The judge errs with length, and test battles are longer than calibration battles."""
    rng, size = np.random.default_rng(17), 4000
    short = play_judge(
        rng, 0.3, n_replications=size, n_test=300, n_lost=160, n_won=140,
        specificity=0.95, sensitivity=0.7,
    )  # fmt: skip
    long = play_judge(
        rng, 0.6, n_replications=size, n_test=700, n_lost=50, n_won=50,
        specificity=0.6, sensitivity=0.95,
    )  # fmt: skip
    truth = 0.3 * 0.3 + 0.7 * 0.6
    rows = [JudgeCounts(*zip(a, b, strict=True)) for a, b in _rows(short, long)]
    found = [stratified_win_rate(row) for row in rows]
    rates = np.array([row.win_rate for row in found])
    covered = coverage(
        np.array([row.lower for row in found]), np.array([row.upper for row in found]), truth
    )
    assert covered == pytest.approx(0.95, abs=0.01 + 4 * math.sqrt(0.05 * 0.95 / size))
    # Each stratum's ratio is biased by the order of its variance, far below its error.
    assert rates.mean() == pytest.approx(truth, abs=0.01)
    pooled = adjusted_win_rate(
        JudgeCounts(*(a + b for a, b in zip(short, long, strict=True))), miscoverage=0.05
    )
    assert abs(pooled.win_rate.mean() - truth) > 0.05


def _rows(first: JudgeCounts, second: JudgeCounts) -> list[tuple[tuple, tuple]]:
    return list(zip(zip(*first, strict=True), zip(*second, strict=True), strict=True))


@pytest.mark.parametrize(
    ("weight", "told"),
    [
        ([1, 2, 3], r"weight must have shape \(2,\), got \(3,\)"),
        ([0, 0], "not all 0"),
        ([1, -1], "weights must be finite"),
        ([1, math.nan], "weights must be finite"),
    ],
)
def test_bad_weights_are_refused(weight: list[float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        stratified_win_rate(SHORT_AND_LONG, weight=weight)


def test_a_stratum_that_cannot_be_corrected_is_named() -> None:
    with pytest.raises(ValueError, match=r"no better than chance") as caught:
        stratified_win_rate(JudgeCounts([9, 9], [5, 5], [9, 9], [8, 4], [9, 9], [8, 4]))
    assert "index (1,)" in str(caught.value)
    with pytest.raises(ValueError, match=r"n_won is 0 at index \(0,\)"):
        stratified_win_rate(JudgeCounts([9, 9], [5, 5], [9, 9], [8, 8], [0, 9], [0, 8]))
    with pytest.raises(ValueError, match=r"must have shape \(s,\), got \(\)"):
        stratified_win_rate(JudgeCounts(9, 5, 9, 8, 9, 8))
