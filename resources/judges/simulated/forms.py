"""Simulated judges asked for one word: they draw it by its odds, and err as in the rubric."""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from judgeline.elo import keyed_rng
from judgeline.verdict import CRITERIA, LOWEST_SCORE, text_hash
from resources.arena.checker import BROKEN_LAYOUT, TYPOS_TO_ZERO, Reading
from resources.arena.prompts import Prompt as ArenaPrompt
from resources.judges.forms.form import Chances, Prompt
from resources.judges.judge import Presentation
from resources.judges.simulated.judge import (
    BEST,
    WORST,
    BuiltinJudge,
    BuiltinTraits,
    Opinion,
    spoilt,
)

_VERSION = "2"

_ELSEWHERE = ("The", 0.01)  # a word that is no answer, and how probable the judge finds it
_ONE_MARK = 0.25  # of the noise of a criterion is left where it is doubt, which one mark shows
_SUREST = 0.05  # rubric points: spread of a judge without noise
_IMPRESSIONS = ("useless", "poor", "middling", "good", "excellent")  # for two rubric points each
_EASE = 0.02, 0.3  # mean surprise per piece of the reason, in nats: of a sure judge, and added
_PIECES = re.compile(r"\s*\S+(?:\s\S+){0,4}")  # a token for five words keeps the tables small


class Belief(NamedTuple):
    """A judge's belief about a text, in rubric points: its worth, and the error by criterion."""

    reading: Reading
    points: float
    misread: list[float]


class BuiltinFormJudge(BuiltinJudge):
    """A simulated judge asked in another form than the rubric."""

    def __init__(
        self,
        traits: BuiltinTraits,
        family: str,
        prompts: Sequence[ArenaPrompt],
        template: str,
        asked: Prompt,
    ) -> None:
        super().__init__(traits, family, prompts, template)
        self.form = asked.form
        try:
            self.form.chances([BEST, WORST], _SUREST)
        except NotImplementedError:
            problem = f"simulated judges are not asked in the form {self.form.name!r}"
            raise ValueError(f"{problem}: remove it from 'asks'") from None
        self.identity = {
            **self.identity,
            "version": _VERSION,
            "template": text_hash(asked.template),
            **self.form.identity,
        }
        self.template_tokens = len(asked.template.split())

    def texts(self, shown: Presentation) -> list[str]:
        """Return one completion, or two."""
        quoted = self.form.wording.quoted.values()
        return [getattr(shown, text) for text in quoted if text != "instruction"]

    def reply(
        self, shown: Presentation, opinions: list[Opinion]
    ) -> tuple[str, str | None, str | None]:
        """Return a word and a reason, with the odds of the word."""
        rng = self._rng(shown)
        odds, reason = self._odds(self._beliefs(shown, opinions, rng))
        chances = odds.probabilities.tolist()
        ladder = list(accumulate(chances))
        place = bisect_right(ladder, rng.random() * ladder[-1])
        whole = f"{odds.words[place]}\n\n{reason}"
        text, failure = spoilt(whole, self.traits, rng, _MALFORMED)
        tokens = _write_odds(reason, odds.words, chances, place, rng) if text == whole else None
        return text, failure, tokens

    def _rng(self, shown: Presentation, *purpose: str) -> np.random.Generator:
        names = (self.form.name, *purpose, shown.instruction, *self.texts(shown))
        return keyed_rng(self.traits.seed, self.key, *names, str(shown.replicate))

    def _beliefs(
        self, shown: Presentation, opinions: list[Opinion], rng: np.random.Generator
    ) -> list[Belief]:
        """Return the judge's beliefs about one text, or about two beside each other."""
        lean, noise = self.lean(opinions, rng), self.traits.noise
        draws = self._rng(shown, "misreadings").standard_normal((len(opinions), len(CRITERIA)))
        return [
            Belief(one.reading, one.points + own, [own + noise * draw for draw in errors])
            for one, own, errors in zip(opinions, lean, draws.tolist(), strict=True)
        ]

    def _odds(self, beliefs: list[Belief]) -> tuple[Chances, str]:
        """Return the odds of the first word, and the reason."""
        spread = max(_SUREST, _ONE_MARK * self.traits.noise)
        odds = self.form.chances([one.points for one in beliefs], spread)
        if len(beliefs) == 1:
            return odds, f"The response {_findings(beliefs[0])}."
        first, second = map(_findings, beliefs)
        return odds, f"Response A {first}, response B {second}."


def _findings(belief: Belief) -> str:
    """Return a judge's findings in words; without its errors they are the truth."""
    reading, points, misread = belief
    shares = [points / (BEST - WORST) for points in misread]  # of a criterion
    off = dict(zip(CRITERIA, shares, strict=True))
    n_expected = reading.n_expected
    n_right = round(reading.n_right + off["helpfulness"] * n_expected)
    n_wrong = round(reading.n_wrong - off["factuality"] * n_expected)
    n_typos = round(reading.n_typos - off["fluency"] * TYPOS_TO_ZERO)
    layout = (1.0 if reading.layout_kept else BROKEN_LAYOUT) + off["adherence"]
    impression = _IMPRESSIONS[min(max(int(points - LOWEST_SCORE) // 2, 0), len(_IMPRESSIONS) - 1)]
    return (
        f"is {impression}, has {min(max(n_right, 0), n_expected)} of {n_expected} items right, "
        f"{max(n_wrong, 0)} wrong and {max(n_typos, 0)} typos, and "
        f"{'keeps' if layout > (1 + BROKEN_LAYOUT) / 2 else 'breaks'} the format"
    )


def _write_odds(
    reason: str, words: Sequence[str], chances: list[float], said: int, rng: np.random.Generator
) -> str:
    """Return the tokens of an answer and their log-probabilities as an endpoint tells them."""
    other, stray = _ELSEWHERE
    logs = [(word, (1 - stray) * p) for word, p in zip(words, chances, strict=True)]
    listed = [(word, round(math.log(p), 6)) for word, p in (*logs, (other, stray)) if p > 0]
    listed.sort(key=lambda one: -one[1])
    word, own = logs[said]
    sure, added = _EASE
    surprise = sure + added * (1 - max(chances))
    rest = ["\n\n", *_PIECES.findall(reason)]
    ease = np.round(-surprise * rng.standard_exponential(len(rest)), 6).tolist()
    tokens: list[Any] = [[word, round(math.log(own), 6), listed]]
    tokens += [[token, own, []] for token, own in zip(rest, ease, strict=True)]
    return json.dumps(tokens)


_MALFORMED: tuple[Callable[[str], str], ...] = (
    lambda text: text.partition("\n\n")[2],  # the reason only
    lambda text: "My answer is: " + text,
    lambda text: "-" + text,
    lambda text: text.replace("\n\n", " or rather B or 5\n\n", 1),
    lambda text: text.replace("\n\n", ".5\n\n", 1),
)
