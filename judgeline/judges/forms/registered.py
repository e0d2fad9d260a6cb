"""The registered verdict forms, and how a judge's definition declares them."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from judgeline.judges.forms.choice import ChoiceForm, ChoiceOptions
from judgeline.judges.forms.form import Form, FormOptions
from judgeline.judges.forms.rubric import RubricForm
from judgeline.judges.forms.score import ScoreForm, ScoreOptions
from judgeline.tables.schema import Table

FORMS: dict[str, type[Form]] = {form.name: form for form in (RubricForm, ScoreForm, ChoiceForm)}
"""Each form by its name, in the order in which they are asked."""

FORM_TABLES: dict[str, Table] = {name: form.table for name, form in FORMS.items()}
if TYPE_CHECKING:
    FormName = str
else:
    FormName = Literal[tuple(FORMS)]


class AskedForms(BaseModel):
    """Forms in which a judge is asked, and under the name of a form its options, if it has any."""

    asks: tuple[FormName, ...] = Field(default=("rubric",), min_length=1)
    rubric: FormOptions = Field(default=FormOptions(), exclude_if=lambda v: not v.is_last)
    score: ScoreOptions = ScoreOptions()
    choice: ChoiceOptions = ChoiceOptions()

    @property
    def form_options(self) -> dict[str, FormOptions]:
        """Options by form."""
        return {name: getattr(self, name) for name in FORMS if name in AskedForms.model_fields}


def form_with(name: FormName, definition: Any = None) -> Form:
    """Return a form with the options that a judge's definition has under its name, if any."""
    options = getattr(definition, name, None)
    return FORMS[name]() if options is None else FORMS[name](options)  # type: ignore[call-arg]
