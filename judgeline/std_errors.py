"""Standard errors of placements, by closed form and by resampling a model's own battles."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.battles import CodedBattles
from judgeline.bootstrap import ResamplingUnits, bootstrap_strengths, unit_std_error
from judgeline.own_battles import OwnBattles
from judgeline.rating_settings import RatingSettings
from judgeline.streams import keyed_rng
from judgeline.targets import Placed

Floats = NDArray[np.float64]
Shares = tuple[NDArray[np.bool_], Floats]

StdErrors = dict[str, tuple[Floats, Floats]]
"""By method: bootstrap and closed-form standard errors in logits, each (M,)."""


class Family(NamedTuple):
    """Methods that resample together, since their outcomes are functions of the first one's.

    `shares` gives, for model number m and its n own battles, which of them count (n,) and the
    model's share of the win in each by each method (n, K). The first method names the stream.
    """

    methods: tuple[str, ...]
    shares: Callable[[int, OwnBattles], Shares]


def std_errors(
    battles: CodedBattles,
    voted: NDArray[np.bool_],
    placed: Mapping[str, Placed],
    families: Sequence[Family],
    settings: RatingSettings,
    cluster: ArrayLike | None,
) -> StdErrors:
    """Return both standard errors of every placed model by every method.

    Parameters
    ----------
    battles : CodedBattles
        The judged battles, n of them over M models.
    voted : ndarray of bool, shape (M,)
        Which models are anchors.
    placed : mapping of str to Placed
        By method.
    families : sequence of Family
        Every method stands in one.
    settings : RatingSettings
        Penalty, resamples, seed and stream.
    cluster : array_like, shape (n,), optional
        What is drawn together; battles by default.
    """
    missing = np.full(len(battles.models), np.nan)
    errors = {name: (missing.copy(), fit.std_error.copy()) for name, fit in placed.items()}
    if not settings.n_resamples and cluster is None:
        return errors
    place = np.cumsum(voted) - 1
    for model, own in enumerate(OwnBattles.of_all(battles, voted, cluster)):
        for family in families:
            kept, outcome = family.shares(model, own)
            strengths = np.array([placed[name].strength[model] for name in family.methods])
            if not np.isfinite(strengths).all() or not kept.any():
                continue
            units = own.units(kept, outcome, place, int(voted.sum()))
            anchors = np.array([placed[name].anchors[model] for name in family.methods])
            if cluster is not None:
                closed = unit_std_error(units, strengths, anchors, l2=settings.l2)
                for name, error in zip(family.methods, closed, strict=True):
                    errors[name][1][model] = error
            key = (*settings.stream, battles.models[model], family.methods[0])
            resampled = resampled_std_errors(units, strengths, anchors, settings, key)
            for name, error in zip(family.methods, resampled, strict=True):
                errors[name][0][model] = error
    return errors


def resampled_std_errors(
    units: ResamplingUnits,
    strengths: Floats,
    anchors: Floats,
    settings: RatingSettings,
    key: tuple[str, ...],
) -> Floats:
    """Return the bootstrap standard errors of one model by K methods that resample together.

    Parameters
    ----------
    units : ResamplingUnits
        What is drawn of the model's battles.
    strengths, anchors : ndarray, shapes (K,) and (K, A)
        Where each method placed the model, and its anchors, in logits.
    settings : RatingSettings
        Penalty, resamples and seed.
    key : tuple of str
        Names the random stream.

    Returns
    -------
    ndarray, shape (K,)
        In logits; NaN for a single battle, or without resamples.
    """
    if units.copies.sum() < 2 or not settings.n_resamples:
        return np.full(strengths.size, np.nan)
    rng = keyed_rng(settings.seed, *key)
    refits = bootstrap_strengths(
        units, strengths, anchors, l2=settings.l2, n_resamples=settings.n_resamples, rng=rng
    )
    return np.array([column.std(ddof=1) for column in refits.T])


def require_clusters(cluster: ArrayLike | None, n_battles: int) -> None:
    """Raise ValueError unless there is a cluster for every battle, or none at all."""
    if cluster is not None and np.shape(cluster) != (n_battles,):
        raise ValueError(f"cluster has shape {np.shape(cluster)}; expected ({n_battles},)")
    labels = np.asarray([] if cluster is None else cluster, dtype=object).tolist()
    for row, label in enumerate(labels):
        if label is None or label != label:  # NaN alone differs from itself
            raise ValueError(f"cluster is missing in row {row}; give every battle one, or its id")
