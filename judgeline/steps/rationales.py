"""Embedded rationales beside people's ratings or rankings: what LS, MN and Plackett-Luce learn."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from judgeline.arrays import Floats
from judgeline.elo import keyed_rng
from judgeline.io import ArgumentError, as_numbers
from judgeline.io.verdict_tables import ratings_given
from judgeline.quantitative import Design, Labels, TooLittleToLearnError, cross_fitted, trials

LEAST_CHANCE = 1e-6
"""Mass added to each rating's probability, which must not be 0."""
_CLASS = re.compile(r"log_p_(-?\d+(\.\d+)?)")

Given = tuple[Floats, Floats]
"""Vectors of rationales and a base judge's scores, as `fit_judge` takes them."""


def ratings_in(names: Iterable[str]) -> dict[str, float]:
    """Return the ratings, ascending, whose log-probabilities are in columns, by column."""
    found = {one: float(match[1]) for one in names if (match := _CLASS.fullmatch(one))}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _given(rows: pd.DataFrame) -> dict[str, Given]:
    """Return what LS learns ratings from, and MN where the judge's probabilities are known."""
    vectors, classes = np.stack(rows["embedding"].tolist()), ratings_in(rows)
    given = {"LS": (vectors, as_numbers(rows["judge_score"]))}
    _require_likelihoods(rows, classes)
    if len(classes) > 2:
        chance = softmax(rows[[*classes]].to_numpy(float), axis=1) + LEAST_CHANCE
        given["MN"] = vectors, chance / chance.sum(axis=1, keepdims=True)
    return given


def _require_likelihoods(rows: pd.DataFrame, classes: dict[str, float]) -> None:
    """Refuse log-probabilities above 0 or lacking, and ratings that skip a step of their scale."""
    names, scale = [*classes], np.array([*classes.values()])
    for name in names:
        if (odd := ~(as_numbers(rows[name]) <= 0)).any():
            value = rows.loc[odd, [name]].astype(object).iloc[0, 0]
            raise ArgumentError(
                f"{name} is {value!r}; expected a log-probability, 0 or "
                "less, in each row with a score and a vector",
                "ratings",
            )
    steps = np.diff(scale)
    wide = np.flatnonzero(steps > steps.min(initial=math.inf) * (1 + 1e-9))
    if wide.size:
        raise ArgumentError(
            f"{names[wide[0]]} and {names[wide[0] + 1]} have no column between them, and other "
            f"ratings are {steps.min():g} apart; add log_p_{scale[wide[0]] + steps.min():g}, or "
            "leave the columns log_p_... out",
            "ratings",
        )


def rated(rows: pd.DataFrame) -> Iterator[tuple[str, Labels, pd.DataFrame]]:
    """Yield the ratings that LS learns from, and MN where the judge's probabilities are known."""
    rating, classes = as_numbers(rows["human_rating"]), ratings_in(rows)
    scale = np.array([*classes.values()]) if classes else np.unique(rating)
    for form, given in _given(rows).items():
        yield form, Labels.of(form.lower(), *given, rating, rows["question_id"], scale=scale), rows


def _places(rows: pd.DataFrame) -> NDArray[np.intp]:
    """Return the rows (n, K) of sets of alternatives, what people placed first, best first."""
    sets = rows.groupby("ranking_id")
    size, placed = sets.size(), sets["human_rank"].count()
    for count, what in ((size, "alternatives"), (placed, "ranks")):
        usual = count.mode()[0]
        if count.ne(usual).any():
            odd = count.index[np.argmax(count.ne(usual))]
            raise ValueError(
                f"ranking {odd!r} has {count[odd]} {what}, most have {usual}; all sets of a data "
                "set need one number: leave out the others, or empty lower ranks"
            )
    order = rows.reset_index(drop=True).sort_values(["ranking_id", "human_rank"], kind="stable")
    return np.asarray(order.index.to_numpy().reshape(size.size, -1))


def _alternatives(rows: pd.DataFrame, place: NDArray[np.intp]) -> Given:
    vectors = np.stack(rows["embedding"].tolist())
    return vectors[place], as_numbers(rows["judge_score"])[place]


def ranked(rows: pd.DataFrame) -> Iterator[tuple[str, Labels, pd.DataFrame]]:
    """Yield the rankings that PL learns from: of K alternatives a set people placed the T best."""
    place = _places(rows)
    ranks = as_numbers(rows["human_rank"])[place]
    n_placed = int(np.isfinite(ranks[0]).sum())
    first = rows.iloc[place[:, 0]]
    if not n_placed:
        raise ValueError(
            f"ranking {first['ranking_id'].iloc[0]!r} has no human_rank; leave the set out"
        )
    tied = (np.diff(ranks[:, :n_placed], axis=1) == 0).any(axis=1)
    if tied.any():
        raise ValueError(
            f"ranking {first['ranking_id'].iloc[np.argmax(tied)]!r} has a human_rank twice; give "
            "each alternative its own, or leave the set out"
        )
    best = np.tile(np.arange(n_placed), (len(place), 1))
    yield "PL", Labels.of("pl", *_alternatives(rows, place), best, first["question_id"]), first


# ------------------------------------------------------------------ predictions of a notebook


def predicted_ratings(rows: pd.DataFrame, seed: int) -> Iterator[tuple[str, Labels, pd.Series]]:
    """Yield LS and MN with their predictions by row; no row's question taught its prediction."""
    known = rows["human_rating"].notna()
    fresh = _given(rows[~known]) if not known.all() else {}
    for form, labels, own in rated(rows[known]):
        shown, fitted = _predicted(labels, fresh.get(form), seed)
        values = pd.concat([pd.Series(shown, own.index), pd.Series(fitted, rows.index[~known])])
        yield form, labels, values.loc[rows.index]


def predicted_choices(rows: pd.DataFrame, seed: int) -> Iterator[tuple[str, Labels, pd.Series]]:
    """Yield PL with each alternative's chance of being the best of its set."""
    known = rows.groupby("ranking_id")["human_rank"].transform("count").gt(0)
    parts = [rows[known], rows[~known]]
    places = [_places(part) if len(part) else np.empty((0, 1), np.intp) for part in parts]
    fresh = _alternatives(parts[1], places[1]) if len(parts[1]) else None
    for form, labels, _ in ranked(parts[0]):
        found = zip(_predicted(labels, fresh, seed), parts, places, strict=True)
        chances = [
            pd.Series(softmax(scores, axis=1).ravel(), part.index[place.ravel()])
            for scores, part, place in found
            if len(part)
        ]
        yield form, labels, pd.concat(chances).loc[rows.index]


def _predicted(labels: Labels, fresh: Given | None, seed: int) -> tuple[Floats, Floats]:
    """Return predictions of the labelled rows, by other questions, and of fresh ones, by all."""
    rng = keyed_rng(seed, "learn", labels.form)
    shown = cross_fitted(labels, rng=rng)
    if fresh is None:
        return shown, np.empty(0)
    judge = labels.judge(np.arange(len(labels.question)), Design(), rng=rng)
    vectors, scores = fresh
    return shown, replace(labels, embeddings=vectors, scores=scores).predictions(judge)


def learnt(ratings: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Return predictions by row and method, their agreement with labels, and why that is missing.

    ValueError of a table that lacks a column, or the labels to learn from.
    """
    columns = getattr(ratings, "columns", ())
    is_ranking = "ranking_id" in columns and "human_rating" not in columns
    own = ratings_given(ratings, "human_rank" if is_ranking else "human_rating", "ratings")
    predictions = pd.DataFrame(index=ratings.index)
    curves, notes = [], []
    for form, labels, shown in (predicted_choices if is_ranking else predicted_ratings)(own, seed):
        predictions[form.lower()] = shown.reindex(range(len(ratings))).to_numpy()
        try:
            curves.append(agreement(labels, seed).assign(method=form.lower()))
        except TooLittleToLearnError as error:
            notes.append(f"{form.lower()}: {error}")
    measured = pd.concat(curves, ignore_index=True) if curves else pd.DataFrame()
    return predictions, measured, "; ".join(notes)


def agreement(labels: Labels, seed: int) -> pd.DataFrame:
    """Return the metrics of a form after each number of labels, beside the base judge's."""
    curve = trials(labels, Design(), rng=keyed_rng(seed, "trials", labels.form)).curve()
    return pd.DataFrame(curve._asdict())
