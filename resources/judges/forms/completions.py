"""The completions of battles, each once, by an id that names model, question and text."""

from collections.abc import Sequence

import pandas as pd

from judgeline.verdict import identity_hash
from resources.judges.calls import require_texts
from resources.judges.judge import Presentation

ALONE = "A"
"""Order of a presentation with one completion."""


def completion_ids(battles: pd.DataFrame, side: str) -> list[str]:
    """Return the id of each battle's completion A or B; `side` is ``a`` or ``b``.

    The text is in it: a model that answered one question twice has two completions.
    """
    columns = ["question_id", f"model_{side}", f"completion_{side}"]
    return [
        identity_hash({"question": question, "model": model, "text": text})
        for question, model, text in zip(*(battles[c].tolist() for c in columns), strict=True)
    ]


def completions_of(battles: pd.DataFrame) -> pd.DataFrame:
    """Return the completions of battles in the order in which they occur.

    Parameters
    ----------
    battles : DataFrame
        With ``question_id``, ``model_a``, ``model_b`` and the texts.

    Returns
    -------
    DataFrame
        ``completion_id``, ``question_id``, ``model``, ``instruction``, ``completion``.

    Raises
    ------
    ValueError
        If a battle has no text.
    """
    require_texts(battles)
    sides = [
        pd.DataFrame(
            {
                "completion_id": completion_ids(battles, side),
                "question_id": battles["question_id"].to_numpy(),
                "model": battles[f"model_{side}"].to_numpy(),
                "instruction": battles["instruction"].to_numpy(),
                "completion": battles[f"completion_{side}"].to_numpy(),
            },
            index=range(place, 2 * len(battles), 2),
        )
        for place, side in enumerate("ab")
    ]
    return pd.concat(sides).sort_index().drop_duplicates("completion_id", ignore_index=True)


def present_completions(completions: pd.DataFrame, n_replicates: int) -> Sequence[Presentation]:
    """Return a presentation per completion and replicate; its `battle_id` is the completion's."""
    columns = ["completion_id", "instruction", "completion", "model"]
    return [
        Presentation(own, ALONE, replicate, question, text, "", model, "")
        for own, question, text, model in completions[columns].itertuples(index=False)
        for replicate in range(n_replicates)
    ]
