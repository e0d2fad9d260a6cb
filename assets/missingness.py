"""Battles that a judge left without a score: whose, why, and what they could change; with checks.

A missing verdict is never a tie and never enters a fit. What is left to say is which battles
are missing, whether that falls on some models more than on others, and how far each rating
could move whatever the judge would have said.
"""

from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_coded, as_columns, as_table
from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, judge_check
from assets.partitions import corpus_and_judge, of_corpus
from judgeline.beta import BetaFolds
from judgeline.heldout import HeldOutRatings
from judgeline.leaderboard import rank_models
from judgeline.missing_bounds import bound_missing
from judgeline.missingness import SCORED, excess_p_values
from resources.accounting import account_for
from resources.catalog import Catalog
from resources.corpora.definitions import RatingOptions
from resources.expectations import evaluate

MAX_CHANCE = 0.01
"""Chance, over all models together, below which missing battles no longer look alike."""
MAX_WIDTH = 100.0
"""Elo points that bounds may be apart where no interval says what is wide: odds of 16 to 9."""
MAX_DISAGREEMENT = 1e-6
"""Elo points by which a rating may differ from the one in heldout_ratings: rounding only."""
RETRY = (
    "`judgeline run` again asks once more for what was lost, cut short or unreadable; with "
    "`--retry CLASS` for another class, such as refusal, too"
)


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="diagnostics",
    code_version="1",
    automation_condition=FOLLOWS,
    ins={"sampled_battles": of_corpus()},
)
def missingness(
    sampled_battles: pd.DataFrame, verdicts: pd.DataFrame
) -> dg.MaterializeResult[pd.DataFrame]:
    """How many sampled battles have a score or lack it, by failure class.

    In all and by model, language and length; a battle has one class, so that classes add up.
    """
    account = account_for(sampled_battles, verdicts)
    whole = account[account["grouping"].eq("all")]
    n_battles = whole.set_index("status")["n_battles"]
    records = whole[["status", "n_battles", "n_verdicts"]].to_dict("records")
    return dg.MaterializeResult(
        value=account,
        metadata={
            "n_sampled": int(n_battles.sum()),
            "n_missing": int(n_battles.drop(SCORED, errors="ignore").sum()),
            "classes": dg.MetadataValue.table(
                [dg.TableRecord(record) for record in records],
                schema=dg.TableSchema(
                    [
                        dg.TableColumn("status"),
                        dg.TableColumn("n_battles", "int"),
                        dg.TableColumn("n_verdicts", "int"),
                    ]
                ),
            ),
            "groupings": account["grouping"].unique().tolist(),
        },
    )


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    group_name="diagnostics",
    code_version="1",
    automation_condition=FOLLOWS,
    ins={"sampled_battles": of_corpus()},
)
def missing_bounds(
    context: dg.AssetExecutionContext,
    sampled_battles: pd.DataFrame,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's hard or soft rating with the ratings if it lost, or won, its missing battles.

    Elo points. Anchors and slopes stay as they are; the half-width of the interval is beside it.
    """
    corpus, _ = corpus_and_judge(context)
    rating = catalog.corpus(corpus).rating
    missing = sampled_battles[~sampled_battles["battle_id"].isin(scored_battles["battle_id"])]
    bounds = as_table(
        bound_missing(
            as_coded(scored_battles, rating.hard_outcome),
            as_columns(BetaFolds, beta_folds),
            missing["model_a"],
            missing["model_b"],
            l2=rating.l2,
        )
    )
    table = bounds.merge(_half_widths(heldout_ratings, rating), on=["model", "method"], how="left")
    return dg.MaterializeResult(
        value=table, metadata={"n_missing": len(missing), **_widest(table, rating.method)}
    )


def _half_widths(heldout_ratings: pd.DataFrame, rating: RatingOptions) -> pd.DataFrame:
    """Return the half-width of every model's interval by hard and by soft ratings."""
    columns = as_columns(HeldOutRatings, heldout_ratings)
    boards = [
        as_table(
            rank_models(
                columns, method=method, miscoverage=rating.miscoverage, std_error=rating.std_error
            )
        )
        for method in ("hard", "soft")
    ]
    board = pd.concat(boards, ignore_index=True)
    half_width = (board["upper"] - board["lower"]) / 2
    return board[["model", "method"]].assign(half_width=half_width)


def bound_width(missing_bounds: pd.DataFrame) -> pd.Series:
    """Return how far apart bounds are, in Elo points, row by row.

    Infinite where battles are missing and there is no rating to bound; NaN where there is
    neither.
    """
    width = missing_bounds["best_rating"] - missing_bounds["worst_rating"]
    unbounded = width.isna() & missing_bounds["n_missing"].gt(0)
    return width.mask(unbounded, np.inf)


def _widest(table: pd.DataFrame, method: str) -> dict[str, Any]:
    """Return the widest bounds by the method that ranks, or the one that it is made from."""
    shown = table[table["method"].eq("soft" if method.startswith("soft") else "hard")]
    width = bound_width(shown).fillna(0.0)
    if not width.gt(0).any():
        return {"widest": 0.0}
    return {
        "widest": float(width.max()),
        "widest_model": str(shown.loc[width.idxmax(), "model"]),
        "median_width": float(width.median()),
    }


@judge_check(
    missingness,
    blocking=True,
    sampled_battles=of_corpus("sampled_battles"),
    verdicts=dg.AssetIn("verdicts"),
    scored_battles=dg.AssetIn("scored_battles"),
)
def battles_are_accounted_for(
    missingness: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    scored_battles: pd.DataFrame,
) -> dg.AssetCheckResult:
    """Scored and missing battles add up to the sample in every grouping; nothing is lost."""
    import great_expectations.expectations as gxe

    fought = pd.concat([sampled_battles["model_a"], sampled_battles["model_b"]]).value_counts()
    asked = verdicts["battle_id"].isin(sampled_battles["battle_id"]).sum()
    scored = missingness["status"].eq(SCORED)
    sums = missingness.groupby("grouping")[["n_battles", "n_verdicts"]].sum()
    sums["scored"] = missingness[scored].groupby("grouping")["n_battles"].sum()
    sides = np.where(sums.index == "model", 2, 1)  # a battle stands under both of its models
    models = missingness[missingness["grouping"].eq("model")]
    by_model = models.groupby("level")["n_battles"].sum().reindex(fought.index, fill_value=0)
    table = pd.concat(
        [
            (sums.fillna(0) / sides[:, None]).reset_index(names="part"),
            pd.DataFrame({"part": fought.index, "own": (by_model - fought).to_numpy()}),
        ]
    )
    wanted = {
        "n_battles": (len(sampled_battles), "classes of a grouping add up to the sampled battles"),
        "scored": (len(scored_battles), "as many battles are ok as were scored"),
        "n_verdicts": (int(asked), "answers of a grouping add up to the verdicts"),
        "own": (0, "classes of a model add up to its sampled battles"),
    }
    return evaluate(
        table,
        [
            gxe.ExpectColumnValuesToBeInSet(column=column, value_set=[total], notes=notes)
            for column, (total, notes) in wanted.items()
        ],
        ids=["part"],
        remedy="Remake verdicts, scored_battles and missingness together: they are of different "
        "samples, or an answer has a fate that nobody counted.",
    )


@judge_check(missingness)
def models_are_missing_alike(missingness: pd.DataFrame) -> dg.AssetCheckResult:
    """Battles of one model missing more often than chance allows may be missing for a reason."""
    import great_expectations.expectations as gxe

    table = missing_by_level(missingness)
    models, whole = (table[table["grouping"].eq(name)] for name in ("model", "all"))
    chance = excess_p_values(
        models["n_missing"],
        models["n_battles"],
        all_missing=int(whole["n_missing"].sum()),
        all_battles=int(whole["n_battles"].sum()),
    )
    return evaluate(
        models.assign(chance=chance),
        [
            gxe.ExpectColumnValuesToBeBetween(
                column="chance",
                min_value=MAX_CHANCE,
                notes="missing battles fall on models as by chance (exact test, Holm's correction "
                f"for the number of models, level {MAX_CHANCE:g})",
            )
        ],
        ids=["level"],
        remedy="Look at the classes of these models' missing battles and at their bounds in "
        f"missing_bounds. {RETRY}.",
        severity=dg.AssetCheckSeverity.WARN,
    )


def missing_by_level(missingness: pd.DataFrame) -> pd.DataFrame:
    """Return the battles and missing battles of every grouping and level, in their order."""
    missing = missingness["n_battles"].where(missingness["status"].ne(SCORED), 0)
    counted = missingness.assign(n_missing=missing)
    return counted.groupby(["grouping", "level"], sort=False, as_index=False)[
        ["n_battles", "n_missing"]
    ].sum()


@judge_check(missing_bounds, blocking=True, heldout_ratings=dg.AssetIn("heldout_ratings"))
def bounds_are_of_the_ratings(
    missing_bounds: pd.DataFrame, heldout_ratings: pd.DataFrame
) -> dg.AssetCheckResult:
    """Bounds belong to the ratings that are shown, and a hard rating lies inside its own."""
    import great_expectations.expectations as gxe

    shown = heldout_ratings[["model", "method", "rating"]].rename(columns={"rating": "shown"})
    table = missing_bounds.merge(shown, on=["model", "method"], how="left")
    hard = table["method"].eq("hard")
    return evaluate(
        table.assign(
            same=np.isclose(
                table["rating"], table["shown"], rtol=0, atol=MAX_DISAGREEMENT, equal_nan=True
            ),
            ordered=~table["worst_rating"].gt(table["best_rating"]),
            inside=~hard
            | ~(
                table["rating"].lt(table["worst_rating"]) | table["rating"].gt(table["best_rating"])
            ),
        ),
        [
            gxe.ExpectCompoundColumnsToBeUnique(
                column_list=["model", "method"], notes="a model has one row by each method"
            ),
            *(
                gxe.ExpectColumnValuesToBeInSet(column=column, value_set=[True], notes=notes)
                for column, notes in (
                    ("same", "the rating is the one in heldout_ratings"),
                    ("ordered", "the worst rating is at most the best"),
                    ("inside", "a hard rating lies between its worst and its best"),
                )
            ),
        ],
        ids=["model", "method"],
        remedy="Remake heldout_ratings and missing_bounds together from the same scored_battles.",
    )


@judge_check(missing_bounds)
def missing_battles_matter_little(missing_bounds: pd.DataFrame) -> dg.AssetCheckResult:
    """Bounds wider than half the interval: what is missing outweighs what is uncertain."""
    import great_expectations.expectations as gxe

    half_width = missing_bounds["half_width"]
    return evaluate(
        missing_bounds.assign(
            width=bound_width(missing_bounds).fillna(0.0),
            limit=half_width.where(np.isfinite(half_width), MAX_WIDTH),
        ),
        [
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="limit",
                column_B="width",
                or_equal=True,
                notes="a model's bounds are no further apart than its interval reaches to either "
                f"side, or {MAX_WIDTH:g} Elo where that is unbounded",
            )
        ],
        ids=["model", "method"],
        remedy=f"{RETRY}. Verdicts that came with a corpus can only be had from who "
        "published them.",
        severity=dg.AssetCheckSeverity.WARN,
    )
