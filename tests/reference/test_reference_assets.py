from functools import partial

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.partitions import corpus_judge_key
from assets.reference import assets as reference
from assets.reference import system_assets as systems
from assets.reference.anchoring import no_ratings
from assets.reference.reach import no_diagnostics
from assets.reference.systems import no_systems
from resources.config.catalog import Catalog
from resources.tables.reference import RATING_SYSTEMS, REFERENCE_RATINGS

CORPUS = """stub:
  reader: battles
  location: x.csv
  reference: {model: ant, n_population: 400}
  rating: {miscoverage: 0.1}
"""


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    (tmp_path / "corpora.yaml").write_text(CORPUS)
    (tmp_path / "judges.yaml").write_text("stub: {display_name: S, family: f, kind: recorded}\n")
    return Catalog(
        corpora_file=str(tmp_path / "corpora.yaml"), judges_file=str(tmp_path / "judges.yaml")
    )


@pytest.fixture
def no_choices() -> pd.DataFrame:
    columns = ["battle_id", "order", "replicate", "status", "p_a", "p_tie", "p_b"]
    return pd.DataFrame({name: pd.Series(dtype=object) for name in columns})


@pytest.fixture
def no_soft() -> pd.DataFrame:
    columns = ["battle_id", "source", "outcome", "soft_outcome", "score_difference"]
    return pd.DataFrame({name: pd.Series(dtype=object) for name in columns})


def _context() -> dg.AssetExecutionContext:
    return dg.build_asset_context(partition_key=corpus_judge_key("stub", "stub"))


def _rate(sampled_battles, no_soft, scored, catalog) -> dg.MaterializeResult:
    return reference.reference_ratings(
        _context(), sampled_battles, no_soft, {} if scored is None else {"x": scored}, catalog
    )


def test_outcomes_of_the_rubric_anchor_where_there_are_no_probabilities(
    sampled_battles, scored_battles, no_soft, catalog
):
    result = _rate(sampled_battles, no_soft, scored_battles, catalog)
    assert set(result.value["model"]) == {"bee", "cat", "dog"}
    assert result.value["source"].eq("rubric").all()
    assert result.value["n_prompts"].eq(4).all()
    assert result.value["factor"].to_numpy() == pytest.approx(np.sqrt(396 / 399))
    assert result.metadata["reference_because"] == "configured"
    assert result.metadata["finite_population"] == 400
    assert "not asked for" in result.metadata["mean_kappa"]
    assert REFERENCE_RATINGS.check("gaps_are_finite", result.value).passed


def test_a_name_of_a_model_is_no_markup_on_the_page_of_the_ratings(
    sampled_battles, scored_battles, no_soft, catalog
):
    foreign = {"bee": "![](http://x.example/)", "cat": "a|b"}
    renamed = [table.replace(foreign) for table in (sampled_battles, scored_battles)]
    shown = _rate(renamed[0], no_soft, renamed[1], catalog).metadata["leaderboard"].value
    assert not {"[", "]", "/"} & {*shown}
    assert "a&#124;b" in shown


def test_few_probabilities_do_not_outweigh_the_rubric(
    sampled_battles, scored_battles, verdicts, no_soft, no_choices, catalog
):
    ids = sampled_battles.loc[sampled_battles["model_a"].eq("ant"), "battle_id"].tolist()
    row = {"source": "likelihood", "outcome": 1.0, "soft_outcome": 0.9, "score_difference": None}
    few, most = (pd.DataFrame([{"battle_id": b, **row} for b in ids[:n]]) for n in (1, 10))
    rubric = _rate(sampled_battles, few, scored_battles, catalog)
    assert rubric.value["source"].eq("rubric").all()
    assert rubric.value["n_prompts"].eq(4).all()
    assert "likelihood 1, rubric 12" in rubric.metadata["preferences_from"]
    found = reference.reference_diagnostics(
        _context(),
        rubric.value,
        sampled_battles,
        few,
        {"x": scored_battles},
        verdicts,
        no_choices,
        catalog,
    ).value
    assert found.loc[found["diagnostic"].eq("std_error_ratio"), "n"].eq(4).all()
    likelihood = _rate(sampled_battles, most, scored_battles, catalog)
    assert likelihood.value["source"].eq("likelihood").all()
    assert likelihood.metadata["preferences_from"].startswith("likelihood. Battles with the")


def test_a_judge_without_preferences_gets_empty_tables_and_a_reason(
    sampled_battles, verdicts, no_soft, no_choices, catalog
):
    rated = _rate(sampled_battles, no_soft, None, catalog)
    assert rated.value.empty
    assert "choose with log-probabilities" in rated.metadata["note"]
    found = reference.reference_diagnostics(
        _context(), rated.value, sampled_battles, no_soft, {}, verdicts, no_choices, catalog
    )
    assert found.value.empty
    assert "choose with log-probabilities" in found.metadata["note"]
    assert REFERENCE_RATINGS.check("gaps_are_finite", rated.value).passed
    assert rated.metadata["preferences_from"].startswith("nowhere")
    assert reference.reference_has_reach(found.value).passed
    assert reference.errors_are_those_of_resampling(found.value).passed


def test_repeated_runs_of_the_rubric_let_the_judge_abstain(
    sampled_battles, scored_battles, verdicts, no_soft, no_choices, catalog
):
    again = verdicts.assign(replicate=1)
    ours = [name for name in again if name.endswith("_a")]
    first_half = again["battle_id"].isin(sampled_battles["battle_id"][:12])  # each pair twice
    again.loc[first_half, ours] = 5.0  # the other way round
    rated = _rate(sampled_battles, no_soft, scored_battles, catalog)
    found = reference.reference_diagnostics(
        _context(),
        rated.value,
        sampled_battles,
        no_soft,
        {"x": scored_battles},
        pd.concat([verdicts, again]),
        no_choices,
        catalog,
    ).value
    coverage = found[found["diagnostic"].eq("abstention_coverage")]
    assert coverage["level"].tolist() == ["0.05", "0.1", "0.2", "0.3"]
    assert coverage["value"].tolist() == [0.5] * 4


@pytest.mark.parametrize(
    "breakage", [{"gap": np.inf}, {"std_error": np.nan}, {"lower": 900.0}, {"model": "cat"}]
)
def test_gaps_that_are_no_numbers_or_twice_there_stop(
    breakage, sampled_battles, scored_battles, no_soft, catalog
):
    ratings = _rate(sampled_battles, no_soft, scored_battles, catalog).value
    broken = ratings.copy()
    row = broken.index[broken["model"].eq("bee")]
    broken.loc[row, list(breakage)] = list(breakage.values())
    result = REFERENCE_RATINGS.check("gaps_are_finite", broken)
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.ERROR


@pytest.mark.parametrize(("share", "passed"), [(0.95, True), (0.94, False)])
def test_a_reference_out_of_reach_is_told(share, passed):
    table = no_diagnostics()
    row = {"diagnostic": "models_within_reach", "value": share, "level": "", "n": 9}
    result = reference.reference_has_reach(pd.concat([table, pd.DataFrame([row])]))
    assert result.passed is passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    if not passed:
        assert "Choose a 'reference' nearer to the models" in result.description


@pytest.mark.parametrize(("value", "passed"), [(0.12, True), (0.13, False), (np.nan, True)])
def test_errors_that_are_not_those_of_resampling_are_told(value, passed):
    note = "furthest: cat, 1.13 of the bootstrap's on 6 prompts"
    row = {"diagnostic": "std_error_difference", "value": value, "level": "", "n": 9, "note": note}
    ratio = {"diagnostic": "std_error_ratio", "value": 1.5, "level": "cat", "n": 6}
    table = pd.concat([no_diagnostics(), pd.DataFrame([row, ratio])])
    result = reference.errors_are_those_of_resampling(table)
    assert result.passed is passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    if not passed:
        assert "furthest: cat" in result.description
        assert "within 12% of that of resampling" in result.description


def _rated(**change) -> pd.DataFrame:
    rows = [
        {"system": s, "judge": "x", "model": m, "rating": 1500.0 + i * sign, "note": ""}
        for s, sign in (("bradley-terry", 1), ("trueskill", change.get("sign", 1)))
        for i, m in enumerate("abcd")
    ]
    numbers = {"order_spread": np.nan, "judge_spread": np.nan, "n_battles": 9}
    return pd.DataFrame(rows).assign(**numbers)


def test_a_rating_is_a_number_or_explained():
    table = _rated()
    check = partial(RATING_SYSTEMS.check, "every_system_rates_every_model")
    assert check(table).passed
    assert check(no_systems()).passed
    lacking = table.assign(rating=table["rating"].where(table["model"].ne("c")))
    assert not check(lacking).passed
    told = lacking["note"].mask(lacking["model"].eq("c"), "no battle with the reference")
    assert check(lacking.assign(note=told)).passed
    assert not check(pd.concat([table, table[:1]])).passed


def test_systems_that_order_differently_are_told():
    assert systems.systems_agree_on_the_order(_rated()).passed
    assert systems.systems_agree_on_the_order(no_systems()).passed
    result = systems.systems_agree_on_the_order(_rated(sign=-1))
    assert not result.passed
    assert "trueskill" in result.description
    assert result.severity == dg.AssetCheckSeverity.WARN


def test_outcomes_are_of_scores_where_there_are_any():
    scored = pd.DataFrame({"battle_id": ["b"], "judge_outcome": [1.0]})
    soft = pd.DataFrame(
        {"battle_id": ["b", "b"], "source": ["likelihood", "choice"], "outcome": [0.0, 0.5]}
    )
    assert systems.outcomes_of(scored, soft).to_dict() == {"b": 1.0}
    assert systems.outcomes_of(None, soft).to_dict() == {"b": 0.0}
    assert systems.outcomes_of(None, None).empty
    assert systems.outcomes_of(scored.head(0), soft).to_dict() == {"b": 0.0}
    more = pd.DataFrame({"battle_id": list("bcd"), "source": "likelihood", "outcome": 0.5})
    assert len(systems.outcomes_of(scored, more)) == 3  # a third of them would tell less


def test_empty_ratings_have_the_types_of_full_ones(
    sampled_battles, scored_battles, no_soft, catalog
):
    full = _rate(sampled_battles, no_soft, scored_battles, catalog).value
    assert full.dtypes.to_dict() == no_ratings().dtypes.to_dict()
