"""Panel, gate and leaderboard as assets: what is chosen, measured, told and withheld."""

import math
from functools import partial

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.columns import as_table
from assets.partitions import corpus_judge_key, register
from assets.reliability import gate as judge_gate
from assets.reliability import panel
from assets.reliability.tables import PANEL_DTYPES
from judgeline.reliability.gate import CRITERIA, Measurement, hold_to
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.judges.budget import Budget
from resources.store.resource import StoredVerdicts
from resources.tables.intervals import LEADERBOARD
from resources.tables.store import open_store

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


def _corpus(**fields: object) -> CorpusDefinition:
    return CorpusDefinition(slug="c", reader="battles", **fields)


@pytest.fixture
def runs() -> pd.DataFrame:
    """Three battles in two runs that agree about two of them."""
    table = pd.DataFrame(
        {
            "battle_id": ["x", "y", "z"] * 2,
            "judge": "j",
            "replicate": [0] * 3 + [1] * 3,
            "selection_order": [0, 1, 2] * 2,
            "status": "ok",
            "score_difference": [3.0, -3.0, 1.0, 3.0, -3.0, -1.0],
            "judge_outcome": [1.0, 0.0, 1.0, 1.0, 0.0, 0.0],
            "difference_ab": 0.0,
            "difference_ba": 0.0,
        }
    )
    return table.astype(PANEL_DTYPES)


@pytest.fixture
def diagnostics() -> pd.DataFrame:
    rows = [
        ("kappa_both_ways", "", 0.25, 200),
        ("position_first_score", "", -0.75, 300),
        ("position_flip_rate", "", 0.125, 280),
        ("beta_by_language", "en", 0.9, 100),
    ]
    return pd.DataFrame(rows, columns=["diagnostic", "level", "value", "n"])


@pytest.fixture
def consistency() -> pd.DataFrame:
    rows = [
        ("conflict-ratio", "likelihood", None, "all", "overall", 40, 0.2),
        ("conflict-ratio", "rubric", None, "en", "overall", 10, 0.9),
        ("conflict-ratio", "rubric", None, "all", "overall", 50, 0.1),
        ("non-transitivity", "likelihood", 3, "all", "overall", 70, 0.05),
        ("non-transitivity", "likelihood", 4, "all", "overall", 30, 0.5),
        ("non-transitivity", "rubric", 3, "all", "clarity", 70, 0.6),
        ("non-transitivity", "rubric", 3, "all", "overall", 0, math.nan),
    ]
    names = ["measure", "source", "size", "category", "dimension", "n", "ratio"]
    return pd.DataFrame(rows, columns=names)


# the panel


def test_a_panel_is_part_of_the_sample_and_grows_without_changing(sampled_battles):
    none = panel.choose_panel(sampled_battles, _corpus(), None)
    assert none.empty
    five = panel.choose_panel(sampled_battles, _corpus(panel={"battles": 5}), None)
    assert five["battle_id"].isin(sampled_battles["battle_id"]).all()
    assert five["selection_order"].tolist() == [0, 1, 2, 3, 4]
    eight = panel.choose_panel(sampled_battles, _corpus(panel={"battles": 8}), None)
    assert eight["battle_id"].tolist()[:5] == five["battle_id"].tolist()
    many = panel.choose_panel(sampled_battles, _corpus(panel={"battles": 500}), None)
    assert len(many) == len(sampled_battles)


def test_battles_of_a_panel_stay_while_they_exist(sampled_battles):
    corpus = _corpus(panel={"battles": 4})
    last = sampled_battles.tail(3)["battle_id"].tolist()
    before = pd.DataFrame(
        {"battle_id": last * 2, "replicate": [0] * 3 + [1] * 3, "selection_order": [0, 1, 2] * 2}
    )
    chosen = panel.choose_panel(sampled_battles, corpus, before)["battle_id"].tolist()
    assert chosen[:3] == last
    assert len(chosen) == 4
    fewer = sampled_battles[sampled_battles["battle_id"].ne(last[1])].reset_index(drop=True)
    chosen = panel.choose_panel(fewer, corpus, before)["battle_id"].tolist()
    assert chosen[:2] == [last[0], last[2]]
    smaller = panel.choose_panel(sampled_battles, _corpus(panel={"battles": 2}), before)
    assert smaller["battle_id"].tolist() == last[:2]


@pytest.fixture
def made(tmp_path, sampled_battles):
    """What the asset makes of the verdicts of a judge that came with the corpus."""

    def make(verdicts: pd.DataFrame, options: str) -> dg.MaterializeResult[pd.DataFrame]:
        corpora, judges = tmp_path / "corpora.yaml", tmp_path / "judges.yaml"
        corpora.write_text(f"c: {{reader: battles, location: x{options}}}", encoding="utf-8")
        judges.write_text(
            "stub: {display_name: Stub, family: none, kind: recorded}", encoding="utf-8"
        )
        with dg.DagsterInstance.ephemeral() as instance:
            register(instance, corpora=["c"], judges=["stub"])
            return panel.reliability_panel(
                dg.build_asset_context(
                    partition_key=corpus_judge_key("c", "stub"), instance=instance
                ),
                sampled_battles=sampled_battles,
                recorded_verdicts=verdicts,
                verdicts=verdicts,
                catalog=Catalog(corpora_file=str(corpora), judges_file=str(judges)),
                verdict_store=StoredVerdicts(uri=str(tmp_path / "verdicts")),
                budget=Budget(0),  # nobody is asked
                io_manager=open_store(str(tmp_path / "tables")),
            )

    return make


def test_verdicts_that_came_once_make_an_empty_panel_that_says_why(made, verdicts):
    result = made(verdicts, ", panel: {}")
    assert result.value.empty
    assert result.value.columns.tolist() == list(PANEL_DTYPES)
    assert "once per battle" in result.metadata["note"]


def test_verdicts_that_came_several_times_are_a_panel(made, verdicts):
    twice = verdicts[verdicts["battle_id"].lt("battle-10")]
    again = pd.concat([verdicts, *(twice.assign(replicate=run) for run in (1, 2, 3))])
    result = made(again, ", panel: {battles: 6, runs: 3}")
    assert result.value["battle_id"].nunique() == 6
    assert result.value["battle_id"].lt("battle-10").all()
    assert set(result.value["replicate"]) == {0, 1, 2}
    assert result.value["score_difference"].eq(1).all()
    unasked = made(again, "")
    assert unasked.value.empty
    assert "add 'panel" in unasked.metadata["note"]


def test_runs_that_scored_too_few_are_told(runs):
    check = panel.every_run_scored_the_panel
    assert check(runs).passed
    assert check(runs.head(0)).passed
    runs.loc[4, ["score_difference", "judge_outcome"]] = np.nan
    result = check(runs)
    assert not result.passed
    assert result.severity == WARN
    assert "such as y" in result.description


# the gate


def test_each_table_measures_its_criteria(verdicts, diagnostics, runs, consistency):
    verdicts.loc[verdicts["battle_id"].lt("battle-12"), "status"] = "refusal"
    measured = judge_gate.measure(verdicts, diagnostics, runs, consistency)
    assert set(measured) == set(CRITERIA)
    assert measured["kappa"] == Measurement(0.25, "200 battles")
    assert measured["position_effect"] == Measurement(0.75, "300 battles")  # its size
    assert measured["position_flip_rate"] == Measurement(0.125, "280 battles")
    assert measured["parse_rate"] == Measurement(0.5, "48 verdicts")
    # means 3, -3 and 0: MS_battles 2 x 9; gaps 0, 0 and -2: MS_error half of their variance, 4/3
    assert measured["icc_average"].value == pytest.approx(1 - (2 / 3) / 18)
    assert measured["icc_average"].note == "3 of 3 battles in 2 runs"
    assert measured["conflict_ratio"].value == 0.1
    assert measured["conflict_ratio"].note == "50 battles scored and compared, rubric"
    assert measured["non_transitivity_ratio"].value == 0.05  # the rubric's is null


@pytest.mark.parametrize("absent", [None, "empty"])
def test_tables_that_are_not_there_measure_nothing_and_say_so(verdicts, runs, absent):
    none = pd.DataFrame(columns=["diagnostic", "level", "value", "n"])
    empty = None if absent is None else pd.DataFrame()
    measured = judge_gate.measure(verdicts, none, None if absent is None else runs.head(0), empty)
    unknown = {name for name, one in measured.items() if math.isnan(one.value)}
    assert unknown == set(CRITERIA) - {"parse_rate"}
    assert "see reliability_panel" in measured["icc_average"].note
    assert "no kappa_both_ways" in measured["kappa"].note
    assert measured["conflict_ratio"].note == "consistency has no rows"
    assert math.isnan(judge_gate.measure(verdicts.head(0), none, None)["parse_rate"].value)


def test_a_diagnostic_without_a_value_is_not_measured(verdicts, diagnostics):
    diagnostics.loc[0, "value"] = np.nan
    measured = judge_gate.measure(verdicts, diagnostics, None)
    assert math.isnan(measured["kappa"].value)


def _gate(**values: float) -> pd.DataFrame:
    gate = hold_to({name: Measurement(value, "by hand") for name, value in values.items()})
    return as_table(gate).astype({"passed": "boolean"})


def test_the_gate_fails_only_by_what_withholds():
    stops, informs = judge_gate.judge_passed_the_gate, judge_gate.judge_meets_the_other_criteria
    good = _gate(kappa=0.3, icc_average=0.95, parse_rate=1.0)
    assert stops(good).passed
    assert informs(good).passed
    assert "Not measured: single_run_reliability, run_kappa" in stops(good).description
    short = _gate(kappa=0.3, icc_average=0.85)
    assert stops(short).passed
    assert not informs(short).passed
    assert informs(short).severity == WARN
    bad = stops(_gate(kappa=0.05, icc_average=0.85))
    assert not bad.passed
    assert bad.severity == ERROR
    assert bad.description.startswith("Ratings by this judge are withheld: kappa 0.05 < 0.20.")
    assert "config/corpora.yaml" in bad.metadata["remedy"].value
    assert stops(_gate()).passed


def test_who_is_withheld_is_read_off_the_leaderboards(withheld):
    boards = {"bad": withheld, "good": withheld.assign(flags=["few-battles", ""])}
    assert judge_gate.withheld_judges(boards) == {"bad": "kappa 0.05 < 0.20"}
    assert judge_gate.withheld_judges({"none": withheld.head(0)}) == {}


# the leaderboard


@pytest.fixture
def withheld() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "rank": pd.array([None, None], dtype="Int64"),
            "model": ["ant", "bee"],
            "rating": [np.nan, np.nan],
            "lower": [np.nan, np.nan],
            "upper": [np.nan, np.nan],
            "flags": ["withheld: kappa 0.05 < 0.20", "withheld: kappa 0.05 < 0.20;few-battles"],
        }
    )


@pytest.mark.parametrize(
    "check",
    [
        partial(LEADERBOARD.check, "models_are_in_order"),
        partial(LEADERBOARD.check, "ratings_are_well_founded"),
        partial(LEADERBOARD.check, "intervals_hold_their_rating"),
        partial(LEADERBOARD.check, "intervals_are_bounded"),
    ],
)
def test_checks_of_the_leaderboard_ask_nothing_of_ratings_that_are_withheld(check, withheld):
    assert check(withheld).passed


def test_ratings_that_are_merely_missing_still_need_a_reason(withheld):
    assert not LEADERBOARD.check("models_are_in_order", withheld.assign(flags="")).passed
    assert not LEADERBOARD.check(
        "ratings_are_well_founded", withheld.assign(flags="no-votes")
    ).passed
