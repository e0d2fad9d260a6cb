"""From verdicts to scored battles: replicates averaged, orders combined, outcomes derived."""

import numpy as np
import pandas as pd

from judgeline.outcomes import (
    CRITERIA,
    criterion_difference,
    hard_outcome,
    mean_difference,
    sign_outcome,
)

SCORED_COLUMNS: tuple[str, ...] = (
    "battle_id",
    "question_id",
    "cluster_id",
    "model_a",
    "model_b",
    "language",
    "human_outcome",
    "score_difference",
    "judge_outcome",
    "recorded_outcome",
    "difference_ab",
    "difference_ba",
    "length_a",
    "length_b",
)
"""Columns of the scored battles."""

_ORDERS = ("AB", "BA", "mean")


def score_battles(battles: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the battles that a judge scored, with score differences and the hard outcome.

    A battle is scored if both orders have a parsed verdict, or if the publisher of the verdicts
    averaged them already (order ``mean``). Replicates are averaged within an order first.

    Parameters
    ----------
    battles : DataFrame
        Battles by ``battle_id``; lengths are in characters, null without text.
    verdicts : DataFrame
        Verdicts of one judge on them; those that failed, or on other battles, do not count.

    Returns
    -------
    DataFrame
        `SCORED_COLUMNS`, in the order of `battles`; differences are A minus B in rubric points,
        outcomes A's share of the win.

    Raises
    ------
    ValueError
        If verdicts of several judges, of an unknown order, or with a missing or impossible score
        come in, verdicts carry outcomes without rubric scores, or a battle has both an averaged
        verdict and single orders.
    """
    _require_one_judge(verdicts)
    parsed = verdicts[verdicts["status"].eq("ok")]
    _require_scores(parsed)
    by_order = _differences(parsed)
    by_order = by_order.reindex(battles["battle_id"])
    both = by_order[["AB", "BA"]].notna().all(axis=1).to_numpy()
    published = by_order["mean"].notna().to_numpy()
    _require_one_form(by_order)
    score = np.full(len(battles), np.nan)
    outcome = np.full(len(battles), np.nan)
    first, second, mean = (by_order[order].to_numpy() for order in _ORDERS)
    score[both] = mean_difference(first[both], second[both])
    outcome[both] = hard_outcome(first[both], second[both])
    score[published] = mean[published]
    outcome[published] = sign_outcome(mean[published])
    table = battles.assign(
        score_difference=score,
        judge_outcome=outcome,
        recorded_outcome=_recorded(verdicts).reindex(battles["battle_id"]).to_numpy(),
        difference_ab=first,
        difference_ba=second,
        length_a=_length(battles["completion_a"]),
        length_b=_length(battles["completion_b"]),
    )
    return table.loc[both | published, list(SCORED_COLUMNS)].reset_index(drop=True)


def _differences(parsed: pd.DataFrame) -> pd.DataFrame:
    """Return the score difference by battle and order, replicates averaged, NaN where none."""
    scores_a, scores_b = (
        parsed[[f"{criterion}_{side}" for criterion in CRITERIA]].to_numpy(dtype=float)
        for side in "ab"
    )
    keyed = parsed[["battle_id", "order"]].assign(
        difference=criterion_difference(scores_a, scores_b)
    )
    means = keyed.pivot_table("difference", "battle_id", "order", aggfunc="mean")
    return means.reindex(columns=list(_ORDERS)).astype(float)


def _recorded(verdicts: pd.DataFrame) -> pd.Series:
    return verdicts.groupby("battle_id", sort=False)["recorded_outcome"].mean()


def _length(texts: pd.Series) -> pd.Series:
    return texts.astype("string").str.len().astype("Int64")


def _require_one_judge(verdicts: pd.DataFrame) -> None:
    judges = sorted(verdicts["judge"].unique())
    if len(judges) > 1:
        raise ValueError(f"verdicts of {len(judges)} judges, {judges}; score one judge at a time")
    orders = sorted(set(verdicts["order"].unique()) - set(_ORDERS))
    if orders:
        raise ValueError(f"unknown orders {orders} in the verdicts; expected {list(_ORDERS)}")


def _require_scores(parsed: pd.DataFrame) -> None:
    without = parsed[[f"{name}_{side}" for side in "ab" for name in CRITERIA]].isna().all(axis=1)
    bare = without & parsed["recorded_outcome"].notna()
    if bare.any():
        raise ValueError(
            f"these verdicts carry outcomes without rubric scores: {int(bare.sum())} of "
            f"{len(parsed)} of judge {parsed['judge'].iloc[0]!r}. Score differences cannot be had "
            "from wins, and without them nothing says how far a win moves a rating on the human "
            "scale. They can be kept and exported (judgeline verdicts export); to rate the "
            "models, have a judge with the rubric read these battles, if their file has texts"
        )


def _require_one_form(by_order: pd.DataFrame) -> None:
    mixed = by_order["mean"].notna() & by_order[["AB", "BA"]].notna().any(axis=1)
    if mixed.any():
        raise ValueError(
            f"{int(mixed.sum())} battles have both an averaged verdict and single orders, the "
            f"first is {mixed.index[mixed][0]!r}; keep one of the two"
        )
