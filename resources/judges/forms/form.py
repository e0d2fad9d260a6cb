"""A form of question: how battles are shown to a judge, and how its answer is read."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pandas as pd

from judgeline.verdict import RubricError
from resources.judges.forms.options import FormName
from resources.judges.judge import Answer, Presentation
from resources.judges.live.prompt import Wording


class Form(Protocol):
    """One form of question."""

    @property
    def name(self) -> FormName:
        """As `config/judges.yaml` calls it."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """What it adds to the identity of a judge; nothing for the rubric, the oldest form."""
        ...

    @property
    def template(self) -> str | None:
        """File of its prompt; None where the judge's own says it."""
        ...

    @property
    def wording(self) -> Wording:
        """What its prompt quotes and states."""
        ...

    @property
    def again(self) -> str:
        """The request after an answer that could not be read, less the reason."""
        ...

    @property
    def key(self) -> str | None:
        """Where the value that is read stands in a JSON object; None if the answer begins so."""
        ...

    @property
    def response_format(self) -> dict[str, Any] | None:
        """Constraint of an answer, for endpoints that honour one."""
        ...

    @property
    def samples(self) -> int:
        """How often a question is asked where the answer has no log-probabilities."""
        ...

    @property
    def needs_alternatives(self) -> bool:
        """Whether the probabilities of what the judge could have said are read."""
        ...

    @property
    def n_listed(self) -> int | None:
        """For how many tokens of an answer the alternatives are kept; None for all."""
        ...

    @property
    def typical_tokens(self) -> int:
        """Length of an answer, for estimates."""
        ...

    def present(self, battles: pd.DataFrame, n_replicates: int) -> Sequence[Presentation]:
        """Return what a judge is shown of battles."""
        ...

    def parse(self, text: str) -> Any:
        """Return what an answer says; RubricError with a class of failure if nothing."""
        ...

    def require_own(self, said: Any, shown: Presentation) -> None:
        """Raise RubricError if an answer repeats what stands in the texts."""
        ...


def read_answer(answer: Answer, form: Form) -> tuple[str, Any]:
    """Return ``ok`` and what an answer says, or its failure class and None."""
    if answer.failure is not None:
        return answer.failure, None
    try:
        return "ok", form.parse(answer.text or "")
    except RubricError as error:
        return error.failure_class, None
