"""New models: their scored battles, and their ratings among anchors that they cannot move."""

from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo import HeldOutRatings, rate
from judgeline.io import score_battles
from judgeline.steps.coding import coded, rating_settings, units
from judgeline.steps.step import with_newcomer
from judgeline.tables.ids import is_among
from judgeline.tables.judging import SCORED_COLUMNS

CANDIDATE, CONTROL = "candidate", "control"
"""Flags of a rating: of a dropped model, and of an attack control."""

WHOSE = ("candidate", "control", "content_hash")
"""Columns that say whose battle it is."""


def score_candidates(
    candidate_battles: pd.DataFrame | None, candidate_verdicts: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the scored battles of new models, as of the corpus, and the model of each."""
    if candidate_battles is None or candidate_verdicts is None:
        return pd.DataFrame(columns=[*SCORED_COLUMNS, *WHOSE])
    judged = candidate_battles[
        is_among(candidate_battles["battle_id"], candidate_verdicts["battle_id"])
    ]
    scored = score_battles(judged.reset_index(drop=True), candidate_verdicts)
    whose = candidate_battles[["battle_id", *WHOSE]]
    return scored.merge(whose, on="battle_id", how="left", validate="one_to_one")


def place_newcomer(
    scored_battles: pd.DataFrame, model: str, settings: Any, own: pd.DataFrame
) -> HeldOutRatings:
    """Return the ratings of a model without votes, placed as one of the corpus would be."""
    battles = with_newcomer(scored_battles, model, own)
    cluster, rating = units(battles, settings), rating_settings(settings)
    return rate(coded(battles, settings), rating, cluster=cluster, models=[model])


def unrated_row(model: str, method: str) -> HeldOutRatings:
    """Return a row without numbers for a newcomer that is not placed."""
    words = (np.array([text]) for text in (model, method, ""))
    columns = [*words, *np.full((10, 1), np.nan), *np.zeros((2, 1), dtype=np.int64)]
    return HeldOutRatings._make([*columns, np.array(["no-votes"])])


def with_flag(ratings: HeldOutRatings, flag: str, *, first: bool = False) -> HeldOutRatings:
    """Return ratings with one more flag, after the others or before them."""
    flags = [f"{flag};{old}" if first else f"{old};{flag}" for old in ratings.flags.tolist()]
    return ratings._replace(flags=np.array(flags))
