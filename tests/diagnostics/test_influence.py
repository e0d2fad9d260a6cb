"""Influence of battles on ratings: against refits without them, and as a table with its check."""

import math
from dataclasses import replace
from itertools import pairwise

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from arenas import code, dense_battles, name
from declared_checks import checked
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.diagnostics.assets import influences_add_up
from judgeline.diagnostics.influence import fewest_to_overtake, fit_influences, influence_of
from judgeline.elo import (
    ELO_PER_LOGIT,
    CodedBattles,
    RatingSettings,
    fit_beta,
    fit_beta_folds,
    rate,
    rating_to_strength,
)
from judgeline.elo.strengths import place_models
from judgeline.intervals.board import rank_intervals
from judgeline.io import as_coded, as_table
from judgeline.rating_options import RatingOptions
from judgeline.report import lead_text
from judgeline.steps.diagnostics import influence_table, leads_beside
from judgeline.tables.diagnostics import BATTLE_INFLUENCES


def placed(outcome: np.ndarray, anchors: np.ndarray, l2: float) -> float:
    """The strength that a model's battles give it: each anchor of its own, one battle with each."""
    return float(place_models([outcome.sum()], np.ones((1, outcome.size)), anchors, l2=l2)[0])


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 60), l2=st.sampled_from([0.01, 0.2, 1.0]))
def test_leaving_a_battle_out_moves_the_rating_as_told(seed: int, n: int, l2: float) -> None:
    rng = np.random.default_rng(seed)
    outcome, anchors = rng.random(n), rng.normal(0, 1, n)
    strength = placed(outcome, anchors, l2)
    _, influence = influence_of(outcome, strength, anchors, l2=l2)
    for left_out in range(min(n, 8)):
        kept = np.arange(n) != left_out
        lost = strength - placed(outcome[kept], anchors[kept], l2)
        told = influence[left_out] / ELO_PER_LOGIT
        # (Dividing by the information with the battle tells half of it where there are two.)
        # Mean value theorem: lost = residual / (information of the others, at some place between
        # both strengths), and p (1 - p) changes by at most a factor exp(|lost|) on the way.
        assert lost * told >= -1e-18
        assert abs(told) <= abs(lost) * math.exp(abs(lost)) + 1e-10
        assert abs(told) >= abs(lost) * math.exp(-abs(lost)) - 1e-10


def test_an_only_battle_carries_all_that_the_penalty_leaves_and_one_of_two_carries_two_logits():
    strength = placed(np.array([0.8]), np.array([0.5]), 0.01)
    _, influence = influence_of([0.8], strength, [0.5], l2=0.01)
    assert influence[0] == pytest.approx(ELO_PER_LOGIT * strength)
    _, alone = influence_of([0.8], 0.5 + math.log(4), [0.5], l2=0.0)
    assert np.isnan(alone).all()  # without it, and without a penalty, there is no rating
    expected, influence = influence_of([1.0, 0.0], 0.0, [0.0, 0.0], l2=0.0)
    assert expected.tolist() == [0.5, 0.5]
    assert influence.tolist() == [2 * ELO_PER_LOGIT, -2 * ELO_PER_LOGIT]  # 0.5 / 0.25


def test_on_a_ruler_a_battle_carries_as_many_elo_points_as_its_slope_makes_of_them() -> None:
    battles = code(dense_battles(3))
    folds = fit_beta_folds(battles)
    ratings = rate(battles, RatingSettings(n_resamples=0), beta_folds=folds)
    plain, ruled = (fit_influences(battles, folds, method=m) for m in ("soft", "soft-rescaled"))
    errors = [ratings.std_error_analytic[ratings.method == m] for m in ("soft", "soft-rescaled")]
    slope = (errors[1] / errors[0])[np.searchsorted(battles.models, plain.model)]
    np.testing.assert_allclose(ruled.influence, slope * plain.influence)
    np.testing.assert_array_equal(ruled[:5], plain[:5])


def test_naming_the_other_side_a_changes_no_influence() -> None:
    played = dense_battles(4)
    turned = [battle.swapped() for battle in played]
    first, second = (
        fit_influences(code(battles), fit_beta_folds(code(battles)), method="auto")
        for battles in (played, turned)
    )
    assert first.row.tolist() == second.row.tolist()
    np.testing.assert_allclose(first.influence, second.influence, atol=1e-7)
    np.testing.assert_allclose(first.expected, second.expected, atol=1e-9)


def lead_without(battles: CodedBattles, rows: np.ndarray, pair: list[str]) -> float:
    """By how much one model leads another by `auto`, rated from the beginning without some rows."""
    kept = battles.take(~np.isin(np.arange(len(battles)), rows))
    found = rate(kept, RatingSettings(n_resamples=0))
    rating = dict(zip(*(column[found.method == "auto"] for column in found[:4:3]), strict=True))
    return float(rating[pair[0]] - rating[pair[1]])


def ranked(battles: CodedBattles, method: str = "auto") -> list[str]:
    found = rate(battles, RatingSettings(n_resamples=0))
    own = found.take(found.method == method)
    return own.model[np.argsort(-own.rating)].tolist()


@pytest.mark.parametrize("seed", range(6))
def test_the_battles_that_hold_a_lead_end_it_when_they_go(seed: int) -> None:
    battles = code(dense_battles(seed))
    pair = ranked(battles)[:2]
    found = fewest_to_overtake(battles, *pair, method="auto")
    assert found.lead == pytest.approx(lead_without(battles, np.array([]), pair))
    assert found.lead_without == pytest.approx(lead_without(battles, found.row, pair), abs=1e-6)
    assert found.lead_without < 0 < found.lead
    assert len(set(found.row.tolist())) == found.row.size
    assert lead_without(battles, found.row[:-1], pair) >= 0, "one battle fewer would do"
    margin = found.lead / 2
    parted = fewest_to_overtake(battles, *pair, method="auto", margin=margin)
    assert 0 < parted.row.size <= found.row.size
    assert lead_without(battles, parted.row, pair) == pytest.approx(parted.lead_without, abs=1e-6)
    assert parted.lead_without < margin <= lead_without(battles, parted.row[:-1], pair)
    with pytest.raises(ValueError, match="below a margin"):
        fewest_to_overtake(battles, *pair, method="auto", margin=2 * found.lead)


def test_where_one_battle_holds_a_lead_it_is_found() -> None:
    """Every battle in turn is left out, which takes as many ratings as there are battles."""
    n_held_by_one = 0
    for seed in range(8):
        battles = code(dense_battles(seed, size=5))
        pair = ranked(battles)[:2]
        held_by_one = any(
            lead_without(battles, np.array([row]), pair) < 0 for row in range(len(battles))
        )
        found = fewest_to_overtake(battles, *pair, method="auto")
        assert (found.row.size == 1) == held_by_one
        n_held_by_one += held_by_one
    assert 0 < n_held_by_one < 8


def test_the_last_lead_beside_a_model_is_what_bounds_its_rank_from_below() -> None:
    played = dense_battles(2)
    columns = {"human": "human_outcome", "judge": "judge_outcome", "score": "score_difference"}
    table = pd.DataFrame([vars(battle) for battle in played]).rename(columns=columns)
    table["battle_id"] = [f"b{i}" for i in range(len(table))]
    rated = rate(code(played), RatingSettings(n_resamples=0))
    hard = rated.take(rated.method == "hard")
    ratings = pd.Series(hard.rating, index=hard.model).sort_values(ascending=False)
    # two models more on the board than were rated: of more models, chance does more
    board = pd.concat([ratings, pd.Series([0.0, 0.0], index=["new", "newer"])])
    widths = pd.Series(30.0, index=board.index)
    _, worst = rank_intervals(board, widths, miscoverage=0.1)
    for model, rank in zip(ratings.index, worst, strict=False):
        leads = leads_beside(model, table, ratings, RatingOptions(), "hard", widths)
        beside = [(lead.model, lead.rival) for lead in leads if not lead.margin]
        assert beside == [pair for pair in pairwise(ratings.index) if model in pair]
        bounds = [lead for lead in leads if lead.margin]
        assert [lead.rival for lead in bounds] == ratings.index[int(rank) :][:1].tolist()
        for lead in bounds:
            assert lead.lead > lead.margin > lead.lead_without, "half of the battles are enough"
            assert "more than the" in lead_text(lead)
    assert 1 < worst[0] < len(ratings)


def test_two_models_that_tie_are_ahead_of_each_other() -> None:
    """Every battle of one has its mirror image with the other: their ratings are equal."""
    played = dense_battles(5, size=6)
    turn = {name(0): name(1), name(1): name(0)}
    mirrored = [
        replace(b, model_a=turn.get(b.model_a, b.model_a), model_b=turn.get(b.model_b, b.model_b))
        for b in played
    ]
    battles = code([*played, *mirrored])
    for pair in ((name(0), name(1)), (name(1), name(0))):
        found = fewest_to_overtake(battles, *pair, method="auto")
        assert found.lead == pytest.approx(0, abs=1e-6)
        assert found.row.size == 1
        assert found.lead_without < 0


def test_a_lead_that_half_of_the_battles_do_not_end_is_said_to_stand() -> None:
    battles = code(dense_battles(3, spread=3.0))
    best, *_, worst = ranked(battles, "hard")
    stands = fewest_to_overtake(battles, best, worst, method="hard")
    assert stands.row.size == 0
    assert stands.lead == stands.lead_without > 0
    with pytest.raises(ValueError, match="swap them"):
        fewest_to_overtake(battles, worst, best, method="hard")


def test_wrong_input_is_named() -> None:
    battles = code(dense_battles(1))
    with pytest.raises(ValueError, match="no ratings by method 'sfot'; there are human, hard"):
        fit_influences(battles, fit_beta_folds(battles), method="sfot")
    with pytest.raises(ValueError, match=r"outcome \(2,\), anchors \(1,\)"):
        influence_of([1.0, 0.0], 0.0, [0.0], l2=0.1)


def test_a_rating_by_gap_loses_what_its_battles_are_said_to_carry() -> None:
    """The whole of it again without the battle: strengths by the judge, weights and all."""
    battles = code(dense_battles(3))
    found = fit_influences(battles, fit_beta_folds(battles), method="gap")

    def rating_of(model: str, kept: np.ndarray) -> float:
        ratings = rate(battles.take(kept), RatingSettings(n_resamples=0))
        return float(ratings.rating[(ratings.model == model) & (ratings.method == "gap")][0])

    whole = np.ones(len(battles), dtype=bool)
    for place_of in np.argsort(-np.abs(found.influence))[:6]:
        model, row = str(found.model[place_of]), int(found.row[place_of])
        lost = rating_of(model, whole) - rating_of(model, np.arange(len(battles)) != row)
        assert lost == pytest.approx(found.influence[place_of], rel=0.35)


# ------------------------------------------------------------------ the table

RATING = RatingOptions(n_resamples=0, method="soft")


@pytest.fixture
def folds(scored_battles) -> pd.DataFrame:
    return as_table(fit_beta_folds(as_coded(scored_battles, "derived")))


@pytest.fixture
def heldout(scored_battles) -> pd.DataFrame:
    return as_table(rate(as_coded(scored_battles, "derived"), RatingSettings(n_resamples=0)))


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


def test_rated_candidates_have_rows_and_move_no_other_model(scored_battles, folds, newcomer):
    battles, ratings = newcomer

    def table_with(rated: pd.DataFrame | None) -> pd.DataFrame:
        given = {"candidate_scores": battles, "candidate_ratings": rated}
        return influence_table(scored_battles, folds, RATING, **given)

    table = table_with(ratings)
    mine = table[table["is_candidate"]]
    assert set(mine["model"]) == {"new"}
    assert sorted(mine["battle_id"]) == sorted(battles["battle_id"])
    assert set(mine["opponent"]) == {"bee", "cat", "dog"}
    strongest = mine.set_index("battle_id").loc["new-0"]
    beta = fit_beta(scored_battles["score_difference"], scored_battles["human_outcome"]).beta
    assert strongest["outcome"] == pytest.approx(1 / (1 + math.exp(-beta * 3)))
    others = table[~table["is_candidate"]].reset_index(drop=True)
    for none in (None, ratings.assign(rating=np.nan), ratings.head(0)):
        pd.testing.assert_frame_equal(others, table_with(none), rtol=1e-9)


@pytest.mark.parametrize("method", ["soft", "hard", "smoothed-0.75", "gap", "average", "auto"])
def test_influences_add_up(scored_battles, folds, heldout, method):
    options = RatingOptions(method=method)
    table = influence_table(scored_battles, folds, options)

    def added_up(influences: pd.DataFrame) -> dg.AssetCheckResult:
        return checked(influences_add_up, influences, heldout, scored_battles, rating=options)

    assert added_up(table).passed
    shifted = added_up(table.assign(outcome=table["outcome"] + 1e-3))
    assert not shifted.passed
    assert shifted.severity == dg.AssetCheckSeverity.WARN
    assert "wins beyond expectation" in shifted.description
    first = table["model"].iloc[0]
    for wrong in (table[table["model"].ne(first)], table.assign(battle_id="elsewhere")):
        assert not added_up(wrong).passed


def test_a_method_without_ratings_leaves_an_empty_table_of_the_same_columns(scored_battles, folds):
    table = influence_table(scored_battles, folds.assign(beta=np.nan), RATING)
    assert table.empty
    assert list(table.columns) == BATTLE_INFLUENCES.columns
