"""The form with two completions and one letter."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from judgeline.short_answers import parse_choice
from resources.judges.calls import present
from resources.judges.forms.options import ChoiceOptions, FormName
from resources.judges.judge import Presentation
from resources.judges.served.prompt import PAIR, Wording

_VERSION = "1"
_TOKENS = 60


@dataclass(frozen=True)
class ChoiceForm:
    """A for the completion shown first, B for the other, C for a tie; see `Form`."""

    options: ChoiceOptions = field(default_factory=ChoiceOptions)
    name: FormName = "choice"
    wording: Wording = PAIR
    response_format: None = None
    needs_alternatives: bool = True
    n_listed: int = 8  # the letter is among the first
    typical_tokens: int = _TOKENS
    again: str = (
        "Compare the two responses again on your own judgement. Begin with a line that holds "
        "nothing but one letter, A, B or C, then give a short reason."
    )

    @property
    def identity(self) -> Mapping[str, str]:
        """The form and its version."""
        return {"form": "choice", "form_version": _VERSION}

    @property
    def template(self) -> str:
        """File of the prompt."""
        return self.options.template

    @property
    def samples(self) -> int:
        """How often a question is asked without log-probabilities."""
        return self.options.samples

    def present(self, battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
        """Return both orders of every battle."""
        return present(battles, n_replicates)

    def parse(self, text: str) -> str:
        """Return the letter that an answer begins with."""
        return parse_choice(text)

    def require_own(self, said: str, shown: Presentation) -> None:
        """Refuse nothing: a single letter may stand in any text."""
