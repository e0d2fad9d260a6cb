"""Assets of the reference: what they make, say and check."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of

from assets.partitions import corpus_judge_key
from assets.reference import assets as module
from judgeline.steps.reference import DIAGNOSTICS, REFERENCE_DIAGNOSTICS
from judgeline.tables.judging import CHOICE_VERDICTS
from judgeline.tables.reference import REFERENCE_RATINGS
from judgeline.tables.trust import SOFT_OUTCOMES
from resources.config.catalog import Catalog
from resources.tables.expectations import result_of

CORPUS = """stub:
  reader: battles
  location: x.csv
  reference: {model: ant, n_population: 400}
  rating: {miscoverage: 0.1}
"""
NO_SOFT = SOFT_OUTCOMES.empty()
NO_CHOICES = CHOICE_VERDICTS.empty()
WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    judges = "stub: {display_name: S, family: f, kind: recorded}"
    return catalog_of(tmp_path, corpora=CORPUS, judges=judges)


@pytest.fixture
def made(sampled_battles, verdicts, catalog):
    """Make the ratings of a judge from its soft outcomes and scored battles."""

    def make(soft=NO_SOFT, scored=None, **more) -> dg.MaterializeResult:
        tables = {"sampled_battles": sampled_battles, "verdicts": verdicts}
        tables |= {"soft_outcomes": soft, "scored_battles": scored, "choice_verdicts": NO_CHOICES}
        context = dg.build_asset_context(partition_key=corpus_judge_key("stub", "stub"))
        return module.reference_ratings(context, catalog=catalog, **tables | more)

    return make


def diagnostics_of(result: dg.MaterializeResult) -> pd.DataFrame:
    return pd.DataFrame(result.metadata[DIAGNOSTICS].value)


def test_outcomes_of_the_rubric_anchor_where_there_are_no_probabilities(made, scored_battles):
    result = made(scored=scored_battles)
    assert set(result.value["model"]) == {"bee", "cat", "dog"}
    assert result.value["source"].eq("rubric").all()
    assert result.value["n_prompts"].eq(4).all()
    assert result.value["factor"].to_numpy() == pytest.approx(np.sqrt(396 / 399))
    assert result.metadata["reference_because"] == "configured"
    assert result.metadata["finite_population"] == 400
    assert "not asked for" in result.metadata["mean_kappa"]
    assert result_of(REFERENCE_RATINGS, "gaps_are_finite", result.value).passed


def test_a_name_of_a_model_is_no_markup_on_the_page(made, sampled_battles, scored_battles):
    foreign = {"bee": "![](http://x.example/)", "cat": "a|b"}
    tables = {"sampled_battles": sampled_battles.replace(foreign)}
    result = made(scored=scored_battles.replace(foreign), **tables)
    shown = result.metadata["leaderboard"].value
    assert not {"[", "]", "/"} & {*shown}
    assert "a&#124;b" in shown


def test_few_probabilities_do_not_outweigh_the_rubric(made, sampled_battles, scored_battles):
    ids = sampled_battles.loc[sampled_battles["model_a"].eq("ant"), "battle_id"].tolist()
    row = {"source": "likelihood", "outcome": 1.0, "soft_outcome": 0.9, "score_difference": None}
    few, most = (pd.DataFrame([{"battle_id": b, **row} for b in ids[:n]]) for n in (1, 10))
    rubric = made(few, scored_battles)
    assert rubric.value["source"].eq("rubric").all()
    assert "likelihood 1, rubric 12" in rubric.metadata["preferences_from"]
    found = diagnostics_of(rubric)
    assert found.loc[found["diagnostic"].eq("std_error_ratio"), "n"].eq(4).all()
    likelihood = made(most, scored_battles)
    assert likelihood.value["source"].eq("likelihood").all()
    assert likelihood.metadata["preferences_from"].startswith("likelihood. Battles with the")


def test_a_judge_without_preferences_gets_an_empty_table_and_a_reason(made):
    rated = made()
    assert rated.metadata["preferences_from"].startswith("nowhere")
    pd.testing.assert_frame_equal(rated.value, REFERENCE_RATINGS.empty())
    assert "choose with log-probabilities" in rated.metadata["note"]
    assert result_of(REFERENCE_RATINGS, "gaps_are_finite", rated.value).passed
    diagnostics = diagnostics_of(rated)
    assert diagnostics.empty
    diagnostics = REFERENCE_DIAGNOSTICS.filled(diagnostics)
    assert module.reach_result(diagnostics).passed
    assert module.errors_result(diagnostics).passed


def test_repeated_runs_of_the_rubric_let_the_judge_abstain(
    made, sampled_battles, scored_battles, verdicts
):
    again = verdicts.assign(replicate=1)
    ours = [name for name in again if name.endswith("_a")]
    first_half = again["battle_id"].isin(sampled_battles["battle_id"][:12])  # each pair twice
    again.loc[first_half, ours] = 5.0  # the other way round
    found = made(scored=scored_battles, verdicts=pd.concat([verdicts, again]))
    diagnostics = diagnostics_of(found)
    coverage = diagnostics[diagnostics["diagnostic"].eq("abstention_coverage")]
    assert coverage["level"].tolist() == ["0.05", "0.1", "0.2", "0.3"]
    assert coverage["value"].tolist() == [0.5] * 4
    assert found.metadata["models_within_reach"] == pytest.approx(1 / 3)


# ------------------------------------------------------------------ checks


@pytest.mark.parametrize("check", [module.reach_result, module.errors_result])
def test_ratings_of_before_without_diagnostics_warn(check):
    result = check(None)
    assert (result.passed, result.severity) == (False, WARN)
    assert "make reference_ratings again" in result.description


NOTE = "furthest: cat, 1.13 of the bootstrap's on 6 prompts"


@pytest.mark.parametrize(
    ("check", "diagnostic", "value", "said"),
    [
        (module.reach_result, "models_within_reach", 0.95, []),
        (module.reach_result, "models_within_reach", 0.94, ["Choose a 'reference' nearer"]),
        (module.errors_result, "std_error_difference", 0.12, []),
        (module.errors_result, "std_error_difference", np.nan, []),
        (
            module.errors_result,
            "std_error_difference",
            0.13,
            ["furthest: cat", "within 12% of that of resampling"],
        ),
    ],
)
def test_a_reference_out_of_reach_and_errors_of_another_size_warn(check, diagnostic, value, said):
    row = {"diagnostic": diagnostic, "value": value, "level": "", "n": 9, "note": NOTE}
    ratio = {"diagnostic": "std_error_ratio", "value": 1.5, "level": "cat", "n": 6}
    result = check(pd.concat([REFERENCE_DIAGNOSTICS.empty(), pd.DataFrame([row, ratio])]))
    assert result.passed is not bool(said)
    assert result.severity == WARN
    assert all(words in result.description for words in said)


@pytest.mark.parametrize(
    "breakage", [{"gap": np.inf}, {"std_error": np.nan}, {"lower": 900.0}, {"model": "cat"}]
)
def test_gaps_that_are_no_numbers_or_twice_there_stop(breakage, made, scored_battles):
    ratings = made(scored=scored_battles).value
    row = ratings.index[ratings["model"].eq("bee")]
    ratings.loc[row, list(breakage)] = list(breakage.values())
    result = result_of(REFERENCE_RATINGS, "gaps_are_finite", ratings)
    assert (result.passed, result.severity) == (False, ERROR)
