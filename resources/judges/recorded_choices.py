"""Preferences that were published with a corpus, without rubric scores, as choices of a judge."""

import pandas as pd

from judgeline.io import SCORE_COLUMNS
from resources.judges.soft_annotation import CHOICE_DTYPES

_WHOLE = (0.0, 0.5, 1.0)


def recorded_choices(verdicts: pd.DataFrame, battles: pd.DataFrame, slug: str) -> pd.DataFrame:
    """Return what a judge is recorded to have preferred on the battles at hand.

    A published mean of both orders is a probability, and so is every preference of a judge some
    of whose preferences are neither a win nor a draw. What the judge said is known only where it
    is a win or a draw. Verdicts with rubric scores are no choices, and are left out.

    Parameters
    ----------
    verdicts : DataFrame
        All verdicts that came with the corpus.
    battles : DataFrame
        Battles to keep the verdicts of, by ``battle_id``.
    slug : str
        The judge.

    Returns
    -------
    DataFrame
        Columns as `CHOICE_DTYPES`, evidence ``published`` where there is a probability; empty if
        the judge has no such verdicts. Failed ones are kept if no verdict of the judge has scores.
    """
    own = verdicts[verdicts["judge"].eq(slug) & verdicts["battle_id"].isin(battles["battle_id"])]
    if own[list(SCORE_COLUMNS)].notna().any(axis=None) or own["recorded_outcome"].isna().all():
        own = own.head(0)
    share = own["recorded_outcome"].astype("float64").where(own["status"].eq("ok"))
    whole = share.isin(_WHOLE)
    weighted = bool((share.notna() & ~whole).any())
    chance = share.where(own["order"].eq("mean") | weighted)
    table = own.assign(
        choice=share.where(whole),
        p_a=chance,
        p_tie=chance * 0.0,
        p_b=1 - chance,
        evidence=chance.notna().map({True: "published", False: "none"}).astype("str"),
    )
    return table.reindex(columns=list(CHOICE_DTYPES)).astype(CHOICE_DTYPES).reset_index(drop=True)
