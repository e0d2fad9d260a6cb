"""Influence of each battle on the rating of a model that was placed among fixed anchors.

A placed model's strength solves one equation: its wins, less those expected of it, equal the
pull of the penalty. Leaving a battle out moves the solution by about one Newton step of the
equation without it.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.arrays import Floats, Ints, alike_floats
from judgeline.elo.battles import CodedBattles, OwnBattles
from judgeline.elo.beta import BetaFolds
from judgeline.elo.placements import Mixture, Placements, place
from judgeline.elo.strengths import ELO_PER_LOGIT
from judgeline.elo.targets import levels_in

_ROUNDING = 1e-12  # of a battle's own information: what a difference of sums may leave of nothing

_TIED = 1e-6  # Elo points: models that two fits of the same battles may put in either order


class BattleInfluences(NamedTuple):
    """One row per battle that counts in a model's rating; a battle may count in two models'.

    `row` is the battle's place among those given. `outcome` and `expected` are shares of the
    win from the model's side: what the method counted, and what the rating expects. `influence`
    is in Elo points: what the rating would lose without the battle, by one Newton step; NaN where
    nothing but the battle holds the rating.
    """

    model: NDArray[np.str_]
    row: Ints
    opponent: NDArray[np.str_]
    outcome: Floats
    expected: Floats
    influence: Floats


def influence_of(
    outcome: ArrayLike, strength: float, anchors: ArrayLike, *, l2: float
) -> tuple[Floats, Floats]:
    """Return expected shares of the win (n,), and influences (n,) in Elo points.

    The influence is ``(outcome - expected) / (sum p (1 - p) + 2 l2)``, the sum over all other
    battles: one Newton step of the placement without the battle. The step and the true change are
    within a factor ``exp(|lost|)`` of each other, ``lost`` in logits. Without a penalty nothing
    else holds the rating of an only battle, and its influence is NaN.

    Sources: R. D. Cook and S. Weisberg (1982), Residuals and Influence in Regression, section 5.2,
    and D. Pregibon (1981), The Annals of Statistics 9(4).
    """
    share, fixed = alike_floats(outcome=outcome, anchors=anchors)
    expected: Floats = expit(strength - fixed)
    own = expected * (1 - expected)
    others = own.sum() - own + 2 * l2
    influence: Floats = np.full(share.size, np.nan)
    held = others > _ROUNDING * own
    influence[held] = ELO_PER_LOGIT * (share - expected)[held] / others[held]
    return expected, influence


def fit_influences(
    battles: CodedBattles,
    beta_folds: BetaFolds,
    *,
    method: str,
    l2: float = 0.01,
    models: Collection[str] | None = None,
) -> BattleInfluences:
    """Return the influence of every battle on the ratings that it counts in.

    Rows are by model, then in the order of the battles; none of a model that has no rating, and
    none of battles against models without votes, which are no anchors. A rating that is mixed of
    others adds up their influences, and its outcomes are their mean.

    `method` is ``human``, or a judge method of `judgeline.elo.rate`; ValueError if it is unknown or
    battles are counted. `models` are all by default.
    """
    battles.require_single("influences")
    placements = place(battles, beta_folds, l2=l2, levels=levels_in([method]), by=[method])
    return _influences(battles, placements, placements.mixture(method), l2, models)


class HoldingBattles(NamedTuple):
    """The battles without which a lead would be below a margin, the most telling first.

    `row` is each one's place among the battles given; there are none where no half of the battles
    was found to do it. `lead` and `lead_without` are by how many Elo points the model is ahead,
    with all battles and, fitted again, without these.
    """

    row: Ints
    lead: float
    lead_without: float


def fewest_to_overtake(
    battles: CodedBattles,
    model: str,
    rival: str,
    *,
    method: str,
    l2: float = 0.01,
    margin: float = 0.0,
) -> HoldingBattles:
    """Return few battles whose removal, with their votes, brings a lead below a margin.

    Battles are chosen by their influence on the lead, anew after each removal, until ratings that
    are fitted without them, slopes and anchors too, have the lead below the margin; then as many of
    the last ones are put back as can be. Fewer might do: the number is a bound from above.

    `model` is ahead of its `rival` by a method of `judgeline.elo.rate`. A margin of 0 Elo points
    asks for the rival ahead, one of `judgeline.intervals.leads_apart` for a lead that chance
    explains. ValueError if a model or the method is unknown, a rating is missing, battles are
    counted, or the lead is below the margin already.

    References
    ----------
    T. Broderick, R. Giordano and R. Meager (2020), "An Automatic Finite-Sample Robustness
    Metric", arXiv:2011.14999, for the choice by influence and the check by a second fit.
    """
    battles.require_single("battles that hold a lead")
    first, second = (battles.models.index(name) for name in (model, rival))

    def lead_of(left: Ints) -> tuple[float, Floats]:
        """Return the lead in Elo points by the battles left, and each one's influence on it."""
        kept = battles.take(left)
        try:
            placements = place(
                kept, l2=l2, levels=levels_in([method]), by=[method], models=(model, rival)
            )
        except (ValueError, RuntimeError):  # what is left ties no human scale together, or no fit
            return np.nan, np.zeros(left.size)
        rating = placements.strength(method)
        found = _influences(kept, placements, placements.mixture(method), l2, {model, rival})
        effect = np.where(found.model == model, found.influence, -found.influence)
        added: Floats = np.bincount(found.row, np.nan_to_num(effect), left.size).astype(float)
        return float(rating[first] - rating[second]) * ELO_PER_LOGIT, added

    everything = np.arange(len(battles))
    lead, added = lead_of(everything)
    if not lead >= margin - _TIED:
        remedy = f"below a margin of {margin:.1f}" if margin else "swap them"
        raise ValueError(f"{model!r} is {lead:.1f} Elo ahead of {rival!r} by {method!r}: {remedy}")
    lead = max(lead, margin)
    gone, left, now = everything[:0], everything, lead
    while now >= margin:
        order = np.argsort(-added, kind="stable")
        reached = np.cumsum(added[order]) > now - margin
        more = int(np.argmax(reached)) + 1 if reached.any() else order.size
        gone, left = np.concatenate([gone, left[order[:more]]]), np.sort(left[order[more:]])
        now, added = lead_of(left)
        if gone.size > left.size or np.isnan(now):
            return HoldingBattles(everything[:0], lead, lead)
    few, enough = 0, gone.size
    while enough - few > 1:
        middle = (few + enough) // 2
        fewer = lead_of(np.setdiff1d(everything, gone[:middle]))[0]
        few, enough, now = (few, middle, fewer) if fewer < margin else (middle, enough, now)
    return HoldingBattles(gone[:enough].astype(np.int64), lead, now)


def _influences(
    battles: CodedBattles,
    placements: Placements,
    mixture: Mixture,
    l2: float,
    models: Collection[str] | None,
) -> BattleInfluences:
    kinds = (str, np.int64, str, float, float, float)
    parts = [BattleInfluences(*(np.array([], dtype=kind) for kind in kinds))]
    names, is_wanted = np.array(battles.models), np.isin(battles.models, list(models or ()))
    for model, own in enumerate(OwnBattles.of_all(battles, placements.sums.voted, None)):
        weights = {name: float(weight[model]) for name, weight in mixture.items() if weight[model]}
        strengths = [placements.placed[base].strength[model] for base in weights]
        known = np.isfinite([*weights.values(), *strengths]).all()
        if known and (models is None or is_wanted[model]):
            rows, opponent, *numbers = _of_one(own, model, weights, placements, l2)
            of_model = np.full(rows.size, names[model])
            parts.append(BattleInfluences(of_model, rows, names[opponent], *numbers))
    return BattleInfluences(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _of_one(
    own: OwnBattles, model: int, weights: Mapping[str, float], placements: Placements, l2: float
) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """Return rows, opponents, outcomes, expectations and influences of one model's battles.

    A battle moves a rating by gap twice: by the vote that it predicts, and by the strength by hard
    outcomes with which all of the model's votes are predicted.
    """
    shares = np.array([placements.bases[base].shares(model, own) for base in weights])
    counted = np.flatnonzero(np.isfinite(shares).all(axis=0))
    counted = counted[np.argsort(own.rows[counted], kind="stable")]
    opponent = own.opponent[counted]
    column = (np.cumsum(placements.sums.voted) - 1)[opponent]

    def of_base(base: str) -> tuple[Floats, Floats]:
        """Return expected shares of the win and influences by one base method."""
        fit, share = placements.placed[base], placements.bases[base].shares(model, own)[counted]
        return influence_of(share, float(fit.strength[model]), fit.anchors[model][column], l2=l2)

    expected, influence = (np.array(parts) for parts in zip(*map(of_base, weights), strict=True))
    total = np.array(list(weights.values())) @ influence
    if "gap" in weights:
        gap = placements.gaps["gap"]
        per_logit = gap.weights[model, 1] * gap.features.per_logit
        total += weights["gap"] * per_logit * of_base("hard")[1]
    outcome = shares[:, counted].mean(axis=0)
    return own.rows[counted].astype(np.int64), opponent, outcome, expected.mean(axis=0), total
