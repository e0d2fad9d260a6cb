"""The form with two completions and six marks for each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from judgeline.io import SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.verdict import Rubric, parse_answer, require_own_scores
from resources.judges.calls import present
from resources.judges.forms.form import Odds, Reading
from resources.judges.forms.options import FormName
from resources.judges.judge import Presentation
from resources.judges.live.prompt import MARKS_AGAIN, PAIR, Wording, answer_format

_NO_MARKS = (None,) * len(SCORE_COLUMNS)


@dataclass(frozen=True)
class RubricForm:
    """The rubric; see `Form`."""

    name: FormName = "rubric"
    identity: Mapping[str, str] = field(default_factory=dict)
    template: str | None = None
    wording: Wording = PAIR
    again: str = MARKS_AGAIN
    samples: int = 1
    needs_alternatives: bool = False
    key: None = None
    n_listed: int | None = None
    typical_tokens: int = 110  # twelve keys and scores
    dtypes: Mapping[str, str] = field(default_factory=lambda: VERDICT_DTYPES)

    @property
    def response_format(self) -> dict[str, Any]:
        """JSON schema of the marks."""
        return answer_format()

    def present(self, battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
        """Return both orders of every battle."""
        return present(battles, n_replicates)

    def parse(self, text: str) -> Rubric:
        """Return the marks that an answer begins with."""
        return parse_answer(text)

    def require_own(self, value: Rubric, shown: Presentation) -> None:
        """Refuse marks that stand written in the texts under judgement."""
        one, two = shown.first_completion, shown.second_completion
        require_own_scores(value, one + two + one, shown.instruction)

    def likely(self, *_: Any) -> Odds:
        """Refuse: twelve marks have no odds."""
        raise ValueError("the odds of twelve marks are not read")

    sampled = likely

    def subject(self, shown: Presentation, slug: str) -> tuple[Any, ...]:
        """Return battle, judge and order."""
        return shown.battle_id, slug, shown.order

    def values(self, reading: Reading) -> tuple[Any, ...]:
        """Return the marks, oriented to the models, and no published outcome."""
        if reading.value is None:
            return (*_NO_MARKS, None)
        first, second = reading.value
        return (*second, *first, None) if reading.shown.order == "BA" else (*first, *second, None)


RUBRIC = RubricForm()
