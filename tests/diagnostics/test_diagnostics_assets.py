import dagster as dg
import numpy as np
import pandas as pd
import pytest

from resources.tables.diagnostics import JUDGE_DIAGNOSTICS


@pytest.fixture
def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "diagnostic": ["cohen_kappa", "beta_by_language", "beta_by_language"],
            "level": ["", "en", "fr"],
            "value": [0.4, 0.9, 1.1],
            "unit": ["kappa", "logits per rubric point", "logits per rubric point"],
            "n": [60, 30, 30],
        }
    )


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (lambda t: t.assign(value=[0.4, np.nan, 1.1]), "beta_by_language en"),
        (lambda t: pd.concat([t, t.tail(1)]), "one value per level"),
        (lambda t: t.head(0), "there is a diagnostic"),
    ],
)
def test_diagnostics_could_be_computed(table, breakage, told):
    assert JUDGE_DIAGNOSTICS.check("diagnostics_could_be_computed", table).passed
    result = JUDGE_DIAGNOSTICS.check("diagnostics_could_be_computed", breakage(table))
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert told in result.description
