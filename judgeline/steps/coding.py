"""Scored battles as the estimators read them: coded once for all steps that take one table."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo import CodedBattles, RatingSettings, with_settled_votes
from judgeline.io import as_coded, family_of, questions_of

_kept: list[tuple[pd.DataFrame, str, tuple[CodedBattles, CodedBattles]]] = []
_depth = 0
_UNSAID = ("", "none", "unknown")
"""Families of judges that say nothing: the judge's name has to."""


@contextmanager
def once() -> Iterator[None]:
    """Code each table of battles once inside the block, which must not change it in place."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _kept.clear()


def coded(scored_battles: pd.DataFrame, settings: Any, *, every_vote: bool = False) -> CodedBattles:
    """Return scored battles as arrays; `every_vote` keeps votes on models with too few of them.

    ValueError as of `as_coded`.
    """
    outcome = settings.hard_outcome
    kept = [both for table, by, both in _kept if table is scored_battles and by == outcome]
    if kept:
        return kept[0][every_vote]
    battles = as_coded(scored_battles, outcome, every_vote=True)
    both = with_settled_votes(battles), battles
    if _depth:
        _kept[:] = [(scored_battles, outcome, both)]
    return both[every_vote]


def units(scored_battles: pd.DataFrame, settings: Any) -> np.ndarray[Any, Any] | None:
    """Return the question of each battle, None where battles are taken as independent."""
    return questions_of(scored_battles) if settings.resample_by == "question" else None


def rating_settings(settings: Any) -> RatingSettings:
    """Return the settings of ratings as the core takes them."""
    fit = {each.name: getattr(settings, each.name) for each in fields(RatingSettings)}
    return RatingSettings(**{**fit, "stream": (settings.stream,) if settings.stream else ()})


def said_family(family: str) -> str:
    """Return a judge's family; empty for one that says nothing."""
    return "" if family in _UNSAID else family


def of_own_family(models: Iterable[str], settings: Any) -> list[str]:
    """Return the models, named or by family, that are of the judge's family."""
    said = said_family(settings.judge_family) or settings.judge
    own = family_of(said, settings.families)
    return [model for model in models if own and family_of(model, settings.families) == own]


def ranking_options(settings: Any, method: str = "") -> Mapping[str, Any]:
    """Return the options that models are ranked by; the settings' method unless one is named."""
    names = ("miscoverage", "std_error", "intervals")
    options = {name: getattr(settings, name) for name in names}
    return {"method": method or settings.method, **options}
