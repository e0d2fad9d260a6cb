"""What a judge answers to presentations, in their order, and about battles in a store that goes."""

from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from upath import UPath

from judgeline.judges import annotation
from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.judge import Judge
from judgeline.judges.presentation import Answer, Presentation
from judgeline.judges.store.verdicts import VerdictStore, collapse


def answered(
    judge: Judge, presentations: Sequence[Presentation], budget: Budget | None = None
) -> list[Answer]:
    given = dict(judge.answer(presentations, budget or Budget()))
    return [given[position].answer for position in sorted(given)]


def annotate(
    judge: Judge, battles: pd.DataFrame, *, slug: str, buyer: Buyer | None = None, **options: Any
) -> pd.DataFrame:
    """The verdicts of a judge; without a buyer in a store that goes again."""
    if buyer is not None:
        return annotation.annotate(judge, battles, slug=slug, buyer=buyer, **options)
    with TemporaryDirectory() as folder:
        own = Buyer(VerdictStore(UPath(folder))).repeating(1)  # asked to the end, readable or not
        return annotation.annotate(judge, battles, slug=slug, buyer=own, **options)


def statuses(store: VerdictStore, judge_key: str) -> dict[str, str]:
    """The status of every call of a judge that was ever answered, by identity."""
    found = collapse(store.scan(judge_key, ("identity", "status", "answered_at")).table)
    return dict(zip(found["identity"], found["status"], strict=True))
