"""Flag of models with many battles of all highest against all lowest marks."""

import pandas as pd

from judgeline.verdict import HIGHEST_SCORE, LOWEST_SCORE

EXTREME = "highest-against-lowest"
"""What the flag of a model begins with whose answers may tell the judge what to say."""

SHOWN_FROM = 0.05
"""Share of a model's battles from which on the flag is shown; the best of an uneven field may
reach it without a word to the judge."""

_WIDEST = HIGHEST_SCORE - LOWEST_SCORE


def extreme_flags(scored_battles: pd.DataFrame) -> dict[str, str]:
    """Return the flag of each model that is extreme in `SHOWN_FROM` of its battles, with the count.

    A battle is extreme for a model that got all the highest marks, and its opponent all the lowest,
    in both orders: the set follows the text and not the order. Empty for scores on another scale,
    and without both orders.
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
    shown = counts[counts["sum"] >= SHOWN_FROM * counts["size"]]
    rows = zip(shown.index, shown["sum"], shown["size"], strict=True)
    return {str(model): f"{EXTREME}: {k:,} of {n:,} battles" for model, k, n in rows}
