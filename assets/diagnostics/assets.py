"""Judge diagnostics, and influences of battles on the ratings that a leaderboard shows."""

from itertools import pairwise

import dagster as dg
import numpy as np
import pandas as pd

from assets.candidates.assets import score_candidates
from assets.columns import as_columns, with_newcomer
from assets.conditions import follows, follows_judged_candidates, table_asset, table_check
from assets.partitions import corpus_and_judge
from assets.settings import rating_of
from judgeline.diagnostics import diagnose_judge, fewest_to_overtake, fit_influences
from judgeline.elo import (
    HEADLINE,
    BetaFolds,
    HeldOutRatings,
    fit_beta_folds,
    rating_to_strength,
    with_settled_votes,
)
from judgeline.intervals import leads_apart
from judgeline.io import as_coded, as_numbers, as_table
from judgeline.report import Lead
from judgeline.tables.diagnostics import BATTLE_INFLUENCES
from judgeline.tables.rules import holds, known, within
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.tables.expectations import evaluate
from resources.tables.store import preview


@table_asset("2", follows)
def judge_diagnostics(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """One named diagnostic of a judge, with its value and unit, and how many it rests on."""
    rating = rating_of(context, catalog, "hard_outcome", "l2", "seed")
    columns = ("difference_ab", "difference_ba", "length_a", "length_b", "language")
    diagnostics = diagnose_judge(
        as_coded(scored_battles, rating.hard_outcome),
        as_columns(BetaFolds, beta_folds),
        as_columns(HeldOutRatings, heldout_ratings),
        **{name: _published(scored_battles[name]) for name in columns},
        l2=rating.l2,
        seed=rating.seed,
    )
    table = as_table(diagnostics)
    overall = table[table["level"].eq("") & np.isfinite(table["value"])]
    values = overall.set_index("diagnostic")["value"].to_dict()
    return dg.MaterializeResult(value=table, metadata=values)


def _published(column: pd.Series) -> np.ndarray | None:
    """Return a column as floats or text, or None where the corpus publishes none of it."""
    if column.isna().all():
        return None
    return as_numbers(column) if pd.api.types.is_numeric_dtype(column) else column.to_numpy()


PULL_TOLERANCE = 1e-6  # wins: ratings are stored in Elo points, each good to 1e-9 of a win
_SHOWN = 10


@table_asset("2", follows_judged_candidates, deps=["heldout_ratings"])
def battle_influences(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    candidate_battles: pd.DataFrame | None,
    candidate_verdicts: pd.DataFrame | None,
    candidate_ratings: pd.DataFrame | None,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A battle's part in a model's rating, by the method that ranks: the loss without it.

    Influence in Elo points, by one Newton step, with the anchors and the slope as they are. Outcome
    and expectation are shares of the win from the model's side. Strongest first in each model.
    """
    rating = rating_of(context, catalog, "hard_outcome", "l2", "method")
    scores = score_candidates(candidate_battles, candidate_verdicts)
    newcomers = {"candidate_scores": scores, "candidate_ratings": candidate_ratings}
    table = influence_table(scored_battles, beta_folds, rating, **newcomers)
    strongest = table.loc[table["influence"].abs().nlargest(_SHOWN).index]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "method": rating.method,
            "n_battles": int(table["battle_id"].nunique()),
            "strongest": dg.MetadataValue.md(preview(strongest, rows=_SHOWN)),
        },
    )


def influence_table(
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    rating: RatingOptions,
    *,
    method: str | None = None,
    candidate_scores: pd.DataFrame | None = None,
    candidate_ratings: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the influence of every battle on the ratings by one method, strongest first."""
    method = method or rating.method

    def influences(battles: pd.DataFrame, candidate: str | None = None) -> pd.DataFrame:
        coded = as_coded(battles, rating.hard_outcome)
        folds, models = as_columns(BetaFolds, beta_folds), None
        if candidate is not None:
            folds, models = fit_beta_folds(coded), [candidate]
        found = fit_influences(coded, folds, method=method, l2=rating.l2, models=models)
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


def leads_beside(
    model: str,
    scored_battles: pd.DataFrame,
    ratings: pd.Series,
    rating: RatingOptions,
    method: str,
    half_width: pd.Series | None = None,
) -> list[Lead]:
    """Return the lead of the next model above over a model, and its own over the next below.

    Where half the widths of the board's intervals are given, the smallest of the model's leads that
    chance does not explain follows: the first to go where its rank interval reaches further down.
    `ratings` and widths are by model, Elo points, by the method that the leads are of.
    """
    coded = with_settled_votes(as_coded(scored_battles, rating.hard_outcome))
    rated = ratings[ratings.notna() & ratings.index.isin(coded.models)]
    order = rated.sort_values(ascending=False, kind="stable").index.tolist()
    if model not in order:
        return []
    place = order.index(model)
    pairs = [(*pair, 0.0) for pair in pairwise(order[max(place - 1, 0) : place + 2])]
    if half_width is not None and model in (widths := half_width.dropna()):
        apart = leads_apart(widths, miscoverage=rating.miscoverage)[widths.index.get_loc(model)]
        known = pd.Series(apart, widths.index).reindex(order)
        below = known[rated[model] - rated[order] > known]
        pairs += [(model, str(rival), float(least)) for rival, least in below.head(1).items()]
    leads = []
    for ahead, rival, margin in pairs:
        found = fewest_to_overtake(coded, ahead, rival, method=method, l2=rating.l2, margin=margin)
        ids = scored_battles["battle_id"].iloc[found.row].tolist()
        numbers = found.lead, found.lead_without
        leads.append(Lead(ahead, rival, *numbers, ids, len(coded), margin))
    return leads


@table_check(battle_influences)
def influences_add_up(
    context: dg.AssetCheckExecutionContext,
    battle_influences: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    scored_battles: pd.DataFrame,
    catalog: Catalog,
) -> dg.AssetCheckResult:
    """Wins beyond expectation balance the penalty at each rating: else they are of another one."""
    corpus, _ = corpus_and_judge(context)
    rating = catalog.corpus(corpus).rating
    own = battle_influences[~battle_influences["is_candidate"]]
    is_scored = own["battle_id"].isin(scored_battles["battle_id"])
    placed = _mean_of_bases(heldout_ratings, rating.method)
    surplus = (own["outcome"] - own["expected"]).groupby(own["model"]).sum()
    pull = 2 * rating.l2 * pd.Series(rating_to_strength(as_numbers(placed)), placed.index)
    table = pd.DataFrame(
        {
            "off_by": (surplus - pull[placed.notna()]).abs(),
            "known": is_scored.groupby(own["model"]).all(),
            "finite": np.isfinite(own["influence"]).groupby(own["model"]).all(),
        }
    )
    balanced = "wins beyond expectation equal the pull of the penalty at the rating"
    return evaluate(
        table.rename_axis("model").reset_index(),
        [
            within("off_by", high=PULL_TOLERANCE, note=balanced),
            *known("off_by", note="models with a rating and models with influences agree"),
            holds("known", None, "each battle is a scored one"),
            holds("finite", None, "each influence is a number"),
        ],
        ids=["model"],
        remedy="Ratings and influences are of different battles: remake heldout_ratings and "
        "battle_influences.",
        severity=dg.AssetCheckSeverity.WARN,
    )


def _mean_of_bases(heldout_ratings: pd.DataFrame, method: str) -> pd.Series:
    """Return by model the mean rating of the methods that a method is mixed of, Elo points."""
    ratings = heldout_ratings.pivot(index="model", columns="method", values="rating")  # noqa: PD010
    average = ratings[["hard", "soft"]].mean(axis=1)
    if method == HEADLINE:
        own = heldout_ratings[heldout_ratings["method"].eq(HEADLINE)].set_index("model")
        base = average.where(own["basis"].str.startswith("average"), ratings["gap"])
    else:
        base = average if method == "average" else ratings[method.removesuffix("-rescaled")]
    return base.where(ratings[method].notna())
