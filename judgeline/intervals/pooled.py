"""Pooled judges: one rating of every model from all judges of the same battles.

The judges' score differences and strength gaps are averaged, each judge's in its own standard
deviations; votes are predicted from the two means, and the predictions place a model, as those of
the method ``gap`` do for one judge.
"""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from judgeline.arrays import require
from judgeline.elo.anchors import require_votes
from judgeline.elo.battles import CodedBattles, require_single
from judgeline.elo.gap import fit_gap, gap_features, mean_features
from judgeline.elo.placements import Placements, human_anchors, human_shares, human_target
from judgeline.elo.ratings import HeldOutRatings, tabulate
from judgeline.elo.resampling import RatingSettings, require_clusters
from judgeline.elo.sums import tally_outcomes
from judgeline.elo.targets import own_target, place_targets
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
    require_single(battles, "pooled judges")
    require_clusters(cluster, len(battles))
    tallies = [tally_outcomes(judges[name]) for name in names]
    features = mean_features(
        [
            gap_features(judges[name], tally, l2=settings.l2, cluster=cluster)
            for name, tally in zip(names, tallies, strict=True)
        ]
    )
    voted, tally = require_votes(battles), tallies[0]
    gap = fit_gap(battles, features)
    targets = {
        "human": human_target(battles, tally, voted),
        POOLED: own_target(battles, tally.judge[:, voted], gap.of_both(battles), voted),
    }
    human = human_anchors(battles, l2=settings.l2)[1]
    placed = place_targets(targets, voted, settings.l2, np.array(battles.models)[voted], human)
    shares = {"human": human_shares, POOLED: gap.of_own}
    found = Placements(tally, voted, targets, placed, shares, {}, {}, {POOLED: gap})
    wanted = np.isin(battles.models, list(battles.models if models is None else models))
    ratings = tabulate(battles, found, settings, cluster, wanted)
    basis = f"regression of votes on the mean score and gap of {', '.join(names)}"
    return ratings._replace(basis=np.where(ratings.method == POOLED, basis, ""))


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
