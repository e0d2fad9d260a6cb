"""Battles to try the commands on: a simulation whose truth is known."""

import numpy as np
import pandas as pd

N_MODELS, N_NEW, N_BATTLES = 24, 2, 6000


def example_battles() -> pd.DataFrame:
    """Return scored battles of 24 simulated models; people have voted on the first 22.

    The judge's scores are compressed and noisy, as those of a model are: 0.6 points of score a
    logit of strength, and noise of 1.2 points. Questions are sums, of which people's choice is
    right, so that whoever votes for the right answers finds the strengths.
    """
    rng, texts = np.random.default_rng(0), np.random.default_rng(1)
    models = np.array([f"model-{number:02d}" for number in range(N_MODELS)])
    strength = rng.normal(0, 0.8, N_MODELS)  # in logits: what people would find in the end
    a = rng.integers(0, N_MODELS, N_BATTLES)
    b = (a + rng.integers(1, N_MODELS, N_BATTLES)) % N_MODELS
    gap = strength[a] - strength[b]
    score = np.round(0.6 * gap + rng.normal(0, 1.2, N_BATTLES), 2)
    is_first = rng.random(N_BATTLES) < 1 / (1 + np.exp(-gap))
    is_new = np.maximum(a, b) >= N_MODELS - N_NEW
    x, y, off = texts.integers(10, 90, (3, N_BATTLES))
    return pd.DataFrame(
        {
            "model_a": models[a],
            "model_b": models[b],
            "score_difference": score,
            "human_outcome": np.where(is_new, np.nan, is_first.astype(float)),
            "instruction": [f"What is {one} + {two}?" for one, two in zip(x, y, strict=True)],
            "completion_a": [f"It is {number}." for number in x + y + off * ~is_first],
            "completion_b": [f"It is {number}." for number in x + y + off * is_first],
        }
    )
