"""How close a judge's leave-one-out ratings come to human ratings, by method."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgeline.elo.rank_correlation import kendall, spearman
from judgeline.elo.rate import HeldOutRatings

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
    """Return the agreement of every judge method with the human ratings.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings of all methods.

    Returns
    -------
    Summary
        One row per method other than ``human``; correlations and stretch are NaN with fewer
        than two models or when either side's ratings are all equal.
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
