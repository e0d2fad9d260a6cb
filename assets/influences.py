"""How much each battle moves the rating that a leaderboard shows; with the check on it."""

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_coded, as_columns, as_numbers, as_table
from assets.conditions import FOLLOWS_WITHOUT_CANDIDATES, OF_CORPUS_AND_JUDGE, judge_check
from assets.lineage import columns_from
from assets.partitions import corpus_and_judge, if_there
from judgeline.beta import BetaFolds
from judgeline.elo import rating_to_strength
from judgeline.heldout import RULERS
from judgeline.influence import fit_influences
from resources.catalog import Catalog
from resources.corpora.definitions import RatingOptions
from resources.expectations import evaluate
from resources.tables import preview

INFLUENCE_COLUMNS = (
    "model",
    "battle_id",
    "opponent",
    "outcome",
    "expected",
    "influence",
    "is_candidate",
)
PULL_TOLERANCE = 1e-6  # wins: ratings are stored in Elo points, each good to 1e-9 of a win
_CANDIDATE = "\ncandidate"  # marks a candidate that is named like a model of the corpus
_SHOWN = 10

_LINEAGE = columns_from(
    {
        "outcome": {"scored_battles": ("score_difference",), "beta_folds": ("beta",)},
        "expected": {"scored_battles": ("score_difference",), "beta_folds": ("beta",)},
        "influence": {"scored_battles": ("score_difference",), "beta_folds": ("beta",)},
        "battle_id": {"scored_battles": ("battle_id",)},
        "opponent": {"scored_battles": ("model_a", "model_b")},
        "model": {"scored_battles": ("model_a", "model_b")},
    }
)


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="ratings",
    code_version="2",
    automation_condition=FOLLOWS_WITHOUT_CANDIDATES,
    ins={"candidate_scores": if_there(), "candidate_ratings": if_there()},
    deps=["heldout_ratings"],
    metadata=_LINEAGE,
)
def battle_influences(
    context: dg.AssetExecutionContext,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    candidate_scores: pd.DataFrame | None,
    candidate_ratings: pd.DataFrame | None,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A battle's part in a model's rating, by the method that ranks: what is lost without it.

    Influence in Elo points, by one Newton step, with the anchors and the slope as they are. Outcome
    and expectation are shares of the win from the model's side. Strongest first in each model.
    """
    corpus, _ = corpus_and_judge(context)
    rating = catalog.corpus(corpus).rating
    table = influence_table(
        scored_battles,
        beta_folds,
        rating,
        candidate_scores=candidate_scores,
        candidate_ratings=candidate_ratings,
    )
    strongest = table.loc[table["influence"].abs().nlargest(_SHOWN).index]
    return dg.MaterializeResult(
        value=table,
        metadata={
            "method": rating.method,
            "n_battles": int(table["battle_id"].nunique()),
            **_sizes(table["influence"].abs()),
            **_LINEAGE,
            "strongest": dg.MetadataValue.md(preview(strongest, rows=_SHOWN)),
        },
    )


def _sizes(size: pd.Series) -> dict[str, float]:
    if size.empty:
        return {}
    return {"largest_influence": float(size.max()), "median_influence": float(size.median())}


def influence_table(
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    rating: RatingOptions,
    *,
    method: str | None = None,
    candidate_scores: pd.DataFrame | None = None,
    candidate_ratings: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the influence of every battle on the ratings by one method, strongest first.

    Parameters
    ----------
    scored_battles, beta_folds : DataFrame
        The tables of those names.
    rating : RatingOptions
        How the corpus is rated.
    method : str, optional
        Another method than the one that ranks.
    candidate_scores, candidate_ratings : DataFrame, optional
        Battles of models without votes, and their slopes; those without a rating are left out.

    Returns
    -------
    DataFrame
        `INFLUENCE_COLUMNS`, by model, then by the size of the influence.

    Raises
    ------
    ValueError
        If there is no such method.
    """
    battles = scored_battles.assign(is_candidate=False)
    folds = beta_folds[list(BetaFolds._fields)]
    if candidate_scores is not None and candidate_ratings is not None and len(candidate_scores):
        placed = _candidates(candidate_scores, candidate_ratings, scored_battles)
        battles = pd.concat([battles, placed], ignore_index=True)
        folds = pd.concat([folds, _slopes(placed, candidate_ratings)], ignore_index=True)
    folds = folds.sort_values("held_out_model", kind="stable")
    found = fit_influences(
        as_coded(battles, rating.hard_outcome),
        as_columns(BetaFolds, folds),
        method=method or rating.method,
        l2=rating.l2,
    )
    table = as_table(found)
    rows = battles.iloc[found.row].reset_index(drop=True)
    marked = table["model"].str.endswith(_CANDIDATE)
    own = rows["is_candidate"] & (marked | table["model"].eq(rows.get("candidate")))
    table = table.assign(
        battle_id=rows["battle_id"],
        is_candidate=own,
        model=table["model"].str.removesuffix(_CANDIDATE),
        size=-table["influence"].abs(),
    ).sort_values(["is_candidate", "model", "size", "battle_id"], kind="stable")
    return table[list(INFLUENCE_COLUMNS)].reset_index(drop=True)


def _candidates(
    scores: pd.DataFrame, ratings: pd.DataFrame, scored_battles: pd.DataFrame
) -> pd.DataFrame:
    """Return battles of rated candidates; one named like a model of the corpus is marked."""
    known = set(scored_battles["model_a"]) | set(scored_battles["model_b"])
    placed = scores[scores["candidate"].isin(ratings.loc[ratings["rating"].notna(), "model"])]
    clash = placed["candidate"].isin(known)
    sides = {
        side: placed[side].mask(
            clash & placed[side].eq(placed["candidate"]), placed[side] + _CANDIDATE
        )
        for side in ("model_a", "model_b")
    }
    outcome = placed["recorded_outcome"].fillna(placed["judge_outcome"])
    return placed.assign(**sides, recorded_outcome=outcome, human_outcome=np.nan, is_candidate=True)


def _slopes(placed: pd.DataFrame, ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the folds of candidates: the slope that each was placed with."""
    names = pd.concat([placed["model_a"], placed["model_b"]])
    own = names.str.removesuffix(_CANDIDATE).eq(pd.concat([placed["candidate"]] * 2))
    names = names[own].drop_duplicates()
    slope = ratings.drop_duplicates("model").set_index("model")["beta"]
    beta = slope.reindex(names.str.removesuffix(_CANDIDATE)).to_numpy(dtype=float)
    return pd.DataFrame(
        {
            "held_out_model": names.to_numpy(),
            "beta": beta,
            "std_error": np.nan,
            "n_battles": 0,
            "status": np.where(np.isfinite(beta), "ok", "no-decisive-votes"),
        }
    )


@judge_check(
    battle_influences,
    heldout_ratings=dg.AssetIn("heldout_ratings"),
    scored_battles=dg.AssetIn("scored_battles"),
)
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
    return added_up(battle_influences, heldout_ratings, scored_battles, rating)


def added_up(
    battle_influences: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    scored_battles: pd.DataFrame,
    rating: RatingOptions,
) -> dg.AssetCheckResult:
    """Return whether influences are of these ratings and battles, rated in this way."""
    import great_expectations.expectations as gxe

    base = RULERS[rating.method][0] if rating.method in RULERS else rating.method
    own = battle_influences[~battle_influences["is_candidate"]]
    known = own["battle_id"].isin(scored_battles["battle_id"])
    placed = heldout_ratings[heldout_ratings["method"].eq(base)].set_index("model")["rating"]
    surplus = (own["outcome"] - own["expected"]).groupby(own["model"]).sum()
    pull = 2 * rating.l2 * pd.Series(rating_to_strength(as_numbers(placed)), placed.index)
    table = pd.DataFrame(
        {
            "off_by": (surplus - pull[placed.notna()]).abs(),
            "known": known.groupby(own["model"]).all(),
            "finite": np.isfinite(own["influence"]).groupby(own["model"]).all(),
        }
    )
    return evaluate(
        table.rename_axis("model").reset_index(),
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="off_by",
                max_value=PULL_TOLERANCE,
                notes="wins beyond expectation equal the pull of the penalty at the rating",
            ),
            gxe.ExpectColumnValuesToNotBeNull(
                column="off_by", notes="models with a rating and models with influences agree"
            ),
            *(
                gxe.ExpectColumnValuesToBeInSet(column=column, value_set=[True], notes=notes)
                for column, notes in (
                    ("known", "each battle is a scored one"),
                    ("finite", "each influence is a number"),
                )
            ),
        ],
        ids=["model"],
        remedy="Ratings and influences are of different battles: remake heldout_ratings and "
        "battle_influences.",
        severity=dg.AssetCheckSeverity.WARN,
    )
