"""Plain ratings of outcomes, by people or by a judge, as other leaderboards make them.

Bradley-Terry over all models at once, with covariates of a battle beside the two models, such as a
difference in length, and ties as half a win or with a parameter of their own. Nothing is
calibrated: these stand beside the ratings on the human scale, never in their place.
"""

from collections.abc import Callable, Mapping
from functools import partial
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy  # whose part for sparse matrices is imported when it is first used
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Floats, Ints, alike, model_pairs, require
from judgeline.elo.anchors import connected_components
from judgeline.elo.questions import question_codes
from judgeline.elo.ratings import FEW_BATTLES
from judgeline.elo.strengths import ELO_ORIGIN, ELO_PER_LOGIT

LEAST_BATTLES = 100
"""Battles with an outcome below which a group, such as a language, has no ratings of its own."""

Ties = Literal["half", "davidson"]
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-10  # logits
_LONGEST_STEP = 2.0  # logits, of a Newton step
_ROUNDING = 1e-9  # of a covariate's largest value: a spread that its digits alone leave
_RIDGE = 1e-3  # of weights and of the ties' parameter, per squared logit: none is without end
_LEAST_CLUSTERS = 10  # for an error by clusters


class PlainRatings(NamedTuple):
    """One row per model and group of battles.

    `rating`, `std_error`, `lower` and `upper` are in Elo points, 1500 being the mean of the models
    of a `component`: models that chains of battles connect, numbered from 0, the largest. Ratings
    of two components do not compare. `n_battles` counts battles with an outcome. A model of fewer
    than 20, or that won or lost all of its own, has no error: what battles would add is unknown.
    """

    group: NDArray[np.str_]
    model: NDArray[np.str_]
    rating: Floats
    std_error: Floats
    lower: Floats
    upper: Floats
    n_battles: Ints
    component: Ints


class Covariates(NamedTuple):
    """One row per covariate and group: its effect on A's chances, beside the models.

    `effect` is in Elo points per standard deviation of the covariate, with its interval, which is
    NaN where fewer than 20 battles have any of it.
    """

    group: NDArray[np.str_]
    covariate: NDArray[np.str_]
    effect: Floats
    std_error: Floats
    lower: Floats
    upper: Floats
    n_battles: Ints


def rate_outcomes(
    model_a: ArrayLike,
    model_b: ArrayLike,
    outcome: ArrayLike,
    *,
    covariates: Mapping[str, ArrayLike] | None = None,
    group: ArrayLike | None = None,
    ties: Ties = "half",
    cluster: ArrayLike | None = None,
    miscoverage: float = 0.1,
    l2: float = 0.01,
) -> tuple[PlainRatings, Covariates]:
    """Return Bradley-Terry ratings of outcomes, and the effects of covariates beside the models.

    Maximises ``sum log P(outcome) - l2 * |strength|^2`` with ``logit = strength_a - strength_b +
    weight . covariate``. Standard errors are of the sandwich form: with many battles, or many
    clusters if these are given, they stay valid if outcomes vary more or less than the model says.

    Parameters
    ----------
    model_a, model_b, outcome : array_like, shape (n,)
        Names of the two models; A's share of the win in [0, 1], NaN for battles to leave out.
    covariates : mapping of str to array_like, shape (n,), optional
        Numbers that favour A where they are large, such as `style_difference` of lengths; battles
        where one is not finite are left out.
    group : array_like of str, shape (n,), optional
        Group of each battle, such as its language; groups below `LEAST_BATTLES` are left out.
    ties : {"half", "davidson"}
        A tie is half a win for both, or an outcome of its own with one more parameter; then
        outcomes are 1, 0.5 or 0.
    cluster : array_like, shape (n,), optional
        Cluster of each battle, such as its question; below 10 of them there are no errors.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).
    l2 : float
        Penalty on squared strengths, per squared logit; weights have one of 0.001.

    Returns
    -------
    PlainRatings, Covariates
        Rows by group, then best model first; none where no battle has an outcome.

    References
    ----------
    R. A. Bradley and M. E. Terry (1952), Biometrika 39; R. R. Davidson (1970), JASA 65(329), on
    ties; H. White (1982), Econometrica 50(1), on the errors; T. Li, A. Angelopoulos and
    W.-L. Chiang (2024), "Does style matter?", on lengths as a covariate.
    """
    first, second = model_pairs(model_a=model_a, model_b=model_b)
    columns = {name: np.asarray(values, float) for name, values in (covariates or {}).items()}
    label = np.full(first.size, "") if group is None else np.asarray(group, dtype=str)
    question = question_codes(cluster, first.size)
    units = np.arange(first.size) if question is None else question
    share = np.asarray(outcome, float)
    named = {f"covariate {name}": values for name, values in columns.items()}
    alike(model_a=first, outcome=share, group=label, **named)
    require(ties in get_args(Ties), "ties", ties, " or ".join(get_args(Ties)))
    possible = (share >= 0) & (share <= 1) if ties == "half" else np.isin(share, (0, 0.5, 1))
    expected = "in [0, 1]" if ties == "half" else "1, 0.5 or 0"
    require(possible | np.isnan(share), "outcome", share, f"A's share, {expected}")
    known = np.isfinite(np.column_stack([share, *columns.values()])).all(axis=1)
    require(0 < miscoverage < 1, "miscoverage", miscoverage, "strictly between 0 and 1")
    reach = NormalDist().inv_cdf(1 - miscoverage / 2)
    tables: list[PlainRatings | Covariates] = []
    for name in np.unique(label[known]).tolist():
        rows = np.flatnonzero(known & (label == name))
        if group is None or rows.size >= LEAST_BATTLES:
            own = {column: values[rows] for column, values in columns.items()}
            fit = partial(_fit, share[rows], units[rows], ties=ties, l2=l2)
            pair = np.concatenate([first[rows], second[rows]])
            tables += _rate_group(name, pair, share[rows], own, fit, reach)
    return _joined(tables[::2], PlainRatings), _joined(tables[1::2], Covariates)


def _rate_group(
    group: str,
    sides: NDArray[np.str_],
    share: Floats,
    columns: Mapping[str, Floats],
    fit: Callable[..., tuple[Floats, Floats]],
    reach: float,
) -> tuple[PlainRatings, Covariates]:
    """Return the tables of one group of battles, from the names of all A, then all B."""
    models, codes = np.unique(sides, return_inverse=True)
    size, n = models.size, share.size
    z = np.array([*columns.values()]).reshape(-1, n)
    spread = np.array([values.std() for values in z])
    varies = spread > _ROUNDING * np.abs(z).max(axis=1)
    z = z[varies].T / spread[varies]
    # a row per battle, (n, M + K): 1 for model A, -1 for model B, then the covariates
    place, signs = (np.tile(np.arange(n), 2), codes), np.repeat([1.0, -1.0], n)
    design = scipy.sparse.hstack([scipy.sparse.coo_array((signs, place), shape=(n, size)), z])
    value, covariance = fit(scipy.sparse.csr_array(design), size)
    kept = size + int(varies.sum())  # without the ties' parameter
    n_battles = np.bincount(codes, minlength=size)
    won = np.bincount(codes, np.concatenate([share, 1 - share]), size)
    known = (n_battles >= FEW_BATTLES) & (won > 0) & (won < n_battles)
    known = np.concatenate([known, (z != 0).sum(axis=0) >= FEW_BATTLES])
    variance = np.where(known, np.diag(covariance)[:kept], np.nan)
    centre, error = ELO_PER_LOGIT * value[:kept], ELO_PER_LOGIT * np.sqrt(variance)
    centre[:size] += ELO_ORIGIN
    intervals = np.array([centre, error, centre - reach * error, centre + reach * error])
    met = np.zeros((size, size), dtype=bool)
    met[codes[:n], codes[n:]] = True
    component = connected_components(met)
    best_first = np.lexsort((-centre[:size], component))
    ratings = np.full(size, group), models, *intervals[:, :size], n_battles, component
    names = np.array([*columns], dtype=str)[varies]
    effects = np.full(names.size, group), names, *intervals[:, size:], np.full(names.size, n)
    return PlainRatings(*(column[best_first] for column in ratings)), Covariates(*effects)


def style_difference(of_a: ArrayLike, of_b: ArrayLike) -> Floats:
    """Return A's surplus of an amount over B's, ``(a - b) / (a + b)``, in [-1, 1].

    Equal amounts, none of either among them, give 0; NaN where one is missing. ValueError for a
    negative amount.
    """
    first, second = np.asarray(of_a, dtype=float), np.asarray(of_b, dtype=float)
    for name, amounts in (("A", first), ("B", second)):
        require(~(amounts < 0), f"the amount of {name}", amounts, "0 or more")
    total = first + second
    return np.asarray((first - second) / np.where(total == 0, 1.0, total))


def _fit(
    share: Floats,
    clusters: NDArray[Any],
    design: "scipy.sparse.csr_array",
    size: int,
    ties: Ties,
    l2: float,
) -> tuple[Floats, Floats]:
    """Return strengths, weights and the ties' parameter, if any, and their covariance by clusters.

    The chances of A, of a tie and of B go as ``exp(d)``, ``exp(d / 2 + tie)`` and 1, whose
    statistics are A's share and whether there was a tie: information is their covariance.
    """
    units = np.unique(clusters, return_inverse=True)[1]
    is_tie = (share == 0.5).astype(float)
    modelled = ties == "davidson" and bool(is_tie.any())
    n_weights = design.shape[1]
    penalty = np.zeros(n_weights + modelled)
    penalty[:size], penalty[size:] = 2 * l2, 2 * _RIDGE
    value = np.zeros_like(penalty)
    for _ in range(_MAX_ITERATIONS):
        ahead = design @ value[:n_weights]
        tie = expit(value[-1] - np.logaddexp(ahead / 2, -ahead / 2)) if modelled else 0.0 * ahead
        expected = (1 - tie) * expit(ahead) + tie / 2
        variance = (1 - tie) * expit(ahead) + tie / 4 - expected**2
        errors = scipy.sparse.hstack(
            [_times(design, share - expected), scipy.sparse.csr_array((is_tie - tie)[:, None])]
        ).tocsr()[:, : value.size]
        information = np.zeros((value.size, value.size))
        information[:n_weights, :n_weights] = (design.T @ _times(design, variance)).toarray()
        if modelled:
            information[-1, :-1] = information[:-1, -1] = design.T @ (tie * (0.5 - expected))
            information[-1, -1] = (tie * (1 - tie)).sum()
        information[np.diag_indices_from(information)] += penalty
        information[:size, :size] += information.trace() / size**2  # scores do not tell the mean
        step = np.linalg.solve(information, errors.sum(axis=0) - penalty * value)
        value = value + step / max(1.0, float(np.abs(step).max()) / _LONGEST_STEP)
        if np.abs(step).max() <= _TOLERANCE:
            bread = np.linalg.inv(information)
            ones = np.ones(units.size)
            summed = scipy.sparse.csr_array((ones, (units, np.arange(units.size)))) @ errors
            n_units = summed.shape[0]
            meat = (summed.T @ summed).toarray() * n_units / max(n_units - 1, 1)
            enough = 1.0 if n_units >= _LEAST_CLUSTERS else np.nan
            return value, enough * (bread @ meat @ bread)
    raise RuntimeError(f"plain ratings did not converge after {_MAX_ITERATIONS} iterations")


def _times(design: "scipy.sparse.csr_array", factor: Floats) -> "scipy.sparse.csr_array":
    """Return the design with every battle's row multiplied by its factor."""
    return scipy.sparse.csr_array(design.multiply(factor[:, None]))


def _joined(tables: list[Any], kind: type[Any]) -> Any:
    """Return tables one below the other; one without rows if there is none."""
    kinds = (str, str, float, float, float, float, int, int)
    nothing = kind(*(np.array([], dtype=dtype) for dtype in kinds[: len(kind._fields)]))
    return kind(*(np.concatenate(columns) for columns in zip(nothing, *tables, strict=True)))
