"""The running record: predictions of models without votes, and their later ratings by people.

What belongs here: stating rows, and scoring them once votes are there. What does not: where a
record is kept (`assets.candidates.predictions`, `judgeline.sealing`).
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from judgeline.elo import human_anchors
from judgeline.intervals import RunningCoverage, origin_shift, rate_by_votes, running_coverage
from judgeline.io import as_coded
from judgeline.rating_options import RatingOptions
from judgeline.tables.candidates import PREDICTIONS

JUDGE_AND_VOTES = "judge_and_votes"
"""Method of a prediction by the judge and the model's first votes together."""

_FEWEST_SHARE = 0.1  # quantile of the votes on models that calibrate
_MOST_SEEN = 0.5  # of a model's votes that a rating has when `calibrate_votes` compares it
_INTERVAL = ["lower", "upper", "std_error"]
_STATED = ["model", "content_hash", "method", "rating", *_INTERVAL, "vote_std_error", "used_votes"]
PEOPLE = ["human_rating", "human_std_error", "n_votes"]
"""A model's rating by people, its standard error (Elo points), and the number of votes."""


def typed_record(table: pd.DataFrame | None) -> pd.DataFrame:
    """Return a record with its columns and their types; an empty one for None."""
    return PREDICTIONS.filled(pd.DataFrame() if table is None else table)


def state_predictions(
    record: pd.DataFrame,
    leaderboard: pd.DataFrame,
    content_hashes: pd.Series,
    scored_battles: pd.DataFrame,
    *,
    miscoverage: float,
    now: str,
    run_id: str,
) -> pd.DataFrame:
    """Return a record with a new row for each model rated without votes, or by its first votes."""
    unvoted = leaderboard["n_votes"].eq(0) & ~leaderboard["model"].isin(record["model"])
    by_judge = leaderboard.assign(
        **{name: leaderboard[f"judge_{name}"] for name in ("rating", *_INTERVAL)}
    )
    alone = _worth_it(by_judge[unvoted])
    is_dropped = alone["flags"].str.split(";").map(lambda flags: "candidate" in flags).astype(bool)
    alone = alone.assign(content_hash=alone["model"].map(content_hashes).where(is_dropped))
    is_new = leaderboard["model"].isin([*record["model"], *alone["model"]])
    is_done = leaderboard["model"].isin(record.loc[record["method"].eq(JUDGE_AND_VOTES), "model"])
    together = leaderboard.assign(method=JUDGE_AND_VOTES, vote_std_error=np.nan)
    has_both = leaderboard["evidence"].str.startswith("judge and")
    together = _worth_it(together[is_new & ~is_done & has_both])
    used = [sorted(votes_on(scored_battles, model)["battle_id"]) for model in together["model"]]
    together = together.assign(used_votes=[json.dumps(battles) for battles in used])
    parts = (part.reindex(columns=_STATED).sort_values("model") for part in (alone, together))
    stated = pd.concat([typed_record(part) for part in parts])
    human = leaderboard.dropna(subset="human_rating").set_index("model")["human_rating"]
    anchors = [human.drop(model, errors="ignore").to_dict() for model in stated["model"]]
    rows = stated.assign(
        predicted_at=now,
        run_id=run_id,
        miscoverage=miscoverage,
        anchors=[json.dumps(ratings, sort_keys=True) for ratings in anchors],
    )
    return pd.concat([record, typed_record(rows)], ignore_index=True)


def _worth_it(leaderboard: pd.DataFrame) -> pd.DataFrame:
    """Return the leaderboard rows with a finite interval and no flag ``few-battles``."""
    ends = leaderboard[["rating", "lower", "upper"]].to_numpy(dtype=float)
    few = leaderboard["flags"].str.split(";").map(lambda flags: "few-battles" in flags)
    return leaderboard[np.isfinite(ends).all(axis=1) & ~few.astype(bool)]


def score_predictions(
    record: pd.DataFrame, leaderboard: pd.DataFrame, further: pd.DataFrame, *, now: str
) -> pd.DataFrame:
    """Return a record with people's ratings in the rows of models that have them by now.

    Each row is scored once. A row by judge and votes is scored by `further` votes; its interval is
    then ``sqrt(std_error^2 + human_std_error^2) / std_error`` times as wide (docs/predictions.md).
    """
    voted = leaderboard[leaderboard["human_rating"].notna()].set_index("model")
    others = voted.loc[~voted.index.isin(record["model"]), "n_votes"]
    enough = float(others.quantile(_FEWEST_SHARE)) if len(others) else np.inf
    people = voted.reindex(index=record["model"], columns=PEOPLE).astype(float)
    people = people.set_axis(record.index).assign(human_std_error=np.nan)  # in the interval already
    by_both = record["method"].eq(JUDGE_AND_VOTES)
    people[by_both] = further.reindex(record.loc[by_both, "model"]).to_numpy(dtype=float)
    n_seen = [len(json.loads(battles)) for battles in record["used_votes"].fillna("[]")]
    needed = enough - np.minimum(n_seen, enough * _MOST_SEEN)
    ready = record["scored_at"].isna() & people["n_votes"].ge(needed)
    shift = pd.Series(np.nan, index=record.index)
    for row in record[ready & people["human_rating"].notna()].itertuples():
        shift[row.Index] = _origin_shift(voted["human_rating"], row)
    due = shift.notna()
    if not due.any():
        return record
    own, found = record[due], people[due]
    as_then = found["human_rating"] + shift[due]
    wider = np.hypot(1, (found["human_std_error"] / own["std_error"]).fillna(0)) - 1
    noise = wider * (own["upper"] - own["rating"])
    scored = own.assign(
        **found,
        scored_at=now,
        origin_shift=shift[due],
        residual=own["rating"] - as_then,
        covered=(own["lower"] - noise).le(as_then) & (own["upper"] + noise).ge(as_then),
    )
    return pd.concat([record[~due], typed_record(scored)]).sort_index()


def _origin_shift(human_rating: pd.Series, prediction: Any) -> float:
    """Return the shift from a prediction's anchors to those of now; 0 where none were recorded."""
    if not isinstance(prediction.anchors, str):
        return 0.0
    others = human_rating.drop(prediction.model, errors="ignore")
    then = pd.Series(json.loads(prediction.anchors), dtype=float)
    return origin_shift(then, others.reindex(then.index), others)


def coverage_of(record: pd.DataFrame, heldout_ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the coverage of scored predictions whose intervals have ends, by method."""
    counted = record["scored_at"].notna() & np.isfinite(record[["lower", "upper"]]).all(axis=1)
    coverage = [pd.DataFrame(columns=["method", *RunningCoverage._fields])]
    for method, rows in record[counted].groupby("method", sort=True):
        size = pool_of(heldout_ratings, str(method), record)["model"].nunique()
        held, promised = rows["covered"].astype(bool), rows["miscoverage"]
        found = running_coverage(held, promised, n_calibration=size)
        coverage.append(pd.DataFrame({"method": method, **found._asdict()}))
    return pd.concat(coverage[1:] or coverage, ignore_index=True)


def pool_of(heldout_ratings: pd.DataFrame, method: str, record: pd.DataFrame) -> pd.DataFrame:
    """Return the leave-one-out rows that calibrate a method, without models that were predicted."""
    rows = heldout_ratings["method"].eq(method) | (method == JUDGE_AND_VOTES)
    rows &= heldout_ratings["residual"].notna()
    return heldout_ratings[rows & ~heldout_ratings["model"].isin(record["model"])]


def votes_on(scored_battles: pd.DataFrame, model: str) -> pd.DataFrame:
    """Return the votes on a model: battle_id, opponent, and the model's share of the win."""
    is_a = scored_battles["model_a"].eq(model)
    own = scored_battles["human_outcome"].notna() & (is_a | scored_battles["model_b"].eq(model))
    votes, is_a = scored_battles[own], is_a[own]
    outcome = votes["human_outcome"].astype(float)
    opponent = votes["model_b"].where(is_a, votes["model_a"])
    share = outcome.where(is_a, 1 - outcome)
    return pd.DataFrame({"battle_id": votes["battle_id"], "opponent": opponent, "share": share})


def further_ratings(
    record: pd.DataFrame,
    scored_battles: pd.DataFrame,
    rating: RatingOptions,
    design_effects: Mapping[str, float] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return people's ratings (Elo points) by the votes that predictions had not seen."""
    waiting = record[record["method"].eq(JUDGE_AND_VOTES) & record["scored_at"].isna()]
    found: dict[str, tuple[float, float, int]] = {}
    if len(waiting):
        coded = as_coded(scored_battles, rating.hard_outcome)
        voted, strengths = human_anchors(coded, l2=rating.l2)
        models = np.array(coded.models)
        anchors = pd.DataFrame(strengths, index=models, columns=models[voted])
    for row in waiting.itertuples():
        votes = votes_on(scored_battles, row.model)
        unseen = votes[~votes["battle_id"].isin(json.loads(row.used_votes))]
        met = unseen.groupby("opponent")["share"].agg(["sum", "size"])
        met = met[met.index.isin(anchors.columns)]
        own = anchors.reindex(index=[row.model], columns=met.index).iloc[0]
        if len(met) and own.notna().all():
            design = design_effects.get(row.model, 1.0)
            rated = rate_by_votes(met["sum"], met["size"], own, l2=rating.l2, design_effect=design)
            found[row.model] = (rated.rating, rated.std_error, int(met["size"].sum()))
    return pd.DataFrame.from_dict(found, orient="index", columns=PEOPLE)
