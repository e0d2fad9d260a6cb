"""Plain ratings of scored battles, by people and by the judge, whole and by language."""

from typing import Any

import pandas as pd

from judgeline.elo import Ties, rate_outcomes, style_difference
from judgeline.io.outcome_codes import COUNT
from judgeline.io.scoring import STYLES, as_numbers, as_table

_OUTCOMES = {"people": "human_outcome", "judge": "judge_outcome"}
_EVERYTHING = "all"


def plain_ratings(
    scored_battles: pd.DataFrame,
    *,
    ties: Ties = "half",
    miscoverage: float = 0.1,
    l2: float = 0.01,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ratings of people's and of the judge's outcomes as they are, and effects of style.

    The first has a row per source (people, judge), language (``all`` first) and model, best first:
    `controlled_rating` is the rating beside the effects of style, on battles whose style is known.
    The second has a row per source, language and style. Questions are clusters of battles.
    """
    if COUNT in scored_battles:
        raise ValueError(
            f"plain ratings need a battle a row, and these are counted (column {COUNT}): leave the "
            "ratings out, or pass the battles themselves"
        )
    tables: list[pd.DataFrame] = []
    effects: list[pd.DataFrame] = []
    styles = {
        name: style_difference(*(as_numbers(scored_battles[f"{name}_{side}"]) for side in "ab"))
        for name in STYLES
        if f"{name}_a" in scored_battles and scored_battles[f"{name}_a"].notna().any()
    }
    language = scored_battles["language"].fillna("unknown").to_numpy(dtype=str)
    questions = scored_battles["question_id"].fillna(scored_battles["battle_id"])
    groups = [None, language] if len({*language}) > 1 else [None]
    for source, column in _OUTCOMES.items():
        outcome = as_numbers(scored_battles[column])
        for group in groups:
            options: dict[str, Any] = {
                "group": group,
                "ties": ties,
                "cluster": questions.to_numpy(dtype=str),
                "miscoverage": miscoverage,
                "l2": l2,
            }
            sides = scored_battles["model_a"], scored_battles["model_b"]
            plain, _ = rate_outcomes(*sides, outcome, **options)
            controlled, effect = rate_outcomes(*sides, outcome, covariates=styles, **options)
            beside = as_table(controlled).head(len(controlled.model) if styles else 0)
            beside = beside.set_index(["group", "model"])["rating"]
            table = as_table(plain).join(beside.rename("controlled_rating"), on=["group", "model"])
            tables.append(table.assign(source=source))
            effects.append(as_table(effect).assign(source=source))
    return _joined(tables), _joined(effects)


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    joined = pd.concat(tables, ignore_index=True).rename(columns={"group": "language"})
    joined["language"] = joined["language"].replace("", _EVERYTHING)
    return joined[["source", *joined.columns.drop("source")]]
