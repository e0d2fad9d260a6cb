"""Asks a judge about battles, in both orders, and keeps every answer as a verdict."""

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import pandas as pd

from judgeline.identity import identity_hash
from judgeline.outcomes import CRITERIA
from judgeline.rubric import Rubric, RubricError, parse_answer
from resources.judges.judge import Answer, Judge, Presentation

ORDERS: tuple[str, str] = ("AB", "BA")

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

_TEXTS = ("instruction", "completion_a", "completion_b")
_TOLD_EVERY = 500

Progress = Callable[[int, int], None]


def annotate(
    judge: Judge,
    battles: pd.DataFrame,
    *,
    slug: str,
    n_replicates: int = 1,
    on_progress: Progress | None = None,
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
        If the judge does not answer every presentation once.
    """
    if n_replicates < 1:
        raise ValueError(f"n_replicates is {n_replicates}; a judge must be asked at least once")
    presentations = _present(battles, n_replicates)
    rows = []
    for presentation, answer in _answered(judge, presentations):
        rows.append(_verdict(presentation, answer, judge, slug))
        if on_progress and (len(rows) % _TOLD_EVERY == 0 or len(rows) == len(presentations)):
            on_progress(len(rows), len(presentations))
    return pd.DataFrame(rows, columns=list(VERDICT_DTYPES)).astype(VERDICT_DTYPES)


def _present(battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
    _require_texts(battles)
    columns = ["battle_id", "instruction", "completion_a", "completion_b", "model_a", "model_b"]
    return [
        Presentation(battle, order, replicate, question, *texts, *models)
        for battle, question, text_a, text_b, model_a, model_b in zip(
            *(battles[column].tolist() for column in columns), strict=True
        )
        for replicate in range(n_replicates)
        for order, texts, models in (
            ("AB", (text_a, text_b), (model_a, model_b)),
            ("BA", (text_b, text_a), (model_b, model_a)),
        )
    ]


def _require_texts(battles: pd.DataFrame) -> None:
    silent = battles[list(_TEXTS)].isna().any(axis=1)
    if silent.any():
        battle = battles.loc[silent, "battle_id"].iloc[0]
        raise ValueError(
            f"{int(silent.sum())} of {len(battles)} battles have no text to judge, the first is "
            f"{battle!r}; use a judge of kind 'recorded', or a corpus that publishes its texts"
        )


def _answered(
    judge: Judge, presentations: Sequence[Presentation]
) -> Iterator[tuple[Presentation, Answer]]:
    for presentation, answer in zip_longest(presentations, judge.answer(presentations)):
        if presentation is None or answer is None:
            raise RuntimeError(
                f"the judge gave {'more' if presentation is None else 'fewer'} answers than the "
                f"{len(presentations)} presentations it was shown"
            )
        yield presentation, answer


def _verdict(
    presentation: Presentation, answer: Answer, judge: Judge, slug: str
) -> tuple[Any, ...]:
    status, scores = _read(answer)
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


def _read(answer: Answer) -> tuple[str, Rubric | None]:
    if answer.failure is not None:
        return answer.failure, None
    try:
        return "ok", parse_answer(answer.text or "")
    except RubricError as error:
        return error.failure_class, None


def call_identity(judge: Judge, presentation: Presentation) -> str:
    """Return the hash of everything that determines an answer: judge, texts in order, run."""
    return identity_hash(
        {
            **{f"judge.{name}": value for name, value in judge.identity.items()},
            "instruction": presentation.instruction,
            "first_completion": presentation.first_completion,
            "second_completion": presentation.second_completion,
            "replicate": str(presentation.replicate),
        }
    )
