"""Plain ratings of scored battles, by people and by the judge; whole, by language, by category."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo import Ties, rate_outcomes, style_difference
from judgeline.io.outcome_codes import COUNT
from judgeline.io.published import each_category
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

    The first has a row per source (people, judge), group of battles and model, best first: all
    battles, then those of each language and category. `controlled_rating` is the rating beside the
    effects of style, on battles whose style is known. The second has a row per source, group and
    style. Questions are clusters of battles.
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
    questions = scored_battles["question_id"].fillna(scored_battles["battle_id"])
    for grouping, label in _groupings(scored_battles):
        rows = label.index
        options: dict[str, Any] = {
            "group": None if grouping == _EVERYTHING else label.to_numpy(dtype=str),
            "ties": ties,
            "cluster": questions.iloc[rows].to_numpy(dtype=str),
            "miscoverage": miscoverage,
            "l2": l2,
        }
        style = {name: values[rows] for name, values in styles.items()}
        for source, column in _OUTCOMES.items():
            outcome = as_numbers(scored_battles[column])[rows]
            sides = scored_battles["model_a"].iloc[rows], scored_battles["model_b"].iloc[rows]
            plain, _ = rate_outcomes(*sides, outcome, **options)
            controlled, effect = rate_outcomes(*sides, outcome, covariates=style, **options)
            beside = as_table(controlled).head(len(controlled.model) if styles else 0)
            beside = beside.set_index(["group", "model"])["rating"]
            table = as_table(plain).join(beside.rename("controlled_rating"), on=["group", "model"])
            tables.append(table.assign(source=source, grouping=grouping))
            effects.append(as_table(effect).assign(source=source, grouping=grouping))
    return _joined(tables), _joined(effects)


def _groupings(scored_battles: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    """Yield each way to group the battles, with a group's name at the place of each battle."""
    yield _EVERYTHING, pd.Series("", index=np.arange(len(scored_battles)))
    for name, label in (
        ("language", scored_battles["language"].reset_index(drop=True).fillna("unknown")),
        ("category", each_category(scored_battles["category"])),
    ):
        if len(label) and (len({*label}) > 1 or len(label) < len(scored_battles)):
            yield name, label


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    joined = pd.concat(tables, ignore_index=True)
    first = ["source", "grouping", "group"]
    order = joined["source"].map({name: place for place, name in enumerate(_OUTCOMES)})
    return joined.loc[order.sort_values(kind="stable").index, [*first, *joined.columns.drop(first)]]
