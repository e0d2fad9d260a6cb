"""Placements of every model by every method, and the ratings that are mixed of them."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from judgeline.arrays import Bools, Floats, Ints, require
from judgeline.elo.anchors import cut_models
from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import CodedBattles
from judgeline.elo.beta import BetaFolds, fit_beta_folds
from judgeline.elo.gap import QUARTERS, GapFit, fit_gap, gap_features
from judgeline.elo.leave_one_out import fit_anchors, fit_leave_one_out
from judgeline.elo.strengths import analytic_std_error, place_models
from judgeline.elo.targets import (
    SMOOTHING_LEVELS,
    Base,
    Placed,
    ScoringMethod,
    Target,
    baseline,
    by_method,
    by_outcome,
    by_people,
    by_slope,
    own_target,
)
from judgeline.rating_options import RatingOptions
from judgeline.verdict.outcomes import smooth_outcome

HEADLINE = RatingOptions.method
"""Method that ranks unless another one is asked for: `mixtures` has its rule."""

AVERAGE_FROM = 20
"""Other models with votes from which on the headline is ``average``; below, it is ``gap``."""

_RULED = ("hard", "soft")  # base methods beside which there is one on the ruler

_ROUNDING = 1e-9  # a slope that sums of strengths cannot tell from zero

Mixture = Mapping[str, Floats]
"""Coefficient (M,) of each base: the mixture's strength is the sum of coefficient x strength."""

JUDGE_METHODS: tuple[str, ...] = (
    *_RULED,
    *map(baseline, SMOOTHING_LEVELS),
    "gap",
    *(f"{name}-rescaled" for name in _RULED),
    "average",
    HEADLINE,
)
"""Methods that rate by a judge, at the paper's smoothing levels."""


class Placements(NamedTuple):
    """Strengths of every model by every base method, on the judge's scale, before any ruler.

    `bases` and `placed` are by base method: ``human``, ``hard``, ``soft``, smoothed ones, ``gap``
    and others that were given. `mixtures` are the ratings made of bases, `gaps` the fits of the
    bases that predict votes, `basis` (M,) says in words what ``auto`` stands for, and why.
    """

    sums: Sums
    bases: Mapping[str, Base]
    placed: Mapping[str, Placed]
    mixtures: Mapping[str, Mixture]
    gaps: Mapping[str, GapFit]
    basis: Mapping[str, NDArray[np.str_]]

    @property
    def beta(self) -> dict[str, Floats]:
        """Slopes (M,) of the bases that have them."""
        return {name: base.beta for name, base in self.bases.items() if base.beta is not None}

    @property
    def judged(self) -> Target:
        """Target of all judged battles: the first that is not people's."""
        return next(base.target for name, base in self.bases.items() if name != "human")

    def mixture(self, method: str) -> Mixture:
        """Return the coefficients of a method's bases; ValueError names the known methods."""
        if method in self.placed:
            return {method: np.ones(self.sums.voted.size)}
        if method not in self.mixtures:
            known = ", ".join((*self.placed, *self.mixtures))
            raise ValueError(f"no ratings by method {method!r}; there are {known}")
        return self.mixtures[method]

    def mixed(self, method: str, values: Mapping[str, Floats]) -> Floats:
        """Return a method's ``sum(weight * value)`` over bases, (M,); a weight of 0 hides NaN."""
        mixture = self.mixture(method).items()
        parts = [np.where(weight == 0, 0.0, weight * values[name]) for name, weight in mixture]
        return np.asarray(sum(parts))

    def strength(self, method: str) -> Floats:
        """Return every model's strength by a method, (M,) logits."""
        return self.mixed(method, {name: fit.strength for name, fit in self.placed.items()})


def place(
    battles: CodedBattles,
    beta_folds: BetaFolds | None = None,
    *,
    l2: float,
    levels: tuple[float, ...] = (),
    methods: Mapping[str, ScoringMethod] | None = None,
    question: Ints | None = None,
    by: Collection[str] | None = None,
    models: Collection[str] | None = None,
) -> Placements:
    """Return the placements that ratings are made from: by votes, and by the judge.

    `levels` are of the smoothed methods; `question` (n,) numbers battles' questions, for errors.
    Where `by` names the methods asked for, ``soft`` and ``gap`` are fitted only if one is mixed of
    them; where `models` are named, all others have no place. What is fitted is the same to the last
    bit.
    """
    sums = Sums.of(battles)
    needed = bases_of(by, sums.voted)
    people, anchors = by_people(sums), human_anchors(battles, l2=l2, models=models)[1]
    folds = fit_beta_folds(battles) if beta_folds is None else beta_folds
    held_out = tuple(folds.held_out_model)
    remedy = f"those of the battles, {battles.models}; fit the folds on these battles"
    require(held_out == battles.models, "the models of the beta folds", held_out, remedy)
    smoothed = {baseline(level): smooth_outcome(QUARTERS, level) for level in levels}
    bases = {"human": people, "hard": by_outcome(sums, QUARTERS)}
    if needed is None or "soft" in needed:
        bases["soft"] = by_slope(battles, sums, folds.beta)
    bases |= {name: by_outcome(sums, share) for name, share in smoothed.items()}
    gaps = {}
    if needed is None or "gap" in needed:
        gap = fit_gap(battles, gap_features(battles, l2=l2, question=question))
        bases["gap"] = Base(own_target(battles, sums, gap.of_both(battles)), gap.of_own)
        gaps["gap"] = gap
    for name, method in (methods or {}).items():
        if name in ("human", *JUDGE_METHODS):
            raise ValueError(
                f"a method is called {name!r}, which is made from the battles themselves"
            )
        bases[name] = by_method(name, method, battles, sums)
    placed = place_bases(bases, sums, anchors, l2=l2, models=models)
    mixed = mixtures(placed, sums, (*_RULED, *(methods or {})))
    basis = {HEADLINE: basis_of(sums.voted)}
    return Placements(sums, bases, placed, mixed, gaps, basis)


def bases_of(methods: Collection[str] | None, voted: Bools) -> set[str] | None:
    """Return the base methods that these methods are mixed of; None for all, or an unknown one."""
    if methods is None or not {*methods} <= {"human", *JUDGE_METHODS}:
        return None
    many = averaged(voted)
    mixed = {"average": {*_RULED}, HEADLINE: {*_RULED} if many.all() else {*_RULED, "gap"}}
    own = (mixed.get(name, {name.removesuffix("-rescaled")}) for name in methods)
    return set[str]().union(*own)


def human_anchors(
    battles: CodedBattles, *, l2: float, models: Collection[str] | None = None
) -> tuple[Bools, Floats]:
    """Return which models are anchors, (M,), and people's strengths of them by fold, (M, A)."""
    sums, made = Sums.of(battles), battles.made
    key = "human", l2, None if models is None else frozenset(models)
    if key not in made:
        made[key] = fold_anchors(by_people(sums).target, sums, l2, models)
    return sums.voted, made[key]


def fold_anchors(
    target: Target, sums: Sums, l2: float, models: Collection[str] | None = None
) -> Floats:
    """Return anchors' strengths by fold, (M, A) logits, a model's own 0; NaN without a fold.

    Only the folds of `models` are fitted, where they are named.
    """
    voted, fold_wins = sums.voted, np.asarray(target.fold_wins)
    if models is not None:
        fold_wins = np.where(np.isin(sums.names, [*models])[:, None], fold_wins, np.nan)
    among, anchors = target.n_battles[voted], np.full(fold_wins.shape, np.nan)
    whole = fold_wins[voted] + among - target.own_wins[voted]
    whole = whole[np.isfinite(whole).all(axis=1)]
    start = whole.mean(axis=0) if len(whole) else np.full(len(among), np.nan)
    start += (among.sum() / 2 - start.sum()) / start.size
    names = sums.names[voted]
    anchors[voted] = fit_leave_one_out(among, fold_wins[voted], start, l2=l2, names=names)
    unvoted = np.flatnonzero(~voted & np.isfinite(fold_wins).all(axis=1))
    if unvoted.size:
        anchors[unvoted] = fit_anchors(among, fold_wins[unvoted[0]], l2=l2)
    anchors[np.flatnonzero(voted)[cut_models(among)]] = np.nan  # others fall apart without them
    return anchors


def place_bases(
    bases: Mapping[str, Base],
    sums: Sums,
    human: Floats,
    *,
    l2: float,
    models: Collection[str] | None = None,
) -> dict[str, Placed]:
    """Fit every fold's anchors by every base, then place each model among them.

    Votes, and bases without fold wins, use the anchors `human`. By a judge's base no vote on a
    model changes a bit of its place.
    """
    targets = {name: base.target for name, base in bases.items()}
    fitted = {"human": human} | {
        name: fold_anchors(target, sums, l2, models)
        for name, target in targets.items()
        if target.fold_wins is not None and name != "human"
    }
    anchors = np.array([fitted.get(name, human) for name in targets])
    counts, wins = (np.array([target[field] for target in targets.values()]) for field in (0, 1))
    squares = np.array([target.own_squares for target in targets.values()])
    strength = np.full(squares.shape, np.nan)
    error = strength.copy()
    for model, others in enumerate(sums.others):
        met = others & (counts[:, model] > 0).any(axis=0)  # no vote is on a battle without verdict
        n, won, fixed = (part[:, model][:, met] for part in (counts, wins, anchors))
        is_placed = np.isfinite(squares[:, model]) & np.isfinite(fixed).all(axis=1)
        total = np.where(is_placed, won.sum(axis=1), np.nan)
        strength[:, model] = place_models(total, n, fixed, l2=l2)
        chance = expit(strength[:, model, None] - fixed)
        expected = n * chance
        error[:, model] = analytic_std_error(
            (won - expected).sum(axis=1),
            squares[:, model] - ((2 * won - expected) * chance).sum(axis=1),
            (expected * (1 - chance)).sum(axis=1) + 2 * l2,
            n.sum(axis=1),
        )
    rows = zip(targets, strength, error, anchors, strict=True)
    return {name: Placed(*columns) for name, *columns in rows}


def ruler_slopes(base: Placed, human: Placed, others: Bools) -> Floats:
    """Return the slope from a base's strengths to human ones in every model's fold, (M,).

    ``sum u t / sum u^2`` over the anchors other than the model, whose strengths ``u`` by the base
    and ``t`` by people were both fitted without it and centred.
    """
    slopes = np.full(len(others), np.nan)
    for model, own in enumerate(others):
        judged, people = base.anchors[model][own], human.anchors[model][own]
        product, square = float(judged @ people), float(judged @ judged)
        if own.sum() >= 2 and product > _ROUNDING * square > 0:
            slopes[model] = product / square
    return slopes


def mixtures(placed: Mapping[str, Placed], sums: Sums, ruled: Iterable[str]) -> dict[str, Mixture]:
    """Return the coefficients of every rating that combines base methods.

    ``X-rescaled`` is method X of those `ruled`, on the ruler; ``average`` the mean of hard and soft
    on theirs; ``auto`` the headline: ``average`` for a model beside which `AVERAGE_FROM` others
    have votes, ``gap`` for any other. Neither a model's own votes nor its own rating choose. A
    rating of which a base is not `placed` has none.
    """
    fitted = [name for name in ruled if name in placed]
    slopes = {name: ruler_slopes(placed[name], placed["human"], sums.others) for name in fitted}
    many = averaged(sums.voted)
    halves = {name: slopes[name] / 2 for name in _RULED if name in slopes}
    headline = {name: np.where(many, half, 0.0) for name, half in halves.items()}
    if not many.all():
        headline["gap"] = np.where(many, 0.0, 1.0)
    mixed: dict[str, Mixture] = {f"{name}-rescaled": {name: slopes[name]} for name in slopes}
    mixed |= {"average": halves, HEADLINE: headline} if len(halves) == len(_RULED) else {}
    return {name: of_bases for name, of_bases in mixed.items() if of_bases.keys() <= placed.keys()}


def averaged(voted: Bools) -> Bools:
    """Return for which models ``auto`` stands for ``average``, shape (M,)."""
    return np.asarray(voted.sum() - voted >= AVERAGE_FROM)


def basis_of(voted: Bools) -> NDArray[np.str_]:
    """Return the method that ``auto`` stands for by model, with its reason, in words (M,)."""
    texts = [
        f"average: {n} other models have votes"
        if many
        else f"gap: {n} other models have votes, fewer than {AVERAGE_FROM}"
        for n, many in zip((voted.sum() - voted).tolist(), averaged(voted).tolist(), strict=True)
    ]
    return np.array(texts)
