"""Scores of single answers as battles: two models' scores of one sample, by one scorer."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from judgeline.io.layout import Given


class Score(NamedTuple):
    """Score of one model's answer to one sample by one scorer, a judge; None if it failed."""

    question_id: str
    judge: str
    model: str
    file: str
    score: float | None


class OneModelError(ValueError):
    """No two models have scores of the same samples; `scores` has those that there are."""

    def __init__(self, message: str, scores: pd.DataFrame) -> None:
        super().__init__(message)
        self.scores = scores


SEVERAL = "name a folder, or a pattern in quotes, with the files of several models"


def of_samples(
    scores: Callable[[str, Mapping[str, Any]], Iterable[Score]], remedy: str = SEVERAL
) -> Callable[[Given], pd.DataFrame]:
    """Return the reader of a layout, by the scores in one record of a file of that name."""

    def battles(given: Given) -> pd.DataFrame:
        """Return the battles of a layout's files."""
        table = given.read(given.columns, [])
        records = table.astype(object).where(table.notna(), None).to_dict("records")
        found = (score for one in records for score in scores(str(one["file"]), one))
        return paired(found, f"the scores in {given.path}", remedy)

    return battles


def paired(scores: Iterable[Score], place: str, remedy: str) -> pd.DataFrame:
    """Return the battles of every two models with scores of one sample by one scorer.

    Several scores of an answer, as of epochs, are averaged; one that failed leaves it without a
    score. ValueError if two files score one model on a sample, or no two models meet: `place`,
    in the plural, does not hold them, and `remedy` does.
    """
    found = pd.DataFrame(list(scores), columns=list(Score._fields)).astype({"score": float})
    files = found.groupby(["question_id", "judge", "model"])["file"].unique()
    if len(several := files[files.map(len) > 1]):
        both = " and ".join(sorted(several.iloc[0]))
        raise ValueError(
            f"{both} hold scores of model {several.index[0][2]!r} on the same samples: move one of "
            "them out of the folder"
        )
    keys = ["question_id", "judge"]
    means = found.groupby([*keys, "model"], as_index=False)["score"].agg(_mean)
    pairs = means.merge(means, on=keys, suffixes=("_a", "_b"))
    pairs = pairs[pairs["model_a"] < pairs["model_b"]]
    if pairs.empty:
        models = ", ".join(found["model"].unique()) or "none"
        message = f"{place} score no two models on the same samples (models: {models}); {remedy}"
        raise OneModelError(message, found)
    return pairs.reset_index(drop=True)


def _mean(scores: "pd.Series[float]") -> float:
    return float(scores.mean(skipna=False))
