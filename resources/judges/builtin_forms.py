"""Simulated judges asked for one word: a score of one completion, or a choice between two.

The judge is the one that grades by the rubric, with its lasting opinions, biases and failures.
It has a probability for every word that it could have said, says one of them drawn by these
probabilities, and gives a reason in one sentence.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.identity import text_hash
from judgeline.rubric import HIGHEST_SCORE, LOWEST_SCORE
from judgeline.short_answers import LETTERS
from judgeline.streams import keyed_rng
from resources.arena.checker import Reading
from resources.judges.budget import Budget, Cost
from resources.judges.builtin import BEST, WORST, BuiltinJudge, spoilt
from resources.judges.forms.choice import ChoiceForm
from resources.judges.forms.score import ScoreForm
from resources.judges.judge import Answer, Presentation

LISTED = 12
"""Tokens whose probabilities an answer tells, at its first place; endpoints tell 5 to 20."""

_ELSEWHERE = ("The", 0.01)  # a word that is no answer, and how probable the judge finds it
_LEAST = 1e-9  # less probable words are not listed
_ONE_MARK = 0.25  # of the noise of a criterion is left where it is doubt, which one mark shows
_TIE = 0.25  # rubric points to either side of equality between which a tie is likeliest
_SUREST = 0.05  # rubric points: spread of a judge without noise
_EASE = 0.02, 0.3  # mean surprise per piece of the reason, in nats: of a sure judge, and added
_PIECES = re.compile(r"\s*\S+(?:\s\S+){0,4}")  # a token for five words keeps the tables small

Floats = NDArray[np.float64]
Opinion = tuple[Reading, float]


class Odds(NamedTuple):
    """Words that a judge may say first, and their probabilities; those of others are left out."""

    words: Sequence[str]
    probabilities: Floats


class BuiltinFormJudge:
    """A simulated judge asked in another form than the rubric.

    Parameters
    ----------
    judge : BuiltinJudge
        The judge, as it grades by the rubric.
    form : ScoreForm or ChoiceForm
        What it is asked.
    template : str
        The instruction that a real judge would be given; part of the identity.

    Raises
    ------
    ValueError
        If numbers of the scale have more digits than a token.
    """

    evidence = "log-probabilities"

    def __init__(self, judge: BuiltinJudge, form: ScoreForm | ChoiceForm, template: str) -> None:
        self._scale = form.scale if isinstance(form, ScoreForm) else None
        if isinstance(form, ScoreForm) and len(str(form.scale[1])) > form.options.digits_per_token:
            raise ValueError(
                f"simulated judges say a number in one token, and {form.scale[1]} has more than "
                f"{form.options.digits_per_token} digits; raise score.digits_per_token"
            )
        self.identity: Mapping[str, str] = {
            **judge.identity,
            "template": text_hash(template),
            **form.identity,
        }
        self.form = form
        self._judge = judge
        self._template_tokens = len(template.split())

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Answer]]:
        """Yield one answer per presentation, in their order, until the budget is spent.

        Tokens are words, so that budgets can be tried out; money it costs none.

        Raises
        ------
        ValueError
            If an instruction is none of the arena's.
        """
        known: dict[tuple[str, str], Opinion] = {}
        for position, shown in enumerate(presentations):
            opinions = []
            for text in self._texts(shown):
                key = (shown.instruction, text)
                if key not in known:
                    known[key] = self._judge.opinion(shown, text)
                opinions.append(known[key])
            rng = self._rng(shown)
            answer = self._say(shown, *self._odds(opinions, rng), rng)
            if not budget.spend(Cost(1, answer.prompt_tokens, answer.completion_tokens)):
                return
            yield position, answer

    def _texts(self, shown: Presentation) -> list[str]:
        pair = [shown.first_completion, shown.second_completion]
        return pair if self._scale is None else pair[:1]

    def _rng(self, shown: Presentation) -> np.random.Generator:
        names = (self.form.name, shown.instruction, *self._texts(shown))
        return keyed_rng(self._judge.traits.seed, self._judge.key, *names, str(shown.replicate))

    def _odds(self, opinions: list[Opinion], rng: np.random.Generator) -> tuple[Odds, str]:
        mood = self._judge.traits.mood * rng.standard_normal(len(opinions))
        if self._scale is None:
            return self._choose(*opinions, float(mood[0] - mood[1]))
        return self._score(*opinions, float(mood[0]), self._scale)

    def _score(self, opinion: Opinion, mood: float, scale: tuple[int, int]) -> tuple[Odds, str]:
        """Return a discretised normal around what the judge makes of a text, and its reason."""
        spread = max(_SUREST, _ONE_MARK * self._judge.traits.noise)
        odds = score_odds(_points(opinion) + mood, spread, scale)
        return odds, f"The response {_findings(opinion[0])}."

    def _choose(self, first: Opinion, second: Opinion, mood: float) -> tuple[Odds, str]:
        """Return ordered-logistic odds of the difference that the judge sees, and its reason."""
        traits = self._judge.traits
        longer = math.log2(max(first[0].n_words, 1) / max(second[0].n_words, 1))
        ahead = _points(first) - _points(second) + mood
        ahead += traits.position_bias + traits.verbosity_bias * longer
        spread = max(_SUREST, _ONE_MARK * traits.noise) * math.sqrt(2)
        reason = f"Response A {_findings(first[0])}, response B {_findings(second[0])}."
        return choice_odds(ahead, spread), reason

    def _say(
        self, shown: Presentation, odds: Odds, reason: str, rng: np.random.Generator
    ) -> Answer:
        ladder = np.cumsum(odds.probabilities)
        said = int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right"))
        whole = f"{odds.words[said]}\n\n{reason}"
        text, failure = spoilt(whole, self._judge.traits, rng, _MALFORMED)
        tokens = _write_odds(reason, odds, said, rng) if text == whole else None
        texts = (shown.instruction, *self._texts(shown))
        asked = self._template_tokens + sum(len(part.split()) for part in texts)
        return Answer(text, failure, asked, len(text.split()), tokens)


def score_odds(points: float, spread: float, scale: tuple[int, int]) -> Odds:
    """Return the odds of the likeliest numbers of a scale for a text.

    Parameters
    ----------
    points : float
        What the judge makes of the text, in rubric points; it may lie off their scale.
    spread : float
        Standard deviation of the judge's doubt, in rubric points.
    scale : (int, int)
        Lowest and highest number.

    Returns
    -------
    Odds
        At most `LISTED` numbers of a normal distribution on the scale, likeliest first.
    """
    low, high = scale
    unit = (high - low) / (HIGHEST_SCORE - LOWEST_SCORE)
    numbers = np.arange(low, high + 1)
    centre = np.clip(low + (points - LOWEST_SCORE) * unit, low, high)
    density = np.exp(-0.5 * ((numbers - centre) / max(spread * unit, 0.5)) ** 2)
    density /= density.sum()
    likeliest = np.argsort(-density, kind="stable")[: LISTED - 1]
    return Odds([str(number) for number in numbers[likeliest]], density[likeliest])


def choice_odds(ahead: float, spread: float) -> Odds:
    """Return the odds of the answer shown first, a tie, and the answer shown second.

    Parameters
    ----------
    ahead : float
        How much better the judge finds the answer shown first, in rubric points.
    spread : float
        Standard deviation of its doubt, in rubric points.
    """
    steepness = math.pi / math.sqrt(3) / spread  # of the logistic distribution with this spread
    first, second = (float(expit((sign * ahead - _TIE) * steepness)) for sign in (1, -1))
    return Odds(LETTERS, np.array([first, max(0.0, 1 - first - second), second]))


def _points(opinion: Opinion) -> float:
    """Return what a judge makes of a text, all criteria alike, in rubric points."""
    reading, liking = opinion
    return WORST + (BEST - WORST) * sum(reading.levels) / len(reading.levels) + liking


def _findings(reading: Reading) -> str:
    return (
        f"has {reading.n_right} of {reading.n_expected} items right, {reading.n_wrong} wrong and "
        f"{reading.n_typos} typos, and {'keeps' if reading.layout_kept else 'breaks'} the format"
    )


def _write_odds(reason: str, odds: Odds, said: int, rng: np.random.Generator) -> str:
    """Return the tokens of an answer and their log-probabilities as an endpoint tells them.

    The reason is the more surprising to the judge, the less sure it is of its first word.
    """
    other, stray = _ELSEWHERE
    chances = [(word, (1 - stray) * p) for word, p in zip(*odds, strict=True)] + [(other, stray)]
    listed = sorted(
        ((word, round(math.log(p), 6)) for word, p in chances if p >= _LEAST),
        key=lambda one: -one[1],
    )
    word, own = chances[said]
    sure, added = _EASE
    surprise = sure + added * (1 - float(odds.probabilities.max()))
    rest = ["\n\n", *_PIECES.findall(reason)]
    ease = np.round(-surprise * rng.standard_exponential(len(rest)), 6).tolist()
    tokens = [[word, round(math.log(own), 6), listed]]
    tokens += [[token, own, []] for token, own in zip(rest, ease, strict=True)]
    return json.dumps(tokens)


_MALFORMED: tuple[Callable[[str], str], ...] = (
    lambda text: text.partition("\n\n")[2],  # the reason only
    lambda text: "My answer is: " + text,
    lambda text: "-" + text,
    lambda text: text.replace("\n\n", " or rather B or 5\n\n", 1),
    lambda text: text.replace("\n\n", ".5\n\n", 1),
)
