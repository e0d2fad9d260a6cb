"""Simulations of new models that are unlike the rest, where one threshold for all fails.

Each draws calibrating models and a new one, and tries a method beside plain conformal intervals.
"""

import math
from typing import NamedTuple

import numpy as np
from jackknife import jackknife_plus
from numpy.typing import NDArray

from judgeline.intervals import conformal_quantile

MISCOVERAGE = 0.1


class Trials(NamedTuple):
    """Intervals of new models in repeated draws, by a method and by one threshold for all.

    `held` and `plain_held` say which intervals held the truth, `width` and `plain_width` how wide
    they are, in the unit of the residuals: (n_trials,), or (n_trials, 2) of two bands.
    """

    held: NDArray[np.bool_]
    width: NDArray[np.float64]
    plain_held: NDArray[np.bool_]
    plain_width: NDArray[np.float64]


def try_jackknife_plus(n_models: int, *, n_trials: int, rng: np.random.Generator) -> Trials:
    """Return trials of a regression with as many weights as models, whose fits are unstable.

    Plain intervals have one threshold of left-out residuals around the fit of all models (the
    jackknife). Source: R. F. Barber et al. (2021), "Predictive inference with the jackknife+",
    Annals of Statistics 49(1), section 7.
    """
    n, rows = n_models, []
    for _ in range(n_trials):
        x, weight = rng.normal(size=(n + 1, n)), rng.normal(size=n)
        y = x @ weight + math.sqrt(n) * rng.normal(size=n + 1)
        fits = [np.linalg.pinv(np.delete(x[:n], i, 0)) @ np.delete(y[:n], i) for i in range(n)]
        residual = y[:n] - np.einsum("ij,ij->i", x[:n], fits)
        lower, upper = jackknife_plus(x[n] @ np.transpose(fits), residual, miscoverage=MISCOVERAGE)
        reach = conformal_quantile(np.abs(residual), miscoverage=MISCOVERAGE)
        off = abs(y[n] - x[n] @ np.linalg.pinv(x[:n]) @ y[:n])
        rows.append((lower <= y[n] <= upper, upper - lower, off <= reach, 2 * reach))
    held, width, plain_held, plain_width = np.transpose(rows)
    return Trials(held == 1, width, plain_held == 1, plain_width)


def try_bands(n_models: int, *, n_trials: int, rng: np.random.Generator) -> Trials:
    """Return trials of two bands of models; residuals of the second are three times as large."""
    wild, spread = np.repeat([False, True], n_models), np.array([1.0, 3.0])
    draws = np.abs(rng.normal(size=(n_trials, 2 * n_models)) * np.repeat(spread, n_models))
    fresh = np.abs(rng.normal(size=(n_trials, 2)) * spread)
    reach = np.array(
        [
            [conformal_quantile(row, miscoverage=MISCOVERAGE, weight=own) for own in (~wild, wild)]
            for row in draws
        ]
    )
    plain = [[conformal_quantile(row, miscoverage=MISCOVERAGE)] * 2 for row in draws]
    return _trials(fresh, reach, np.array(plain))


def try_weights(n_models: int, *, n_trials: int, rng: np.random.Generator) -> Trials:
    """Return trials of residuals that grow with x, whose density at new models is shifted.

    It is uniform on [0, 1] among calibrating models and 2 x among new ones; the weight is the
    ratio of the two.
    """
    x, new = rng.random((n_trials, n_models)), np.sqrt(rng.random(n_trials))
    draws = np.abs(rng.normal(size=(n_trials, n_models))) * x
    fresh = np.abs(rng.normal(size=n_trials)) * new
    reach = [
        conformal_quantile(row, miscoverage=MISCOVERAGE, weight=at / own)
        for row, at, own in zip(draws, x, new, strict=True)
    ]
    plain = [conformal_quantile(row, miscoverage=MISCOVERAGE) for row in draws]
    return _trials(fresh, np.array(reach), np.array(plain))


def _trials(
    fresh: NDArray[np.float64], reach: NDArray[np.float64], plain: NDArray[np.float64]
) -> Trials:
    return Trials(fresh <= reach, 2 * reach, fresh <= plain, 2 * plain)
