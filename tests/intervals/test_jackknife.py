"""Jackknife+ against its definition, row by row, and in simulations where the jackknife fails."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from arenas import code, dense_battles, name
from lanes import sized
from test_coverage import arena_battles
from twins import (
    ELO_PER_LOGIT,
    Battle,
    all_models,
    fold_anchors,
    headline_ratings,
    human_outcome,
    human_placement,
    voted_models,
)
from unlike_models import try_jackknife_plus

from judgeline.elo import RatingSettings, rate
from judgeline.intervals import (
    conformal_quantile,
    jackknife_intervals,
    jackknife_plus,
    rank_models,
)


def ends_by_definition(
    prediction: list[float], residual: list[float], miscoverage: Fraction
) -> tuple[float, float]:
    """Equation 1.2 of Barber et al.: order statistics in rational arithmetic."""
    n = len(prediction)
    lows = sorted(p - abs(r) for p, r in zip(prediction, residual, strict=True))
    highs = sorted(p + abs(r) for p, r in zip(prediction, residual, strict=True))
    from_below = math.floor(miscoverage * (n + 1))
    from_above = math.ceil((1 - miscoverage) * (n + 1))
    return (
        lows[from_below - 1] if from_below >= 1 else -math.inf,
        highs[from_above - 1] if from_above <= n else math.inf,
    )


def test_ends_are_the_order_statistics_of_the_definition() -> None:
    for n, tenths in itertools.product(range(40), range(1, 6)):
        rng = np.random.default_rng([n, tenths])
        prediction, residual = rng.normal(size=(2, n))
        found = jackknife_plus(prediction, residual, miscoverage=tenths / 10)
        assert found == ends_by_definition(
            prediction.tolist(), residual.tolist(), Fraction(tenths, 10)
        )


def test_a_calibrating_model_without_a_residual_only_widens() -> None:
    prediction, residual = np.zeros(19), np.arange(1.0, 20)
    assert jackknife_plus(prediction, residual, miscoverage=0.1) == (-18, 18)
    residual[4] = math.nan
    assert jackknife_plus(prediction, residual, miscoverage=0.1) == (-19, 19)
    residual[3] = math.nan
    assert jackknife_plus(prediction, residual, miscoverage=0.1) == (-math.inf, math.inf)


# ------------------------------------------------------------------ arenas


def without_votes(battles: list[Battle], *models: str) -> list[Battle]:
    return [replace(b, human=None) if {*models} & {*b.models()} else b for b in battles]


def ends_by_twins(
    battles: list[Battle], model: str, miscoverage: Fraction, method: str = "gap"
) -> tuple[float, float]:
    """Every pair of models left out, one fit each, among the slow twins."""
    anchors = fold_anchors(battles, model, human_outcome, 0.01, only_votes=True) or {}
    predictions, residuals = [], []
    for other in voted_models(without_votes(battles, model)):
        neither = without_votes(battles, model, other)
        judged = {m: headline_ratings(neither, m, 0.01)[method] for m in (model, other)}
        people = human_placement(without_votes(battles, model), other, 0.01)
        left = without_votes(battles, other)
        known = fold_anchors(left, model, human_outcome, 0.01, only_votes=True) or {}
        rest = [strength for m, strength in anchors.items() if m in known]
        predictions.append(judged[model].rating + ELO_PER_LOGIT * np.mean(rest))
        residuals.append(judged[other].rating - people.rating if people else math.inf)
    return ends_by_definition(predictions, residuals, miscoverage)


def test_intervals_are_those_of_the_twins() -> None:
    battles = without_votes(dense_battles(3, size=6), name(5))
    found = jackknife_intervals(code(battles), miscoverage=0.2)
    assert found.model.tolist() == all_models(battles)
    for model, *ends in zip(*found, strict=True):
        expected = ends_by_twins(battles, model, Fraction(1, 5))
        assert ends == pytest.approx(expected, abs=1e-3), model


def test_intervals_of_the_average_are_those_of_the_twins() -> None:
    battles = dense_battles(8, size=6)
    found = jackknife_intervals(code(battles), method="average", miscoverage=0.2)
    for model, *ends in zip(*found, strict=True):
        expected = ends_by_twins(battles, model, Fraction(1, 5), "average")
        assert np.isfinite(expected).all()
        assert ends == pytest.approx(expected, abs=1e-3), model


def test_auto_stands_for_what_it_is_on_the_board() -> None:
    """Twenty models have votes: for each of them 19 others do, for the last one 20."""
    battles = code(without_votes(dense_battles(10, size=21)[::4], name(20)))
    auto, gap, average = (
        jackknife_intervals(battles, method=m) for m in ("auto", "gap", "average")
    )
    assert auto.upper[:20].tolist() == gap.upper[:20].tolist()
    assert (auto.upper[20], auto.lower[20]) == (average.upper[20], average.lower[20])
    assert (np.isfinite(gap.upper) & (gap.upper != average.upper)).all()


def test_a_model_whose_votes_leave_with_another_makes_that_ones_residual_infinite() -> None:
    battles = [
        replace(b, human=None) if name(5) in b.models() and name(0) not in b.models() else b
        for b in dense_battles(9, size=7)
    ]
    found = jackknife_intervals(code(battles), miscoverage=0.3)
    for row in (1, 6):
        expected = ends_by_twins(battles, name(row), Fraction(3, 10))
        assert np.isfinite(expected).all()
        assert (found.lower[row], found.upper[row]) == pytest.approx(expected, abs=1e-3)


def test_no_vote_on_a_model_moves_its_interval() -> None:
    battles = dense_battles(4, size=7)
    reversed_votes = [
        replace(b, human=1 - b.human) if name(2) in b.models() else b for b in battles
    ]
    first, other = (
        jackknife_intervals(code(b), miscoverage=0.2) for b in (battles, reversed_votes)
    )
    assert (first.lower[2], first.upper[2]) == (other.lower[2], other.upper[2])
    assert (first.lower != other.lower).sum() == 6


def test_a_model_that_holds_the_others_together_counts_as_a_miss() -> None:
    """Votes of two halves meet in one model alone: without it nothing ties them."""
    halves = [
        b
        for b in dense_battles(5, size=9)
        if name(4) in b.models() or (b.model_a < name(4)) == (b.model_b < name(4))
    ]
    strict, lenient = (
        jackknife_intervals(code(halves), method="hard-rescaled", miscoverage=m) for m in (0.2, 0.3)
    )
    rows = np.arange(9) != 4
    assert np.isinf(strict.lower[rows]).all(), "the largest of eight residuals is infinite"
    assert np.isfinite(lenient.lower[rows]).all(), "the second largest is not"
    assert np.isinf(lenient.lower[4]), "nobody can be placed without it"


# ------------------------------------------------------------------ promises


def test_it_holds_where_the_jackknife_does_not() -> None:
    """Barber et al., section 7: as many weights as observations, 11 and 19 of them."""
    for n in (11, 19):
        found = try_jackknife_plus(n, n_trials=400, rng=np.random.default_rng(n))
        assert np.mean(found.held) > 0.88
        assert np.mean(found.plain_held) < 0.7
        assert 1.2 < np.median(found.width / found.plain_width) < 1.4, "the price in width"


@pytest.mark.slow
def test_a_new_models_interval_holds_with_eleven_voted_ones_where_halves_are_too_few() -> None:
    held, ratio = [], []
    for seed in range(sized(150, 50)):
        whole, before = (
            arena_battles(seed, size=12),
            arena_battles(seed, size=12, first_is_new=True),
        )
        board = rank_models(rate(before, RatingSettings(n_resamples=0)))
        people = rate(whole, RatingSettings(n_resamples=0), models=["m00"]).human_rating[0]
        found = jackknife_intervals(before)
        held.append(found.lower[0] <= people <= found.upper[0])
        new = board.model == "m00"
        ratio.append((found.upper - found.lower)[0] / (board.upper - board.lower)[new][0])
    assert np.mean(held) >= 0.8
    assert 0.8 < np.median(ratio) < 1.25
    assert conformal_quantile(np.ones(5), miscoverage=0.1) == math.inf, "half of eleven"
