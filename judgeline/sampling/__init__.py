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
from judgeline.sampling.voting import Draws, draw_battles, draw_weights, vote_information

__all__ = [
    "N_BANDS", "Draws", "NeededBattles", "appearances", "balanced_sample", "choose_battles",
    "draw_battles", "draw_weights", "needed_battles", "strength_bands", "tiebreak_keys",
    "vote_information",
]  # fmt: skip
