"""Files of embedded rationales with labels: ratings, pairs or rankings, a row each."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.io.formats import file_columns, read_columns
from judgeline.io.scoring import as_numbers

TEXTS = ("question_id", "battle_id", "ranking_id", "dataset", "judge", "split", "order")
VECTORS = ("embedding", "embedding_a", "embedding_b")
NUMBERS = (
    "judge_score", "judge_score_a", "judge_score_b", "judge_probability", "score_difference",
    "human_rating", "human_outcome", "human_rank",
)  # fmt: skip
LABELS = {"ratings": "human_rating", "pairs": "human_outcome", "rankings": "human_rank"}
"""Kinds of files, and the column with people's labels of each; an empty one is no label."""
_NEEDED: dict[str, list[tuple[str, ...]]] = {
    "ratings": [("question_id", "embedding", "judge_score", "human_rating")],
    "pairs": [
        ("question_id", "embedding", "judge_probability", "human_outcome"),
        ("question_id", "embedding", "score_difference", "human_outcome"),
        (
            "question_id", "embedding_a", "embedding_b", "judge_score_a", "judge_score_b",
            "human_outcome",
        ),
    ],
    "rankings": [("question_id", "ranking_id", "embedding", "judge_score", "human_rank")],
}  # fmt: skip
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


def read_rationales(path: Path, kind: str) -> Rationales:
    """Return a file of rationales: ``ratings``, ``pairs`` or ``rankings``.

    A vector is a list in one column, as text ``[0.1, 0.2]`` in CSV, or one column per number,
    ``embedding_0`` and so on. ``log_p_3`` is the judge's log-probability of rating 3. Columns
    ``dataset`` and ``judge`` are the file's name and ``judge`` where they are missing.

    Raises
    ------
    ValueError
        If a column is missing, or a number or vector is none; it names file, column and row.
    """
    names = file_columns(path)
    parts = {name: [one for one in names if re.fullmatch(rf"{name}_\d+", one)] for name in VECTORS}
    known = {*names, *(name for name, own in parts.items() if own)}
    if not any(known.issuperset(columns) for columns in _NEEDED[kind]):
        missing = min((set(columns) - known for columns in _NEEDED[kind]), key=len)
        raise ValueError(
            f"{path} has no column {', '.join(sorted(missing))}; a file of {kind} needs "
            f"{', or '.join(', '.join(columns) for columns in _NEEDED[kind])}: add or rename it"
        )
    classes = {float(match[1]): one for one in names if (match := _CLASS.fullmatch(one))}
    scale = sorted(classes)
    texts, lists, numbers = ([n for n in names if n in own] for own in (TEXTS, VECTORS, NUMBERS))
    numbers += [classes[rating] for rating in scale]
    split = [one for own in parts.values() for one in own]
    columns = [*texts, *lists, *numbers, *split]
    table = read_columns(path, columns, [*texts, *lists]).reset_index(drop=True)
    values = {name: _number(table[name], path, name == LABELS[kind]) for name in numbers}
    vectors = {name: _listed(table[name], path) for name in lists}
    for name, own in parts.items():
        if own:
            own.sort(key=lambda one: int(one.rpartition("_")[2]))
            vectors[name] = np.column_stack([_number(table[one], path) for one in own])
    for name in {"question_id", "ranking_id"} & set(texts):
        if table[name].isna().any():
            row = int(table[name].isna().argmax())
            raise ValueError(f"{path}: {name} is empty in row {row}; name it, or leave the row out")
    defaults = {"dataset": path.name.partition(".")[0], "judge": "judge"}
    words = {name: table[name].astype("str") for name in texts}
    log_p = [values.pop(classes[rating]) for rating in scale]
    chances = np.column_stack(log_p) if log_p else np.empty((len(table), 0))
    rows = pd.DataFrame({**defaults, **words, **values}, index=range(len(table)))
    has_label = np.flatnonzero(rows[LABELS[kind]].notna()) if kind != "rankings" else slice(None)
    return Rationales(rows, vectors, chances, np.array(scale)).take(has_label)


def _number(column: pd.Series, path: Path, is_label: bool = False) -> NDArray[Any]:
    """Return finite numbers (n,); in a column of labels an empty cell is NaN."""
    values = as_numbers(pd.to_numeric(column, errors="coerce"))
    wrong = ~np.isfinite(values) & ~(is_label & column.isna().to_numpy())
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{path}: {column.name} is {column.iloc[row]!r} in row {row}; expected a number: "
            "mend it, or leave the row out"
        )
    return values


def _listed(column: pd.Series, path: Path) -> NDArray[np.float64]:
    """Return vectors (n, d) from lists, or from their text."""
    vectors: list[Any] = []
    for row, value in enumerate(column):
        try:
            vector = np.asarray(json.loads(value) if isinstance(value, str) else value, dtype=float)
        except (TypeError, ValueError):
            vector = np.empty(0)
        if vector.ndim != 1 or not vector.size or not np.isfinite(vector).all():
            shown = value[:40] if isinstance(value, str) else value
            raise ValueError(
                f"{path}: {column.name} is {shown!r} in row {row}; expected a list of numbers: "
                "embed the rationale, or leave the row out"
            )
        if vectors and vector.size != vectors[0].size:
            raise ValueError(
                f"{path}: {column.name} has {vector.size} numbers in row {row} and "
                f"{vectors[0].size} in row 0; embed all rationales with one model"
            )
        vectors.append(vector)
    return np.array(vectors)
