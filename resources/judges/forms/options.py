"""Options of verdict forms in `config/judges.yaml`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, field_validator

FormName = Literal["rubric", "score", "choice"]

_HIGHEST = 1_000_000


class ScoreOptions(BaseModel):
    """Options of the form that asks for one number about one completion.

    Attributes
    ----------
    scale : (int, int)
        Lowest and highest number it may say, in points of the judge's own scale.
    digits_per_token : int
        Most digits that the judge's tokenizer puts in one token: 1 where "87" is "8", "7".
    samples : int
        How often each question is asked where there are no log-probabilities.
    template : str
        The prompt: a file in the configuration's ``prompts``, or an absolute path.
    structured : bool
        Ask for a JSON object that the endpoint enforces, for judges that do not keep to a form.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scale: tuple[StrictInt, StrictInt] = (1, 100)
    digits_per_token: int = Field(default=3, ge=1, le=9, strict=True)
    samples: int = Field(default=10, ge=2, le=1000, strict=True)
    template: str = Field(default="score.txt", min_length=1)
    structured: bool = Field(default=False, strict=True)

    @field_validator("scale")
    @classmethod
    def _require_ascent(cls, value: tuple[int, int]) -> tuple[int, int]:
        low, high = value
        if not 0 <= low < high <= _HIGHEST:
            raise ValueError(
                f"a scale is two ascending whole numbers from 0 to {_HIGHEST}, such as [1, 100]"
            )
        return value


class ChoiceOptions(BaseModel):
    """Options of the form that asks which of two completions is better.

    Attributes
    ----------
    tolerance : float
        Delta in [0, 1] of the aggregation of both orders: a tie if the two largest masses differ
        by less than twice this.
    samples : int
        How often each question is asked where there are no log-probabilities.
    template : str
        The prompt: a file in the configuration's ``prompts``, or an absolute path.
    structured : bool
        Ask for a JSON object that the endpoint enforces, for judges that do not keep to a form.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tolerance: float = Field(default=0.0, ge=0, le=1, strict=True)
    samples: int = Field(default=10, ge=2, le=1000, strict=True)
    template: str = Field(default="choice.txt", min_length=1)
    structured: bool = Field(default=False, strict=True)


def template_file(options: ScoreOptions | ChoiceOptions, structured: str) -> str:
    """Return the prompt's file: the one named, or else that of plain or structured answers."""
    is_named = "template" in options.model_fields_set
    return structured if options.structured and not is_named else options.template
