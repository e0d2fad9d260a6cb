"""Agreement of ratings with human ones, and the rank correlations behind it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.elo.ratings import HeldOutRatings

Floats = NDArray[np.float64]


class Summary(NamedTuple):
    """One row per judge method, over the models with a residual.

    `mae` (mean absolute residual) and `bias` (mean residual) are in Elo points; `stretch` is
    the least-squares slope of judge on human ratings (1 is a true ruler, more a stretched
    one); `spearman` and `kendall` are rank correlations with human ratings; `mean_beta` is in
    logits per rubric point, NaN for methods without a slope.
    """

    method: NDArray[np.str_]
    n_models: NDArray[np.int64]
    mae: Floats
    bias: Floats
    stretch: Floats
    spearman: Floats
    kendall: Floats
    mean_beta: Floats


def summarise(heldout: HeldOutRatings) -> Summary:
    """Return the agreement of every judge method with the human ratings, one row a method.

    Correlations and stretch are NaN below two models or where either side's ratings are all equal.
    """
    methods = [name for name in dict.fromkeys(heldout.method.tolist()) if name != "human"]
    rows = [_summary_of(heldout, method) for method in methods]
    return Summary(*(np.array(column) for column in zip(*rows, strict=True)))


def _summary_of(heldout: HeldOutRatings, method: str) -> tuple[object, ...]:
    rows = (heldout.method == method) & np.isfinite(heldout.residual)
    residual, judge, human = (
        heldout.residual[rows],
        heldout.rating[rows],
        heldout.human_rating[rows],
    )
    if not residual.size:
        return (method, 0, *[float("nan")] * 6)
    comparable = residual.size > 1 and np.ptp(judge) > 0 and np.ptp(human) > 0
    beta = heldout.beta[rows]
    return (
        method,
        residual.size,
        float(np.abs(residual).mean()),
        float(residual.mean()),
        float(np.polyfit(human, judge, 1)[0]) if comparable else float("nan"),
        spearman(judge, human) if comparable else float("nan"),
        kendall(judge, human) if comparable else float("nan"),
        float(beta.mean()),
    )


def average_ranks(values: ArrayLike) -> Floats:
    """Return the ranks of values from 1; equal ones share the mean of theirs."""
    _, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    mean_rank: Floats = np.cumsum(count) - (count - 1) / 2
    return mean_rank[place]


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return the correlation of the ranks of two columns, neither constant; NaN if one holds NaN.

    References
    ----------
    C. Spearman (1904), "The Proof and Measurement of Association between Two Things", American
    Journal of Psychology 15(1).
    """
    columns = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if np.isnan(columns).any():
        return float("nan")
    ranks = np.column_stack([average_ranks(column) for column in columns])
    return float(np.corrcoef(ranks, rowvar=False)[1, 0])


def kendall(first: ArrayLike, second: ArrayLike) -> float:
    """Return tau-b of two columns, neither constant; NaN if one holds NaN.

    Memory grows with the square of their length: it is for models, not for battles.

    References
    ----------
    M. G. Kendall (1945), "The Treatment of Ties in Ranking Problems", Biometrika 33(3).
    """
    columns = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if np.isnan(columns).any():
        return float("nan")
    order, other = ((c[:, None] > c).astype(np.int8) - (c[:, None] < c) for c in columns)
    agreeing = int(np.sum(order * other, dtype=np.int64)) // 2  # less those that disagree
    untied, other_untied = (int(np.count_nonzero(signs)) // 2 for signs in (order, other))
    return float(np.clip(agreeing / np.sqrt(untied) / np.sqrt(other_untied), -1.0, 1.0))
