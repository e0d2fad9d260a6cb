"""Where a judge's preferences come from: its own probabilities, or outcomes of its rubric.

What belongs here: the choice between the two, by what they cover. What does not: what is made of
them (`assets.reference.anchoring`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

LIKELIHOOD, RUBRIC = "likelihood", "rubric"
"""Where preferences come from: the judge's own probabilities, or outcomes of its rubric scores."""

LEAST_COVERED = 0.8
"""Battles that the preferred source has to cover, as a share of those that the other one covers.
It is preferred for what one battle tells; a tenth of the battles would tell less than all do."""


class Preferences(NamedTuple):
    """A's share of the win by ``battle_id``, NaN where unknown, where it comes from and why."""

    source: str
    share: "pd.Series[float]"
    why: str


def battles_with(battles: pd.DataFrame, model: str) -> "pd.Series[str]":
    """Return the ``battle_id`` of the battles that a model is in, on either side."""
    is_in = battles["model_a"].eq(model) | battles["model_b"].eq(model)
    return battles.loc[is_in, "battle_id"]


def preferences_of(
    soft_outcomes: pd.DataFrame,
    scored_battles: pd.DataFrame | None,
    with_reference: "pd.Series[str]",
) -> Preferences | None:
    """Return a judge's own probabilities if they cover enough, else outcomes of its rubric scores.

    Probabilities say more of a battle, but only of those that have one: they are taken where they
    cover at least `LEAST_COVERED` of the battles with the reference that rubric scores cover.

    Parameters
    ----------
    soft_outcomes : DataFrame
        Of one judge; its rows of source ``likelihood`` count.
    scored_battles : DataFrame or None
        Of the same judge, where it has any.
    with_reference : Series of str
        The battles with the reference, as `battles_with` returns them.

    Returns
    -------
    Preferences or None
        From one source, never a mixture; None where neither covers a battle with the reference.
    """
    own = soft_outcomes[soft_outcomes["source"].eq(LIKELIHOOD)].set_index("battle_id")
    shares = {LIKELIHOOD: own["soft_outcome"].astype(float)}
    if scored_battles is not None and len(scored_battles):
        shares[RUBRIC] = scored_battles.set_index("battle_id")["judge_outcome"].astype(float)
    covered = {
        source: int(with_reference.isin(share.dropna().index).sum())
        for source, share in shares.items()
    }
    source = covering(covered, prefer=LIKELIHOOD)
    if source is None:
        return None
    counts = ", ".join(f"{name} {n:,}" for name, n in covered.items())
    why = (
        f"{source}. Battles with the reference: {len(with_reference):,}; with preferences: "
        f"{counts}. Probabilities ({LIKELIHOOD}) are taken where they cover at least "
        f"{LEAST_COVERED:.0%} of what the rubric covers"
    )
    return Preferences(source, shares[source], why)


def covering(covered: Mapping[str, int], *, prefer: str) -> str | None:
    """Return the preferred source if it covers `LEAST_COVERED` of what the best one does.

    Parameters
    ----------
    covered : mapping of str to int
        Battles that each source covers.
    prefer : str
        The source that is better battle by battle.

    Returns
    -------
    str or None
        The preferred source, else the one that covers most; None where none covers any.
    """
    most = max(covered, key=lambda source: covered[source], default=prefer)
    if not covered.get(most):
        return None
    return prefer if covered.get(prefer, 0) >= LEAST_COVERED * covered[most] else most
