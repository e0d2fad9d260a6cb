"""Corrected mean outcomes against exact mixtures, the binary estimate and known truths."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgeline.adjusted_means import adjusted_mean, can_be_corrected
from judgeline.adjusted_shares import OUTCOMES, TernaryCounts, adjusted_shares
from judgeline.adjusted_strata import stratified_win_rate
from judgeline.outcome_tables import decisive_counts

SHARES = np.array([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])  # of humans, in two strata
NEVER_TIES = np.array([[0.9, 0.6, 0.2], [0.0, 0.0, 0.0], [0.1, 0.4, 0.8]])


def test_an_exact_mixture_gives_back_the_win_rate_though_the_judge_never_ties() -> None:
    calibration = 1000 * NEVER_TIES * SHARES[:, None]
    test = 1000 * (NEVER_TIES @ SHARES[..., None])[..., 0] * np.array([[1], [3]])
    found = adjusted_mean(np.rint(test), np.rint(calibration))
    truth = (SHARES @ OUTCOMES) @ np.array([0.25, 0.75])
    assert float(found.win_rate) == pytest.approx(truth, abs=1e-12)


def test_where_ties_are_midway_their_share_does_not_matter() -> None:
    midway = np.array([[0.8, 0.5, 0.2], [0.0, 0.0, 0.0], [0.2, 0.5, 0.8]])
    few, many = (np.rint(1000 * midway * np.array(part)) for part in ([4, 1, 5], [2, 7, 1]))
    test = np.array([[620, 0, 380]])  # mean 0.62, from (0.62 - 0.2) / 0.6
    for calibration in (few, many):
        assert float(adjusted_mean(test, calibration[None]).win_rate) == pytest.approx(0.7)


def test_with_a_judge_that_ties_it_agrees_with_the_inverted_matrix() -> None:
    confusion = np.array([[0.75, 0.25, 0.08], [0.15, 0.5, 0.17], [0.1, 0.25, 0.75]])
    calibration = np.rint(2000 * confusion * SHARES[0])
    test = np.rint(2000 * confusion @ SHARES[0])
    theirs = adjusted_shares(TernaryCounts(test, calibration))
    assert float(adjusted_mean(test[None], calibration[None]).win_rate) == pytest.approx(
        theirs.win_rate, abs=1e-9
    )


counts = st.integers(1, 200)


@settings(deadline=None)
@given(test=st.lists(st.tuples(counts, counts), min_size=1, max_size=3), data=st.data())
def test_without_ties_it_is_the_stratified_binary_estimate(test, data) -> None:
    said = np.array([[won, 0, lost] for won, lost in test])
    known = np.zeros((len(test), 3, 3), int)
    for row, column in ((0, 0), (0, 2), (2, 0), (2, 2)):
        known[:, row, column] = [data.draw(st.integers(0, 60)) for _ in test]
    if not can_be_corrected(said, known):
        return
    ours = adjusted_mean(said, known, miscoverage=0.1)
    theirs = stratified_win_rate(decisive_counts(said, known), miscoverage=0.1)
    for name in ("win_rate", "lower", "upper", "std_error"):
        assert float(getattr(ours, name)) == pytest.approx(getattr(theirs, name), abs=1e-9)


def test_intervals_cover_over_simulated_judges_that_never_tie() -> None:
    rng, n = np.random.default_rng(3), 2000
    known, said = np.zeros((n, 2, 3, 3), int), np.zeros((n, 2, 3), int)
    for stratum, shares in enumerate(SHARES):
        by_human = rng.multinomial(150, shares, size=n)
        for human in range(3):
            known[:, stratum, :, human] = rng.multinomial(by_human[:, human], NEVER_TIES[:, human])
        said[:, stratum] = rng.multinomial(400, NEVER_TIES @ shares, size=n)
    found = adjusted_mean(said, known, miscoverage=0.1)
    truth = (SHARES @ OUTCOMES).mean()
    hits = (found.lower <= truth) & (truth <= found.upper)
    monte_carlo_error = math.sqrt(0.9 * 0.1 / n)
    assert hits.mean() == pytest.approx(0.9, abs=4 * monte_carlo_error + 0.005)
    assert found.win_rate.std() == pytest.approx(found.std_error.mean(), rel=0.1)


def test_strata_without_test_battles_have_no_weight() -> None:
    known = np.array([[[30, 5, 10], [0, 0, 0], [10, 5, 30]], np.zeros((3, 3))])
    alone = adjusted_mean([[50, 0, 30]], known[:1])
    for ours, theirs in zip(adjusted_mean([[50, 0, 30], [0, 0, 0]], known), alone, strict=True):
        assert float(ours) == pytest.approx(float(theirs))


@pytest.mark.parametrize(
    ("test", "known", "told"),
    [
        ([[5, 0, 5]], [[[1, 0, 9], [0, 0, 0], [9, 0, 1]]], "no better than chance"),
        ([[5, 0, 5]], [[[9, 0, 0], [0, 0, 0], [1, 0, 0]]], "no vote that is won, or none"),
        ([[0, 0, 0]], [[[9, 0, 1], [0, 0, 0], [1, 0, 9]]], "a stratum"),
        ([5, 0, 5], [[[9, 0, 1], [0, 0, 0], [1, 0, 9]]], r"got \(3,\)"),
        ([[0.5, 0, 5]], [[[9, 0, 1], [0, 0, 0], [1, 0, 9]]], "whole numbers from 0, got 0.5"),
    ],
)
def test_bad_counts_are_refused(test, known, told) -> None:
    with pytest.raises(ValueError, match=told):
        adjusted_mean(test, known)
