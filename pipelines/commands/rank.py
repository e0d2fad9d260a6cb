"""`judgeline rank`: the science on one file, without the orchestrator.

What belongs here: the order of the steps, the gate that a judge must pass, and the files that
come out. What does not: statistics (`judgeline`), reading (`pipelines.commands.rank_input`).
"""

import difflib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from assets.columns import (
    as_coded,
    as_numbers,
    as_table,
    votes_that_wait,
    with_waiting_votes,
)
from judgeline.diagnostics import diagnose_judge
from judgeline.elo.beta import CONSTANT, BetaFolds, fit_beta, fit_beta_folds
from judgeline.elo.connectivity import require_connected
from judgeline.elo.rate import HEADLINE, HeldOutRatings, rate
from judgeline.elo.settings import RatingSettings
from judgeline.elo.summary import summarise
from judgeline.intervals.board import rank_models, with_votes
from judgeline.intervals.conformal import calibrate_intervals
from judgeline.intervals.judge_and_votes import rate_with_votes
from pipelines.commands.rank_input import JudgedBattles, read_judged_battles
from resources.corpora.outcome_codes import require_few_lost
from resources.inert import in_csv

HELDOUT_COLUMNS = (
    "model",
    "method",
    "human_rating",
    "judge_rating",
    "residual",
    "std_error",
    "std_error_analytic",
    "beta",
    "n_battles",
    "flags",
)
MOST_QUARANTINED = 0.5
"""Share of unusable rows above which nothing is rated, as in the lineage."""
_LOST = ("unknown-outcome", "unknown-winner", "unknown-preference", "nan-score")

_VERDICT_OF_STATUS = {
    CONSTANT: "every score difference is {score:g}, so that the judge tells nothing of the models. "
    "Check how the scores were read; if they are right, this judge must not rate models",
    "contradicts-humans": "the judge prefers what people reject (its slope is not positive). "
    "Check that score_difference is A minus B and that human_outcome 1 means A; if both are "
    "right, this judge must not rate models",
    "separable": "the scores predict every vote, so that the slope has no upper end. There are "
    "too few human votes: add battles that people voted on",
    "no-decisive-votes": "no battle has both a decisive human vote (1 or 0) and unequal scores. "
    "Add battles that people voted on",
}


class QualityGateError(Exception):
    """What was read, or the judge, is too bad to rate models by."""


class UnusableJudgeError(QualityGateError):
    """The judge fails a quality gate: its scores cannot be put on the human scale."""


@dataclass(frozen=True)
class RankSettings:
    """Settings of one ranking; Elo on the scale 1500 + 400 / ln 10 * strength.

    Attributes
    ----------
    l2 : float
        Penalty on squared strengths, per squared logit.
    hard_outcome : str
        ``"derived"`` from the scores or ``"recorded"`` in the file.
    n_resamples : int
        Bootstrap resamples per model and method; 0 for the closed form alone.
    miscoverage : float
        Tolerated share of misses, in (0, 1).
    n_splits : int
        Random splits of the models on which coverage is measured.
    seed : int
        Seed of every random stream.
    std_error : str
        Which standard error scales the intervals: ``"analytic"`` or ``"bootstrap"``.
    methods : tuple of str
        Methods to write; all where none is named. The leaderboard ranks by ``auto`` if that
        is among them, else by the first.
    """

    l2: float = 0.01
    hard_outcome: Literal["derived", "recorded"] = "derived"
    n_resamples: int = 200
    miscoverage: float = 0.1
    n_splits: int = 5
    seed: int = 0
    std_error: Literal["analytic", "bootstrap"] = "analytic"
    methods: tuple[str, ...] = ()


class Ranking(NamedTuple):
    """What one judge's battles say; one table per result of the core."""

    leaderboard: pd.DataFrame
    heldout_ratings: pd.DataFrame
    beta_folds: pd.DataFrame
    conformal_calibration: pd.DataFrame
    summary: pd.DataFrame
    judge_diagnostics: pd.DataFrame


class Ranked(NamedTuple):
    """A finished ranking: its tables, what was read and where the files are."""

    ranking: Ranking
    battles: JudgedBattles
    files: dict[str, Path]


def rank_file(
    path: Path,
    out: Path,
    settings: RankSettings,
    *,
    judge: str | None = None,
    report: bool = True,
    outcomes: str | None = None,
    allow_quarantine: bool = False,
) -> Ranked:
    """Rate the models of a file of judged battles and write tables and report.

    Parameters
    ----------
    path : Path
        Soft-Elo annotations or scored battles.
    out : Path
        Folder for the results; made if it is not there. All files appear, or none.
    settings : RankSettings
        How to rate.
    judge : str, optional
        Which judge, where the file holds several.
    report : bool
        Whether to write ``report.html``.
    outcomes : str, optional
        Codes of outcomes, such as ``"1/-1/0"``: A's, B's, then any of ties.
    allow_quarantine : bool
        Whether to rate what is left where many outcomes are unknown or scores NaN.

    Returns
    -------
    Ranked
        Tables, reading account and paths by file name.

    Raises
    ------
    ValueError
        If the file, the folder or a setting is unusable, or unknown outcomes and NaN scores
        lose more rows than is allowed; the message says what to do.
    QualityGateError
        If the judge fails the gate (no positive, finite slope in every fold), or most rows
        cannot be used.
    """
    _require_writable(out)
    battles = read_judged_battles(path, judge=judge, outcomes=outcomes)
    _require_mostly_readable(battles)
    if not allow_quarantine:
        remedy = "Correct the file, or rate what is left with --allow-quarantine"
        require_few_lost(battles.quarantine, battles.n_rows, _LOST, str(path), remedy)
    ranking = _rank_or_explain(battles, settings, out)
    writers = _table_writers(ranking, battles)
    if report:
        writers["report.html"] = _report_writer(path, settings, battles, ranking)
    return Ranked(ranking, battles, _write_together(out, writers))


def _rank_or_explain(battles: JudgedBattles, settings: RankSettings, out: Path) -> Ranking:
    """Rank, or fail with the rows that were set aside, which are often the cause."""
    try:
        return rank_battles(battles.scored, settings)
    except (ValueError, QualityGateError) as error:
        if battles.quarantine.empty:
            raise
        quarantine = _write_together(out, {"quarantine.csv": _csv_writer(battles.quarantine)})
        kind = QualityGateError if isinstance(error, QualityGateError) else ValueError
        raise kind(
            f"{error}. Before that, {len(battles.quarantine):,} of {battles.n_rows:,} rows were "
            f"set aside (see {quarantine['quarantine.csv']}), such as: "
            f"{battles.quarantine['detail'].iloc[0]}"
        ) from error


def _require_mostly_readable(battles: JudgedBattles) -> None:
    share = battles.quarantine["row"].nunique() / max(battles.n_rows, 1)
    if share > MOST_QUARANTINED:
        reasons = battles.quarantine["reason"].value_counts()
        told = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        raise QualityGateError(
            f"{share:.0%} of {battles.n_rows:,} rows cannot be used ({told}), such as: "
            f"{battles.quarantine['detail'].iloc[0]}. Correct the file: ratings from what is left "
            "would speak of other battles than it was meant to hold"
        )


def rank_battles(scored: pd.DataFrame, settings: RankSettings) -> Ranking:
    """Return the ratings that scored battles of one judge give.

    Parameters
    ----------
    scored : DataFrame
        Scored battles, one row each.
    settings : RankSettings
        How to rate.

    Returns
    -------
    Ranking
        Ratings, residuals and widths in Elo points.

    Raises
    ------
    ValueError
        If fewer than two models or an unconnected graph is left, or a method is unknown.
    UnusableJudgeError
        If the judge fails the gate.
    """
    _require_recorded(scored, settings)
    coded = as_coded(scored, settings.hard_outcome)
    require_connected(coded)
    folds = fit_beta_folds(coded)
    _require_usable(scored, folds)
    rating = RatingSettings(l2=settings.l2, n_resamples=settings.n_resamples, seed=settings.seed)
    heldout = with_waiting_votes(
        rate(coded, rating, beta_folds=folds), votes_that_wait(scored, coded)
    )
    methods = _methods(settings.methods, list(dict.fromkeys(heldout.method.tolist())))
    chosen = np.isin(heldout.method, [*methods, "human"])
    wanted = HeldOutRatings(*(column[chosen] for column in heldout))
    calibration = calibrate_intervals(
        wanted,
        miscoverage=settings.miscoverage,
        n_splits=settings.n_splits,
        seed=settings.seed,
        std_error=settings.std_error,
    )
    method = HEADLINE if HEADLINE in methods else methods[0]
    leaderboard = with_votes(
        rank_models(
            wanted, method=method, miscoverage=settings.miscoverage, std_error=settings.std_error
        ),
        rate_with_votes(
            as_coded(scored, settings.hard_outcome, every_vote=True),
            coded,
            heldout,
            method=method,
            miscoverage=settings.miscoverage,
            seed=settings.seed,
            l2=settings.l2,
        ),
    )
    columns = ("difference_ab", "difference_ba", "length_a", "length_b")
    diagnostics = diagnose_judge(
        coded,
        folds,
        heldout,
        l2=settings.l2,
        language=scored["language"].to_numpy(dtype=object, na_value=None),
        **{name: as_numbers(scored[name]) for name in columns},
    )
    tables = (leaderboard, wanted, folds, calibration, summarise(wanted), diagnostics)
    return Ranking(*map(as_table, tables))


def _require_recorded(scored: pd.DataFrame, settings: RankSettings) -> None:
    missing = int(scored["recorded_outcome"].isna().sum())
    if settings.hard_outcome == "recorded" and missing:
        raise ValueError(
            f"{missing} of {len(scored)} battles have no outcome recorded by the judge (column "
            "judge_outcome); add it, or rank with --hard-outcome derived"
        )


def _require_usable(scored: pd.DataFrame, folds: BetaFolds) -> None:
    """Raise unless the judge has a positive, finite slope, with all votes and in every fold."""
    pooled = fit_beta(as_numbers(scored["score_difference"]), as_numbers(scored["human_outcome"]))
    status = CONSTANT if CONSTANT in folds.status else pooled.status
    if status != "ok":
        why = _VERDICT_OF_STATUS[status].format(score=scored["score_difference"].iloc[0])
        raise UnusableJudgeError(
            f"this judge cannot be put on the human scale ({status}, "
            f"{pooled.n_battles} decisive votes): {why}"
        )
    bad = folds.status != "ok"
    if bad.any():
        status = str(folds.status[bad][0])
        names = ", ".join(folds.held_out_model[bad][:5])
        raise UnusableJudgeError(
            f"with {names} held out, the other models' votes give no slope ({status}): "
            f"{_VERDICT_OF_STATUS[status]}"
        )


def _methods(asked: tuple[str, ...], known: list[str]) -> list[str]:
    rated = [method for method in known if method != "human"]
    for method in asked:
        if method not in rated:
            near = difflib.get_close_matches(method, rated, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"unknown method {method!r}; {hint}Known are {', '.join(rated)}")
    return list(dict.fromkeys(asked)) or rated


def _table_writers(ranking: Ranking, battles: JudgedBattles) -> dict[str, Callable[[Path], object]]:
    rated = ranking.heldout_ratings[ranking.heldout_ratings["method"].ne("human")]
    heldout = rated.rename(columns={"rating": "judge_rating"})[list(HELDOUT_COLUMNS)]
    tables = {
        "heldout.csv": heldout,
        "conformal.csv": ranking.conformal_calibration,
        "summary.csv": ranking.summary,
        "leaderboard.csv": ranking.leaderboard,
        "quarantine.csv": battles.quarantine,
    }
    return {name: _csv_writer(table) for name, table in tables.items()}


def _csv_writer(table: pd.DataFrame) -> Callable[[Path], object]:
    return lambda path: path.write_text(in_csv(table), encoding="utf-8", newline="")


def _report_writer(
    path: Path, settings: RankSettings, battles: JudgedBattles, ranking: Ranking
) -> Callable[[Path], object]:
    from resources.report import JudgeTables, write_report

    tables = JudgeTables(
        judge=battles.judge,
        display_name=battles.judge,
        scored_battles=battles.scored,
        **ranking._asdict(),
    )
    return lambda target: write_report(
        target,
        title=f"Ratings from {path.name}",
        corpus_name=path.name,
        simulated=False,
        judges=[tables],
        provenance=_provenance(path, settings, battles),
        comparison=None,
    )


def _provenance(path: Path, settings: RankSettings, battles: JudgedBattles) -> Mapping[str, str]:
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    account = f"{len(battles.scored)} scored, {len(battles.quarantine)} rows quarantined"
    packages = ("judgeline", "numpy", "scipy", "pandas")
    return {
        "file": path.name,
        "sha256": digest,
        "battles": f"{account}, {battles.n_unscored} without usable scores, "
        f"{battles.n_repeated} equal to an earlier row in the columns that were read",
        "outcomes": battles.outcomes,
        **{name: str(value) for name, value in asdict(settings).items() if name != "methods"},
        "methods": ", ".join(settings.methods) or "all",
        "versions": ", ".join(f"{name} {version(name)}" for name in packages),
    }


def _require_writable(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out, prefix=".judgeline-"):
            pass
    except OSError as error:
        raise ValueError(
            f"cannot write into {out} ({error.strerror or error}); name another folder with --out"
        ) from error


def _write_together(out: Path, writers: Mapping[str, Callable[[Path], object]]) -> dict[str, Path]:
    """Write every file under a passing name first, so that a failure changes nothing."""
    parts = {name: out / f".{os.getpid()}.{name}" for name in writers}
    try:
        for name, write in writers.items():
            write(parts[name])
        for name, part in parts.items():
            part.replace(out / name)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
    return {name: out / name for name in writers}
