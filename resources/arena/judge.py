"""Simulated judges: they read the texts of the built-in arena and grade them, with declared flaws.

What a judge draws depends on its identity and on the texts, not on when it is asked.
"""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from judgeline.elo import keyed_rng
from judgeline.judges.budget import Budget, Cost
from judgeline.judges.definition import BuiltinTraits
from judgeline.judges.forms.form import Form, Prompt, Reading, read
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.judge import Evidence
from judgeline.judges.presentation import Answer, Presentation
from judgeline.verdict import (
    CRITERIA,
    HIGHEST_SCORE,
    LOWEST_SCORE,
    RESPONSES,
    identity_hash,
    text_hash,
)
from resources.arena import checker
from resources.arena.prompts import Prompt as ArenaPrompt

_VERSION = "1"
BEST, WORST = 9.0, 2.0  # marks of a perfect and a worthless text before noise: room on the ruler
_AT_HAND = 1 << 14  # texts: judges of one arena read the same ones, in every form


class Opinion(NamedTuple):
    """A judge's reading of a text, and in rubric points its worth and a lasting liking."""

    reading: checker.Reading
    marks: list[float]
    points: float
    liking: float
    n_tokens: int


class BuiltinJudge:
    """A simulated judge over the prompts of one arena; tokens are words.

    It is `asked` for the rubric, or in another form, in which its opinions are the same.
    """

    evidence: Evidence = "log-probabilities"

    def __init__(
        self,
        traits: BuiltinTraits,
        family: str,
        prompts: Sequence[ArenaPrompt],
        template: str,
        asked: Prompt | None = None,
    ) -> None:
        self.form: Form = RUBRIC if asked is None else asked.form
        self.identity: Mapping[str, str] = {
            "kind": "builtin",
            "version": _VERSION,
            "family": family,
            "traits": json.dumps(traits.model_dump(), sort_keys=True),
            "template": text_hash(template),
        }
        self.traits, self._family = traits, family
        self._template_tokens = len((template if asked is None else asked.template).split())
        self._prompts = {prompt.instruction: prompt for prompt in prompts}
        self.key = identity_hash(self.identity)
        if asked is None:
            return
        try:
            self.form.chances([BEST, WORST], _SUREST)
        except NotImplementedError:
            problem = f"simulated judges are not asked in the form {self.form.name!r}"
            raise ValueError(f"{problem}: remove it from 'asks'") from None
        changed = {"version": _SHORT_VERSION, "template": text_hash(asked.template)}
        self.identity = {**self.identity, **changed, **self.form.identity}

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Reading]]:
        """Yield one answer per presentation, in their order, until the budget is spent."""
        for position, shown in enumerate(presentations):
            opinions = [self.opinion(shown, text) for text in self.texts(shown)]
            reply = self._graded if self.form is RUBRIC else self._worded
            text, failure, log_probabilities = reply(shown, opinions)
            n_asked = self._template_tokens + len(shown.instruction.split())
            n_asked += sum(one.n_tokens for one in opinions)
            answer = Answer(text, failure, n_asked, len(text.split()), log_probabilities)
            if not budget.spend(Cost(1, answer.prompt_tokens, answer.completion_tokens)):
                return
            yield position, read(shown, answer, self.form)

    def texts(self, shown: Presentation) -> list[str]:
        """Return the completions of a presentation: one, or two."""
        quoted = self.form.wording.quoted.values()
        return [getattr(shown, text) for text in quoted if text != "instruction"]

    def opinion(self, shown: Presentation, text: str) -> Opinion:
        """Return the judge's reading and lasting opinion of a text, the same in every form."""
        prompt = self._prompts.get(shown.instruction)
        if prompt is None:
            raise ValueError(
                f"battle {shown.battle_id!r} asks {shown.instruction[:60]!r}, which is no prompt "
                "of the built-in arena with these options; simulated judges know no other"
            )
        return _opinion(self.traits, self._family, self.key, prompt, text)

    def _graded(
        self, shown: Presentation, opinions: list[Opinion]
    ) -> tuple[str, str | None, str | None]:
        """Return marks for both texts, with a reason."""
        names = (shown.instruction, *self.texts(shown), str(shown.replicate))
        rng = keyed_rng(self.traits.seed, self.key, *names)
        lean, noise = self.lean(opinions, rng), self.traits.noise
        draws = rng.standard_normal((len(opinions), len(CRITERIA))).tolist()
        marks = [
            [
                min(max(round(mark + own + noise * draw), LOWEST_SCORE), HIGHEST_SCORE)
                for mark, draw in zip(opinion.marks, errors, strict=True)
            ]
            for opinion, own, errors in zip(opinions, lean, draws, strict=True)
        ]
        whole = _write(marks, *(one.reading for one in opinions))
        return (*spoilt(whole, self.traits, rng, _MALFORMED), None)

    def _worded(
        self, shown: Presentation, opinions: list[Opinion]
    ) -> tuple[str, str | None, str | None]:
        """Return a word and a reason, with the odds of the word."""
        rng, noise = self._rng(shown), self.traits.noise
        draws = self._rng(shown, "misreadings").standard_normal((len(opinions), len(CRITERIA)))
        said, points = [], []
        for one, own, errors in zip(opinions, self.lean(opinions, rng), draws, strict=True):
            points.append(one.points + own)
            misread = [own + noise * draw for draw in errors.tolist()]
            said.append(_findings(one.reading, points[-1], misread))
        odds = self.form.chances(points, max(_SUREST, _ONE_MARK * noise))
        names = ("Response A", "response B") if len(said) == 2 else ("The response",)
        reason = ", ".join(f"{name} {one}" for name, one in zip(names, said, strict=True)) + "."
        chances = odds.probabilities.tolist()
        ladder = list(accumulate(chances))
        place = bisect_right(ladder, rng.random() * ladder[-1])
        whole = f"{odds.words[place]}\n\n{reason}"
        text, failure = spoilt(whole, self.traits, rng, _MALFORMED_WORDS)
        tokens = _write_odds(reason, odds.words, chances, place, rng) if text == whole else None
        return text, failure, tokens

    def _rng(self, shown: Presentation, *purpose: str) -> np.random.Generator:
        names = (self.form.name, *purpose, shown.instruction, *self.texts(shown))
        return keyed_rng(self.traits.seed, self.key, *names, str(shown.replicate))

    def lean(self, opinions: list[Opinion], rng: np.random.Generator) -> list[float]:
        """Return by how many points opinion, mood and biases lean on all criteria of each text."""
        traits, moods = self.traits, rng.standard_normal(len(opinions)).tolist()
        lean = [one.liking + traits.mood * mood for one, mood in zip(opinions, moods, strict=True)]
        if len(opinions) == 2:
            first, second = (max(one.reading.n_words, 1) for one in opinions)
            longer = traits.verbosity_bias * (math.log2(first / second) / 2)
            lean = [lean[0] + traits.position_bias + longer, lean[1] - longer]
        return lean


@lru_cache(_AT_HAND)
def _opinion(
    traits: BuiltinTraits, family: str, key: str, prompt: ArenaPrompt, text: str
) -> Opinion:
    reading, marks, points = _read(prompt, text)
    rng = keyed_rng(traits.seed, key, "taste", prompt.instruction, text)
    liking = traits.taste * float(rng.standard_normal())
    liking += traits.family_bias if reading.style == family else 0.0
    liking += traits.style_taste * _habit(traits.seed, key, reading.ornament or "")
    return Opinion(reading, marks, points, liking, len(text.split()))


@cache
def _habit(seed: int, key: str, ornament: str) -> float:
    """Return how much the judge likes an ornament, in standard deviations of its taste."""
    return float(keyed_rng(seed, key, "style", ornament).standard_normal())


@lru_cache(_AT_HAND)
def _read(prompt: ArenaPrompt, text: str) -> tuple[checker.Reading, list[float], float]:
    """Return the reading of a text, and its worth without errors by criterion and as a whole."""
    reading = checker.read_completion(prompt, text)
    marks = [WORST + (BEST - WORST) * level for level in reading.levels]
    return reading, marks, float(WORST + (BEST - WORST) * np.mean(reading.levels))


def _write(marks: list[list[int]], *readings: checker.Reading) -> str:
    """Return an answer in the format of a real judge: the object, then an explanation."""
    scores = {
        response: dict(zip(CRITERIA, own, strict=True))
        for response, own in zip(RESPONSES, marks, strict=True)
    }
    reasons = " ".join(
        f"Response {number} has {reading.n_right} of {reading.n_expected} items right, "
        f"{reading.n_wrong} wrong and {reading.n_typos} typos in {reading.n_words} words; it "
        f"{'keeps' if reading.layout_kept else 'breaks'} the requested format."
        for number, reading in enumerate(readings, start=1)
    )
    return f"{json.dumps(scores)}\n\n{reasons}"


def spoilt(
    text: str,
    traits: BuiltinTraits,
    rng: np.random.Generator,
    malformed: Sequence[Callable[[str], str]],
) -> tuple[str, str | None]:
    """Return the answer, or at the declared rates a malformed, refused or truncated one."""
    fate, which, where = rng.random(3).tolist()
    if fate < traits.malformed_rate:
        return malformed[int(which * len(malformed))](text), None
    if fate < traits.malformed_rate + traits.refusal_rate:
        return REFUSAL, None
    if fate < traits.malformed_rate + traits.refusal_rate + traits.truncated_rate:
        return text[: int(where * text.index("\n\n"))], "truncated"
    return text, None


REFUSAL = "I am sorry, but I cannot compare these two responses."

_MALFORMED: tuple[Callable[[str], str], ...] = (
    lambda text: text.partition("\n\n")[2],  # prose only
    lambda text: "My grades are as follows. " + text,
    lambda text: text.replace('"fluency"', '"style"', 1),
    lambda text: text.replace('"clarity": ', '"clarity": 1', 1),  # 15 out of 10
    lambda text: text.replace("}", ".5}", 1),
)


_SHORT_VERSION = "2"

_ELSEWHERE = ("The", 0.01)  # a word that is no answer, and how probable the judge finds it
_ONE_MARK = 0.25  # of the noise of a criterion is left where it is doubt, which one mark shows
_SUREST = 0.05  # rubric points: spread of a judge without noise
_IMPRESSIONS = ("useless", "poor", "middling", "good", "excellent")  # for two rubric points each
_EASE = 0.02, 0.3  # mean surprise per piece of the reason, in nats: of a sure judge, and added
_PIECES = re.compile(r"\s*\S+(?:\s\S+){0,4}")  # a token for five words keeps the tables small


def _findings(reading: checker.Reading, points: float, misread: list[float]) -> str:
    """Return a judge's findings in words; without its errors they are the truth.

    `points` is what the judge makes of the text as a whole, in rubric points; `misread` (6,) by how
    many rubric points it errs on each criterion.
    """
    shares = [points / (BEST - WORST) for points in misread]  # of a criterion
    off = dict(zip(CRITERIA, shares, strict=True))
    n_expected = reading.n_expected
    n_right = round(reading.n_right + off["helpfulness"] * n_expected)
    n_wrong = round(reading.n_wrong - off["factuality"] * n_expected)
    n_typos = round(reading.n_typos - off["fluency"] * checker.TYPOS_TO_ZERO)
    layout = (1.0 if reading.layout_kept else checker.BROKEN_LAYOUT) + off["adherence"]
    impression = _IMPRESSIONS[min(max(int(points - LOWEST_SCORE) // 2, 0), len(_IMPRESSIONS) - 1)]
    return (
        f"is {impression}, has {min(max(n_right, 0), n_expected)} of {n_expected} items right, "
        f"{max(n_wrong, 0)} wrong and {max(n_typos, 0)} typos, and "
        f"{'keeps' if layout > (1 + checker.BROKEN_LAYOUT) / 2 else 'breaks'} the format"
    )


def _write_odds(
    reason: str, words: Sequence[str], chances: list[float], said: int, rng: np.random.Generator
) -> str:
    """Return the tokens of an answer and their log-probabilities in an endpoint's format."""
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


_MALFORMED_WORDS: tuple[Callable[[str], str], ...] = (
    lambda text: text.partition("\n\n")[2],  # the reason only
    lambda text: "My answer is: " + text,
    lambda text: "-" + text,
    lambda text: text.replace("\n\n", " or rather B or 5\n\n", 1),
    lambda text: text.replace("\n\n", ".5\n\n", 1),
)
