"""Errors that fit everything again: against fresh arenas, and what intervals are made of."""

import numpy as np
import pytest
from arenas import code, dense_battles, play

from judgeline.elo import JUDGE_METHODS, RatingSettings, rate
from judgeline.intervals import RefitErrors, calibrating_models, refit_errors, variance_by_source

SIZE = 8
STRENGTH = np.linspace(-0.8, 0.8, SIZE)
PAIRS = [(a, b) for a in range(SIZE) for b in range(a + 1, SIZE)] * 6


def rated(battles, method: str = "hard-rescaled"):
    found = rate(battles, RatingSettings(n_resamples=0))
    return found.take(found.method == method)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["hard-rescaled", "gap"])
def test_they_are_the_spread_of_ratings_over_fresh_battles(method: str) -> None:
    arenas = [code(play(np.random.default_rng(seed), PAIRS, STRENGTH)) for seed in range(150)]
    fresh = np.array([rated(one, method).rating for one in arenas])
    truth = np.sqrt(np.nanvar(fresh, axis=0, ddof=1).mean())
    told = [refit_errors(one, method=method, n_refits=40).std_error for one in arenas[:8]]
    fixed = [rated(one, method).std_error_analytic for one in arenas[:8]]
    refitted, held = (np.sqrt(np.nanmean(np.square(errors))) for errors in (told, fixed))
    assert refitted == pytest.approx(truth, rel=0.25)
    assert held < refitted, "the fixed anchors hide a part of it"


def test_a_resample_keeps_clusters_whole_and_equal_seeds_agree() -> None:
    battles = code(dense_battles(1, size=5))
    question = np.arange(len(battles)) // 4
    first, again = (
        refit_errors(battles, method="hard", n_refits=5, cluster=question) for _ in range(2)
    )
    assert first.std_error.tolist() == again.std_error.tolist()
    one_cluster = refit_errors(battles, method="hard", n_refits=5, cluster=np.zeros(len(battles)))
    assert np.abs(one_cluster.std_error).max() < 1e-6, "the same battles every time, counted once"
    assert (first.std_error > 1).all()


def test_what_cannot_be_refitted_is_refused_or_has_no_error() -> None:
    battles = code(dense_battles(2, size=5))
    with pytest.raises(ValueError, match="n_refits is 1"):
        refit_errors(battles, method="hard", n_refits=1)
    with pytest.raises(ValueError, match="method is 'best'") as refused:
        refit_errors(battles, method="best", n_refits=2)
    assert [name for name in ("human", *JUDGE_METHODS) if name not in str(refused.value)] == []
    smoothed = refit_errors(battles, method="smoothed-0.75", n_refits=3).std_error
    assert (smoothed > 1).all()
    few = battles.take(np.arange(12))
    found = refit_errors(few, method="hard", n_refits=20)
    assert np.isnan(found.std_error[found.n_failed > 1]).all()


def test_shares_of_variance_are_those_of_the_mean_squares() -> None:
    heldout = rate(code(dense_battles(3)), RatingSettings(n_resamples=0))
    names = np.unique(heldout.model)
    own = heldout.take(heldout.method == "auto")
    refits = RefitErrors(
        names, 2 * own.std_error_analytic, np.full(names.size, 9), np.zeros(names.size, int)
    )
    shares = variance_by_source(heldout, refits, method="auto", std_error="analytic")
    square = dict(zip(shares.source.tolist(), np.square(shares.elo).tolist(), strict=True))
    verdicts = float(np.mean(own.std_error_analytic**2))
    excess = calibrating_models(heldout, "auto", "analytic").excess_sd
    assert square["verdicts"] == pytest.approx(verdicts)
    assert square["anchors"] == pytest.approx(3 * verdicts)
    assert square["votes"] == pytest.approx(float(np.mean(own.vote_std_error**2)))
    assert square["judge"] == pytest.approx(max(excess**2 - 3 * verdicts, 0))
    assert shares.share.sum() == pytest.approx(1)


def test_a_model_without_a_refitted_error_is_in_no_mean() -> None:
    heldout = rate(code(dense_battles(3)), RatingSettings(n_resamples=0))
    own = calibrating_models(heldout, "auto", "analytic")
    size = own.model.size
    wild = np.where(np.arange(size) == 0, np.nan, own.std_error)
    refits = RefitErrors(own.model, wild, np.full(size, 9), np.zeros(size, int))
    shares = variance_by_source(heldout, refits, method="auto", std_error="analytic")
    square = dict(zip(shares.source.tolist(), np.square(shares.elo).tolist(), strict=True))
    assert square["anchors"] == pytest.approx(0, abs=1e-9)
    assert square["verdicts"] == pytest.approx(float(np.mean(own.std_error[1:] ** 2)))
    nobody = refits._replace(std_error=np.full(size, np.nan))
    unknown = variance_by_source(heldout, nobody, method="auto", std_error="analytic")
    assert np.isnan(unknown.share).all()


@pytest.mark.parametrize("seed", range(3))
def test_sources_add_up_to_what_intervals_are_made_of(seed: int) -> None:
    heldout = rate(code(dense_battles(seed)), RatingSettings(n_resamples=0))
    own = calibrating_models(heldout, "auto", "analytic")
    names = np.unique(heldout.model)
    refits = RefitErrors(
        names, 1.1 * own.std_error, np.full(names.size, 9), np.zeros(names.size, int)
    )
    shares = variance_by_source(heldout, refits, method="auto", std_error="analytic")
    assert (shares.share >= 0).all()
    if own.excess_sd**2 > 0.21 * np.mean(own.std_error**2):
        spread = own.spread(own.std_error, own.vote_std_error)
        assert np.square(shares.elo).sum() == pytest.approx(np.mean(spread**2))
