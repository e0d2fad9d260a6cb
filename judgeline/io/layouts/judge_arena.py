"""JudgeArena's battles, where ``winner`` is a judge's or people's as ``source`` says."""

import pandas as pd

from judgeline.io.layout import Given, Layout

_COLUMNS = ["question_id", "model_a", "model_b", "winner", "pref", "source", "judge_model"]


def _battles(given: Given) -> pd.DataFrame:
    """Return rows in our columns: verdicts of a judge, and votes of people alone.

    ``pref`` is the judge's share of the win of B.
    """
    table = given.read(_COLUMNS, _COLUMNS)
    unknown = table.loc[~table["source"].isin(["llm-judge", "human"]), "source"]
    if len(unknown):
        raise ValueError(
            f"{len(unknown)} rows have the source {unknown.iloc[0]!r}; JudgeArena's battles have "
            "llm-judge or human: correct or remove them"
        )
    share = pd.to_numeric(table["pref"], errors="coerce").where(table["source"].ne("human"))
    judge = table["judge_model"].fillna("judge")
    return table.assign(score_difference=1 - 2 * share, judge=judge).drop(
        columns=["pref", "judge_model"]
    )


JUDGE_ARENA = Layout("judge-arena", (" ".join(_COLUMNS),), battles=_battles, voters="source")
