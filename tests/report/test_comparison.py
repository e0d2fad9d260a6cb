import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.comparison import assets as comparison
from assets.comparison.report import self_contained
from judgeline.tables.comparison import JUDGE_COMPARISON
from resources.tables.expectations import result_of


@pytest.fixture
def heldout() -> pd.DataFrame:
    """Three models; hard is off by 30 each time, soft by 10, both in the right order."""
    rows = [
        (model, method, human + shift, human, shift)
        for model, human in (("ant", 1400.0), ("bee", 1500.0), ("cat", 1600.0))
        for method, shift in (("human", 0.0), ("hard", 30.0), ("soft", -10.0))
    ]
    table = pd.DataFrame(rows, columns=["model", "method", "rating", "human_rating", "residual"])
    return table.assign(
        basis="", std_error=20.0, std_error_analytic=20.0, human_std_error=20.0,
        vote_std_error=20.0, design_effect=1.0, outward=0.0, beta=0.8, n_battles=40, n_votes=40,
        flags="",
    )  # fmt: skip


@pytest.fixture
def compared(heldout, verdicts, scored_battles) -> pd.DataFrame:
    verdicts.loc[:2, "status"] = "refusal"
    conformal = pd.DataFrame(
        {
            "method": ["hard", "soft"],
            "threshold": [1.5, 0.5],
            "coverage": [0.9, 0.8],
            "median_width": [60.0, 20.0],
        }
    )
    kappa = pd.DataFrame({"diagnostic": ["cohen_kappa"], "level": [""], "value": [0.25]})
    return comparison.compare("stub", heldout, conformal, kappa, verdicts, scored_battles)


def test_one_row_per_method_with_everything_about_it(compared):
    assert list(compared.columns) == JUDGE_COMPARISON.columns
    soft = compared.set_index("method").loc["soft"]
    assert soft["mae"] == pytest.approx(10)
    assert soft["spearman"] == pytest.approx(1)
    assert soft["threshold"] == 0.5
    assert soft["kappa"] == 0.25
    assert (soft["n_verdicts"], soft["n_failed"], soft["n_scored"]) == (48, 3, 60)
    assert compared.set_index("method").loc["hard", "mae"] == pytest.approx(30)


@pytest.mark.parametrize(
    ("page", "passed"),
    [
        ('<a href="#top">up</a><img src="data:image/png;base64,AA==">', True),
        ("<p>see https://example.org, as text</p>", True),
        ("<p>&lt;img src=https://example.org/x.png&gt; url(https://example.org)</p>", True),
        ('<p style="background:url(https://example.org/p.png)">x</p>', False),
        ('<svg><use href="#marker"/></svg><style>p{fill:url(#fade)}</style>', True),
        ('<img src="https://example.org/x.png">', False),
        ("<img src=https://example.org/x.png>", False),
        ('<script src="app.js"></script>', False),
        ('<link rel="stylesheet" href="style.css">', False),
        ("<style>@import 'more.css';</style>", False),
        ("<style>p{background:url(//example.org/p.png)}</style>", False),
    ],
)
def test_self_contained_page(tmp_path, page, passed):
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    result = self_contained(path)
    assert result.passed is passed
    assert result.severity == dg.AssetCheckSeverity.WARN


def test_figures_off_their_scale_are_told_and_missing_ones_are_no_error(compared):
    check = "comparison_is_sound"
    assert result_of(JUDGE_COMPARISON, check, compared.assign(spearman=np.nan, kappa=np.nan)).passed
    off = {"mae": -1.0, "spearman": 1.2, "kendall": -1.2, "kappa": 1.2, "coverage": 1.2}
    broken = compared.assign(**off, n_failed=compared["n_verdicts"] + 1)
    result = result_of(JUDGE_COMPARISON, check, pd.concat([broken, broken.head(1)]))
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.ERROR)
    for words in ("mae is at least 0", "together unique", "no more verdicts failed"):
        assert words in result.description
    for name in ("spearman", "kendall", "kappa", "coverage"):
        assert f"{name} lies in" in result.description
    lacking = result_of(JUDGE_COMPARISON, check, compared.drop(columns="mae"))
    assert "missing columns: mae" in lacking.description
    assert "a judge is compared" in result_of(JUDGE_COMPARISON, check, compared.head(0)).description
