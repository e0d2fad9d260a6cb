"""Asks a judge for scores and choices, and keeps with every answer what it could have said."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.short_answers import LETTERS
from judgeline.soft_scores import ScoreDistribution, expected_score
from resources.judges.annotation import answers_to, enter_failures, require_replicates
from resources.judges.buying import Buyer, Progress
from resources.judges.calls import call_identity
from resources.judges.forms.asked import evidence_of, form_of, n_runs
from resources.judges.forms.choice import ChoiceForm
from resources.judges.forms.completions import completions_of, present_completions
from resources.judges.forms.form import read_answer
from resources.judges.forms.score import ScoreForm
from resources.judges.judge import Answer, Judge, Presentation
from resources.judges.soft_evidence import (
    Told,
    choice_of,
    digits_per_token,
    perplexity_of,
    read_tokens,
    score_of,
)

TARGET_SCALE: tuple[float, float] = (1.0, 10.0)
"""Scale of expected scores: that of the rubric, in points."""

_ANSWERED = {
    "evidence": "str",
    "answer": "str",
    "log_probabilities": "str",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "identity": "str",
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


class _Run(NamedTuple):
    """One answer: what it was shown, its status, and what it says if it says anything."""

    shown: Presentation
    answer: Answer
    status: str
    said: Any
    told: Told | None


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
        scale, ``expected_score`` in points of `TARGET_SCALE`, ``covered`` the probability that
        was told for numbers on the scale. With evidence ``samples`` both are of all runs of a
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
    read = _read(shown, given, form)
    soft = _sampled_scores(read, form) if _is_sampled(judge) else _told_scores(read, form)
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
            *found,
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
    read = _read(shown, given, form)
    soft = _sampled_choices(read) if _is_sampled(judge) else _told_choices(read)
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


def _is_sampled(judge: Judge) -> bool:
    return evidence_of(judge) == "samples"


def _read(
    shown: Sequence[Presentation], given: Iterable[Answer], form: ScoreForm | ChoiceForm
) -> list[_Run]:
    runs = []
    for one, answer in zip(shown, given, strict=True):
        status, said = read_answer(answer, form)
        told = read_tokens(answer.log_probabilities) if status == "ok" else None
        runs.append(_Run(one, answer, status, said, told))
    return runs


def _kept(run: _Run, judge: Judge) -> tuple[Any, ...]:
    answer = run.answer
    return (
        answer.text,
        answer.log_probabilities,
        answer.prompt_tokens,
        answer.completion_tokens,
        call_identity(judge, run.shown),
    )


_NO_SCORE = (math.nan, math.nan, "none")


def _told_scores(read: Sequence[_Run], form: ScoreForm) -> list[tuple[float, float, str]]:
    """Return expected score, what is covered of it and the evidence, by log-probabilities."""
    known = [(run.told, run.said) for run in read if run.told is not None]
    digits = digits_per_token(known, form.options.digits_per_token)
    found = []
    for run in read:
        try:
            if run.told is None:
                raise ValueError("no log-probabilities came with this answer")
            likely = score_of(run.told, run.said, scale=form.scale, digits_per_token=digits)
            mean = expected_score(likely, target=TARGET_SCALE)
            found.append((mean, likely.covered, "log-probabilities"))
        except ValueError:  # nothing is filled in
            found.append(_NO_SCORE)
    return found


def _sampled_scores(read: Sequence[_Run], form: ScoreForm) -> list[tuple[float, float, str]]:
    """Return the same by how often each number was said of a completion."""
    asked, said = _counts(read, lambda run: (run.shown.battle_id,))
    means = {key: _mean_of(counts, asked[key], form.scale) for key, counts in said.items()}
    return [
        (*means[run.shown.battle_id,], "samples") if run.status == "ok" else _NO_SCORE
        for run in read
    ]


def _mean_of(counts: Counter[Any], n_asked: int, scale: tuple[int, int]) -> tuple[float, float]:
    values = np.array(sorted(counts), dtype=np.int64)
    shares = np.array([counts[int(value)] / n_asked for value in values])
    covered = float(shares.sum())
    likely = ScoreDistribution(scale, values, shares, covered, 0.0)
    return expected_score(likely, target=TARGET_SCALE), covered


_Key = tuple[str, ...]


def _counts(read: Sequence[_Run], key: Any) -> tuple[Counter[_Key], dict[_Key, Counter[Any]]]:
    """Return how often each question was asked, and what was said to it how often."""
    asked: Counter[_Key] = Counter()
    said: dict[_Key, Counter[Any]] = {}
    for run in read:
        asked[key(run)] += 1
        if run.status == "ok":
            said.setdefault(key(run), Counter())[run.said] += 1
    return asked, said


_Chances = tuple[float, float, float]
_Choice = tuple[_Chances, float, float | None, str]
_NO_CHANCES: _Chances = (math.nan, math.nan, math.nan)


def _told_choices(read: Sequence[_Run]) -> list[_Choice]:
    """Return chances by position, what is covered, the perplexity and the evidence."""
    found: list[_Choice] = []
    for run in read:
        perplexity = perplexity_of(run.told)
        try:
            if run.told is None:
                raise ValueError("no log-probabilities came with this answer")
            likely = choice_of(run.told, run.said)
            first, tie, second = likely.probabilities.tolist()
            found.append(((first, tie, second), likely.covered, perplexity, "log-probabilities"))
        except ValueError:  # nothing is filled in
            found.append((_NO_CHANCES, math.nan, perplexity, "none"))
    return found


def _sampled_choices(read: Sequence[_Run]) -> list[_Choice]:
    asked, said = _counts(read, lambda run: (run.shown.battle_id, run.shown.order))
    found: list[_Choice] = []
    for run in read:
        key = (run.shown.battle_id, run.shown.order)
        if run.status != "ok":
            found.append((_NO_CHANCES, math.nan, None, "none"))
            continue
        n_said = said[key].total()
        first, tie, second = (said[key][letter] / n_said for letter in LETTERS)
        found.append(((first, tie, second), n_said / asked[key], None, "samples"))
    return found


def _oriented(chances: _Chances, order: str) -> _Chances:
    return chances if order == "AB" else (chances[2], chances[1], chances[0])


def _share_of_a(run: _Run) -> float | None:
    if run.status != "ok":
        return None
    share = _SHARE_OF_FIRST[run.said]
    return share if run.shown.order == "AB" else 1 - share
