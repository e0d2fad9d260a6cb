"""Standard errors of placements, by closed form and by resampling a model's own battles."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.elo.battles import CodedBattles
from judgeline.elo.bootstrap import ResamplingUnits, bootstrap_strengths, unit_std_error
from judgeline.elo.own_battles import OwnBattles
from judgeline.elo.settings import RatingSettings
from judgeline.elo.streams import keyed_rng
from judgeline.elo.targets import Placed, other_anchors

Floats = NDArray[np.float64]
StdErrors = dict[str, tuple[Floats, Floats]]
"""By method: bootstrap and closed-form standard errors in logits, each (M,)."""

OwnShares = Callable[[int, OwnBattles], Floats]
"""Gives model number m's share of the win in each of its n own battles, (n,); NaN where a battle
does not count."""


def std_errors(
    battles: CodedBattles,
    voted: NDArray[np.bool_],
    placed: Mapping[str, Placed],
    shares: Mapping[str, OwnShares],
    settings: RatingSettings,
    cluster: ArrayLike | None,
    models: NDArray[np.bool_],
) -> StdErrors:
    """Return both standard errors of every placed model by every method.

    Parameters
    ----------
    battles : CodedBattles
        The judged battles, n of them over M models.
    voted : ndarray of bool, shape (M,)
        Which models are anchors.
    placed, shares : mapping
        By method. Smoothed outcomes are functions of hard ones and resample with them.
    settings : RatingSettings
        Penalty, resamples, seed and stream.
    cluster : array_like, shape (n,), optional
        What is drawn together; battles by default.
    models : ndarray of bool, shape (M,)
        Which models to resample.
    """
    missing = np.full(len(battles.models), np.nan)
    errors = {name: (missing.copy(), fit.std_error.copy()) for name, fit in placed.items()}
    if not settings.n_resamples and cluster is None:
        return errors
    families = _families(placed)
    every = zip(OwnBattles.of_all(battles, voted, cluster), other_anchors(voted), strict=True)
    for model, (own, others) in enumerate(every):
        if not models[model]:
            continue
        place = np.full(voted.size, -1)
        place[np.flatnonzero(voted)[others]] = np.arange(int(others.sum()))
        for stream, names in families.items():
            strengths = np.array([placed[name].strength[model] for name in names])
            outcome = np.column_stack([shares[name](model, own) for name in names])
            kept = np.isfinite(outcome[:, 0])
            if not np.isfinite(strengths).all() or not kept.any():
                continue
            units = own.units(kept, outcome, place, int(others.sum()))
            anchors = np.array([placed[name].anchors[model][others] for name in names])
            closed = unit_std_error(units, strengths, anchors, l2=settings.l2)
            key = (*settings.stream, battles.models[model], stream)
            resampled = resampled_std_errors(units, strengths, anchors, settings, key)
            for name, *pair in zip(names, resampled, closed, strict=True):
                errors[name][0][model] = pair[0]
                if cluster is not None:
                    errors[name][1][model] = pair[1]
    return errors


def _families(methods: Iterable[str]) -> dict[str, list[str]]:
    """Return methods by the one that names their random stream: hard for smoothed outcomes."""
    families: dict[str, list[str]] = {}
    for name in methods:
        families.setdefault("hard" if name.startswith("smoothed-") else name, []).append(name)
    return families


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
