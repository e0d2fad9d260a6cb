import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.elo import ratings

MODELS = ("ant", "bee", "cat", "dog")


@pytest.fixture
def heldout() -> pd.DataFrame:
    rows = [
        {
            "model": model,
            "method": method,
            "rating": 1500.0 + 50 * i + shift,
            "human_rating": 1500.0 + 50 * i,
            "residual": shift,
            "std_error": 20.0,
            "std_error_analytic": 21.0,
            "flags": "",
        }
        for i, model in enumerate(MODELS)
        for method, shift in (("human", 0.0), ("hard", 30.0), ("soft", -10.0), ("auto", 8.0))
    ]
    return pd.DataFrame(rows)


def _at(table, model, method, **values):
    table = table.copy()
    table.loc[table["model"].eq(model) & table["method"].eq(method), list(values)] = list(
        values.values()
    )
    return table


@pytest.mark.parametrize(
    "breakage",
    [
        lambda t: t[~(t["model"].eq("dog") & t["method"].eq("soft"))],
        lambda t: pd.concat([t, t[t["model"].eq("dog")]]),
        lambda t: _at(t, "dog", "soft", rating=np.nan),
        lambda t: _at(t, "dog", "soft", rating=np.inf),
        lambda t: _at(t, "dog", "hard", rating=-np.inf),
        lambda t: t[t["model"].ne("dog")],
    ],
)
def test_every_model_is_placed(heldout, scored_battles, breakage):
    check = ratings.every_model_is_placed
    assert check(heldout, scored_battles).passed
    result = check(breakage(heldout), scored_battles)
    assert not result.passed
    assert "dog" in result.description
    assert "ant" not in result.description


def test_a_missing_rating_with_a_reason_does_not_stop_the_others(heldout, scored_battles):
    told = _at(heldout, "dog", "soft", rating=np.nan, flags="anchors-disconnected")
    assert ratings.every_model_is_placed(told, scored_battles).passed


def test_standard_errors_agree(heldout):
    assert ratings.standard_errors_agree(heldout).passed
    result = ratings.standard_errors_agree(_at(heldout, "bee", "soft", std_error=90.0))
    assert not result.passed
    assert "bee soft" in result.description
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert not ratings.standard_errors_agree(_at(heldout, "bee", "hard", std_error=5.0)).passed


def test_standard_errors_that_are_all_a_little_off_are_told(heldout):
    result = ratings.standard_errors_agree(heldout.assign(std_error=29.0))
    assert not result.passed
    assert "median" in result.description


def test_without_a_bootstrap_there_is_nothing_to_compare(heldout):
    assert ratings.standard_errors_agree(heldout.assign(std_error=np.nan)).passed


def test_the_headline_against_hard_and_soft(heldout):
    assert ratings.headline_is_near_people(heldout).passed
    is_headline = heldout["method"].eq("auto")
    limit = heldout.assign(residual=heldout["residual"].mask(is_headline, 12.5))
    assert ratings.headline_is_near_people(limit).passed
    result = ratings.headline_is_near_people(
        heldout.assign(residual=heldout["residual"].mask(is_headline, 12.6))
    )
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert "12.6" in result.description
