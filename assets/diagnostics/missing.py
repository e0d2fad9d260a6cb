"""Battles that a judge left without a score: whose they are, whether by chance, and what of it.

A missing verdict is never a tie and never enters a fit. `missingness` counts them by class,
`missing_bounds` says what their absence could do to each rating.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_columns
from assets.conditions import FOLLOWS, OF_CORPUS_AND_JUDGE, judge_check
from assets.partitions import of_corpus
from assets.settings import rating_of
from judgeline.diagnostics import (
    MAX_WIDTH,
    SCORED,
    battle_status,
    bound_missing,
    excess_p_values,
    length_bins,
    width_limit,
)
from judgeline.elo import BetaFolds, HeldOutRatings
from judgeline.intervals import rank_models
from judgeline.io import as_coded, as_table
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.tables.diagnostics import MISSINGNESS
from resources.tables.expectations import evaluate
from resources.tables.rules import among, at_least, holds, unique, within

MAX_CHANCE = 0.01
"""Chance, over all models together, below which missing battles no longer look alike."""
UNKNOWN = "unknown"
"""Level of battles whose language or length the corpus does not publish."""
RETRY = (
    "`judgeline run` again asks for what was lost, and once more for what was cut short, "
    "unreadable or an echo; `--retry CLASS` asks again for any class, such as refusal"
)
_READ = ("hard_outcome", "l2", "method", "miscoverage", "std_error")
MAX_DISAGREEMENT = 1e-6
"""Elo points by which a rating may differ from the one in heldout_ratings: rounding only."""


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
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
    counts = whole[["status", "n_battles", "n_verdicts"]]
    return dg.MaterializeResult(
        value=account,
        metadata={
            "n_sampled": int(n_battles.sum()),
            "n_missing": int(n_battles.drop(SCORED, errors="ignore").sum()),
            "classes": dg.MetadataValue.table(
                [dg.TableRecord(record) for record in counts.to_dict("records")],
                schema=dg.TableSchema(
                    [
                        dg.TableColumn(name, "string" if name == "status" else "int")
                        for name in counts
                    ]
                ),
            ),
            "groupings": account["grouping"].unique().tolist(),
        },
    )


def account_for(battles: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return how many battles have each status, in all and by model, language and length.

    Every battle has one status (see `battle_status`), so those of a level add up to its battles; by
    model, a battle counts for both of its models. Length is the two completions together, in
    quarters of the battles. A corpus that publishes no language, or no text, has no such grouping.
    ``share`` is of the level's battles, ``n_verdicts`` counts the answers with that status to any
    battle of the level, also those to battles that another replicate saved.
    """
    place = pd.Index(battles["battle_id"]).get_indexer(pd.Index(verdicts["battle_id"]))
    answers = verdicts[place >= 0].assign(place=place[place >= 0])
    status = battle_status(
        answers["place"],
        answers["order"],
        answers["replicate"],
        answers["status"],
        n_battles=len(battles),
    )
    fates = pd.DataFrame({"status": status})
    answers = answers.set_index("place")[["status"]]
    parts = [_count(name, levels, fates, answers) for name, levels in _groupings(battles)]
    return pd.concat(parts, ignore_index=True)[MISSINGNESS.columns]


def _groupings(battles: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    """Yield each grouping's name and its levels, by position of the battle."""
    rows = battles.reset_index(drop=True)
    yield "all", pd.Series("", index=rows.index)
    yield "model", pd.concat([rows["model_a"], rows["model_b"]]).astype(str)
    if rows["language"].notna().any():
        yield "language", rows["language"].astype("string").fillna(UNKNOWN).astype(str)
    length = rows["completion_a"].str.len() + rows["completion_b"].str.len()
    if length.notna().any():
        yield "length", _length_levels(length)


def _length_levels(length: pd.Series) -> pd.Series:
    """Return the levels in words, such as "310 to 620 characters", in the order of length."""
    known = length.dropna().astype(float)
    bins = pd.Series(length_bins(known), index=known.index)
    ends = known.groupby(bins).agg(["min", "max"])
    words = {row.Index: f"{row.min:.0f} to {row.max:.0f} characters" for row in ends.itertuples()}
    levels = [*words.values(), *([UNKNOWN] if len(known) < len(length) else [])]
    return pd.Series(
        pd.Categorical(bins.map(words).reindex(length.index).fillna(UNKNOWN), levels),
        index=length.index,
    )


def _count(
    grouping: str, levels: pd.Series, fates: pd.DataFrame, answers: pd.DataFrame
) -> pd.DataFrame:
    """Return one row per level and status that occurs there."""
    keyed = levels.rename("level").to_frame()
    n_battles, n_verdicts = (
        keyed.join(statuses, how="inner").groupby(["level", "status"], observed=True).size()
        for statuses in (fates, answers)
    )
    counted = pd.DataFrame({"n_battles": n_battles, "n_verdicts": n_verdicts})
    table = counted.fillna(0).astype("int64").reset_index().astype({"level": str})
    total = table.groupby("level")["n_battles"].transform("sum")
    return table.assign(grouping=grouping, share=table["n_battles"] / total)


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
        [among(column, [total], notes) for column, (total, notes) in wanted.items()],
        ids=["part"],
        remedy="Remake verdicts, scored_battles and missingness together: they are of different "
        "samples, or an answer has a fate that nobody counted.",
    )


@judge_check(missingness)
def models_are_missing_alike(missingness: pd.DataFrame) -> dg.AssetCheckResult:
    """Battles of one model missing more often than chance allows may be missing for a reason."""
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
            within(
                "chance",
                MAX_CHANCE,
                note="missing battles fall on models as by chance (exact test, Holm's correction "
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


# ---------------------------------------------------------------- bounds on ratings


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
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
    rating = rating_of(context, catalog, *_READ)
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
    options: dict[str, Any] = {"miscoverage": rating.miscoverage, "std_error": rating.std_error}
    boards = [
        as_table(rank_models(columns, method=method, **options)) for method in ("hard", "soft")
    ]
    board = pd.concat(boards, ignore_index=True)
    return board[["model", "method"]].assign(half_width=(board["upper"] - board["lower"]) / 2)


def bound_width(missing_bounds: pd.DataFrame) -> pd.Series:
    """Return how far apart bounds are, in Elo points, row by row.

    Infinite where battles are missing and there is no rating to bound; NaN where there is
    neither.
    """
    width = missing_bounds["best_rating"] - missing_bounds["worst_rating"]
    unbounded = width.isna() & missing_bounds["n_missing"].gt(0)
    return width.mask(unbounded, np.inf)


def _widest(table: pd.DataFrame, method: str) -> dict[str, Any]:
    """Return the widest bounds: of hard ratings where they rank, else of soft ones."""
    shown = table[table["method"].eq("hard" if method.startswith("hard") else "soft")]
    width = bound_width(shown).fillna(0.0)
    if not width.gt(0).any():
        return {"widest": 0.0}
    model = str(shown.loc[width.idxmax(), "model"])
    return {
        "widest": float(width.max()),
        "widest_model": model,
        "median_width": float(width.median()),
    }


@judge_check(missing_bounds, blocking=True, heldout_ratings=dg.AssetIn("heldout_ratings"))
def bounds_are_of_the_ratings(
    missing_bounds: pd.DataFrame, heldout_ratings: pd.DataFrame
) -> dg.AssetCheckResult:
    """Bounds belong to the ratings that are shown, and a hard rating lies inside its own."""
    shown = heldout_ratings[["model", "method", "rating"]].rename(columns={"rating": "shown"})
    return evaluate(
        missing_bounds.merge(shown, on=["model", "method"], how="left"),
        [
            unique("model", "method", note="a model has one row by each method"),
            holds(
                "same",
                lambda t: np.isclose(
                    t["rating"], t["shown"], rtol=0, atol=MAX_DISAGREEMENT, equal_nan=True
                ),
                "the rating is the one in heldout_ratings",
            ),
            holds(
                "ordered",
                lambda t: ~t["worst_rating"].gt(t["best_rating"]),
                "the worst rating is at most the best",
            ),
            holds("inside", _is_inside, "a hard rating lies between its worst and its best"),
        ],
        ids=["model", "method"],
        remedy="Remake heldout_ratings and missing_bounds together from the same scored_battles.",
    )


def _is_inside(bounds: pd.DataFrame) -> pd.Series:
    outside = bounds["rating"].lt(bounds["worst_rating"])
    outside |= bounds["rating"].gt(bounds["best_rating"])
    return bounds["method"].ne("hard") | ~outside


@judge_check(missing_bounds)
def missing_battles_matter_little(missing_bounds: pd.DataFrame) -> dg.AssetCheckResult:
    """Bounds wider than half the interval: missing battles outweigh the uncertainty."""
    return evaluate(
        missing_bounds.assign(
            width=bound_width(missing_bounds).fillna(0.0),
            limit=width_limit(missing_bounds["half_width"]),
        ),
        [
            at_least(
                "limit",
                "width",
                "a model's bounds are no further apart than its interval reaches to either "
                f"side, or {MAX_WIDTH:g} Elo where that is unbounded",
            )
        ],
        ids=["model", "method"],
        remedy=f"{RETRY}. Verdicts that came with a corpus can only be had from who "
        "published them.",
        severity=dg.AssetCheckSeverity.WARN,
    )
