"""Bounds from missing battles: full refits of a slow twin, invariances, and the checks."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from arenas import code, name, play, random_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import Battle, judge_placement, tied_together, voted_models

from assets.diagnostics.missing import (
    bounds_result,
    width_result,
)
from judgeline.diagnostics.missing import (
    MissingBounds,
    bound_missing,
)
from judgeline.elo import fit_beta_folds

Halves = tuple[list[Battle], list[Battle]]
METHODS = ("hard", "soft")
EXACT = 1e-5  # Elo points


def bound(
    scored: Sequence[Battle], missing: Sequence[Battle], *, l2: float = 0.01
) -> MissingBounds:
    coded = code(scored)
    first, second = ([battle.models()[side] for battle in missing] for side in (0, 1))
    return bound_missing(coded, fit_beta_folds(coded), first, second, l2=l2)


def rows_of(bounds: MissingBounds) -> dict[tuple[str, str], dict[str, float]]:
    rows = [dict(zip(bounds._fields, row, strict=True)) for row in zip(*bounds, strict=True)]
    return {(str(row["model"]), str(row["method"])): row for row in rows}


@st.composite
def halves(draw: st.DrawFn) -> Halves:
    """Scored battles, whose votes connect all voted models, and missing ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(3, 6))
    scored = play(
        rng,
        random_pairs(rng, size, 12 * size),
        rng.normal(0, draw(st.sampled_from([0.3, 1.5])), size),
        unvoted=draw(st.sampled_from([(), (1,)])),
    )
    missing = play(rng, random_pairs(rng, size, draw(st.integers(0, 3 * size))), np.zeros(size))
    voted = voted_models(scored)
    if not tied_together([b for b in scored if b.human is not None], voted):
        return play(rng, [(0, 1)] * 20 + [(1, 2)] * 20 + [(2, 0)] * 20, np.zeros(3)), missing[:0]
    return scored, missing


def judged(battle: Battle, model: str, share: float, score: float) -> Battle:
    """A missing battle as the judge might have scored it, seen from one of its models."""
    told = Battle(battle.model_a, battle.model_b, None, share, score)
    return told if battle.model_a == model else Battle(*battle.models(), None, 1 - share, -score)


def completed(
    halves: Halves, model: str, verdicts: Sequence[tuple[float, float]], l2: float
) -> dict[str, float]:
    """Rate a model anew from all its battles by the slow twin: anchors and slope included."""
    scored, missing = halves
    own = [battle for battle in missing if model in battle.models()]
    filled = [
        judged(b, model, *verdict) for b, verdict in zip(own, verdicts[: len(own)], strict=True)
    ]
    placed = {method: judge_placement([*scored, *filled], model, method, l2) for method in METHODS}
    return {method: math.nan if p is None else p.rating for method, p in placed.items()}


# ------------------------------------------------------------------ the twin


@given(halves=halves(), l2=st.sampled_from([0.01, 0.3]), place=st.integers(0, 2))
@settings(max_examples=40)
def test_bounds_are_full_refits_with_every_missing_battle_lost_or_won(
    halves: Halves, l2: float, place: int
) -> None:
    rows, model = rows_of(bound(*halves, l2=l2)), name(place)
    as_it_stands = completed((halves[0], []), model, [], l2)
    bare = bound(halves[0], [], l2=l2)
    np.testing.assert_array_equal([bare.worst_rating, bare.best_rating], [bare.rating] * 2)
    for column, verdict in (("worst_rating", (0.0, -9.0)), ("best_rating", (1.0, 9.0))):
        refit = completed(halves, model, [verdict] * len(halves[1]), l2)
        for method in METHODS:
            if math.isnan(as_it_stands[method]):
                assert math.isnan(rows[model, method][column])
            else:
                assert rows[model, method][column] == pytest.approx(refit[method], abs=EXACT)
                assert rows[model, method]["rating"] == pytest.approx(
                    as_it_stands[method], abs=EXACT
                )


@given(halves=halves(), data=st.data())
@settings(max_examples=40)
def test_no_completion_of_a_models_battles_leaves_the_bounds(
    halves: Halves, data: st.DataObject
) -> None:
    model = name(data.draw(st.integers(0, 2)))
    verdict = st.tuples(
        st.sampled_from([0.0, 0.5, 1.0]), st.integers(-108, 108).map(lambda k: k / 12)
    )
    n_missing = len(halves[1])
    verdicts = data.draw(st.lists(verdict, min_size=n_missing, max_size=n_missing))
    rows, refit = rows_of(bound(*halves)), completed(halves, model, verdicts, 0.01)
    for method in METHODS:
        row = rows[model, method]
        if not math.isnan(row["rating"]):
            assert row["worst_rating"] - EXACT <= refit[method] <= row["best_rating"] + EXACT


# ------------------------------------------------------------------ invariances


# ------------------------------------------------------------------ who counts


@pytest.fixture(scope="module")
def trio() -> list[Battle]:
    """Three voted models and one without votes, `model-003`."""
    rng = np.random.default_rng(4)
    pairs = [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3)] * 12
    return play(rng, pairs, np.array([0.5, 0.0, -0.5, 0.2]), unvoted=[3])


def test_missing_battles_against_no_anchor_count_apart_and_an_unscored_model_has_no_bounds(trio):
    unvoted = [Battle(name(0), name(3), None, 0.5, 0.0)] * 4
    fresh = [Battle("new", name(1), None, 0.5, 0.0), Battle(name(2), "new", None, 0.5, 0.0)]
    rows = rows_of(bound(trio, [*unvoted, *fresh]))
    counts = {0: (0, 4), 1: (0, 1), 3: (4, 0)}  # in battles with anchors, and with others
    for number, known in counts.items():
        row = rows[name(number), "hard"]
        assert (row["n_missing"], row["n_missing_other"]) == known
        assert (row["worst_rating"] < row["rating"] < row["best_rating"]) == (known[0] > 0)
        assert known[0] or row["worst_rating"] == row["rating"] == row["best_rating"]
    row = rows["new", "soft"]
    assert (row["n_battles"], row["n_missing"], row["n_missing_other"]) == (0, 2, 0)
    assert all(math.isnan(row[f"{end}rating"]) for end in ("", "worst_", "best_"))


def test_a_fold_without_a_slope_has_hard_bounds_only() -> None:
    """Without model-000 nobody votes against the scores: that fold's slope has no end."""
    against = [Battle(name(0), name(1), 0.0, 1.0, 2.0)]
    rest = [Battle(name(a), name(b), 1.0, 1.0, 1.0) for a, b in ((0, 1), (1, 2), (0, 2))] * 3
    rows = rows_of(bound([*against, *rest], [Battle(name(0), name(2), None, 0.5, 0.0)]))
    assert math.isnan(rows[name(0), "soft"]["best_rating"])
    assert rows[name(0), "hard"]["worst_rating"] < rows[name(0), "hard"]["best_rating"]


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ((["a"], []), r"missing_a \(1,\), missing_b \(0,\)"),
        ((["a"], ["a"]), "missing_b is 'a' in row 0"),
        ((["a", None], ["b", "a"]), "missing_a is None in row 1"),
        (([], []), "score_difference is 9.5 in row 0; expected at most 9 apart"),
    ],
)
def test_impossible_input_is_refused_by_name(trio, missing, message) -> None:
    coded = code([replace(trio[0], score=9.5), *trio[1:]])
    with pytest.raises(ValueError, match=message):
        bound_missing(coded, fit_beta_folds(coded), *missing, l2=0.01)


# ------------------------------------------------------------------ the checks

BOUNDS = pd.DataFrame(
    {
        "model": ["ant", "ant", "bee", "bee"],
        "method": ["hard", "soft"] * 2,
        "rating": [1510.0, 1505.0, 1490.0, 1495.0],
        "worst_rating": [1500.0, 1500.0, 1490.0, 1495.0],
        "best_rating": [1530.0, 1520.0, 1490.0, 1495.0],
        "n_battles": 50,
        "n_missing": [3, 3, 0, 0],
        "n_missing_other": 0,
        "half_width": [60.0, 50.0, np.nan, np.nan],
    }
)
"""Two models: one with missing battles, one without."""
NAN = math.nan
NEW = {"model": "new", "rating": NAN, "worst_rating": NAN, "best_rating": NAN}


def changed(row: int, **values: object) -> pd.DataFrame:
    table = BOUNDS.copy()
    table.loc[row, list(values)] = list(values.values())
    return table


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        (BOUNDS, None),
        (changed(1, worst_rating=1506.0), None),  # a soft rating outside its bounds is no fault
        (changed(2, **NEW).drop(index=3), None),  # a model that was never scored has no rating
        (changed(0, rating=1510.1), "the one in heldout_ratings"),
        (changed(0, rating=NAN), "the one in heldout_ratings"),
        (changed(1, worst_rating=1521.0), "at most the best"),
        (changed(0, best_rating=1505.0), "between its worst and its best"),
        (pd.concat([BOUNDS, BOUNDS.head(1)]), "one row by each method"),
    ],
)
def test_bounds_result(bounds: pd.DataFrame, sentence: str | None) -> None:
    result = bounds_result(bounds, BOUNDS[["model", "method", "rating"]])
    assert result.passed is (sentence is None)
    assert sentence is None or ("ant" in result.description and sentence in result.description)


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        (BOUNDS, None),
        (changed(0, best_rating=1560.0), None),
        (changed(0, best_rating=1560.5), "ant hard (limit=60, width=60.5"),
        (changed(0, half_width=np.inf, best_rating=1600.5), "limit=100, width=100.5"),
        (changed(1, best_rating=NAN, worst_rating=NAN), "width=inf"),
    ],
)
def test_bounds_wider_than_half_the_interval_warn_with_the_remedy(bounds, sentence) -> None:
    result = width_result(bounds)
    assert (result.passed, result.severity.value) == (sentence is None, "WARN")
    assert sentence is None or sentence in result.description
    assert sentence is None or "--retry CLASS" in result.description
