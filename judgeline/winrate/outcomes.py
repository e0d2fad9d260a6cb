"""Battles of every model counted by outcome, and those that calibrate."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from judgeline.arrays import Ints, alike, require
from judgeline.elo.battles import CodedBattles
from judgeline.intervals.conformal import require_miscoverage

OUTCOMES: tuple[float, ...] = (1.0, 0.5, 0.0)
"""The order of every axis over outcomes: win, tie, loss."""

WIN, TIE, LOSS, NO_VOTE = 0, 1, 2, 3
"""Places on the axes over outcomes; no vote on the humans' axis only."""

MIN_OWN_VOTES = 5
"""Votes won, and lost, from which a model's own votes count: with fewer, intervals by the central
limit theorem hold too seldom."""


class NoWinRateError(ValueError):
    """The battles allow no win rate: `status` is a word for tables, the message the remedy."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


def normal_quantile(miscoverage: float) -> float:
    """Return the standard normal quantile of a two-sided interval, 1.96 at 0.05."""
    require_miscoverage(miscoverage)
    return float(-ndtri(miscoverage / 2))


class OutcomeTables(NamedTuple):
    """Battles by model, stratum, the judge's outcome and the humans'.

    `models`, length M, by name. `own`, shape (M, S, 3, 4): a model's battles as it sees them,
    against opponents that people voted on, so that all models meet the same field; the last
    column is without a vote. `others`, shape (2, M, S, 3, 3): voted battles between other
    models, as A and as B sees them. `usual_side`, shape (M,): 0 for a model that is A at least
    as often as B, else 1. `whole`, shape (S, 3, 4): all battles as A sees them. `n_questions`,
    shape (M,): questions behind `own`.
    """

    models: tuple[str, ...]
    own: Ints
    others: Ints
    usual_side: Ints
    whole: Ints
    n_questions: Ints


class Design(NamedTuple):
    """Battles of one win rate: shapes (S, 3) by judge, and (S, 3, 3) by judge and humans.

    `calibration` names the models whose votes calibrate: ``"own"`` or ``"others"``.
    """

    test: Ints
    labelled: Ints
    calibration: str


def tabulate_outcomes(
    battles: CodedBattles,
    question: ArrayLike,
    *,
    stratum_a: ArrayLike | None = None,
    stratum_b: ArrayLike | None = None,
    n_strata: int = 1,
) -> OutcomeTables:
    """Return the battles counted.

    The judge's win is an outcome above one half, be it by a quarter; its tie is exactly one half.

    Parameters
    ----------
    battles : CodedBattles
        The judged battles, n of them.
    question : array_like, shape (n,)
        What identifies the question of each battle.
    stratum_a, stratum_b : array_like of int, shape (n,), optional
        Stratum from 0 of the battle as A sees it, and as B does; 0 for all if left out.
    n_strata : int
        Number of strata, of which some may have no battle.

    Raises
    ------
    ValueError
        If a column has another length than the battles, or a stratum is out of range.
    """
    n, n_models, shape = len(battles), len(battles.models), (n_strata, 3, 4)
    strata = np.stack([_stratum(values, n, n_strata) for values in (stratum_a, stratum_b)])
    _, asked = alike(battle=battles.model_a, question=question)
    judged = TIE - np.sign(battles.judge_outcome.astype(np.int64) - 2)
    # by 0, 1 and 2 halves of a win, and by -1 from the end
    votes = np.array([[LOSS, TIE, WIN, NO_VOTE], [WIN, TIE, LOSS, NO_VOTE]])
    # from here on in two rows: each battle as A sees it, and as B does
    cells = (strata * 3 + [judged, LOSS - judged]) * 4 + votes[:, battles.human_outcome]
    models = np.stack([battles.model_a, battles.model_b]).astype(np.int64)
    is_field = battles.voted_models()[models[::-1]]  # against a model that people voted on
    others = [
        _count(np.zeros(n, dtype=np.int64), cell, 1, shape)
        - sum(_count(side, cell, n_models, shape) for side in models)
        for cell in cells
    ]
    seats = [
        np.bincount(side[field], minlength=n_models)
        for side, field in zip(models, is_field, strict=True)
    ]
    code = np.unique(asked, return_inverse=True)[1].astype(np.int64)
    size = code.max() + 1
    asked_of = np.unique((models * size + code)[is_field]) // size
    return OutcomeTables(
        battles.models,
        _count(models[is_field], cells[is_field], n_models, shape),
        np.stack(others)[..., :NO_VOTE],
        (seats[0] < seats[1]).astype(np.int64),
        _count(np.zeros(n, dtype=np.int64), cells[0], 1, shape)[0],
        np.bincount(asked_of, minlength=n_models),
    )


def _stratum(values: ArrayLike | None, n: int, n_strata: int) -> Ints:
    strata = np.zeros(n, dtype=np.int64) if values is None else np.asarray(values)
    require(strata.shape == (n,), "the shape of strata", strata.shape, str((n,)))
    good = np.isin(strata, np.arange(n_strata)) & (strata.dtype.kind in "iu")
    require(good, "stratum", strata, f"a whole number from 0, below {n_strata}")
    return strata.astype(np.int64)


def _count(group: Ints, cell: Ints, n_groups: int, shape: tuple[int, int, int]) -> Ints:
    size = int(np.prod(shape))
    counts = np.bincount(group * size + cell, minlength=n_groups * size)
    return counts.reshape(n_groups, *shape)


def design_of(tables: OutcomeTables, model: int, *, hidden: bool = False) -> Design:
    """Return the test and the calibration battles of the published corrections.

    A model's own votes calibrate, and its battles without a vote test, if these outnumber the
    votes and `has_own_votes`. Otherwise, or if `hidden`, the votes on all other models calibrate
    and all battles of the model test. Counts of votes decide, never the judge's accuracy.
    """
    own = tables.own[model]
    unvoted, voted = own[:, :, NO_VOTE], own[:, :, :NO_VOTE]
    if not hidden and has_own_votes(own) and unvoted.sum() > voted.sum():
        return Design(unvoted, voted, "own")
    others = tables.others[int(tables.usual_side[model]), model]
    return Design(own.sum(axis=2), others, "others")


def has_own_votes(own: Ints) -> bool:
    """Return whether a model has `MIN_OWN_VOTES` votes won and as many lost, of shape (S, 3, 4)."""
    votes = own[:, :, :NO_VOTE].sum(axis=(0, 1))
    return bool(min(votes[WIN], votes[LOSS]) >= MIN_OWN_VOTES)


def require_battles(design: Design, n_questions: int) -> None:
    """Raise `NoWinRateError` if the battles allow no estimate of any kind."""
    if not design.test.sum():
        text = "no judged battle against a model that people voted on; judge some"
        raise NoWinRateError("no-battles", text)
    if not design.labelled.sum():
        raise NoWinRateError("no-votes", "no battle of other models has a vote; label some")
    if n_questions == 1:
        text = "all of its battles answer one question, which is no sample of questions; judge more"
        raise NoWinRateError("one-question", text)


def pooled(design: Design) -> Design:
    """Return the same battles in a single stratum."""
    test, labelled = (part.sum(axis=0, keepdims=True) for part in design[:2])
    return design._replace(test=test, labelled=labelled)


def decisive(design: Design) -> Design:
    """Return the battles without ties of the judge, or of humans in calibration battles.

    Test battles that humans would tie cannot be seen and stay in: where humans tie, no estimate
    made of these counts is one of humans.
    """
    test, labelled = design.test.copy(), design.labelled.copy()
    test[..., TIE] = labelled[..., TIE, :] = labelled[..., TIE] = 0
    return design._replace(test=test, labelled=labelled)
