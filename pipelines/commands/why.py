"""Origin of a rating: its interval, its fold, its battles, its verdicts and their provenance."""

import os
import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import dagster as dg
import numpy as np
import pandas as pd
from sqlalchemy.exc import SQLAlchemyError

from assets.provenance import OF_ALL_JUDGES, OF_CORPUS, OF_JUDGE, Made, last_made, said_of
from judgeline.elo import HeldOutRatings
from judgeline.intervals import BY_JUDGE, OF_THE_JUDGE, base_of, calibrating_models, withheld_reason
from judgeline.io import RANKS
from judgeline.paths import home
from judgeline.report import Evidence, Lead, beyond_lines, evidence_of, json_value, strongest
from judgeline.steps.candidates import score_candidates
from judgeline.steps.comparison import heldout_of
from judgeline.steps.diagnostics import influence_table, leads_beside, vote_influences
from judgeline.steps.intervals import by_judge_alone
from judgeline.steps.missing import ANSWERED, FOUGHT, account_for
from judgeline.steps.step import as_columns
from judgeline.suggest import unknown_name
from judgeline.tables.intervals import with_judge_columns
from judgeline.verdict import POOLED
from pipelines.commands.leaderboards import no_leaderboard, no_pooled
from pipelines.instance.homes import open_instance
from resources.config.catalog import Catalog
from resources.tables.store import ParquetStore, open_store

_SHOWN = ("rank", "best_rank", "worst_rank", "basis", "rating", "lower", "upper", "std_error",
          "evidence", "judge_rating", "judge_lower", "judge_upper", "judge_std_error",
          "human_rating", "n_battles", "n_votes", "flags")  # fmt: skip
_PARTS = ("threshold", "spread", "vote_std_error", "excess_sd", "outward", "n_calibrating")


@dataclass(frozen=True)
class Why:
    """Origin of one rating; ratings, errors and influences in Elo points.

    `rating` has its interval, threshold, spread and what that is made of, ranks, votes and flags;
    `fold` the slope of the fold that held the model out. `raises` and `lowers` are the battles
    that move the judge's rating most, of `n_battles` that count, and of that `judge_share` reaches
    a rating by judge and votes; `votes` move it most among the model's own. `leads` are those of
    the judge over it and over the next model, with the battles that they rest on; `missing` counts
    those without a score by class of failure, and `withheld` says why ratings of this judge are
    not shown. `beyond` warns of a model beyond all that people have rated, else it is empty. A
    `candidate` has its file and content hash. `origin` is what materialisations say the rating was
    made of, `made` those in the order of the lineage, and `note` why there are none. Of a pooled
    rating `judges` have their own rating, weight, and the command that explains it.
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
    beyond: str = ""
    raises: list[Evidence] = field(default_factory=list)
    lowers: list[Evidence] = field(default_factory=list)
    n_battles: int = 0
    votes: list[Mapping[str, Any]] = field(default_factory=list)
    judge_share: float | None = None
    leads: list[Lead] = field(default_factory=list)
    origin: Mapping[str, Any] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)
    note: str = ""
    judges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """Return plain data; an infinite bound is the text ``"inf"`` or ``"-inf"``."""
        made = [{k: v for k, v in one._asdict().items() if k != "said"} for one in self.made]
        return dict(json_value({**asdict(replace(self, made=[])), "made": made}))


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
    """Return the origin of a model's rating."""
    found = _Rating(store or open_store(), model, corpus, judge, method)
    made, note = _record(instance, corpus, judge)
    why = Why(
        model=model,
        corpus=corpus,
        judge=judge,
        method=found.method,
        rating=found.numbers(),
        candidate=found.candidate(),
        origin=said_of(made),
        made=made,
        note=note,
        withheld=found.withheld,
        beyond=found.beyond(),
    )
    if judge == POOLED:
        return replace(why, n_battles=int(found.row["n_battles"]), judges=found.own_ratings())
    return _with_battles(why, found, top)


def _with_battles(why: Why, found: "_Rating", top: int) -> Why:
    """Return the origin with the votes and, unless withheld, the battles that move it most."""
    influences = found.influences()
    votes, share = found.votes(top)
    why = replace(why, n_battles=len(influences), missing=found.missing())
    why = replace(why, votes=votes, judge_share=share)
    if found.withheld:
        return why
    evidence = found.evidence(strongest(influences, top))
    return replace(
        why,
        by_method=found.every_rating(),
        fold=found.fold(),
        raises=[one for one in evidence if one.influence > 0],
        lowers=[one for one in evidence if one.influence < 0],
        leads=found.leads(),
    )


class _Rating:
    """A row of a leaderboard, or of candidates, and the tables of its corpus and judge.

    All judges together have one table, which is leaderboard and held-out ratings in one.
    """

    def __init__(
        self, store: ParquetStore, model: str, corpus: str, judge: str, method: str | None
    ) -> None:
        self._definition = Catalog().corpus(corpus)
        if judge != POOLED:
            Catalog().judge(judge)
        self._store, self._model, self._corpus, self._judge = store, model, corpus, judge
        board = self._read("leaderboard")
        if judge == POOLED and (board is None or board.empty):
            raise ValueError(no_pooled(corpus))
        if judge == POOLED and method not in (None, POOLED):
            raise ValueError(
                f"all judges together rate by {POOLED!r} alone; leave out --method {method}, or "
                "name a judge"
            )
        if board is None:
            raise ValueError(no_leaderboard(self._definition, judge))
        self.row, self._is_candidate = self._row_of(board)
        self.method = method or str(self.row.get("method") or self._definition.rating.method)
        self.withheld = withheld_reason(str(self.row["flags"]))
        if judge == POOLED:
            self.method, self.withheld = POOLED, ""

    def numbers(self) -> dict[str, Any]:
        """Return the numbers of a rating; by another method than ranks they are made here."""
        conformal, row = self._read("conformal_calibration"), self.row
        notes = {} if conformal is None else conformal.set_index("method")["note"].to_dict()
        if self.method != row["method"] and (self.method == "human" or not self.withheld):
            row = self._by_method()
        return {
            **{name: _plain(row.get(name)) for name in _SHOWN},
            **self._interval(row),
            "promised_coverage": 1 - self._definition.rating.miscoverage,
            "calibration_note": _plain(notes.get(self.method)) or "",
        }

    def candidate(self) -> dict[str, Any]:
        """Return file, content hash and control of a candidate; nothing of another model."""
        if not self._is_candidate:
            return {}
        known = {name: self.row.get(name) for name in ("control", "content_hash")}
        table = self._read("candidates")
        if table is not None and (own := table["model"].eq(self._model)).any():
            first = table[own].iloc[0]
            known |= {name: first.get(name) for name in ("file", "content_hash", "control")}
        return {name: _plain(value) for name, value in known.items() if _plain(value) is not None}

    def own_ratings(self) -> dict[str, Mapping[str, Any]]:
        judges, shown = (
            self.row["judges"].split(", "),
            ("judge_rating", "judge_lower", "judge_upper", "method", "flags"),
        )
        ratings: dict[str, Mapping[str, Any]] = {}
        for judge in judges:
            board = self._store.stored("leaderboard", self._corpus, judge)
            own = self._row_in(None if board is None else with_judge_columns(board))
            of = f"{shlex.quote(self._model)} --corpus {self._corpus} --judge {judge}"
            known = {name: _plain(own.get(name)) for name in shown}
            ratings[judge] = {**known, "weight": 1 / len(judges), "next": f"judgeline why {of}"}
        return ratings

    def influences(self) -> pd.DataFrame:
        """Return the model's rows of `battle_influences`; made here for another method."""
        rating = self._definition.rating
        found = self._read("battle_influences") if self.method == rating.method else None
        if found is None:
            tables = map(self._read, ("candidate_battles", "candidate_verdicts"))
            found = influence_table(
                self._need("scored_battles"),
                self._need("beta_folds"),
                rating,
                method=self.method,
                candidate_scores=score_candidates(*tables),
                candidate_ratings=self._read("candidate_ratings"),
            )
        is_own = found["model"].eq(self._model) & found["is_candidate"].eq(self._is_candidate)
        return found[is_own]

    def votes(self, most: int) -> tuple[list[Mapping[str, Any]], float | None]:
        """Return the votes that move the board's rating most, and the share of the judge in it."""
        evidence, heldout = str(self.row["evidence"]), self._read("heldout_ratings")
        is_of_votes = not self._is_candidate and evidence not in ("", BY_JUDGE)
        if heldout is None or not is_of_votes or self.method != self.row["method"]:
            return [], None
        found, share = vote_influences(
            self._need("scored_battles"),
            as_columns(HeldOutRatings, heldout),
            self._definition.rating,
            self._model,
            float(self.row["rating"]),
            by_votes=not evidence.startswith("judge"),
        )
        return strongest(found, most).to_dict("records"), share

    def leads(self) -> list[Lead]:
        """Return the leads beside the model's place and their battles; none of a candidate."""
        heldout = self._read("heldout_ratings")
        if heldout is None or self._is_candidate:
            return []
        ratings = heldout[heldout["method"].eq(self.method)].set_index("model")["rating"]
        battles, options = self._need("scored_battles"), self._definition.rating
        board, half_width = self._read("leaderboard"), None
        if board is not None and board["method"].eq(self.method).all():
            width = board["judge_upper"] - board["judge_lower"]
            half_width = width.set_axis(board["model"]) / 2
        return leads_beside(self._model, battles, ratings, options, self.method, half_width)

    def evidence(self, chosen: pd.DataFrame) -> list[Evidence]:
        ids, tables = chosen["battle_id"].tolist(), ("sampled_battles", "verdicts")
        if self._is_candidate:
            tables = ("candidate_battles", "candidate_verdicts")
        found = (
            self._store.matching(name, *self._keys(name), column="battle_id", among=ids)
            for name in tables
        )
        none = pd.DataFrame({"battle_id": []})
        battles, verdicts = (none if table is None else table for table in found)
        return evidence_of(chosen, battles, verdicts, self._read("scored_battles"))

    def every_rating(self) -> dict[str, float]:
        found = self._read("heldout_ratings")
        own = None if found is None else found[found["model"].eq(self._model)].set_index("method")
        if own is None or own.empty:  # a candidate
            named = {name: self.row.get(f"{name}_rating", np.nan) for name in ("hard", "soft")}
            return {name: rating for name, rating in named.items() if pd.notna(rating)}
        return {str(name): rating for name, rating in own["rating"].dropna().items()}

    def fold(self) -> dict[str, Any]:
        """Return the slope of the fold that held the model out; a candidate has no votes."""
        names = ("beta", "std_error", "n_battles", "status")
        if self._is_candidate:
            fitted = (_plain(self.row.get("beta")), None, None, "fitted on all votes there are")
            return dict(zip(names, fitted, strict=True))
        folds = self._read("beta_folds")
        if folds is None or not (own := folds["held_out_model"].eq(self._model)).any():
            return {}
        return {name: _plain(folds.loc[own, name].iloc[0]) for name in names}

    def beyond(self) -> str:
        """Return a warning if the judge puts the model beyond all that people have rated."""
        board = self._need("leaderboard")
        others = board[board["model"].ne(self._model)].assign(flags="")
        rows = pd.concat([others, pd.DataFrame([self.row])], ignore_index=True)
        return "".join(text for text, _ in beyond_lines(rows))

    def missing(self) -> dict[str, int]:
        """Return the number of battles without a score, by failure; none for a candidate."""
        battles, verdicts = (
            self._store.picked(name, *self._keys(name), columns=columns)
            for name, columns in (("sampled_battles", FOUGHT), ("verdicts", ANSWERED))
        )
        if self._is_candidate or battles is None or verdicts is None:
            return {}
        account = account_for(battles, verdicts)
        own = account[account["grouping"].eq("model") & account["level"].eq(self._model)]
        failed = own[own["status"].ne("ok") & own["n_battles"].gt(0)]
        return dict(zip(failed["status"], map(int, failed["n_battles"]), strict=True))

    def _row_of(self, board: pd.DataFrame) -> tuple[dict[str, Any], bool]:
        """Return the model's row of the leaderboard or candidates, and if it is a candidate."""
        if row := self._row_in(board):
            return row, "candidate" in str(row["flags"]).split(";")
        placed = self._read("candidate_ratings")
        candidates = pd.DataFrame({"model": []}) if placed is None else placed
        if row := self._row_in(candidates):
            first = "".join(map(str, board["flags"].head(1)))
            if withheld_reason(first):
                flags = f"{first.split(';', 1)[0]};{row['flags']}"
                hidden = (*OF_THE_JUDGE, *RANKS, "rating", "lower", "upper", "std_error")
                row |= {**dict.fromkeys(hidden, np.nan), "evidence": "", "flags": flags}
            return row, True
        known = {*board["model"], *candidates["model"]}
        where = f"the candidates of corpus {self._corpus!r} and have it judged"
        raise ValueError(unknown_name("model", self._model, known, where))

    def _row_in(self, table: pd.DataFrame | None) -> dict[str, Any]:
        rows = [] if table is None else table[table["model"].eq(self._model)].to_dict("records")
        return dict(rows[0]) if rows else {}

    def _interval(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts of the judge's interval: threshold, spread, calibrating models.

        ``spread^2 = std_error^2 + vote_std_error^2 + excess_sd^2``, where half the interval is
        threshold times spread, and one end lies `outward` farther away. Ratings of earlier
        versions, and those by votes, have no parts.
        """
        heldout = self._read("heldout_ratings")
        is_bounded = np.isfinite(row.get("judge_upper", np.nan))
        if heldout is None or "outward" not in heldout or not is_bounded:
            return dict.fromkeys(_PARTS)
        rating = self._definition.rating
        ratings = as_columns(HeldOutRatings, heldout)
        base = base_of(str(row["basis"]), str(row["method"]), ratings)
        kind, published = cast(Any, rating.std_error), rating.intervals == "published"
        voted = calibrating_models(ratings, base, kind, published=published)
        threshold = voted.threshold(rating.miscoverage)
        errors = (np.array([row[name]]) for name in ("judge_std_error", "vote_std_error"))
        spread = float(voted.spread(*errors)[0])
        ends = row["judge_upper"] + row["judge_lower"] - 2 * row["judge_rating"]
        parts = (threshold, spread, row["vote_std_error"], voted.excess_sd, ends, voted.model.size)
        return dict(zip(_PARTS, map(_plain, parts), strict=True))

    def _by_method(self) -> dict[str, Any]:
        row, method = self.row, self.method
        if self._is_candidate:
            raise ValueError(
                f"candidates are rated by {row['method']!r} alone; leave out --method {method}"
            )
        ratings = self._need("heldout_ratings")
        if method == "human":
            nothing = dict.fromkeys(("lower", "upper", "rank", "best_rank", "worst_rank"), np.nan)
            own = self._row_in(ratings[ratings["method"].eq("human")])
            if not own:
                raise ValueError(f"nobody voted on {self._model!r}: it has no human rating")
            judge = dict.fromkeys(OF_THE_JUDGE, np.nan)
            return {**row, **own, **nothing, **judge, "evidence": f"{row['n_votes']} votes"}
        return self._row_in(by_judge_alone(ratings, self._definition.rating, method))

    def _keys(self, asset: str) -> tuple[str, ...]:
        own = () if asset in (*OF_CORPUS, *OF_ALL_JUDGES) else (self._judge,)
        return self._corpus, *own

    def _read(self, asset: str) -> pd.DataFrame | None:
        of_pooled = self._judge == POOLED and asset in ("leaderboard", "heldout_ratings")
        stored = OF_ALL_JUDGES[0] if of_pooled else asset
        table = self._store.stored(stored, *self._keys(stored))
        if table is None or asset not in ("leaderboard", "candidate_ratings", "heldout_ratings"):
            return table
        if asset == "heldout_ratings":
            if of_pooled and "design_effect" not in table:  # of an earlier version
                return None
            return heldout_of(table) if of_pooled else table
        return with_judge_columns(table)

    def _need(self, asset: str) -> pd.DataFrame:
        table = self._read(asset)
        if table is None:
            raise ValueError(
                f"no table {asset!r} of {self._corpus!r} by {self._judge!r}; make it again: "
                f"judgeline run --corpus {self._corpus} --judge {self._judge}"
            )
        return table


def _record(instance: dg.DagsterInstance | None, corpus: str, judge: str) -> tuple[list[Made], str]:
    """Return the materialisations on record, or none and why."""
    names = (*OF_CORPUS, *(OF_ALL_JUDGES if judge == POOLED else OF_JUDGE))
    try:
        is_here = "DAGSTER_HOME" in os.environ or (home() / "dagster.yaml").exists()
        if instance is None and not is_here:
            return [], "no runs are recorded here: the tables came without their instance"
        with open_instance() if instance is None else nullcontext(instance) as opened:
            made = last_made(opened, corpus, judge, names)
    except (dg.DagsterError, SQLAlchemyError, OSError) as error:
        return [], f"the record of runs could not be read ({type(error).__name__})"
    return made, "" if made else "no run on record made these tables"


def _plain(value: Any) -> Any:
    """Return a cell as plain data; what is missing is None."""
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    return value.item() if isinstance(value, np.generic) else value
