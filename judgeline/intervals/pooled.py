"""Pooled judges: one rating of every model from all judges of the same battles.

The judges' score differences and strength gaps are averaged, each judge's in its own standard
deviations; votes are predicted from the two means, and the predictions place a model, as those of
the method ``gap`` do for one judge.
"""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from judgeline.arrays import require
from judgeline.elo.battle_counts import Sums
from judgeline.elo.battles import CodedBattles
from judgeline.elo.gap import fit_gap, gap_features, mean_features
from judgeline.elo.placements import Placements, human_anchors, place_bases
from judgeline.elo.questions import question_codes
from judgeline.elo.ratings import HeldOutRatings, tabulate
from judgeline.elo.resampling import RatingSettings
from judgeline.elo.targets import Base, by_people, own_target
from judgeline.verdict.identity import POOLED


def rate_pooled(
    judges: Mapping[str, CodedBattles],
    settings: RatingSettings,
    cluster: ArrayLike | None = None,
    *,
    models: Collection[str] | None = None,
) -> HeldOutRatings:
    """Return the leave-one-model-out rating of every model by people, and by all judges together.

    Methods: ``human`` and ``pooled``. Fold m fits the weights of the judges' mean score difference
    and mean strength gap to the votes without model m (`judgeline.elo.gap.fit_gap`); the votes that
    they predict place the model among the strengths of people. No vote on a model moves its row,
    but for its human rating. Intervals, boards and summaries are made of it as of any judge.

    Parameters
    ----------
    judges : mapping of str to CodedBattles
        By judge, its view of one and the same battles: equal but for scores and judge outcomes.
        With a single judge, ``pooled`` is ``gap``.
    settings : RatingSettings
        Penalty, resamples and seed.
    cluster : array_like of int or str, shape (n,), optional
        Cluster of each battle, such as its question; as of `judgeline.elo.rate`.
    models : collection of str, optional
        Models to return, such as one newcomer; all by default.

    Returns
    -------
    HeldOutRatings
        Rows by model, then method. `basis` names the judges that were pooled.

    Raises
    ------
    ValueError
        If there is no judge, two judges have other battles or votes, nobody voted, votes do not
        connect the voted models, or battles are counted.
    RuntimeError
        If an iteration does not converge.
    """
    _require_same_battles(judges)
    names = sorted(judges)
    battles = next(iter(judges.values()))
    battles.require_single("pooled judges")
    question = question_codes(cluster, len(battles))
    views = [gap_features(judges[name], l2=settings.l2, question=question) for name in names]
    gap, sums = fit_gap(battles, mean_features(views)), Sums.of(battles)
    bases = {
        "human": by_people(sums),
        POOLED: Base(own_target(battles, sums, gap.of_both(battles)), gap.of_own),
    }
    placed = place_bases(bases, sums, human_anchors(battles, l2=settings.l2)[1], l2=settings.l2)
    text = f"regression of votes on the mean score and gap of {', '.join(names)}"
    basis = {POOLED: np.full(sums.names.size, text)}
    found = Placements(sums, bases, placed, {}, {POOLED: gap}, basis)
    wanted = np.isin(battles.models, list(battles.models if models is None else models))
    return tabulate(battles, found, settings, question, wanted)


def _require_same_battles(judges: Mapping[str, CodedBattles]) -> None:
    """Raise ValueError, with judge and row, unless all judges have the same battles and votes."""
    require(len(judges), "the number of judges to pool", 0, "at least one, with its battles")
    (first, own), *others = judges.items()
    remedy = (
        f"that of judge {first!r}; give battles that all judges scored, in one order, votes alike"
    )
    for name, theirs in others:
        for field in ("models", "model_a", "model_b", "human_outcome"):
            ours, other = np.asarray(getattr(own, field)), np.asarray(getattr(theirs, field))
            whose, size = f"{field} of judge {name!r}", f"{ours.size}, {remedy}"
            require(ours.size == other.size, f"the number of {whose}", other.size, size)
            require(ours == other, whose, other, remedy)
