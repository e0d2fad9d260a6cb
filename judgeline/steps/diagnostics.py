"""Diagnostics of a judge, and influences of battles on the ratings that a leaderboard shows."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from judgeline.diagnostics import (
    diagnose_judge,
    fewest_to_overtake,
    fit_influences,
    influence_of,
)
from judgeline.elo import (
    BetaFolds,
    HeldOutRatings,
    fit_beta_folds,
    human_anchors,
    rating_to_strength,
)
from judgeline.intervals import chosen_std_error, judge_variance, leads_apart
from judgeline.io import as_numbers, as_table
from judgeline.report import Lead
from judgeline.steps.candidates import score_candidates
from judgeline.steps.coding import coded, of_own_family
from judgeline.steps.step import Made, as_columns, step, with_newcomer
from judgeline.tables.diagnostics import BATTLE_INFLUENCES, JUDGE_DIAGNOSTICS

_SHOWN = 10

_LABELS = ("recorded_outcome", "judge_outcome")  # the published one, where there is one
_PUBLISHED = ("difference_ab", "difference_ba", "length_a", "length_b", "language")


@step(JUDGE_DIAGNOSTICS, reads=("hard_outcome", "l2", "seed", "judge_family", "families"))
def judge_diagnostics(
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    *,
    settings: Any,
) -> pd.DataFrame:
    """One named diagnostic of a judge, with its value and unit, and how many it rests on."""
    known = {
        name: _published(scored_battles[name]) for name in _PUBLISHED if name in scored_battles
    }
    recorded, derived = map(as_numbers, (scored_battles[name] for name in _LABELS))
    return as_table(
        diagnose_judge(
            coded(scored_battles, settings),
            as_columns(BetaFolds, beta_folds),
            as_columns(HeldOutRatings, heldout_ratings),
            **known,
            label=np.where(np.isnan(recorded), derived, recorded),
            same_family=of_own_family(heldout_ratings["model"].unique(), settings),
            l2=settings.l2,
            seed=settings.seed,
        )
    )


def _published(column: pd.Series) -> np.ndarray[Any, Any] | None:
    """Return a column as floats or text, or None where the corpus publishes none of it."""
    if column.isna().all():
        return None
    if pd.api.types.is_numeric_dtype(column):
        return as_numbers(column)
    return np.asarray(column.to_numpy(dtype=object, na_value=None))


@step(BATTLE_INFLUENCES, reads=("hard_outcome", "l2", "method"))
def battle_influences(
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    candidate_battles: pd.DataFrame | None,
    candidate_verdicts: pd.DataFrame | None,
    candidate_ratings: pd.DataFrame | None,
    *,
    settings: Any,
) -> Made:
    """A battle's part in a model's rating, by the method that ranks: the loss without it.

    Influence in Elo points, by one Newton step, with the anchors and the slope as they are. Outcome
    and expectation are shares of the win from the model's side. Strongest first in each model.
    """
    scores = score_candidates(candidate_battles, candidate_verdicts)
    newcomers = {"candidate_scores": scores, "candidate_ratings": candidate_ratings}
    table = influence_table(scored_battles, beta_folds, settings, **newcomers)
    strongest = table.loc[table["influence"].abs().nlargest(_SHOWN).index]
    n_battles = int(table["battle_id"].nunique())
    notes = {"method": settings.method, "n_battles": n_battles, "strongest": strongest}
    return Made(table, notes)


def influence_table(
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    settings: Any,
    *,
    method: str | None = None,
    candidate_scores: pd.DataFrame | None = None,
    candidate_ratings: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the influence of every battle on the ratings by one method, strongest first."""
    method = method or settings.method

    def influences(battles: pd.DataFrame, candidate: str | None = None) -> pd.DataFrame:
        """Return the influences on all models, or on one candidate by folds of its own."""
        coded_own = coded(battles, settings)
        folds, models = as_columns(BetaFolds, beta_folds), None
        if candidate is not None:
            folds, models = fit_beta_folds(coded_own), [candidate]
        found = fit_influences(coded_own, folds, method=method, l2=settings.l2, models=models)
        ids = battles["battle_id"].to_numpy()[found.row]
        return as_table(found).assign(battle_id=ids, is_candidate=candidate is not None)

    tables = [influences(scored_battles)]
    if candidate_scores is not None and candidate_ratings is not None:
        rated = set(candidate_ratings.loc[candidate_ratings["rating"].notna(), "model"])
        for name, own in candidate_scores.groupby("candidate"):
            if name in rated:
                tables.append(influences(with_newcomer(scored_battles, str(name), own), str(name)))
    table = pd.concat(tables, ignore_index=True)
    by = ["is_candidate", "model", "size", "battle_id"]
    table = table.assign(size=-table["influence"].abs()).sort_values(by, kind="stable")
    return table[BATTLE_INFLUENCES.columns].reset_index(drop=True)


def vote_influences(
    scored_battles: pd.DataFrame,
    heldout: HeldOutRatings,
    settings: Any,
    model: str,
    rating: float,
    *,
    by_votes: bool = False,
) -> tuple[pd.DataFrame, float]:
    """Return the influence of each vote on a model's rating by judge and votes, strongest first.

    The second number is the judge's share: what the rating moves by, an Elo point of the judge's.
    Both are of the posterior of `combine_with_votes`, by one Newton step. `by_votes` says that the
    rating is made of votes alone, where the share is 0.
    """
    votes = coded(scored_battles, settings, every_vote=True)
    penalty = settings.l2 if by_votes else _penalty_of_judge(heldout, settings, model)
    voted, anchors = human_anchors(coded(scored_battles, settings), l2=settings.l2)
    code = votes.models.index(model)
    is_a, is_b = votes.model_a == code, votes.model_b == code
    opponent = np.where(is_a, votes.model_b, votes.model_a)
    row = np.flatnonzero((is_a | is_b) & (votes.human_outcome >= 0) & voted[opponent])
    outcome, opponent = votes.human_outcome[row] / 2, opponent[row]
    outcome = np.where(is_a[row], outcome, 1 - outcome)
    fixed, strength = anchors[code, (np.cumsum(voted) - 1)[opponent]], rating_to_strength(rating)
    expected, influence = influence_of(outcome, float(strength), fixed, l2=penalty)
    table = pd.DataFrame({
        "model": model, "opponent": np.array(votes.models)[opponent],
        "battle_id": scored_battles["battle_id"].to_numpy()[row], "influence": influence,
        "outcome": outcome, "expected": expected,
    })  # fmt: skip
    held = 0.0 if by_votes else 2 * penalty / (2 * penalty + (expected * (1 - expected)).sum())
    return table.sort_values("influence", key=abs, ascending=False, kind="stable"), held


def _penalty_of_judge(heldout: HeldOutRatings, settings: Any, model: str) -> float:
    """Return the judge's rating as a penalty on a model's strength, ``d / (2 v)``, by others."""
    own = heldout.take((heldout.method == settings.method) & np.isfinite(heldout.rating))
    is_own, error = own.model == model, chosen_std_error(own, settings.std_error)
    others = ~is_own & np.isfinite(own.residual + own.human_std_error + error)
    judge = judge_variance(own.residual[others], own.human_std_error[others], error[others])
    return float(own.design_effect[is_own][0]) / (2 * judge.of(float(error[is_own][0])))


def leads_beside(
    model: str,
    scored_battles: pd.DataFrame,
    ratings: pd.Series,
    settings: Any,
    method: str,
    half_width: pd.Series | None = None,
) -> list[Lead]:
    """Return the lead of the next model above over a model, and its own over the next below.

    With half the widths of the board's intervals, the model's smallest lead that chance does not
    explain follows: its loss would lower the model's worst rank first.
    `ratings` and widths are by model, Elo points, by the method that the leads are of.
    """
    voted = coded(scored_battles, settings)
    rated = ratings[ratings.notna() & ratings.index.isin(voted.models)]
    order = rated.sort_values(ascending=False, kind="stable").index.tolist()
    if model not in order:
        return []
    place = order.index(model)
    pairs = [(*pair, 0.0) for pair in pairwise(order[max(place - 1, 0) : place + 2])]
    if half_width is not None and model in (widths := half_width.dropna()):
        apart = leads_apart(widths, miscoverage=settings.miscoverage)[widths.index.get_loc(model)]
        known = pd.Series(apart, widths.index).reindex(order)
        below = known[rated[model] - rated[order] > known]
        pairs += [(model, str(rival), float(least)) for rival, least in below.head(1).items()]
    leads = []
    for ahead, rival, margin in pairs:
        found = fewest_to_overtake(
            voted, ahead, rival, method=method, l2=settings.l2, margin=margin
        )
        ids = scored_battles["battle_id"].iloc[found.row].tolist()
        numbers = found.lead, found.lead_without
        leads.append(Lead(ahead, rival, *numbers, ids, len(voted), margin))
    return leads
