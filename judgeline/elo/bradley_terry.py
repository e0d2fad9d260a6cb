"""Penalised Bradley-Terry strengths from counts and total wins: Newton with Cholesky.

The gradient needs only how often each pair met and how much each model won in total, so any
kind of target - votes, hard outcomes, soft outcomes, smoothed ones - is the same fit.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

GRADIENT_TOLERANCE = 1e-8
"""Largest absolute gradient of a finished fit, in wins."""

STEP_TOLERANCE = 1e-10
"""Largest absolute last Newton step of a finished fit, in logits."""

_MAX_ITERATIONS = 100
_MAX_STEP = 4.0  # logits; a longer Newton step leaves the region where the quadratic holds


def fit_strengths(
    n_battles: ArrayLike,
    wins: ArrayLike,
    *,
    l2: float = 0.01,
    start: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Return the strengths that maximise the penalised Bradley-Terry log-likelihood.

    Maximises ``sum_battles [y log p + (1 - y) log(1 - p)] - l2 * |strength|^2`` with
    ``p = sigmoid(strength_a - strength_b)`` and ``y`` in [0, 1] (a tie is one half).

    Parameters
    ----------
    n_battles : array_like, shape (M, M)
        How often two models met; symmetric, zero on the diagonal.
    wins : array_like, shape (M,)
        Each model's total share of wins over all its battles; they sum to the battle count.
    l2 : float
        Penalty on the squared strengths, per squared logit. Without it (0) the strengths
        exist only if no group of models beat all others throughout.
    start : array_like, shape (M,), optional
        Strengths to start from, in logits; zeros by default.

    Returns
    -------
    ndarray, shape (M,)
        Strengths in logits, centred to mean zero.

    Raises
    ------
    ValueError
        If the shapes disagree, `l2` is negative or the wins do not sum to the battles.
    RuntimeError
        If the largest gradient is not brought to 1e-8 wins: the strengths do not exist
        (separable or unconnected battles without a penalty).

    References
    ----------
    R. A. Bradley and M. E. Terry (1952), Biometrika 39; W.-L. Chiang et al. (2024), "Chatbot
    Arena", arXiv:2403.04132.
    """
    counts = np.asarray(n_battles, dtype=float)
    won = np.asarray(wins, dtype=float)
    _require_totals(counts, won, l2)
    strengths = np.zeros(won.size) if start is None else np.array(start, dtype=float)
    strengths -= strengths.mean()
    for _ in range(_MAX_ITERATIONS):
        gradient, information = _derivatives(strengths, counts, won, l2)
        step = _newton_step(gradient, information, l2)
        if np.abs(gradient).max() <= GRADIENT_TOLERANCE and np.abs(step).max() <= STEP_TOLERANCE:
            _require_held(information, l2)
            return strengths
        strengths = _ascend(strengths, step, counts, won, l2)
        strengths -= strengths.mean()
    return _settled_or_raise(strengths, counts, won, l2)


def _require_totals(counts: NDArray[np.float64], won: NDArray[np.float64], l2: float) -> None:
    if counts.ndim != 2 or counts.shape != (won.size, won.size):
        raise ValueError(
            f"n_battles has shape {counts.shape}, wins {won.shape}; expected (M, M), (M,)"
        )
    if not l2 >= 0:
        raise ValueError(f"l2 must not be negative, got {l2}")
    _require_counts(counts)
    met = counts.sum(axis=1)
    slack = 1e-9 * np.maximum(met, 1.0)
    if not ((won >= -slack) & (won <= met + slack)).all():
        raise ValueError(f"wins must lie between 0 and each model's battles, got {won.tolist()}")
    total = counts.sum() / 2
    if not np.isclose(won.sum(), total, rtol=1e-9, atol=1e-9):
        raise ValueError(f"wins sum to {won.sum()!r}, but there are {total!r} battles")


def _require_counts(counts: NDArray[np.float64]) -> None:
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("n_battles must be finite and not negative")
    if (counts != counts.T).any():
        raise ValueError("n_battles must be symmetric: battles of i with j are battles of j with i")
    if np.diagonal(counts).any():
        raise ValueError("n_battles must be zero on the diagonal: no model meets itself")


def _derivatives(
    strengths: NDArray[np.float64],
    counts: NDArray[np.float64],
    won: NDArray[np.float64],
    l2: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the gradient (M,) and the pairwise information ``n p (1 - p)`` (M, M)."""
    chance = expit(strengths[:, None] - strengths)
    expected = counts * chance
    gradient = won - expected.sum(axis=1) - 2 * l2 * strengths
    return gradient - gradient.mean(), expected * (1 - chance)


def curvature(information: NDArray[np.float64], l2: float) -> NDArray[np.float64]:
    """Return the negative Hessian of the log-likelihood with the origin held.

    Parameters
    ----------
    information : ndarray, shape (M, M)
        ``n p (1 - p)`` per pair, in wins per logit; symmetric.
    l2 : float
        Penalty per squared logit.

    Returns
    -------
    ndarray, shape (M, M)
        Graph Laplacian of the information, plus ``2 * l2`` on the diagonal, plus a constant
        that makes the direction of a common shift as stiff as an average model.
    """
    diagonal = information.sum(axis=1)
    stiffness = max(float(diagonal.mean()), 2 * l2) / information.shape[0]
    hessian: NDArray[np.float64] = stiffness - information
    hessian[np.diag_indices_from(hessian)] += diagonal + 2 * l2
    return hessian


def _newton_step(
    gradient: NDArray[np.float64], information: NDArray[np.float64], l2: float
) -> NDArray[np.float64]:
    try:
        factor = cho_factor(curvature(information, l2), check_finite=False)
    except np.linalg.LinAlgError as error:
        raise RuntimeError(
            "strengths are not determined: some models share no informative battle with the "
            f"others and l2 = {l2:g} does not hold them; connect them or use a larger penalty"
        ) from error
    step: NDArray[np.float64] = np.asarray(cho_solve(factor, gradient, check_finite=False))
    centred: NDArray[np.float64] = step - step.mean()
    return centred


def log_likelihood(
    strengths: NDArray[np.float64],
    counts: NDArray[np.float64],
    won: NDArray[np.float64],
    l2: float,
) -> float:
    """Return the penalised log-likelihood, in nats.

    Parameters
    ----------
    strengths : ndarray, shape (M,)
        Strengths in logits.
    counts, won : ndarray, shapes (M, M) and (M,)
        Battles per pair and total wins, as in `fit_strengths`.
    l2 : float
        Penalty per squared logit.

    Returns
    -------
    float
        ``sum_battles [y log p + (1 - y) log(1 - p)] - l2 * |strength|^2``.
    """
    softplus = np.logaddexp(0, strengths[:, None] - strengths)
    pairs = 0.5 * (counts * (softplus + softplus.T)).sum()
    lost = counts.sum(axis=1) - won
    # log p = d/2 - log(2 cosh(d/2)) and log(1 - p) = -d/2 - log(2 cosh(d/2)) for a gap d
    linear = 0.5 * (strengths * (won - lost)).sum()
    return float(linear - 0.5 * pairs - l2 * (strengths**2).sum())


def _require_held(information: NDArray[np.float64], l2: float) -> None:
    """Raise if, without a penalty, some direction has run out of information: no maximum."""
    if l2 == 0 and np.linalg.eigvalsh(curvature(information, l2))[0] <= GRADIENT_TOLERANCE:
        raise RuntimeError(
            "strengths are not determined: with l2 = 0 some models win or lose every battle "
            "against the rest, or share none with them; use a penalty l2 > 0 or add battles"
        )


def _ascend(
    strengths: NDArray[np.float64],
    step: NDArray[np.float64],
    counts: NDArray[np.float64],
    won: NDArray[np.float64],
    l2: float,
) -> NDArray[np.float64]:
    """Take the Newton step, shortened until the likelihood does not fall."""
    largest = float(np.abs(step).max())
    if largest < 1e-3:  # inside the quadratic region differences of likelihoods are rounding
        return strengths + step
    scale = min(1.0, _MAX_STEP / largest)
    before = log_likelihood(strengths, counts, won, l2)
    while scale > 1e-6 and log_likelihood(strengths + scale * step, counts, won, l2) < before:
        scale /= 2
    return strengths + scale * step


def _settled_or_raise(
    strengths: NDArray[np.float64],
    counts: NDArray[np.float64],
    won: NDArray[np.float64],
    l2: float,
) -> NDArray[np.float64]:
    """Accept a fit that only rounding keeps from a smaller step; raise on any other."""
    gradient, information = _derivatives(strengths, counts, won, l2)
    step = _newton_step(gradient, information, l2)
    rounding = np.finfo(float).eps * max(float(counts.sum(axis=1).max()), 1.0)
    if (
        np.abs(gradient).max() <= max(GRADIENT_TOLERANCE, 8 * rounding)
        and np.abs(step).max() < 1e-8
    ):
        return strengths
    raise RuntimeError(
        f"strengths did not converge after {_MAX_ITERATIONS} iterations (largest gradient "
        f"{np.abs(gradient).max():.1e} wins, tolerance {GRADIENT_TOLERANCE:.0e}; largest strength "
        f"{np.abs(strengths).max():.1f} logits): some models win or lose every battle against "
        f"the rest, and l2 = {l2:g} does not hold them; use a larger penalty or add battles"
    )
