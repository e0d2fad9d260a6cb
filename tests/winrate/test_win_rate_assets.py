"""Tables of win rates: what they hold, what they say where nothing can be had, and their checks."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of

from assets.partitions import corpus_judge_key
from assets.winrate import assets as module
from judgeline.steps.winrate import adjustment_coverage, label_plan
from judgeline.tables.winrate import ADJUSTED_WIN_RATES
from judgeline.winrate import ADJUSTMENTS, EACH_MODEL, HEADLINE_RULE, STRONGEST, WEAKEST
from resources.config.catalog import Catalog
from resources.tables.expectations import result_of

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    corpora = "tiny: {reader: arena, rating: {win_rate_half_width: 0.2, seed: 3}}"
    return catalog_of(tmp_path, corpora=corpora, judges="stub: {kind: recorded, family: none}")


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
    assert table.groupby("model")["estimator"].apply(list).tolist() == [list(ADJUSTMENTS)] * 4
    assert table.groupby("model")["headline"].sum().tolist() == [1] * 4
    assert table["n_votes"].eq(600).all()
    assert result.metadata["n_models"] == 4
    assert result.metadata["headline"] == HEADLINE_RULE
    shown = table[table["headline"]]
    assert shown["estimator"].eq("prediction-powered").all()
    assert shown["win_rate"].to_numpy() == pytest.approx(shown["human_win_rate"])  # all voted
    ternary = table[table["estimator"].eq("ternary")].set_index("model")
    outcome = scored["human_outcome"]
    ant = np.concatenate(
        [outcome[scored["model_a"].eq("ant")], 1 - outcome[scored["model_b"].eq("ant")]]
    )
    assert ternary.loc["ant", "human_win_rate"] == pytest.approx(ant.mean())


def test_a_plan_aims_at_the_configured_width_and_speaks(scored, catalog):
    half = scored.assign(
        human_outcome=scored["human_outcome"].where(np.arange(len(scored)) % 12 == 3)
    )
    rating = catalog.corpus("tiny").rating
    full = label_plan(scored, rating)
    assert full["status"].eq("all-voted").all()
    assert full["n_more_won"].isna().all()
    table = label_plan(half, rating)
    assert table["wanted_half_width"].eq(0.2).all()
    told = table["plan"].str.startswith(("Label ", "No more labels ", "No plan: "))
    assert told.all()


def test_without_votes_nothing_is_estimated_and_the_table_says_why(scored, catalog):
    rating = catalog.corpus("tiny").rating
    made = make("adjusted_win_rates", scored, catalog).value
    assert made.dtypes.astype(str).to_dict() == ADJUSTED_WIN_RATES.dtypes
    for nothing in (scored.assign(human_outcome=np.nan), scored.head(0)):
        result = make("adjusted_win_rates", nothing, catalog)
        pd.testing.assert_frame_equal(result.value, ADJUSTED_WIN_RATES.empty())
        assert "nobody voted" in result.metadata["note"]
        coverage = adjustment_coverage(nothing, rating)
        assert coverage.empty
        assert label_plan(nothing, rating).empty
        assert module.covered(coverage).passed
        assert module.judge_is_better_than_chance(result.value).passed
        for check in ADJUSTED_WIN_RATES.checks:
            assert result_of(ADJUSTED_WIN_RATES, check.name, result.value).passed


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
    coverage = adjustment_coverage(wrong, catalog.corpus("tiny").rating)
    covered = coverage.set_index("estimator")
    assert covered.loc[["mean-outcome", "ternary", "binary"], "n_models"].eq(0).all()


# ------------------------------------------------------------------ checks


@pytest.fixture
def rates() -> pd.DataFrame:
    """Twenty models with votes hidden, every interval around its estimate and the votes."""
    shares = {"naive_win_rate": 0.5, "win_rate": 0.5, "win_rate_lower": 0.4, "win_rate_upper": 0.6}
    table = pd.DataFrame({"model": [f"m{i:02d}" for i in range(20)], **shares})
    return table.assign(estimator="mean-outcome", human_win_rate=0.55, status="ok")


def _at(table: pd.DataFrame, row: int, **values: object) -> pd.DataFrame:
    table = table.copy()
    table.loc[row, list(values)] = list(values.values())
    return table


def test_one_model_at_chance_is_a_warning(rates):
    assert module.judge_is_better_than_chance(rates).passed
    result = module.judge_is_better_than_chance(_at(rates, 3, status="chance"))
    assert (result.passed, result.severity) == (False, WARN)
    assert "m03" in result.description


@pytest.mark.parametrize(
    ("n_held", "n_models", "passed"),
    [(18, 20, True), (14, 20, True), (13, 20, False), (0, 20, False), (0, 0, True)],
)
def test_coverage_of_a_third_below_chance_warns(n_held, n_models, passed):
    # With two thirds the limit is the 0.5 % quantile of a binomial(20, 0.9): 14. Leaving out
    # each model is no evidence: its coverage follows from the number of models. Nor is no model.
    table = pd.DataFrame(
        {
            "estimator": "difference",
            "left_out": [EACH_MODEL, STRONGEST, WEAKEST],
            "n_models": [60, 20, n_models],
            "win_rate_coverage": [0.0, 0.9, n_held / max(n_models, 1)],
            "miscoverage": 0.1,
        }
    )
    result = module.covered(table)
    assert (result.passed, result.severity) == (passed, WARN)
    assert (WEAKEST in result.description) is not passed
    assert STRONGEST not in result.description


def test_a_win_rate_that_should_not_be_there_is_named(rates):
    assert result_of(ADJUSTED_WIN_RATES, "win_rates_lie_in_their_intervals", rates).passed
    broken = _at(rates, 5, status="chance")
    result = result_of(ADJUSTED_WIN_RATES, "win_rates_lie_in_their_intervals", broken)
    assert not result.passed
    assert "m05" in result.description
