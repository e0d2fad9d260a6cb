"""The leaderboard: one rating, interval and place per model, from leave-one-out ratings."""

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from judgeline.arrays import Floats, require
from judgeline.elo.placements import HEADLINE
from judgeline.elo.ratings import HeldOutRatings
from judgeline.intervals.conformal import (
    StdErrorKind,
    bands_of,
    calibrating_models,
    chosen_std_error,
    family_of,
    interval_half_width,
)
from judgeline.intervals.judge_and_votes import VotedRatings
from judgeline.intervals.refits import JackknifeIntervals

Bands = Literal["strength", "family"]

_THIRDS = 3

WITHHELD = "withheld: "
"""What the flag of a rating begins with that is not shown, because its judge failed the gate."""

OF_THE_JUDGE = (
    "rank", "best_rank", "worst_rank", "rating", "std_error", "vote_std_error", "lower", "upper",
    "judge_and_votes", "judge_and_votes_std_error", "judge_and_votes_lower",
    "judge_and_votes_upper", "hard_rating", "soft_rating", "beta",
)  # fmt: skip
"""Columns that the judge had a say in."""


class Leaderboard(NamedTuple):
    """One row per model, best rating first; models without a rating come last.

    `rating` is by `method`, of which `basis` says what ``auto`` stands for; `lower` and `upper`
    bound its conformal interval (Elo points), which is the whole line for a model without a
    standard error. `std_error` and `vote_std_error` are the model's own parts of its spread.
    `rank` is NaN for a model without a rating; `best_rank` and `worst_rank` bound the true ranks
    of all models at once: see `rank_intervals`.
    `human_rating` is NaN without votes that count. `judge_and_votes` and its interval are of the
    judge's rating and the model's own votes together, from the first vote on. `n_battles`
    counts judged battles against anchors.
    """

    rank: Floats
    best_rank: Floats
    worst_rank: Floats
    model: NDArray[np.str_]
    method: NDArray[np.str_]
    basis: NDArray[np.str_]
    rating: Floats
    std_error: Floats
    vote_std_error: Floats
    lower: Floats
    upper: Floats
    human_rating: Floats
    judge_and_votes: Floats
    judge_and_votes_std_error: Floats
    judge_and_votes_lower: Floats
    judge_and_votes_upper: Floats
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
    *,
    method: str = HEADLINE,
    miscoverage: float = 0.1,
    std_error: StdErrorKind = "analytic",
    calibration: HeldOutRatings | None = None,
    bands: Bands | None = None,
) -> Leaderboard:
    """Return the leaderboard of one method with a conformal interval for every model.

    A model without votes gets the threshold of all voted models' residuals. A voted model
    gets the threshold of the *other* voted models' residuals: its own votes do not widen or
    narrow what is promised about it.

    Parameters
    ----------
    heldout : HeldOutRatings
        Leave-one-out ratings of all methods.
    method : str
        The judge method that ranks.
    miscoverage : float
        Tolerated probability that an interval misses, in (0, 1).
    std_error : {"analytic", "bootstrap"}
        Which standard error scales the intervals.
    calibration : HeldOutRatings, optional
        Ratings of the models that calibrate, where they are not those that are ranked.
    bands : {"strength", "family"}, optional
        A model gets the threshold of its own third by rating, or of the models whose names begin
        alike, where enough of these calibrate, else that of all (Mondrian conformal).

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
    require(bands in (None, *get_args(Bands)), "bands", bands, " or ".join(get_args(Bands)))
    table = heldout.take(heldout.method == method)
    if bands is not None and calibration is not None:
        raise ValueError("bands are of ranked models alone: leave out bands or calibration")
    pool = heldout if calibration is None else calibration
    band = _bands(table, bands)
    spread = chosen_std_error(table, std_error)
    half_width = np.empty(spread.size)
    for row, (name, basis) in enumerate(
        zip(table.model.tolist(), table.basis.tolist(), strict=True)
    ):
        # what ``auto`` stands for in a row, if the pool has it
        stands_for = basis.split(":")[0]
        known = method == HEADLINE and (pool.method == stands_for).any()
        voted = calibrating_models(pool, stands_for if known else method, std_error)
        others = voted.take(voted.model != name)
        alike = (
            None
            if bands is None
            else np.array([band.get(k) == band[name] for k in others.model.tolist()], dtype=bool)
        )
        own = others.spread(spread[row : row + 1], table.vote_std_error[row : row + 1])
        half_width[row] = interval_half_width(others.threshold(miscoverage, weight=alike), own)[0]
    # the flag of a rating whose battles do not say how uncertain it is
    lacks = np.isfinite(table.rating) & ~(spread > 0)
    flags = [
        ";".join(filter(None, (old, "no-spread" * new)))
        for old, new in zip(table.flags.tolist(), lacks.tolist(), strict=True)
    ]
    nowhere = np.full(table.model.size, math.nan)
    hard, soft = (heldout.take(heldout.method == name) for name in ("hard", "soft"))
    return in_order(
        Leaderboard(
            nowhere, nowhere, nowhere, table.model, table.method, table.basis, table.rating,
            spread, table.vote_std_error, table.rating - half_width, table.rating + half_width,
            table.human_rating, nowhere, nowhere, nowhere, nowhere,
            _by_model(hard, hard.rating, table), _by_model(soft, soft.rating, table),
            _by_model(soft, soft.beta, table), table.n_battles, table.n_votes, np.array(flags),
        ),
        miscoverage=miscoverage,
    )  # fmt: skip


def _bands(table: HeldOutRatings, bands: Bands | None) -> dict[str, str]:
    """Return the band of every model; one without a rating has one of its own."""
    band = {name: family_of(name) for name in table.model.tolist()}
    if bands == "strength":
        rated = np.isfinite(table.rating)
        thirds = bands_of(table.rating[rated], n_bands=_THIRDS)
        band = dict.fromkeys(band, "") | dict(
            zip(table.model[rated].tolist(), thirds.tolist(), strict=True)
        )
    return band


def _by_model(
    known: HeldOutRatings | VotedRatings | JackknifeIntervals,
    values: Floats,
    wanted: HeldOutRatings | Leaderboard,
) -> Floats:
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


def with_intervals(
    board: Leaderboard, intervals: JackknifeIntervals, *, miscoverage: float
) -> Leaderboard:
    """Return a leaderboard with other intervals, and the rank intervals that follow from them."""
    nowhere = np.isnan(board.rating)
    lower, upper = (
        np.where(nowhere, math.nan, _by_model(intervals, end, board))
        for end in (intervals.lower, intervals.upper)
    )
    return in_order(board._replace(lower=lower, upper=upper), miscoverage=miscoverage)


def with_votes(board: Leaderboard, together: VotedRatings) -> Leaderboard:
    """Return a leaderboard with the rows of `rate_with_votes` beside it; NaN for other models."""
    return board._replace(
        judge_and_votes=_by_model(together, together.rating, board),
        judge_and_votes_std_error=_by_model(together, together.std_error, board),
        judge_and_votes_lower=_by_model(together, together.lower, board),
        judge_and_votes_upper=_by_model(together, together.upper, board),
    )


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


def missed(board: Leaderboard) -> NDArray[np.bool_]:
    """Return which models have an interval that does not hold their human rating, shape (n,)."""
    lower, upper, human = _ends_and_human(board)
    return np.asarray((human < lower) | (human > upper))


def kept_intervals(board: Leaderboard) -> tuple[int, int]:
    """Return how many intervals hold their model's human rating, of how many that could fail.

    Intervals that are the whole line promise nothing and are not counted.
    """
    n_counted = int(np.isfinite(_ends_and_human(board)).all(axis=0).sum())
    return n_counted - int(missed(board).sum()), n_counted


def _ends_and_human(board: Leaderboard) -> Floats:
    return np.array([board.lower, board.upper, board.human_rating], dtype=float)


def kept_text(board: Leaderboard, miscoverage: float) -> str:
    """Return the sentence "k of n intervals hold the human rating (90 % promised)"."""
    n_held, n_counted = kept_intervals(board)
    if not n_counted:
        return "no model with votes has an interval to hold its human rating against"
    promised = f"{100 * (1 - miscoverage):g} % promised"
    return f"{n_held} of {n_counted} intervals hold the human rating ({promised})"


def withhold(leaderboard: Leaderboard, reason: str) -> Leaderboard:
    """Return a leaderboard without any number that the judge had a say in, and with the reason.

    The reason, such as ``kappa 0.05 < 0.20``, goes before each model's other flags. Rows are by
    name, since their order would tell the ranks; human ratings and counts stay. ValueError without
    a reason, or for one with the semicolon that separates flags.
    """
    good = bool(reason) and ";" not in reason
    require(good, "the reason to withhold", reason, "some words without a semicolon")
    board = leaderboard.take(np.argsort(leaderboard.model, kind="stable"))
    nothing = np.full(board.model.size, math.nan)
    flags = (";".join(filter(None, (WITHHELD + reason, old))) for old in board.flags.tolist())
    return board._replace(
        **dict.fromkeys(OF_THE_JUDGE, nothing), flags=np.array(list(flags), dtype=str)
    )


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
