"""Asks a judge about battles, in both orders, and keeps every answer as a verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pandas as pd

from judgeline.io import SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.verdict import Rubric
from resources.judges.budget import Budget
from resources.judges.buying import Buyer, Progress, once_each
from resources.judges.calls import call_identity
from resources.judges.forms.form import read_answer
from resources.judges.forms.rubric import RUBRIC
from resources.judges.judge import Answer, Judge, Presentation
from resources.judges.remedies import reasons_of

_CHUNK = 5000

_Pair = tuple[Presentation, Answer]


def annotate(
    judge: Judge,
    battles: pd.DataFrame,
    *,
    slug: str,
    n_replicates: int = 1,
    first_replicate: int = 0,
    on_progress: Progress | None = None,
    buyer: Buyer | None = None,
) -> pd.DataFrame:
    """Return the verdicts of a judge on battles, each shown in both orders.

    Parameters
    ----------
    judge : Judge
        Answers presentations; an answer that cannot be read becomes a failed verdict.
    battles : DataFrame
        With ``battle_id``, ``model_a``, ``model_b`` and the texts.
    slug : str
        What the judge is called in the table.
    n_replicates : int
        How often each order is shown.
    first_replicate : int
        Number of the first of these runs; runs of other numbers are other calls.
    on_progress : callable, optional
        Called with the buyer's account after each answer that is given now.
    buyer : Buyer, optional
        Answers from its store where it can, so that only the rest is asked of the judge, and
        keeps what the judge says. The table is the same as if all had been asked now.

    Returns
    -------
    DataFrame
        Two rows per battle and replicate, scores in rubric points and oriented to the models;
        failed verdicts keep their failure class and have no scores.

    Raises
    ------
    ValueError
        If a battle has no text, or fewer than one replicate is asked for.
    RuntimeError
        If the judge does not answer every presentation once, or the buyer's budget is spent.
    """
    require_replicates(n_replicates)
    presentations = RUBRIC.present(battles, n_replicates)
    if first_replicate:
        presentations = [
            replace(one, replicate=one.replicate + first_replicate) for one in presentations
        ]
    answers = answers_to(judge, presentations, slug=slug, on_progress=on_progress, buyer=buyer)
    verdicts = _tabulate(zip(presentations, answers, strict=True), judge, slug)
    enter_failures(buyer, verdicts)
    return verdicts


def require_replicates(n_replicates: int) -> None:
    """Raise ValueError unless a judge is to be asked at least once."""
    if n_replicates < 1:
        raise ValueError(f"n_replicates is {n_replicates}; a judge must be asked at least once")


def answers_to(
    judge: Judge,
    presentations: Sequence[Presentation],
    *,
    slug: str,
    on_progress: Progress | None,
    buyer: Buyer | None,
) -> Iterable[Answer]:
    """Return an answer per presentation, in their order, bought through a store if there is one."""
    if buyer is None:
        return _asked(judge, presentations)
    return buyer.answers(judge, presentations, slug=slug, on_progress=on_progress)


def enter_failures(buyer: Buyer | None, verdicts: pd.DataFrame) -> None:
    """Enter in a buyer's account what became of all answers, those from the store too."""
    if buyer is not None:
        failed = verdicts[verdicts["status"].ne("ok")]
        buyer.account.failed = Counter(failed["status"])
        buyer.account.reasons = reasons_of(failed)


def _asked(judge: Judge, presentations: Sequence[Presentation]) -> list[Answer]:
    given = dict(once_each(judge.answer(presentations, Budget()), len(presentations)))
    if len(given) != len(presentations):
        raise RuntimeError(
            f"the judge gave {len(given)} answers to {len(presentations)} presentations"
        )
    return [given[position] for position in range(len(presentations))]


def _tabulate(pairs: Iterable[_Pair], judge: Judge, slug: str) -> pd.DataFrame:
    """Return the verdicts as a table, made piece by piece: rows of Python objects are large."""
    columns = list(VERDICT_DTYPES)
    pieces = [pd.DataFrame([], columns=columns).astype(VERDICT_DTYPES)]
    rows = (_verdict(presentation, answer, judge, slug) for presentation, answer in pairs)
    while piece := list(islice(rows, _CHUNK)):
        pieces.append(pd.DataFrame(piece, columns=columns).astype(VERDICT_DTYPES))
    return pd.concat(pieces[1:] or pieces, ignore_index=True)


def _verdict(
    presentation: Presentation, answer: Answer, judge: Judge, slug: str
) -> tuple[Any, ...]:
    status, scores = read_answer(answer, RUBRIC)
    if scores is not None and presentation.order == "BA":
        scores = Rubric(scores.second, scores.first)
    marks = (None,) * len(SCORE_COLUMNS) if scores is None else (*scores.first, *scores.second)
    return (
        presentation.battle_id,
        slug,
        presentation.order,
        presentation.replicate,
        status,
        *marks,
        None,
        answer.text,
        answer.log_probabilities,
        answer.prompt_tokens,
        answer.completion_tokens,
        call_identity(judge, presentation),
        answer.reply_model,
        answer.system_fingerprint,
        answer.said,
    )
