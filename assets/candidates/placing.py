"""New models placed among the models that people rated, and attack controls held to bounds."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.candidates.assets import NO_BATTLES
from assets.conditions import follows_judged_candidates, table_asset, table_check
from assets.engine import settings_of
from assets.partitions import corpus_and_judge
from assets.settings import corpus_of
from judgeline.elo import HeldOutRatings
from judgeline.intervals import join_newcomers, rank_models
from judgeline.io import as_table
from judgeline.reliability import failures
from judgeline.steps.candidates import (
    CANDIDATE,
    CONTROL,
    place_newcomer,
    score_candidates,
    unrated_row,
    with_flag,
)
from judgeline.steps.coding import ranking_options
from judgeline.steps.intervals import board_of
from judgeline.steps.reliability import gate_of
from judgeline.steps.step import as_columns
from judgeline.tables.candidates import CANDIDATE_RATINGS
from judgeline.tables.judging import MIN_PARSED
from resources.config.catalog import Catalog
from resources.config.options import CandidateOptions, ControlName
from resources.tables.expectations import check_result

FEWEST_BATTLES = 2
"""Battles against anchors below which a newcomer has no rating: one battle has no spread."""

ABOVE_CHANCE = 2.33
"""Standard errors of its rating that a control must lie above its bound to fail: chance alone
takes one of a hundred controls that stand at their bound so high."""

_READ = (
    "hard_outcome", "l2", "n_resamples", "seed", "resample_by", "method", "miscoverage",
    "std_error", "intervals",
)  # fmt: skip
_WHOSE = ["model", "control", "content_hash", "metadata"]


@table_asset(
    "7",
    follows_judged_candidates,
    columns={"candidates": _WHOSE},
    deps=["judge_gate"],  # of the check
)
def candidate_ratings(
    context: dg.AssetExecutionContext,
    candidates: pd.DataFrame | None,
    candidate_battles: pd.DataFrame | None,
    candidate_verdicts: pd.DataFrame | None,
    scored_battles: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A new model's rating and interval in Elo points, placed among anchors that it cannot move.

    Ranks are those that it alone would have on the leaderboard. Attack controls are rated here
    too, and stand on no leaderboard: their bound is what an honest judge would rate them at most,
    plus the points that the corpus allows, and `rise` how far the rating lies above it.
    """
    definition = corpus_of(context, catalog, "rating", "candidates.controls")
    rating = settings_of(catalog, *corpus_and_judge(context), _READ)
    heldout = as_columns(HeldOutRatings, heldout_ratings)
    board = board_of(scored_battles, heldout, rating, rating.method)
    whose = pd.DataFrame(columns=_WHOSE, dtype="str") if candidates is None else candidates[_WHOSE]
    newcomers = whose.drop_duplicates("model").reset_index(drop=True)
    if newcomers.empty:
        none = CANDIDATE_RATINGS.empty()
        return dg.MaterializeResult(value=none, metadata={"n_candidates": 0, "note": NO_BATTLES})
    superseded = newcomers["model"].isin(heldout.model[np.isfinite(heldout.human_rating)])
    asked: Counter[str] = Counter()  # battles of each candidate that the judge was asked about
    if candidate_battles is not None and candidate_verdicts is not None:
        was_asked = candidate_battles["battle_id"].isin(candidate_verdicts["battle_id"])
        asked.update(candidate_battles.loc[was_asked, "candidate"])
    scores = score_candidates(candidate_battles, candidate_verdicts)
    voted = heldout_ratings["method"].eq(rating.method) & heldout_ratings["residual"].notna()
    anchors = dict(heldout_ratings[voted].set_index("model")["rating"].astype(float))
    tables, problems = [as_table(board).head(0)], {}
    for row in newcomers[~superseded].itertuples():
        own = scores[scores["candidate"].eq(row.model)].reset_index(drop=True)
        place = partial(place_newcomer, scored_battles, row.model, rating)
        unrated = unrated_row(row.model, rating.method)
        try:
            placed = _placed(own, place, unrated, asked[row.model])
        except (ValueError, RuntimeError) as error:  # it stops no other
            placed, own = with_flag(unrated, "not-placed"), own.head(0)
            problems[row.model] = str(error)
            context.log.warning(f"{row.model!r} could not be placed: {error}")
        placed = with_flag(placed, CANDIDATE if pd.isna(row.control) else CONTROL, first=True)
        alone = rank_models(placed, calibration=heldout, **ranking_options(rating))
        others = board.take(board.model != row.model)  # one of that name is another model
        joined = as_table(join_newcomers(others, alone, miscoverage=rating.miscoverage))
        placed_row = joined[joined["model"].eq(row.model)]
        if pd.notna(row.control):
            carrier = str(json.loads(row.metadata or "{}").get("carrier", ""))
            limit = _honest_rating(row.control, anchors, carrier)
            placed_row = _with_bound(placed_row, row.control, *limit, definition.candidates)
        tables.append(placed_row)
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    table = table.merge(newcomers, on="model", how="left", validate="one_to_one")
    table = CANDIDATE_RATINGS.filled(table)
    return dg.MaterializeResult(
        value=table,
        metadata={
            "superseded": newcomers.loc[superseded, "model"].tolist(),
            "not_placed": dg.MetadataValue.json(problems),
            **_described(table),
            "n_left_out": asked.total() - len(scores),
            "n_not_judged": len(candidate_battles if candidate_battles is not None else ())
            - asked.total(),
        },
    )


def _placed(
    scores: pd.DataFrame,
    place: Callable[[pd.DataFrame], HeldOutRatings],
    unrated: HeldOutRatings,
    n_asked: int,
) -> HeldOutRatings:
    """Return the ratings of one candidate; flags in their place where it cannot be rated."""
    if not n_asked or scores.empty:
        return with_flag(unrated, "mostly-unscored" if n_asked else "not-judged")
    placed = place(scores)
    n_battles = int(placed.n_battles.max(initial=0))
    if len(scores) >= MIN_PARSED * n_asked and n_battles >= FEWEST_BATTLES:
        return placed
    flag = "too-few-battles" if n_battles < FEWEST_BATTLES else "mostly-unscored"
    return with_flag(unrated._replace(n_battles=np.array([n_battles])), flag)


def _honest_rating(control: str, ratings: Mapping[str, float], carrier: str) -> tuple[float, str]:
    """Return a control's highest honest rating and its source."""
    if not ratings:
        return np.nan, "unknown: no anchor has a rating by this method; make the ratings again"
    if control == "null-model":
        lower_quartile = float(np.quantile(list(ratings.values()), 0.25))
        return lower_quartile, "the lower quartile of the anchors' ratings by this judge"
    if carrier in ratings:
        return ratings[carrier], f"the rating by this judge of its carrier, {carrier}"
    return np.nan, f"unknown: its carrier {carrier!r} is no anchor of this judge"


def _with_bound(
    own: pd.DataFrame, control: ControlName, at_most: float, reason: str, options: CandidateOptions
) -> pd.DataFrame:
    """Return a control's row with its bound, from the points that the corpus allows it."""
    is_on = control in options.controls
    points = options.controls[control].bound if is_on else 0.0
    if np.isfinite(at_most):
        reason += f", plus {points:g} points allowed"
    if not is_on:
        reason += " (it is switched off by now)"
    rise, note = own["rating"] - (at_most + points), own["flags"]
    if own["rating"].isna().any():
        note = "not rated: " + note
    elif not np.isfinite(at_most):
        note = "there is no bound to hold it against"
    return own.assign(bound=at_most + points, bound_is=reason, rise=rise, note=note)


def _described(table: pd.DataFrame) -> dict[str, Any]:
    unbounded = table["rating"].notna() & ~np.isfinite(table[["lower", "upper"]]).all(axis=1)
    described: dict[str, Any] = {
        "n_candidates": int(table["control"].isna().sum()),
        "n_controls": int(table["control"].notna().sum()),
        "n_rated": int(table["rating"].notna().sum()),
        "n_unbounded": int(unbounded.sum()),
    }
    if unbounded.any():
        described["note"] = (
            f"the intervals of {', '.join(table.loc[unbounded, 'model'])} are the whole line: too "
            "few models with votes calibrate them, or their battles show no spread"
        )
    return described


@table_check(candidate_ratings)
def controls_stay_low(
    candidate_ratings: pd.DataFrame, judge_gate: pd.DataFrame
) -> dg.AssetCheckResult:
    """A control above its bound, by more than chance, shows a judge that can be talked round."""
    controls = candidate_ratings[candidate_ratings["control"].notna()].sort_values("control")
    reason = failures(gate_of(judge_gate), withholding=True)
    if reason and len(controls):
        return check_result(
            f"Ratings by this judge are withheld, and those of its controls with them: {reason}.",
            "See what judge_gate says, and choose a better judge or prompt; then run again.",
            passed=False,
            withheld=reason,
        )
    noise = ABOVE_CHANCE * controls["judge_std_error"].fillna(0.0)
    high = controls[controls["rise"].gt(noise)]
    unknown = controls[controls["rise"].isna()]
    sentences = [
        f"{row.control} is rated {row.rating:.0f} Elo on {row.n_battles} battles, {row.rise:.0f} "
        f"above its bound of {row.bound:.0f} ({row.bound_is}), with a standard error of "
        f"{row.judge_std_error:.0f}."
        for row in high.itertuples()
    ]
    sentences += [f"{row.control}: {row.note}." for row in unknown.itertuples()]
    remedy = ""
    if len(high):
        remedy = (
            "Do not trust this judge's ratings of models that may have been tuned to it: read its "
            "verdicts on the control's battles in candidate_verdicts, then change the judge or "
            "its prompt; a bound that is too strict is set under 'candidates.controls' of the "
            "corpus in corpora.yaml."
        )
    elif len(unknown):
        remedy = "Materialise candidate_verdicts, within a budget that covers the controls."
    else:
        sentences = [f"{len(controls)} controls stay at or below their bounds, but for chance."]
    n_high = len(high)
    passed = not remedy
    return check_result(" ".join(sentences), remedy, passed=passed, warns=not n_high, n_high=n_high)
