"""The record of predictions as tables: stated once, scored once, and tested against the pool."""

import json
from typing import Literal

import numpy as np
import pandas as pd

from judgeline.conformal import nonconformity_scores
from judgeline.exchangeability import conformal_p_values, rank_sum_test
from judgeline.origin import origin_shift
from judgeline.running_coverage import running_coverage

StdErrorKind = Literal["analytic", "bootstrap"]

PREDICTION_DTYPES: dict[str, str] = {
    "model": "str",
    "content_hash": "str",
    "predicted_at": "str",
    "run_id": "str",
    "method": "str",
    "rating": "float64",
    "lower": "float64",
    "upper": "float64",
    "std_error": "float64",
    "miscoverage": "float64",
    "anchors": "str",
    "scored_at": "str",
    "human_rating": "float64",
    "origin_shift": "float64",
    "n_votes": "Int64",
    "residual": "float64",
    "covered": "boolean",
}
"""Columns of the record; those from `scored_at` on are null until enough people have voted."""

_FEWEST_SHARE = 0.1  # quantile of the votes on models that calibrate
_STATED = ["model", "method", "rating", "lower", "upper", "std_error"]


def typed_record(table: pd.DataFrame | None) -> pd.DataFrame:
    """Return a record with its columns and their types; an empty one for None."""
    given = pd.DataFrame() if table is None else table
    return given.reindex(columns=list(PREDICTION_DTYPES)).astype(PREDICTION_DTYPES)


def state_predictions(
    record: pd.DataFrame,
    leaderboard: pd.DataFrame,
    content_hashes: pd.Series,
    *,
    miscoverage: float,
    now: str,
    run_id: str,
) -> pd.DataFrame:
    """Return a record with a row more for each model that is rated without votes at last.

    Parameters
    ----------
    record : DataFrame
        What was predicted before, a row per model; it stays as it is.
    leaderboard : DataFrame
        As it stands; ratings that are withheld are null, and predict nothing. Nor does the rating
        of a model with votes that has no human rating, since its fold falls apart without it.
        Models with a human rating are the anchors: the rating is relative to their mean. An
        interval without ends promises nothing, and a rating from few battles is a guess: neither
        is written down, and the first that is worth it is.
    content_hashes : Series
        Of the files of dropped models, by model.
    miscoverage : float
        What the intervals tolerate.
    now, run_id : str
        When, in ISO 8601 and UTC, and by which run.
    """
    ends = leaderboard[["rating", "lower", "upper"]].to_numpy(dtype=float)
    few = leaderboard["flags"].str.split(";").map(lambda flags: "few-battles" in flags)
    unvoted = leaderboard["n_votes"].eq(0) & np.isfinite(ends).all(axis=1) & ~few.astype(bool)
    fresh = leaderboard[unvoted & ~leaderboard["model"].isin(record["model"])]
    is_dropped = np.array(["candidate" in flags.split(";") for flags in fresh["flags"]], dtype=bool)
    stated = fresh[_STATED].assign(
        content_hash=fresh["model"].map(content_hashes).where(is_dropped),
        predicted_at=now,
        run_id=run_id,
        miscoverage=miscoverage,
        anchors=json.dumps(
            leaderboard.dropna(subset="human_rating").set_index("model")["human_rating"].to_dict(),
            sort_keys=True,
        ),
    )
    rows = typed_record(stated.sort_values("model"))
    return pd.concat([record, rows], ignore_index=True) if len(rows) else record


def score_predictions(record: pd.DataFrame, leaderboard: pd.DataFrame, *, now: str) -> pd.DataFrame:
    """Return a record with people's ratings in the rows of models that have them by now.

    A prediction is scored once: as soon as its model has as many votes as the tenth with fewest of
    the models that calibrate (their lowest decile). Residuals hold the noise of the votes too:
    one against a rating from fewer votes is larger than those that the interval was made from.
    Others may have got votes meanwhile: people's rating is moved to the anchors that the
    prediction was made among, by `origin_shift`. Where none of those is left, nothing is scored.

    Parameters
    ----------
    record : DataFrame
        A row per model.
    leaderboard : DataFrame
        With people's ratings, and the votes behind them.
    now : str
        When, in ISO 8601 and UTC.
    """
    voted = leaderboard[leaderboard["human_rating"].notna()].set_index("model")
    others = voted.loc[~voted.index.isin(record["model"]), "n_votes"]
    enough = float(others.quantile(_FEWEST_SHARE)) if len(others) else np.inf
    ready = voted[voted["n_votes"].ge(enough)]
    shift = record["model"].map(
        {
            row.model: _origin_shift(voted["human_rating"].drop(row.model), row.anchors)
            for row in record[record["model"].isin(ready.index)].itertuples()
        }
    )
    due = record["scored_at"].isna() & shift.notna()
    if not due.any():
        return record
    found = ready.loc[record.loc[due, "model"]]
    human = pd.Series(found["human_rating"].to_numpy(dtype=float), index=record.index[due])
    own = record[due]
    as_then = human + shift[due]
    scored = own.assign(
        scored_at=now,
        human_rating=human,
        origin_shift=shift[due],
        n_votes=found["n_votes"].to_numpy(),
        residual=own["rating"] - as_then,
        covered=own["lower"].le(as_then) & own["upper"].ge(as_then),
    )
    return pd.concat([record[~due], typed_record(scored)]).sort_index()


def _origin_shift(others: pd.Series, anchors: str | float) -> float:
    """Return the shift from the anchors of a record, as JSON, to those that have votes now.

    Zero for a prediction that is older than the record of its anchors.
    """
    if not isinstance(anchors, str):
        return 0.0
    then = pd.Series(json.loads(anchors), dtype=float)
    return origin_shift(then, others.reindex(then.index), others)


def coverage_of(record: pd.DataFrame, heldout_ratings: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return how often scored predictions held beside what chance allows, a row per miscoverage.

    Also returned is how many scored predictions are left out: the whole line promises nothing.

    Parameters
    ----------
    record : DataFrame
        Of predictions.
    heldout_ratings : DataFrame
        The models that calibrate are those with votes that were never predicted.
    """
    scored = record[record["scored_at"].notna()]
    counted = scored[np.isfinite(scored[["lower", "upper"]]).all(axis=1)]
    sizes = [len(pool_of(heldout_ratings, name, record)) for name in counted["method"].unique()]
    coverage = running_coverage(
        counted["covered"].astype(bool), counted["miscoverage"], n_calibration=min(sizes, default=0)
    )
    return pd.DataFrame(coverage._asdict()), len(scored) - len(counted)


def pool_of(heldout_ratings: pd.DataFrame, method: str, record: pd.DataFrame) -> pd.DataFrame:
    """Return the leave-one-out rows that calibrate a method, without models that were predicted."""
    rows = heldout_ratings["method"].eq(method) & heldout_ratings["residual"].notna()
    return heldout_ratings[rows & ~heldout_ratings["model"].isin(record["model"])]


def rank_tests(
    record: pd.DataFrame, heldout_ratings: pd.DataFrame, std_error: StdErrorKind
) -> pd.DataFrame:
    """Return rank tests of the residuals of scored predictions against those that calibrate.

    Parameters
    ----------
    record : DataFrame
        Of predictions.
    heldout_ratings : DataFrame
        The table of that name.
    std_error : {"analytic", "bootstrap"}
        Which standard error intervals are made of.

    Returns
    -------
    DataFrame
        Two rows per method: of signed residuals in standard errors (shifted either way?) and of
        their sizes (larger?). No rows where nothing is scored, or nothing is left to calibrate.
    """
    rows = []
    for method, fresh in record[record["scored_at"].notna()].groupby("method", sort=True):
        pool = pool_of(heldout_ratings, str(method), record)
        if pool.empty:
            continue
        spread = pool["std_error_analytic" if std_error == "analytic" else "std_error"]
        new, old = _scores(fresh["residual"], fresh["std_error"]), _scores(pool["residual"], spread)
        shift = rank_sum_test(new, old)
        size = rank_sum_test(np.abs(new), np.abs(old), alternative="greater")
        rows += [
            {"method": method, "of": "signed residuals, shifted", **shift._asdict()},
            {"method": method, "of": "sizes of residuals, larger", **size._asdict()},
        ]
    return pd.DataFrame(rows)


def strangeness(
    record: pd.DataFrame, heldout_ratings: pd.DataFrame, std_error: StdErrorKind
) -> pd.DataFrame:
    """Return each scored prediction's conformal p-value: the share of models as strange as it.

    Parameters and columns are those of `rank_tests` and of the record.
    """
    scored = record[record["scored_at"].notna()]
    tables = []
    for method, fresh in scored.groupby("method", sort=True):
        pool = pool_of(heldout_ratings, str(method), record)
        spread = pool["std_error_analytic" if std_error == "analytic" else "std_error"]
        new, old = _scores(fresh["residual"], fresh["std_error"]), _scores(pool["residual"], spread)
        if len(old):
            tables.append(fresh.assign(p_value=conformal_p_values(np.abs(new), np.abs(old))))
    columns = ["model", "rating", "human_rating", "residual", "covered", "p_value"]
    return pd.concat(tables)[columns] if tables else pd.DataFrame(columns=columns)


def _scores(residual: pd.Series, spread: pd.Series) -> np.ndarray:
    """Return signed residuals in standard errors; infinite where there is no spread."""
    signed = residual.to_numpy(dtype=float)
    return np.copysign(nonconformity_scores(signed, spread.to_numpy(dtype=float)), signed)
