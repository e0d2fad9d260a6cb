"""The form with two completions and one letter."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field
from scipy.special import expit

from judgeline.judges.forms.evidence import Tokens, choice_of, perplexity_of
from judgeline.judges.forms.form import Chances, Odds, Reading, ShortForm, ShortOptions
from judgeline.tables.judging import CHOICE_VERDICTS
from judgeline.verdict import CHOICES, LETTERS, ORDERS

_SHARE_OF_FIRST = dict(zip(LETTERS, (1.0, 0.5, 0.0), strict=True))
_TIE = 0.25  # rubric points to either side of equality between which a tie is likeliest


class ChoiceOptions(ShortOptions):
    """Options of the form that asks which of two completions is better.

    `tolerance` is delta in [0, 1] of the aggregation of both orders: a tie if the two largest
    masses differ by less than twice this.
    """

    tolerance: float = Field(default=0.0, ge=0, le=1, strict=True)


class ChoiceForm(ShortForm):
    """A for the completion shown first, B for the other, C for a tie; see `Form`.

    Its odds are the probabilities of first, tie and second, and what they cover.
    """

    name = "choice"
    table = CHOICE_VERDICTS
    options: ChoiceOptions = ChoiceOptions()
    usual_pattern = "[[{value}]]"
    usual_prompt = "mt-bench-pair.txt"
    stand_in = "one letter, A, B or C"

    def __init__(self, options: ChoiceOptions | None = None) -> None:
        super().__init__(options)
        self.kind = CHOICES if self.pattern is None else ORDERS
        self.again = self.ask_again("Compare the two responses")

    def value_schema(self) -> dict[str, Any]:
        """Return the JSON schema of a letter."""
        return {"type": "string", "enum": ["A", "B", "C"]}

    def likely(self, value: str, tokens: Tokens) -> Odds:
        """Return the probability of each letter, by the token of the letter."""
        likely = choice_of(tokens, value)
        return (*likely.probabilities.tolist(), likely.covered)

    def sampled(self, counts: Counter[Any], n_runs: int) -> Odds:
        """Return how often each letter came of a battle in one order."""
        n_letters = counts.total()
        return (*(counts[letter] / n_letters for letter in LETTERS), n_letters / n_runs)

    def chances(self, points: Sequence[float], spread: float) -> Chances:
        """Return the chances of the letters, ordered-logistic in how much better the first is."""
        ahead = points[0] - points[1]
        # of the logistic distribution with the spread of a difference
        steepness = math.pi / math.sqrt(3) / (spread * math.sqrt(2))
        first, second = (float(expit((sign * ahead - _TIE) * steepness)) for sign in (1, -1))
        return Chances(LETTERS, np.array([first, max(0.0, 1 - first - second), second]))

    def values(self, reading: Reading) -> tuple[Any, ...]:
        """Return A's share, the probabilities oriented to the models, and their evidence."""
        share = None if reading.value is None else _SHARE_OF_FIRST[reading.value]
        first, tie, second, covered = reading.odds or (math.nan,) * 4
        if reading.shown.order == "BA":
            share, first, second = None if share is None else 1 - share, second, first
        return share, first, tie, second, covered, perplexity_of(reading.tokens), reading.evidence
