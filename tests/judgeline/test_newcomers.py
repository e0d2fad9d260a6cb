"""Newcomers against the leave-one-out machinery run on all battles at once, and by hand."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arenas import code, play, random_pairs
from twins import Battle

from judgeline.battles import CodedBattles
from judgeline.beta import fit_beta_folds
from judgeline.elo import ELO_PER_LOGIT
from judgeline.heldout import HeldOutRatings, RatingSettings, fit_heldout_ratings
from judgeline.newcomers import AnchorScale, fit_anchor_scale, place_newcomer

SETTINGS = RatingSettings(n_resamples=30, seed=4, stream=("corpus", "judge"))
NUMBERS = ("rating", "std_error", "std_error_analytic", "beta")


def rate(battles: CodedBattles, cluster: np.ndarray | None = None) -> HeldOutRatings:
    return fit_heldout_ratings(battles, fit_beta_folds(battles), SETTINGS, cluster=cluster)


def scale_of(battles: list[Battle], settings: RatingSettings = SETTINGS) -> AnchorScale:
    coded = code(battles)
    return fit_anchor_scale(coded, rate(coded), settings)


def rows_of(ratings: HeldOutRatings, model: str) -> dict[str, dict[str, Any]]:
    return {
        str(row[1]): dict(zip(ratings._fields, row, strict=True))
        for row in zip(*ratings, strict=True)
        if row[0] == model
    }


def world(
    seed: int, *, n_newcomers: int = 2, unvoted: tuple[int, ...] = (), continuous: bool = False
) -> tuple[list[Battle], dict[str, list[Battle]]]:
    """Battles of ten models, and those of newcomers against them on which nobody voted."""
    rng = np.random.default_rng(seed)
    strengths = rng.normal(0, 1, 10 + n_newcomers)
    corpus = play(
        rng, random_pairs(rng, 10, 400), strengths, unvoted=unvoted, continuous=continuous
    )
    fresh = {}
    for number in range(10, 10 + n_newcomers):
        opponents = rng.integers(0, 10, 60)
        pairs = [(number, int(o)) if rng.random() < 0.5 else (int(o), number) for o in opponents]
        name = f"model-{number:03d}"
        fresh[name] = play(rng, pairs, strengths, unvoted=(number,), continuous=continuous)
    return corpus, fresh


def assert_same_rows(one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> None:
    assert set(one) == set(other)
    for method, row in one.items():
        for name in NUMBERS:
            assert row[name] == pytest.approx(
                other[method][name], rel=1e-8, abs=1e-8, nan_ok=True
            ), (method, name)
        assert row["flags"] == other[method]["flags"]
        assert row["n_battles"] == other[method]["n_battles"]
        assert row["n_votes"] == other[method]["n_votes"] == 0
        assert math.isnan(row["human_rating"])


@pytest.mark.parametrize("continuous", [False, True], ids=["grid", "continuous"])
@pytest.mark.parametrize("unvoted", [(), (3,)], ids=["all voted", "one without votes"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_newcomer_is_placed_as_if_its_battles_had_been_in_the_corpus(seed, unvoted, continuous):
    corpus, fresh = world(seed, unvoted=unvoted, continuous=continuous)
    whole = rate(code([*corpus, *(battle for own in fresh.values() for battle in own)]))
    scale = scale_of(corpus)
    for name, own in fresh.items():
        assert_same_rows(
            rows_of(place_newcomer(code(own), name, scale), name), rows_of(whole, name)
        )


def test_so_it_is_where_questions_are_drawn_together():
    corpus, fresh = world(5)
    coded, name = code(corpus), "model-010"
    labels = np.arange(len(corpus)) % 50
    own_labels = np.arange(len(fresh[name])) // 3
    whole = rate(code([*corpus, *fresh[name]]), np.concatenate([labels, own_labels]))
    scale = fit_anchor_scale(coded, rate(coded, labels), SETTINGS)
    placed = place_newcomer(code(fresh[name]), name, scale, cluster=own_labels)
    assert_same_rows(rows_of(placed, name), rows_of(whole, name))


def test_no_newcomer_moves_another_by_a_bit():
    corpus, fresh = world(6)
    scale, (one, other) = scale_of(corpus), fresh
    alone = place_newcomer(code(fresh[one]), one, scale)
    together = place_newcomer(code([*fresh[other], *fresh[one]]), one, scale)
    for name in NUMBERS:
        np.testing.assert_array_equal(getattr(alone, name), getattr(together, name))


def test_battles_of_two_newcomers_with_each_other_do_not_count():
    corpus, fresh = world(7)
    scale, (one, other) = scale_of(corpus), fresh
    met = [Battle(one, other, None, 1.0, 9.0)] * 30
    rows = rows_of(place_newcomer(code([*fresh[one], *met]), one, scale), one)
    assert_same_rows(rows, rows_of(place_newcomer(code(fresh[one]), one, scale), one))


@pytest.mark.parametrize("battles", ["none", "of another", "with no anchor"])
def test_without_a_battle_against_anchors_there_is_no_rating_and_a_reason(battles):
    corpus, fresh = world(8)
    given = {
        "none": None,
        "of another": code(fresh["model-011"]),
        "with no anchor": code([Battle("new", "model-011", None, 1.0, 9.0)] * 50),
    }[battles]
    rows = rows_of(place_newcomer(given, "new", scale_of(corpus)), "new")
    assert set(rows) >= {"hard", "soft", "smoothed-0.75", "soft-recalibrated"}
    for row in rows.values():
        assert all(math.isnan(row[name]) for name in NUMBERS[:3])
        assert row["flags"] == "no-votes;no-battles-with-anchors"
        assert row["n_battles"] == 0


def test_one_battle_is_no_rating_and_two_are_one_with_a_warning():
    corpus, _ = world(9)
    scale = scale_of(corpus)
    once = [Battle("new", "model-001", None, 1.0, 2.0)]
    rows = rows_of(place_newcomer(code(once), "new", scale), "new")
    assert math.isnan(rows["soft"]["rating"])
    assert rows["soft"]["flags"] == "no-votes;too-few-battles;judge-always-prefers"
    twice = [*once, Battle("model-002", "new", None, 1.0, 1.0)]
    rows = rows_of(place_newcomer(code(twice), "new", scale), "new")
    assert math.isfinite(rows["soft"]["rating"])
    assert rows["soft"]["std_error_analytic"] > 0
    assert rows["soft"]["flags"] == "no-votes;few-battles"


def test_a_newcomer_that_always_wins_rests_on_the_penalty_and_says_so():
    corpus, _ = world(10)
    scale = scale_of(corpus)
    battles = [Battle("new", anchor, None, 1.0, 9.0) for anchor in scale.models * 5]
    rows = rows_of(place_newcomer(code(battles), "new", scale), "new")
    assert rows["hard"]["flags"] == "no-votes;judge-always-prefers"
    # by hand: the penalty's pull equals the losses that are left
    strength = (rows["hard"]["rating"] - 1500) / ELO_PER_LOGIT
    losses = (1 / (1 + np.exp(strength - scale.strengths["hard"]))).sum() * 5
    assert 2 * SETTINGS.l2 * strength == pytest.approx(losses)


def test_a_judge_without_a_slope_places_by_hard_outcomes_alone():
    corpus, fresh = world(11)
    contrary = [replace(b, score=-b.score, judge=1 - b.judge) for b in corpus]
    scale = fit_anchor_scale(code(contrary), rate(code(corpus)), SETTINGS)
    assert math.isnan(scale.beta)
    rows = rows_of(place_newcomer(code(fresh["model-010"]), "model-010", scale), "model-010")
    assert math.isnan(rows["soft"]["rating"])
    assert math.isnan(scale.tied_rating("soft", ["model-001"]))
    assert math.isfinite(rows["hard"]["rating"])
    assert "no-slope" in rows["soft"]["flags"]


def test_an_anchor_is_no_newcomer():
    corpus, _ = world(12)
    with pytest.raises(ValueError, match="'model-003' has votes"):
        place_newcomer(code(corpus), "model-003", scale_of(corpus))


def test_clusters_are_one_per_battle():
    corpus, fresh = world(13)
    with pytest.raises(ValueError, match=r"expected \(60,\)"):
        place_newcomer(code(fresh["model-010"]), "model-010", scale_of(corpus), cluster=[1, 2])


def test_votes_that_do_not_connect_the_anchors_make_no_scale():
    battles = [
        Battle("a", "b", 1.0, 1.0, 1.0), Battle("a", "b", 0.0, 1.0, 1.0),
        Battle("c", "d", 1.0, 1.0, 1.0), Battle("c", "d", 0.0, 1.0, 1.0),
    ]  # fmt: skip
    corpus, _ = world(14)
    with pytest.raises(ValueError, match="no chain of battles with a vote"):
        fit_anchor_scale(code(battles), rate(code(corpus)), SETTINGS)


# ties, and the anchors on their own scale


@pytest.mark.parametrize("method", ["hard", "soft", "smoothed-0.55", "soft-recalibrated"])
def test_ties_in_every_battle_rate_as_a_newcomer_that_ties(method):
    corpus, _ = world(15)
    scale = scale_of(corpus)
    opponents = ["model-001"] * 7 + ["model-004"] * 3 + ["stranger"] * 40
    battles = [Battle("new", other, None, 0.5, 0.0) for other in opponents]
    rows = rows_of(place_newcomer(code(battles), "new", scale), "new")
    assert scale.tied_rating(method, opponents) == pytest.approx(rows[method]["rating"], abs=1e-8)


def test_ties_with_one_anchor_and_no_penalty_are_that_anchors_rating():
    """By hand: sigmoid(strength - anchor) = 1/2."""
    corpus, _ = world(16)
    free = replace(scale_of(corpus), settings=RatingSettings(l2=1e-12))
    for place, anchor in enumerate(free.models):
        for method in ("hard", "soft-recalibrated"):
            rating = free.anchor_ratings(method)[place]
            assert free.tied_rating(method, [anchor] * 3) == pytest.approx(rating, abs=1e-6)


def test_anchors_stay_centred_on_their_own_scale():
    scale = scale_of(world(17)[0])
    assert scale.anchor_ratings("soft").mean() == pytest.approx(1500.0)
    assert math.isnan(scale.tied_rating("soft", []))
