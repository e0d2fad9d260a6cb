"""Asks a judge about battles, in both orders, and keeps every answer as a verdict."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from judgeline.outcomes import CRITERIA
from judgeline.rubric import Rubric
from resources.judges.buying import Buyer, Progress, paired
from resources.judges.calls import call_identity, present, read_answer
from resources.judges.judge import Answer, Judge, Presentation

SCORE_COLUMNS: tuple[str, ...] = tuple(f"{name}_{side}" for side in "ab" for name in CRITERIA)
"""Rubric scores of model A's completion, then of model B's, whichever was shown first."""

VERDICT_DTYPES: dict[str, str] = {
    "battle_id": "str",
    "judge": "str",
    "order": "str",
    "replicate": "int64",
    "status": "str",
    **dict.fromkeys(SCORE_COLUMNS, "float64"),
    "recorded_outcome": "float64",
    "answer": "str",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "identity": "str",
}
"""Columns of the verdicts table and their types."""

_TOLD_EVERY = 500

_Pair = tuple[Presentation, Answer]


def annotate(
    judge: Judge,
    battles: pd.DataFrame,
    *,
    slug: str,
    n_replicates: int = 1,
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
    on_progress : callable, optional
        Called with the numbers of presentations answered and in all, now and then and at the end.
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
    if n_replicates < 1:
        raise ValueError(f"n_replicates is {n_replicates}; a judge must be asked at least once")
    presentations = present(battles, n_replicates)
    if buyer is None:
        pairs = _told(paired(judge, presentations), len(presentations), on_progress)
    else:
        answers = buyer.answers(judge, presentations, slug=slug, on_progress=on_progress)
        pairs = zip(presentations, answers, strict=True)
    rows = [_verdict(presentation, answer, judge, slug) for presentation, answer in pairs]
    return pd.DataFrame(rows, columns=list(VERDICT_DTYPES)).astype(VERDICT_DTYPES)


def _told(pairs: Iterator[_Pair], n_total: int, tell: Progress | None) -> Iterator[_Pair]:
    for n_done, pair in enumerate(pairs, start=1):
        yield pair
        if tell and (n_done % _TOLD_EVERY == 0 or n_done == n_total):
            tell(n_done, n_total)


def _verdict(
    presentation: Presentation, answer: Answer, judge: Judge, slug: str
) -> tuple[Any, ...]:
    status, scores = read_answer(answer)
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
        answer.prompt_tokens,
        answer.completion_tokens,
        call_identity(judge, presentation),
    )
