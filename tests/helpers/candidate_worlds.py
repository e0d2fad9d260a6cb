"""A corpus of six anchors that all answered, and answers of a new model to its questions."""

from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import typed
from judgeline.tables.corpus import BATTLE_DTYPES

ANCHORS = ("ant", "bee", "cat", "dog", "eel", "fox")
N_QUESTIONS = 30


def _battles() -> pd.DataFrame:
    """Every pair of six anchors on every question, ant the weakest; gnu met some without votes."""
    rows = []
    for q in range(N_QUESTIONS):
        for i, a in enumerate(ANCHORS):
            rows += [(q, a, b, [0.0, 0.0, 1.0][q % 3]) for b in ANCHORS[i + 1 :]]
        rows.append((q, "gnu", "ant", np.nan))
    table = pd.DataFrame(rows, columns=["q", "model_a", "model_b", "human_outcome"])
    question = table["q"].map("q{:02d}".format)
    return typed(
        table.assign(
            battle_id=question + ":" + table["model_a"] + ":" + table["model_b"],
            question_id=question,
            cluster_id=question,
            instruction="Question " + question,
            completion_a=table["model_a"] + " says " + question,
            completion_b=table["model_b"] + " says " + question,
            language=table["q"].map(lambda q: ["en", "en", "fr"][q % 3]),
            n_turns=1,
        ),
        BATTLE_DTYPES,
    )


BATTLES = _battles()


def answers(n: int = N_QUESTIONS, word: str = "new", **columns: Any) -> list[dict[str, Any]]:
    return [{"question_id": f"q{q:02d}", "completion": f"{word} {q}", **columns} for q in range(n)]
