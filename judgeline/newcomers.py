"""Newcomers: models without votes, placed one at a time on a scale that none of them moves.

The scale is what `fit_heldout_ratings` places a model without votes on: the anchors fitted to all
judged battles among them, soft outcomes at the slope of all votes, rulers through all models with
votes. It is fitted once; a newcomer then needs its own battles and nothing else, so that no rating
depends on which other newcomers there are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from judgeline.battles import CodedBattles
from judgeline.beta import fit_beta
from judgeline.bootstrap import unit_std_error
from judgeline.bradley_terry import fit_strengths
from judgeline.elo import ELO_PER_LOGIT, strength_to_rating
from judgeline.heldout import FEW_BATTLES, RULERS, HeldOutRatings, resampling_families
from judgeline.outcomes import smooth_outcome
from judgeline.own_battles import OwnBattles
from judgeline.placement import place_models
from judgeline.rating_settings import RatingSettings
from judgeline.std_errors import Family, require_clusters, resampled_std_errors
from judgeline.tally import tally_outcomes
from judgeline.targets import linear_target, require_anchors_connected, require_votes

Floats = NDArray[np.float64]

FEWEST_BATTLES = 2
"""Battles against anchors below which a newcomer has no rating: one battle has no spread."""

_HALVES = np.array([0.0, 0.5, 1.0])
_QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


class RuledBy(NamedTuple):
    """A method on a ruler: its base, and the line from the base's Elo points to the human ones."""

    base: str
    intercept: float
    slope: float


@dataclass(frozen=True)
class AnchorScale:
    """A fixed scale to place newcomers on.

    Attributes
    ----------
    models : tuple of str, length A
        The anchors: the models with votes, sorted.
    beta : float
        Slope of all votes, in logits per rubric point; NaN where the judge has none.
    strengths : mapping of str to ndarray, shape (A,)
        Anchors' strengths in logits by method; NaN for soft ones without a slope.
    rulers : mapping of str to RuledBy
        Methods that map another one's ratings; NaN where too few models have votes.
    settings : RatingSettings
        What it was fitted with.
    """

    models: tuple[str, ...]
    beta: float
    strengths: Mapping[str, Floats]
    rulers: Mapping[str, RuledBy]
    settings: RatingSettings

    def anchor_ratings(self, method: str) -> Floats:
        """Return the anchors' own ratings on this scale by a method, in Elo points, shape (A,)."""
        ruled = self.rulers.get(method, RuledBy(method, 0.0, 1.0))
        return ruled.intercept + ruled.slope * strength_to_rating(self.strengths[ruled.base])

    def tied_rating(self, method: str, opponents: ArrayLike) -> float:
        """Return the rating of a model that ties every battle, in Elo points.

        Parameters
        ----------
        method : str
            One of the methods.
        opponents : array_like of str, shape (n,)
            Whom it met, once per battle; those that are no anchors do not count.

        Returns
        -------
        float
            NaN where it met no anchor, or the method has no strengths.
        """
        ruled = self.rulers.get(method, RuledBy(method, 0.0, 1.0))
        names = np.asarray(opponents, dtype=object).tolist()
        met = np.array([[names.count(anchor) for anchor in self.models]], dtype=float)
        anchors = self.strengths[ruled.base]
        if not met.any() or not np.isfinite(anchors).all():
            return float("nan")
        strength = place_models(met.sum(axis=1) / 2, met, anchors, l2=self.settings.l2)
        return float((ruled.intercept + ruled.slope * strength_to_rating(strength))[0])


def fit_anchor_scale(
    battles: CodedBattles, heldout: HeldOutRatings, settings: RatingSettings
) -> AnchorScale:
    """Return the scale on which models without votes are placed.

    Parameters
    ----------
    battles : CodedBattles
        Judged battles of a corpus, with votes on some.
    heldout : HeldOutRatings
        Leave-one-out ratings of the same battles; rulers go through those with votes.
    settings : RatingSettings
        Penalty, resamples, seed, stream and smoothing levels.

    Raises
    ------
    ValueError
        If nobody voted, or no chain of votes connects the anchors.
    RuntimeError
        If an iteration does not converge.
    """
    voted = require_votes(battles)
    tally = tally_outcomes(battles)
    human = linear_target(tally.human[:, voted], _HALVES, voted)
    require_anchors_connected(human, voted, battles.models)
    judge = tally.judge[np.ix_(voted, voted)]
    vote = battles.human_outcome
    beta = fit_beta(battles.rubric_points(), np.where(vote >= 0, vote / 2, np.nan)).beta
    wins = {"hard": (judge @ _QUARTERS).sum(axis=1), "soft": _soft_wins(battles, voted, beta)}
    for level in settings.smoothing_levels:
        wins[f"smoothed-{level!r}"] = (judge @ smooth_outcome(_QUARTERS, level)).sum(axis=1)
    return AnchorScale(
        tuple(np.array(battles.models)[voted].tolist()),
        beta,
        {name: _strengths(judge.sum(axis=2), won, settings.l2) for name, won in wins.items()},
        {name: _ruler(heldout, name) for name in RULERS},
        settings,
    )


def _soft_wins(battles: CodedBattles, voted: NDArray[np.bool_], beta: float) -> Floats:
    among = battles.take(voted[battles.model_a] & voted[battles.model_b])
    score, size = among.rubric_points(), voted.size
    of_a = np.bincount(among.model_a, expit(beta * score), size)
    of_b = np.bincount(among.model_b, expit(-beta * score), size)
    return np.asarray((of_a + of_b)[voted])


def _strengths(n_battles: NDArray[np.int64], wins: Floats, l2: float) -> Floats:
    if np.isnan(wins).any():  # a judge without a slope has no soft outcomes
        return np.full(wins.size, np.nan)
    return fit_strengths(n_battles, wins, l2=l2)


def _ruler(heldout: HeldOutRatings, name: str) -> RuledBy:
    """Return the line through all models with votes, which is that of a model without any."""
    base, fit = RULERS[name]
    rows = heldout.method == base
    columns = (heldout.rating, heldout.human_rating)
    judge, human = (np.append(column[rows], np.nan) for column in columns)
    line = fit(judge, human)
    return RuledBy(base, float(line.intercept[-1]), float(line.slope[-1]))


class _Placement(NamedTuple):
    """Where a method places a newcomer, with bootstrap and closed-form errors: Elo points."""

    rating: float = float("nan")
    std_error: float = float("nan")
    std_error_analytic: float = float("nan")

    def ruled(self, ruler: RuledBy) -> "_Placement":
        """Return the placement on a ruler's line, errors stretched by its slope; Elo points."""
        return _Placement(
            ruler.intercept + ruler.slope * self.rating,
            abs(ruler.slope) * self.std_error,
            abs(ruler.slope) * self.std_error_analytic,
        )


def place_newcomer(
    battles: CodedBattles | None,
    model: str,
    scale: AnchorScale,
    *,
    cluster: ArrayLike | None = None,
) -> HeldOutRatings:
    """Return the ratings of one model without votes by every method.

    Parameters
    ----------
    battles : CodedBattles or None
        Judged battles, n of them, with the newcomer's among them; None for none. Those without
        the newcomer do not count, nor do those against other models than anchors.
    model : str
        The newcomer.
    scale : AnchorScale
        What it is placed on.
    cluster : array_like, shape (n,), optional
        What is drawn together for standard errors, such as the question; battles by default.

    Returns
    -------
    HeldOutRatings
        A row per method, without ``human``. With fewer than `FEWEST_BATTLES` battles against
        anchors there are no ratings, and `flags` says so.

    Raises
    ------
    ValueError
        If the model is an anchor, or `cluster` has not one label per battle.
    RuntimeError
        If an iteration does not converge.

    References
    ----------
    Kargi and Salinas (2026), arXiv:2606.13221, Algorithm 1, for a model that nobody voted on.
    """
    if model in scale.models:
        raise ValueError(f"{model!r} has votes: it is an anchor itself, with a rating of its own")
    own = _own_battles(battles, model, scale, cluster)
    placed = dict.fromkeys(scale.strengths, _Placement())
    if own is not None and own.opponent.size >= FEWEST_BATTLES:
        families = resampling_families(scale.strengths, np.array([scale.beta]))
        for family in families:
            if family.methods != ("human",):
                placed.update(_place(own, family, model, scale))
    placed |= {name: placed[ruler.base].ruled(ruler) for name, ruler in scale.rulers.items()}
    return _tabulate(model, placed, scale, np.array([]) if own is None else own.judge / 4)


def _own_battles(
    battles: CodedBattles | None, model: str, scale: AnchorScale, cluster: ArrayLike | None
) -> OwnBattles | None:
    """Return the newcomer's battles against anchors, whose codes are their places on the scale."""
    if battles is None:
        return None
    require_clusters(cluster, len(battles))
    if model not in battles.models:
        return None
    places = {name: place for place, name in enumerate(scale.models)}
    place = np.array([places.get(name, -1) for name in battles.models], dtype=np.intp)
    every = list(OwnBattles.of_all(battles, place >= 0, cluster))
    own = every[battles.models.index(model)]
    return replace(own, opponent=place[own.opponent])


def _place(
    own: OwnBattles, family: Family, model: str, scale: AnchorScale
) -> Iterator[tuple[str, _Placement]]:
    """Yield each method of a family with where it places the newcomer."""
    kept, share = family.shares(0, own)
    anchors = np.array([scale.strengths[name] for name in family.methods])
    met = np.bincount(own.opponent, minlength=len(scale.models)).astype(float)
    l2 = scale.settings.l2
    strengths = place_models(share.sum(axis=0), np.tile(met, (len(anchors), 1)), anchors, l2=l2)
    if not np.isfinite(strengths).all():
        return
    units = own.units(kept, share, np.arange(met.size), met.size)
    key = (*scale.settings.stream, model, family.methods[0])
    errors = (
        resampled_std_errors(units, strengths, anchors, scale.settings, key),
        unit_std_error(units, strengths, anchors, l2=l2),
    )
    columns = (strength_to_rating(strengths), *(ELO_PER_LOGIT * error for error in errors))
    for name, *row in zip(family.methods, *columns, strict=True):
        yield name, _Placement(*map(float, row))


def _tabulate(
    model: str, placed: Mapping[str, _Placement], scale: AnchorScale, hard: Floats
) -> HeldOutRatings:
    size = len(placed)
    rating, resampled, closed = (np.array(column) for column in zip(*placed.values(), strict=True))
    bases = [scale.rulers[name].base if name in scale.rulers else name for name in placed]
    return HeldOutRatings(
        np.full(size, model),
        np.array(list(placed)),
        rating,
        np.full(size, np.nan),
        np.full(size, np.nan),
        resampled,
        closed,
        np.array([scale.beta if base == "soft" else np.nan for base in bases]),
        np.full(size, hard.size),
        np.zeros(size, dtype=np.int64),
        np.full(size, _flags(hard, scale)),
    )


def _flags(hard: Floats, scale: AnchorScale) -> str:
    """Say in words what limits a newcomer's rating; joined by semicolons."""
    met = hard.size
    raised = {
        "no-votes": True,
        "no-battles-with-anchors": met == 0,
        "too-few-battles": 0 < met < FEWEST_BATTLES,
        "few-battles": FEWEST_BATTLES <= met < FEW_BATTLES,
        "judge-always-prefers": met > 0 and bool((hard == 1).all()),
        "judge-never-prefers": met > 0 and bool((hard == 0).all()),
        "no-slope": bool(np.isnan(scale.beta)),
    }
    return ";".join(name for name, holds in raised.items() if holds)
