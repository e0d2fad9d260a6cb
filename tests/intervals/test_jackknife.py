"""The jackknife+ of the study, against its definition, row by row."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from arenas import code, dense_battles, name
from jackknife import jackknife_intervals, jackknife_plus
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
