"""Judges of tests that are asked by the rubric."""

from collections.abc import Iterator, Sequence

from judgeline.judges.budget import Budget
from judgeline.judges.forms.form import Form, Reading, read
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.judge import Evidence
from judgeline.judges.presentation import Answer, Presentation


class ByRubric:
    """A judge that answers with marks, as its `replies` say; position by position."""

    form: Form = RUBRIC
    evidence: Evidence = "log-probabilities"

    def replies(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Answer]]:
        raise NotImplementedError

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Reading]]:
        for position, answer in self.replies(presentations, budget):
            yield position, read(presentations[position], answer, self.form)
