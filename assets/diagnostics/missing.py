"""Checks on a judge's missing battles: they add up, fall as by chance, and matter little."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.checks import checks_together
from assets.partitions import corpus_and_judge
from judgeline.diagnostics import (
    MAX_WIDTH,
    SCORED,
    excess_p_values,
    width_limit,
)
from judgeline.steps.missing import account_for, missing_bounds
from judgeline.tables.ids import is_among
from judgeline.tables.rules import among, at_least, holds, unique, within
from resources.config.catalog import Catalog
from resources.tables.expectations import evaluate

MAX_CHANCE = 0.01
"""Chance, over all models together, below which missing battles no longer look alike."""
RETRY = (
    "`judgeline run` again asks for what was lost, and once more for what was cut short, "
    "unreadable or an echo; `--retry CLASS` asks again for any class, such as refusal"
)
MAX_DISAGREEMENT = 1e-6
"""Elo points by which a rating may differ from the one in heldout_ratings: rounding only."""


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
)  # fmt: skip
def missing_battles(
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
    """Return whether the account of missing battles adds up to sample and verdicts."""
    fought = pd.concat([sampled_battles["model_a"], sampled_battles["model_b"]]).value_counts()
    asked = is_among(verdicts["battle_id"], sampled_battles["battle_id"]).sum()
    n_scored = len(scored_battles)
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
        "scored": (n_scored, "as many battles are ok as were scored"),
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
    totals = {"n_sampled": len(sampled_battles), "n_missing": len(sampled_battles) - n_scored}
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
)  # fmt: skip
def bounds_from_missing_battles(
    context: dg.AssetCheckExecutionContext,
    heldout_ratings: pd.DataFrame,
    sampled_battles: pd.DataFrame,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    catalog: Catalog,
) -> Iterator[dg.AssetCheckResult]:
    """Rating bounds, with missing battles all won or all lost, hold the ratings and are narrow."""
    rating = catalog.corpus(corpus_and_judge(context)[0]).rating
    bounds = missing_bounds(sampled_battles, scored_battles, beta_folds, heldout_ratings, rating)
    yield bounds_result(bounds, heldout_ratings)
    yield width_result(bounds)


def bounds_result(bounds: pd.DataFrame, heldout_ratings: pd.DataFrame) -> dg.AssetCheckResult:
    """Return whether rating bounds are of these ratings, in order, and hold the hard ones."""
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
