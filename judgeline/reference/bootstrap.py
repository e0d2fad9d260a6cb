"""Bootstrap over prompts: the slow twin of a reference-anchored gap's standard error."""

import numpy as np
from numpy.typing import ArrayLike

from judgeline.elo.strengths import ELO_PER_LOGIT
from judgeline.reference.gaps import JEFFREYS


def bootstrap_gap_std_error(
    preference: ArrayLike, *, n_resamples: int, rng: np.random.Generator
) -> float:
    """Return the spread of a model's gap when its prompts are weighed again at random.

    The half prompt won and the half prompt lost of Jeffreys' prior are weighed too: on wins and
    losses alone this is the Beta posterior of the gap, drawn.

    Parameters
    ----------
    preference : array_like, shape (prompts,)
        Probability, in [0, 1], that the model's answer beats the reference's; 0.5 is a tie, NaN
        a prompt without a verdict.
    n_resamples : int
        Draws, at least 2; their spread is known to about ``1 / sqrt(2 n_resamples)`` of itself.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    float
        Standard deviation (ddof 1) of the gap over the draws, in Elo points; 0 where all
        preferences are equal, which shows no spread rather than none.

    Raises
    ------
    ValueError
        If the shape is another, there are fewer than two resamples, no prompt has a verdict, or
        a preference lies outside [0, 1].

    References
    ----------
    D. B. Rubin (1981), "The Bayesian Bootstrap", Annals of Statistics 9(1).
    """
    values = np.asarray(preference, dtype=float)
    if values.ndim != 1:
        raise ValueError(f"preference must have shape (prompts,), got {values.shape}")
    if n_resamples < 2:
        raise ValueError(f"n_resamples must be at least 2 to show a spread, got {n_resamples}")
    known = values[~np.isnan(values)]
    if not known.size:
        raise ValueError("no prompt has a verdict: there is nothing to resample")
    wrong = known[(known < 0) | (known > 1)]
    if wrong.size:
        raise ValueError(f"preference holds {wrong[0]:g}; preferences lie in [0, 1]")
    if known.min() == known.max():
        return 0.0
    prompts = np.append(known, [1.0, 0.0])
    weight = np.append(np.ones(known.size), [JEFFREYS, JEFFREYS])
    drawn = rng.standard_gamma(weight, size=(n_resamples, prompts.size))
    gaps = ELO_PER_LOGIT * np.log((drawn @ prompts) / (drawn @ (1 - prompts)))
    return float(gaps.std(ddof=1))
