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
    Mixed,
    Placement,
    all_models,
    headline_ratings,
    human_placement,
    judge_placement,
    voted_models,
)

from judgeline.elo import HeldOutRatings, RatingSettings
from judgeline.elo import rate as rate_battles

PLAIN = ("hard", "soft", *(f"smoothed-{level}" for level in SMOOTHING_LEVELS))
ON_THE_RULER = ("hard-rescaled", "soft-rescaled", "average", "gap", "auto")
JUDGE_METHODS = (*PLAIN, *ON_THE_RULER)
NO_BOOTSTRAP = RatingSettings(n_resamples=0)

Rows = dict[tuple[str, str], dict[str, Any]]


def rate(
    battles: Sequence[Battle], settings: RatingSettings = NO_BOOTSTRAP, **options: Any
) -> HeldOutRatings:
    return rate_battles(code(battles), settings, **options)


def by_model_and_method(heldout: HeldOutRatings) -> Rows:
    rows = [dict(zip(heldout._fields, row, strict=True)) for row in zip(*heldout, strict=True)]
    table = {(str(row["model"]), str(row["method"])): row for row in rows}
    assert len(table) == len(rows)
    return table


def assert_rating(row: dict[str, Any], expected: Placement | Mixed | None) -> None:
    """The rating within 1e-7 logits of the twin's, and its closed-form error with it."""
    if expected is None:
        assert math.isnan(row["rating"]), row
        return
    logits = (expected.rating - 1500) / ELO_PER_LOGIT
    assert (row["rating"] - 1500) / ELO_PER_LOGIT == pytest.approx(logits, rel=1e-7, abs=1e-7), row
    error = pytest.approx(expected.std_error(), rel=1e-5, abs=1e-2, nan_ok=True)
    assert row["std_error_analytic"] == error, row


def assert_like_the_twin(battles: Sequence[Battle], l2: float) -> None:
    rows = by_model_and_method(rate(battles, RatingSettings(l2=l2, n_resamples=0)))
    voted = voted_models(battles)
    for model in all_models(battles):
        human = human_placement(battles, model, l2) if model in voted else None
        if model in voted:
            assert_rating(rows[model, "human"], human)
        else:
            assert (model, "human") not in rows
        twins = {method: judge_placement(battles, model, method, l2) for method in PLAIN}
        for method, expected in (twins | headline_ratings(battles, model, l2)).items():
            row = rows[model, method]
            assert_rating(row, expected)
            if human is not None and not math.isnan(row["rating"]):
                assert row["residual"] == pytest.approx(row["rating"] - human.rating, abs=1e-5)
            else:
                assert math.isnan(row["residual"])
