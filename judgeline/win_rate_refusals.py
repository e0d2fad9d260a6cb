"""Why no adjusted win rate can be had from some battles, and what to do, as status and note."""

import numpy as np

from judgeline.outcome_tables import LOSS, TIE, WIN, Design, decisive_counts

Refusal = tuple[str, str]


def too_little(design: Design, n_questions: int) -> Refusal | None:
    """Return why these battles allow no estimate at all, or None.

    Parameters
    ----------
    design : Design
        From `design_of`.
    n_questions : int
        Different questions in the model's battles.

    Returns
    -------
    tuple of str, or None
        ``no-battles``, ``no-votes`` or ``one-question``, and what to do in words.
    """
    if not design.test.sum():
        return "no-battles", "no judged battle against a model that people voted on; judge some"
    if not design.labelled.sum():
        return "no-votes", "no battle of other models has a vote; label some"
    if n_questions == 1:
        return (
            "one-question",
            "all of its battles answer one question, which is no sample of questions; judge more",
        )
    return None


def refused_mean(design: Design) -> Refusal | None:
    """Return why the judge's mean outcome cannot be corrected, or None.

    Parameters
    ----------
    design : Design
        With test and calibration battles.

    Returns
    -------
    tuple of str, or None
        ``all-ties`` or ``class-absent``, and what to do in words.
    """
    votes = design.labelled.sum(axis=(0, 1))
    return _absent(int(votes[WIN]), int(votes[LOSS]), "vote without a tie")


def refused_ternary(design: Design) -> Refusal | None:
    """Return why wins, ties and losses cannot be told apart, or None.

    Parameters
    ----------
    design : Design
        With test and calibration battles.

    Returns
    -------
    tuple of str, or None
        ``no-ties``, ``all-ties`` or ``class-absent``, and what to do in words.
    """
    votes = design.labelled.sum(axis=(0, 1))
    if not votes[TIE]:
        return "no-ties", "no vote is a tie: see the mean-outcome rows"
    return _absent(int(votes[WIN]), int(votes[LOSS]), "vote")


def refused_binary(design: Design) -> Refusal | None:
    """Return why nothing is left once ties are, or None.

    Parameters
    ----------
    design : Design
        With test and calibration battles.

    Returns
    -------
    tuple of str, or None
        ``all-ties`` or ``class-absent``, and what to do in words.
    """
    counts = decisive_counts(design.test.sum(axis=0), design.labelled.sum(axis=0))
    n_test, n_won, n_lost = (
        int(np.asarray(part)) for part in (counts.n_test, counts.n_won, counts.n_lost)
    )
    if not n_test:
        return "all-ties", "the judge calls every test battle a tie; see the mean-outcome rows"
    return _absent(n_won, n_lost, "vote without a tie")


def refused_strata(design: Design) -> Refusal | None:
    """Return why the strata with test battles cannot all be corrected, or None.

    Parameters
    ----------
    design : Design
        With test and calibration battles.

    Returns
    -------
    tuple of str, or None
        ``no-lengths`` where there is one stratum only, or as `refused_binary`.
    """
    if len(design.test) == 1:
        return "no-lengths", "some answer has no length; see the binary row"
    if refused := refused_binary(design):
        return refused
    counts = decisive_counts(design.test, design.labelled)
    used = np.asarray(counts.n_test) > 0
    for name, part in (("won", counts.n_won), ("lost", counts.n_lost)):
        lacking = np.flatnonzero(used & (np.asarray(part) == 0))
        if lacking.size:
            return (
                "class-absent",
                f"stratum {lacking[0]} of {used.size} has test battles and no vote that is "
                f"{name}; label some there, or see the binary row",
            )
    return None


def _absent(n_won: int, n_lost: int, votes: str) -> Refusal | None:
    if not n_won and not n_lost:
        return "all-ties", f"no {votes} calibrates the judge; label more battles"
    if not n_won or not n_lost:
        which = "lost" if n_won else "won"
        return "class-absent", f"no {votes} is {which}; label battles that were {which}"
    return None
