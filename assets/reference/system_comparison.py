"""How far judges differ under each rating system, on one centred Elo scale."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from assets.reference.systems import SYSTEMS
from judgeline.elo import ELO_ORIGIN, kendall
from judgeline.reliability.kappa import mean_pairwise_kappa, reliability_factor

SYSTEM_COLUMNS: tuple[str, ...] = (
    "system",
    "judge",
    "model",
    "rating",
    "order_spread",
    "judge_spread",
    "n_battles",
    "note",
)
"""Columns of the rating systems: one row per system, judge and model."""


def compare_systems(rated: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the ratings of all judges by all systems, centred alike, with their spread.

    Within a judge and system the mean of those models that all judges rate by all systems is 1500
    Elo points. ``judge_spread`` is the standard deviation (ddof 1) of a model's rating over
    judges; NaN for a single judge, or a model that a judge has no rating of.

    Parameters
    ----------
    rated : mapping of str to DataFrame
        By judge, as `assets.reference.systems.rate_by_systems` returns them.
    """
    if not rated:
        return no_systems()
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
    return table.assign(judge_spread=spread)[list(SYSTEM_COLUMNS)].reset_index(drop=True)


def no_systems() -> pd.DataFrame:
    """Return ratings of no judge."""
    texts = dict.fromkeys(("system", "judge", "model", "note"), "str")
    kinds = {**dict.fromkeys(SYSTEM_COLUMNS, "float64"), **texts, "n_battles": "int64"}
    return pd.DataFrame({name: pd.Series(dtype=kinds[name]) for name in SYSTEM_COLUMNS})


def summarise_systems(systems: pd.DataFrame) -> pd.DataFrame:
    """Return one row per system: how it orders and spreads models, and how far judges differ.

    ``model_spread`` is the standard deviation of ratings over models, mean over judges: how wide
    the system's ruler is. ``relative_spread`` is the mean ``judge_spread`` over it, so that a
    system does not look steady by moving everyone towards the middle. ``kendall`` compares its
    order with Bradley-Terry's, mean over judges.
    """
    rows = []
    for system in [name for name in SYSTEMS if systems["system"].eq(name).any()]:
        own = systems[systems["system"].eq(system)]
        width = float(own.groupby("judge")["rating"].std().mean())
        between = float(own.drop_duplicates("model")["judge_spread"].mean())
        rows.append(
            {
                "system": system,
                "n_judges": own["judge"].nunique(),
                "n_models": own.loc[own["rating"].notna(), "model"].nunique(),
                "kendall": _kendall(systems, own),
                "model_spread": width,
                "judge_spread": between,
                "relative_spread": between / width if width else np.nan,
                "order_spread": float(own["order_spread"].mean()),
            }
        )
    return pd.DataFrame(rows)


def _kendall(systems: pd.DataFrame, own: pd.DataFrame) -> float:
    base = systems[systems["system"].eq(SYSTEMS[0])]
    both = base.merge(own, on=["judge", "model"], suffixes=("_base", "")).dropna(
        subset=["rating", "rating_base"]
    )
    found = [
        kendall(part["rating_base"], part["rating"])
        for _, part in both.groupby("judge")
        if not part[["rating", "rating_base"]].nunique().eq(1).any()
    ]
    return float(np.mean(found)) if found else np.nan


def agreement_of(outcomes: Mapping[str, "pd.Series[float]"]) -> dict[str, float]:
    """Return judges' mean pairwise kappa on the battles all of them judged, and its factor.

    Parameters
    ----------
    outcomes : mapping of str to Series
        By judge, outcomes by battle.

    Returns
    -------
    dict of str to float
        ``n_shared_battles``, and where kappa is defined ``mean_kappa`` and, above 0, the
        ``reliability_factor`` that a corpus may ask for under ``reference.mean_kappa``.
    """
    shared = pd.DataFrame(dict(outcomes)).dropna()
    told = {"n_shared_battles": float(len(shared))}
    if shared.shape[1] < 2 or shared.empty:
        return told
    try:
        kappa = mean_pairwise_kappa(shared.to_numpy().T)
    except ValueError:  # two judges put everything in one class: kappa is undefined
        return told
    factor = {"reliability_factor": reliability_factor(kappa)} if kappa > 0 else {}
    return {**told, "mean_kappa": kappa, **factor}
