"""The form with two completions and six marks for each."""

import json
from typing import Any

from judgeline.judges.forms.form import (
    Form,
    FormOptions,
    Reading,
    closed_object,
    named_schema,
)
from judgeline.judges.presentation import Presentation
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.tables.judging import VERDICTS
from judgeline.verdict import (
    CRITERIA,
    HIGHEST_SCORE,
    LOWEST_SCORE,
    RESPONSES,
    Rubric,
    parse_answer,
    require_own_scores,
)

_NO_MARKS = (None,) * len(SCORE_COLUMNS)
_MARK = {"type": "integer", "enum": list(range(LOWEST_SCORE, HIGHEST_SCORE + 1))}
_MARKS = closed_object(dict.fromkeys(CRITERIA, _MARK))
_LONGEST = dict.fromkeys(RESPONSES, dict.fromkeys(CRITERIA, HIGHEST_SCORE))
_OF_THE_END = 16  # tokens
_GRADED = dict.fromkeys(RESPONSES, _MARKS)
_REASONED = named_schema("rubric", {"reason": {"type": "string"}, **_GRADED})
_REASONED_TOKENS = 400  # of marks after their reasons, a guess


class RubricForm(Form):
    """The rubric, the oldest form: its marks first, it has no part in a judge's identity.

    It has no odds. Marks that come last follow a ``reason`` in their object, or words before it.
    """

    name = "rubric"
    table = VERDICTS
    response_format = named_schema("rubric", _GRADED)
    typical_tokens = 110  # twelve keys and scores
    # a token is a byte at least, and no usual layout has more of them; then the turn ends
    most_tokens: int | None = len(json.dumps(_LONGEST, indent=4)) + _OF_THE_END

    def __init__(self, options: FormOptions | None = None) -> None:
        self.options = options or self.options
        self.identity = self.options.identity()
        where = "Begin with exactly", "with nothing before it"
        if self.options.is_last:
            where = "Give your reasons first, and end with exactly", "with nothing after it"
            self.response_format, self.typical_tokens = _REASONED, _REASONED_TOKENS
            self.most_tokens = None  # reasons have no end
        self.again = (
            f"Grade the two responses again on your own judgement. {where[0]} the JSON object that "
            f"was asked for, all twelve grades integers from {LOWEST_SCORE} to {HIGHEST_SCORE}, "
            f"{where[1]}."
        )

    def parse(self, text: str) -> Rubric:
        """Return the marks that an answer begins or ends with."""
        return parse_answer(text, is_last=self.options.is_last)

    def require_own(self, value: Rubric, shown: Presentation) -> None:
        """Refuse marks that stand written in the texts under judgement."""
        one, two = shown.first_completion, shown.second_completion
        require_own_scores(value, one + two + one, shown.instruction)

    def values(self, reading: Reading) -> tuple[Any, ...]:
        """Return the marks, oriented to the models, and no published outcome."""
        if reading.value is None:
            return (*_NO_MARKS, None)
        first, second = reading.value
        return (*second, *first, None) if reading.shown.order == "BA" else (*first, *second, None)


RUBRIC = RubricForm()
