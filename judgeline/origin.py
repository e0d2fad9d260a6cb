"""Where zero lies: ratings of a model held out are relative to the mean of the others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def origin_shift(human_rating: ArrayLike, then: Sequence[int], now: Sequence[int]) -> float:
    """Return how far the zero of a model's human rating moved as others got votes.

    A model that is held out is rated relative to the mean of its anchors. Its rating among the
    anchors `then` is its rating among those `now` plus this shift: the mean strength of the
    latter less that of the former. With strengths ``s`` of zero mean over n models, one that is
    held out is rated ``s_i - mean_(j != i) s_j = s_i n / (n - 1)``, which is turned round here.
    Refits without a model move the others a little, which is left out; where both sets are the
    same the shift is exactly zero.

    Parameters
    ----------
    human_rating : array_like, shape (n - 1,)
        Elo points of all other models with votes, each rated with itself held out.
    then : sequence of int
        Positions in `human_rating` of the anchors that a prediction was made among.
    now : sequence of int
        Positions of the anchors of the model's human rating.

    Returns
    -------
    float
        In Elo points; NaN if either set is empty.

    Raises
    ------
    ValueError
        If a rating of either set is not finite.
    """
    rating = np.asarray(human_rating, dtype=float)
    if len(then) == 0 or len(now) == 0:
        return float("nan")
    before, after = rating[np.asarray(then)], rating[np.asarray(now)]
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        raise ValueError("every anchor needs a finite human rating; leave out those without one")
    return float((after.mean() - before.mean()) * rating.size / (rating.size + 1))
