"""Which battles to judge, balanced over models, and which a new model gets."""

from judgeline.sampling.balanced import (
    N_BANDS,
    NeededBattles,
    appearances,
    balanced_sample,
    choose_battles,
    needed_battles,
    strength_bands,
    tiebreak_keys,
)

__all__ = [
    "N_BANDS", "NeededBattles", "appearances", "balanced_sample", "choose_battles",
    "needed_battles", "strength_bands", "tiebreak_keys",
]  # fmt: skip
