import dagster as dg
import numpy as np
import pandas as pd
import pytest

from resources.tables.elo import BETA_FOLDS


@pytest.fixture
def folds() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "held_out_model": ["ant", "bee", "cat"],
            "beta": [0.8, 1.0, 0.9],
            "std_error": [0.1, 0.1, 0.1],
            "n_battles": [40, 40, 40],
            "status": ["ok"] * 3,
        }
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"status": ["ok", "contradicts-humans", "ok"]}, "bee (status=contradicts-humans)"),
        ({"status": ["ok", "ok", "separable"]}, "cat (status=separable)"),
        ({"status": ["no-decisive-votes", "ok", "ok"]}, "ant (status=no-decisive-votes)"),
        ({"beta": [0.8, np.nan, 0.9]}, "every fold has a beta"),
        ({"beta": [0.8, 0.0, 0.9]}, "beta is positive and finite"),
        ({"beta": [0.8, -1.0, 0.9]}, "beta is positive and finite"),
        ({"beta": [0.8, np.inf, 0.9]}, "beta is positive and finite"),
    ],
)
def test_usable_beta(folds, changes, told):
    assert BETA_FOLDS.check("beta_is_usable", folds).passed
    result = BETA_FOLDS.check("beta_is_usable", folds.assign(**changes))
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.ERROR
    assert told in result.description


def test_no_folds_are_no_calibration(folds):
    assert not BETA_FOLDS.check("beta_is_usable", folds.head(0)).passed


def test_well_determined_beta(folds):
    assert BETA_FOLDS.check("beta_is_well_determined", folds).passed
    result = BETA_FOLDS.check("beta_is_well_determined", folds.assign(std_error=[0.1, 0.6, 0.1]))
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert "bee" in result.description
