"""New models placed among the models that people rated, whose ratings stay as they are."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd

from assets.candidates.assets import counted
from assets.candidates.judging import NO_BATTLES
from assets.columns import as_columns, with_newcomer
from assets.conditions import FOLLOWS_JUDGED_CANDIDATES, OF_CORPUS_AND_JUDGE, checks_of
from assets.elo.ratings import clusters_of, settings_of
from assets.partitions import corpus_and_judge, if_there, of_corpus_if_there
from assets.settings import corpus_of
from judgeline.elo import HeldOutRatings, rate
from judgeline.intervals import Leaderboard, join_newcomers, rank_models
from judgeline.io import as_coded, as_table
from resources.config.catalog import Catalog
from resources.config.corpora import RatingOptions
from resources.tables.candidates import CANDIDATE_RATINGS
from resources.tables.judging import MIN_PARSED

CANDIDATE, CONTROL = "candidate", "control"
"""Flags of a rating: of a dropped model, and of an attack control."""

FEWEST_BATTLES = 2
"""Battles against anchors below which a newcomer has no rating: one battle has no spread."""


@dg.asset(
    **OF_CORPUS_AND_JUDGE,
    code_version="4",
    automation_condition=FOLLOWS_JUDGED_CANDIDATES,
    ins={
        "candidates": of_corpus_if_there("model", "control", "content_hash"),
        "candidate_battles": of_corpus_if_there("battle_id", "candidate"),
        "candidate_verdicts": if_there("battle_id"),
        "candidate_scores": if_there(),
    },
)
def candidate_ratings(
    context: dg.AssetExecutionContext,
    candidates: pd.DataFrame | None,
    candidate_battles: pd.DataFrame | None,
    candidate_verdicts: pd.DataFrame | None,
    candidate_scores: pd.DataFrame | None,
    scored_battles: pd.DataFrame,
    heldout_ratings: pd.DataFrame,
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A new model's rating and interval in Elo points, placed among anchors that it cannot move.

    Ranks are those that it alone would have on the leaderboard. Attack controls are
    rated here too, and stand on no leaderboard.
    """
    corpus, _ = corpus_and_judge(context)
    rating = corpus_of(context, catalog, "rating").rating
    heldout = as_columns(HeldOutRatings, heldout_ratings)
    board = rank_models(heldout, **ranking_options(rating))
    newcomers = listed(candidates)
    if newcomers.empty:
        none = CANDIDATE_RATINGS.empty()
        return dg.MaterializeResult(value=none, metadata={"n_candidates": 0, "note": NO_BATTLES})
    superseded = newcomers["model"].isin(heldout.model[np.isfinite(heldout.human_rating)])
    asked = _asked(candidate_battles, candidate_verdicts)
    tables, problems = [as_table(board).head(0)], {}
    for row in newcomers[~superseded].itertuples():
        scores = pd.DataFrame({"candidate": []}) if candidate_scores is None else candidate_scores
        own = scores[scores["candidate"].eq(row.model)].reset_index(drop=True)
        try:
            place = partial(place_newcomer, scored_battles, row.model, rating, corpus)
            placed = _placed(own, place, unrated_row(row.model, rating.method), asked[row.model])
        except (ValueError, RuntimeError) as error:  # it stops no other
            placed = with_flag(unrated_row(row.model, rating.method), "not-placed")
            problems[row.model] = str(error)
            context.log.warning(f"{row.model!r} could not be placed: {error}")
        placed = with_flag(placed, CANDIDATE if pd.isna(row.control) else CONTROL, first=True)
        alone = rank_models(placed, calibration=heldout, **ranking_options(rating))
        tables.append(_where_it_stands(board, alone, rating.miscoverage))
    table = pd.concat(tables[1:] or tables, ignore_index=True)
    table = table.merge(newcomers, on="model", how="left", validate="one_to_one")
    return dg.MaterializeResult(
        value=table,
        metadata={
            "superseded": newcomers.loc[superseded, "model"].tolist(),
            "not_placed": dg.MetadataValue.json(problems),
            **_described(table),
        },
    )


def listed(candidates: pd.DataFrame | None) -> pd.DataFrame:
    """Return the candidates and controls there are: model, control (or null) and content hash."""
    columns = ["model", "control", "content_hash"]
    if candidates is None:
        return pd.DataFrame(columns=columns, dtype="str")
    return candidates[columns].drop_duplicates("model").reset_index(drop=True)


def ranking_options(rating: RatingOptions) -> dict[str, Any]:
    """Return the options that a corpus ranks its models by."""
    return {
        "method": rating.method,
        "miscoverage": rating.miscoverage,
        "std_error": rating.std_error,
    }


def place_newcomer(
    scored_battles: pd.DataFrame,
    model: str,
    rating: RatingOptions,
    corpus: str,
    own: pd.DataFrame,
) -> HeldOutRatings:
    """Return the ratings of a model without votes, placed as one of the corpus would be."""
    battles = with_newcomer(scored_battles, model, own)
    coded, cluster = as_coded(battles, rating.hard_outcome), clusters_of(rating, battles)
    return rate(coded, settings_of(rating, corpus), cluster=cluster, models=[model])


def _asked(battles: pd.DataFrame | None, verdicts: pd.DataFrame | None) -> Counter[str]:
    """Return how many battles of each candidate the judge was asked about."""
    if battles is None or verdicts is None:
        return Counter()
    return Counter(battles.loc[battles["battle_id"].isin(verdicts["battle_id"]), "candidate"])


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


def unrated_row(model: str, method: str) -> HeldOutRatings:
    """Return a row without numbers for a newcomer that is not placed."""
    words = (np.array([text]) for text in (model, method, ""))
    counts = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return HeldOutRatings(*words, *np.full((8, 1), np.nan), *counts, np.array(["no-votes"]))


def with_flag(ratings: HeldOutRatings, flag: str, *, first: bool = False) -> HeldOutRatings:
    """Return ratings with one more flag, after the others or before them."""
    flags = [f"{flag};{old}" if first else f"{old};{flag}" for old in ratings.flags.tolist()]
    return ratings._replace(flags=np.array(flags))


def _where_it_stands(board: Leaderboard, alone: Leaderboard, miscoverage: float) -> pd.DataFrame:
    """Return a newcomer's row with the ranks that it alone would have.

    A model of the corpus that bears its name, without votes, is not it.
    """
    others = board.take(board.model != alone.model[0])
    joined = as_table(join_newcomers(others, alone, miscoverage=miscoverage))
    return joined[joined["model"].eq(alone.model[0])]


def _described(table: pd.DataFrame) -> dict[str, Any]:
    unbounded = table["rating"].notna() & ~np.isfinite(table[["lower", "upper"]]).all(axis=1)
    names = ", ".join(table.loc[unbounded, "model"])
    note = (
        f"the intervals of {names} are the whole line: too few models with votes calibrate them, "
        "or their battles show no spread"
    )
    return {
        "n_candidates": int(table["control"].isna().sum()),
        "n_controls": int(table["control"].notna().sum()),
        "n_rated": int(table["rating"].notna().sum()),
        "n_unbounded": int(unbounded.sum()),
        "battles": counted(table.set_index("model")["n_battles"], "battles against anchors"),
        **({"note": note} if names else {}),
    }


candidate_checks = checks_of(CANDIDATE_RATINGS)
