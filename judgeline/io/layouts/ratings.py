"""Answers that people rated or ranked, each with a judge's reason and score."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from judgeline.io.formats import file_columns
from judgeline.io.layout import RATED, Layout, read_layout

RATINGS = Layout(
    "ratings",
    ("question_id judge_score human_rating", "question_id judge_score ranking_id human_rank"),
    advice=RATED,
)
_REASON = ("text", "embedding")


def read_ratings(paths: Sequence[Path]) -> pd.DataFrame:
    """Return the rows of files, with columns ``file`` and ``row``, counted from 0 within a file.

    ValueError of a file without a column ``text``, the judge's reasons, or ``embedding``.
    """
    parts = []
    for path in paths:
        names = [one for one in file_columns(path) if one in _REASON or one.startswith("log_p_")]
        if not {*_REASON} & {*names}:
            raise ValueError(
                f"{path} has no column 'text', the reason that the judge gave with its score, nor "
                "'embedding', the reason's vector; add one, or rename yours"
            )
        table = read_layout(path, RATINGS, " ".join(names))
        parts.append(table.assign(file=path.name, row=range(len(table))))
    return pd.concat(parts, ignore_index=True)
