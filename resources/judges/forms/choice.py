"""The form with two completions and one letter."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

from judgeline.verdict import LETTERS, parse_choice, parse_choice_object
from resources.judges.forms.evidence import Tokens, choice_of, perplexity_of
from resources.judges.forms.form import Odds, Reading, ShortForm
from resources.judges.forms.options import ChoiceOptions, FormName
from resources.tables.judging import CHOICE_VERDICTS
from resources.tables.schema import Table

_SHARE_OF_FIRST = dict(zip(LETTERS, (1.0, 0.5, 0.0), strict=True))


@dataclass(frozen=True)
class ChoiceForm(ShortForm):
    """A for the completion shown first, B for the other, C for a tie; see `Form`.

    Its odds are the probabilities of first, tie and second, and what they cover.
    """

    options: ChoiceOptions = field(default_factory=ChoiceOptions)
    name: FormName = "choice"
    table: ClassVar[Table] = CHOICE_VERDICTS

    @property
    def again(self) -> str:
        """The request after an answer without a letter."""
        request = "Compare the two responses again on your own judgement. "
        if self.options.structured:
            return request + "Answer with exactly the JSON object that was asked for."
        return request + (
            "Begin with a line that holds nothing but one letter, A, B or C, then give a short "
            "reason."
        )

    @property
    def value_schema(self) -> dict[str, Any]:
        """JSON schema of a letter."""
        return {"type": "string", "enum": ["A", "B", "C"]}

    def parse(self, text: str) -> str:
        """Return the letter that an answer begins with."""
        return parse_choice_object(text) if self.options.structured else parse_choice(text)

    def likely(self, value: str, tokens: Tokens) -> Odds:
        """Return the probability of each letter, by the token of the letter."""
        likely = choice_of(tokens, value)
        return (*likely.probabilities.tolist(), likely.covered)

    def sampled(self, counts: Counter[Any], n_runs: int) -> Odds:
        """Return how often each letter came of a battle in one order."""
        n_letters = counts.total()
        return (*(counts[letter] / n_letters for letter in LETTERS), n_letters / n_runs)

    def values(self, reading: Reading) -> tuple[Any, ...]:
        """Return A's share, the probabilities oriented to the models, and their evidence."""
        share = None if reading.value is None else _SHARE_OF_FIRST[reading.value]
        first, tie, second, covered = reading.odds or (math.nan,) * 4
        if reading.shown.order == "BA":
            share, first, second = None if share is None else 1 - share, second, first
        return share, first, tie, second, covered, perplexity_of(reading.tokens), reading.evidence
