"""Which form a judge is asked in, how often, and where its probabilities come from."""

from typing import Literal, cast

from resources.judges.forms.choice import ChoiceForm
from resources.judges.forms.form import Form
from resources.judges.forms.options import ChoiceOptions, FormName, ScoreOptions
from resources.judges.forms.rubric import RUBRIC
from resources.judges.forms.score import ScoreForm
from resources.judges.judge import Judge

Evidence = Literal["log-probabilities", "samples"]


def make_form(
    name: FormName, *, score: ScoreOptions | None = None, choice: ChoiceOptions | None = None
) -> Form:
    """Return a form with its options, or their defaults."""
    if name == "score":
        return ScoreForm(score or ScoreOptions())
    if name == "choice":
        return ChoiceForm(choice or ChoiceOptions())
    return RUBRIC


def form_of(judge: Judge) -> Form:
    """Return the form in which a judge was opened; the rubric for one that says nothing."""
    return cast(Form, getattr(judge, "form", RUBRIC))


def evidence_of(judge: Judge) -> Evidence:
    """Return where a judge's probabilities come from: its tokens, or repeated questions."""
    return cast(Evidence, getattr(judge, "evidence", "log-probabilities"))


def n_runs(form: Form, evidence: Evidence, n_replicates: int) -> int:
    """Return how often each presentation is asked: more often where runs stand for odds."""
    return max(n_replicates, form.samples) if evidence == "samples" else n_replicates
