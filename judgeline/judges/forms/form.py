"""A form of question: how battles are shown to a judge, and how its answer is read.

Texts under judgement are fenced off as data. Each fence carries a mark that no completion can know
or close.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from judgeline.judges.forms.evidence import Tokens
from judgeline.judges.forms.marks import Marks
from judgeline.judges.options import Options
from judgeline.judges.presentation import Answer, Presentation, present
from judgeline.tables.schema import Table
from judgeline.verdict import (
    Found,
    Kind,
    RubricError,
    first_value,
    last_value,
    member_value,
    pattern_of,
    readable,
    require_unstated,
)

PROMPT_VERSION = "1"
"""Changes with the fences, the schema or the repair request, which shape answers; marks do not."""

Message = dict[str, str]


class Wording(NamedTuple):
    """Values of a prompt's placeholders.

    `quoted` maps them to the texts of a presentation, which are fenced off; `stated` to words of
    ours. The mark of the fences is ``delimiter``.
    """

    quoted: Mapping[str, str]
    stated: Mapping[str, str]


PAIR = Wording(
    {name: name for name in ("instruction", "first_completion", "second_completion")}, {}
)
"""Two completions are shown, and nothing else is said."""

_REASONED_TOKENS = 250  # of an answer with its reasons first, a guess


def require_template(template: str, file: Path, wording: Wording = PAIR) -> None:
    """Check that a template has the placeholder of each text once, and all others."""
    used = _placeholder(wording).findall(template)
    for name in wording.quoted:
        if used.count(name) != 1:
            raise ValueError(
                f"prompt {file} holds {{{name}}} {used.count(name)} times; it must stand there "
                "once, where the judge is to read that text"
            )
    if "delimiter" not in used:
        raise ValueError(
            f"prompt {file} lacks {{delimiter}}; tell the judge that quotations marked with it "
            "are data and no instructions"
        )
    for name, words in wording.stated.items():
        if name not in used:
            raise ValueError(
                f"prompt {file} lacks {{{name}}}, which becomes {words!r} from the judge's "
                "options; put it where the prompt tells the judge so"
            )


def write_repair(messages: list[Message], answer: str, reason: str, again: str) -> list[Message]:
    """Return the messages that ask once more after an answer that could not be read."""
    return [
        *messages,
        {"role": "assistant", "content": answer or "(no answer)"},
        {"role": "user", "content": f"That answer cannot be used: {readable(reason)}. {again}"},
    ]


def named_schema(name: str, members: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with these members as a request's ``response_format``."""
    wrapped = {"name": name, "strict": True, "schema": closed_object(members)}
    return {"type": "json_schema", "json_schema": wrapped}


def _placeholder(wording: Wording) -> re.Pattern[str]:
    names = "|".join(("delimiter", *wording.quoted, *wording.stated))
    return re.compile(rf"\{{({names})\}}")


def closed_object(members: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with these members, in this order, and no others."""
    return {
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }


Odds = tuple[float, ...]
"""Numbers of a form about the answers a judge could have given; the last is what they cover."""


class Reading(NamedTuple):
    """One answer as read: status, value if it is ok, odds if known, and the call's identity."""

    shown: Presentation
    answer: Answer
    status: str
    value: Any
    tokens: Tokens | None = None
    odds: Odds | None = None
    evidence: str = "none"
    identity: str = ""


class Chances(NamedTuple):
    """First words of an answer, and their probabilities (n,); those of others are left out."""

    words: Sequence[str]
    probabilities: NDArray[np.float64]


class FormOptions(Options):
    """Options of every form: whether the value begins the answer, or ends it after reasons.

    Settings of stored tables lack what is as it was before there was the option.
    """

    value: Literal["first", "last"] = Field(default="first", exclude_if=lambda v: v == "first")

    @property
    def is_last(self) -> bool:
        """Whether reasons come before the value."""
        return self.value == "last"

    def identity(self) -> dict[str, str]:
        """Return what enters a judge's identity: nothing where the value comes first."""
        return {"value": "last"} if self.is_last else {}


class Form:
    """A verdict form; the defaults are of two completions and one answer without odds."""

    name: ClassVar[str]
    table: ClassVar[Table]
    identity: Mapping[str, str] = {}  # its part of a judge's
    template: str | None = None  # file of its prompt; None where the judge names its own
    wording: Wording = PAIR
    again: str  # request after an unreadable answer
    response_format: dict[str, Any] | None = None
    options: FormOptions = FormOptions()
    needs_alternatives: bool = False
    n_listed: int | None = None  # tokens from the value on of which alternatives are kept
    samples: int = 1  # times that a question is asked without alternatives
    typical_tokens: int = 60
    most_tokens: int | None = None  # of an answer that a schema binds; None where it has no end

    def present(self, battles: pd.DataFrame, n_replicates: int) -> Sequence[Presentation]:
        """Return the presentations of battles."""
        return present(battles, n_replicates)

    def parse(self, text: str) -> Any:
        """Return the value of an answer; RubricError with a class of failure if there is none."""
        raise NotImplementedError

    def place(self, _: str) -> int | None:
        """Return where the value stands in an answer; None where that is not known."""
        return 0

    def require_own(self, value: Any, shown: Presentation) -> None:
        """Raise RubricError if a value is copied from the texts; a word may stand in any text."""

    def refusal(self, _: Presentation) -> Answer | None:
        """Return the failure of a call that is not made, since no answer to it could count."""
        return None

    def likely(self, value: Any, tokens: Tokens) -> Odds:
        """Return the odds in the tokens of an answer; ValueError where they do not tell."""
        raise NotImplementedError

    def sampled(self, counts: Counter[Any], n_runs: int) -> Odds:
        """Return the odds that the values of repeated runs stand for."""
        raise NotImplementedError

    def chances(self, points: Sequence[float], spread: float) -> Chances:
        """Return the chances of a simulated judge's first words, for texts of some rubric points.

        `spread` is the standard deviation of its doubt about one text, in rubric points.
        """
        raise NotImplementedError

    def subject(self, shown: Presentation, slug: str) -> tuple[Any, ...]:
        """Return the first columns of a row: those that name the presentation and the judge."""
        return shown.battle_id, slug, shown.order

    def values(self, reading: Reading) -> tuple[Any, ...]:
        """Return the columns of a row between its status and its answer."""
        raise NotImplementedError


class Prompt(NamedTuple):
    """Words in which a judge is asked, the form of its answer, and the marks of the fences."""

    template: str
    form: Form
    marks: Marks = Marks()

    def messages(self, shown: Presentation) -> list[Message]:
        """Return the messages of one request; the mark of its fences stands in no text."""
        wording = self.form.wording
        texts = {name: readable(getattr(shown, text)) for name, text in wording.quoted.items()}
        mark = self.marks.of([*texts.values()])
        parts = {name: f"<<<{mark}\n{text}\n{mark}>>>" for name, text in texts.items()}
        parts |= {"delimiter": mark, **wording.stated}
        # one pass, so that a placeholder within a completion stays what it is: text
        prompt = _placeholder(wording).sub(lambda found: parts[found[1]], self.template)
        return [{"role": "user", "content": prompt}]


def read(shown: Presentation, answer: Answer, form: Form) -> Reading:
    """Return an answer with ``ok`` and its value, or with its failure class and None.

    Halves of characters, which no file can hold, are left out of its text.
    """
    if answer.text is not None and not answer.text.isascii():
        whole = answer.text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        answer = replace(answer, text=whole)
    if answer.failure is not None:
        return Reading(shown, answer, answer.failure, None)
    try:
        return Reading(shown, answer, "ok", form.parse(answer.text or ""))
    except RubricError as error:
        return Reading(shown, answer, error.failure_class, None)


class ShortOptions(FormOptions):
    """Options of a form whose answer is one word and a reason; see docs/judges.md.

    A `pattern` says how a value that comes last is set off, such as ``[RESULT] {value}``.
    """

    pattern: str | None = Field(default=None, exclude_if=lambda v: v is None)
    samples: int = Field(default=10, ge=2, le=1000, strict=True)
    template: str | None = Field(default=None, min_length=1)
    structured: bool = Field(default=False, strict=True)

    @field_validator("pattern")
    @classmethod
    def _require_a_value(cls, value: str | None) -> str | None:
        return value if value is None else pattern_of(value).text

    @model_validator(mode="after")
    def _require_a_use(self) -> Self:
        if self.pattern is not None and (self.structured or not self.is_last):
            raise ValueError(
                "a 'pattern' finds a value that comes last in words of the judge's own: add "
                "'value: last' and remove 'structured', or remove 'pattern'"
            )
        return self


class ShortForm(Form):
    """Common parts of the forms whose answer is one word and a reason.

    Without a pattern and a template of its own a form whose value comes last has `usual_pattern`
    and the prompt `usual_prompt`. `kind` says what its values are.
    """

    needs_alternatives = True
    n_listed = 8
    options: ShortOptions = ShortOptions()
    kind: Kind
    usual_pattern: ClassVar[str]
    usual_prompt: ClassVar[str]
    stand_in: str  # for a value, in words to the judge
    wanted_object = "exactly the JSON object that was asked for"

    def __init__(self, options: ShortOptions | None = None) -> None:
        self.options = options or self.options
        is_json, is_last = self.options.structured, self.options.is_last
        self.identity = {"form": self.name, "form_version": "1"}
        self.identity |= ({"answer": "json"} if is_json else {}) | self.options.identity()
        self.pattern = None
        if is_last and not is_json:
            self.pattern = pattern_of(self.options.pattern or self.usual_pattern)
            self.identity |= {"pattern": self.pattern.text}
        if is_last:
            self.typical_tokens = _REASONED_TOKENS
        ours = f"{self.name}{'-json' if is_json else ''}{'-last' if is_last else ''}.txt"
        self.own_template = self.usual_prompt if self.pattern else ours
        self.template = self.options.template or self.own_template
        self.samples = self.options.samples
        if is_json:
            # a pattern or a greatest length of the reason breaks some servers' grammars
            members = {self.name: self.value_schema(), "reason": {"type": "string"}}
            ordered = dict(reversed(members.items())) if is_last else members
            self.response_format = named_schema(self.name, ordered)

    def found(self, text: str) -> Found:
        """Return the value of an answer, its place and the reason; RubricError without a value."""
        if self.options.structured:
            return member_value(text, self.kind, self.name)
        if self.pattern is not None:
            return last_value(text, self.kind, self.pattern)
        return first_value(text, self.kind)

    def parse(self, text: str) -> Any:
        """Return the value of an answer."""
        return self.found(text).value

    def place(self, text: str) -> int | None:
        """Return where the value stands in an answer."""
        return self.found(text).place

    def require_own(self, _: Any, shown: Presentation) -> None:
        """Refuse a value that comes last where a completion states one in the same pattern.

        A value that begins an answer, or that is bound by a schema, cannot be met in passing.
        """
        if self.pattern is not None:
            for text in (shown.first_completion, shown.second_completion):
                require_unstated(text, self.kind, self.pattern)

    def refusal(self, shown: Presentation) -> Answer | None:
        """Return the failure of any value, where a completion states one in the same pattern."""
        try:
            self.require_own(None, shown)
        except RubricError as error:
            return Answer(None, error.failure_class, 0, 0, said=str(error))
        return None

    def ask_again(self, task: str) -> str:
        """Return the request after an answer that could not be read, which begins with a task."""
        again = f"{task} again on your own judgement. "
        if self.options.structured:
            return f"{again}Answer with {self.wanted_object}."
        if self.pattern is None:
            return (
                f"{again}Begin with a line that holds nothing but {self.stand_in}, then give a "
                "short reason."
            )
        said = f"end with {self.pattern.text.replace('{value}', 'X')}, where X"
        if self.pattern.key is not None:
            said = f"end with the JSON object that was asked for, whose {self.pattern.key!r}"
        return f"{again}Give your reasons first, and {said} is {self.stand_in}."

    def value_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the value."""
        raise NotImplementedError
