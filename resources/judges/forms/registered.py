"""The registered verdict forms, and each as a judge's definition declares it."""

from collections.abc import Callable
from typing import Any

from resources.judges.forms.choice import ChoiceForm
from resources.judges.forms.form import Form
from resources.judges.forms.options import FormName
from resources.judges.forms.rubric import RUBRIC
from resources.judges.forms.score import ScoreForm
from resources.tables.schema import Table

_CLASSES: dict[FormName, Callable[..., Form]] = {
    "rubric": lambda: RUBRIC,
    "score": ScoreForm,
    "choice": ChoiceForm,
}

FORM_TABLES: dict[FormName, Table] = {name: kind().table for name, kind in _CLASSES.items()}
"""Table of each form's answers, in the order in which the forms are asked."""


def form_with(name: FormName, definition: Any) -> Form:
    """Return a form with the options that a judge's definition has under its name, if any."""
    options = getattr(definition, name, None)
    return _CLASSES[name]() if options is None else _CLASSES[name](options)
