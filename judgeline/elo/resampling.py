"""Standard errors of placements: closed forms, and resamples of a model's own battles."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from judgeline.elo.anchors import other_anchors
from judgeline.elo.battles import CodedBattles, OwnBattles
from judgeline.elo.strengths import analytic_std_error, place_models
from judgeline.elo.targets import Placed
from judgeline.verdict.outcomes import smooth_outcome

SMOOTHING_LEVELS: tuple[float, ...] = (0.55, 0.65, 0.75, 0.85, 0.95)
"""Label-smoothing baselines of the paper: what a decisive judge outcome counts as."""

Floats = NDArray[np.float64]

_DRAWS_PER_CELL = 16  # one binomial draw costs about as much as this many battles drawn

_BLOCK_CELLS = 1 << 22  # resamples times units drawn at a time: 32 MiB

StdErrors = dict[str, tuple[Floats, Floats]]
"""By method: bootstrap and closed-form standard errors in logits, each (M,)."""

OwnShares = Callable[[int, OwnBattles], Floats]
"""Gives model number m's share of the win in each of its n own battles, (n,); NaN where a battle
does not count."""


def keyed_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the random generator of a seed and a chain of names, such as corpus, model, method.

    Equal keys give the same stream, different keys independent ones; ValueError for a negative
    seed.
    """
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    words = [
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        for name in names
    ]
    return np.random.default_rng([seed, len(words), *words])


@dataclass(frozen=True)
class RatingSettings:
    """Settings of leave-one-out ratings.

    Attributes
    ----------
    l2 : float
        Penalty on squared strengths, per squared logit.
    n_resamples : int
        Bootstrap resamples per model and method; 0 for the closed form alone.
    seed : int
        Seed of every random stream.
    stream : tuple of str
        What the battles are of, such as the corpus; keys the random streams with model and method.
        Judges share it, so that equal outcomes have equal errors.
    smoothing_levels : tuple of float
        Levels of the label-smoothing baselines.
    """

    l2: float = 0.01
    n_resamples: int = 200
    seed: int = 0
    stream: tuple[str, ...] = ()
    smoothing_levels: tuple[float, ...] = SMOOTHING_LEVELS

    def __post_init__(self) -> None:
        """Refuse settings that no fit can follow."""
        if not 0 <= self.l2 < np.inf:
            raise ValueError(f"l2 must be finite and not negative, got {self.l2}")
        if self.n_resamples < 0 or self.n_resamples == 1:
            raise ValueError(f"n_resamples must be 0 or at least 2, got {self.n_resamples}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")
        for level in self.smoothing_levels:
            smooth_outcome(0.5, level)


class ResamplingUnits(NamedTuple):
    """What is drawn with replacement: battles, or questions with all their battles.

    `battles` (U, M): how many battles one unit holds against each anchor; `wins` (U, K): the
    model's share of wins in one unit, under each of K kinds of target that are drawn
    together; `copies` (U,): how many identical units there are.
    """

    battles: csr_array
    wins: Floats
    copies: NDArray[np.int64]

    def met(self, counts: Floats) -> Floats:
        """Return battles against each anchor in resamples that hold units so often."""
        opponent = self.battles.indices
        if self.battles.nnz != len(self.copies) or (np.diff(opponent) < 0).any():
            return np.asarray((self.battles.T @ counts.T).T)
        starts = np.flatnonzero(np.r_[True, np.diff(opponent) != 0])  # single battles, sorted
        met = np.zeros((counts.shape[0], self.battles.shape[1]))
        met[:, opponent[starts]] = np.add.reduceat(counts, starts, axis=1)
        return met


def own_units(
    own: OwnBattles,
    kept: NDArray[np.bool_],
    outcome: Floats,
    place: NDArray[np.intp],
    n_anchors: int,
) -> ResamplingUnits:
    """Return a model's kept battles as units whose order does not depend on the battles' order.

    `outcome` (n, K) holds its share of each win by method, `place` (M,) each opponent's column.
    """
    opponent, share = place[own.opponent[kept]], outcome[kept]
    if own.cluster is not None:
        return _units_of_clusters(opponent, share, own.cluster[kept], n_anchors)
    order = np.lexsort((share[:, 0], opponent))  # the first kind determines the others
    opponent, share = opponent[order], share[order]
    fresh = np.r_[True, (np.diff(opponent) != 0) | (np.diff(share[:, 0]) != 0)]
    copies = np.diff(np.r_[np.flatnonzero(fresh), opponent.size])
    opponent, share = opponent[fresh], share[fresh]
    indptr = np.arange(opponent.size + 1)
    matrix = csr_array((np.ones(opponent.size), opponent, indptr), shape=(opponent.size, n_anchors))
    return ResamplingUnits(matrix, share, copies)


def _units_of_clusters(
    opponent: NDArray[np.intp], outcome: Floats, cluster: NDArray[np.intp], n_anchors: int
) -> ResamplingUnits:
    """Return units that are clusters of dependent battles, such as all on one question."""
    _, place = np.unique(cluster, return_inverse=True)
    count = int(place.max()) + 1
    membership = csr_array((np.ones(place.size), (place, np.arange(place.size))))
    matrix = csr_array((np.ones(opponent.size), (place, opponent)), shape=(count, n_anchors))
    return ResamplingUnits(matrix, np.asarray(membership @ outcome), np.ones(count, dtype=np.int64))


def resample_counts(
    copies: NDArray[np.int64], n_resamples: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return how often each unit is drawn in resamples as large as the sample."""
    total = int(copies.sum())
    if copies.size < total / _DRAWS_PER_CELL:
        drawn: NDArray[np.int64] = rng.multinomial(total, copies / total, size=n_resamples)
        return drawn
    kind = np.repeat(np.arange(copies.size), copies)
    draw = kind[rng.integers(0, total, size=(n_resamples, total), dtype=np.int32)]
    draw += copies.size * np.arange(n_resamples)[:, None]
    counts = np.bincount(draw.ravel(), minlength=n_resamples * copies.size)
    return counts.reshape(n_resamples, copies.size).astype(np.int64, copy=False)


def bootstrap_strengths(
    units: ResamplingUnits,
    strengths: Floats,
    anchors: Floats,
    *,
    l2: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the strengths of a model refitted on resamples of its own battles.

    All K kinds of target see the same resamples.
    """
    block = max(1, _BLOCK_CELLS // max(int(units.copies.sum()), 1))
    refits = []
    for first in range(0, n_resamples, block):
        counts = resample_counts(units.copies, min(block, n_resamples - first), rng).astype(float)
        met, wins = units.met(counts), counts @ units.wins
        kinds = [
            place_models(wins[:, kind], met, fixed, l2=l2, start=float(strengths[kind]))
            for kind, fixed in enumerate(anchors)
        ]
        refits.append(np.column_stack(kinds))
    return np.concatenate(refits)


def unit_std_error(
    units: ResamplingUnits, strengths: Floats, anchors: Floats, *, l2: float
) -> Floats:
    """Return the closed form of the bootstrap standard error over the given units."""
    chance = expit(strengths[:, None] - anchors)
    residual = units.wins - units.battles @ chance.T
    information = (chance * (1 - chance)) @ (units.battles.T @ units.copies) + 2 * l2
    return analytic_std_error(
        units.copies @ residual, units.copies @ residual**2, information, units.copies.sum()
    )


def std_errors(
    battles: CodedBattles,
    voted: NDArray[np.bool_],
    placed: Mapping[str, Placed],
    shares: Mapping[str, OwnShares],
    settings: RatingSettings,
    cluster: ArrayLike | None,
    models: NDArray[np.bool_],
) -> StdErrors:
    """Return both standard errors of every placed model by every method."""
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
            units = own_units(own, kept, outcome, place, int(others.sum()))
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
    """Return the bootstrap standard errors of one model by K methods that resample together."""
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
