"""Reads a completion against the known answer of its prompt: the arena's measure of quality.

It sees the text alone, never which faults were put into it, so contestants, voters and judges
all stand on what anybody could check.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from resources.arena.prompts import Prompt, find_items, keeps_layout
from resources.arena.wording import ORNAMENTS, WORDINGS, words

QUALITY_WEIGHTS: tuple[float, ...] = (0.15, 0.30, 0.25, 0.15, 0.10, 0.05)
"""What simulated humans value, by criterion in the order of `CRITERIA`; they sum to 1."""

_FREE_WORDS = 25  # an opening and the answer itself are nobody's padding
_PADDING_SCALE = 60.0
TYPOS_TO_ZERO = 5
BROKEN_LAYOUT = 0.25
_SHORTEST_TYPO = 4


class Reading(NamedTuple):
    """Findings of the checker in a completion; `levels` in [0, 1], in the order of `CRITERIA`.

    `style` is the family that opens so, `ornament` the closing line of signs; None without one.
    """

    levels: tuple[float, float, float, float, float, float]
    n_expected: int
    n_right: int
    n_wrong: int
    layout_kept: bool
    n_typos: int
    n_words: int
    style: str | None
    ornament: str | None


def read_completion(prompt: Prompt, text: str) -> Reading:
    """Return the quality of a completion by criterion, from the known answer of its prompt."""
    wording = WORDINGS[prompt.language]
    paragraphs = text.split("\n\n")
    given = find_items(prompt.kind, prompt.language, text)
    right = set(given) & set(prompt.items)
    n_wrong = len(given) - len(right)
    kept = any(keeps_layout(prompt.kind, prompt.language, each) for each in paragraphs)
    known = wording.vocabulary.union(words(prompt.instruction))
    written = words(text)
    n_typos = sum(len(word) >= _SHORTEST_TYPO and word not in known for word in written)
    answered = min(len(given), len(prompt.items)) / len(prompt.items)
    true = len(right) / max(len(given), 1)
    if prompt.kind == "sort" and len(given) > 1:  # the share of neighbours in ascending order
        true *= sum(int(a) < int(b) for a, b in pairwise(given)) / (len(given) - 1)
    levels = (
        (1.0 if kept else BROKEN_LAYOUT) * (1.0 if given else 0.0),
        true * answered,
        true,
        answered,
        math.exp(-max(len(written) - _FREE_WORDS, 0) / _PADDING_SCALE),
        max(0.0, 1 - n_typos / TYPOS_TO_ZERO),
    )
    style = wording.style.get(paragraphs[0])
    ornament = paragraphs[-1] if set(paragraphs[-1]) <= {*ORNAMENTS, " "} else None
    counts = (len(prompt.items), len(right), n_wrong, kept, n_typos, len(written))
    return Reading(levels, *counts, style, ornament or None)


def quality(reading: Reading) -> float:
    """Return the true quality of a completion, in [0, 1]: the weighted mean of its levels."""
    return sum(w * level for w, level in zip(QUALITY_WEIGHTS, reading.levels, strict=True))
