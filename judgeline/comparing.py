"""Two models of a leaderboard, compared by name: `Board.compare` and `judgeline compare`.

What belongs here: names, and what a comparison needs of a table. What does not: statistics
(`judgeline.intervals.differences`).
"""

import difflib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from judgeline.intervals import Difference, RatedModels, compare_models, withheld_reason
from judgeline.report import beyond_lines, json_value

_TEXTS = ("model", "evidence")


def compare_on(
    leaderboard: pd.DataFrame, model_a: str, model_b: str, *, miscoverage: float, **options: float
) -> Difference:
    """Return the difference of two models of a leaderboard, in Elo points.

    Parameters
    ----------
    leaderboard : DataFrame
        Columns of `judgeline.intervals.Leaderboard`, a model per row.
    model_a, model_b : str
        Names of the models.
    miscoverage : float
        Tolerated share of misses with which the leaderboard was made.
    options : float
        `margin`, `widening` and `later` as of `judgeline.intervals.compare_models`.

    Returns
    -------
    Difference
        The interval of a minus b, and one of three answers.

    Raises
    ------
    ValueError
        If a name is unknown, both are one, or a model has no rating.
    """
    if absent := [name for name in RatedModels._fields if name not in leaderboard]:
        raise ValueError(
            f"the leaderboard has no column {absent[0]!r}: an earlier version made it; make it "
            "again by `judgeline rank` or `judgeline run`"
        )
    names = [str(name) for name in leaderboard["model"]]
    a, b = (row_of(name, names) for name in (model_a, model_b))
    flags = [str(leaderboard["flags"].iloc[row]).split(";") for row in (a, b)]
    for row, own in zip((a, b), flags, strict=True):
        if pd.isna(leaderboard["rating"].iloc[row]):
            raise ValueError(
                f"model {names[row]!r} has no rating to compare ({', '.join(own)}); have people "
                "vote on its battles, or have the judge score more of them"
            )
    models = RatedModels(
        *(
            leaderboard[name].to_numpy(dtype=object if name in _TEXTS else np.float64)
            for name in RatedModels._fields
        )
    )
    found = compare_models(models, a, b, miscoverage=miscoverage, **options)
    notes = [text for text, _ in beyond_lines(leaderboard.iloc[[a, b]], leaderboard)]
    if reason := withheld_reason(";".join(flags[0])):
        notes.append(f"Ratings by this judge are withheld ({reason}): people's votes alone count.")
    return replace(found, note=" ".join(notes))


def promised(value: Any) -> Any:
    """Return a number rounded to a tenth of an Elo point, which is all that a board promises."""
    return round(value, 1) + 0.0 if isinstance(value, float) else value


def stated_rows(leaderboard: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the evidence, ratings and standard errors of each model of a leaderboard, by name."""
    table = leaderboard[list(RatedModels._fields)].astype({"n_battles": int, "n_votes": int})
    return sorted(table.to_dict("records"), key=lambda row: str(row["model"]))


def board_digest(leaderboard: pd.DataFrame) -> str:
    """Return the SHA-256 of what a leaderboard promises, which no order or last digit changes."""
    rows = [
        {name: promised(value) for name, value in row.items()} for row in stated_rows(leaderboard)
    ]
    return hashlib.sha256(json.dumps(json_value(rows), sort_keys=True).encode()).hexdigest()


def row_of(name: str, names: Sequence[str]) -> int:
    """Return the row of a model; ValueError with close matches of a name that is not there."""
    if name in names:
        return names.index(name)
    small = [known.casefold() for known in names]
    near = difflib.get_close_matches(name.casefold(), list(dict.fromkeys(small)), cutoff=0.5)
    close = [repr(known) for one in near for known in names if known.casefold() == one]
    some = ", ".join(names[:10]) + ", ..." * (len(names) > 10)
    hint = f"did you mean {' or '.join(close)}?" if close else f"the leaderboard has {some}"
    raise ValueError(f"unknown model {name!r}; {hint}")
