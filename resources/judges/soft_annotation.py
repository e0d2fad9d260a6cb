"""Asks a judge for scores and choices, and keeps with every answer what it could have said."""

from typing import Any

import pandas as pd

from judgeline.io import REPLY_DTYPES
from judgeline.verdict import LETTERS
from resources.judges.annotation import answers_to, enter_failures, require_replicates
from resources.judges.buying import Buyer, Progress
from resources.judges.calls import call_identity
from resources.judges.forms.asked import evidence_of, form_of, n_runs
from resources.judges.forms.choice import ChoiceForm
from resources.judges.forms.completions import completions_of, present_completions
from resources.judges.forms.score import ScoreForm
from resources.judges.judge import Judge
from resources.judges.soft_readings import TARGET_SCALE as TARGET_SCALE
from resources.judges.soft_readings import (
    Chances,
    Run,
    read_runs,
    sampled_choices,
    sampled_scores,
    told_choices,
    told_scores,
)

_ANSWERED = {
    "evidence": "str",
    "answer": "str",
    "log_probabilities": "str",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "identity": "str",
    **REPLY_DTYPES,
}

SCORE_DTYPES: dict[str, str] = {
    "completion_id": "str",
    "question_id": "str",
    "model": "str",
    "judge": "str",
    "replicate": "int64",
    "status": "str",
    "score": "Int64",
    "expected_score": "float64",
    "covered": "float64",
    "scale_low": "int64",
    "scale_high": "int64",
    **_ANSWERED,
}
"""Columns of the table of scores and their types."""

CHOICE_DTYPES: dict[str, str] = {
    "battle_id": "str",
    "judge": "str",
    "order": "str",
    "replicate": "int64",
    "status": "str",
    "choice": "float64",
    "p_a": "float64",
    "p_tie": "float64",
    "p_b": "float64",
    "covered": "float64",
    "perplexity": "float64",
    **_ANSWERED,
}
"""Columns of the table of choices and their types."""

_SHARE_OF_FIRST = dict(zip(LETTERS, (1.0, 0.5, 0.0), strict=True))


def annotate_scores(
    judge: Judge,
    battles: pd.DataFrame,
    *,
    slug: str,
    n_replicates: int = 1,
    on_progress: Progress | None = None,
    buyer: Buyer | None = None,
) -> pd.DataFrame:
    """Return what a judge says of every completion by itself, and how sure it is.

    Parameters
    ----------
    judge : Judge
        Opened in the form ``score``.
    battles : DataFrame
        With ``question_id``, ``model_a``, ``model_b`` and the texts; a completion in several
        battles is shown once.
    slug : str
        What the judge is called in the table.
    n_replicates : int
        How often each completion is shown; without log-probabilities, as often as the form's
        ``samples`` says if that is more.
    on_progress, buyer
        As of `annotate`.

    Returns
    -------
    DataFrame
        One row per completion and run, columns as `SCORE_DTYPES`: ``score`` on the judge's own
        scale, from ``scale_low`` to ``scale_high``, ``expected_score`` in points of
        `TARGET_SCALE`, ``covered`` the probability that was told for numbers on the scale. With
        evidence ``samples`` both are of all runs of a
        completion, the same in each; with ``none`` they are null.

    Raises
    ------
    ValueError
        If the judge was opened in another form, a battle has no text, or fewer than one replicate
        is asked for.
    RuntimeError
        If the judge does not answer every presentation once, or the buyer's budget is spent.
    """
    form = form_of(judge)
    if not isinstance(form, ScoreForm):
        raise ValueError(f"judge {slug!r} was opened for {form.name!r}; open it with form='score'")
    require_replicates(n_replicates)
    completions = completions_of(battles)
    runs = n_runs(form, evidence_of(judge), n_replicates)
    shown = present_completions(completions, runs)
    given = answers_to(judge, shown, slug=slug, on_progress=on_progress, buyer=buyer)
    read = read_runs(shown, given, form)
    is_sampled = evidence_of(judge) == "samples"
    soft = sampled_scores(read, form) if is_sampled else told_scores(read, form)
    question = dict(zip(completions["completion_id"], completions["question_id"], strict=True))
    rows = [
        (
            run.shown.battle_id,
            question[run.shown.battle_id],
            run.shown.first_model,
            slug,
            run.shown.replicate,
            run.status,
            run.said,
            *found[:2],
            *form.scale,
            found[2],
            *_kept(run, judge),
        )
        for run, found in zip(read, soft, strict=True)
    ]
    table = pd.DataFrame(rows, columns=list(SCORE_DTYPES)).astype(SCORE_DTYPES)
    enter_failures(buyer, table)
    return table


def annotate_choices(
    judge: Judge,
    battles: pd.DataFrame,
    *,
    slug: str,
    n_replicates: int = 1,
    on_progress: Progress | None = None,
    buyer: Buyer | None = None,
) -> pd.DataFrame:
    """Return which completion of each battle a judge prefers in either order, and how surely.

    Parameters
    ----------
    judge : Judge
        Opened in the form ``choice``.
    battles : DataFrame
        With ``battle_id``, ``model_a``, ``model_b`` and the texts.
    slug, n_replicates, on_progress, buyer
        As of `annotate_scores`.

    Returns
    -------
    DataFrame
        One row per battle, order and run, columns as `CHOICE_DTYPES`: ``choice`` is A's share of
        the win as said, ``p_a``, ``p_tie`` and ``p_b`` add up to 1; all oriented to the models,
        whichever was shown first. Evidence is as in `annotate_scores`.

    Raises
    ------
    ValueError
        If the judge was opened in another form, a battle has no text, or fewer than one replicate
        is asked for.
    RuntimeError
        If the judge does not answer every presentation once, or the buyer's budget is spent.
    """
    form = form_of(judge)
    if not isinstance(form, ChoiceForm):
        raise ValueError(f"judge {slug!r} was opened for {form.name!r}; open it with form='choice'")
    require_replicates(n_replicates)
    shown = form.present(battles, n_runs(form, evidence_of(judge), n_replicates))
    given = answers_to(judge, shown, slug=slug, on_progress=on_progress, buyer=buyer)
    read = read_runs(shown, given, form)
    is_sampled = evidence_of(judge) == "samples"
    soft = sampled_choices(read) if is_sampled else told_choices(read)
    rows = [
        (
            run.shown.battle_id,
            slug,
            run.shown.order,
            run.shown.replicate,
            run.status,
            _share_of_a(run),
            *_oriented(chances, run.shown.order),
            covered,
            perplexity,
            evidence,
            *_kept(run, judge),
        )
        for run, (chances, covered, perplexity, evidence) in zip(read, soft, strict=True)
    ]
    table = pd.DataFrame(rows, columns=list(CHOICE_DTYPES)).astype(CHOICE_DTYPES)
    enter_failures(buyer, table)
    return table


def _kept(run: Run, judge: Judge) -> tuple[Any, ...]:
    answer = run.answer
    return (
        answer.text,
        answer.log_probabilities,
        answer.prompt_tokens,
        answer.completion_tokens,
        call_identity(judge, run.shown),
        answer.reply_model,
        answer.system_fingerprint,
        answer.said,
    )


def _oriented(chances: Chances, order: str) -> Chances:
    return chances if order == "AB" else (chances[2], chances[1], chances[0])


def _share_of_a(run: Run) -> float | None:
    if run.status != "ok":
        return None
    share = _SHARE_OF_FIRST[run.said]
    return share if run.shown.order == "AB" else 1 - share
