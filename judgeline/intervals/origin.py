"""Where zero lies: ratings of a model held out are relative to the mean of the others."""

import numpy as np
from numpy.typing import ArrayLike


def origin_shift(then: ArrayLike, then_as_now: ArrayLike, now: ArrayLike) -> float:
    """Return how far the zero of a model's human rating moved as others got votes.

    A model that is held out is rated relative to the mean of its anchors. Its rating among the
    anchors of `then` is its rating among those of `now` plus this shift: the mean strength of the
    latter less that of the former. With strengths ``s`` of zero mean over n models, one that is
    held out is rated ``s_i - mean_(j != i) s_j = s_i n / (n - 1)``, which is turned round here.
    An anchor that is gone stands where it stood, relative to those that are left. Refits without
    a model move the others a little, which is left out.

    Parameters
    ----------
    then : array_like, shape (A,)
        Human ratings of the anchors then, when the model had no votes; Elo points.
    then_as_now : array_like, shape (A,)
        Those of the same anchors now, NaN for one that is gone.
    now : array_like, shape (B,)
        Human ratings of all anchors now, when the model has votes.

    Returns
    -------
    float
        In Elo points; zero up to rounding where the anchors are the same, NaN where none is left.

    Raises
    ------
    ValueError
        If the first two differ in length, or a rating of `then` or `now` is not finite.
    """
    old, same, new = (np.asarray(given, dtype=float) for given in (then, then_as_now, now))
    if old.shape != same.shape:
        raise ValueError(f"{old.size} anchors then, {same.size} of them now: give one for each")
    if not (np.isfinite(old).all() and np.isfinite(new).all()):
        raise ValueError("an anchor has no finite human rating; leave it out")
    left = np.isfinite(same)
    if not left.any():
        return float("nan")
    before = old * (old.size - 1) / old.size
    factor = new.size / (new.size + 1)
    moved = (same[left] * factor - before[left]).mean()
    return float(new.mean() * factor - np.where(left, same * factor, before + moved).mean())
