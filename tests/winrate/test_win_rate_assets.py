"""Tables of win rates: what they hold, what they say where nothing can be had, and their checks."""

from functools import partial

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml

from assets.partitions import corpus_judge_key
from assets.winrate import assets as module
from judgeline.winrate import (
    ADJUSTMENTS,
    EACH_MODEL,
    HEADLINE_RULE,
    STRONGEST,
    WEAKEST,
    LabelPlans,
    ModelWinRates,
    WinRateCoverage,
)
from resources.config.catalog import Catalog
from resources.tables.winrate import ADJUSTED_WIN_RATES

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
MADE = {
    "adjusted_win_rates": ModelWinRates,
    "adjustment_coverage": WinRateCoverage,
    "label_plan": LabelPlans,
}


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    corpora, judges = tmp_path / "corpora.yaml", tmp_path / "judges.yaml"
    rating = {"win_rate_half_width": 0.2, "seed": 3}
    corpora.write_text(yaml.safe_dump({"tiny": {"reader": "arena", "rating": rating}}))
    judges.write_text(yaml.safe_dump({"stub": {"kind": "recorded", "family": "none"}}))
    return Catalog(corpora_file=str(corpora), judges_file=str(judges))


@pytest.fixture
def scored(scored_battles: pd.DataFrame) -> pd.DataFrame:
    """The 60 battles twenty times over; the judge turns one in five of them round."""
    table = pd.concat([scored_battles] * 20, ignore_index=True)
    rng = np.random.default_rng(0)
    outcome = table["judge_outcome"].where(rng.random(len(table)) > 0.2, 0.5)
    turned = rng.random(len(table)) < 0.2
    return table.assign(
        judge_outcome=outcome.where(~turned, 1 - outcome),
        length_a=pd.array(rng.integers(5, 50, len(table)), dtype="Int64"),
        length_b=pd.array(rng.integers(5, 50, len(table)), dtype="Int64"),
    )


def make(name: str, scored: pd.DataFrame, catalog: Catalog) -> dg.MaterializeResult:
    context = dg.build_asset_context(partition_key=corpus_judge_key("tiny", "stub"))
    return getattr(module, name)(context, scored_battles=scored, catalog=catalog)


def test_every_model_has_every_row_and_one_headline(scored, catalog):
    result = make("adjusted_win_rates", scored, catalog)
    table = result.value
    assert list(table.columns) == list(ModelWinRates._fields)
    assert table.groupby("model")["estimator"].apply(list).tolist() == [list(ADJUSTMENTS)] * 4
    assert table.groupby("model")["headline"].sum().tolist() == [1] * 4
    assert table["n_votes"].eq(600).all()
    assert result.metadata["n_models"] == 4
    assert result.metadata["headline"] == HEADLINE_RULE
    shown = table[table["headline"]]
    assert shown["estimator"].eq("prediction-powered").all()
    assert shown["win_rate"].to_numpy() == pytest.approx(shown["human_win_rate"])  # all voted
    assert result.metadata["win_rates"].value.startswith("![Win rates as judged")
    ternary = table[table["estimator"].eq("ternary")].set_index("model")
    outcome = scored["human_outcome"]
    ant = np.concatenate(
        [outcome[scored["model_a"].eq("ant")], 1 - outcome[scored["model_b"].eq("ant")]]
    )
    assert ternary.loc["ant", "human_win_rate"] == pytest.approx(ant.mean())


def test_coverage_leaves_out_models_by_one_and_by_thirds(scored, catalog):
    table = make("adjustment_coverage", scored, catalog).value
    assert list(table.columns) == list(WinRateCoverage._fields)
    assert table["left_out"].tolist() == [EACH_MODEL] * 5 + [STRONGEST, WEAKEST]
    assert (table["n_models"] + table["n_without"]).tolist() == [4] * 5 + [1, 1]
    pd.testing.assert_frame_equal(table, make("adjustment_coverage", scored, catalog).value)


def test_a_plan_aims_at_the_configured_width_and_speaks(scored, catalog):
    half = scored.assign(
        human_outcome=scored["human_outcome"].where(np.arange(len(scored)) % 12 == 3)
    )
    full = make("label_plan", scored, catalog).value
    assert full["status"].eq("all-voted").all()
    assert full["n_more_won"].isna().all()
    table = make("label_plan", half, catalog).value
    assert table["wanted_half_width"].eq(0.2).all()
    assert table["n_more_won"].dtype == "Int64"
    told = table["plan"].str.startswith(("Label ", "No more labels ", "No plan: "))
    assert told.all()


@pytest.mark.parametrize("name", MADE)
def test_without_votes_a_table_is_empty_and_says_why(name, scored, catalog):
    filled = make(name, scored, catalog).value
    for nothing in (scored.assign(human_outcome=np.nan), scored.head(0)):
        result = make(name, nothing, catalog)
        assert result.value.empty
        assert list(result.value.columns) == list(filled.columns)
        assert "nobody voted" in result.metadata["note"]
        for check in CHECKS[name]:
            assert check(result.value).passed


CHECKS = {
    "adjusted_win_rates": [
        module.judge_is_better_than_chance,
        partial(ADJUSTED_WIN_RATES.check, "win_rates_lie_in_their_intervals"),
    ],
    "adjustment_coverage": [module.adjusted_intervals_cover],
    "label_plan": [],
}


def test_lengths_that_are_unknown_leave_out_one_row_only(scored, catalog):
    blind = scored.assign(length_a=pd.array([pd.NA] * len(scored), dtype="Int64"))
    table = make("adjusted_win_rates", blind, catalog).value
    assert set(table.loc[table["status"].eq("no-lengths"), "estimator"]) == {"binary-by-length"}


def test_a_judge_at_chance_is_an_error_and_the_table_has_no_value(scored, catalog):
    wrong = scored.assign(judge_outcome=1 - scored["human_outcome"])
    table = make("adjusted_win_rates", wrong, catalog).value
    result = module.judge_is_better_than_chance(table)
    assert not result.passed
    assert result.severity == ERROR
    assert "ant" in result.description
    published = table["basis"].str.startswith("valid under label shift")
    assert table.loc[published, "win_rate"].isna().all()
    covered = make("adjustment_coverage", wrong, catalog).value.set_index("estimator")
    assert covered.loc[["mean-outcome", "ternary", "binary"], "n_models"].eq(0).all()


# ------------------------------------------------------------------ checks


@pytest.fixture
def rates() -> pd.DataFrame:
    """Twenty models with votes hidden, every interval around its estimate and the votes."""
    return pd.DataFrame(
        {
            "model": [f"m{i:02d}" for i in range(20)],
            "estimator": "mean-outcome",
            "headline": True,
            "calibration": "others",
            "naive_win_rate": 0.5,
            "win_rate": 0.5,
            "win_rate_lower": 0.4,
            "win_rate_upper": 0.6,
            "human_win_rate": 0.55,
            "miscoverage": 0.1,
            "status": "ok",
        }
    )


def _at(table: pd.DataFrame, row: int, **values: object) -> pd.DataFrame:
    table = table.copy()
    for name, value in values.items():
        table.loc[row, name] = value
    return table


def test_one_model_at_chance_is_a_warning(rates):
    assert module.judge_is_better_than_chance(rates).passed
    result = module.judge_is_better_than_chance(_at(rates, 3, status="chance"))
    assert not result.passed
    assert result.severity == WARN
    assert "m03" in result.description


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"win_rate": 1.1, "win_rate_upper": 1.2}, "win_rate is a share"),
        ({"win_rate": 0.7}, "ends below its estimate"),
        ({"win_rate": 0.3}, "begins above its estimate"),
        ({"win_rate": np.nan}, "has a value or says why not"),
        ({"status": "chance"}, "has a value or says why not"),
        ({"naive_win_rate": -0.1}, "naive_win_rate is a share"),
    ],
)
def test_win_rates_lie_in_their_intervals(rates, change, told):
    assert ADJUSTED_WIN_RATES.check("win_rates_lie_in_their_intervals", rates).passed
    result = ADJUSTED_WIN_RATES.check("win_rates_lie_in_their_intervals", _at(rates, 5, **change))
    assert not result.passed
    assert told in result.description
    assert "m05" in result.description


def _coverage(n_held: int, n_models: int = 20) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "estimator": "difference",
            "left_out": [EACH_MODEL, STRONGEST, WEAKEST],
            "n_models": [60, 20, n_models],
            "win_rate_coverage": [0.0, 0.9, n_held / max(n_models, 1)],
            "miscoverage": 0.1,
        }
    )


@pytest.mark.parametrize(("held", "passed"), [(18, True), (14, True), (13, False), (0, False)])
def test_coverage_below_chance_is_told(held, passed):
    # With two thirds the limit is the 0.5 % quantile of a binomial(20, 0.9): 14. Leaving out
    # each model is no evidence: its coverage follows from the number of models.
    result = module.adjusted_intervals_cover(_coverage(held))
    assert result.passed is passed
    if not passed:
        assert WEAKEST in result.description
        assert STRONGEST not in result.description
        assert result.severity == WARN


def test_a_third_without_models_is_no_evidence():
    assert module.adjusted_intervals_cover(_coverage(0, n_models=0)).passed
