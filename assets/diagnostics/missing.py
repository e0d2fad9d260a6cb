"""Missing battles of a judge: counts by group, a test against chance, and bounds on ratings.

A missing verdict is never a tie and never enters a fit. `account_for` counts them by class,
`missing_bounds` says what their absence could do to each rating: no tables, but what checks of
scored battles and of calibrations are about, and a section of the report.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import as_columns
from assets.conditions import checks_together
from assets.elo.ratings import ranking_options
from assets.partitions import corpus_and_judge
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
from judgeline.tables.rules import among, at_least, holds, unique, within
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.tables.expectations import evaluate

MAX_CHANCE = 0.01
"""Chance, over all models together, below which missing battles no longer look alike."""
UNKNOWN = "unknown"
"""Level of battles whose language or length the corpus does not publish."""
FOUGHT = ("battle_id", "model_a", "model_b", "language", "completion_a", "completion_b")
ANSWERED = ("battle_id", "order", "replicate", "status")
"""Columns of sampled battles and of verdicts that are read."""
_COUNTED = ("grouping", "level", "status", "n_battles", "share", "n_verdicts")
RETRY = (
    "`judgeline run` again asks for what was lost, and once more for what was cut short, "
    "unreadable or an echo; `--retry CLASS` asks again for any class, such as refusal"
)
MAX_DISAGREEMENT = 1e-6
"""Elo points by which a rating may differ from the one in heldout_ratings: rounding only."""


def account_for(battles: pd.DataFrame, verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return how many battles have each status, in all and by model, language and length.

    Every battle has one status (see `battle_status`); by model it counts for both of its models.
    Length is the two completions together, in quarters of the battles. ``share`` is of the level's
    battles; ``n_verdicts`` counts also answers to battles that another replicate saved.
    """
    place = pd.Index(battles["battle_id"]).get_indexer(pd.Index(verdicts["battle_id"]))
    answers = verdicts[place >= 0].assign(place=place[place >= 0])
    columns = (answers[name] for name in ("place", "order", "replicate", "status"))
    status = battle_status(*columns, n_battles=len(battles))
    counted = {
        "n_battles": pd.DataFrame({"status": status}),
        "n_verdicts": answers.set_index("place")[["status"]],
    }
    parts = []
    for grouping, levels in _groupings(battles):
        keyed = levels.rename("level").to_frame()
        sizes = {
            name: keyed.join(own, how="inner").groupby(["level", "status"], observed=True).size()
            for name, own in counted.items()
        }
        table = pd.DataFrame(sizes).fillna(0).astype("int64").reset_index().astype({"level": str})
        total = table.groupby("level")["n_battles"].transform("sum")
        parts.append(table.assign(grouping=grouping, share=table["n_battles"] / total))
    return pd.concat(parts, ignore_index=True)[list(_COUNTED)]


def _groupings(battles: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    """Yield each grouping's name and its levels, by position of the battle."""
    rows = battles.reset_index(drop=True)
    yield "all", pd.Series("", index=rows.index)
    yield "model", pd.concat([rows["model_a"], rows["model_b"]]).astype(str)
    if rows["language"].notna().any():
        yield "language", rows["language"].astype("string").fillna(UNKNOWN).astype(str)
    length = rows["completion_a"].str.len() + rows["completion_b"].str.len()
    if length.notna().any():  # such as "310 to 620 characters", in the order of length
        known = length.dropna().astype(float)
        bins = pd.Series(length_bins(known), index=known.index)
        ends = known.groupby(bins).agg(["min", "max"])
        words = {
            row.Index: f"{row.min:.0f} to {row.max:.0f} characters" for row in ends.itertuples()
        }
        levels = [*words.values(), *([UNKNOWN] if len(known) < len(length) else [])]
        own = pd.Categorical(bins.map(words).reindex(length.index).fillna(UNKNOWN), levels)
        yield "length", pd.Series(own, index=length.index)


@checks_together(
    "scored_battles",
    [
        ("battles_are_accounted_for",
         "Scored and missing battles add up to the sample in every grouping; nothing is lost.",
         True),
        ("models_are_missing_alike",
         "Battles of one model missing more often than chance allows may be missing for a reason.",
         False),
    ],
    columns={"sampled_battles": FOUGHT, "verdicts": ANSWERED},
)  # fmt: skip
def missing_battles(
    _context: dg.AssetCheckExecutionContext,
    scored_battles: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
) -> Iterator[dg.AssetCheckResult]:
    """Missing battles add up with the sample, and fall on models and groups as by chance."""
    missingness = account_for(sampled_battles, verdicts)
    yield sums_result(missingness, sampled_battles, verdicts, scored_battles)
    yield chance_result(missingness)


def sums_result(
    missingness: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    verdicts: pd.DataFrame,
    scored_battles: pd.DataFrame,
) -> dg.AssetCheckResult:
    """Return whether an account adds up to the tables that it is of."""
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
    result = evaluate(
        table,
        [among(column, [total], notes) for column, (total, notes) in wanted.items()],
        ids=["part"],
        remedy="Remake verdicts and scored_battles together: they are of different samples, or an "
        "answer has a fate that nobody counted.",
    )
    counts = missingness[missingness["grouping"].eq("all")]
    shown = counts[["status", "n_battles", "n_verdicts"]].to_markdown(index=False)
    n_missing = len(sampled_battles) - len(scored_battles)
    totals = {"n_sampled": len(sampled_battles), "n_missing": n_missing}
    described: dict[str, Any] = {**totals, "classes": dg.MetadataValue.md(shown)}
    return result._replace(
        check_name="battles_are_accounted_for", metadata={**result.metadata, **described}
    )


def chance_result(missingness: pd.DataFrame) -> dg.AssetCheckResult:
    """Return whether missing battles fall on models as by chance."""
    missing = missingness["n_battles"].where(missingness["status"].ne(SCORED), 0)
    levels = missingness.assign(n_missing=missing).groupby(["grouping", "level"], sort=False)
    table = levels[["n_battles", "n_missing"]].sum().reset_index()
    models, whole = (table[table["grouping"].eq(name)] for name in ("model", "all"))
    chance = excess_p_values(
        models["n_missing"],
        models["n_battles"],
        all_missing=int(whole["n_missing"].sum()),
        all_battles=int(whole["n_battles"].sum()),
    )
    note = (
        "missing battles fall on models as by chance (exact test, Holm's correction for the "
        f"number of models, level {MAX_CHANCE:g})"
    )
    return evaluate(
        models.assign(chance=chance),
        [within("chance", MAX_CHANCE, note=note)],
        ids=["level"],
        remedy="Look at the classes of these models' missing battles and at the bounds of their "
        f"ratings in the report. {RETRY}.",
        severity=dg.AssetCheckSeverity.WARN,
    )._replace(check_name="models_are_missing_alike")


def missing_bounds(
    sampled_battles: pd.DataFrame,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    rating: RatingOptions,
) -> pd.DataFrame:
    """Return hard and soft ratings, those with missing battles lost or won, and half-widths."""
    missing = sampled_battles[~sampled_battles["battle_id"].isin(scored_battles["battle_id"])]
    coded = as_coded(scored_battles, rating.hard_outcome)
    sides = missing["model_a"], missing["model_b"]
    bounds = bound_missing(coded, as_columns(BetaFolds, beta_folds), *sides, l2=rating.l2)
    columns, options = as_columns(HeldOutRatings, heldout_ratings), ranking_options(rating)
    boards = [as_table(rank_models(columns, **{**options, "method": m})) for m in ("hard", "soft")]
    board = pd.concat(boards, ignore_index=True)
    half_width = (board["judge_upper"] - board["judge_lower"]) / 2
    widths = board[["model", "method"]].assign(half_width=half_width)
    return as_table(bounds).merge(widths, on=["model", "method"], how="left")


@checks_together(
    "conformal_calibration",  # made by the settings that these checks read
    [
        ("bounds_are_of_the_ratings",
         "Bounds belong to the ratings that are shown, and a hard rating lies inside its own.",
         False),  # no table is made from the bounds
        ("missing_battles_matter_little",
         "Bounds wider than half the interval: missing battles outweigh the uncertainty.",
         False),
    ],
    columns={"sampled_battles": ("battle_id", "model_a", "model_b")},
)  # fmt: skip
def bounds_from_missing_battles(
    context: dg.AssetCheckExecutionContext,
    conformal_calibration: pd.DataFrame,  # noqa: ARG001
    heldout_ratings: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    catalog: Catalog,
) -> Iterator[dg.AssetCheckResult]:
    """Hold ratings against what they would be had the missing battles been won or lost."""
    rating = catalog.corpus(corpus_and_judge(context)[0]).rating
    bounds = missing_bounds(sampled_battles, scored_battles, beta_folds, heldout_ratings, rating)
    yield bounds_result(bounds, heldout_ratings)
    yield width_result(bounds)


def bounds_result(bounds: pd.DataFrame, heldout_ratings: pd.DataFrame) -> dg.AssetCheckResult:
    """Return whether bounds are of these ratings, in order, and hold the hard ones."""
    shown = heldout_ratings[["model", "method", "rating"]].rename(columns={"rating": "shown"})
    table = bounds.merge(shown, on=["model", "method"], how="left")
    rating, worst, best = (table[name] for name in ("rating", "worst_rating", "best_rating"))
    same = (rating - table["shown"]).abs().le(MAX_DISAGREEMENT)
    table["same"] = same | (rating.isna() & table["shown"].isna())
    table["ordered"] = ~worst.gt(best)
    table["inside"] = table["method"].ne("hard") | ~(rating.lt(worst) | rating.gt(best))
    return evaluate(
        table,
        [
            unique("model", "method", note="a model has one row by each method"),
            holds("same", None, "the rating is the one in heldout_ratings"),
            holds("ordered", None, "the worst rating is at most the best"),
            holds("inside", None, "a hard rating lies between its worst and its best"),
        ],
        ids=["model", "method"],
        remedy="Remake beta_folds and heldout_ratings from the same scored_battles.",
        severity=dg.AssetCheckSeverity.WARN,
    )._replace(check_name="bounds_are_of_the_ratings")


def width_result(bounds: pd.DataFrame) -> dg.AssetCheckResult:
    """Return whether bounds are no wider than half the interval; without a rating they are."""
    width = bounds["best_rating"] - bounds["worst_rating"]
    width = width.mask(width.isna() & bounds["n_missing"].gt(0), np.inf).fillna(0.0)
    note = (
        "a model's bounds are no further apart than its interval reaches to either side, or "
        f"{MAX_WIDTH:g} Elo where that is unbounded"
    )
    return evaluate(
        bounds.assign(width=width, limit=width_limit(bounds["half_width"])),
        [at_least("limit", "width", note)],
        ids=["model", "method"],
        remedy=f"{RETRY}. Verdicts that came with a corpus can only be had from who "
        "published them.",
        severity=dg.AssetCheckSeverity.WARN,
    )._replace(check_name="missing_battles_matter_little")
