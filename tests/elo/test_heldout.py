"""Leave-one-model-out ratings against slow twins, and what no vote, name or order may move."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arenas import (
    STRESS_GRAPHS,
    code,
    dense_battles,
    follow_scores,
    name,
    play,
    random_pairs,
    stress_battles,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lanes import sized
from likeness import (
    JUDGE_METHODS,
    Rows,
    assert_like_the_twin,
    assert_rating,
    by_model_and_method,
    rate,
)
from scipy.special import expit
from twins import (
    SMOOTHING_LEVELS,
    Battle,
    all_models,
    beta_without,
    held_out,
    judge_placement,
    tied_together,
    used_battles,
    voted_models,
)

from judgeline.elo import HeldOutRatings, RatingSettings, ScoringMethod, fit_beta_folds
from judgeline.intervals import rank_models, rate_with_votes

# ------------------------------------------------------------------ the twin


@pytest.mark.slow
@pytest.mark.parametrize(
    ("graph", "seed", "continuous", "l2"),
    [(graph, 0, continuous, 0.01) for graph in STRESS_GRAPHS for continuous in (False, True)]
    + [
        (graph, seed, False, l2)
        for graph in ("hub", "very sparse")
        for seed in (1, 2)
        for l2 in (0.001, 0.005, 1.0)
    ],
)
def test_every_stress_graph_matches_the_slow_twin(graph, seed, continuous, l2):
    assert_like_the_twin(stress_battles(graph, seed, continuous=continuous), l2)


@pytest.mark.slow
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
    battles = play(
        rng,
        pairs,
        rng.normal(0, draw(st.sampled_from([0.0, 1.0, 4.0])), size),
        continuous=draw(st.booleans()),
        unvoted=rng.choice(size, n_unvoted, replace=False).tolist(),
        vote_share=draw(st.sampled_from([0.5, 1.0])),
    )
    return follow_scores(battles, rng) if draw(st.booleans()) else battles


def is_rateable(battles: Sequence[Battle]) -> bool:
    """Whether somebody voted, and votes connect the models that have any."""
    voted = voted_models(battles)
    votes = [battle for battle in battles if battle.human is not None]
    return bool(voted) and tied_together(votes, voted)


@pytest.mark.slow
@given(battles=arenas(), l2=st.sampled_from([0.005, 0.01, 0.3]))
@settings(max_examples=80)
def test_random_battles_match_the_slow_twin(battles: list[Battle], l2: float) -> None:
    if is_rateable(battles):
        assert_like_the_twin(battles, l2)
    else:
        with pytest.raises(ValueError, match=r"no chain of battles with a vote|nobody voted"):
            rate(battles)


# ------------------------------------------------------------------ what rows say

NEW = (3, 6)


@pytest.fixture(scope="module")
def battles() -> list[Battle]:
    """Ten models, two of them without a vote."""
    rng = np.random.default_rng(77)
    pairs = random_pairs(rng, 10, 500)
    return play(rng, pairs, rng.normal(0, 1, 10), unvoted=NEW, vote_share=0.8)


@pytest.fixture(scope="module")
def rows(battles: list[Battle]) -> Rows:
    return by_model_and_method(rate(battles))


def test_methods_counts_and_slopes_are_complete(battles: list[Battle], rows: Rows) -> None:
    judged = {(name(k), method) for k in range(10) for method in JUDGE_METHODS}
    assert set(rows) == judged | {(name(k), "human") for k in set(range(10)) - set(NEW)}
    for model in all_models(battles):
        own = [b for b in used_battles(battles, model) if model in b.models()]
        n_votes = sum(b.human is not None for b in own)
        slope, _ = beta_without(battles, model)
        for method in (*JUDGE_METHODS, "human") if n_votes else JUDGE_METHODS:
            row = rows[model, method]
            counts = n_votes if method == "human" else len(own)
            assert (row["n_battles"], row["n_votes"]) == (counts, n_votes)
            known = slope if method.startswith("soft") else math.nan
            assert row["beta"] == pytest.approx(known, rel=1e-9, nan_ok=True)
            assert ("no-votes" in row["flags"].split(";")) is (n_votes == 0)
            assert math.isnan(row["human_rating"]) is (n_votes == 0)
            assert not math.isnan(row["rating"])


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
    rows = by_model_and_method(rate(stress_battles("star"), PLAINLY))
    assert math.isnan(rows[name(0), "hard"]["rating"])
    assert "anchors-disconnected" in rows[name(0), "hard"]["flags"].split(";")
    assert math.isfinite(rows[name(1), "hard"]["rating"])


# ------------------------------------------------------------------ newcomers


PLAINLY = RatingSettings(n_resamples=0, smoothing_levels=())
NUMBERS = ("rating", "std_error", "std_error_analytic", "vote_std_error", "outward", "beta")
BOOTSTRAPPED = RatingSettings(
    n_resamples=20, stream=("corpus", "judge"), smoothing_levels=(SMOOTHING_LEVELS[0],)
)


def test_no_newcomer_moves_another_model_but_through_the_judges_own_strengths() -> None:
    battles = dense_battles(36)
    fresh = [Battle("a-newcomer", name(k % 12), None, float(k % 3 > 0), 1.0) for k in range(30)]
    both = [Battle("a-newcomer", "b-newcomer", None, 1.0, 9.0)] * 20  # neither is an anchor
    more = by_model_and_method(rate([*battles, *fresh, *both], BOOTSTRAPPED))
    for key, row in by_model_and_method(rate([*battles, *fresh], BOOTSTRAPPED)).items():
        if key[1] not in ("gap", "auto"):
            for n in NUMBERS:
                assert more[key][n] == pytest.approx(row[n], rel=1e-9, abs=1e-6, nan_ok=True), key
    assert math.isnan(more["b-newcomer", "auto"]["rating"])
    assert more["b-newcomer", "auto"]["flags"] == "no-votes;no-battles-with-anchors"


def test_rows_of_some_models_are_their_rows_of_all(battles: list[Battle]) -> None:
    some = rate(battles, BOOTSTRAPPED, models=[name(3), name(7)])
    every = by_model_and_method(rate(battles, BOOTSTRAPPED))
    assert set(some.model.tolist()) == {name(3), name(7)}
    for key, row in by_model_and_method(some).items():
        assert all(np.array_equal(row[n], every[key][n], equal_nan=True) for n in NUMBERS)


# ------------------------------------------------------------------ other scorings


def learnt_outcomes(battles: list[Battle]) -> np.ndarray:
    """Outcomes that differ from fold to fold, and not between the models without votes."""
    learnt = np.random.default_rng(5).random((len(all_models(battles)), len(battles)))
    learnt[NEW[1]] = learnt[NEW[0]]
    return learnt


def test_outcomes_of_every_fold_rate_like_the_slow_twin(battles: list[Battle]) -> None:
    learnt = learnt_outcomes(battles)
    row_of = {id(battle): row for row, battle in enumerate(battles)}
    rows = by_model_and_method(rate(battles, methods={"learnt": ScoringMethod(outcome=learnt)}))
    for fold, model in enumerate(all_models(battles)):
        share = learnt[fold]
        expected = held_out(battles, model, lambda b, p=share: float(p[row_of[id(b)]]), 0.01)
        assert_rating(rows[model, "learnt"], expected)


def test_the_judge_as_a_scoring_method_is_hard_and_soft(battles: list[Battle]) -> None:
    coded = code(battles)
    beta, points = fit_beta_folds(coded).beta, coded.rubric_points()
    methods = {
        "as-outcome": ScoringMethod(outcome=coded.judge_outcome / 4),
        "as-score": ScoringMethod(score_difference=0.013 * points),
        "as-folds": ScoringMethod(outcome=expit(beta[:, None] * points)),
    }
    found = rate(battles, methods=methods)
    for method, known in {"as-outcome": "hard", "as-score": "soft", "as-folds": "soft"}.items():
        for suffix in ("", "-rescaled"):
            ours, theirs = (found.take(found.method == name + suffix) for name in (method, known))
            assert ours.rating == pytest.approx(theirs.rating, rel=1e-6)
            assert ours.std_error_analytic == pytest.approx(theirs.std_error_analytic, rel=1e-6)
    assert 0.013 * found.beta[found.method == "as-score"] == pytest.approx(beta, rel=1e-6)


@pytest.mark.parametrize("lacking", [(0,), NEW])
def test_a_fold_without_outcomes_costs_its_models_only(battles, lacking):
    learnt = learnt_outcomes(battles)
    less = learnt.copy()
    less[list(lacking)] = np.nan
    methods = {"whole": ScoringMethod(outcome=learnt), "less": ScoringMethod(outcome=less)}
    rows = by_model_and_method(rate(battles, PLAINLY, methods=methods))
    for number, model in enumerate(all_models(battles)):
        found, known = (rows[model, method]["rating"] for method in ("less", "whole"))
        assert math.isnan(found) if number in lacking else found == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize(
    ("called", "fields", "complaint"),
    [
        ("odd", {"outcome": np.full(500, 1.2)}, "'model-000' held out is 1.2 in row 0"),
        ("odd", {"outcome": np.zeros((2, 500))}, r"the shape of 'odd' is \(2, 500\)"),
        ("odd", {"score_difference": np.zeros(3)}, r"the shape of 'odd' is \(3,\)"),
        ("odd", {"score_difference": np.full(500, np.nan)}, "of 'odd' is nan in row 0"),
        ("odd", {}, "either outcomes or score differences"),
        ("hard", {"outcome": np.zeros(500)}, "'hard', which is made from the battles"),
    ],
)
def test_impossible_scores_are_refused(battles, called, fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        rate(battles, methods={called: ScoringMethod(**fields)})


# ------------------------------------------------------------------ a model's own votes

OWN = {
    "reversed": lambda b, k: None if b.human is None else 1 - b.human,
    "deleted": lambda b, k: None,
    "half deleted": lambda b, k: b.human if k % 2 else None,
    "invented": lambda b, k: (1.0, 0.5, 0.0)[k % 3],
}
FEW_DRAWS = RatingSettings(n_resamples=2, smoothing_levels=(SMOOTHING_LEVELS[0],))
BY_JUDGE = ("judge_rating", "judge_std_error", "hard_rating", "soft_rating", "beta", "basis")
OF_PEOPLE = {"no-votes", "humans-always-prefer", "humans-never-prefer"}


@st.composite
def votes_changed(draw: st.DrawFn) -> tuple[list[Battle], list[Battle], str]:
    """Battles, the same with other votes on one model, and that model; anchors stay."""
    battles = draw(arenas())
    model, change = draw(st.sampled_from(all_models(battles))), OWN[draw(st.sampled_from([*OWN]))]
    changed = [
        replace(b, human=change(b, k)) if model in b.models() else b for k, b in enumerate(battles)
    ]
    others, still = (set(voted_models(each)) - {model} for each in (battles, changed))
    assume(others == still and is_rateable(battles) and is_rateable(changed))
    return battles, changed, model


@given(votes_changed(), st.booleans())
@settings(max_examples=sized(1500, 80))
def test_no_vote_on_a_model_has_a_say_in_what_the_judge_says_of_it(changed, clustered):
    """To the last bit, by every method."""
    before, after, model = changed
    cluster = np.arange(len(before)) // 3 if clustered else None
    tables = [
        by_model_and_method(rate(each, FEW_DRAWS, cluster=cluster, models=[model]))
        for each in (before, after)
    ]
    methods = {method for _, method in tables[0]} - {"human"}
    assert len(methods) == len(JUDGE_METHODS) - len(SMOOTHING_LEVELS) + 1
    for method in methods:
        rows = [table[model, method] for table in tables]
        for number in NUMBERS:
            assert np.array_equal(*(row[number] for row in rows), equal_nan=True), (method, number)
        flags = [set(row["flags"].split(";")) - OF_PEOPLE - {""} for row in rows]
        assert flags[0] == flags[1]
        assert rows[0]["basis"] == rows[1]["basis"]
        assert rows[0]["n_battles"] == rows[1]["n_battles"]


@pytest.mark.parametrize("change", OWN)
def test_own_votes_move_nothing_that_the_judge_says_on_the_board(change: str) -> None:
    """Its ends are those of a newcomer: all residuals move these, the model's own among them."""
    battles, question = dense_battles(41), np.arange(8 * 66) // 3
    changed = [
        replace(b, human=OWN[change](b, k)) if name(4) in b.models() else b
        for k, b in enumerate(battles)
    ]
    rows = []
    for each in (battles, changed):
        heldout, coded = rate(each, BOOTSTRAPPED, cluster=question), code(each)
        options = {"method": "auto", "std_error": "bootstrap"}
        together = rate_with_votes(coded, coded, heldout, cluster=question, **options)
        board = rank_models(heldout, together, **options)
        (row,) = np.flatnonzero(board.model == name(4))
        rows.append({column: getattr(board, column)[row] for column in BY_JUDGE})
        assert board.n_votes[row] == sum(b.human is not None for b in each if name(4) in b.models())
    assert rows[0] == rows[1]


# ------------------------------------------------------------------ invariances


def assert_same(first: Any, second: Any, *, elo: float = 1e-6) -> None:
    for field in first._fields:
        ours, theirs = getattr(first, field), getattr(second, field)
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=elo, err_msg=field)
        else:
            assert ours.tolist() == theirs.tolist(), field


def without_gap(heldout: HeldOutRatings) -> HeldOutRatings:
    kept = ~np.isin(heldout.method, ["gap", "auto"])
    return HeldOutRatings._make(column[kept] for column in heldout)


@given(arenas().filter(is_rateable), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=30)
def test_the_order_of_battles_changes_nothing(battles, random, clustered: bool) -> None:
    """Neither ratings nor intervals, also where questions are drawn together."""
    order = list(range(len(battles)))
    random.shuffle(order)
    question = [f"q{k // 3}" for k in range(len(battles))]
    found = []
    for rows in (range(len(battles)), order):
        each, cluster = [battles[k] for k in rows], None
        if clustered:
            cluster = np.array([question[k] for k in rows])
        coded, heldout = code(each), rate(each, BOOTSTRAPPED, cluster=cluster)
        options = {"method": "auto", "miscoverage": 0.4}
        together = rate_with_votes(coded, coded, heldout, cluster=cluster, **options)
        found.append((heldout, rank_models(heldout, together, **options)))
    for tables in zip(*found, strict=True):
        assert_same(*tables)


@pytest.mark.slow
@given(arenas().filter(is_rateable), st.integers(0, 2**16))
@settings(max_examples=20)
def test_swapping_sides_changes_nothing(battles: list[Battle], mask: int) -> None:
    """Of some battles; of all of them where ratings rest on standard deviations over battles."""
    swapped = [b.swapped() for b in battles]
    some = [(b, b.swapped())[mask >> (k % 16) & 1] for k, b in enumerate(battles)]
    plain = [without_gap(rate(each, BOOTSTRAPPED)) for each in (battles, some)]
    assert_same(*plain)
    assert_same(rate(battles, BOOTSTRAPPED), rate(swapped, BOOTSTRAPPED), elo=1e-9)


# ------------------------------------------------------------------ refusals

ISLANDS = [
    *[Battle("a", "b", 1.0, 1.0, 1.0), Battle("c", "d", 0.0, 0.0, -1.0)] * 4,
    Battle("a", "b", 0.0, 1.0, 1.0),
    Battle("b", "e", 1.0, 1.0, 1.0),
]
UNVOTED = [Battle("a", "b", None, 1.0, 1.0), Battle("b", "c", None, 1.0, 1.0)]


@pytest.mark.parametrize(
    ("battles", "complaint"), [(ISLANDS, r"2 of 5 models .* c, d"), (UNVOTED, "nobody voted")]
)
def test_votes_that_make_no_scale_are_refused(battles: list[Battle], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        rate(battles)


def test_folds_of_other_battles_are_refused(battles: list[Battle]) -> None:
    with pytest.raises(ValueError, match="beta folds"):
        rate(battles, beta_folds=fit_beta_folds(code(battles[:3])))


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
        RatingSettings(**{"n_resamples": 20, **settings})
