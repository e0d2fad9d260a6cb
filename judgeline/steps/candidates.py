"""New models: their scored battles, and their ratings among anchors that they cannot move."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo import HeldOutRatings, rate
from judgeline.intervals import Leaderboard, join_newcomers, rank_models
from judgeline.io import as_table, score_battles, with_flags
from judgeline.io.extremes import extreme_flags
from judgeline.steps.coding import coded, of_own_family, ranking_options, rating_settings, units
from judgeline.steps.intervals import board_of
from judgeline.steps.step import Made, as_columns, step, with_newcomer
from judgeline.tables.candidates import CANDIDATE_RATINGS
from judgeline.tables.elo import HELDOUT_RATINGS
from judgeline.tables.ids import is_among
from judgeline.tables.judging import MIN_PARSED, SCORED_COLUMNS

CANDIDATE, CONTROL, OWN_FAMILY = "candidate", "control", "of-judges-family"
"""Flags of a rating: of a dropped model, an attack control, and a model of the judge's family."""

NO_BATTLES = "no candidate battles: drop a file into the candidates folder of the corpus"

FEWEST_BATTLES = 2
"""Battles against anchors below which a newcomer has no rating: one battle has no spread."""

NEWCOMER = ["model", "control", "content_hash", "family", "metadata"]
"""Columns of candidates that say who is to be placed."""

WHOSE = ("candidate", "control", "content_hash")
"""Columns that say whose battle it is."""


def score_candidates(
    candidate_battles: pd.DataFrame | None, candidate_verdicts: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the scored battles of new models, as of the corpus, and the model of each."""
    if candidate_battles is None or candidate_verdicts is None:
        return pd.DataFrame(columns=[*SCORED_COLUMNS, *WHOSE])
    judged = _judged(candidate_battles, candidate_verdicts)
    scored = score_battles(judged.reset_index(drop=True), candidate_verdicts)
    whose = candidate_battles[["battle_id", *WHOSE]]
    return scored.merge(whose, on="battle_id", how="left", validate="one_to_one")


def _judged(battles: pd.DataFrame | None, verdicts: pd.DataFrame | None) -> pd.DataFrame:
    """Return the battles of candidates that the judge was asked about."""
    if battles is None or verdicts is None:
        return pd.DataFrame(columns=[*WHOSE])
    return battles[is_among(battles["battle_id"], verdicts["battle_id"])]


def place_newcomer(
    scored_battles: pd.DataFrame, model: str, settings: Any, own: pd.DataFrame
) -> HeldOutRatings:
    """Return the ratings of a model without votes, placed as one of the corpus would be."""
    battles = with_newcomer(scored_battles, model, own)
    cluster, rating = units(battles, settings), rating_settings(settings)
    placed = rate(coded(battles, settings), rating, cluster=cluster, models=[model])
    return with_flags(placed, extreme_flags(battles))


def unrated_row(model: str, method: str) -> HeldOutRatings:
    """Return a row without numbers for a newcomer that is not placed."""
    said = {"model": model, "method": method, "flags": "no-votes"}
    nothing = {"str": "", "float64": np.nan, "int64": 0}
    kinds = HELDOUT_RATINGS.dtypes.items()
    return HeldOutRatings(**{n: np.array([said.get(n, nothing[kind])]) for n, kind in kinds})


def with_flag(ratings: HeldOutRatings, flag: str, *, first: bool = False) -> HeldOutRatings:
    """Return ratings with one more flag, after the others or before them."""
    flags = [f"{flag};{old}" if first else f"{old};{flag}" for old in ratings.flags.tolist()]
    return ratings._replace(flags=np.array(flags))


@step(
    CANDIDATE_RATINGS,
    reads=(
        "hard_outcome", "l2", "n_resamples", "seed", "resample_by", "method", "miscoverage",
        "std_error", "intervals", "controls", "judge_family", "families",
    ),
)  # fmt: skip
def candidate_ratings(
    candidates: pd.DataFrame | None,
    candidate_battles: pd.DataFrame | None,
    candidate_verdicts: pd.DataFrame | None,
    scored_battles: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    *,
    settings: Any,
) -> Made:
    """A new model's rating and interval in Elo points, placed among anchors that it cannot move.

    Ranks are those that it alone would have on the leaderboard. Attack controls are rated here
    too, and stand on no leaderboard: their bound is what an honest judge would rate them at most,
    plus the points that the corpus allows, and `rise` how far the rating lies above it.
    """
    whose = pd.DataFrame(columns=NEWCOMER, dtype="str") if candidates is None else candidates
    newcomers = whose[NEWCOMER].drop_duplicates("model").reset_index(drop=True)
    if newcomers.empty:
        return Made(CANDIDATE_RATINGS.empty(), {"n_candidates": 0, "note": NO_BATTLES})
    heldout = as_columns(HeldOutRatings, heldout_ratings)
    board = board_of(scored_battles, heldout, settings, settings.method)
    superseded = newcomers["model"].isin(heldout.model[np.isfinite(heldout.human_rating)])
    asked = Counter(_judged(candidate_battles, candidate_verdicts)["candidate"])
    scores = score_candidates(candidate_battles, candidate_verdicts)
    voted = heldout_ratings["method"].eq(settings.method) & heldout_ratings["residual"].notna()
    anchors = dict(heldout_ratings[voted].set_index("model")["rating"].astype(float))
    tables, problems = [as_table(board).head(0)], {}
    for row in newcomers[~superseded].itertuples():
        own = scores[scores["candidate"].eq(row.model)].reset_index(drop=True)
        place = partial(place_newcomer, scored_battles, row.model, settings)
        unrated = unrated_row(row.model, settings.method)
        try:
            placed = _placed(own, place, unrated, asked[row.model])
        except (ValueError, RuntimeError) as error:  # it stops no other
            placed, problems[row.model] = with_flag(unrated, "not-placed"), str(error)
        tables.append(
            _ranked(_flagged(placed, row, settings), row, board, heldout, anchors, settings)
        )
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    table = table.merge(newcomers, on="model", how="left", validate="one_to_one")
    table = CANDIDATE_RATINGS.filled(table)
    n_dropped = 0 if candidate_battles is None else len(candidate_battles)
    return Made(
        table,
        {
            "superseded": newcomers.loc[superseded, "model"].tolist(),
            "not_placed": problems,
            **_described(table),
            "n_left_out": asked.total() - len(scores),
            "n_not_judged": n_dropped - asked.total(),
        },
    )


def _flagged(placed: HeldOutRatings, newcomer: Any, settings: Any) -> HeldOutRatings:
    """Return ratings with the flags of a control, or of a candidate and the judge's family."""
    if pd.notna(newcomer.control):
        return with_flag(placed, CONTROL, first=True)
    placed = with_flag(placed, CANDIDATE, first=True)
    family = newcomer.model if pd.isna(newcomer.family) else newcomer.family
    return with_flag(placed, OWN_FAMILY) if of_own_family([family], settings) else placed


def _ranked(
    placed: HeldOutRatings,
    newcomer: Any,
    board: Leaderboard,
    heldout: HeldOutRatings,
    anchors: Mapping[str, float],
    settings: Any,
) -> pd.DataFrame:
    """Return a newcomer's row as the leaderboard would have it; a control's with its bound."""
    alone = rank_models(placed, calibration=heldout, **ranking_options(settings))
    others = board.take(board.model != newcomer.model)  # one of that name is another model
    joined = as_table(join_newcomers(others, alone, miscoverage=settings.miscoverage))
    own = joined[joined["model"].eq(newcomer.model)]
    if pd.isna(newcomer.control):
        return own
    carrier = str(json.loads(newcomer.metadata or "{}").get("carrier", ""))
    limit = _honest_rating(newcomer.control, anchors, carrier)
    return _with_bound(own, newcomer.control, *limit, settings.controls)


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
    own: pd.DataFrame,
    control: str,
    at_most: float,
    reason: str,
    controls: Mapping[str, Mapping[str, Any]],
) -> pd.DataFrame:
    """Return a control's row with its bound, from the points that the corpus allows it."""
    is_on = control in controls
    points = float(controls[control]["bound"]) if is_on else 0.0
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
