"""Corrected mean outcomes with ties and in strata, against exact mixtures and known truths."""

import math

import numpy as np
import pytest
from judges_that_err import adjusted, coverage, outcome_tables, play_judge

from judgeline.winrate import OUTCOMES, NoWinRateError, adjusted_mean, adjusted_shares
from judgeline.winrate.labels import JudgeCounts

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
    theirs = adjusted_shares(test, calibration)
    assert float(adjusted_mean(test[None], calibration[None]).win_rate) == pytest.approx(
        theirs.win_rate, abs=1e-9
    )


@pytest.mark.slow
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
    tables = [outcome_tables(counts) for counts in (short, long)]
    found = adjusted_mean(*(np.concatenate(part, axis=1) for part in zip(*tables, strict=True)))
    covered = coverage(found.lower, found.upper, truth)
    assert covered == pytest.approx(0.95, abs=0.01 + 4 * math.sqrt(0.05 * 0.95 / size))
    # Each stratum's ratio is biased by the order of its variance, far below its error.
    assert found.win_rate.mean() == pytest.approx(truth, abs=0.01)
    pooled = adjusted(JudgeCounts(*(a + b for a, b in zip(short, long, strict=True))))
    assert abs(pooled.win_rate.mean() - truth) > 0.05


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


GOOD = [[9, 0, 1], [0, 0, 0], [1, 0, 9]]


@pytest.mark.parametrize(
    ("test", "known", "status", "told"),
    [
        ([[5, 0, 5]], [[[1, 0, 9], [0, 0, 0], [9, 0, 1]]], "chance", "no better than chance"),
        ([[5, 0, 5]], [[[2, 0, 1], [0, 0, 0], [98, 0, 0]]], "chance", "no higher .* no better"),
        ([[5, 0, 5]], [[[9, 0, 0], [0, 0, 0], [1, 0, 0]]], "class-absent", "no vote that is lost"),
        ([[5, 0, 5]], [[[0, 0, 0], [9, 0, 9], [0, 0, 0]]], "chance", "stratum 0 of 1"),
        ([[5, 0, 5]], [[[0, 5, 0], [0, 5, 0], [0, 5, 0]]], "all-ties", "no vote without a tie"),
        ([[0, 0, 0]], [GOOD], "all-ties", "no test battle"),
        ([[5, 0, 5], [1, 0, 0]], [GOOD, np.zeros((3, 3))], "all-ties", "stratum 1 of 2"),
    ],
)
def test_battles_that_allow_no_correction_are_refused(test, known, status, told) -> None:
    with pytest.raises(NoWinRateError, match=told) as refusal:
        adjusted_mean(test, known)
    assert refusal.value.status == status


@pytest.mark.parametrize(
    ("test", "told"),
    [([5, 0, 5], r"got \(3,\)"), ([[0.5, 0, 5]], "whole numbers from 0, got 0.5")],
)
def test_bad_counts_are_refused(test, told) -> None:
    with pytest.raises(ValueError, match=told):
        adjusted_mean(test, [GOOD])
