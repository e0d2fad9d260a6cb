"""Settings that every leave-one-out rating is made with."""

from dataclasses import dataclass

import numpy as np

from judgeline.verdict.outcomes import smooth_outcome

SMOOTHING_LEVELS: tuple[float, ...] = (0.55, 0.65, 0.75, 0.85, 0.95)
"""Label-smoothing baselines of the paper: what a decisive judge outcome counts as."""


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
