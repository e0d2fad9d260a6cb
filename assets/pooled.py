"""The judges of a corpus as one judge: a board of their pooled ratings, and its row of figures."""

from collections.abc import Mapping

import dagster as dg
import numpy as np
import pandas as pd

from assets.columns import (
    RANKS,
    as_coded,
    as_columns,
    as_table,
    votes_that_wait,
    with_waiting_votes,
)
from assets.conditions import COMPARES_JUDGES, OF_CORPUS
from assets.gates import UP_TO_LEADERBOARD, settled_judges
from assets.judge_gate import withheld_judges
from assets.partitions import by_judge, of_every_judge
from assets.settings import corpus_of
from judgeline.conformal import calibrate_intervals
from judgeline.heldout import HeldOutRatings
from judgeline.leaderboard import Leaderboard, kept_text, rank_models
from judgeline.pooled import rate_pooled
from judgeline.rating_settings import RatingSettings
from judgeline.slugs import POOLED
from judgeline.summary import summarise
from resources.catalog import Catalog
from resources.corpora.definitions import RatingOptions
from resources.method_table import LEAST_SHARE

Tables = Mapping[str, pd.DataFrame]

_RATING = ("l2", "n_resamples", "seed", "resample_by", "hard_outcome", "miscoverage", "std_error")
_BATTLE = ["battle_id", "model_a", "model_b", "human_outcome"]
_OF_RATINGS = [name for name in HeldOutRatings._fields if name not in Leaderboard._fields]
_DTYPES = {
    **dict.fromkeys((*Leaderboard._fields, *_OF_RATINGS), "float64"),
    **dict.fromkeys(("model", "method", "basis", "flags"), "str"),
    **dict.fromkeys(("n_battles", "n_votes", "n_scored"), "int64"),
    **dict.fromkeys(RANKS, "Int64"),
}


@dg.asset(
    **OF_CORPUS,
    group_name="comparison",
    code_version="1",
    automation_condition=COMPARES_JUDGES,
    ins={"leaderboard": of_every_judge("model", "flags"), "scored_battles": of_every_judge()},
)
def pooled_leaderboard(
    context: dg.AssetExecutionContext,
    leaderboard: dict[str, pd.DataFrame],
    scored_battles: dict[str, pd.DataFrame],
    catalog: Catalog,
) -> dg.MaterializeResult[pd.DataFrame]:
    """A model's rating by all judges together, with rank and interval, on their common battles.

    Judges whose ratings are withheld, whose last run was stopped or who scored too few battles
    are left out. Empty where fewer than two remain.
    """
    names = (f"rating.{name}" for name in _RATING)
    rating = corpus_of(context, catalog, *names).rating
    boards, scored = by_judge(leaderboard), by_judge(scored_battles)
    judges, _ = settled_judges(
        context.instance, context.partition_key, {*boards} & {*scored}, assets=UP_TO_LEADERBOARD
    )
    withheld = withheld_judges({judge: boards[judge] for judge in judges})
    common = common_battles({judge: scored[judge] for judge in judges if judge not in withheld})
    table, said = pooled_board(common, rating, context.partition_key)
    left_out = sorted({*boards} - {*common})
    return dg.MaterializeResult(
        value=table, metadata={**said, "judges": sorted(common), "left_out": left_out}
    )


def common_battles(scored: Tables) -> dict[str, pd.DataFrame]:
    """Return the battles that all judges scored, in one order, by judge.

    Judges come by the number of battles they scored; one that would leave less than 80 % of the
    first one's to all is left out. A battle is the same if its models and its vote are.

    Parameters
    ----------
    scored : mapping of str to DataFrame
        Table ``scored_battles`` by judge.
    """
    keyed = {name: table.set_index(_keys(table)) for name, table in scored.items()}
    order = sorted(keyed, key=lambda name: (-len(keyed[name]), name))
    common, kept = pd.Index([]), []
    for name in order:
        shared = common[common.isin(keyed[name].index)] if kept else keyed[name].index
        if len(shared) >= LEAST_SHARE * len(keyed[order[0]]):
            common, kept = shared, [*kept, name]
    return {name: keyed[name].loc[common].reset_index(drop=True) for name in kept}


def _keys(table: pd.DataFrame) -> pd.MultiIndex:
    """Return what makes a battle the same for two judges; a missing vote is a vote of -1."""
    vote = table["human_outcome"].astype("float64").fillna(-1.0)
    return pd.MultiIndex.from_frame(table[_BATTLE].assign(human_outcome=vote))


def pooled_board(
    common: Tables, rating: RatingOptions, corpus: str
) -> tuple[pd.DataFrame, dict[str, object]]:
    """Return the board of judges pooled on their common battles, and what there is to say of it.

    Parameters
    ----------
    common : mapping of str to DataFrame
        Their battles, from `common_battles`.
    rating : RatingOptions
        Of the corpus.
    corpus : str
        Its slug, which keys the random streams.
    """
    if len(common) < 2:
        note = "pooling takes two judges with ratings on common battles: run another judge"
        return _nothing(), {"note": note}
    try:
        ratings = _ratings(common, rating, corpus)
    except ValueError as error:  # such as votes that do not connect the common battles
        return _nothing(), {"note": f"the judges cannot be pooled: {error}"}
    board = rank_models(
        ratings, method=POOLED, miscoverage=rating.miscoverage, std_error=rating.std_error
    )
    table = as_table(board).merge(
        as_table(ratings).query("method == @POOLED")[["model", *_OF_RATINGS]], on="model"
    )
    n_scored = len(next(iter(common.values())))
    return table.assign(n_scored=n_scored), {"kept": kept_text(board, rating.miscoverage)}


def _ratings(common: Tables, rating: RatingOptions, corpus: str) -> HeldOutRatings:
    coded = {name: as_coded(table, rating.hard_outcome) for name, table in common.items()}
    one = next(iter(common))
    by_question = rating.resample_by == "question"
    ratings = rate_pooled(
        coded,
        RatingSettings(
            l2=rating.l2, n_resamples=rating.n_resamples, seed=rating.seed, stream=(corpus,)
        ),
        cluster=common[one]["cluster_id"].to_numpy() if by_question else None,
    )
    return with_waiting_votes(ratings, votes_that_wait(common[one], coded[one]))


def _nothing() -> pd.DataFrame:
    return pd.DataFrame(columns=[*_DTYPES]).astype(_DTYPES)


def compare_pooled(pooled: pd.DataFrame, rating: RatingOptions) -> pd.DataFrame:
    """Return the row of the pooled judges in the comparison; none where they have no board.

    Parameters
    ----------
    pooled : DataFrame
        Table ``pooled_leaderboard``.
    rating : RatingOptions
        Of the corpus.
    """
    if pooled.empty:
        return pd.DataFrame()
    ratings = as_columns(HeldOutRatings, pooled)
    intervals = calibrate_intervals(
        ratings,
        miscoverage=rating.miscoverage,
        n_splits=rating.n_splits,
        seed=rating.seed,
        std_error=rating.std_error,
    )
    figures = as_table(intervals)[["method", "threshold", "coverage", "median_width"]]
    return (
        as_table(summarise(ratings))
        .merge(figures, on="method")
        .assign(
            judge=POOLED,
            kappa=np.nan,
            n_verdicts=0,  # of its own
            n_failed=0,
            n_scored=int(pooled["n_scored"].iloc[0]),
        )
    )
