"""Votes on a model, and its human rating by those that a prediction had not seen."""

import json

import pandas as pd

from judgeline.intervals import rate_by_votes

PEOPLE = ["human_rating", "human_std_error", "n_votes"]
"""What people say of a model: their rating, its standard error (Elo points), and by how many."""


def votes_on(scored_battles: pd.DataFrame, model: str) -> pd.DataFrame:
    """Return the votes on a model: battle_id, opponent, and the model's share of the win."""
    is_a = scored_battles["model_a"].eq(model)
    own = scored_battles["human_outcome"].notna() & (is_a | scored_battles["model_b"].eq(model))
    votes, is_a = scored_battles[own], is_a[own]
    outcome = votes["human_outcome"].astype(float)
    return pd.DataFrame(
        {
            "battle_id": votes["battle_id"],
            "opponent": votes["model_b"].where(is_a, votes["model_a"]),
            "share": outcome.where(is_a, 1 - outcome),
        }
    )


def further_ratings(
    waiting: pd.DataFrame, scored_battles: pd.DataFrame, anchors: pd.DataFrame, *, l2: float
) -> pd.DataFrame:
    """Return people's ratings (Elo points) by the votes that a model's prediction had not seen.

    `anchors` are people's strengths (logits) of the anchors (columns) in the fold of each model
    (rows). No row for a model without further votes, or whose fold gives an opponent no strength.
    """
    found = {}
    for row in waiting.itertuples():
        votes = votes_on(scored_battles, row.model)
        unseen = votes[~votes["battle_id"].isin(json.loads(row.used_votes))]
        met = unseen.groupby("opponent")["share"].agg(["sum", "size"])
        met = met[met.index.isin(anchors.columns)]
        strengths = anchors.reindex(index=[row.model], columns=met.index).iloc[0]
        if len(met) and strengths.notna().all():
            rated = rate_by_votes(met["sum"], met["size"], strengths, l2=l2)
            found[row.model] = (rated.rating, rated.std_error, int(met["size"].sum()))
    return pd.DataFrame.from_dict(found, orient="index", columns=PEOPLE)
