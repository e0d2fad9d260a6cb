"""What a judge answers to presentations, in their order, whichever came first."""

from collections.abc import Sequence

from resources.judges.budget import Budget
from resources.judges.judge import Answer, Judge, Presentation


def answered(
    judge: Judge, presentations: Sequence[Presentation], budget: Budget | None = None
) -> list[Answer]:
    given = dict(judge.answer(presentations, budget or Budget()))
    return [given[position].answer for position in sorted(given)]
