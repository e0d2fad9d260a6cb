"""Random streams keyed by what they are for, so that order and parallelism change no number."""

import hashlib

import numpy as np


def keyed_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the random generator that belongs to a seed and a chain of names.

    Parameters
    ----------
    seed : int
        Seed of the whole analysis, not negative.
    *names : str
        What the stream is for, such as corpus, model and method.

    Returns
    -------
    numpy.random.Generator
        The same stream for the same key, independent streams for different keys.

    Raises
    ------
    ValueError
        If the seed is negative.
    """
    if seed < 0:
        raise ValueError(f"seed must not be negative, got {seed}")
    words = [
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        for name in names
    ]
    return np.random.default_rng([seed, len(words), *words])
