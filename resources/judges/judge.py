"""The judge protocol: a judge is shown two completions and answers in text.

Simulated and served judges stand behind the same protocol, so that what reads their answers
cannot tell them apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from resources.judges.budget import Budget

if TYPE_CHECKING:
    from resources.judges.forms.form import Form, Reading

Evidence = Literal["log-probabilities", "samples"]
"""Source of a judge's odds: the tokens of its answers, or counts of repeated runs."""

FAILURES: tuple[str, ...] = (
    "parse_error",
    "echo",
    "refusal",
    "truncated",
    "context_overflow",
    "transport",
    "content_filter",
    "tool_call",
    "other_model",
)
"""Every class of a failed answer; the status of any other is ``ok``."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """One question with two completions in the order in which the judge sees them.

    Order ``AB`` shows model A's completion first; `replicate` counts repeated runs from 0. The
    model names are for simulations and never shown to a served judge. `question_id` is of
    presentations with one completion, whose `battle_id` is the completion's.
    """

    battle_id: str
    order: str
    replicate: int
    instruction: str
    first_completion: str
    second_completion: str
    first_model: str
    second_model: str
    question_id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: text, or a failure class, or the text of a failed answer; and tokens.

    `log_probabilities` is JSON, ``[[token, logprob, [[token, logprob], ...]], ...]``, where they
    were asked for. `reply_model` and `system_fingerprint` are the names that the server gave of
    what answered; `said` is the server's reason for a failure, without keys.
    """

    text: str | None
    failure: str | None
    prompt_tokens: int
    completion_tokens: int
    log_probabilities: str | None = None
    reply_model: str | None = None
    system_fingerprint: str | None = None
    said: str | None = None


class Judge(Protocol):
    """A judge ready to answer.

    `identity` names everything but the presentation that determines an answer, as text. One that
    has to know which failures are stored has a method ``acknowledge(stored)``, called before it is
    asked for them again, with the time of each by identity of the call.
    """

    identity: Mapping[str, str]

    @property
    def form(self) -> "Form":
        """Form in which the judge was opened."""
        ...

    @property
    def evidence(self) -> Evidence:
        """Source of its odds."""
        ...

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, "Reading"]]:
        """Yield answers, read as they come, each with the position of its presentation.

        Everything that is paid for is reserved in the budget before it is asked, and settled
        after. A presentation goes without an answer only where the budget refused it; none
        gets two.
        """
        ...
