"""The form with two completions and one letter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from judgeline.verdict import parse_choice, parse_choice_object
from resources.judges.calls import present
from resources.judges.forms.options import ChoiceOptions, FormName, template_file
from resources.judges.forms.structured import N_LISTED, object_format
from resources.judges.judge import Presentation
from resources.judges.live.prompt import PAIR, Wording

_VERSION = "1"
_TOKENS = 60


@dataclass(frozen=True)
class ChoiceForm:
    """A for the completion shown first, B for the other, C for a tie; see `Form`."""

    options: ChoiceOptions = field(default_factory=ChoiceOptions)
    name: FormName = "choice"
    wording: Wording = PAIR
    needs_alternatives: bool = True
    typical_tokens: int = _TOKENS

    @property
    def again(self) -> str:
        """What is asked after an answer without a letter."""
        said = "Compare the two responses again on your own judgement. "
        if self.options.structured:
            return said + "Answer with exactly the JSON object that was asked for."
        return said + (
            "Begin with a line that holds nothing but one letter, A, B or C, then give a short "
            "reason."
        )

    @property
    def identity(self) -> Mapping[str, str]:
        """The form and its version."""
        named = {"form": "choice", "form_version": _VERSION}
        return named | ({"answer": "json"} if self.options.structured else {})

    @property
    def template(self) -> str:
        """File of the prompt."""
        return template_file(self.options, "choice-json.txt")

    @property
    def key(self) -> str | None:
        """Where the value stands in the answer's JSON object; None if the answer begins with it."""
        return "choice" if self.options.structured else None

    @property
    def n_listed(self) -> int:
        """For how many tokens alternatives are kept: the value is among the first."""
        return N_LISTED if self.options.structured else 8

    @property
    def response_format(self) -> dict[str, Any] | None:
        """Constraint of an answer, if it is to be structured."""
        if not self.options.structured:
            return None
        return object_format("choice", {"type": "string", "enum": ["A", "B", "C"]})

    @property
    def samples(self) -> int:
        """How often a question is asked without log-probabilities."""
        return self.options.samples

    def present(self, battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
        """Return both orders of every battle."""
        return present(battles, n_replicates)

    def parse(self, text: str) -> str:
        """Return the letter that an answer begins with."""
        return parse_choice_object(text) if self.options.structured else parse_choice(text)

    def require_own(self, said: str, shown: Presentation) -> None:
        """Refuse nothing: a single letter may stand in any text."""
