"""Standard errors of placements: closed forms, and resamples of a model's own battles."""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.arrays import Bools, Floats, Ints, require
from judgeline.elo.approximation import chebyshev_nodes, interpolation
from judgeline.elo.battles import CodedBattles, OwnBattles
from judgeline.elo.placements import Placements
from judgeline.elo.strengths import analytic_std_error, place_models
from judgeline.elo.targets import SMOOTHING_LEVELS, OwnShares, Placed, is_baseline
from judgeline.rating_options import N_RESAMPLES, FitOptions, bounded
from judgeline.verdict.outcomes import smooth_outcome

_DRAWS_PER_CELL = 16  # one binomial draw costs about as much as this many battles drawn
_TOLERANCE = 1e-12  # logits
_MOST_STEPS = 6  # towards a resample's placement
_FAR = 3.0  # logits from the sample's placement; a resample farther away is placed by itself
_DRAWN_AT_ONCE = 1 << 15  # battles of resamples: 256 KiB stay in the cache
_BLOCK_CELLS = 1 << 22  # resamples times units drawn at a time: 32 MiB


def keyed_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the random generator of a seed and a chain of names, such as corpus, model, method.

    Equal keys give the same stream, different keys independent ones; ValueError for a negative
    seed.
    """
    require(seed >= 0, "seed", seed, "0 or more")
    words = -(-max(seed, 1).bit_length() // 32)
    key = seed.to_bytes(4 * words, "little") + len(names).to_bytes(4, "little")
    for name in names:
        key += hashlib.blake2b(name.encode(), digest_size=8).digest()
    return np.random.default_rng(np.frombuffer(key, "<u4"))  # a list of numbers takes twice as long


@dataclass(frozen=True)
class RatingSettings(FitOptions):
    """Settings of leave-one-out ratings, beside the `l2` and the resamples of a fit.

    `seed` and `stream`, such as the corpus, key the random streams with model and method; judges
    share them, so that equal outcomes have equal errors. `smoothing_levels` are of the baselines.
    """

    n_resamples: int = bounded(N_RESAMPLES, ge=0)
    stream: tuple[str, ...] = ()
    smoothing_levels: tuple[float, ...] = SMOOTHING_LEVELS

    def __post_init__(self) -> None:
        """Refuse settings that no fit can follow."""
        super().__post_init__()
        for level in self.smoothing_levels:
            smooth_outcome(0.5, level)


class _OwnFit(NamedTuple):
    """One model's placements by K methods that resample together, and U units to draw.

    A unit is a battle, or a question with all its battles.
    """

    strengths: Floats  # (K,)
    anchors: Floats  # (K, A)
    opponent: NDArray[np.intp]  # (B,), the anchor of each kind of battle, rising
    unit: NDArray[np.intp] | None  # (B,), the unit of each kind of battle; None where it is one
    wins: Floats  # (U, K), the model's share of wins in one unit
    copies: Ints  # (U,), how many identical units there are

    @classmethod
    def of(
        cls,
        strengths: Floats,
        anchors: Floats,
        opponent: NDArray[np.intp],
        share: Floats,
        question: Ints | None,
    ) -> "_OwnFit":
        """Return battles as units, by opponents' columns (n,) and shares of the win (n, K)."""
        order = np.argsort(share[:, 0])  # the first kind determines the others
        narrow = opponent[order].astype(np.min_scalar_type(anchors.shape[1]))  # few bits to sort
        order = order[np.argsort(narrow, kind="stable")]
        opponent, share = opponent[order], share[order]
        if question is not None:
            _, unit = np.unique(question[order], return_inverse=True)
            wins: Floats = np.column_stack([np.bincount(unit, kind) for kind in share.T])
            return cls(strengths, anchors, opponent, unit, wins, np.ones(len(wins), np.int64))
        fresh = np.r_[True, (np.diff(opponent) != 0) | (np.diff(share[:, 0]) != 0)]
        copies = np.diff(np.r_[np.flatnonzero(fresh), opponent.size])
        return cls(strengths, anchors, opponent[fresh], None, share[fresh], copies)

    def met(self, counts: Floats) -> Floats:
        """Return battles against each anchor in resamples that hold units so often."""
        each = counts if self.unit is None else counts[:, self.unit]
        starts = np.flatnonzero(np.diff(self.opponent, prepend=-1))
        met = np.zeros((len(counts), self.anchors.shape[1]))
        met[:, self.opponent[starts]] = np.add.reduceat(each, starts, axis=1)
        return met

    def drawn(self, n_resamples: int, rng: np.random.Generator) -> Floats:
        """Return how often each unit is drawn in resamples as large as the sample."""
        copies, total = self.copies, int(self.copies.sum())
        if copies.size < total / _DRAWS_PER_CELL:
            return rng.multinomial(total, copies / total, size=n_resamples).astype(float)
        kind = np.repeat(np.arange(copies.size), copies)
        counts = np.empty((n_resamples, copies.size))
        step = max(1, _DRAWN_AT_ONCE // total)
        for first in range(0, n_resamples, step):
            rows = counts[first : first + step]
            cell = kind.take(rng.integers(0, total, size=(len(rows), total)))
            cell += np.arange(0, rows.size, copies.size)[:, None]
            rows[:] = np.bincount(cell.ravel(), minlength=rows.size).reshape(rows.shape)
        return counts

    def closed_errors(self, l2: float) -> Floats:
        """Return the closed form of the bootstrap standard errors over the units, (K,)."""
        copies = self.copies.astype(float)
        chance = expit(self.strengths[:, None] - self.anchors)
        each = chance[:, self.opponent]
        if self.unit is not None:
            each = np.array([np.bincount(self.unit, kind) for kind in each])
        residual = self.wins - each.T
        information = (chance * (1 - chance)) @ self.met(copies[None])[0] + 2 * l2
        sums = copies @ residual, copies @ residual**2
        return analytic_std_error(*sums, information, copies.sum())

    def bootstrap_errors(self, settings: RatingSettings, rng: np.random.Generator) -> Floats:
        """Return the standard deviations of refits on resamples, which all methods share, (K,)."""
        total, n_resamples = int(self.copies.sum()), settings.n_resamples
        if total < 2 or not n_resamples:
            return np.full(self.strengths.size, np.nan)
        block = max(1, _BLOCK_CELLS // max(total, self.opponent.size))
        refits = []
        for first in range(0, n_resamples, block):
            counts = self.drawn(min(block, n_resamples - first), rng)
            refits.append(self._placed((counts @ self.wins).T, self.met(counts), settings.l2))
        return np.array([row.std(ddof=1) for row in np.concatenate(refits, axis=1)])

    def _placed(self, wins: Floats, met: Floats, l2: float) -> Floats:
        """Return placements (K, R) by wins (K, R) over battles (R, A), near those of the sample."""
        gap, origin = (self.strengths[:, None] - self.anchors)[..., None], 2 * l2 * self.strengths

        def derivatives(offset: Floats) -> tuple[Floats, Floats]:
            """Return slope and information of the likelihoods at P offsets, (K, R, P) each."""
            chance = expit(gap + offset)
            slope = (wins - origin[:, None])[..., None] - met @ chance - 2 * l2 * offset
            return slope, met @ (chance * (1 - chance)) + 2 * l2

        slope, information = derivatives(np.zeros(1))
        first = (slope / information)[..., 0]
        reach = min(1.5 * float(np.abs(first).max()) + _TOLERANCE, _FAR)
        nodes, offset = chebyshev_nodes(-reach, reach, reach=1.0), np.clip(first, -reach, reach)
        slope, information = derivatives(nodes)
        for _ in range(_MOST_STEPS):
            weights = interpolation(nodes, offset.ravel()).reshape(slope.shape)
            step = (weights * slope).sum(axis=2) / (weights * information).sum(axis=2)
            offset = np.clip(offset + step, -reach, reach)
            beyond = ~(np.abs(step) <= _TOLERANCE)
            if not beyond.any():
                break
        strengths = self.strengths[:, None] + offset
        for kind, rows in enumerate(beyond):
            left = wins[kind, rows], met[rows], self.anchors[kind]
            strengths[kind, rows] = place_models(*left, l2=l2)
        return strengths


def std_errors(
    battles: CodedBattles,
    found: Placements,
    settings: RatingSettings,
    question: Ints | None,
    models: Bools,
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return bootstrap and closed-form standard errors by base method, each (M,) logits.

    With questions both are of drawing them, but for the closed form of people's votes, which takes
    them as independent: `judgeline.elo.questions.design_effects` says how far they are not.
    """
    placed, voted = found.placed, found.sums.voted
    closed = np.array([fit.std_error for fit in placed.values()])
    bootstrap = np.full(closed.shape, np.nan)
    families: dict[str, list[int]] = {}  # rows by the method that names the random stream
    for row, name in enumerate(placed):
        if settings.n_resamples:
            families.setdefault("hard" if is_baseline(name) else name, []).append(row)
        elif name != "human":  # without draws there is one stream, of closed forms
            families.setdefault("", []).append(row)
    kinds = [(fit, found.bases[name].shares) for name, fit in placed.items()]
    resampled = settings.n_resamples > 0 or question is not None
    for model, own in enumerate(OwnBattles.of_all(battles, voted, question)) if resampled else ():
        for stream, rows in families.items() if models[model] else ():
            fit = _own_fit(model, own, voted, [kinds[row] for row in rows])
            if fit is None:
                continue
            rng = keyed_rng(settings.seed, *settings.stream, battles.models[model], stream)
            bootstrap[rows, model] = fit.bootstrap_errors(settings, rng)
            if question is not None and stream != "human":
                closed[rows, model] = fit.closed_errors(settings.l2)
    return dict(zip(placed, bootstrap, strict=True)), dict(zip(placed, closed, strict=True))


def _own_fit(
    model: int, own: OwnBattles, voted: Bools, kinds: list[tuple[Placed, OwnShares]]
) -> _OwnFit | None:
    """Return a model's resampling units and strengths; None where a method does not place it."""
    strengths = np.array([fit.strength[model] for fit, _ in kinds])
    share = np.column_stack([shares(model, own) for _, shares in kinds])
    kept = np.isfinite(share[:, 0])
    if not np.isfinite(strengths).all() or not kept.any():
        return None
    anchors = np.flatnonzero(voted)
    others = anchors[anchors != model]
    column = np.searchsorted(others, own.opponent[kept])
    questions = None if own.question is None else own.question[kept]
    placed = np.array([fit.anchors[model][anchors != model] for fit, _ in kinds])
    return _OwnFit.of(strengths, placed, column, share[kept], questions)
