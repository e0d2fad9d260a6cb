"""Leave-one-model-out ratings: every model placed by judge, and by people, as if it were new."""

import math
from collections.abc import Collection, Mapping
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Bools, Floats, Ints
from judgeline.elo.anchors import cut_models
from judgeline.elo.battles import CodedBattles
from judgeline.elo.beta import BetaFolds
from judgeline.elo.placements import Placements, place
from judgeline.elo.questions import design_effects, question_codes
from judgeline.elo.resampling import RatingSettings, std_errors
from judgeline.elo.strengths import ELO_PER_LOGIT, strength_to_rating
from judgeline.elo.targets import ScoringMethod

FEW_BATTLES = 20
"""Battles against anchors below which a model is flagged: its standard error is a guess."""


class HeldOutRatings(NamedTuple):
    """One row per model and method.

    `rating`, `human_rating`, `residual` (rating minus human rating), `std_error` (bootstrap),
    `std_error_analytic` (its closed form), `human_std_error` (of the human rating, closed form
    times ``sqrt(design_effect)``) and `vote_std_error` (of a human rating, were each of the model's
    judged battles voted on once and independently) are in Elo points, `beta` in logits per rubric
    point. `design_effect` is how many times shared questions multiply a human rating's variance.
    `outward` (Elo points, with its sign) is how far the end of an interval that points away from
    the anchors moves: see `outward_shift`. NaN means that the value does not exist; `flags` says
    why a rating does not. `basis` says what ``auto`` stands for.
    """

    model: NDArray[np.str_]
    method: NDArray[np.str_]
    basis: NDArray[np.str_]
    rating: Floats
    human_rating: Floats
    residual: Floats
    std_error: Floats
    std_error_analytic: Floats
    human_std_error: Floats
    vote_std_error: Floats
    design_effect: Floats
    outward: Floats
    beta: Floats
    n_battles: Ints
    n_votes: Ints
    flags: NDArray[np.str_]

    def take(self, rows: NDArray[Any]) -> "HeldOutRatings":
        """Return some of the rows (boolean mask or positions)."""
        return HeldOutRatings._make(column[rows] for column in self)

    def judge_methods(self) -> list[str]:
        """Return the methods other than ``human``, in the order of their rows."""
        return [name for name in dict.fromkeys(self.method.tolist()) if name != "human"]


def rate(
    battles: CodedBattles,
    settings: RatingSettings,
    methods: Mapping[str, ScoringMethod] | None = None,
    *,
    beta_folds: BetaFolds | None = None,
    cluster: ArrayLike | None = None,
    models: Collection[str] | None = None,
) -> HeldOutRatings:
    """Return the leave-one-model-out rating of every model by every method.

    Methods: ``human`` (votes), ``hard`` (judge outcomes), ``soft`` (``sigmoid(beta_m s)``),
    ``smoothed-c`` per level, ``gap``, further ones as given; ``-rescaled`` ones on the ruler of
    the model's fold, ``average`` and the headline ``auto``. No row of a model depends on a vote
    on that model, but for its human rating.

    Parameters
    ----------
    battles, settings : CodedBattles, RatingSettings
        Judged battles, n of them over M models, with votes on some, and how to rate them.
    methods : mapping of str to ScoringMethod, optional
        Further scorings of the same battles, by name.
    beta_folds : BetaFolds, optional
        Slope per held-out model, in the order of ``battles.models``; fitted here by default. A
        model whose slope is NaN has no soft rating.
    cluster : array_like of int or str, shape (n,), optional
        Cluster of each battle, such as its question; standard errors then treat a cluster's
        battles as drawn together.
    models : collection of str, optional
        Models to return, such as one newcomer; all by default.

    Returns
    -------
    HeldOutRatings
        Rows by model, then method; rows of models without votes have no ``human`` method.

    Raises
    ------
    ValueError
        If nobody voted, slopes belong to other models, a method has a name that is taken or not
        one finite score per battle, or votes or judged battles do not connect the voted models;
        on counted battles also if resamples, clusters or further methods are asked for.
    RuntimeError
        If an iteration does not converge.

    References
    ----------
    Kargi and Salinas (2026), arXiv:2606.13221, Algorithm 1, for ``hard`` and ``soft``. The
    penalty here is ``l2 * |strength|^2``, not half of it.
    """
    question = question_codes(cluster, len(battles))
    if methods or cluster is not None or settings.n_resamples:
        battles.require_single("resamples, clusters and further methods")
    wanted = np.isin(battles.models, list(battles.models if models is None else models))
    l2, levels = settings.l2, settings.smoothing_levels
    found = place(battles, beta_folds, l2=l2, levels=levels, methods=methods, question=question)
    return tabulate(battles, found, settings, question, wanted)


def tabulate(
    battles: CodedBattles,
    found: Placements,
    settings: RatingSettings,
    question: Ints | None,
    wanted: Bools,
) -> HeldOutRatings:
    """Return the ratings by every base method and mixture, rows by model, then method."""
    outward, flags = ELO_PER_LOGIT * outward_shift(found), _flags(found)
    errors = std_errors(battles, found, settings, question, wanted)
    for name, fit in found.gaps.items():
        by_judge = fit.weights[:, 1] * fit.features.own_error
        for kind in errors:
            kind[name] = np.where(kind[name] > 0, np.hypot(kind[name], by_judge), kind[name])
    bootstrap, closed = errors
    design = design_effects(battles, found.sums.voted, found.placed["human"], question)
    human = strength_to_rating(found.strength("human"))
    votes = found.bases["human"].target.n_battles.sum(axis=1).astype(np.int64)
    judged = found.judged.n_battles.sum(axis=1).astype(np.int64)
    names = found.sums.names
    nothing, unsaid = np.full(names.size, np.nan), np.full(names.size, "")
    tables: list[HeldOutRatings] = []
    for method in (*found.placed, *found.mixtures):
        strength, of_people = found.strength(method), method == "human"
        rating = strength_to_rating(strength)
        table = HeldOutRatings(
            model=names,
            method=np.full(names.size, method),
            basis=found.basis.get(method, unsaid),
            rating=rating,
            human_rating=human,
            residual=rating - human,
            std_error=ELO_PER_LOGIT * found.mixed(method, bootstrap),
            std_error_analytic=ELO_PER_LOGIT * found.mixed(method, closed),
            human_std_error=ELO_PER_LOGIT * closed["human"] * np.sqrt(design),
            vote_std_error=ELO_PER_LOGIT * _vote_std_error(found, strength),
            design_effect=design,
            outward=np.zeros(names.size) if of_people else outward,
            beta=found.beta.get(method.removesuffix("-rescaled"), nothing),
            n_battles=votes if of_people else judged,
            n_votes=votes,
            flags=flags,
        )
        tables.append(table.take(wanted & found.sums.voted if of_people else wanted))
    joined = HeldOutRatings._make(np.concatenate(parts) for parts in zip(*tables, strict=True))
    return joined.take(np.argsort(joined.model, kind="stable"))


def outward_shift(found: Placements) -> Floats:
    """Return how far the outward end of every model's interval moves, (M,) logits with its sign.

    ``x (b_rma - b_ols)``: x is the model's strength by the judge's outcomes less its anchors' mean,
    ``b_ols = sum u t / sum u^2`` the slope from the anchors' strengths u by judge to t by people,
    and ``b_rma = sqrt(sum t^2 / sum u^2)`` the reduced major axis, each in the model's own fold.
    Both strengths are noisy, so that the true slope lies above b_ols: a rating right on average is
    drawn towards the mean where x is large. No vote on the model enters; NaN without two anchors.

    Source: W. A. Fuller (1987), Measurement Error Models, section 1.1, on both slopes.
    """
    human = found.placed["human"].anchors
    hard = found.placed.get("hard")
    shift = np.full(found.sums.voted.size, np.nan)
    for model, others in enumerate(found.sums.others):
        if hard is None:  # several judges: their mean strengths, to which no vote contributes
            mean = next(iter(found.gaps.values())).features.strength
            judged, own = mean[found.sums.voted], mean[model]
        else:
            judged, own = hard.anchors[model], hard.strength[model]
        u, t = judged[others], human[model][others]
        if others.sum() < 2 or not np.isfinite(u.sum() + t.sum()):
            continue
        centre = float(u.mean())
        u, t = u - centre, t - t.mean()
        square = float(u @ u)
        if square > 0:
            shift[model] = (own - centre) * (math.sqrt(float(t @ t) * square) - u @ t) / square
    return shift


def _vote_std_error(found: Placements, strength: Floats) -> Floats:
    """Return the standard error of a placement by one vote on every judged battle, logits (M,)."""
    anchors, counts = found.placed["human"].anchors, found.judged.n_battles
    information = np.full(strength.size, np.nan)
    for model, own in enumerate(found.sums.others):
        chance = expit(strength[model] - anchors[model][own])
        information[model] = (counts[model][own] * chance * (1 - chance)).sum()
    return np.asarray(1 / np.sqrt(np.where(information > 0, information, np.nan)))


def _flags(found: Placements) -> NDArray[np.str_]:
    """Return each model's flags, such as ``no-votes``, joined by semicolons (M,)."""
    voted, judge = found.sums.voted, found.judged
    cut = np.zeros(voted.size, dtype=bool)
    for target in (found.bases["human"].target, judge):
        cut[voted] |= cut_models(target.n_battles[voted])
    met, won = judge.n_battles.sum(axis=1), judge.own_wins.sum(axis=1)
    votes, zeros = found.sums.human.sum(axis=1), np.zeros(voted.size)
    targets = [base.target for base in found.bases.values()]
    squares = (fit.own_squares for fit in targets if fit.fold_wins is None)
    raised = {
        "no-votes": ~voted,
        "no-battles-with-anchors": met == 0,
        "few-battles": (met > 0) & (met < FEW_BATTLES),
        "anchors-disconnected": cut,
        "no-slope": np.isnan(found.beta.get("soft", zeros)),
        "no-ruler": np.isnan(sum(found.mixtures.get("average", {}).values(), start=zeros)),
        "no-weights": (met > 0) & np.isnan(sum(squares, start=zeros)),
        "judge-always-prefers": (met > 0) & (won == met),
        "judge-never-prefers": (met > 0) & (won == 0),
        "humans-always-prefer": voted & (votes[:, :2].sum(axis=1) == 0),
        "humans-never-prefer": voted & (votes[:, 1:].sum(axis=1) == 0),
    }
    rows = zip(*raised.values(), strict=True)
    return np.array([";".join(compress(raised, row)) for row in rows])


class Summary(NamedTuple):
    """One row per judge method, over the models with a residual.

    `mae` (mean absolute residual) and `bias` (mean residual) are in Elo points; `stretch` is
    the least-squares slope of judge on human ratings (1 is a true ruler, more a stretched
    one); `spearman` and `kendall` are rank correlations with human ratings; `mean_beta` is in
    logits per rubric point, NaN for methods without a slope.
    """

    method: NDArray[np.str_]
    n_models: Ints
    mae: Floats
    bias: Floats
    stretch: Floats
    spearman: Floats
    kendall: Floats
    mean_beta: Floats


def summarise(heldout: HeldOutRatings) -> Summary:
    """Return the agreement of every judge method with the human ratings, one row a method.

    Correlations and stretch are NaN below two models or where either side's ratings are all equal.
    """
    rows: list[tuple[object, ...]] = []
    for method in heldout.judge_methods():
        own = heldout.take((heldout.method == method) & np.isfinite(heldout.residual))
        residual, judge, human = own.residual, own.rating, own.human_rating
        error = bias = slope = stretch = by_rank = tau = math.nan
        if residual.size:
            error, bias = float(np.abs(residual).mean()), float(residual.mean())
            slope = float(own.beta.mean())
        if residual.size > 1 and np.ptp(judge) > 0 and np.ptp(human) > 0:
            stretch = float(np.polyfit(human, judge, 1)[0])
            by_rank, tau = spearman(judge, human), kendall(judge, human)
        rows.append((method, residual.size, error, bias, stretch, by_rank, tau, slope))
    return Summary(*(np.array(column) for column in zip(*rows, strict=True)))


def average_ranks(values: ArrayLike) -> Floats:
    """Return the ranks of values from 1; equal ones share the mean of theirs."""
    _, place, count = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    mean_rank: Floats = np.cumsum(count) - (count - 1) / 2
    return mean_rank[place]


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return the correlation of the ranks of two columns, neither constant; NaN if one holds NaN.

    Source: C. Spearman (1904), American Journal of Psychology 15(1).
    """
    columns = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    ranks = np.column_stack([average_ranks(column) for column in columns])
    known = not np.isnan(columns).any()
    return float(np.corrcoef(ranks, rowvar=False)[1, 0]) if known else math.nan


def kendall(first: ArrayLike, second: ArrayLike) -> float:
    """Return tau-b of two columns, neither constant; NaN if one holds NaN.

    Memory grows with the square of their length: it is for models, not for battles.
    Source: M. G. Kendall (1945), "The Treatment of Ties in Ranking Problems", Biometrika 33(3).
    """
    columns = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if np.isnan(columns).any():
        return math.nan
    order, other = ((c[:, None] > c).astype(np.int8) - (c[:, None] < c) for c in columns)
    agreeing = int(np.sum(order * other, dtype=np.int64)) // 2  # less those that disagree
    untied, other_untied = (int(np.count_nonzero(signs)) // 2 for signs in (order, other))
    return float(np.clip(agreeing / np.sqrt(untied) / np.sqrt(other_untied), -1.0, 1.0))
