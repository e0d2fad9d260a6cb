"""Battles of every model counted by outcome, and the ones that calibrate the judge.

The module counts, and divides the battles of a model into test and calibration battles.
Estimates stand in `judgeline.winrate.models`, plans in `judgeline.winrate.label_plans`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.elo.battles import CodedBattles
from judgeline.winrate.counts import JudgeCounts, NoWinRateError

Ints = NDArray[np.int64]

WIN, TIE, LOSS, NO_VOTE = 0, 1, 2, 3
"""Places on the axes over outcomes, as `adjusted_shares.OUTCOMES`; no vote on the humans' only."""

MIN_OWN_VOTES = 5
"""Votes won, and lost, from which a model's own votes count: with fewer, intervals by the central
limit theorem hold too seldom."""


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

    `calibration` is ``"own"`` or ``"others"``, whose votes calibrate.
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

    The judge calls a battle won whose outcome is above one half, be it by a quarter, and a tie
    only where its outcome is one half.

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

    Returns
    -------
    OutcomeTables
        Whole numbers.

    Raises
    ------
    ValueError
        If a column has another length than the battles, or a stratum is out of range.
    """
    n, n_models = len(battles), len(battles.models)
    strata = [_stratum(values, n, n_strata) for values in (stratum_a, stratum_b)]
    asked = np.asarray(question)
    if asked.shape != (n,):
        raise ValueError(f"question must have shape ({n},), got {asked.shape}")
    cells = [
        (stratum * 3 + judge) * 4 + human
        for stratum, judge, human in zip(strata, _said(battles), _meant(battles), strict=True)
    ]
    shape = (n_strata, 3, 4)
    sides = (battles.model_a.astype(np.int64), battles.model_b.astype(np.int64))
    voted = battles.voted_models()
    fields = (voted[sides[1]], voted[sides[0]])
    own = sum(
        _count(side[kept], cell[kept], n_models, shape)
        for side, cell, kept in zip(sides, cells, fields, strict=True)
    )
    return OutcomeTables(
        battles.models,
        np.asarray(own),
        _of_others(sides, cells, n_models, shape),
        _usual_side(sides, fields, n_models),
        _count(np.zeros(n, dtype=np.int64), cells[0], 1, shape)[0],
        _n_questions(sides, fields, asked, n_models),
    )


def design_of(tables: OutcomeTables, model: int, *, hidden: bool = False) -> Design:
    """Return the test and the calibration battles of the published corrections.

    A model's own votes calibrate, and its battles without a vote test, if these outnumber the
    votes and `has_own_votes`. Otherwise the votes on all other models calibrate, and all battles
    of the model test, its own votes hidden. Counts of votes decide, never the judge's accuracy.

    Parameters
    ----------
    tables : OutcomeTables
        From `tabulate_outcomes`.
    model : int
        Place in `models`.
    hidden : bool
        Hide the model's own votes in any case, as if it were new.

    Returns
    -------
    Design
        Whole numbers.
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
    """Return the same battles in a single stratum.

    Parameters
    ----------
    design : Design
        Of any number of strata.

    Returns
    -------
    Design
        Of one.
    """
    test, labelled = (part.sum(axis=0, keepdims=True) for part in design[:2])
    return Design(test, labelled, design.calibration)


def decisive(design: Design) -> Design:
    """Return the same battles without ties of the judge, or of humans in calibration battles."""
    test, labelled = design.test.copy(), design.labelled.copy()
    test[..., TIE] = labelled[..., TIE, :] = labelled[..., TIE] = 0
    return Design(test, labelled, design.calibration)


def decisive_counts(test: ArrayLike, labelled: ArrayLike) -> JudgeCounts:
    """Return the counts of the binary estimator: ties left out where they can be seen.

    Ties of the judge are, and of humans in calibration battles. Test battles that humans would
    tie cannot be told and stay, spread over the judge's wins and losses: where humans tie, the
    counts do not follow the binary model, and no estimate made of them is one of humans.

    Parameters
    ----------
    test : array_like of int, shape (..., 3)
        Test battles by the judge's outcome.
    labelled : array_like of int, shape (..., 3, 3)
        Calibration battles by the judge's outcome and the humans'.

    Returns
    -------
    JudgeCounts
        Of the leading shape.
    """
    said, known = np.asarray(test), np.asarray(labelled)
    won_right, lost_right = known[..., WIN, WIN], known[..., LOSS, LOSS]
    return JudgeCounts(
        said[..., WIN] + said[..., LOSS],
        said[..., WIN],
        lost_right + known[..., WIN, LOSS],
        lost_right,
        won_right + known[..., LOSS, WIN],
        won_right,
    )


def _said(battles: CodedBattles) -> tuple[Ints, Ints]:
    """Return the judge's outcome as places on its axis, as A and as B see it."""
    as_a = TIE - np.sign(battles.judge_outcome.astype(np.int64) - 2)
    return as_a, LOSS - as_a


def _meant(battles: CodedBattles) -> tuple[Ints, Ints]:
    """Return the humans' outcome as places on its axis, as A and as B see it."""
    places = np.array([LOSS, TIE, WIN, NO_VOTE])  # by 0, 1, 2 halves, and -1 from the end
    turned = np.array([WIN, TIE, LOSS, NO_VOTE])
    return places[battles.human_outcome], turned[battles.human_outcome]


def _of_others(
    sides: tuple[Ints, Ints], cells: list[Ints], n_models: int, shape: tuple[int, int, int]
) -> Ints:
    """Return the voted battles without each model, as A and B see them, shape (2, M, S, 3, 3)."""
    without = []
    for cell in cells:
        all_battles = _count(np.zeros(cell.size, dtype=np.int64), cell, 1, shape)
        involved = sum(_count(side, cell, n_models, shape) for side in sides)
        without.append((all_battles - involved)[..., :NO_VOTE])
    return np.stack(without)


def _usual_side(
    sides: tuple[Ints, Ints], fields: tuple[NDArray[np.bool_], NDArray[np.bool_]], n_models: int
) -> Ints:
    n_as_a, n_as_b = (
        np.bincount(side[kept], minlength=n_models)
        for side, kept in zip(sides, fields, strict=True)
    )
    return (n_as_a < n_as_b).astype(np.int64)


def _count(group: Ints, cell: Ints, n_groups: int, shape: tuple[int, int, int]) -> Ints:
    size = int(np.prod(shape))
    counted = np.bincount(group * size + cell, minlength=n_groups * size)
    return counted.reshape(n_groups, *shape)


def _n_questions(
    sides: tuple[Ints, Ints],
    fields: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    asked: NDArray[Any],
    n_models: int,
) -> Ints:
    """Return the number of different questions in each model's battles, shape (M,)."""
    code = np.unique(asked, return_inverse=True)[1].astype(np.int64)
    pairs = np.concatenate(
        [
            side[kept] * (code.max() + 1) + code[kept]
            for side, kept in zip(sides, fields, strict=True)
        ]
    )
    counted: Ints = np.bincount(np.unique(pairs) // (code.max() + 1), minlength=n_models)
    return counted


def _stratum(values: ArrayLike | None, n: int, n_strata: int) -> Ints:
    strata = np.zeros(n, dtype=np.int64) if values is None else np.asarray(values)
    if strata.shape != (n,):
        raise ValueError(f"a stratum must have shape ({n},), got {strata.shape}")
    if strata.dtype.kind not in "iu" or ((strata < 0) | (strata >= n_strata)).any():
        raise ValueError(
            f"strata must be whole numbers from 0 and below {n_strata}, got "
            f"{np.unique(strata).tolist()[:9]}"
        )
    return strata.astype(np.int64)
