"""The form with two completions and six marks for each."""

import json
from typing import Any

from judgeline.judges.forms.form import Form, Reading, closed_object, named_schema
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


class RubricForm(Form):
    """The rubric, the oldest form: it has no part in a judge's identity, and no odds."""

    name = "rubric"
    table = VERDICTS
    again = (
        "Grade the two responses again on your own judgement. Begin with exactly the JSON object "
        f"that was asked for, all twelve grades integers from {LOWEST_SCORE} to {HIGHEST_SCORE}, "
        "with nothing before it."
    )
    response_format = named_schema("rubric", dict.fromkeys(RESPONSES, _MARKS))
    typical_tokens = 110  # twelve keys and scores
    # a token is a byte at least, and no usual layout has more of them; then the turn ends
    most_tokens = len(json.dumps(_LONGEST, indent=4)) + _OF_THE_END

    def parse(self, text: str) -> Rubric:
        """Return the marks that an answer begins with."""
        return parse_answer(text)

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
