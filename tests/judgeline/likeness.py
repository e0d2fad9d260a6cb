"""Hold the core's held-out ratings to the slow twins, row by row."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from arenas import code
from twins import (
    ELO_PER_LOGIT,
    SMOOTHING_LEVELS,
    Battle,
    Placement,
    all_models,
    human_placement,
    judge_placement,
    voted_models,
)

from judgeline.beta import fit_beta_folds
from judgeline.heldout import HeldOutRatings, RatingSettings, fit_heldout_ratings

JUDGE_METHODS = ("hard", "soft", *(f"smoothed-{level}" for level in SMOOTHING_LEVELS))
NO_BOOTSTRAP = RatingSettings(n_resamples=0)

Rows = dict[tuple[str, str], dict[str, Any]]


def rate(
    battles: Sequence[Battle], settings: RatingSettings = NO_BOOTSTRAP, **options: Any
) -> HeldOutRatings:
    coded = code(battles)
    return fit_heldout_ratings(coded, fit_beta_folds(coded), settings, **options)


def by_model_and_method(heldout: HeldOutRatings) -> Rows:
    rows = [dict(zip(heldout._fields, row, strict=True)) for row in zip(*heldout, strict=True)]
    table = {(str(row["model"]), str(row["method"])): row for row in rows}
    assert len(table) == len(rows)
    return table


def assert_rating(row: dict[str, Any], expected: Placement | None) -> None:
    """The rating within 1e-8 logits of the twin's, and its closed-form error with it."""
    if expected is None:
        assert math.isnan(row["rating"]), row
        return
    assert abs((row["rating"] - expected.rating) / ELO_PER_LOGIT) < 1e-8, (row, expected.rating)
    error = expected.std_error()
    assert row["std_error_analytic"] == pytest.approx(error, rel=1e-6, abs=1e-2, nan_ok=True)
    if error > 1:
        assert row["std_error_analytic"] == pytest.approx(error, rel=1e-6)


def assert_like_the_twin(battles: Sequence[Battle], l2: float) -> None:
    rows = by_model_and_method(rate(battles, RatingSettings(l2=l2, n_resamples=0)))
    voted = voted_models(battles)
    for model in all_models(battles):
        human = human_placement(battles, model, l2) if model in voted else None
        if model in voted:
            assert_rating(rows[model, "human"], human)
        else:
            assert (model, "human") not in rows
        for method in JUDGE_METHODS:
            row = rows[model, method]
            assert_rating(row, judge_placement(battles, model, method, l2))
            if human is not None and not math.isnan(row["rating"]):
                assert row["residual"] == pytest.approx(row["rating"] - human.rating, abs=1e-5)
            else:
                assert math.isnan(row["residual"])
