"""The draws of the program that was released with the Soft-Elo paper, and its penalty.

Facts of that program: one PCG64 generator of seed 42 draws 20 resamples of each model's battles, in
the order of the file, by name of the model and then `hard` before `soft`; a second one of the
same seed draws the splits. Its penalty is half of the paper's.
"""

import numpy as np
from numpy.typing import NDArray

from judgeline.elo import CodedBattles, HeldOutRatings, RatingSettings, strength_to_rating
from judgeline.elo.battles import OwnBattles
from judgeline.elo.placements import place
from judgeline.elo.strengths import place_models

SEED, N_RESAMPLES, METHODS = 42, 20, ("hard", "soft")
SETTINGS = RatingSettings(l2=0.005, n_resamples=0)
_LEAST_BATTLES, _ROOM = 3, 1e-6  # outcomes lie at least so far from 0 and 1

Floats = NDArray[np.float64]


def with_released_errors(battles: CodedBattles, heldout: HeldOutRatings) -> HeldOutRatings:
    """Return ratings with the standard errors of the program's draws, Elo points.

    They belong to `hard` and `soft`; other rows have none, and neither have fewer than 3 battles.
    """
    found, rng = place(battles, l2=SETTINGS.l2), np.random.default_rng(SEED)
    error = np.full(heldout.std_error.shape, np.nan)
    for model, own in enumerate(OwnBattles.of_all(battles, found.sums.voted, None)):
        in_file = np.argsort(own.rows)
        column = (np.cumsum(found.sums.voted) - 1)[own.opponent[in_file]]
        for method in METHODS if column.size >= _LEAST_BATTLES else ():
            share = found.bases[method].shares(model, own)[in_file].clip(_ROOM, 1 - _ROOM)
            anchors = found.placed[method].anchors[model]
            row = (heldout.model == battles.models[model]) & (heldout.method == method)
            error[row] = _spread(share, column, anchors, rng)
    return heldout._replace(std_error=error)


def _spread(
    share: Floats, column: NDArray[np.intp], anchors: Floats, rng: np.random.Generator
) -> float:
    """Return the standard deviation of placements on resamples, Elo points."""
    draws = rng.integers(0, share.size, size=(N_RESAMPLES, share.size))
    counts = [np.bincount(column[drawn], minlength=anchors.size) for drawn in draws]
    strengths = place_models(share[draws].sum(axis=1), np.array(counts), anchors, l2=SETTINGS.l2)
    return float(strength_to_rating(strengths).std(ddof=1))
