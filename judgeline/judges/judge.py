"""Judges, and the identity of a call for ever."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, Protocol

from judgeline.judges.budget import Budget
from judgeline.judges.forms.form import Form, Reading
from judgeline.judges.presentation import Presentation
from judgeline.verdict import identity_hash, text_hash

Evidence = Literal["log-probabilities", "samples"]
"""Source of a judge's odds: the tokens of its answers, or counts of repeated runs."""


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
    def form(self) -> Form:
        """Form in which the judge was opened."""
        ...

    @property
    def evidence(self) -> Evidence:
        """Source of its odds."""
        ...

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Reading]]:
        """Yield answers, read as they come, each with the position of its presentation.

        Everything that is paid for is reserved in the budget before. A presentation goes without an
        answer only where the budget refused it; none gets two.
        """
        ...


_NAMED = {
    "prompt_version": "version",
    "template_hash": "template",
    "judge_model": "model",
    "judge_revision": "revision",
}
ORIGIN: tuple[str, ...] = (*_NAMED, "judge_identity")
"""What `origin_of` says of a judge; what the judge does not have is left out."""

_LONGEST_SETTING = 500
_TEXTS_AT_HAND = 4096


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
