"""Embedded rationales with labels in a user's files: what quantitative judges are fitted to."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax

from judgeline.io import as_numbers, file_columns
from judgeline.papers.files import NAME, Column, named_files, number, read_table, require, word
from judgeline.quantitative import (
    Battles,
    Labels,
    base_logit,
    base_logit_of_scores,
    presentations,
    two_headed,
)

LEAST_CHANCE = 1e-6
"""Mass added to each rating's probability, which must not be 0."""
_NUMBER, _LABEL = number("a number"), number("a number, or nothing", may_lack=True)
_VECTOR = Column("a list of numbers", kind="any")
_EITHER = {
    "question_id": NAME,
    "dataset": word(),
    "judge": word("judge"),
    "split": word(None, "train", "test", may_lack=False),
}
LABELS = {"ratings": "human_rating", "pairs": "human_outcome", "rankings": "human_rank"}
"""Kinds of files, and the column with people's labels of each; an empty one is no label."""
FILES: dict[str, dict[str, Column]] = {
    "ratings": {**_EITHER, "embedding": _VECTOR, "judge_score": _NUMBER, "human_rating": _LABEL},
    "pairs": {
        **_EITHER,
        "battle_id": word(may_lack=False),
        "order": word("AB", "AB", "BA", may_lack=False),
        **dict.fromkeys(("embedding", "embedding_a", "embedding_b"), _VECTOR),
        **dict.fromkeys(("judge_probability", "score_difference"), _NUMBER),
        **dict.fromkeys(("judge_score_a", "judge_score_b"), _NUMBER),
        "human_outcome": _LABEL,
    },
    "rankings": {
        **_EITHER,
        "ranking_id": NAME,
        "embedding": _VECTOR,
        "judge_score": _NUMBER,
        "human_rank": _LABEL,
    },
}
"""Columns of the three files."""
_OF_PAIRS = (
    {"embedding", "judge_probability"},
    {"embedding", "score_difference"},
    {"embedding_a", "embedding_b", "judge_score_a", "judge_score_b"},
)
"""Columns of pairs of which one set is needed: of BTL, with either score, or of BTL2."""
_CLASS = re.compile(r"log_p_(-?\d+(\.\d+)?)")


class Rationales(NamedTuple):
    """n rows of a file: texts and numbers, vectors (n, d) by column, and log-probabilities.

    `log_probabilities` (n, S) of the ratings in `scale` (S,), ascending; S is 0 without them.
    """

    table: pd.DataFrame
    vectors: dict[str, NDArray[np.float64]]
    log_probabilities: NDArray[np.float64]
    scale: NDArray[np.float64]

    def take(self, rows: Any) -> "Rationales":
        """Return some rows, numbered anew."""
        vectors = {name: values[rows] for name, values in self.vectors.items()}
        table = self.table.iloc[rows].reset_index(drop=True)
        return Rationales(table, vectors, self.log_probabilities[rows], self.scale)


class Task(NamedTuple):
    """Labels of one form (LS, MN, BTL, BTL2 or PL), and the table's rows that they stand in."""

    form: str
    labels: Battles | Labels
    rows: pd.DataFrame


def read_tasks(
    data: Path | None, say: Callable[[str], None]
) -> Iterator[tuple[str, str, list[Task]]]:
    """Yield data set, judge and forms of ``ratings``, ``pairs`` and ``rankings`` in a folder."""
    forms = {"ratings": _rated, "pairs": _paired, "rankings": _ranked}
    for kind, path in named_files(data, FILES):
        say(f"reading {path.name}")
        own = read_rationales(path, kind)
        groups = own.table.groupby(["dataset", "judge"], sort=False).indices
        for (dataset, judge), rows in groups.items():
            try:
                yield dataset, judge, [*forms[kind](own.take(rows))]
            except ValueError as error:
                raise ValueError(f"{path}, {judge} of {dataset}: {error}") from error


def read_rationales(path: Path, kind: str) -> Rationales:
    """Return a file of rationales: ``ratings``, ``pairs`` or ``rankings``; no rows without label.

    A vector is a list in one column, as text ``[0.1, 0.2]`` in CSV, or one column per number,
    ``embedding_0`` and so on. ``log_p_3`` is the judge's log-probability of rating 3.
    """
    names, declared = file_columns(path), FILES[kind]
    classes = {float(match[1]): one for one in names if (match := _CLASS.fullmatch(one))}
    parts: dict[str, list[str]] = {}
    for name in declared:
        if declared[name] is _VECTOR and name not in names:
            own = [one for one in names if re.fullmatch(rf"{name}_\d+", one)]
            parts |= {name: sorted(own, key=lambda one: int(one.rpartition("_")[2]))} if own else {}
    known = {*names, *parts}
    options = _OF_PAIRS if kind == "pairs" else ()
    nearest: set[str] = min(options, key=lambda one: len(one - known), default=set())
    spare = {name for one in options for name in one} - nearest
    columns = {
        name: one._replace(needed=one.needed and name not in spare)
        for name, one in declared.items()
        if name in names or name not in {*parts, *spare}
    }
    numbers = [*classes.values(), *(one for own in parts.values() for one in own)]
    table = read_table(path, columns | dict.fromkeys(numbers, _NUMBER))
    vectors = {n: _vectors(table, n) for n in columns if declared[n] is _VECTOR}
    vectors |= {name: table[own].to_numpy(float) for name, own in parts.items()}
    scale = sorted(classes)
    chances = table[[classes[rating] for rating in scale]].to_numpy(float)
    stem = path.name.partition(".")[0]
    rows = table.assign(dataset=table["dataset"].fillna(stem))
    has_label = np.flatnonzero(rows[LABELS[kind]].notna()) if kind != "rankings" else slice(None)
    return Rationales(rows, vectors, chances, np.array(scale)).take(has_label)


def _vectors(table: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """Return a column's vectors (n, d) from lists, or from their text."""
    vectors = [_vector(value) for value in table[name]]
    sizes = np.array([one.size for one in vectors])
    require(table, name, sizes > 0, "a list of numbers, the embedded rationale")
    for size in sizes[:1]:
        require(table, name, sizes == size, f"{size} numbers as in row 0, by one embedding model")
    return np.array(vectors)


def _vector(value: Any) -> NDArray[np.float64]:
    """Return a list or its text as finite numbers, none if it is no such list."""
    try:
        vector = np.asarray(json.loads(value) if isinstance(value, str) else value, dtype=float)
    except (TypeError, ValueError):
        return np.empty(0)
    return vector if vector.ndim == 1 and np.isfinite(vector).all() else np.empty(0)


_Forms = Iterator[Task]


def _rated(own: Rationales) -> _Forms:
    """Yield LS, and MN where the judge's probabilities of ratings are known."""
    rows, vectors = own.table, own.vectors["embedding"]
    rating, score = as_numbers(rows["human_rating"]), as_numbers(rows["judge_score"])
    scale = own.scale if own.scale.size else np.unique(rating)
    labels = partial(Labels.of, label=rating, question=rows["question_id"], scale=scale)
    yield Task("LS", labels("ls", vectors, score), rows)
    if own.scale.size > 2:
        chance = softmax(own.log_probabilities, axis=1) + LEAST_CHANCE
        share = chance / chance.sum(axis=1, keepdims=True)
        yield Task("MN", labels("mn", vectors, share), rows)


def _paired(own: Rationales) -> _Forms:
    """Yield BTL where a rationale speaks of both answers, BTL2 where two speak of one each."""
    rows = own.table
    names = rows["battle_id"].fillna(pd.Series(rows.index.astype(str), rows.index))
    place, _ = pd.factorize(names)
    battles = rows[~names.duplicated()]
    votes = as_numbers(battles["human_outcome"]), battles["question_id"]
    if "embedding" in own.vectors and {"judge_probability", "score_difference"} & {*rows}:
        swapped = rows["order"].eq("BA").to_numpy()
        if "judge_probability" in rows:
            share = as_numbers(rows["judge_probability"])
            score = base_logit(share)
        else:
            score = as_numbers(rows["score_difference"])
            share = (1 + np.sign(score)) / 2
        base, score = pd.Series(share).groupby(place).mean(), np.where(swapped, -score, score)
        shown = presentations(own.vectors["embedding"], score, place, swapped)
        yield Task("BTL", Battles.of(shown, base, *votes), battles)
    if {"embedding_a", "embedding_b", "judge_score_a", "judge_score_b"} <= {*own.vectors, *rows}:
        scores = [as_numbers(battles[f"judge_score_{side}"]) for side in "ab"]
        both = (own.vectors[f"embedding_{side}"][battles.index] for side in "ab")
        base = expit(base_logit_of_scores(*scores))
        shown = two_headed(*both, *scores)
        yield Task("BTL2", Battles.of(shown, base, *votes), battles)


def _ranked(own: Rationales) -> _Forms:
    """Yield PL: K alternatives a set, of which people ranked the T best; here best first."""
    sets = own.table.groupby("ranking_id")
    size, placed = sets.size(), sets["human_rank"].count()
    for count, what in ((size, "alternatives"), (placed, "ranks")):
        usual = count.mode()[0]
        if count.ne(usual).any() or not usual:
            odd = count.index[np.argmax(count.ne(usual) | count.eq(0))]
            raise ValueError(
                f"ranking {odd!r} has {count[odd]} {what}, most have {usual}; all sets of a data "
                "set need one number, above 0: leave out the others, or empty lower ranks"
            )
    order = own.table.sort_values(["ranking_id", "human_rank"], kind="stable").index
    place = order.to_numpy().reshape(size.size, -1)
    ranks = as_numbers(own.table["human_rank"])[place][:, : placed.iloc[0]]
    tied = (np.diff(ranks, axis=1) == 0).any(axis=1)
    if tied.any():
        raise ValueError(
            f"ranking {size.index[np.argmax(tied)]!r} has a human_rank twice; give each "
            "alternative its own, or leave the set out"
        )
    first, score = own.table.iloc[place[:, 0]], as_numbers(own.table["judge_score"])[place]
    best = np.tile(np.arange(placed.iloc[0]), (size.size, 1))
    vectors = own.vectors["embedding"][place]
    yield Task("PL", Labels.of("pl", vectors, score, best, first["question_id"]), first)
