"""A form of question: how battles are shown to a judge, and how its answer is read."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pandas as pd

from judgeline.verdict import RubricError
from resources.judges.forms.evidence import Tokens
from resources.judges.forms.options import ChoiceOptions, FormName, ScoreOptions, template_file
from resources.judges.judge import Answer, Presentation
from resources.judges.live.prompt import Wording, closed_object, named_schema

Odds = tuple[float, ...]
"""Numbers of a form about the answers a judge could have given; the last is what they cover."""

ANSWER_DTYPES: dict[str, str] = {
    "answer": "str",
    "log_probabilities": "str",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "identity": "str",
    "reply_model": "str",
    "system_fingerprint": "str",
    "said": "str",
}
"""Last columns of every table of verdicts, and their types."""


class Reading(NamedTuple):
    """One answer as read: its status, its value if it is ok, and the odds behind it if known."""

    shown: Presentation
    answer: Answer
    status: str
    value: Any
    tokens: Tokens | None = None
    odds: Odds | None = None
    evidence: str = "none"


class Form(Protocol):
    """One form of question."""

    @property
    def name(self) -> FormName:
        """Name in `config/judges.yaml`."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """Part of a judge's identity; empty for the rubric, the oldest form."""
        ...

    @property
    def template(self) -> str | None:
        """File of the prompt; None where the judge names its own."""
        ...

    @property
    def wording(self) -> Wording:
        """Texts that the prompt quotes and states."""
        ...

    @property
    def again(self) -> str:
        """The request after an answer that could not be read, less the reason."""
        ...

    @property
    def key(self) -> str | None:
        """Key of the value in an answer in JSON; None if the answer begins with the value."""
        ...

    @property
    def response_format(self) -> dict[str, Any] | None:
        """Constraint of an answer, for endpoints that honour one."""
        ...

    @property
    def samples(self) -> int:
        """Runs of a question where the answers have no log-probabilities."""
        ...

    @property
    def needs_alternatives(self) -> bool:
        """Whether odds are read from the log-probabilities of alternatives."""
        ...

    @property
    def n_listed(self) -> int | None:
        """For how many tokens of an answer the alternatives are kept; None for all."""
        ...

    @property
    def typical_tokens(self) -> int:
        """Length of an answer, for estimates."""
        ...

    @property
    def dtypes(self) -> Mapping[str, str]:
        """Columns of the form's table and their types."""
        ...

    def present(self, battles: pd.DataFrame, n_replicates: int) -> Sequence[Presentation]:
        """Return the presentations of battles."""
        ...

    def parse(self, text: str) -> Any:
        """Return the value of an answer; RubricError with a class of failure if there is none."""
        ...

    def require_own(self, value: Any, shown: Presentation) -> None:
        """Raise RubricError if a value is copied from the texts under judgement."""
        ...

    def likely(self, value: Any, tokens: Tokens) -> Odds:
        """Return the odds in the tokens of an answer; ValueError where they do not tell."""
        ...

    def sampled(self, counts: Counter[Any], n_runs: int) -> Odds:
        """Return the odds that the values of repeated runs stand for."""
        ...

    def subject(self, shown: Presentation, slug: str) -> tuple[Any, ...]:
        """Return the first columns of a row: those that name the presentation and the judge."""
        ...

    def values(self, reading: Reading) -> tuple[Any, ...]:
        """Return the columns of a row between its status and its answer."""
        ...


def read_answer(answer: Answer, form: Form) -> tuple[str, Any]:
    """Return ``ok`` and the value of an answer, or its failure class and None."""
    if answer.failure is not None:
        return answer.failure, None
    try:
        return "ok", form.parse(answer.text or "")
    except RubricError as error:
        return error.failure_class, None


class ShortForm:
    """Common parts of the forms whose answer is one word and a reason."""

    name: FormName
    options: ScoreOptions | ChoiceOptions
    needs_alternatives = True
    typical_tokens = 60

    @property
    def identity(self) -> Mapping[str, str]:
        """Form, version and, where answers are objects, that they are."""
        named = {"form": self.name, "form_version": "1"}
        return named | ({"answer": "json"} if self.options.structured else {})

    @property
    def template(self) -> str:
        """File of the prompt."""
        return template_file(self.options, f"{self.name}-json.txt")

    @property
    def key(self) -> str | None:
        """Key of the value in an answer in JSON."""
        return self.name if self.options.structured else None

    @property
    def n_listed(self) -> int:
        """Tokens with alternatives: in JSON a brace, a key and quotes come before the value."""
        return 16 if self.options.structured else 8

    @property
    def samples(self) -> int:
        """Runs of a question without log-probabilities."""
        return self.options.samples

    @property
    def value_schema(self) -> dict[str, Any]:
        """JSON schema of the value."""
        raise NotImplementedError

    @property
    def response_format(self) -> dict[str, Any] | None:
        """Constraint to the value and then the reason, if answers are to be structured."""
        if not self.options.structured:
            return None
        reason = {"type": "string"}  # a pattern or a greatest length breaks some servers' grammars
        members = {self.name: self.value_schema, "reason": reason}
        return named_schema(self.name, closed_object(members))

    def require_own(self, value: Any, shown: Presentation) -> None:
        """Refuse nothing: a single word may stand in any text."""
