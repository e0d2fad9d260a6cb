"""Ratings on the human ruler: an independent program's, a logistic regression's, and by hand."""

import csv
import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from arenas import code, dense_battles, follow_scores, name, play, random_pairs, stress_battles
from likeness import by_model_and_method, rate
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from twins import Battle

from judgeline.elo import (
    ELO_PER_LOGIT,
    CodedBattles,
    RatingSettings,
    code_battles,
    fit_beta_folds,
    gap,
)
from judgeline.elo import rate as rate_battles
from judgeline.elo.gap import GapFit, fit_gap, fit_weights, gap_features
from judgeline.elo.placements import AVERAGE_FROM, place
from judgeline.intervals import rank_models

PLAINLY = RatingSettings(n_resamples=0, smoothing_levels=())

# ------------------------------------------------------------------ an independent program

COLUMNS = {
    "human": "human", "hard": "hard", "soft": "soft", "hard_anchor_ruler": "hard-rescaled",
    "soft_anchor_ruler": "soft-rescaled", "average": "average", "gap": "gap",
}  # fmt: skip
FILES = (
    "hanna_beluga-13b", "hanna_chatgpt", "hanna_llama-13b", "hanna_mistral-7b",
    "hanna_orcaplatypus", "llmfao_gpt4_majority", "llmfao_gpt4_votes", "mtbench_gpt4",
)  # fmt: skip


def rows_in(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        pytest.skip(f"no real data: {path} does not exist")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_real(path: Path) -> CodedBattles:
    rows = rows_in(path)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    score = np.array(columns["score_difference"], dtype=float)
    return code_battles(
        columns["model_a"],
        columns["model_b"],
        human_outcome=[float(vote or "nan") for vote in columns["human_outcome"]],
        judge_outcome=0.5 + 0.5 * np.sign(score),
        score_difference=score,
    )


@pytest.mark.parametrize("file", FILES)
def test_ratings_of_real_battles_are_those_of_an_independent_program(file, data_dir, expected_dir):
    known = [
        row
        for row in rows_in(expected_dir / "real_headline_methods.csv")
        if row["file"] == f"{file}.csv"
    ]
    battles = read_real(data_dir / "real" / f"{file}.csv")
    settings = RatingSettings(n_resamples=0, smoothing_levels=())
    rows = by_model_and_method(rate_battles(battles, settings))
    assert {row["model"] for row in known} == set(battles.models)
    placed = place(battles, fit_beta_folds(battles), l2=0.01).placed["gap"]
    known_strengths = ELO_PER_LOGIT * placed.std_error
    for row in known:
        for column, method in COLUMNS.items():
            expected = pytest.approx(float(row[column]), abs=2e-5)
            assert rows[row["model"], method]["rating"] == expected, (row["model"], method)
        # that program takes the judge's strengths as known; a rating's own error is larger
        error = float(known_strengths[battles.models.index(row["model"])])
        assert error == pytest.approx(float(row["gap_se"]), abs=0.05)
        assert rows[row["model"], "gap"]["std_error_analytic"] > error


# ------------------------------------------------------------------ gap


def gap_of(battles: list[Battle]) -> GapFit:
    coded = code(battles)
    return fit_gap(coded, gap_features(coded))


def features(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1, (n, 2))
    return z, np.where(rng.random(n) < 0.2, 0.5, rng.random(n) < expit(z @ [0.7, 0.4]))


@pytest.mark.parametrize("seed", range(3))
def test_weights_without_a_penalty_are_a_logistic_regression_without_intercept(seed: int) -> None:
    z, y = features(seed)
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    model.fit(np.tile(z, (2, 1)), np.repeat([1, 0], len(y)), sample_weight=np.r_[y, 1 - y])
    assert fit_weights(z, y, penalty=0.0) == pytest.approx(model.coef_[0], abs=1e-8)


@pytest.fixture(scope="module")
def many() -> list[Battle]:
    """20,000 battles of 40 models."""
    rng = np.random.default_rng(8)
    return play(rng, random_pairs(rng, 40, 20_000), rng.normal(0, 0.8, 40))


@pytest.mark.parametrize("world", ["many votes", "hub", "lopsided pairs"])
def test_the_series_for_many_votes_agrees_with_a_fit_of_each_fold(monkeypatch, world, many):
    """A hub holds nine votes in ten: no series around all votes reaches its fold."""
    rng = np.random.default_rng(8)
    played = many if world == "many votes" else stress_battles(world, continuous=True)
    pairs = zip(played[::2], follow_scores(played[1::2], rng), strict=False)
    battles = [battle for pair in pairs for battle in pair]
    each = gap_of(battles).weights
    assert np.ptp(each, axis=0).min() > 1e-3
    monkeypatch.setattr(gap, "FEW_VOTES", 0)
    assert np.abs(gap_of(battles).weights - each).max() < 2e-9  # one step of their grid


def test_no_vote_on_a_model_moves_its_weights_by_a_bit_however_many_there_are(monkeypatch, many):
    monkeypatch.setattr(gap, "FEW_VOTES", 0)
    battles = follow_scores(many[:10_000], np.random.default_rng(11))
    weights = gap_of(battles).weights
    for model in range(3):
        turned = [
            replace(b, human=1 - b.human) if name(model) in b.models() else b for b in battles
        ]
        changed = gap_of(turned).weights
        assert changed[model].tolist() == weights[model].tolist()
        assert np.abs(changed - weights).max() > 1e-3


def test_a_negative_weight_is_none_and_two_are_no_rating() -> None:
    """Scores drawn at random, and turned against the votes beside outcomes that follow them."""
    rng = np.random.default_rng(9)
    battles = play(rng, random_pairs(rng, 8, 600), rng.normal(0, 1, 8))
    against = [replace(b, score=-3 * b.human + 1.5) for b in battles]
    weights = gap_of(against).weights
    assert (weights[:, 0] == 0).all()
    assert (weights[:, 1] > 0).all()
    contrary = [replace(b, score=-b.score, judge=1 - b.judge) for b in battles]
    assert np.isnan(gap_of(contrary).weights).all()
    rows = by_model_and_method(rate(contrary, PLAINLY))
    assert math.isnan(rows[name(0), "gap"]["rating"])
    assert "no-weights" in rows[name(0), "gap"]["flags"].split(";")


# ------------------------------------------------------------------ ruler


# ------------------------------------------------------------------ the headline


@pytest.mark.parametrize("n_voted", [AVERAGE_FROM - 1, AVERAGE_FROM, AVERAGE_FROM + 1])
def test_the_headline_rests_on_how_many_other_models_have_votes(n_voted: int) -> None:
    """A newcomer has one other voted model more than a voted one."""
    rng = np.random.default_rng(n_voted)
    pairs = random_pairs(rng, n_voted, 20 * n_voted)
    pairs += [(n_voted, k) for k in range(n_voted)]  # the newcomer
    battles = play(rng, pairs, rng.normal(0, 1, n_voted + 1), unvoted=[n_voted])
    settings = RatingSettings(n_resamples=20, smoothing_levels=())
    rows = by_model_and_method(rate(battles, settings))
    methods = {method for _, method in rows} - {"human", "auto"}
    for model in (name(0), name(n_voted)):
        n_others = n_voted - (model == name(0))
        basis = "average" if n_others >= AVERAGE_FROM else "gap"
        row, known = rows[model, "auto"], rows[model, basis]
        assert row["basis"].startswith(f"{basis}: {n_others} other models have votes")
        for number in ("rating", "std_error", "std_error_analytic", "vote_std_error"):
            assert row[number] == known[number]
        assert {rows[model, method]["basis"] for method in methods} == {""}


@pytest.mark.parametrize("n_voted", [5, AVERAGE_FROM, AVERAGE_FROM + 3])
def test_one_method_for_two_models_is_fitted_to_the_last_bit_of_all(n_voted: int) -> None:
    rng = np.random.default_rng(n_voted)
    pairs = random_pairs(rng, n_voted + 1, 20 * n_voted)
    battles = code(play(rng, pairs, rng.normal(0, 1, n_voted + 1), unvoted=[n_voted]))
    whole = place(battles, l2=0.01)
    two = [1, n_voted]
    for method in ("human", "hard", "soft", "gap", "soft-rescaled", "average", "auto"):
        part = place(battles, l2=0.01, by=[method], models=[battles.models[i] for i in two])
        strength = part.strength(method)
        assert np.array_equal(strength[two], whole.strength(method)[two], equal_nan=True)
        assert np.isnan(np.delete(strength, two)).all()
        assert method != "hard" or part.placed.keys() == {"human", "hard"}


# ------------------------------------------------------------------ bad input

CAUSES = {
    "soft": "no-slope", "gap": "no-weights", "hard-rescaled": "no-ruler",
    "soft-rescaled": "no-ruler", "average": "no-ruler",
}  # fmt: skip


@cache
def bad_input() -> dict[str, list[Battle]]:
    rng = np.random.default_rng(12)
    every = dense_battles(12, size=12)

    def scored(battles: list[Battle], scores: Iterable[float]) -> list[Battle]:
        pairs = zip(battles, scores, strict=True)
        return [replace(b, score=score, judge=0.5 + score / 2) for b, score in pairs]

    few = {
        f"{n} voted models": play(
            rng, random_pairs(rng, 12, 400), rng.normal(0, 1, 12), unvoted=range(n, 12)
        )
        for n in (5, 8, 9)
    }
    names = {name(0), name(1)}
    return few | {
        "votes on one pair": [
            b if set(b.models()) == names else replace(b, human=None) for b in every
        ],
        "a judge that always says the same": scored(every, [0.0] * len(every)),
        "a judge that always says A": [replace(b, score=2.0, judge=1.0) for b in every],
        "scores of one size": scored(every, [math.copysign(1, b.score) for b in every]),
        "a model with one vote": [
            replace(b, human=None) if name(0) in b.models() and k else b
            for k, b in enumerate(every)
        ],
        "a judge that contradicts": [replace(b, score=-b.score, judge=1 - b.judge) for b in every],
        "a random judge": scored(every, rng.choice([-1.0, 0.0, 1.0], len(every))),
    }


RATED = {
    "a judge that always says the same": 0, "a judge that contradicts": 0,
    "votes on one pair": 10, "5 voted models": 12,
    "9 voted models": 12, "scores of one size": 12, "a model with one vote": 11,
}  # fmt: skip
"""Of 12 models; by one pair's votes only newcomers, and not the only opponent of one vote."""


@pytest.mark.parametrize("world", bad_input())
def test_bad_input_has_a_number_with_its_basis_or_no_number_and_a_reason(world: str) -> None:
    found = rate(bad_input()[world], PLAINLY)
    n_voted = len(set(found.model[found.n_votes > 0].tolist()))
    rows = by_model_and_method(found)
    for (model, method), row in rows.items():
        flags = set(row["flags"].split(";"))
        if method == "auto":
            others = n_voted - (row["n_votes"] > 0)
            assert (
                row["basis"] == f"gap: {others} other models have votes, fewer than {AVERAGE_FROM}"
            )
            method = "gap"
        if math.isnan(row["rating"]):
            assert flags & {CAUSES.get(method), "anchors-disconnected"}, (model, method, row)
        else:
            assert not row["std_error_analytic"] < 0
    n_rated = int(np.isfinite(found.rating[found.method == "auto"]).sum())
    assert n_rated == RATED.get(world, n_rated)
    board = rank_models(found)
    rated = np.isfinite(board.rating)
    assert (np.isinf(board.upper) | (n_voted >= 9) | ~rated).all()
    assert (np.isnan(board.lower) == ~rated).all()
    assert (board.lower[rated] <= board.rating[rated]).all()
