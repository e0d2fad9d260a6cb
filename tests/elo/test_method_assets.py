"""Every scoring method of a judge in one table, on the same battles, and what is said of gaps."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml

from assets.columns import as_coded, as_table
from assets.elo import method_comparison as comparing
from assets.elo import methods as module
from assets.partitions import corpus_judge_key
from judgeline.elo import RatingSettings
from judgeline.elo import rate as rate_battles
from resources.config.catalog import Catalog
from resources.method_table import FIGURES, KINDS, SUMMARY_COLUMNS
from resources.tables.elo import METHOD_COMPARISON

NO_SOFT = pd.DataFrame(
    {
        "battle_id": pd.Series(dtype="str"),
        "source": pd.Series(dtype="str"),
        "outcome": pd.Series(dtype="float64"),
        "soft_outcome": pd.Series(dtype="float64"),
        "score_difference": pd.Series(dtype="float64"),
    }
)
NO_LEARNT = pd.DataFrame(
    {
        "held_out_model": pd.Series(dtype="str"),
        "battle_id": pd.Series(dtype="str"),
        "method": pd.Series(dtype="str"),
        "outcome": pd.Series(dtype="float64"),
    }
)


@pytest.fixture
def catalog(tmp_path) -> Catalog:
    corpora, judges = tmp_path / "corpora.yaml", tmp_path / "judges.yaml"
    corpora.write_text(yaml.safe_dump({"tiny": {"reader": "arena"}}))
    judges.write_text(yaml.safe_dump({"stub": {"kind": "recorded", "family": "none"}}))
    return Catalog(corpora_file=str(corpora), judges_file=str(judges))


@pytest.fixture
def scored_battles(scored_battles: pd.DataFrame) -> pd.DataFrame:
    """The 60 battles ten times over, with scores that err."""
    table = pd.concat([scored_battles] * 10, ignore_index=True)
    noise = np.random.default_rng(4).normal(0, 2, len(table))
    score = np.round(12 * (table["score_difference"] + noise)) / 12
    return table.assign(
        battle_id=[f"battle-{k:03d}" for k in range(len(table))],
        score_difference=score,
        judge_outcome=(np.sign(score) + 1) / 2,
    )


@pytest.fixture
def choices(scored_battles: pd.DataFrame) -> pd.DataFrame:
    """The likelihood of every battle but three, a little surer than the rubric."""
    share = 1 / (1 + np.exp(-1.2 * scored_battles["score_difference"]))
    table = pd.DataFrame(
        {
            "battle_id": scored_battles["battle_id"],
            "source": "likelihood",
            "outcome": np.where(share > 0.5, 1.0, 0.0),
            "soft_outcome": share,
            "score_difference": np.nan,
        }
    )
    return table.iloc[3:]


def rate(scored, soft, learnt, catalog) -> dg.MaterializeResult:
    context = dg.build_asset_context(partition_key=corpus_judge_key("tiny", "stub"))
    return module.method_ratings(
        context,
        scored_battles=scored,
        soft_outcomes=soft,
        quantitative_outcomes=learnt,
        catalog=catalog,
    )


def summarise(ratings, scored, soft, learnt, verdicts, catalog) -> pd.DataFrame:
    context = dg.build_asset_context(partition_key=corpus_judge_key("tiny", "stub"))
    return module.scoring_methods(
        context,
        method_ratings=ratings,
        scored_battles=scored,
        soft_outcomes=soft,
        quantitative_outcomes=learnt,
        verdicts=verdicts,
        choice_verdicts=verdicts.head(10),
        score_verdicts=verdicts.head(0),
        catalog=catalog,
    ).value


def test_on_a_rubric_alone_hard_and_soft_are_the_usual_ones(scored_battles, catalog):
    found = rate(scored_battles, NO_SOFT, NO_LEARNT, catalog).value
    coded = as_coded(scored_battles, "derived")
    usual = as_table(rate_battles(coded, RatingSettings(n_resamples=0)))
    both = found.merge(usual, on=["model", "method"], suffixes=("", "_usual"))
    assert set(both["method"]) >= {"human", "hard", "soft", "hard-rescaled"}
    np.testing.assert_allclose(both["rating"], both["rating_usual"], atol=1e-4)


def test_methods_are_compared_on_the_battles_of_all(scored_battles, choices, verdicts, catalog):
    made = rate(scored_battles, choices, NO_LEARNT, catalog)
    assert made.metadata["n_battles"] == 597
    assert made.metadata["methods"] == ["hard", "soft", "likelihood", "likelihood-calibrated"]
    table = summarise(made.value, scored_battles, choices, NO_LEARNT, verdicts, catalog)
    assert list(table.columns) == list(SUMMARY_COLUMNS)
    assert table["method"].tolist() == list(KINDS)
    rated = table[table["n_battles"] > 0].set_index("method")
    assert set(rated["n_battles"]) == {597}
    assert rated.loc["soft", "n_available"] == 600
    assert rated.loc["likelihood", "n_available"] == 597
    assert rated["mae"].notna().all()
    assert rated.loc["soft", "n_calls"] == len(verdicts)
    assert rated.loc["likelihood", ["n_calls", "prompt_tokens"]].tolist() == [10, 100]
    assert module.methods_have_ratings(table, made.value).passed


def test_a_method_that_is_not_there_says_why(scored_battles, verdicts, catalog):
    made = rate(scored_battles, NO_SOFT, NO_LEARNT, catalog)
    table = summarise(made.value, scored_battles, NO_SOFT, NO_LEARNT, verdicts, catalog)
    absent = table[table["n_battles"] == 0].set_index("method")
    assert set(absent.index) == set(KINDS) - {"hard", "soft"}
    assert absent["mae"].isna().all()
    assert absent["note"].str.len().gt(0).all()
    assert "quantitative_outcomes" in absent.loc["btl", "note"]


def test_a_method_that_contradicts_votes_stays_without_a_number(
    scored_battles, choices, verdicts, catalog
):
    against = choices.assign(soft_outcome=1 - choices["soft_outcome"])
    made = rate(scored_battles, against, NO_LEARNT, catalog)
    table = summarise(made.value, scored_battles, against, NO_LEARNT, verdicts, catalog)
    table = table.set_index("method")
    assert np.isnan(table.loc["likelihood-calibrated", "mae"])
    assert table.loc["likelihood-calibrated", "note"] != ""
    ratings = made.value.set_index(["model", "method"])["rating"]
    for model in ("ant", "dog"):  # turned round: what people put above the middle is below it
        human, judge = ratings[model, "human"] - 1500, ratings[model, "likelihood"] - 1500
        assert np.sign(human) != np.sign(judge)


def test_ratings_of_another_time_do_not_pass(scored_battles, choices, verdicts, catalog):
    made = rate(scored_battles, choices, NO_LEARNT, catalog).value
    table = summarise(made, scored_battles, choices, NO_LEARNT, verdicts, catalog)
    older = rate(scored_battles, NO_SOFT, NO_LEARNT, catalog).value
    result = module.methods_have_ratings(table, older)
    assert not result.passed
    assert result.severity is dg.AssetCheckSeverity.WARN
    table.loc[table["method"].eq("soft"), "mae"] = np.nan
    assert not module.methods_have_ratings(table.assign(note=""), made).passed


def test_a_method_that_rates_some_models_only_has_no_figures(
    scored_battles, choices, verdicts, catalog
):
    made = rate(scored_battles, choices, NO_LEARNT, catalog).value
    partial = made["method"].str.startswith("likelihood-cal") & made["model"].eq("ant")
    made.loc[partial, ["rating", "residual"]] = np.nan
    table = summarise(made, scored_battles, choices, NO_LEARNT, verdicts, catalog)
    row = table.set_index("method").loc["likelihood-calibrated"]
    assert row[["mae", "spearman", "coverage", "median_width"]].isna().all()
    assert "it rates 3 of 4 models" in row["note"]


def test_a_withheld_judge_keeps_its_price_and_no_figure(scored_battles, choices, verdicts, catalog):
    made = rate(scored_battles, choices, NO_LEARNT, catalog)
    table = summarise(made.value, scored_battles, choices, NO_LEARNT, verdicts, catalog)
    both = pd.concat([table.assign(judge="good"), table.assign(judge="bad")], ignore_index=True)
    hidden = comparing.without_figures(both, {"bad": "kappa 0.05 < 0.20"})
    good, bad = (hidden[hidden["judge"].eq(judge)] for judge in ("good", "bad"))
    pd.testing.assert_frame_equal(good, both[both["judge"].eq("good")])
    assert bad[list(FIGURES)].isna().all(axis=None)
    kept = ["method", "n_models", "n_battles", "n_available", "n_calls", "prompt_tokens"]
    pd.testing.assert_frame_equal(bad[kept], both.loc[bad.index, kept])
    notes = bad.set_index("method")["note"]
    assert notes["hard"].startswith("withheld: kappa 0.05 < 0.20")
    assert "; no embedded rationales" in notes["btl"]
    assert METHOD_COMPARISON.check("methods_have_figures", hidden).passed
    pd.testing.assert_frame_equal(comparing.without_figures(both, {}), both)


def test_the_comparison_is_checked(scored_battles, choices, verdicts, catalog):
    made = rate(scored_battles, choices, NO_LEARNT, catalog)
    table = summarise(made.value, scored_battles, choices, NO_LEARNT, verdicts, catalog)
    compared = table.assign(judge="stub")
    assert METHOD_COMPARISON.check("methods_have_figures", compared).passed
    assert not METHOD_COMPARISON.check(
        "methods_have_figures", pd.concat([compared, compared])
    ).passed
    assert not METHOD_COMPARISON.check("methods_have_figures", compared.assign(spearman=1.5)).passed
    assert not METHOD_COMPARISON.check(
        "methods_have_figures", compared.assign(method="guess")
    ).passed


def test_without_votes_there_is_nothing_to_hold_methods_against(
    scored_battles, choices, verdicts, catalog
):
    unvoted = scored_battles.assign(human_outcome=np.nan)
    made = rate(unvoted, choices, NO_LEARNT, catalog)
    assert made.value.empty
    assert "nobody voted" in made.metadata["note"]
    table = summarise(made.value, unvoted, choices, NO_LEARNT, verdicts, catalog)
    assert list(table.columns) == list(SUMMARY_COLUMNS)
    assert table.empty
    assert module.methods_have_ratings(table, made.value).passed
