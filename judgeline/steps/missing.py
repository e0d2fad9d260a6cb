"""Missing battles of a judge: counts by group, and bounds on ratings.

A missing verdict is never a tie and never enters a fit. `account_for` counts them by class,
`missing_bounds` says what their absence could do to each rating.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from judgeline.diagnostics import battle_status, bound_missing, length_bins
from judgeline.elo import BetaFolds, HeldOutRatings
from judgeline.intervals import rank_models
from judgeline.io import as_table
from judgeline.steps.coding import coded, ranking_options
from judgeline.steps.step import as_columns
from judgeline.tables.ids import is_among

UNKNOWN = "unknown"
"""Level of battles whose language or length the corpus does not publish."""
FOUGHT = ("battle_id", "model_a", "model_b", "language", "completion_a", "completion_b")
ANSWERED = ("battle_id", "order", "replicate", "status")
"""Columns of sampled battles and of verdicts that are read."""
_COUNTED = ("grouping", "level", "status", "n_battles", "share", "n_verdicts")


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


def missing_bounds(
    sampled_battles: pd.DataFrame,
    scored_battles: pd.DataFrame,
    beta_folds: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    settings: Any,
) -> pd.DataFrame:
    """Return hard and soft ratings, those with missing battles lost or won, and half-widths."""
    missing = sampled_battles[~is_among(sampled_battles["battle_id"], scored_battles["battle_id"])]
    battles = coded(scored_battles, settings)
    sides = missing["model_a"], missing["model_b"]
    bounds = bound_missing(battles, as_columns(BetaFolds, beta_folds), *sides, l2=settings.l2)
    columns, options = as_columns(HeldOutRatings, heldout_ratings), ranking_options(settings)
    boards = [as_table(rank_models(columns, **{**options, "method": m})) for m in ("hard", "soft")]
    board = pd.concat(boards, ignore_index=True)
    half_width = (board["judge_upper"] - board["judge_lower"]) / 2
    widths = board[["model", "method"]].assign(half_width=half_width)
    return as_table(bounds).merge(widths, on=["model", "method"], how="left")
