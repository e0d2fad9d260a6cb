import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from arenas import STRESS_GRAPHS, code, dense_battles, name, play, random_pairs, stress_battles
from hypothesis import example, given, settings
from hypothesis import strategies as st
from likeness import (
    JUDGE_METHODS,
    NO_BOOTSTRAP,
    assert_like_the_twin,
    by_model_and_method,
    rate,
)
from twins import (
    ELO_PER_LOGIT,
    Battle,
    all_models,
    beta_without,
    judge_placement,
    recalibrated,
    tied_together,
    used_battles,
    voted_models,
)

from judgeline.beta import fit_beta_folds
from judgeline.heldout import HeldOutRatings, RatingSettings, fit_heldout_ratings

RULERS = ("hard-recalibrated", "soft-recalibrated", "hard-rescaled", "soft-rescaled")

# ------------------------------------------------------------------ the twin


@pytest.mark.parametrize("continuous", [False, True], ids=["grid", "continuous"])
@pytest.mark.parametrize("graph", STRESS_GRAPHS)
def test_every_stress_graph_matches_the_slow_twin(graph: str, continuous: bool) -> None:
    assert_like_the_twin(stress_battles(graph, continuous=continuous), l2=0.01)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("l2", [0.001, 0.005, 1.0])
def test_other_penalties_match_the_slow_twin(l2: float, seed: int) -> None:
    assert_like_the_twin(stress_battles("hub", seed), l2)
    assert_like_the_twin(stress_battles("very sparse", seed), l2)


def test_no_penalty_matches_the_slow_twin() -> None:
    assert_like_the_twin(dense_battles(3), l2=0.0)


def test_one_fold_without_strengths_raises_without_a_penalty() -> None:
    """Only model-000 ever beats model-009: without it, model-009 has no finite strength."""
    battles = stress_battles("everybody meets", 3)
    with pytest.raises(RuntimeError, match="no finite strengths"):
        judge_placement(battles, "model-000", "hard", 0.0)
    with pytest.raises(RuntimeError, match="strengths"):
        rate(battles, RatingSettings(l2=0.0, n_resamples=0))


@st.composite
def arenas(draw: st.DrawFn) -> list[Battle]:
    """Random battles of 2 to 9 models; some battles and some models without a vote."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(2, 9))
    pairs = random_pairs(rng, size, draw(st.integers(size, 8 * size)))
    n_unvoted = draw(st.integers(0, max(0, size - 3)))
    return play(
        rng,
        pairs,
        rng.normal(0, draw(st.sampled_from([0.0, 1.0, 4.0])), size),
        continuous=draw(st.booleans()),
        unvoted=rng.choice(size, n_unvoted, replace=False).tolist(),
        vote_share=draw(st.sampled_from([0.5, 1.0])),
    )


def is_rateable(battles: Sequence[Battle]) -> bool:
    """Whether somebody voted, and votes connect the models that have any."""
    voted = voted_models(battles)
    votes = [battle for battle in battles if battle.human is not None]
    return bool(voted) and tied_together(votes, voted)


@given(battles=arenas(), l2=st.sampled_from([0.005, 0.01, 0.3]))
@settings(max_examples=80)
def test_random_battles_match_the_slow_twin(battles: list[Battle], l2: float) -> None:
    if is_rateable(battles):
        assert_like_the_twin(battles, l2)
    else:
        with pytest.raises(ValueError, match=r"no chain of battles with a vote|nobody voted"):
            rate(battles)


@pytest.mark.parametrize("size", [2, 3])
def test_the_smallest_arenas_match_the_slow_twin(size: int) -> None:
    rng = np.random.default_rng(size)
    assert_like_the_twin(play(rng, random_pairs(rng, size, 40), rng.normal(0, 1, size)), l2=0.01)


def test_two_models_meet_an_anchor_at_1500() -> None:
    """By hand: the one anchor has no battles left, so it rests at strength zero."""
    battles = [Battle("a", "b", 1.0, 1.0, 1.0)] * 3 + [Battle("a", "b", 0.0, 1.0, 1.0)]
    row = by_model_and_method(rate(battles, RatingSettings(l2=0.0, n_resamples=0)))["a", "human"]
    assert row["rating"] == pytest.approx(1500 + ELO_PER_LOGIT * math.log(3), abs=1e-6)


# ------------------------------------------------------------------ what rows say


@pytest.fixture(scope="module")
def arena_with_new_models() -> list[Battle]:
    rng = np.random.default_rng(21)
    pairs = random_pairs(rng, 8, 320)
    return play(rng, pairs, rng.normal(0, 1, 8), unvoted=[3, 6], vote_share=0.8)


def test_methods_and_rows_are_complete(arena_with_new_models: list[Battle]) -> None:
    rows = by_model_and_method(rate(arena_with_new_models))
    judged = {(name(k), method) for k in range(8) for method in (*JUDGE_METHODS, *RULERS)}
    assert set(rows) == judged | {(name(k), "human") for k in (0, 1, 2, 4, 5, 7)}


def test_counts_are_of_the_battles_used(arena_with_new_models: list[Battle]) -> None:
    battles = arena_with_new_models
    rows = by_model_and_method(rate(battles))
    for model in all_models(battles):
        own = [b for b in used_battles(battles, model) if model in b.models()]
        n_votes = sum(b.human is not None for b in own)
        assert rows[model, "soft"]["n_battles"] == rows[model, "hard"]["n_battles"] == len(own)
        assert {rows[key]["n_votes"] for key in rows if key[0] == model} == {n_votes}
        if n_votes:
            assert rows[model, "human"]["n_battles"] == n_votes


def test_beta_stands_with_the_soft_methods_only(arena_with_new_models: list[Battle]) -> None:
    for (model, method), row in by_model_and_method(rate(arena_with_new_models)).items():
        if method.startswith("soft"):
            expected, _ = beta_without(arena_with_new_models, model)
            assert row["beta"] == pytest.approx(expected, rel=1e-9)
        else:
            assert math.isnan(row["beta"])


def test_a_model_without_votes_is_flagged_and_has_no_residual(
    arena_with_new_models: list[Battle],
) -> None:
    for (model, _), row in by_model_and_method(rate(arena_with_new_models)).items():
        unvoted = model in (name(3), name(6))
        assert ("no-votes" in row["flags"].split(";")) is unvoted
        assert math.isnan(row["residual"]) is math.isnan(row["human_rating"]) is unvoted
        assert not math.isnan(row["rating"])


def test_rulers_are_the_lines_through_the_other_models(
    arena_with_new_models: list[Battle],
) -> None:
    rows = by_model_and_method(rate(arena_with_new_models))
    models = all_models(arena_with_new_models)
    human = {m: rows[m, "human"]["rating"] for m in voted_models(arena_with_new_models)}
    for base in ("hard", "soft"):
        judge = {model: rows[model, base]["rating"] for model in models}
        for model in models:
            for ruler in ("recalibrated", "rescaled"):
                row = rows[model, f"{base}-{ruler}"]
                rating, slope = recalibrated(judge, human, model, through_1500=ruler == "rescaled")
                assert row["rating"] == pytest.approx(rating, abs=1e-7)
                stretched = abs(slope) * rows[model, base]["std_error_analytic"]
                assert row["std_error_analytic"] == pytest.approx(stretched, rel=1e-9)
                if model in human:
                    assert row["residual"] == pytest.approx(rating - human[model], abs=1e-7)


def test_a_model_that_always_wins_is_finite_and_flagged() -> None:
    rng = np.random.default_rng(22)
    rest = play(rng, random_pairs(rng, 5, 100), rng.normal(0, 1, 5))
    champion = [Battle("champion", name(k % 5), 1.0, 1.0, 3.0) for k in range(20)]
    loser = [Battle(name(k % 5), "loser", 1.0, 1.0, 3.0) for k in range(20)]
    rows = by_model_and_method(rate([*rest, *champion, *loser]))
    ratings = {model: row["rating"] for (model, method), row in rows.items() if method == "hard"}
    assert all(map(math.isfinite, ratings.values()))
    assert max(ratings, key=ratings.__getitem__) == "champion"
    assert min(ratings, key=ratings.__getitem__) == "loser"
    assert "always" in rows["champion", "hard"]["flags"]
    assert "never" in rows["loser", "hard"]["flags"]
    assert not rows[name(0), "hard"]["flags"]


def test_a_model_that_holds_the_graph_together_has_no_rating_and_says_so() -> None:
    rows = by_model_and_method(rate(stress_battles("star")))
    assert math.isnan(rows[name(0), "hard"]["rating"])
    assert "anchors-disconnected" in rows[name(0), "hard"]["flags"].split(";")
    assert math.isfinite(rows[name(1), "hard"]["rating"])


def test_a_new_model_that_met_no_anchor_has_no_rating_and_says_so() -> None:
    rng = np.random.default_rng(23)
    rest = play(rng, random_pairs(rng, 5, 100), rng.normal(0, 1, 5))
    newcomers = [Battle("new-1", "new-2", None, 1.0, 2.0)] * 5
    rows = by_model_and_method(rate([*rest, *newcomers]))
    for model in ("new-1", "new-2"):
        assert math.isnan(rows[model, "soft"]["rating"])
        assert {"no-votes", "no-battles-with-anchors"} <= set(
            rows[model, "soft"]["flags"].split(";")
        )


def test_one_fold_without_a_temperature_costs_that_model_only() -> None:
    """Only the first model's votes ever contradict the judge: its own fold is separable."""
    rng = np.random.default_rng(26)
    battles = []
    for battle in play(rng, random_pairs(rng, 12, 240), rng.normal(0, 1, 12)):
        agrees = 0.5 + 0.5 * float(np.sign(battle.score))
        human = battle.human if name(0) in battle.models() else agrees
        battles.append(Battle(battle.model_a, battle.model_b, human, battle.judge, battle.score))
    assert beta_without(battles, name(0))[1] == "separable"
    assert beta_without(battles, name(1))[1] == "ok"
    assert_like_the_twin(battles, l2=0.01)


def test_a_judge_that_contradicts_humans_has_no_soft_rating() -> None:
    rng = np.random.default_rng(24)
    battles = play(rng, random_pairs(rng, 5, 200), rng.normal(0, 2, 5))
    contrary = [Battle(b.model_a, b.model_b, b.human, 1 - b.judge, -b.score) for b in battles]
    coded = code(contrary)
    folds = fit_beta_folds(coded)
    assert set(folds.status.tolist()) == {"contradicts-humans"}
    rows = by_model_and_method(fit_heldout_ratings(coded, folds, NO_BOOTSTRAP))
    for (_, method), row in rows.items():
        assert math.isnan(row["rating"]) is method.startswith("soft")


# ------------------------------------------------------------------ invariances


def assert_same(first: HeldOutRatings, second: HeldOutRatings, *, elo: float = 1e-6) -> None:
    for field in first._fields:
        ours, theirs = getattr(first, field), getattr(second, field)
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=elo, err_msg=field)
        else:
            assert ours.tolist() == theirs.tolist(), field


BOOTSTRAPPED = RatingSettings(n_resamples=20, stream=("corpus", "judge"))


@given(arenas().filter(is_rateable), st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_order_of_battles_changes_nothing(battles: list[Battle], random: Any) -> None:
    shuffled = list(battles)
    random.shuffle(shuffled)
    assert_same(rate(battles, BOOTSTRAPPED), rate(shuffled, BOOTSTRAPPED))


@given(arenas().filter(is_rateable), st.integers(0, 2**16))
@settings(max_examples=20)
def test_swapping_sides_changes_nothing(battles: list[Battle], mask: int) -> None:
    some_swapped = [b.swapped() if mask >> (k % 16) & 1 else b for k, b in enumerate(battles)]
    assert_same(rate(battles, BOOTSTRAPPED), rate(some_swapped, BOOTSTRAPPED))


def test_other_smoothing_levels_change_no_other_method() -> None:
    battles = stress_battles("hub")
    settings = RatingSettings(n_resamples=20)
    everything = by_model_and_method(rate(battles, settings))
    less = RatingSettings(n_resamples=20, smoothing_levels=(0.75,))
    for key, row in by_model_and_method(rate(battles, less)).items():
        for field in ("rating", "residual", "std_error", "std_error_analytic"):
            assert row[field] == pytest.approx(everything[key][field], nan_ok=True), (key, field)


def test_renaming_models_renames_rows_only() -> None:
    """Order of models is the order of names; no number may depend on it."""
    battles = stress_battles("one weak link")
    reverse = {model: f"z{99 - k}" for k, model in enumerate(all_models(battles))}
    renamed = [
        Battle(reverse[b.model_a], reverse[b.model_b], b.human, b.judge, b.score) for b in battles
    ]
    rows, renamed_rows = by_model_and_method(rate(battles)), by_model_and_method(rate(renamed))
    for (model, method), row in rows.items():
        twin = renamed_rows[reverse[model], method]
        assert twin["rating"] == pytest.approx(row["rating"], abs=1e-6, nan_ok=True)


def test_doubling_battles_halves_the_squared_error_without_a_penalty() -> None:
    battles = dense_battles(5)
    settings = RatingSettings(l2=0.0, n_resamples=0)
    once = by_model_and_method(rate(battles, settings))
    twice = by_model_and_method(rate([*battles, *battles], settings))
    for key, row in once.items():
        assert twice[key]["rating"] == pytest.approx(row["rating"], abs=1e-5)
        assert twice[key]["std_error_analytic"] == pytest.approx(
            row["std_error_analytic"] / math.sqrt(2), rel=1e-6
        )


@example(scale=3.0)
@example(scale=1 / 7)
@given(scale=st.floats(0.05, 20))
@settings(max_examples=10)
def test_the_unit_of_scores_does_not_matter(scale: float) -> None:
    battles = stress_battles("everybody meets", 6)
    scaled = [Battle(b.model_a, b.model_b, b.human, b.judge, scale * b.score) for b in battles]
    plain, other = by_model_and_method(rate(battles)), by_model_and_method(rate(scaled))
    for key, row in plain.items():
        assert other[key]["rating"] == pytest.approx(row["rating"], abs=1e-5)


def test_the_same_call_gives_the_same_numbers() -> None:
    battles = stress_battles("hub")
    assert_same(rate(battles, BOOTSTRAPPED), rate(battles, BOOTSTRAPPED), elo=0.0)


# ------------------------------------------------------------------ refusals


def test_unconnected_votes_are_refused_by_name() -> None:
    islands = [Battle("a", "b", 1.0, 1.0, 1.0), Battle("c", "d", 0.0, 0.0, -1.0)] * 4
    islands += [Battle("a", "b", 0.0, 1.0, 1.0), Battle("b", "e", 1.0, 1.0, 1.0)]
    with pytest.raises(ValueError, match=r"2 of 5 voted models .* c, d"):
        rate(islands)


def test_battles_without_any_vote_are_refused() -> None:
    with pytest.raises(ValueError, match="nobody voted"):
        rate([Battle("a", "b", None, 1.0, 1.0), Battle("b", "c", None, 1.0, 1.0)])


def test_folds_of_other_battles_are_refused() -> None:
    coded = code(stress_battles("hub"))
    others = fit_beta_folds(code(stress_battles("hub")[:3]))
    with pytest.raises(ValueError, match="beta folds"):
        fit_heldout_ratings(coded, others, NO_BOOTSTRAP)


@pytest.mark.parametrize("method", ["human", "hard"])
def test_strengths_that_do_not_exist_raise(method: str) -> None:
    """Without a penalty a model that always wins has no finite strength."""
    rng = np.random.default_rng(25)
    rest = play(rng, random_pairs(rng, 5, 200), rng.normal(0, 1, 5))
    champion = [
        Battle(
            "champion",
            name(k % 5),
            *((1.0, float(k > 9)) if method == "human" else (float(k > 9), 1.0)),
            1.0,
        )
        for k in range(20)
    ]
    with pytest.raises(RuntimeError):
        rate([*rest, *champion], RatingSettings(l2=0.0, n_resamples=0))


@pytest.mark.parametrize(
    "settings",
    [
        {"l2": -0.1},
        {"l2": math.nan},
        {"n_resamples": -1},
        {"n_resamples": 1},  # one resample has no standard deviation
        {"seed": -1},
        {"smoothing_levels": (0.4,)},
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(settings.values()))).strip("(),")):
        rate(stress_battles("hub"), RatingSettings(**{"n_resamples": 20, **settings}))


def test_a_cluster_per_battle_is_no_clustering() -> None:
    battles = stress_battles("hub")
    plain = rate(battles)
    alone = rate(battles, cluster=np.arange(len(battles)))
    assert_same(plain, alone, elo=1e-6)


def test_a_cluster_column_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="cluster"):
        rate(stress_battles("hub"), cluster=np.arange(7))
