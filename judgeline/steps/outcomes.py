"""Outcomes of battles, one row per source, from single scores and choices of a judge."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.tables.ids import is_among
from judgeline.tables.trust import SOFT_OUTCOMES
from judgeline.trust import aggregate_orders, perplexity_outcome
from judgeline.verdict import (
    HIGHEST_SCORE,
    LOWEST_SCORE,
    completion_id,
    hard_outcome,
    sign_outcome,
)

SCORE_SOURCES = ("score", "score-plain")

_PROBABILITIES = ["p_a", "p_tie", "p_b"]
_KINDS = ("log-probabilities", "samples", "published")
_LEVEL = 1e-9  # scores this close differ by rounding alone

Floats = NDArray[np.float64]


def outcomes_by_source(
    battles: pd.DataFrame,
    choice_verdicts: pd.DataFrame,
    score_verdicts: pd.DataFrame,
    *,
    scale: tuple[int, int],
    tolerance: float = 0.0,
) -> pd.DataFrame:
    """Return the outcomes of battles by a judge's choices, and by its scores of either side.

    Replicates are averaged first, perplexities on the log scale. A battle counts with both orders,
    or their published mean; respectively both scores. The plain choice follows `hard_outcome`.
    `scale` is that of the scores; differences are A minus B in points of 1 to 10. `tolerance` is
    delta in [0, 1]: masses of the two likeliest choices less than twice this apart are a tie, and
    so are perplexities and scores (in points) at most this apart. Source: Y. Wang et al. (2025),
    "TrustJudge", arXiv:2509.21117.
    """
    chosen = _parsed(choice_verdicts, "choice")
    scored = _parsed(score_verdicts, "score")
    _require_unmixed(chosen)
    parts = [
        SOFT_OUTCOMES.empty(),
        *_by_choice(battles, chosen, tolerance),
        *_by_score(battles, scored, scale, tolerance),
    ]
    return pd.concat(map(SOFT_OUTCOMES.filled, parts), ignore_index=True)


def completion_ids(battles: pd.DataFrame, side: str) -> list[str]:
    """Return the id of each battle's completion A or B; `side` is ``a`` or ``b``."""
    columns = ("question_id", f"model_{side}", f"completion_{side}")
    values = (battles[name].tolist() for name in columns)
    return [completion_id(*one) for one in zip(*values, strict=True)]


def _by_choice(
    battles: pd.DataFrame, chosen: pd.DataFrame, tolerance: float
) -> Iterator[pd.DataFrame]:
    ids, ab, ba = _both_orders(battles, chosen, _PROBABILITIES)
    both = aggregate_orders(ab, ba[:, ::-1], tolerance=tolerance)  # B is shown first in BA
    likely = {"outcome": both.outcome, "soft_outcome": both.soft_outcome}
    yield pd.DataFrame({"battle_id": ids, "source": "likelihood", **likely})
    # A mean of orders has no order, and many samples have no perplexity of one answer.
    single = chosen[chosen["order"].ne("mean") & chosen["evidence"].ne("samples")]
    surprise = np.log(single["perplexity"].to_numpy(dtype=float, na_value=np.nan))
    ids, ab, ba = _both_orders(battles, single.assign(surprise=surprise), ["choice", "surprise"])
    outcomes = (sign_outcome(order[:, 0] - 0.5) for order in (ab, ba))
    perplexities = (np.exp(order[:, 1]) for order in (ab, ba))
    outcome = perplexity_outcome(*outcomes, *perplexities, tolerance=tolerance)
    yield pd.DataFrame({"battle_id": ids, "source": "perplexity", "outcome": outcome})
    ids, ab, ba = _both_orders(battles, chosen, ["choice"])
    outcome = hard_outcome(ab[:, 0] - 0.5, ba[:, 0] - 0.5)
    yield pd.DataFrame({"battle_id": ids, "source": "choice", "outcome": outcome})


def _both_orders(
    battles: pd.DataFrame, chosen: pd.DataFrame, columns: list[str]
) -> tuple[NDArray[np.object_], Floats, Floats]:
    """Return battles known in both orders, and the means of some columns (n, c) in either."""
    known = chosen.dropna(subset=columns).astype(dict.fromkeys(columns, "float64"))
    means = known.groupby(["order", "battle_id"])[columns].mean()
    ab, ba, published = (
        means[means.index.get_level_values("order") == order].droplevel("order")
        for order in ("AB", "BA", "mean")
    )
    ids = battles["battle_id"].to_numpy(dtype=object)
    ours, theirs = (
        pd.concat([single, published]).reindex(ids).to_numpy(dtype=float) for single in (ab, ba)
    )
    both = ~np.isnan(ours).any(axis=1) & ~np.isnan(theirs).any(axis=1)
    return ids[both], ours[both], theirs[both]


def _by_score(
    battles: pd.DataFrame, scored: pd.DataFrame, scale: tuple[int, int], tolerance: float
) -> Iterator[pd.DataFrame]:
    _require_scale(scored, scale)
    (low, high), (lowest, highest) = scale, (LOWEST_SCORE, HIGHEST_SCORE)
    said, expected = (
        scored[name].to_numpy(dtype=float, na_value=np.nan) for name in ("score", "expected_score")
    )
    said = lowest + (said - low) / (high - low) * (highest - lowest)
    if scored.empty:  # battles that nobody scored need have no texts
        return
    sides = [completion_ids(battles, side) for side in "ab"]
    for source, values in zip(SCORE_SOURCES, (expected, said), strict=True):
        means = pd.Series(values, index=scored["completion_id"]).groupby(level=0).mean()
        ours, theirs = (means.reindex(side).to_numpy(dtype=float) for side in sides)
        both = ~np.isnan(ours - theirs)
        gap = (ours - theirs)[both]
        level = np.abs(gap) <= max(tolerance, _LEVEL)
        yield pd.DataFrame(
            {
                "battle_id": battles["battle_id"].to_numpy()[both],
                "source": source,
                "outcome": sign_outcome(np.where(level, 0.0, gap)),
                "score_difference": np.where(np.abs(gap) <= _LEVEL, 0.0, gap),
            }
        )


def _require_scale(scored: pd.DataFrame, scale: tuple[int, int]) -> None:
    """Refuse scores that were asked on another scale than the judge's: most would fit on both."""
    if scored.empty:
        return
    ends = scored.reindex(columns=["scale_low", "scale_high"]).drop_duplicates()
    if ends.isna().any(axis=None):
        raise ValueError("score_verdicts do not say on which scale they are; remake score_verdicts")
    for low, high in ends.astype("int64").itertuples(index=False):
        if (low, high) != tuple(scale):
            raise ValueError(
                f"score_verdicts are on a scale of {low} to {high}, and score.scale of the judge "
                f"is {scale[0]} to {scale[1]}; remake score_verdicts, or correct 'score.scale'"
            )


def _parsed(verdicts: pd.DataFrame, what: str) -> pd.DataFrame:
    parsed = verdicts[verdicts["status"].eq("ok")]
    kinds = sorted(set(parsed["evidence"].dropna()) & set(_KINDS))
    if len(kinds) > 1:
        raise ValueError(
            f"{what}_verdicts rest on {' and '.join(kinds)}: numbers of two kinds are not compared "
            "with each other; set log_probabilities of the judge to on or off, and remake them"
        )
    return parsed


def _require_unmixed(chosen: pd.DataFrame) -> None:
    is_mean = chosen["order"].eq("mean")
    single = chosen.loc[~is_mean, "battle_id"]
    mixed = single[is_among(single, chosen.loc[is_mean, "battle_id"])]
    if len(mixed):
        raise ValueError(
            f"{mixed.nunique()} battles have both an averaged choice and single orders, the first "
            f"is {mixed.iloc[0]!r}; keep one of the two"
        )
