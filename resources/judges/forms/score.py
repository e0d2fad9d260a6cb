"""The form with one completion and one number."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from judgeline.verdict import parse_score, parse_score_object
from resources.judges.forms.completions import completions_of, present_completions
from resources.judges.forms.options import FormName, ScoreOptions, template_file
from resources.judges.forms.structured import N_LISTED, object_format
from resources.judges.judge import Presentation
from resources.judges.live.prompt import Wording

_VERSION = "1"
_TOKENS = 60


@dataclass(frozen=True)
class ScoreForm:
    """One integer on a scale, then a reason; see `Form`."""

    options: ScoreOptions = field(default_factory=ScoreOptions)
    name: FormName = "score"
    needs_alternatives: bool = True
    typical_tokens: int = _TOKENS

    @property
    def scale(self) -> tuple[int, int]:
        """Lowest and highest number, in points of the judge's scale."""
        return self.options.scale

    @property
    def identity(self) -> Mapping[str, str]:
        """The form, its version and the scale."""
        low, high = self.scale
        named = {"form": "score", "form_version": _VERSION, "scale": f"{low} to {high}"}
        return named | ({"answer": "json"} if self.options.structured else {})

    @property
    def template(self) -> str:
        """File of the prompt."""
        return template_file(self.options, "score-json.txt")

    @property
    def key(self) -> str | None:
        """Where the value stands in the answer's JSON object; None if the answer begins with it."""
        return "score" if self.options.structured else None

    @property
    def n_listed(self) -> int:
        """For how many tokens alternatives are kept: the value is among the first."""
        return N_LISTED if self.options.structured else 8

    @property
    def response_format(self) -> dict[str, Any] | None:
        """Constraint of an answer, if it is to be structured."""
        if not self.options.structured:
            return None
        low, high = self.scale
        return object_format("score", {"type": "integer", "enum": list(range(low, high + 1))})

    @property
    def samples(self) -> int:
        """How often a question is asked without log-probabilities."""
        return self.options.samples

    @property
    def wording(self) -> Wording:
        """The request and one response are quoted, the ends of the scale stated."""
        low, high = self.scale
        return Wording(
            {"instruction": "instruction", "completion": "first_completion"},
            {"lowest": str(low), "highest": str(high)},
        )

    @property
    def again(self) -> str:
        """What is asked after an answer without a score."""
        low, high = self.scale
        said = "Grade the response again on your own judgement. "
        if self.options.structured:
            return said + f"Answer with the JSON object, its score an integer from {low} to {high}."
        return said + (
            f"Begin with a line that holds nothing but one integer from {low} to {high}, then "
            "give a short reason."
        )

    def present(self, battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
        """Return every completion of the battles, once per replicate."""
        return present_completions(completions_of(battles), n_replicates)

    def parse(self, text: str) -> int:
        """Return the number that an answer begins with."""
        parse = parse_score_object if self.options.structured else parse_score
        return parse(text, scale=self.scale)

    def require_own(self, said: int, shown: Presentation) -> None:
        """Refuse nothing: a single number may stand in any text."""
