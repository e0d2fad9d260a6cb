"""Simulated contestants: a latent skill each, and completions with faults at rates it sets.

Texts come from one random stream per contestant, a row of draws per prompt: neither another
contestant nor more prompts change a text.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from judgeline.elo import keyed_rng
from resources.arena.prompts import Prompt, break_layout, lay_out
from resources.arena.wording import FAMILIES, ORNAMENTS, WORDINGS

_SKILL_SD = 0.8
_FORM_SD = 1.0  # how much one completion differs from the next, in the same unit
_WRONG, _MISSING, _BROKEN, _TYPOS = -1.7, -2.3, -1.3, -0.6  # logits of a fault at skill zero
_PADDING = {"aster": 0.4, "birch": 0.9, "cedar": 0.6, "dahlia": 1.2, "elder": 0.5, "fern": 1.5}
_MAX_ITEMS, _MAX_TYPOS, _MAX_PADDINGS = 9, 5, 5
_N_GLYPHS = 5
_N_DRAWS = 4 + 2 * _MAX_ITEMS + 2 * _MAX_TYPOS


@dataclass(frozen=True)
class Contestant:
    """A simulated model: name, family, skill (logits of rarer faults), padding, closing ornament.

    `padding` is the mean number of needless sentences; no voter minds the ornament, a judge may.
    """

    name: str
    family: str
    skill: float
    padding: float
    ornament: str


def enter_contestants(n_contestants: int, seed: int) -> tuple[Contestant, ...]:
    """Return the first contestants with a seed, of independent skills; families take turns."""
    contestants = []
    for number in range(n_contestants):
        family = FAMILIES[number % len(FAMILIES)]
        name = f"sim-{family}-{number // len(FAMILIES) + 1}"
        skill = _SKILL_SD * float(keyed_rng(seed, "arena", "skill", name).standard_normal())
        glyphs = keyed_rng(seed, "arena", "ornament", name).integers(0, len(ORNAMENTS), _N_GLYPHS)
        ornament = " ".join(ORNAMENTS[glyph] for glyph in glyphs)
        contestants.append(Contestant(name, family, skill, _PADDING[family], ornament))
    return tuple(contestants)


def write_completions(
    contestant: Contestant, prompts: tuple[Prompt, ...], seed: int
) -> tuple[str, ...]:
    """Return a contestant's completion of each prompt, with the faults its skill allows."""
    rng = keyed_rng(seed, "arena", "completions", contestant.name)
    draws = rng.random((len(prompts), _N_DRAWS))
    difficulty = np.array([prompt.difficulty for prompt in prompts])
    ease = contestant.skill + _FORM_SD * ndtri(draws[:, 0]) - difficulty
    chances = expit(np.array([_WRONG, _MISSING, _BROKEN, _TYPOS]) - ease[:, None])
    return tuple(
        _complete(prompt, contestant, chance, draw)
        for prompt, chance, draw in zip(prompts, chances, draws, strict=True)
    )


def _complete(
    prompt: Prompt, contestant: Contestant, chance: NDArray[np.float64], draw: NDArray[np.float64]
) -> str:
    fates, slips, typos = np.split(draw[4:], [_MAX_ITEMS, 2 * _MAX_ITEMS])
    wrong, missing, broken, misspelt = chance.tolist()
    answer = []  # each item right, wrong, or not at all
    for item, pair, fate, slip in zip(prompt.items, prompt.slips, fates, slips, strict=False):
        if fate < wrong:
            answer.append(pair[int(slip < 0.5)])
        elif fate < 1 - missing * (1 - wrong):
            answer.append(item)
    layout = break_layout if draw[1] < broken else lay_out
    wording = WORDINGS[prompt.language]
    prose = [wording.openings[FAMILIES.index(contestant.family)]]
    n_paddings = min(int(-contestant.padding * np.log1p(-draw[2])), _MAX_PADDINGS)
    first = int(draw[3] * len(wording.paddings))
    prose += [wording.paddings[(first + i) % len(wording.paddings)] for i in range(n_paddings)]
    for hit, where in zip(typos[::2], typos[1::2], strict=True):
        if hit < misspelt:
            row, part = divmod(where * len(prose), 1)
            prose[int(row)] = _swap_letters(prose[int(row)], part, wording.vocabulary)
    text = layout(prompt.kind, answer or [prompt.items[0]])
    parts = [prose[0], text, " ".join(prose[1:]), contestant.ornament]
    return "\n\n".join(part for part in parts if part)


def _swap_letters(sentence: str, where: float, vocabulary: frozenset[str]) -> str:
    """Return a sentence with two letters swapped inside a long word, so that it is no word."""
    tokens = sentence.split(" ")
    longest = [i for i, token in enumerate(tokens) if len(token) >= 6 and token.isalpha()]
    if longest:
        place = longest[int(where * len(longest))]
        word = tokens[place]
        swaps = (word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(1, len(word) - 2))
        tokens[place] = next((s for s in swaps if s != word and s.lower() not in vocabulary), word)
    return " ".join(tokens)
