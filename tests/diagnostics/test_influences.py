import math

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.columns import as_coded, as_table
from assets.diagnostics.influences import added_up, influence_table
from judgeline.elo import (
    ELO_PER_LOGIT,
    RatingSettings,
    fit_beta,
    fit_beta_folds,
    rate,
    rating_to_strength,
)
from resources.config.corpora import RatingOptions
from resources.tables.diagnostics import BATTLE_INFLUENCES

RATING = RatingOptions(n_resamples=0, method="soft")


@pytest.fixture
def folds(scored_battles) -> pd.DataFrame:
    return as_table(fit_beta_folds(as_coded(scored_battles, "derived")))


@pytest.fixture
def heldout(scored_battles) -> pd.DataFrame:
    coded = as_coded(scored_battles, "derived")
    return as_table(rate(coded, RatingSettings(n_resamples=0)))


@pytest.fixture
def newcomer(scored_battles) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nine battles of a model that nobody voted on, and its rating."""
    opponents = ["bee", "cat", "dog"] * 3
    scores = np.array([3.0, 2.0, 1.0, 0.5, -0.5, 1.5, 2.5, -1.0, 0.25])
    battles = scored_battles.head(9).assign(
        battle_id=[f"new-{k}" for k in range(9)],
        model_a=opponents,
        model_b="new",
        human_outcome=np.nan,
        recorded_outcome=np.nan,
        score_difference=-scores,
        judge_outcome=(1 - np.sign(scores)) / 2,
        candidate="new",
        control=None,
        content_hash="c" * 64,
    )
    return battles, pd.DataFrame({"model": ["new"], "rating": [1600.0]})


def test_one_row_per_battle_and_side_strongest_first(scored_battles, folds, heldout):
    table = influence_table(scored_battles, folds, RATING)
    assert list(table.columns) == BATTLE_INFLUENCES.columns
    soft = heldout[heldout["method"].eq("soft")].set_index("model")["rating"]
    rated = set(soft.dropna().index)
    met = [name for side in ("model_a", "model_b") for name in scored_battles[side]]
    assert len(table) == sum(name in rated for name in met)
    assert set(table["model"]) == rated
    assert not table["is_candidate"].any()
    for _, own in table.groupby("model"):
        assert own["influence"].abs().is_monotonic_decreasing
    name = min(rated)
    # by hand, from the ratings alone: what a battle counts as is sigmoid(beta * difference)
    first = table[table["model"].eq(name)].iloc[0]
    battle = scored_battles.set_index("battle_id").loc[first["battle_id"]]
    beta = folds.set_index("held_out_model").loc[name, "beta"]
    sign = 1 if battle["model_a"] == name else -1
    counted = 1 / (1 + math.exp(-sign * beta * battle["score_difference"]))
    assert first["outcome"] == pytest.approx(counted)
    own = table[table["model"].eq(name)]
    pull = 2 * RATING.l2 * float(rating_to_strength(soft[name]))
    bits = own["expected"] * (1 - own["expected"])
    others = bits.sum() - bits + 2 * RATING.l2
    assert (own["influence"] * others).sum() == pytest.approx(ELO_PER_LOGIT * pull)


def test_candidates_have_their_own_rows_and_move_no_other_models(scored_battles, folds, newcomer):
    battles, ratings = newcomer
    without = influence_table(scored_battles, folds, RATING)
    table = influence_table(
        scored_battles, folds, RATING, candidate_scores=battles, candidate_ratings=ratings
    )
    mine = table[table["is_candidate"]]
    assert set(mine["model"]) == {"new"}
    assert sorted(mine["battle_id"]) == sorted(battles["battle_id"])
    assert set(mine["opponent"]) == {"bee", "cat", "dog"}
    strongest = mine.set_index("battle_id").loc["new-0"]
    beta = fit_beta(scored_battles["score_difference"], scored_battles["human_outcome"]).beta
    assert strongest["outcome"] == pytest.approx(1 / (1 + math.exp(-beta * 3)))
    pd.testing.assert_frame_equal(
        table[~table["is_candidate"]].reset_index(drop=True), without, rtol=1e-9
    )


def test_candidates_without_a_rating_have_no_influences(scored_battles, folds, newcomer):
    battles, ratings = newcomer
    for none in (ratings.assign(rating=np.nan), ratings.head(0)):
        table = influence_table(
            scored_battles, folds, RATING, candidate_scores=battles, candidate_ratings=none
        )
        assert not table["is_candidate"].any()


@pytest.mark.parametrize("method", ["soft", "hard", "smoothed-0.75", "gap", "average", "auto"])
def test_influences_add_up(scored_battles, folds, heldout, method):
    options = RatingOptions(method=method)
    table = influence_table(scored_battles, folds, options)
    assert added_up(table, heldout, scored_battles, options).passed
    shifted = added_up(
        table.assign(outcome=table["outcome"] + 1e-3), heldout, scored_battles, options
    )
    assert not shifted.passed
    assert shifted.severity == dg.AssetCheckSeverity.WARN
    assert "wins beyond expectation" in shifted.description
    first = table["model"].iloc[0]
    for wrong in (table[table["model"].ne(first)], table.assign(battle_id="elsewhere")):
        assert not added_up(wrong, heldout, scored_battles, options).passed


def test_a_method_without_ratings_leaves_an_empty_table_that_adds_up(
    scored_battles, folds, heldout
):
    options = RatingOptions(method="soft")
    table = influence_table(scored_battles, folds.assign(beta=np.nan), options)
    assert table.empty
    assert list(table.columns) == BATTLE_INFLUENCES.columns
