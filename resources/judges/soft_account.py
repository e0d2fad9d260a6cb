"""What the probabilities of scores and choices rest on, in numbers and in words."""

from typing import Any

import pandas as pd

from resources.judges.forms.form import Form
from resources.judges.forms.score import ScoreForm
from resources.judges.soft_evidence import choice_of, from_value, read_tokens, score_of

_NO_LOGS = "no log-probabilities came with the answer"
_NOT_ITS_OWN = "the tokens that came with the answer do not spell it"


def evidence_entries(table: pd.DataFrame, form: Form) -> dict[str, Any]:
    """Return how many answers have which evidence, and a note where readable ones have none.

    Parameters
    ----------
    table : DataFrame
        Of `annotate_scores` or `annotate_choices`.
    form : Form
        In which the judge was asked.
    """
    answered = table[table["status"].eq("ok")]
    counts = answered["evidence"].value_counts()
    entries: dict[str, Any] = {
        f"n_{name.replace('-', '_')}": int(counts.get(name, 0))
        for name in ("log-probabilities", "samples", "none")
    }
    if n_bare := entries["n_none"]:
        reason, remedy = _why_none(answered, form)
        entries["note"] = (
            f"{n_bare:,} of {len(answered):,} answers have no probabilities, and none is filled "
            f"in; the first: {reason}. {remedy}"
        )
    return entries


def _why_none(answered: pd.DataFrame, form: Form) -> tuple[str, str]:
    """Return why the first answer without probabilities has none, and what to do."""
    row = answered[answered["evidence"].eq("none")].iloc[0]
    logs = _text(row["log_probabilities"])
    told = from_value(read_tokens(logs, _text(row["answer"])), form.key)
    if told is None:
        reason = _NO_LOGS if logs is None else _NOT_ITS_OWN
        return reason, "Where that happens often, set log_probabilities: off to ask samples"
    try:
        if isinstance(form, ScoreForm):
            declared = form.options.digits_per_token
            score_of(told, int(row["score"]), scale=form.scale, declared_digits=declared)
        else:
            choice_of(told, form.parse(row["answer"]))
    except ValueError as error:
        reason = str(error)
    else:
        raise RuntimeError(f"answer {row['identity']} has probabilities that were left out")
    if "first digits" in reason:
        return reason, (
            "The judge spells numbers digit by digit, or does not show otherwise: use a scale of "
            "one token, score.scale: [1, 9], or log_probabilities: off to ask samples"
        )
    return reason, "See log_probabilities of these rows, or set log_probabilities: off"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
