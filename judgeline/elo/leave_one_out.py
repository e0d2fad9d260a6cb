"""Anchor strengths of every leave-one-model-out fold, all folds in one iteration.

Every fold is close to the fit on all battles, whose inverse curvature preconditions all folds at
once: with a model's parameter profiled out, it is the same matrix without its row and column.
A few matrix products correct for the information that came from the model left out.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.arrays import Floats
from judgeline.elo.strengths import curvature, fit_strengths, solver

_MAX_SWEEPS = 40
_LINEAR_SWEEPS = 30
_INNER = 1e-5  # relative accuracy of a step: what third order leaves over is of that size
_FAR = 3.0  # logits; beyond, a second-order model of the likelihood says nothing
_FOLD_BLOCK = 8  # folds evaluated at a time
_TILE = 72  # anchors by anchors of one tile: 8 folds of it are 320 KiB
_ERROR = 1e-11  # logits; a fold is finished when its estimated remaining error is below
_STALL = 0.5  # a fold whose step keeps more than this share of its length goes to Newton
_GRID = 2.0**-10  # logits; the last steps of a fold start here, whatever way led to it
_CHORDS = 12


def fit_leave_one_out(
    n_battles: Floats, fold_wins: Floats, wins: Floats, *, l2: float, names: NDArray[np.str_]
) -> Floats:
    """Return the strengths of `fit_strengths` without model m, against its targets, in row m."""
    size = wins.size
    others = ~np.eye(size, dtype=bool)
    targets = np.where(np.eye(size, dtype=bool), 0.0, fold_wins)
    active = ~np.isnan(targets).any(axis=1)
    strengths = np.full((size, size), np.nan)
    if size == 2:
        strengths[active] = 0.0
        return strengths
    pending = np.flatnonzero(active)
    if size > 8 and pending.size and l2 > 0:  # unpenalised fits need their existence checked
        start = fit_strengths(n_battles, wins, l2=l2)
        shared, pending = _SharedInverse(n_battles, start, l2).iterate(targets, pending)
        strengths[active] = shared[active]
    for fold in np.flatnonzero(active):
        kept = others[fold]
        counts, won = n_battles[np.ix_(kept, kept)], targets[fold, kept]
        near = strengths[fold, kept]
        if fold in pending:
            known = near if np.isfinite(near).all() else None
            try:
                near = fit_strengths(counts, won, l2=l2, start=known)
            except RuntimeError as error:
                raise RuntimeError(f"with {names[fold]} held out: {error}") from error
        strengths[fold, fold], strengths[fold, kept] = 0.0, _settled(counts, won, near, l2)
    return strengths


def fit_anchors(n_battles: Floats, wins: Floats, *, l2: float) -> Floats:
    """Return strengths (A,) with no model held out, to the bit those of a fold of equal battles."""
    if wins.size == 1:
        return np.zeros(1)
    return _settled(n_battles, wins, fit_strengths(n_battles, wins, l2=l2), l2)


def _settled(counts: Floats, wins: Floats, near: Floats, l2: float) -> Floats:
    """Return the strengths that these battles alone determine, to the last bit.

    Where a fit comes to rest depends in its last bits on where it began, and `near` began with
    the battles of the model left out. So it is rounded to a grid first; one factor of the
    curvature there then leads to the maximum.
    """
    strengths: Floats = np.round(near / _GRID) * _GRID
    odds = np.exp(strengths)
    both = odds[:, None] + odds
    information = counts / both * odds[:, None] * odds / both
    solve = solver(curvature(information, l2))
    strengths = strengths - strengths.mean()
    last = np.inf
    for _ in range(_CHORDS):
        odds = np.exp(strengths)
        share = np.divide(counts, np.add(odds[:, None], odds, out=both), out=both)
        expected = odds * share.sum(axis=1)
        gradient = wins - expected - 2 * l2 * strengths
        step = solve(gradient - gradient.mean())
        strengths = strengths + step - step.mean()
        size = float(np.abs(step).max())
        if size <= _ERROR / 100 or size >= last:
            break
        last = size
    if size > _ERROR:  # next to no curvature: damped Newton steps, from a start that is no guess
        return fit_strengths(counts, wins, l2=l2)
    return strengths


class _SharedInverse:
    """Simultaneous Newton on all folds, around the full fit, with its inverse curvature.

    Fold curvatures differ from the full one in two ways: the battles with the model left out
    are missing (subtracted exactly), and the fold sits a small offset away from the full fit
    (the curvature's own slope, the third derivative, times that offset). With both in, what
    a step leaves over is of third order in the offset, so one or two gradients suffice.
    """

    def __init__(self, n_battles: Floats, start: Floats, l2: float) -> None:
        chance = expit(start[:, None] - start)
        self.counts, self.start, self.l2 = n_battles, start, l2
        self.expected = n_battles * chance
        self.information = self.expected * (1 - chance)
        self.third = self.information * (1 - 2 * chance)  # antisymmetric
        self.third_sum = self.third.sum(axis=1)
        self.hessian = curvature(self.information, l2)
        self.inverse = solver(self.hessian)(np.eye(start.size))
        self.off_fold = 1 - np.eye(start.size)

    def iterate(self, targets: Floats, folds: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
        """Return strengths (M, M) and the folds that stalled and need a Newton of their own."""
        strengths = centred(np.tile(self.start, (self.start.size, 1)), self.off_fold)
        origin = strengths.copy()
        stalled: list[NDArray[np.intp]] = []
        last = np.full(self.start.size, np.nan)
        # one table serves the gradients of all folds at the full fit
        gradient = targets - self.expected.sum(axis=1) + self.expected.T - 2 * self.l2 * strengths
        gradient = centred(gradient[folds], self.off_fold[folds])
        for _ in range(_MAX_SWEEPS):
            step, solved = self._solve(gradient, strengths[folds] - origin[folds], folds)
            strengths[folds] += step
            size = np.abs(step).max(axis=1)
            ratio = size / last[folds]
            stuck = ~solved | (ratio > _STALL) | ~np.isfinite(size)
            done = ~stuck & ((size <= _ERROR) | (ratio / (1 - ratio) * size <= _ERROR))
            stalled.append(folds[stuck])
            last[folds] = size
            folds = folds[~done & ~stuck]
            if not folds.size:
                break
            expected = expected_wins(self.counts, np.exp(strengths[folds]), self.counts[folds])
            gradient = targets[folds] - expected - 2 * self.l2 * strengths[folds]
            gradient = centred(gradient, self.off_fold[folds])
        return strengths, np.concatenate([*stalled, folds])

    def _solve(
        self, gradient: Floats, offset: Floats, folds: NDArray[np.intp]
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return each fold's step by its second-order model, and whether corrections died out."""
        removed, lost_third = self.information[folds], self.third.T[folds]
        left = self.off_fold[folds]
        bent_offset = offset @ self.third.T
        step = np.zeros_like(gradient)
        converging = np.ones(folds.size, dtype=bool)
        last = np.full(folds.size, _FAR)
        for _ in range(_LINEAR_SWEEPS):
            middle = offset + step / 2
            bent_step = step @ self.third.T
            slope_of_curvature = (
                step * middle * (self.third_sum - lost_third)
                - step * (bent_offset + bent_step / 2)
                - middle * bent_step
                + (middle * step) @ self.third.T
            )
            remainder = gradient - step @ self.hessian + removed * step - slope_of_curvature
            correction = centred(centred(remainder, left) @ self.inverse, left)
            size = np.abs(correction).max(axis=1)
            converging &= size < last
            step = np.where(converging[:, None], step + correction, 0.0)
            settled = size <= np.maximum(_ERROR / 10, _INNER * np.abs(step).max(axis=1))
            if (settled | ~converging).all():
                break
            last = size
        return step, converging & settled


def centred(rows: Floats, left: Floats) -> Floats:
    """Return rows without the mean of the models that are left, and zero at the others."""
    mean = (rows * left).sum(axis=1, keepdims=True) / np.maximum(left.sum(axis=1, keepdims=True), 1)
    return np.asarray((rows - mean) * left)


def expected_wins(counts: Floats, odds: Floats, lost: Floats) -> Floats:
    """Return ``odds_i * sum_j n_ij / (odds_i + odds_j)`` for rows of odds, shape (F, M).

    `lost` (F, M) are battles with models left out, which sit at strength 0, odds 1: they do not
    count. Shares are symmetric: tiles above the diagonal serve both sides, and stay in the cache.
    """
    sums, size = np.zeros_like(odds), odds.shape[1]
    for fold, top in product(range(0, len(odds), _FOLD_BLOCK), range(0, size, _TILE)):
        block, rows = slice(fold, fold + _FOLD_BLOCK), slice(top, min(top + _TILE, size))
        for left in range(top, size, _TILE):
            columns = slice(left, min(left + _TILE, size))
            share = odds[block, rows, None] + odds[block, None, columns]
            np.divide(counts[rows, columns], share, out=share)
            sums[block, rows] += share @ np.ones(share.shape[2])
            if left > top:
                sums[block, columns] += np.ones(share.shape[1]) @ share
    return odds * sums - lost * odds / (odds + 1)
