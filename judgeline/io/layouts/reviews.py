"""Reviews of pairs by Vicuna's script: two scores a row, both models in the name of the file.

lm-sys/FastChat, `fastchat/eval/eval_gpt_review.py`; files are ``review_MODEL_MODEL.jsonl``.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd

from judgeline.io.layout import Given, Layout

_MODELS = re.compile(r"review_([^_]+)_([^_]+)")


def _battles(given: Given) -> pd.DataFrame:
    table = given.read(["question_id", "reviewer_id", "score"], [])
    sides = table["file"].map(lambda file: _MODELS.fullmatch(Path(file).stem))
    if sides.isna().any():
        file = table.loc[sides.isna(), "file"].iloc[0]
        raise ValueError(
            f"{file} holds reviews, whose models are told by the name of the file alone: rename it "
            "to review_MODEL_MODEL.jsonl, without further underscores"
        )

    def mark(scores: Any, place: int) -> Any:
        """Return the score of one side; None of a review that failed."""
        return scores[place] if len(scores) == 2 and min(scores) >= 0 else None  # a failure is -1

    return table.assign(
        model_a=[found[1] for found in sides],
        model_b=[found[2] for found in sides],
        judge_score_a=[mark(scores, 0) for scores in table["score"]],
        judge_score_b=[mark(scores, 1) for scores in table["score"]],
        judge="reviewer " + table["reviewer_id"].astype(str),
        question_id=table["question_id"].astype(str),
    ).drop(columns=["score", "reviewer_id"])


REVIEWS = Layout(
    "reviews", ("question_id answer1_id answer2_id reviewer_id score",), battles=_battles
)
