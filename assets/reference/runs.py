"""A judge's preferences run by run: what repeated runs say of the same battles."""

import pandas as pd

from assets.reference.preferences import LIKELIHOOD
from judgeline.io import score_battles


def preferences_by_run(
    battles: pd.DataFrame, source: str, verdicts: pd.DataFrame, choice_verdicts: pd.DataFrame
) -> pd.DataFrame:
    """Return A's share of the win by battle (rows) and run of the judge (columns).

    Parameters
    ----------
    battles : DataFrame
        The battles, by ``battle_id``.
    source : str
        Where preferences come from: ``likelihood`` reads choices, anything else rubric scores.
    verdicts, choice_verdicts : DataFrame
        Of one judge, with replicates.

    Returns
    -------
    DataFrame
        Shares in [0, 1] by ``battle_id`` and replicate; NaN where a run did not answer in every
        order. No column where there is no run at all.
    """
    if source == LIKELIHOOD:
        return _chosen(choice_verdicts)
    runs = {
        replicate: score_battles(battles, run).set_index("battle_id")["judge_outcome"]
        for replicate, run in verdicts.groupby("replicate")
    }
    return pd.DataFrame(runs)


def _chosen(choice_verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over orders of A's probability with half that of a tie."""
    answered_well = choice_verdicts[choice_verdicts["status"].eq("ok")]
    known = answered_well.dropna(subset=["p_a", "p_tie", "p_b"])
    share = known["p_a"] + known["p_tie"] / 2
    by_run = known.assign(share=share).groupby(["battle_id", "replicate"])["share"]
    asked = choice_verdicts.groupby("battle_id")["order"].nunique()
    answered = by_run.size()
    complete = answered.eq(asked.reindex(answered.index.get_level_values(0)).to_numpy())
    means = by_run.mean()[complete].reset_index()
    return means.pivot_table("share", index="battle_id", columns="replicate")
