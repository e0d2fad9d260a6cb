"""Verdicts that were published with a corpus: as rubric scores, or as choices without any."""

import pandas as pd

from judgeline.io import SCORE_COLUMNS, VERDICT_DTYPES
from resources.tables.judging import CHOICE_VERDICTS

_WHOLE = (0.0, 0.5, 1.0)


def recorded_marks(verdicts: pd.DataFrame, battles: pd.DataFrame, slug: str) -> pd.DataFrame:
    """Return the published verdicts of a judge on the battles at hand."""
    published = verdicts[verdicts["judge"].eq(slug)]
    if published.empty:
        there = ", ".join(sorted(verdicts["judge"].unique())) or "none at all"
        raise ValueError(
            f"no recorded verdicts of judge {slug!r} came with this corpus (it has: {there}); "
            "name one of those in config/judges.yaml, or choose a judge of another kind"
        )
    rows = published[published["battle_id"].isin(battles["battle_id"])]
    return rows.reindex(columns=list(VERDICT_DTYPES)).astype(VERDICT_DTYPES).reset_index(drop=True)


def recorded_choices(verdicts: pd.DataFrame, battles: pd.DataFrame, slug: str) -> pd.DataFrame:
    """Return the published preferences of a judge on the battles at hand, as choices.

    A published mean of both orders is a probability, and so is every preference of a judge some
    of whose preferences are neither a win nor a draw. A choice is known only where it is a win or
    a draw. Verdicts with rubric scores are no choices, and are left out. Empty if the judge has no
    such verdicts; failed ones are kept if no verdict of the judge has scores.
    """
    rows = verdicts[verdicts["judge"].eq(slug) & verdicts["battle_id"].isin(battles["battle_id"])]
    if rows[list(SCORE_COLUMNS)].notna().any(axis=None) or rows["recorded_outcome"].isna().all():
        rows = rows.head(0)
    share = rows["recorded_outcome"].astype("float64").where(rows["status"].eq("ok"))
    whole = share.isin(_WHOLE)
    weighted = bool((share.notna() & ~whole).any())
    chance = share.where(rows["order"].eq("mean") | weighted)
    table = rows.assign(
        choice=share.where(whole),
        p_a=chance,
        p_tie=chance * 0.0,
        p_b=1 - chance,
        evidence=chance.notna().map({True: "published", False: "none"}).astype("str"),
    )
    return CHOICE_VERDICTS.typed(table.reindex(columns=CHOICE_VERDICTS.columns)).reset_index(
        drop=True
    )
