"""Ratings of several judges by several systems, on one centred Elo scale, side by side."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from judgeline.elo import ELO_ORIGIN, kendall
from judgeline.io.systems import SYSTEMS
from resources.tables.comparison import RATING_SYSTEMS


def compare_systems(rated: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return `RATING_SYSTEMS`: the ratings of all judges, centred alike, with their spread.

    Within a judge and system the mean of those models that all judges rate by all systems is 1500
    Elo points. ``judge_spread`` is the standard deviation (ddof 1) of a model's rating over
    judges; NaN for a single judge, or a model that a judge has no rating of.
    """
    if not rated:
        return RATING_SYSTEMS.empty()
    table = pd.concat([part.assign(judge=judge) for judge, part in rated.items()])
    missing = table.groupby("model")["rating"].apply(lambda ratings: ratings.isna().any())
    complete = table.groupby("model").size().eq(len(rated) * len(SYSTEMS)) & ~missing
    common = table["rating"].where(table["model"].map(complete))
    if common.isna().all():
        common = table["rating"]
    keys = [table["judge"], table["system"]]
    centred = table["rating"] - common.groupby(keys).transform("mean") + ELO_ORIGIN
    table = table.assign(rating=centred)
    by_model = table.groupby(["system", "model"])["rating"]
    spread = by_model.transform("std").where(by_model.transform("count").eq(len(rated)))
    return RATING_SYSTEMS.typed(table.assign(judge_spread=spread)).reset_index(drop=True)


def summarise_systems(systems: pd.DataFrame) -> pd.DataFrame:
    """Return one row per system: how it orders and spreads models, and how far judges differ.

    ``model_spread`` is the standard deviation of ratings over models, mean over judges.
    ``relative_spread`` is the mean ``judge_spread`` over it: a system that moves everyone towards
    the middle does not look steady. ``kendall`` compares its order with Bradley-Terry's, mean over
    judges.
    """
    columns = ["system", "n_judges", "n_models", "kendall", "model_spread", "judge_spread"]
    rows = []
    for system in [name for name in SYSTEMS if systems["system"].eq(name).any()]:
        own = systems[systems["system"].eq(system)]
        width = float(own.groupby("judge")["rating"].std().mean())
        between = float(own.drop_duplicates("model")["judge_spread"].mean())
        n_models = own.loc[own["rating"].notna(), "model"].nunique()
        ratio = between / width if width else np.nan
        row = (system, own["judge"].nunique(), n_models, _kendall(systems, own), width, between)
        rows.append((*row, ratio, float(own["order_spread"].mean())))
    return pd.DataFrame(rows, columns=[*columns, "relative_spread", "order_spread"])


def _kendall(systems: pd.DataFrame, own: pd.DataFrame) -> float:
    base = systems[systems["system"].eq(SYSTEMS[0])]
    both = base.merge(own, on=["judge", "model"], suffixes=("_base", ""))
    taus = [
        kendall(part["rating_base"], part["rating"])
        for _, part in both.dropna(subset=["rating", "rating_base"]).groupby("judge")
        if not part[["rating", "rating_base"]].nunique().eq(1).any()
    ]
    return float(np.mean(taus)) if taus else np.nan
