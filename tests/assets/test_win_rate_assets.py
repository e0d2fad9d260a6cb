"""Tables of win rates: what they hold, what they say where nothing can be had, and their checks."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml

from assets import win_rates as module
from assets.partitions import corpus_judge_key
from judgeline.label_plans import LabelPlans
from judgeline.model_win_rates import ADJUSTMENTS, ModelWinRates
from judgeline.split_coverage import COMPARED, SplitCoverage
from resources.catalog import Catalog

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
MADE = {
    "adjusted_win_rates": ModelWinRates,
    "adjustment_coverage": SplitCoverage,
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
    assert result.metadata["win_rates"].value.startswith("![Win rates as judged")
    ternary = table[table["estimator"].eq("ternary")].set_index("model")
    outcome = scored["human_outcome"]
    ant = np.concatenate(
        [outcome[scored["model_a"].eq("ant")], 1 - outcome[scored["model_b"].eq("ant")]]
    )
    assert ternary.loc["ant", "human_win_rate"] == pytest.approx(ant.mean())


def test_coverage_has_the_estimators_beside_each_other(scored, catalog):
    table = make("adjustment_coverage", scored, catalog).value
    assert list(table.columns) == list(SplitCoverage._fields)
    assert table.loc[table["grouping"].eq("all"), "estimator"].tolist() == list(COMPARED)
    assert sorted(set(table["level"])) == ["", "ant", "bee", "cat", "dog"]
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
        module.win_rates_lie_in_their_intervals,
        module.votes_on_others_can_stand_in,
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
    assert table["win_rate"].isna().all()
    assert make("adjustment_coverage", wrong, catalog).value["n_kept"].eq(0).all()


# ------------------------------------------------------------------ checks


@pytest.fixture
def rates() -> pd.DataFrame:
    """Twenty models with votes hidden, every interval around its estimate and the votes."""
    return pd.DataFrame(
        {
            "model": [f"m{i:02d}" for i in range(20)],
            "estimator": "mean-outcome-by-strength",
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
    assert module.win_rates_lie_in_their_intervals(rates).passed
    result = module.win_rates_lie_in_their_intervals(_at(rates, 5, **change))
    assert not result.passed
    assert told in result.description
    assert "m05" in result.description


@pytest.mark.parametrize(("n_missed", "passed"), [(0, True), (6, True), (7, False), (20, False)])
def test_hidden_votes_outside_of_the_intervals_are_told(rates, n_missed, passed):
    # P(14 or fewer of 20 at 90 %) is 1.1 %, of 13 or fewer 0.2 %.
    missed = rates.assign(human_win_rate=np.where(np.arange(20) < n_missed, 0.9, 0.5))
    result = module.votes_on_others_can_stand_in(missed)
    assert result.passed is passed
    assert result.severity == WARN
    if not passed:
        assert "at least 14 of 20" in result.description


def test_models_that_calibrate_themselves_are_no_evidence_for_others(rates):
    own = rates.assign(calibration="own", human_win_rate=0.9)
    assert module.votes_on_others_can_stand_in(own).passed


def _coverage(held: int, n_kept: int = 100) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "grouping": "model",
            "level": ["ant", "bee"],
            "estimator": module.ADJUSTED,
            "n_kept": [100, n_kept],
            "n_dropped": [0, 100 - n_kept],
            "win_rate_coverage": [0.9, held / n_kept],
            "miscoverage": 0.1,
        }
    )


@pytest.mark.parametrize(("held", "passed"), [(90, True), (82, True), (81, False), (10, False)])
def test_coverage_below_chance_is_told(held, passed):
    # With two models the limit is the 0.5 % quantile of a binomial(100, 0.9): 82.
    result = module.adjusted_intervals_cover(_coverage(held))
    assert result.passed is passed
    if not passed:
        assert "bee" in result.description
        assert result.severity == WARN


def test_splits_that_are_mostly_dropped_are_no_evidence():
    result = module.adjusted_intervals_cover(_coverage(10, n_kept=40))
    assert result.passed
    assert "1 models lost most splits" in result.description
