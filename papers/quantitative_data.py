"""Embedded rationales with labels in a user's files: what quantitative judges are fitted to."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.io import as_numbers, file_columns
from judgeline.quantitative import (
    Battles,
    Labels,
    base_logit,
    base_logit_of_scores,
    presentations,
    two_headed,
)
from judgeline.steps.rationales import ranked, rated, ratings_in
from papers.files import (
    NAME,
    NUMBER,
    Column,
    Columns,
    Say,
    named_files,
    names_of_files,
    read_table,
    require,
    word,
)

_LABEL = Column("a number, or nothing", kind="number", may_lack=True)
_VECTOR = Column("a list of numbers", kind="any")
_EITHER = {
    "question_id": NAME,
    "dataset": word(),
    "judge": word("judge"),
    "split": word(None, "train", "test", may_lack=False),
}
_RATIONALE = _EITHER | {"embedding": _VECTOR, "judge_score": NUMBER}
LABELS = {"ratings": "human_rating", "pairs": "human_outcome", "rankings": "human_rank"}
"""Kinds of files, and the column with people's labels of each; an empty one is no label."""
FILES: dict[str, Columns] = {
    "ratings": {**_RATIONALE, "human_rating": _LABEL},
    "pairs": {
        **_EITHER,
        "battle_id": word(may_lack=False),
        "order": word("AB", "AB", "BA", may_lack=False),
        **dict.fromkeys(("embedding", "embedding_a", "embedding_b"), _VECTOR),
        **dict.fromkeys(("judge_probability", "score_difference"), NUMBER),
        **dict.fromkeys(("judge_score_a", "judge_score_b"), NUMBER),
        "human_outcome": _LABEL._replace(
            wanted="A's share of the win from 0 to 1, or nothing",
            rule=lambda _, values: values.between(0, 1),
        ),
    },
    "rankings": {**_RATIONALE, "ranking_id": NAME, "human_rank": _LABEL},
}
"""Columns of the three files."""
_OF_PAIRS = (
    {"embedding", "judge_probability"},
    {"embedding", "score_difference"},
    {"embedding_a", "embedding_b", "judge_score_a", "judge_score_b"},
)
"""Columns of pairs of which one set is needed: of BTL, with either score, or of BTL2."""


Task = tuple[str, Battles | Labels, pd.DataFrame]
"""A form (LS, MN, BTL, BTL2 or PL), its labels, and the table's rows that they stand in."""


def read_tasks(data: Path | None, say: Say) -> Iterator[tuple[str, str, list[Task]]]:
    """Yield data set, judge and forms of ``ratings``, ``pairs`` and ``rankings`` in a folder."""
    forms = {"ratings": rated, "pairs": _paired, "rankings": ranked}
    for kind, path in named_files(data, FILES):
        say(f"reading {path.name}")
        groups = read_rationales(path, kind).groupby(["dataset", "judge"], sort=False)
        for (dataset, judge), rows in groups:
            try:
                yield dataset, judge, [*forms[kind](rows.reset_index(drop=True))]
            except ValueError as error:
                raise ValueError(f"{path}, {judge} of {dataset}: {error}") from error


def read_rationales(path: Path, kind: str) -> pd.DataFrame:
    """Return a file of ``ratings``, ``pairs`` or ``rankings`` with arrays in columns of vectors.

    A vector is a list in one column, as text ``[0.1, 0.2]`` in CSV, or one column per number,
    ``embedding_0`` and so on. ``log_p_3`` is the judge's log-probability of rating 3. Ratings and
    pairs without a label are left out.
    """
    names, declared = file_columns(path), FILES[kind]
    parts: dict[str, list[str]] = {}
    for name in (one for one in declared if declared[one] is _VECTOR and one not in names):
        own = [one for one in names if re.fullmatch(rf"{name}_\d+", one)]
        parts |= {name: sorted(own, key=lambda one: int(one.rpartition("_")[2]))} if own else {}
    options = _OF_PAIRS if kind == "pairs" else ()
    nearest = min(options, key=lambda one: len(one - {*names, *parts}), default=set[str]())
    spare = {name for one in options for name in one} - nearest
    columns = {
        name: one._replace(needed=one.needed and name not in spare)
        for name, one in declared.items()
        if name in names or name not in {*parts, *spare}
    }
    numbers = [*ratings_in(names), *(one for own in parts.values() for one in own)]
    table = read_table(path, columns | dict.fromkeys(numbers, NUMBER))
    vectors = {name: _vectors(table, name) for name in columns if declared[name] is _VECTOR}
    vectors |= {name: table[own].to_numpy(float) for name, own in parts.items()}
    dataset = table["dataset"].fillna(names_of_files(table))
    table = table.assign(dataset=dataset, **{name: [*own] for name, own in vectors.items()})
    return table if kind == "rankings" else table.dropna(subset=LABELS[kind])


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


def _paired(rows: pd.DataFrame) -> Iterator[Task]:
    """Yield BTL where a rationale speaks of both answers, BTL2 where two speak of one each."""
    names = rows["battle_id"].fillna(pd.Series(rows.index.astype(str), rows.index))
    place, _ = pd.factorize(names)
    battles = rows[~names.duplicated()]
    votes = as_numbers(battles["human_outcome"]), battles["question_id"]
    if "embedding" in rows and {"judge_probability", "score_difference"} & {*rows}:
        swapped = rows["order"].eq("BA").to_numpy()
        if "judge_probability" in rows:
            share = as_numbers(rows["judge_probability"])
            score = base_logit(share)
        else:
            score = as_numbers(rows["score_difference"])
            share = (1 + np.sign(score)) / 2
        base, score = pd.Series(share).groupby(place).mean(), np.where(swapped, -score, score)
        shown = presentations(np.stack(rows["embedding"].tolist()), score, place, swapped)
        yield ("BTL", Battles.of(shown, base, *votes), battles)
    if _OF_PAIRS[-1] <= {*rows}:
        scores = [as_numbers(battles[f"judge_score_{side}"]) for side in "ab"]
        both = (np.stack(battles[f"embedding_{side}"].tolist()) for side in "ab")
        base = expit(base_logit_of_scores(*scores))
        shown = two_headed(*both, *scores)
        yield ("BTL2", Battles.of(shown, base, *votes), battles)
