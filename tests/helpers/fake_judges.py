"""Judges of tests that are asked by the rubric."""

from resources.judges.forms.form import Form
from resources.judges.forms.rubric import RUBRIC
from resources.judges.judge import Evidence


class ByRubric:
    """Form and evidence of a judge that answers with marks."""

    form: Form = RUBRIC
    evidence: Evidence = "log-probabilities"
