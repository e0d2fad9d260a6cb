"""The leaderboard: one rating, interval and place per model, from leave-one-out ratings."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from judgeline.arrays import Floats, require
from judgeline.elo.anchors import ENOUGH_VOTES
from judgeline.elo.placements import HEADLINE
from judgeline.elo.ratings import HeldOutRatings
from judgeline.intervals.conformal import (
    calibrating_models,
    chosen_std_error,
    clustered_vote_error,
    interval_half_width,
    least_miscoverage,
    models_needed,
)
from judgeline.intervals.judge_and_votes import VotedRatings
from judgeline.rating_options import IntervalKind, RatingOptions, StdErrorKind

WITHHELD = "withheld: "
"""What the flag of a rating begins with that is not shown, because its judge failed the gate."""

FAR, BEYOND = "far-from-people", "beyond-anchors"
"""Flags of a judge's rating: its interval does not hold the human rating, as that of the furthest
tenth of any judge's models; or it lies above or below every human rating that calibrates."""

BY_JUDGE = "judge"
"""Evidence of a rating that no vote on the model supports."""

OF_THE_JUDGE = (
    "judge_rating", "judge_lower", "judge_upper", "judge_std_error", "hard_rating", "soft_rating",
    "beta",
)  # fmt: skip
"""Columns that the judge alone has a say in."""

COUNTS = ("n_battles",)
"""Columns, counts, that terminal and report show after the ratings."""


class Leaderboard(NamedTuple):
    """One row per model, best rating first; models without a rating come last.

    `rating` is the best estimate that a model's own evidence supports, with its interval and
    standard error (Elo points), and `evidence` says which evidence that is: ``judge``, ``judge and
    325 votes``, or ``325 votes``. `rank` is NaN for a model without a rating; `best_rank` and
    `worst_rank` bound the true ranks of all models at once: see `rank_intervals`.

    `judge_rating` is the judge's as if nobody had voted on the model, by `method`, of which `basis`
    says what ``auto`` stands for; `judge_lower` and `judge_upper` bound its conformal interval,
    the whole line for a model without a standard error. `judge_std_error` and `vote_std_error` are
    the model's own parts of its spread. `human_rating` is by the model's votes alone; NaN without
    votes that count. `n_battles` counts judged battles against anchors.
    """

    rank: Floats
    best_rank: Floats
    worst_rank: Floats
    model: NDArray[np.str_]
    rating: Floats
    lower: Floats
    upper: Floats
    std_error: Floats
    evidence: NDArray[np.str_]
    judge_rating: Floats
    judge_lower: Floats
    judge_upper: Floats
    judge_std_error: Floats
    vote_std_error: Floats
    human_rating: Floats
    human_std_error: Floats
    method: NDArray[np.str_]
    basis: NDArray[np.str_]
    hard_rating: Floats
    soft_rating: Floats
    beta: Floats
    n_battles: NDArray[np.int64]
    n_votes: NDArray[np.int64]
    flags: NDArray[np.str_]

    def take(self, rows: NDArray[Any]) -> "Leaderboard":
        """Return some of the rows (boolean mask or positions)."""
        return Leaderboard._make(column[rows] for column in self)


def rank_models(
    heldout: HeldOutRatings,
    together: VotedRatings | None = None,
    *,
    method: str = HEADLINE,
    miscoverage: float = 0.1,
    std_error: StdErrorKind = "analytic",
    intervals: IntervalKind = "calibrated",
    calibration: HeldOutRatings | None = None,
) -> Leaderboard:
    """Return the leaderboard: each model's best rating, and its rating by the judge alone.

    The judge's intervals of all models have the threshold of all voted models' residuals, as that
    of a newcomer would. The end that points away from the anchors moves outward by `outward`.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings of all methods.
    together : VotedRatings, optional
        Ratings by judge and votes together; without them every rating is the judge's.
    method : str
        The judge method that ranks.
    miscoverage : float
        Tolerated probability that an interval misses, in (0, 1).
    std_error : {"analytic", "bootstrap"}
        Which standard error scales the judge's intervals.
    intervals : {"calibrated", "published"}
        Spread of the judge's intervals: all its parts, or the standard error alone.
    calibration : HeldOutRatings, optional
        Ratings of the models that calibrate, where they are not those that are ranked.

    Returns
    -------
    Leaderboard
        Rows by rating, best first. Intervals are the whole line where too few models
        calibrate. NaN where a model has no rating, and then `flags` says why.

    Raises
    ------
    ValueError
        If the ratings hold no such method, or it is ``human``.
    """
    methods = heldout.judge_methods()
    require(method in methods, "the method that ranks", method, " or ".join(methods))
    table = heldout.take(heldout.method == method)
    pool = heldout if calibration is None else calibration
    error, of_votes = chosen_std_error(table, std_error), clustered_vote_error(table)
    spread, half_width = np.full((2, error.size), math.nan)
    for basis in dict.fromkeys(table.basis.tolist()):
        rows = table.basis == basis
        voted = calibrating_models(
            pool, base_of(basis, method, pool), std_error, published=intervals == "published"
        )
        spread[rows] = voted.spread(error.astype(float)[rows], of_votes[rows])
        half_width[rows] = interval_half_width(voted.threshold(miscoverage), spread[rows])
    is_moved = np.isfinite(table.outward.astype(float)) & (intervals != "published")
    outward = np.where(is_moved, table.outward, 0.0)
    lower = table.rating - half_width + np.minimum(outward, 0.0)
    upper = table.rating + half_width + np.maximum(outward, 0.0)
    flags = _flags(table, error, lower, upper, pool.human_rating)
    nowhere = np.full(table.model.size, math.nan)
    hard, soft = (heldout.take(heldout.method == name) for name in ("hard", "soft"))
    board = Leaderboard(
        nowhere, nowhere, nowhere, table.model, nowhere, nowhere, nowhere, spread,
        np.full(table.model.size, ""), table.rating, lower, upper, error, of_votes,
        table.human_rating, table.human_std_error, table.method, table.basis,
        _by_model(hard, hard.rating, table), _by_model(soft, soft.rating, table),
        _by_model(soft, soft.beta, table), table.n_battles, table.n_votes, flags,
    )  # fmt: skip
    return with_best_evidence(board, together, miscoverage=miscoverage)


def _flags(
    table: HeldOutRatings, error: Floats, lower: Floats, upper: Floats, people: Floats
) -> NDArray[np.str_]:
    """Return the flags of ratings, with those that their intervals and people's ratings raise."""
    rating, human = table.rating, table.human_rating
    people = people[np.isfinite(people.astype(float))]
    beyond = np.zeros(rating.size, dtype=bool)
    if people.size:
        beyond = np.isnan(human) & ((rating > people.max()) | (rating < people.min()))
    raised = {
        "no-spread": np.isfinite(rating) & ~(error > 0),  # its battles do not say how uncertain
        FAR: (human < lower) | (human > upper),
        BEYOND: beyond,
    }
    flags = table.flags.tolist()
    for name, is_raised in raised.items():
        flags = [
            ";".join(filter(None, (old, name if is_set else "")))
            for old, is_set in zip(flags, is_raised.tolist(), strict=True)
        ]
    return np.array(flags, dtype=str)


def base_of(basis: str, method: str, pool: HeldOutRatings) -> str:
    """Return the method whose residuals calibrate a row: that which ``auto`` stands for."""
    base = basis.split(":")[0]
    return base if method == HEADLINE and (pool.method == base).any() else method


class _Estimate(NamedTuple):
    """A rating with its interval and standard error (Elo points), and its evidence."""

    rating: float
    lower: float
    upper: float
    std_error: float
    evidence: str


_NO_ESTIMATE = _Estimate(math.nan, math.nan, math.nan, math.nan, "")


def with_best_evidence(
    board: Leaderboard, together: VotedRatings | None, *, miscoverage: float
) -> Leaderboard:
    """Return a leaderboard ordered by each model's best rating.

    The first of these that a model has: judge and votes together, with a finite interval; the
    votes alone, from `ENOUGH_VOTES` on, with a normal interval; judge and votes without an
    interval; the judge; fewer votes alone, without an interval. Without `together` the judge's
    rating comes first. `std_error` of the board holds the spread of the judge's rating, and is that
    of the chosen one afterwards.
    """
    both = {} if together is None else _together(together)
    normal, chosen = float(ndtri(1 - miscoverage / 2)), []
    for row, name in enumerate(board.model.tolist()):
        by_both = both.get(name, _NO_ESTIMATE)
        by_votes, by_judge = _alone(board, row, normal)
        order = [by_judge, by_votes]
        if together is not None:
            bounded = [one for one in (by_both, by_votes) if math.isfinite(one.upper)]
            order = [*bounded, by_both, *order]
        rated = (one for one in order if math.isfinite(one.rating))
        chosen.append(next(rated, _NO_ESTIMATE))
    columns = (np.array(column) for column in zip(*chosen, strict=True))
    best = board._replace(**dict(zip(_Estimate._fields, columns, strict=True)))
    return in_order(best, miscoverage=miscoverage)


def leading_evidence_text(n_voted: int, miscoverage: float) -> str:
    """Return from which miscoverage on the judge counts beside votes; empty if at the usual one."""
    least = least_miscoverage(max(n_voted - 1, 0))
    if n_voted < 3 or least <= RatingOptions().miscoverage:
        return ""
    is_left_out = models_needed(miscoverage) > n_voted - 1
    here = "the votes alone" if is_left_out else "judge and votes"
    return (
        f"The level decides what a model with {ENOUGH_VOTES} votes is rated by: below miscoverage "
        f"{least:g} its votes alone, since the other {n_voted - 1} models with votes are too few "
        f"to calibrate the judge, and from there on judge and votes together; here it is "
        f"{miscoverage:g}: {here}. Do not compare intervals of both sides."
    )


def _together(ratings: VotedRatings) -> dict[str, _Estimate]:
    """Return each model's estimate by judge and votes together."""
    columns = (ratings.rating, ratings.lower, ratings.upper, ratings.std_error)
    evidence = [f"judge and {_votes(count)}" for count in ratings.n_votes.tolist()]
    rows = zip(*(column.tolist() for column in columns), evidence, strict=True)
    return dict(zip(ratings.model.tolist(), map(_Estimate._make, rows), strict=True))


def _alone(board: Leaderboard, row: int, normal: float) -> tuple[_Estimate, _Estimate]:
    """Return a model's estimates by its votes alone and by the judge alone."""
    human, noise, n_votes = (
        float(column[row]) for column in (board.human_rating, board.human_std_error, board.n_votes)
    )
    reach = normal * noise if n_votes >= ENOUGH_VOTES and noise > 0 else math.inf
    by_votes = _Estimate(human, human - reach, human + reach, noise, _votes(int(n_votes)))
    columns = (board.judge_rating, board.judge_lower, board.judge_upper, board.std_error)
    rating, lower, upper, spread = (float(column[row]) for column in columns)
    return by_votes, _Estimate(rating, lower, upper, spread, BY_JUDGE)


def _votes(count: int) -> str:
    return f"{count} vote{'s' * (count != 1)}"


def _by_model(known: HeldOutRatings, values: Floats, wanted: HeldOutRatings) -> Floats:
    """Return `values` of the models of `known` in the order of `wanted`; NaN for other models."""
    found = dict(zip(known.model.tolist(), values.tolist(), strict=True))
    return np.array([found.get(model, math.nan) for model in wanted.model.tolist()])


def in_order(board: Leaderboard, *, miscoverage: float) -> Leaderboard:
    """Return the rows by rating, best first, with ranks and the ranks that chance allows."""
    board = board.take(np.lexsort((board.model.astype(str), -board.rating.astype(float))))
    rating, lower, upper = (
        column.astype(float) for column in (board.rating, board.lower, board.upper)
    )
    rated = np.isfinite(rating)  # NaN sorts last
    rank, best, worst = np.full((3, rated.size), math.nan)
    rank[rated] = np.arange(1.0, rated.sum() + 1)
    best[rated], worst[rated] = rank_intervals(
        rating[rated], ((upper - lower) / 2)[rated], miscoverage=miscoverage
    )
    return board._replace(rank=rank, best_rank=best, worst_rank=worst)


def rank_intervals(
    rating: ArrayLike, half_width: ArrayLike, *, miscoverage: float
) -> tuple[Floats, Floats]:
    """Return between which ranks every model lies, all at once, at a stated probability.

    A model is above another if its rating is higher by more than `leads_apart`. A model's best rank
    is one more than the number of models above it; a higher rating never has a worse one.

    Source: M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm (2024), Review of Economic Studies
    91(1).
    """
    values = np.asarray(rating, dtype=float)
    if values.size < 2:
        return np.ones(values.size), np.ones(values.size)
    is_above = values[:, None] - values > leads_apart(half_width, miscoverage=miscoverage)
    best = is_above.sum(axis=0) + 1.0
    worst = values.size - is_above.sum(axis=1).astype(float)
    return np.minimum.accumulate(best[::-1])[::-1], np.maximum.accumulate(worst)


def leads_apart(half_width: ArrayLike, *, miscoverage: float) -> Floats:
    """Return by how many Elo points each model must lead each other for chance not to explain it.

    It is the Tukey-Kramer criterion, (M, M), of all pairs at once, in standard deviations that a
    normal rating with such an interval would have.

    Assumption: errors of ratings are about normal and independent.

    Source: A. J. Hayter (1984), Annals of Statistics 12(1).
    """
    spread = np.asarray(half_width, dtype=float) / ndtri(1 - miscoverage / 2)
    criterion = range_quantile(1 - miscoverage, spread.size) / math.sqrt(2)
    return np.asarray(criterion * np.sqrt(spread[:, None] ** 2 + spread**2))


def range_quantile(share: float, n: int) -> float:
    """Return the quantile of the range of n independent standard normal variables.

    Its distribution is ``n * integral phi(z) (Phi(z + x) - Phi(z))^(n - 1) dz``, z the smallest;
    trapezoids are exact to rounding. Source: H. L. Harter (1960), Ann. Math. Statist. 31(4).
    """
    smallest = np.arange(-12.0, 12.0, 1 / 32)
    density = n * np.exp(-(smallest**2) / 2) / math.sqrt(2 * math.pi) / 32
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        chance = density @ (ndtr(smallest + middle) - ndtr(smallest)) ** (n - 1)
        low, high = (middle, high) if chance < share else (low, middle)
    return high


def withhold(leaderboard: Leaderboard, reason: str, *, miscoverage: float) -> Leaderboard:
    """Return a leaderboard by people's votes alone, without any number of the judge's.

    The reason, such as ``skill -0.12 < 0.00``, goes before each model's other flags. A model
    without votes has no rating. ValueError without a reason, or for one with the semicolon that
    separates flags.
    """
    good = bool(reason) and ";" not in reason
    require(good, "the reason to withhold", reason, "some words without a semicolon")
    nothing = np.full(leaderboard.model.size, math.nan)
    flags = [
        ";".join(
            [WITHHELD + reason, *(flag for flag in old.split(";") if flag not in ("", FAR, BEYOND))]
        )
        for old in leaderboard.flags.tolist()
    ]
    board = leaderboard._replace(
        **dict.fromkeys((*OF_THE_JUDGE, "std_error"), nothing), flags=np.array(flags, dtype=str)
    )
    return with_best_evidence(board, None, miscoverage=miscoverage)


def withheld_reason(flags: str) -> str:
    """Return why a model's rating is withheld, from its flags; empty where it is not."""
    first = flags.split(";", 1)[0]
    return first.removeprefix(WITHHELD) if first.startswith(WITHHELD) else ""


def join_newcomers(
    board: Leaderboard, newcomers: Leaderboard, *, miscoverage: float
) -> Leaderboard:
    """Return a leaderboard of a corpus and of models that people have not rated, ranks over all.

    People's votes come first: a newcomer that has a human rating on the board is left out. Else, of
    it and a model of its name without votes, the rated one stands, and of two rated ones that with
    more battles. ValueError if two newcomers have one name, or were rated by another method.
    """
    names = newcomers.model.tolist()
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"newcomer {twice!r} is there twice; give each its own name")
    if set(newcomers.method.tolist()) - set(board.method.tolist()):
        raise ValueError(
            f"newcomers are rated by {str(newcomers.method[0])!r}, the board by "
            f"{str(board.method[0])!r}; remake the ratings of the newcomers"
        )
    rated = np.isfinite(newcomers.rating)
    seen = dict(zip(newcomers.model[rated].tolist(), newcomers.n_battles[rated], strict=True))
    rows = zip(board.model.tolist(), board.human_rating, board.rating, board.n_battles, strict=True)
    stays = {
        name
        for name, human, rating, n_battles in rows
        if np.isfinite(human) or (np.isfinite(rating) and n_battles > seen.get(name, -1))
    }
    enters = np.array([name not in stays for name in names], dtype=bool)
    kept = np.array([name not in set(names) - stays for name in board.model.tolist()], dtype=bool)
    pairs = zip(board, newcomers, strict=True)
    joined = Leaderboard._make(np.concatenate([old[kept], new[enters]]) for old, new in pairs)
    return in_order(joined, miscoverage=miscoverage)
