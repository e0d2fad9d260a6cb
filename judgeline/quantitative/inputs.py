"""What quantitative judges read: a base judge's scores and embeddings of its rationales.

Every value that has no place in a fit - a certainty without a logit, a missing rationale -
is refused here, by row.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logit

Floats = NDArray[np.float64]


class TooLittleToLearnError(ValueError):
    """Votes or ratings that are in order, but too few or too much alike for a fit.

    A caller with many corpora may report it and go on; any other `ValueError` is a wrong input.
    """


def base_logit(probability: ArrayLike) -> Floats:
    """Return log-odds of a base judge's probabilities.

    Parameters
    ----------
    probability : array_like, shape (n,)
        The base judge's probability that the first of two wins, strictly inside (0, 1).

    Returns
    -------
    ndarray, shape (n,)
        Log-odds, in nats.

    Raises
    ------
    ValueError
        If a probability is NaN or outside (0, 1). Certainties have no logit: nothing is
        clipped here. Give `fit_preferences` a score of -1, 0 or 1 for a judge that only says
        who wins; its weight is then fitted.
    """
    values = np.asarray(probability, dtype=float)
    _require(
        (values > 0) & (values < 1),
        values,
        "probability",
        "strictly between 0 and 1; a judge without probabilities can give -1, 0, 1 as its score",
    )
    return np.asarray(logit(values))


def base_logit_of_scores(score_first: ArrayLike, score_second: ArrayLike) -> Floats:
    """Return the logit of ``b1 / (b1 + b2)``, the base of a two-headed judge (BTL2).

    Parameters
    ----------
    score_first, score_second : array_like, shape (n,)
        The base judge's absolute scores of the two answers, in points, above 0.

    Returns
    -------
    ndarray, shape (n,)
        ``log b1 - log b2``, in nats; swapping the answers negates it.

    Raises
    ------
    ValueError
        If a score is not a positive number, or the lengths differ.
    """
    first, second = np.asarray(score_first, dtype=float), np.asarray(score_second, dtype=float)
    if first.shape != second.shape:
        raise ValueError(f"scores have shapes {first.shape} and {second.shape}; expected one shape")
    remedy = "positive and finite; move a scale that holds 0 up by a constant first"
    _require((first > 0) & np.isfinite(first), first, "score_first", remedy)
    _require((second > 0) & np.isfinite(second), second, "score_second", remedy)
    return np.asarray(np.log(first) - np.log(second))


def log_probabilities(probabilities: ArrayLike) -> Floats:
    """Return natural logarithms of a judge's category probabilities, shape (n, S).

    Raises
    ------
    ValueError
        If the shape is not (n, S), a probability is not in (0, 1), or a row does not add up
        to 1 within 1e-4.
    """
    values = np.asarray(probabilities, dtype=float)
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(f"probabilities must have shape (n, S) with S >= 2, got {values.shape}")
    remedy = "strictly between 0 and 1; add a small mass to every category and normalise"
    _require((values > 0) & (values < 1), values, "probabilities", remedy)
    total = values.sum(axis=1)
    if (np.abs(total - 1) > 1e-4).any():
        row = int(np.argmax(np.abs(total - 1)))
        raise ValueError(f"row {row} of probabilities adds up to {total[row]:.6g}, not 1")
    return np.asarray(log_softmax(np.log(values), axis=1))


def keep_features(n_features: int, *, dropped: float, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return which embedding features an ablation keeps, in their order.

    Parameters
    ----------
    n_features : int
        Embedding features d.
    dropped : float
        Share of them to drop, in [0, 1]; 1 drops the whole embedding.
    rng : numpy.random.Generator
        Chooses the features.

    Returns
    -------
    ndarray of int, shape (k,)
        Positions kept, ascending; k is d times 1 - `dropped`, rounded.

    Raises
    ------
    ValueError
        If `dropped` is outside [0, 1].
    """
    if not 0 <= dropped <= 1:
        raise ValueError(f"dropped must lie in [0, 1], got {dropped}")
    n_kept = round(n_features * (1 - dropped))
    return np.sort(rng.permutation(n_features)[:n_kept])


def require_embeddings(embeddings: ArrayLike, n_features: int | None = None) -> Floats:
    """Return embeddings as floats of shape (..., d), or raise on a missing rationale.

    Raises
    ------
    ValueError
        If there are fewer than two axes, the features are not `n_features`, or a row holds
        NaN or infinity.
    """
    values = np.asarray(embeddings, dtype=float)
    if values.ndim < 2:
        raise ValueError(f"embeddings must have shape (n, d), got {values.shape}")
    if n_features is not None and values.shape[-1] != n_features:
        raise ValueError(
            f"embeddings have {values.shape[-1]} features, the judge has {n_features} weights; "
            "embed the rationales with the model that the judge was fitted with"
        )
    present = np.isfinite(values).all(axis=-1)
    if not present.all():
        place = tuple(int(i) for i in np.argwhere(~present)[0])
        where = place[0] if len(place) == 1 else place
        raise ValueError(
            f"{int((~present).sum())} of {present.size} embeddings are missing or not finite, "
            f"first in row {where}; leave out the rows whose verdict has no rationale"
        )
    return values


def require_scores(base: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return base scores as floats of the shape, or raise naming the first bad one."""
    values = np.asarray(base, dtype=float)
    if values.shape != shape:
        raise ValueError(f"base scores have shape {values.shape}, the embeddings {shape}")
    _require(np.isfinite(values), values, "base", "finite; leave out rows without a score")
    return values


def require_rows(
    embeddings: ArrayLike, base: ArrayLike, n_features: int | None = None
) -> tuple[Floats, Floats]:
    """Return embeddings (..., d) and base scores (...) as floats that belong together."""
    features = require_embeddings(embeddings, n_features)
    return features, require_scores(base, features.shape[:-1])


def _require(good: NDArray[np.bool_], values: Floats, name: str, expected: str) -> None:
    if not good.all():
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        where = place[0] if len(place) == 1 else place
        raise ValueError(f"{name} is {values[place]:g} in row {where}; expected {expected}")


def require_ratings(rating: ArrayLike, n_rows: int) -> Floats:
    """Return human ratings (n,), or raise if one is missing or all are alike.

    Raises
    ------
    TooLittleToLearnError
        If all are alike.
    ValueError
        If one is missing.
    """
    values = _column(rating, n_rows, "rating")
    if (values == values[0]).all():
        raise TooLittleToLearnError(
            f"all {n_rows} ratings are {values[0]:g}: nothing to learn; use rows that differ"
        )
    return values


def require_shares(outcome: ArrayLike, n_rows: int) -> Floats:
    """Return outcomes (n,) in [0, 1], or raise if one is outside or all are alike.

    Raises
    ------
    TooLittleToLearnError
        If all are alike.
    ValueError
        If one is missing or outside [0, 1].
    """
    values = _column(outcome, n_rows, "outcome")
    _require((values >= 0) & (values <= 1), values, "outcome", "a share of the win in [0, 1]")
    if (values == values[0]).all():
        kind = {0.0: "losses", 0.5: "ties", 1.0: "wins"}.get(float(values[0]), "alike")
        raise TooLittleToLearnError(
            f"all {n_rows} outcomes are {kind} ({values[0]:g}): a judge fitted to them says "
            "nothing about the answers; add votes of the other kinds"
        )
    return values


def require_votes(outcome: Floats) -> None:
    """Raise unless outcomes (n,) are shares of a win, or NaN where nobody voted."""
    good = np.isnan(outcome) | ((outcome >= 0) & (outcome <= 1))
    _require(good, outcome, "outcome", "[0, 1] or NaN")


def require_weights(weight: ArrayLike | None, n_rows: int) -> Floats:
    """Return positive row weights (n,); ones if there are none."""
    if weight is None:
        return np.ones(n_rows)
    values = _column(weight, n_rows, "weight")
    _require(values > 0, values, "weight", "positive; leave out rows that must not count")
    return values


def require_categories(
    category: ArrayLike, n_rows: int, shape: tuple[int, ...]
) -> NDArray[np.intp]:
    """Return categories (n,) 0 to S - 1 for probabilities of shape (n, S), each one present.

    Raises
    ------
    TooLittleToLearnError
        If one is absent.
    ValueError
        If one is no column of the probabilities, or there are fewer than three columns.
    """
    values = _column(category, n_rows, "category")
    if shape[0] != n_rows or shape[1] < 3:
        raise ValueError(
            f"probabilities have shape {shape}; expected ({n_rows}, S) with three categories or "
            "more (for two, fit_preferences)"
        )
    known = np.isin(values, np.arange(shape[1]))
    _require(known, values, "category", f"a column of the probabilities, 0 to {shape[1] - 1}")
    counts = np.bincount(values.astype(np.intp), minlength=shape[1])
    if not counts.all():
        absent = np.flatnonzero(counts == 0).tolist()
        raise TooLittleToLearnError(
            f"categories {absent} are absent from the {n_rows} training rows: their probability "
            "cannot be learned; add ratings of theirs, on several questions, or merge categories"
        )
    return values.astype(np.intp)


def _column(column: ArrayLike, n_rows: int, name: str) -> Floats:
    values = np.asarray(column, dtype=float)
    if values.shape != (n_rows,) or n_rows == 0:
        raise ValueError(f"{name} has shape {values.shape}, the embeddings {n_rows} rows")
    _require(np.isfinite(values), values, name, "finite; leave out rows without one")
    return values
