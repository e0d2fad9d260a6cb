"""Counted battles: a row with a count stands for so many rows, to within 1e-9 Elo everywhere."""

from dataclasses import replace

import numpy as np
import pytest
from arenas import code, play, random_pairs
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from judgeline.diagnostics.judge import diagnose_judge
from judgeline.elo import (
    CodedBattles,
    RatingSettings,
    ScoringMethod,
    code_battles,
    fit_beta_folds,
    fit_surrogacy,
    rate,
    with_settled_votes,
)
from judgeline.elo.approximation import weights_near
from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import MOST_BATTLES
from judgeline.elo.gap import PENALTY, _fold_maxima, fit_weights, gap_features
from judgeline.intervals import rate_pooled, rate_with_votes

QUICK = RatingSettings(n_resamples=0)


def arena(
    seed: int, *, continuous: bool = False, n_models: int = 7, n_battles: int = 150
) -> tuple[CodedBattles, CodedBattles]:
    """Counted battles, and the same ones row by row in any order."""
    rng = np.random.default_rng(seed)
    pairs = random_pairs(rng, n_models, n_battles)
    strengths = rng.normal(0, 0.7, n_models)
    unvoted = [0] if seed % 2 else []
    played = play(rng, pairs, strengths, continuous=continuous, unvoted=unvoted, vote_share=0.8)
    counted = replace(code(played), count=rng.integers(1, 6, len(played)))
    rows = rng.permutation(np.repeat(np.arange(len(played)), counted.count))
    return counted, replace(counted, count=None).take(rows)


def same(ours: tuple[np.ndarray, ...], theirs: tuple[np.ndarray, ...], *, but: str = "") -> None:
    """Equal columns; numbers within 1e-9, of Elo points too, or of their size beyond 1."""
    for name in type(ours)._fields:
        one, other = getattr(ours, name), getattr(theirs, name)
        if one.dtype.kind != "f":
            assert one.tolist() == other.tolist(), name
        elif name != but:
            assert one == pytest.approx(other, rel=1e-9, abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize("continuous", [False, True])
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_count_is_so_many_rows(continuous: bool, seed: int) -> None:
    counted, single = arena(seed, continuous=continuous)
    folds = fit_beta_folds(single)
    assume((folds.status == "ok").all())
    same(fit_beta_folds(counted), folds)
    settled = with_settled_votes(counted), with_settled_votes(single)
    try:
        ratings = rate(settled[1], QUICK)
    except ValueError:  # votes that do not connect their models
        assume(condition=False)
    ours = rate(settled[0], QUICK)
    same(ours, ratings)
    for method in ("auto", "soft"):
        both = (
            rate_with_votes(everybody, votes, found, method=method)
            for everybody, votes, found in zip(
                (counted, single), settled, (ours, ratings), strict=True
            )
        )
        same(*both)


@pytest.mark.parametrize("continuous", [False, True])
def test_a_count_is_so_many_rows_where_folds_are_near_the_whole(
    continuous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fast paths of many battles: slopes by interpolation, gap weights by expansion."""
    for few in ("gap.FEW_VOTES", "beta.FEW", "approximation.FEW"):
        monkeypatch.setattr(f"judgeline.elo.{few}", 100)
    counted, single = arena(4, continuous=continuous, n_models=12, n_battles=3000)
    same(fit_beta_folds(counted), fit_beta_folds(single))
    same(rate(counted, QUICK), rate(single, QUICK))
    monkeypatch.setattr("judgeline.elo.battles._CHUNK", 100)
    same(rate(counted, QUICK), rate(single, QUICK))


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_gap_weights_are_those_of_each_fold_by_itself_however_far_it_lies(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, votes = arena(seed, n_models=8, n_battles=200, continuous=bool(seed % 2))
    votes = votes.take(votes.human_outcome >= 0)
    features = gap_features(votes)
    alone = _fold_maxima(votes, features.values, features.strength)
    monkeypatch.setattr("judgeline.elo.gap.FEW_VOTES", 0)
    reach = np.abs(features.values).max(axis=0)
    centre = fit_weights(features.values, votes.human_outcome / 2)
    around = votes, features.values, features.strength, centre
    close = weights_near(*around, reach=reach, penalty=PENALTY)[1]
    distance = np.abs(alone - centre) @ reach
    assert (close & (distance > 0.2)).any()  # of series that need more than ten orders
    series = _fold_maxima(votes, features.values, features.strength)
    assert series == pytest.approx(alone, rel=0, abs=1e-11)


def test_counts_are_exact_up_to_the_largest() -> None:
    counted = code_battles(
        ["a", "b", "a"],
        ["b", "c", "c"],
        human_outcome=[1, 0, 0.5],
        judge_outcome=[1, 0, 0.5],
        score_difference=[1, -1, 0],
        count=np.array([MOST_BATTLES - 3, 1, 2]),
    )
    assert counted.n_battles == MOST_BATTLES
    assert Sums.of(counted).human[0, 1].tolist() == [0, 0, MOST_BATTLES - 3]
    assert Sums.of(counted).scores.sum() == 2 * MOST_BATTLES


@pytest.mark.parametrize(
    ("count", "message"),
    [
        ([1, 0], "count is 0 in row 1; expected a whole number"),
        ([1.5, 1], "1.5 in row 0"),
        ([1, np.nan], "nan in row 1"),
        ([1, -2], "-2 in row 1"),
        ([MOST_BATTLES, 8], r"the sum of count is 9.00719925\d+e\+15"),
        ([1, 1, 1], r"count \(3,\)"),
    ],
)
def test_a_count_that_counts_nothing_is_refused(count: list[float], message: str) -> None:
    outcomes = {"human_outcome": [1, 0], "judge_outcome": [1, 0], "score_difference": [1, -1]}
    with pytest.raises(ValueError, match=message):
        code_battles(["a", "b"], ["b", "a"], **outcomes, count=count)


@pytest.mark.parametrize("continuous", [False, True])
def test_diagnostics_of_counts_are_those_of_rows_or_absent(continuous: bool) -> None:
    tables = []
    for battles in arena(6, continuous=continuous):
        found = diagnose_judge(battles, fit_beta_folds(battles), rate(battles, QUICK))
        rows = zip(*(column.tolist() for column in found), strict=True)
        tables.append({(name, level): (value, unit, n) for name, level, value, unit, n in rows})
    ours, theirs = tables
    [missing] = {*ours} - {*theirs}
    assert missing[0] == "surrogacy_gamma"
    assert "need single battles" in missing[1]
    common = {*ours} & {*theirs}
    assert {"beta_pooled", "beta_with_ties", "expected_calibration_error"} <= {k for k, _ in common}
    for key in common:
        assert ours[key] == (pytest.approx(theirs[key][0], rel=1e-9, nan_ok=True), *theirs[key][1:])
    assert not {"cohen_kappa", "beta_sd_at_budget"} & {name for name, _ in ours}


def test_what_takes_each_battle_by_itself_refuses_counts() -> None:
    counted, single = arena(8)
    method = {"other": ScoringMethod(outcome=np.full(len(counted), 0.5))}
    for call in (
        lambda: rate(counted, RatingSettings(n_resamples=2)),
        lambda: rate(counted, QUICK, method),
        lambda: rate(counted, QUICK, cluster=np.arange(len(counted))),
        lambda: fit_surrogacy(counted, np.random.default_rng(1)),
        lambda: rate_pooled({"one": counted, "two": counted}, QUICK),
    ):
        with pytest.raises(ValueError, match="need single battles, and these are counted"):
            call()
    assert rate(single, RatingSettings(n_resamples=2)).std_error.any()
