"""Ratings of verdicts or votes as they are, and a judge held to gold labels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judgeline.elo import Ties
from judgeline.io import COUNT, ArgumentError, JudgedBattles, MissingColumnsError, plain_ratings
from judgeline.io.failures import parse_missing
from judgeline.io.labelled import Labelled, read_labelled
from judgeline.io.layout import VOTES
from judgeline.io.layouts import layout_at
from judgeline.reliability.labels import kappa_of_labels, rank_correlation, share_of
from judgeline.usable import readable, table_or_path

WHOSE = {
    "judge": "by the judge's verdicts as they are: its own scale, of which nothing here says how "
    "far it is from people's",
    "people": "by people's votes as they are",
}
"""What plain ratings are by, a sentence each."""


class Plain(NamedTuple):
    """Battles as they were read, and their plain ratings."""

    battles: JudgedBattles
    ratings: pd.DataFrame


def plain(
    battles: pd.DataFrame | Path | str,
    *,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    allow_quarantine: bool = False,
    ties: Ties = "half",
    miscoverage: float = 0.1,
    missing: Any = None,
    same_names: bool = False,
) -> pd.DataFrame:
    """Rate models by verdicts or votes as they are: Bradley-Terry over all battles.

    Nothing is calibrated: ratings by the judge are on its own scale. Verdicts need no votes and
    votes no verdicts; of a file with both, each has ratings of its own.

    Parameters
    ----------
    battles, judge, outcomes, columns, allow_quarantine, missing, same_names
        As for `rank`.
    ties : {"half", "davidson"}
        A tie is half a win, or an outcome of its own with one more parameter.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    DataFrame
        A row per `source` (people, judge) and model, best first: ``rating``, ``std_error``,
        ``lower`` and ``upper`` in Elo points, 1500 the mean of the models of a ``component``.

    Raises
    ------
    ValueError
        If the battles cannot be read.
    QualityGateError
        If most rows cannot be used.
    """
    named = {"judge": judge, "outcomes": outcomes, "columns": columns}
    told = {"allow_quarantine": allow_quarantine, "missing": missing, "same_names": same_names}
    read = read_plain(battles, **named, **told)
    return rate_plain(read, ties=ties, miscoverage=miscoverage)


def read_plain(source: pd.DataFrame | Path | str, **named: Any) -> JudgedBattles:
    """Return battles with verdicts, votes or both; arguments are those of `readable`."""
    try:
        return readable(source, **named, with_votes=False)
    except MissingColumnsError as error:
        layout = layout_at(source) if isinstance(source := table_or_path(source), Path) else None
        if error.missing != {"score_difference"} and not (layout and layout.advice is VOTES):
            raise
    is_published = layout is not None and layout.advice is VOTES  # which count those left out
    lenient = is_published or named["allow_quarantine"]
    votes = {**named, "judge": None, "allow_quarantine": lenient}
    read = readable(source, **votes, with_votes=False, votes_alone=True)
    return read._replace(judge="", scored=read.scored.assign(judge_outcome=float("nan")))


def rate_plain(
    read: JudgedBattles, *, ties: Ties = "half", miscoverage: float = 0.1
) -> pd.DataFrame:
    """Return the plain ratings of battles; probabilities of a win count as they are."""
    scored = read.scored.drop(columns=["language", "category"], errors="ignore")
    scored = scored.assign(language=None, category=None)
    scored = with_shares(scored) if read.judge else scored
    ratings, _ = plain_ratings(scored, ties=ties, miscoverage=miscoverage)
    if ratings.empty:
        raise ArgumentError("no battle has a verdict or a vote", "")
    names = ["source", "model", "rating", "lower", "upper", "std_error", "n_battles", "component"]
    return ratings[names].reset_index(drop=True)


def with_shares(scored: pd.DataFrame) -> pd.DataFrame:
    """Return battles with a judge's probabilities of a win in place of its outcomes, if any."""
    if COUNT in scored:
        return scored
    share = scored["recorded_outcome"].astype(float)
    is_soft = share.notna().all() and not (4 * share).isin(range(5)).all()
    return scored.assign(judge_outcome=share) if is_soft else scored


def agreement(
    answers: pd.DataFrame | Path | str,
    *,
    columns: Mapping[str, str] | None = None,
    outcomes: str | None = None,
    miscoverage: float = 0.1,
    missing: Any = None,
) -> pd.DataFrame:
    """Measure a judge by gold labels of pairs or of single answers; no model is rated.

    Parameters
    ----------
    answers : DataFrame, Path or str
        A row per pair or answer: ``label``, what is right, and ``verdict``, the judge's, in the
        same codes or as marks; ``verdict_swapped`` where the second answer was shown first, with A
        for the answer shown first; or ``chosen_score`` and ``rejected_score``.
    columns, outcomes, missing
        As for `rank`.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    DataFrame
        A ``measure`` per row with ``value``, ``lower``, ``upper`` and ``n``. Verdicts that failed
        are left out and counted as ``failed``. Where both orders are there, a verdict that they
        contradict is a tie.

    Raises
    ------
    ValueError
        If there are no labels, or labels and verdicts have other codes.
    """
    source = table_or_path(answers)
    read = read_labelled(
        source, columns=columns or {}, outcomes=outcomes, missing=parse_missing(missing)
    )
    rows = _marks(read, miscoverage) if read.are_marks else _classes(read.table, miscoverage)
    return pd.DataFrame(rows, columns=["measure", "value", "lower", "upper", "n"])


_OTHER = {"A": "B", "B": "A", "tie": "tie"}


def _marks(read: Labelled, miscoverage: float) -> list[tuple[Any, ...]]:
    """Return the correlation of marks and how often they are equal."""
    if "verdict" not in read.table:
        raise ArgumentError(
            "the labels are marks: name the judge's with columns={'verdict': 'NAME'}", "columns"
        )
    both = read.table.dropna()
    n, label, verdict = len(both), both["label"], both["verdict"]
    equal = int(label.eq(verdict).sum())
    return [
        ("rank correlation", *rank_correlation(label, verdict, miscoverage=miscoverage), n),
        ("equal marks", *share_of(equal, n, miscoverage=miscoverage), n),
        _failed(read.table, miscoverage),
    ]


def _failed(table: pd.DataFrame, miscoverage: float) -> tuple[Any, ...]:
    n = int(table.isna().any(axis=1).sum())
    return ("failed verdicts", *share_of(n, len(table), miscoverage=miscoverage), len(table))


def _classes(table: pd.DataFrame, miscoverage: float) -> list[tuple[Any, ...]]:
    """Return agreement and kappa of classes, and what a judge of one answer alone would reach."""

    def share(name: str, hits: pd.Series) -> tuple[Any, ...]:
        """Return the row of a share of answers, with its interval."""
        return (name, *share_of(int(hits.sum()), len(hits), miscoverage=miscoverage), len(hits))

    usual = table["label"].mode().iloc[0]
    rows = [share(f"always {usual}", table["label"].eq(usual))]
    if "verdict" not in table:
        return rows
    both = table.dropna()
    label, verdict = both["label"], both["verdict"]
    others = []
    if "verdict_swapped" in both:
        back = both["verdict_swapped"].map(lambda one: _OTHER.get(one, one))
        shown = pd.concat([verdict, both["verdict_swapped"]])
        others.append(share("first shown preferred", shown[shown.ne("tie")].eq("A")))
        others.append(share("both orders agree", verdict.eq(back)))
        verdict = verdict.where(verdict.eq(back), "tie")
    if not len(both):
        return [*rows, _failed(table, miscoverage)]
    kappa = kappa_of_labels(label.astype(str), verdict.astype(str), miscoverage=miscoverage)
    rows += [share("agreement", label.eq(verdict)), ("kappa", *kappa, len(both))]
    return [*rows, *others, _failed(table, miscoverage)]
