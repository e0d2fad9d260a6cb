"""Models to whose answers a judge gives every highest mark, and their opponents every lowest."""

import pandas as pd
from scipy.special import bdtrc

from judgeline.verdict import HIGHEST_SCORE, LOWEST_SCORE

EXTREME = "highest-against-lowest"
"""What the flag of a model begins with whose answers may tell the judge what to say."""

FALSE_FLAG = 0.01
"""Probability that any model of a board is flagged if the judge favours none by its texts."""

_WIDEST = HIGHEST_SCORE - LOWEST_SCORE


def extreme_flags(scored_battles: pd.DataFrame) -> dict[str, str]:
    """Return the flag of each model that is extreme far more often than the models together.

    A battle is extreme for a model that got all the highest marks, and its opponent all the lowest,
    in both orders: the set follows the text and not the order. A model is flagged if so many of its
    battles are extreme with a probability below `FALSE_FLAG` over the number of models, by the
    binomial distribution at the share of all models. Empty for scores on another scale, and
    without both orders.
    """
    gaps = scored_battles.reindex(columns=["difference_ab", "difference_ba"]).dropna()
    if gaps.empty or gaps.abs().max(axis=None) > _WIDEST:
        return {}
    ends = scored_battles.loc[gaps.index, ["model_a", "model_b"]]
    for_a, for_b = gaps.eq(_WIDEST).all(axis=1), gaps.eq(-_WIDEST).all(axis=1)
    sides = pd.DataFrame(
        {
            "model": pd.concat([ends["model_a"], ends["model_b"]], ignore_index=True),
            "is_extreme": pd.concat([for_a, for_b], ignore_index=True),
        }
    )
    counts = sides.groupby("model")["is_extreme"].agg(["sum", "size"])
    share = sides["is_extreme"].mean()
    chance = bdtrc(counts["sum"] - 1.0, counts["size"], share)
    flagged = counts[chance < FALSE_FLAG / len(counts)]
    rows = zip(flagged.index, flagged["sum"], flagged["size"], strict=True)
    return {str(model): f"{EXTREME}: {k:,} of {n:,} battles" for model, k, n in rows}
