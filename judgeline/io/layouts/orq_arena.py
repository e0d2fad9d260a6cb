"""Battles of orq-arena: the majority verdict of a panel of judges.

orq-ai/orq-arena, `src/orq_arena/data/schemas.py`.
"""

import pandas as pd

from judgeline.io.layout import Given, Layout

_COLUMNS = "prompt_hash model_a model_b majority_verdict"


def _battles(given: Given) -> pd.DataFrame:
    """Return verdicts of the panel; a round that is inconclusive or void has none."""
    table = given.read(_COLUMNS.split(), _COLUMNS.split())
    verdict = table["majority_verdict"].where(table["majority_verdict"].isin(["A", "B", "tie"]))
    named = {"prompt_hash": "question_id", "majority_verdict": "judge_winner"}
    return table.assign(majority_verdict=verdict, judge="majority").rename(columns=named)


ORQ_ARENA = Layout("orq-arena", (f"{_COLUMNS} judge_votes",), battles=_battles)
