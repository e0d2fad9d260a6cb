"""The form with one completion and one number."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from judgeline.short_answers import parse_score
from resources.judges.forms.completions import completions_of, present_completions
from resources.judges.forms.options import FormName, ScoreOptions
from resources.judges.judge import Presentation
from resources.judges.served.prompt import Wording

_VERSION = "1"
_TOKENS = 60


@dataclass(frozen=True)
class ScoreForm:
    """One integer on a scale, then a reason; see `Form`."""

    options: ScoreOptions = field(default_factory=ScoreOptions)
    name: FormName = "score"
    response_format: None = None
    needs_alternatives: bool = True
    n_listed: int = 8  # the number is in the first few
    typical_tokens: int = _TOKENS

    @property
    def scale(self) -> tuple[int, int]:
        """Lowest and highest number, in points of the judge's scale."""
        return self.options.scale

    @property
    def identity(self) -> Mapping[str, str]:
        """The form, its version and the scale."""
        low, high = self.scale
        return {"form": "score", "form_version": _VERSION, "scale": f"{low} to {high}"}

    @property
    def template(self) -> str:
        """File of the prompt."""
        return self.options.template

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
        return (
            "Grade the response again on your own judgement. Begin with a line that holds nothing "
            f"but one integer from {low} to {high}, then give a short reason."
        )

    def present(self, battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
        """Return every completion of the battles, once per replicate."""
        return present_completions(completions_of(battles), n_replicates)

    def parse(self, text: str) -> int:
        """Return the number that an answer begins with."""
        return parse_score(text, scale=self.scale)

    def require_own(self, said: int, shown: Presentation) -> None:
        """Refuse nothing: a single number may stand in any text."""
