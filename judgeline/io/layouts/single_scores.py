"""Scores of single answers, a row each: our own columns, and WildBench's."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from judgeline.io.layout import Layout
from judgeline.io.samples import Score, of_samples

NEEDED = ("question_id", "model", "score")


def _scores(file: str, record: Mapping[str, Any]) -> Iterator[Score]:
    question, model = record["question_id"], record["model"]
    if question is None or model is None:
        raise ValueError(f"{file}: question_id is {question!r}, model {model!r}; name both")
    number = pd.to_numeric(record["score"], errors="coerce")
    judge = str(record.get("judge") or "score")
    yield Score(str(question), judge, str(model), str(model), number)


SINGLE_SCORES = Layout("single-scores", (" ".join(NEEDED),), battles=of_samples(_scores))
WILDBENCH = Layout(
    "wildbench",
    ("session_id model_test score",),
    battles=SINGLE_SCORES.battles,
    names={"question_id": "session_id", "model": "model_test"},
)
