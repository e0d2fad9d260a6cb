"""Judges, their presentations and answers, and the identity of a call for ever."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Protocol

import pandas as pd

from judgeline.verdict import identity_hash, text_hash
from resources.judges.budget import Budget

if TYPE_CHECKING:
    from resources.judges.forms.form import Form, Reading

Evidence = Literal["log-probabilities", "samples"]
"""Source of a judge's odds: the tokens of its answers, or counts of repeated runs."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """One question with two completions in the order in which the judge sees them.

    Order ``AB`` shows model A's completion first; `replicate` counts repeated runs from 0. The
    model names are for simulations. `question_id` is of presentations with one completion, whose
    `battle_id` is the completion's.
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
    """Reply to a call: text, or a failure class, or the text of a failed answer; and tokens.

    `log_probabilities` is JSON, ``[[token, logprob, [[token, logprob], ...]], ...]``. The server
    named `reply_model` and `system_fingerprint`; `said` is its reason for a failure, without keys.
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

    One that has to know which failures are stored has a method ``acknowledge(stored)``, called
    before it is asked for them again, with the time of each by identity of the call.
    """

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything but the presentation that determines an answer."""
        ...

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

        Everything that is paid for is reserved in the budget before. A presentation goes without an
        answer only where the budget refused it; none gets two.
        """
        ...


ORDERS: tuple[str, str] = ("AB", "BA")

_NAMED = {
    "prompt_version": "version",
    "template_hash": "template",
    "judge_model": "model",
    "judge_revision": "revision",
}
ORIGIN: tuple[str, ...] = (*_NAMED, "judge_identity")
"""What `origin_of` says of a judge; what the judge does not have is left out."""

_TEXTS = ("instruction", "completion_a", "completion_b")
_LONGEST_SETTING = 500
_TEXTS_AT_HAND = 4096


def present(battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
    """Return every presentation of battles, in their order: replicates, then both orders."""
    require_texts(battles)
    columns = ["battle_id", "instruction", "completion_a", "completion_b", "model_a", "model_b"]
    return [
        Presentation(battle, order, replicate, question, *texts, *models)
        for battle, question, text_a, text_b, model_a, model_b in zip(
            *(battles[column].tolist() for column in columns), strict=True
        )
        for replicate in range(n_replicates)
        for order, texts, models in (
            ("AB", (text_a, text_b), (model_a, model_b)),
            ("BA", (text_b, text_a), (model_b, model_a)),
        )
    ]


def require_texts(battles: pd.DataFrame) -> None:
    """Raise ValueError if a battle lacks its question or a completion."""
    silent = battles[list(_TEXTS)].isna().any(axis=1)
    if silent.any():
        battle = battles.loc[silent, "battle_id"].iloc[0]
        raise ValueError(
            f"{int(silent.sum())} of {len(battles)} battles have no text to judge, the first is "
            f"{battle!r}; use a judge of kind 'recorded', or a corpus that publishes its texts"
        )


class Calls:
    """Identities and stored parts of a judge's calls; a text is written and hashed once."""

    def __init__(self, judge: Judge) -> None:
        own = {f"judge.{name}": value for name, value in judge.identity.items()}
        short = {k: text_hash(v) if len(v) > _LONGEST_SETTING else v for k, v in own.items()}
        self._whole = json.dumps(own, sort_keys=True, separators=(",", ":"))[1:-1]
        self._short = json.dumps(short, sort_keys=True)[1:-1]
        self._written = lru_cache(_TEXTS_AT_HAND)(json.dumps)
        self._hash = lru_cache(_TEXTS_AT_HAND)(text_hash)

    def identity(self, shown: Presentation) -> str:
        """Return the hash of everything that determines an answer: judge, texts in order, run."""
        write = self._written
        return text_hash(  # the parts by name, as `identity_hash` writes them
            f'{{"first_completion":{write(shown.first_completion)},"instruction":'
            f'{write(shown.instruction)},{self._whole},"replicate":"{shown.replicate}",'
            f'"second_completion":{write(shown.second_completion)}}}'
        )

    def parts(self, shown: Presentation) -> str:
        """Return as JSON the parts that an identity hashes, long ones by their own hash."""
        text = self._hash
        return (
            f'{{"first_completion": "{text(shown.first_completion)}", "instruction": '
            f'"{text(shown.instruction)}", {self._short}, "replicate": "{shown.replicate}", '
            f'"second_completion": "{text(shown.second_completion)}"}}'
        )


def call_identity(judge: Judge, presentation: Presentation) -> str:
    """Return the identity of one call."""
    return Calls(judge).identity(presentation)


def call_parts(judge: Judge, presentation: Presentation) -> dict[str, str]:
    """Return the parts that the identity of one call hashes."""
    parts: dict[str, str] = json.loads(Calls(judge).parts(presentation))
    return parts


def judge_key(judge: Judge) -> str:
    """Return the name under which a judge's answers are stored; another judge has another."""
    return identity_hash(judge.identity)[:32]


def origin_of(judge: Judge) -> dict[str, str]:
    """Return prompt, model, revision and identity of a judge, as recorded with its answers."""
    identity = judge.identity
    named = {name: identity.get(part, "") for name, part in _NAMED.items()}
    return {name: value for name, value in named.items() if value} | {
        "judge_identity": judge_key(judge)
    }
