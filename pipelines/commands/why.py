"""Origin of a rating: its interval, its fold, its battles, its verdicts and their provenance."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
from sqlalchemy.exc import SQLAlchemyError

from assets.candidates.judging import score_candidates
from assets.columns import as_columns
from assets.diagnostics.influences import influence_table
from assets.diagnostics.missing import ANSWERED, FOUGHT, account_for
from assets.elo.ratings import ranking_options
from assets.provenance import OF_ALL_JUDGES, OF_CORPUS, OF_JUDGE, Made, last_made, said_of
from judgeline.elo import HeldOutRatings
from judgeline.intervals import OF_THE_JUDGE, calibrating_models, rank_models, withheld_reason
from judgeline.io import as_table
from judgeline.report import Evidence, evidence_of, strongest
from judgeline.verdict import POOLED
from pipelines.commands.leaderboards import no_pooled
from pipelines.instance.homes import open_instance
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition, RatingOptions
from resources.config.paths import home
from resources.suggest import unknown_name
from resources.tables.store import ParquetStore, open_store

_TEXTS = {False: ("sampled_battles", "verdicts"), True: ("candidate_battles", "candidate_verdicts")}


@dataclass(frozen=True)
class Why:
    """Everything behind one rating; ratings, errors and influences in Elo points.

    `rating` has its interval, threshold, spread and what that is made of, ranks, votes and flags;
    `fold` the slope of the fold that held the model out. `raises` and `lowers` are the battles
    that move it most, of `n_battles` that count; `missing` counts those without a score by class
    of failure, and `withheld` says why ratings of this judge are not shown. A `candidate` has its
    file and content hash. `origin` is what materialisations say the rating was made of, `made`
    those in the order of the lineage, and `note` why there are none. Of a pooled rating `judges`
    have their own rating, weight, and the command that explains it.
    """

    model: str
    corpus: str
    judge: str
    method: str
    rating: Mapping[str, Any]
    by_method: Mapping[str, float] = field(default_factory=dict)
    fold: Mapping[str, Any] = field(default_factory=dict)
    candidate: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    withheld: str = ""
    raises: list[Evidence] = field(default_factory=list)
    lowers: list[Evidence] = field(default_factory=list)
    n_battles: int = 0
    origin: Mapping[str, Any] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)
    note: str = ""
    judges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data; an infinite bound is the text ``"inf"`` or ``"-inf"``."""
        record = asdict(replace(self, made=[]))
        record["made"] = [
            {name: value for name, value in made._asdict().items() if name != "said"}
            for made in self.made
        ]
        return dict(_sayable(record))


def explain_rating(
    model: str,
    corpus: str,
    judge: str,
    *,
    top: int = 5,
    method: str | None = None,
    store: ParquetStore | None = None,
    instance: dg.DagsterInstance | None = None,
) -> Why:
    """Return what stands behind the rating of a model."""
    definition = _configured(corpus, judge)
    tables = _Tables(store or open_store(), corpus, judge)
    board = _board(tables, corpus, judge, method)
    row, is_candidate = _row_of(model, board, tables, corpus)
    is_pooled = judge == POOLED
    method = POOLED if is_pooled else method or str(row.get("method") or definition.rating.method)
    withheld = "" if is_pooled else withheld_reason(str(row["flags"]))
    made, note = _record(instance, corpus, judge)
    why = Why(
        model=model,
        corpus=corpus,
        judge=judge,
        method=method,
        rating=_rating(row, tables, definition, method, is_candidate, bool(withheld)),
        candidate=_candidate(row, tables, model) if is_candidate else {},
        origin=said_of(made),
        made=made,
        note=note,
        withheld=withheld,
    )
    if is_pooled:
        own = _own_ratings(why, tables, str(row["judges"]).split(", "))
        return replace(why, n_battles=int(row["n_battles"]), judges=own)
    influences = _influences(tables, definition, method, is_candidate, model)
    why = replace(
        why, n_battles=len(influences), missing={} if is_candidate else _missing(tables, model)
    )
    if withheld:
        return why
    evidence = _evidence(tables, influences, top, is_candidate)
    return replace(
        why,
        by_method=_every_rating(row, tables),
        fold=_fold(tables, row, is_candidate),
        raises=[one for one in evidence if one.influence > 0],
        lowers=[one for one in evidence if one.influence < 0],
    )


def _board(tables: "_Tables", corpus: str, judge: str, method: str | None) -> pd.DataFrame:
    board = tables.read("leaderboard")
    if judge == POOLED:
        if board is None or board.empty:
            raise ValueError(no_pooled(corpus))
        if method not in (None, POOLED):
            raise ValueError(
                f"all judges together rate by {POOLED!r} alone; leave out --method {method}, or "
                "name a judge"
            )
    if board is None:
        raise ValueError(
            f"no leaderboard of {corpus!r} by judge {judge!r} yet; "
            f"run: judgeline run --corpus {corpus} --judge {judge}"
        )
    return board


def _own_ratings(
    why: Why, tables: "_Tables", judges: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    """Return the rating by each judge of a pooled one, its weight, and where to go on."""
    of = f"{shlex.quote(why.model)} --corpus {why.corpus}"
    return {
        judge: {
            **tables.own_row(judge, why.model),
            "weight": 1 / len(judges),
            "next": f"judgeline why {of} --judge {judge}",
        }
        for judge in judges
    }


class _Tables:
    """The tables of one corpus and judge, None where there is none.

    All judges together have one table, which is leaderboard and held-out ratings in one.
    """

    def __init__(self, store: ParquetStore, corpus: str, judge: str) -> None:
        self._store, self._corpus, self._judge = store, corpus, judge

    def read(self, asset: str) -> pd.DataFrame | None:
        if self._judge == POOLED and asset in ("leaderboard", "heldout_ratings"):
            (asset,) = OF_ALL_JUDGES
        return self._store.stored(asset, *self._keys(asset))

    def own_row(self, judge: str, model: str) -> dict[str, Any]:
        """Return what the leaderboard of a judge shows of a model now; None where it has none."""
        board = self._store.stored("leaderboard", self._corpus, judge)
        rows = [] if board is None else board[board["model"].eq(model)].to_dict("records")
        own = rows[0] if rows else {}
        names = ("rating", "lower", "upper", "method", "flags")
        return {name: _plain(own.get(name)) for name in names}

    def matching(self, asset: str, battles: list[str]) -> pd.DataFrame:
        found = self._store.matching(asset, *self._keys(asset), column="battle_id", among=battles)
        return pd.DataFrame({"battle_id": []}) if found is None else found

    def picked(self, asset: str, columns: Sequence[str]) -> pd.DataFrame | None:
        return self._store.picked(asset, *self._keys(asset), columns=columns)

    def need(self, asset: str) -> pd.DataFrame:
        table = self.read(asset)
        if table is None:
            raise ValueError(
                f"no table {asset!r} of {self._corpus!r} by {self._judge!r}; make it again: "
                f"judgeline run --corpus {self._corpus} --judge {self._judge}"
            )
        return table

    def _keys(self, asset: str) -> tuple[str, ...]:
        of_corpus = asset in (*OF_CORPUS, *OF_ALL_JUDGES)
        return (self._corpus,) if of_corpus else (self._corpus, self._judge)


def _configured(corpus: str, judge: str) -> CorpusDefinition:
    definition = Catalog().corpus(corpus)
    if judge != POOLED:
        Catalog().judge(judge)
    return definition


def _row_of(
    model: str, board: pd.DataFrame, tables: _Tables, corpus: str
) -> tuple[dict[str, Any], bool]:
    """Return a model's row of the leaderboard, or of the candidates, and whether it is one.

    Where the leaderboard is withheld, so is what stands on none.
    """
    placed = tables.read("candidate_ratings")
    candidates = pd.DataFrame({"model": []}) if placed is None else placed
    for table in (board, candidates):
        if (own := table["model"].eq(model)).any():
            row = table[own].to_dict("records")[0]
            of_corpus = table is board and "candidate" not in str(row["flags"]).split(";")
            row = row if table is board else _withheld_as(board, row)
            return row, not of_corpus
    known = {*board["model"], *candidates["model"]}
    where = f"the candidates of corpus {corpus!r} and have it judged"
    raise ValueError(unknown_name("model", model, known, where))


def _withheld_as(board: pd.DataFrame, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of what stands on no leaderboard, without numbers where that has none."""
    first = str(board["flags"].iloc[0]) if len(board) else ""
    if not withheld_reason(first):
        return row
    reason = first.split(";", 1)[0]
    return {**row, **dict.fromkeys(OF_THE_JUDGE, np.nan), "flags": f"{reason};{row['flags']}"}


def _rating(
    row: Mapping[str, Any],
    tables: _Tables,
    definition: CorpusDefinition,
    method: str,
    is_candidate: bool,
    withheld: bool,
) -> dict[str, Any]:
    """Return the numbers of a rating; by another method than ranks they are made here."""
    conformal = tables.read("conformal_calibration")
    calibrated = (
        {} if conformal is None else conformal.set_index("method").to_dict("index").get(method, {})
    )
    if method != row["method"] and (method == "human" or not withheld):
        row = _by_method(row, tables, definition, method, is_candidate)
    return {
        **{name: _plain(row.get(name)) for name in _SHOWN},
        **_interval(row, tables, definition.rating),
        "promised_coverage": 1 - definition.rating.miscoverage,
        "calibration_note": _plain(calibrated.get("note")) or "",
    }


_SHOWN = (
    "rank",
    "best_rank",
    "worst_rank",
    "basis",
    "rating",
    "lower",
    "upper",
    "std_error",
    "human_rating",
    "n_battles",
    "n_votes",
    "flags",
)


def _interval(
    row: Mapping[str, Any], tables: _Tables, rating: RatingOptions
) -> dict[str, float | int | None]:
    """Return what an interval is made of: threshold, spread and its parts, calibrating models.

    ``spread^2 = std_error^2 + vote_std_error^2 + excess_sd^2``, where half the interval is
    threshold times spread. Ratings of earlier versions, and those by votes, have no parts.
    """
    names = ("threshold", "spread", "vote_std_error", "excess_sd", "n_calibrating")
    heldout, half_width = tables.read("heldout_ratings"), (row["upper"] - row["lower"]) / 2
    if heldout is None or "basis" not in heldout or not np.isfinite(half_width):
        return dict.fromkeys(names)
    ratings = as_columns(HeldOutRatings, heldout)
    others = calibrating_models(ratings, str(row["method"]), rating.std_error)
    others = others.take(others.model != row["model"])
    threshold = others.threshold(rating.miscoverage)
    spread = half_width / threshold
    of_votes = spread**2 - row["std_error"] ** 2 - others.excess_sd**2
    parts = (threshold, spread, max(of_votes, 0.0) ** 0.5, others.excess_sd, others.model.size)
    return dict(zip(names, map(_plain, parts), strict=True))


def _every_rating(row: Mapping[str, Any], tables: _Tables) -> dict[str, float]:
    """Return the ratings of a model by every method that has one."""
    found = tables.read("heldout_ratings")
    own = None if found is None else found[found["model"].eq(row["model"])].set_index("method")
    if own is None or own.empty:  # a candidate
        named: dict[str, Any] = {"hard": row.get("hard_rating"), "soft": row.get("soft_rating")}
        return {name: rating for name, rating in named.items() if pd.notna(rating)}
    return {str(name): rating for name, rating in own["rating"].dropna().items()}


def _by_method(
    row: Mapping[str, Any],
    tables: _Tables,
    definition: CorpusDefinition,
    method: str,
    is_candidate: bool,
) -> dict[str, Any]:
    if is_candidate:
        raise ValueError(
            f"candidates are rated by {row['method']!r} alone; leave out --method {method}"
        )
    ratings = tables.need("heldout_ratings")
    if method == "human":
        nothing = dict.fromkeys(("lower", "upper", "rank", "best_rank", "worst_rank"), np.nan)
        own = ratings[ratings["model"].eq(row["model"]) & ratings["method"].eq("human")]
        if own.empty:
            raise ValueError(f"nobody voted on {row['model']!r}: it has no human rating")
        return {**row, **own.to_dict("records")[0], **nothing}
    options = {**ranking_options(definition.rating), "method": method}
    table = as_table(rank_models(as_columns(HeldOutRatings, ratings), **options))
    own = table[table["model"].eq(row["model"])]
    return dict(own.to_dict("records")[0])


def _influences(
    tables: _Tables, definition: CorpusDefinition, method: str, is_candidate: bool, model: str
) -> pd.DataFrame:
    """Return the model's rows of `battle_influences`; made here for another method."""
    found = tables.read("battle_influences") if method == definition.rating.method else None
    if found is None:
        found = influence_table(
            tables.need("scored_battles"),
            tables.need("beta_folds"),
            definition.rating,
            method=method,
            candidate_scores=score_candidates(
                tables.read("candidate_battles"), tables.read("candidate_verdicts")
            ),
            candidate_ratings=tables.read("candidate_ratings"),
        )
    return found[found["model"].eq(model) & found["is_candidate"].eq(is_candidate)]


def _evidence(
    tables: _Tables, influences: pd.DataFrame, top: int, is_candidate: bool
) -> list[Evidence]:
    chosen = strongest(influences, top)
    battles, verdicts = _TEXTS[is_candidate]
    ids = chosen["battle_id"].tolist()
    return evidence_of(chosen, tables.matching(battles, ids), tables.matching(verdicts, ids))


def _fold(tables: _Tables, row: Mapping[str, Any], is_candidate: bool) -> dict[str, Any]:
    if is_candidate:  # no votes of its own to hold out
        none = {"std_error": None, "n_battles": None, "status": "fitted on all votes there are"}
        return {"beta": _plain(row.get("beta")), **none}
    folds = tables.read("beta_folds")
    if folds is None or not (own := folds["held_out_model"].eq(row["model"])).any():
        return {}
    found = folds[own].to_dict("records")[0]
    return {name: _plain(found[name]) for name in ("beta", "std_error", "n_battles", "status")}


def _missing(tables: _Tables, model: str) -> dict[str, int]:
    battles = tables.picked("sampled_battles", FOUGHT)
    verdicts = tables.picked("verdicts", ANSWERED)
    if battles is None or verdicts is None:
        return {}
    account = account_for(battles, verdicts)
    own = account[account["grouping"].eq("model") & account["level"].eq(model)]
    failed = own[own["status"].ne("ok") & own["n_battles"].gt(0)]
    return {row.status: int(row.n_battles) for row in failed.itertuples()}


def _candidate(row: Mapping[str, Any], tables: _Tables, model: str) -> dict[str, Any]:
    known = {"control": _plain(row.get("control")), "content_hash": _plain(row.get("content_hash"))}
    table = tables.read("candidates")
    if table is not None and (own := table["model"].eq(model)).any():
        first = table[own].iloc[0]
        known |= {name: _plain(first.get(name)) for name in ("file", "content_hash", "control")}
    return {name: value for name, value in known.items() if value is not None}


def _record(instance: dg.DagsterInstance | None, corpus: str, judge: str) -> tuple[list[Made], str]:
    """Return the materialisations on record, or none and why."""
    names = (*OF_CORPUS, *(OF_ALL_JUDGES if judge == POOLED else OF_JUDGE))
    try:
        if instance is not None:
            made = last_made(instance, corpus, judge, names)
        elif "DAGSTER_HOME" in os.environ or (home() / "dagster.yaml").exists():
            with open_instance() as opened:
                made = last_made(opened, corpus, judge, names)
        else:
            return [], "no runs are recorded here: the tables came without their instance"
    except (dg.DagsterError, SQLAlchemyError, OSError) as error:
        return [], f"the record of runs could not be read ({type(error).__name__})"
    return made, "" if made else "no run on record made these tables"


def _sayable(value: Any) -> Any:
    """Return plain data that JSON can say."""
    if isinstance(value, Mapping):
        return {str(name): _sayable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value


def _plain(value: Any) -> Any:
    """Return a cell as plain data; what is missing is None."""
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value
