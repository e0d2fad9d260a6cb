"""Judges pooled into one: known answers, real judges, and no say of a model's own votes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judgeline.elo import (
    CodedBattles,
    HeldOutRatings,
    RatingSettings,
    code_battles,
    gap,
    rate,
    summarise,
)
from judgeline.intervals import calibrate_intervals, rank_models, rate_pooled

PLAIN = RatingSettings(n_resamples=0, smoothing_levels=())


@cache
def arena(n_judges: int = 3, n: int = 1500, size: int = 9) -> dict[str, CodedBattles]:
    """Judges of one set of battles; each errs by itself, in battles and in models."""
    rng = np.random.default_rng(5)
    first = rng.integers(0, size, n)
    second = (first + rng.integers(1, size, n)) % size
    strength, names = rng.normal(0, 0.8, size), np.array([f"model-{k}" for k in range(size)])
    gap = strength[first] - strength[second] + rng.normal(0, 0.7, n)
    vote = np.where(rng.random(n) < 0.1, 0.5, rng.random(n) < 1 / (1 + np.exp(-gap)))
    vote[rng.random(n) < 0.3] = np.nan
    judges = {}
    for k in range(n_judges):
        bias = rng.normal(0, 0.3, size)
        seen = gap + bias[first] - bias[second] + rng.normal(0, 1 + k, n)
        judges[f"judge-{k}"] = code_battles(
            names[first],
            names[second],
            human_outcome=vote,
            judge_outcome=(np.sign(np.rint(12 * seen)) + 1) / 2,
            score_difference=np.clip(np.rint(12 * seen) / 12, -9, 9),
        )
    return judges


def each(
    judges: dict[str, CodedBattles], change: Callable[[CodedBattles], dict[str, Any]]
) -> dict[str, CodedBattles]:
    return {name: replace(own, **change(own)) for name, own in judges.items()}


def of(ratings: HeldOutRatings, method: str, field: str = "rating") -> np.ndarray:
    return getattr(ratings, field)[ratings.method == method]


def test_one_judge_or_two_that_are_equal_are_their_own_gap() -> None:
    battles = arena()["judge-0"]
    whole = rate(battles, PLAIN)
    for judges in ({"judge-0": battles}, {"this": battles, "that": battles}):
        pooled = rate_pooled(judges, PLAIN)
        for field in ("rating", "std_error_analytic", "residual", "vote_std_error"):
            assert of(pooled, "pooled", field) == pytest.approx(of(whole, "gap", field), abs=1e-9)
        assert of(pooled, "human").tolist() == of(whole, "human").tolist()


def test_order_scale_and_sides_of_judges_do_not_matter() -> None:
    judges = arena()
    reverse = dict(reversed(judges.items()))
    stretched = replace(
        judges["judge-0"], score_difference=7.0 * judges["judge-0"].rubric_points(), denominator=0
    )
    swapped = each(
        judges,
        lambda own: {
            "model_a": own.model_b,
            "model_b": own.model_a,
            "human_outcome": np.where(own.human_outcome < 0, -1, 2 - own.human_outcome),
            "judge_outcome": 4 - own.judge_outcome,
            "score_difference": -own.score_difference,
        },
    )
    ratings = of(rate_pooled(judges, PLAIN), "pooled")
    assert of(rate_pooled(reverse, PLAIN), "pooled").tolist() == ratings.tolist()
    for same in (reverse | {"judge-0": stretched}, swapped):
        assert of(rate_pooled(same, PLAIN), "pooled") == pytest.approx(ratings, abs=1e-6)


def changed_votes(own: np.ndarray, vote: np.ndarray) -> Iterator[np.ndarray]:
    """Yield votes in which a model's own were reversed, deleted or invented."""
    rng = np.random.default_rng(2)
    yield np.where(own & (vote >= 0), 2 - vote, vote)
    yield np.where(own, -1, vote)
    yield np.where(own, rng.integers(0, 3, vote.size), vote)
    yield np.where(own & (rng.random(vote.size) < 0.5), -1, vote)


@pytest.mark.parametrize("model", [0, 4, 8])
@pytest.mark.parametrize("expanded", [False, True], ids=["few votes", "around all votes"])
def test_no_vote_on_a_model_moves_its_pooled_rating(model, expanded, monkeypatch):
    judges = arena(n_judges=1, n=20_000) if expanded else arena()
    settings = RatingSettings(n_resamples=0 if expanded else 20, smoothing_levels=())
    exact = of(rate_pooled(judges, settings), "pooled").tolist()
    if expanded:
        monkeypatch.setattr(gap, "FEW_VOTES", 0)
    before = rate_pooled(judges, settings)
    assert of(before, "pooled").tolist() == exact
    one = judges["judge-0"]
    for votes in changed_votes((one.model_a == model) | (one.model_b == model), one.human_outcome):
        changed = each(judges, lambda _, votes=votes: {"human_outcome": votes.astype(np.int8)})
        after = rate_pooled(changed, settings, models=[one.models[model]])
        rows = [row_of(ratings, one.models[model]) for ratings in (before, after)]
        assert np.array_equal(*rows, equal_nan=True)


def row_of(ratings: HeldOutRatings, model: str) -> tuple[float, ...]:
    row = (ratings.model == model) & (ratings.method == "pooled")
    fields = ("rating", "std_error", "std_error_analytic", "vote_std_error", "n_battles")
    return tuple(float(getattr(ratings, field)[row][0]) for field in fields)


def test_a_pooled_rating_is_ranked_calibrated_and_summarised_as_any_other() -> None:
    ratings = rate_pooled(arena(n=6000, size=14), RatingSettings(n_resamples=5))
    board = rank_models(ratings, method="pooled")
    assert np.isfinite([board.lower, board.upper]).all()
    who = "judge-0, judge-1, judge-2"
    assert set(board.basis) == {f"regression of votes on the mean score and gap of {who}"}
    assert board.rating.tolist() == sorted(of(ratings, "pooled"), reverse=True)
    assert calibrate_intervals(ratings).method.tolist() == ["pooled"]
    assert summarise(ratings).method.tolist() == ["pooled"]
    assert np.isnan(board.hard_rating).all()


def test_a_model_without_votes_is_placed_too() -> None:
    judges = each(
        arena(),
        lambda own: {
            "human_outcome": np.where(
                (own.model_a == 3) | (own.model_b == 3), -1, own.human_outcome
            )
        },
    )
    ratings = rate_pooled(judges, PLAIN)
    new = (ratings.model == "model-3") & (ratings.method == "pooled")
    assert np.isfinite(ratings.rating[new]).all()
    assert ratings.flags[new].tolist() == ["no-votes"]
    alone = rate_pooled(judges, PLAIN, models=["model-3"])
    assert alone.model.tolist() == ["model-3"]
    assert row_of(alone, "model-3") == pytest.approx(row_of(ratings, "model-3"), nan_ok=True)


def test_judges_who_contradict_people_pool_to_no_rating() -> None:
    judges = each(
        arena(),
        lambda own: {
            "score_difference": -own.score_difference,
            "judge_outcome": 4 - own.judge_outcome,
        },
    )
    ratings = rate_pooled(judges, PLAIN)
    assert np.isnan(of(ratings, "pooled")).all()
    assert set(of(ratings, "pooled", "flags")) == {"no-weights"}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (
            lambda b: b.take(np.arange(len(b) - 1)),
            "model_a of judge 'judge-2' is 1499; expected 1500",
        ),
        (lambda b: b.take(np.arange(len(b))[::-1]), "model_a of judge 'judge-2' is 3 in row 0"),
        (
            lambda b: replace(b, human_outcome=np.full(len(b), 1)),
            "human_outcome of judge 'judge-2' is 1 in row",
        ),
        (
            lambda b: replace(b, models=(*b.models[:-1], "zebra")),
            "models of judge 'judge-2' is 'zebra' in row 8",
        ),
    ],
)
def test_other_battles_are_refused(change, place: str) -> None:
    judges = arena() | {"judge-2": change(arena()["judge-2"])}
    with pytest.raises(ValueError, match=f"{place}.*that of judge 'judge-0'.*all judges"):
        rate_pooled(judges, PLAIN)
    with pytest.raises(ValueError, match="at least one"):
        rate_pooled({}, PLAIN)


# ------------------------------------------------------------------ real judges


def by_question_and_name(path: Path) -> CodedBattles:
    """Battles with sides by name: files turn them at random."""
    table = pd.read_csv(path)
    turned = table["model_a"] > table["model_b"]
    names = table[["model_a", "model_b"]].to_numpy()
    table[["model_a", "model_b"]] = np.where(turned.to_numpy()[:, None], names[:, ::-1], names)
    table["score_difference"] *= np.where(turned, -1, 1)
    table["human_outcome"] = table["human_outcome"].mask(turned, 1 - table["human_outcome"])
    table = table.sort_values(
        ["question_id", "model_a", "model_b", "score_difference", "human_outcome"]
    )
    return code_battles(
        table["model_a"].tolist(),
        table["model_b"].tolist(),
        human_outcome=table["human_outcome"],
        judge_outcome=(np.sign(table["score_difference"]) + 1) / 2,
        score_difference=table["score_difference"],
    )


def test_five_real_judges(data_dir: Path) -> None:
    """Nearer to people than the mean of the judges' headlines (46.4); the best judge has 36.9."""
    files = sorted((data_dir / "real").glob("hanna_*.csv"))
    if not files:
        pytest.skip(f"no real data: {data_dir} has no real/hanna_*.csv")
    hanna = {path.stem: by_question_and_name(path) for path in files}
    error = float(np.abs(of(rate_pooled(hanna, PLAIN), "pooled", "residual")).mean())
    assert error == pytest.approx(42.9, abs=0.1)
