"""Diagnosis of a file or table of battles: its counts, abilities, gaps and oddities."""

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judgeline.diagnostics import diagnose_biases
from judgeline.elo import fit_beta_folds, require_connected
from judgeline.intervals import leading_evidence_text, least_miscoverage, models_needed
from judgeline.io import (
    LENGTHS,
    ORDERS,
    JudgedBattles,
    MissingColumnsError,
    as_coded,
    as_numbers,
    n_battles_of,
)
from judgeline.io.layout import RATED, VERDICTS, VOTES, Layout
from judgeline.io.layouts import layout_at
from judgeline.io.voters import agreement, numbers_of
from judgeline.suggest import QualityGateError
from judgeline.usable import (
    call_text,
    printable,
    readable,
    require_usable,
    table_or_path,
)

NOBODY = "nobody voted"
_USEFUL = 0.65  # share of decided battles that a weak but useful judge agrees with people on
_BIASES = {
    "position_first_preferred": "the judge prefers the response shown first in {share:.0%} of "
    "{n:,} presentations that it decided.",
    "verbosity_longer_preferred": "the judge prefers the longer response in {share:.0%} of {n:,} "
    "near ties.",
}


class Diagnosis(NamedTuple):
    """Counts of a file or table of battles, and sentences on the analyses that it supports.

    `gate` says why the judge's ratings cannot be put on the human scale, empty where they can.
    `judge_connected` and `people_connected` tell whether a chain of battles, or of voted battles,
    ties all models. `supports`, `missing` (for more) and `concerns` (what looks wrong) hold a
    sentence each; `next` is the one command, or call, to run now.
    """

    source: str
    layout: str
    judge: str
    n_battles: int
    n_models: int
    n_votes: int
    n_voted_models: int
    n_quarantined: int
    judge_connected: bool
    people_connected: bool
    gate: str
    supports: list[str]
    missing: list[str]
    concerns: list[str]
    next: str

    def lines(self) -> list[tuple[str, str]]:
        """Return the diagnosis as titles and sentences, in the order of reading."""
        counts = (
            f"{self.n_battles:,} battles of {self.n_models} models, judged by {self.judge}; "
            f"{self.n_votes:,} votes on {self.n_voted_models} models"
        )
        is_again = self.next.startswith(("judgeline doctor", "judgeline.doctor"))
        return [
            ("", f"{self.source}: {self.layout}"),
            *([("", counts)] if self.judge else []),
            *(("Supports", sentence) for sentence in self.supports),
            *(("Look at", sentence) for sentence in self.concerns),
            *(("Missing", sentence) for sentence in self.missing),
            ("When that is mended" if is_again else "Next", self.next),
        ]

    def __repr__(self) -> str:
        """Return the diagnosis as `judgeline doctor` prints it."""
        return "\n".join(printable(": ".join(filter(None, line))) for line in self.lines())


def doctor(
    battles: pd.DataFrame | Path | str,
    *,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    miscoverage: float = 0.1,
    missing: Any = None,
    same_names: bool = False,
) -> Diagnosis:
    """Return a diagnosis of a file or table of judged battles, without rating any model.

    Parameters
    ----------
    battles, judge, outcomes, columns, missing, same_names
        As for `rank`.
    miscoverage : float
        Share of misses that intervals may have, in (0, 1).

    Returns
    -------
    Diagnosis
        Counts, what can be had of the battles, and what is missing for more.

    Raises
    ------
    ValueError
        If the battles cannot be read; the message says what to do.
    QualityGateError
        If most rows cannot be used.
    """
    if not 0 < miscoverage < 1:
        raise ValueError(f"miscoverage is {miscoverage:g}; it lies between 0 and 1")
    source = table_or_path(battles)
    name = "a table" if isinstance(source, pd.DataFrame) else str(source)
    layout = layout_at(source) if isinstance(source, Path) else None
    advice = layout and layout.advice
    if advice in (VERDICTS, RATED):
        return _advised(name, layout)
    try:
        lenient = {"allow_quarantine": True, "with_votes": False, "counted": True}
        told = {"missing": missing, "same_names": same_names}
        read = readable(source, judge, outcomes, columns, **lenient, **told)
    except MissingColumnsError as error:
        if not advice and error.missing != {"score_difference"}:
            raise
        return _advised(name, layout)
    scored = read.scored
    voted = scored[scored["human_outcome"].notna()]
    apart, people_apart = _apart(scored), _apart(voted) if len(voted) else NOBODY
    gate = apart
    try:
        require_usable(scored, fit_beta_folds(as_coded(scored, "derived")))
    except (QualityGateError, ValueError) as error:
        gate = apart or str(error)
    n_counted = int(as_coded(scored, "derived").voted_models().sum())
    supports, missing = _abilities(read, apart, people_apart, gate, n_counted, miscoverage)
    is_alone = people_apart == NOBODY and not read.is_counted  # a judge that is rated by itself
    verb = "rank" if not gate else "reference_ratings" if is_alone else "doctor"
    return Diagnosis(
        source=name,
        layout=read.plain or "battles with scores of a judge",
        judge=read.judge,
        n_battles=read.n_battles,
        n_models=len({*scored["model_a"], *scored["model_b"]}),
        n_votes=n_battles_of(voted),
        n_voted_models=len({*voted["model_a"], *voted["model_b"]}),
        n_quarantined=read.n_quarantined,
        judge_connected=not apart,
        people_connected=not people_apart,
        gate=gate,
        supports=supports,
        missing=missing,
        concerns=_concerns(read),
        next=call_text(verb, source, judge, outcomes, columns, **told),
    )


def _abilities(
    read: JudgedBattles,
    apart: str,
    people_apart: str,
    gate: str,
    n_counted: int,
    miscoverage: float,
) -> tuple[list[str], list[str]]:
    """Return the analyses that battles support, and data missing for others, a sentence each."""
    has_votes = people_apart != NOBODY
    is_single = not read.is_counted
    orders = read.scored.filter([*ORDERS])
    has_orders = is_single and bool(orders.notna().all(axis=1).any())
    n_lacking = models_needed(miscoverage) - n_counted
    wider = least_miscoverage(n_counted)
    finite_now = f"; {1 - wider:.0%} is finite now (miscoverage {wider:g})" if wider < 1 else ""
    leads = leading_evidence_text(n_counted, miscoverage)
    supports = [
        (
            is_single and not apart,
            "ratings of all models by the judge alone (judgeline.reference_ratings)",
        ),
        (not people_apart, "ratings of the voted models by people"),
        (not gate, "ratings on the human scale"),
        (not gate and n_lacking <= 0, f"finite {1 - miscoverage:.0%} intervals"),
        (
            is_single and has_votes,
            "win rates of models in the eyes of people (judgeline.win_rates)",
        ),
        (has_orders, "position bias of the judge"),
    ]
    missing = [
        (bool(apart), f"{apart}."),
        (bool(gate) and not apart and has_votes, f"Human scale: {gate}."),
        (
            not has_votes,
            "Human scale: votes of people on some of the battles, as human_outcome (1, 0.5, 0) or "
            "winner.",
        ),
        (has_votes and bool(people_apart), f"Votes do not tie their models: {people_apart}."),
        (
            n_lacking > 0,
            f"Finite intervals of the judge: {models_needed(miscoverage)} models with votes that "
            f"count calibrate them, and there are {n_counted}; add votes on {n_lacking} more"
            f"{finite_now}.{leads and ' '}{leads}",
        ),
        (
            is_single and not has_orders,
            "Position bias: judge both orders, and add difference_ab and difference_ba.",
        ),
    ]
    return [text for holds, text in supports if holds], [text for holds, text in missing if holds]


def _concerns(read: JudgedBattles) -> list[str]:
    """Return a sentence on each oddity of battles; a share is one beyond what chance explains."""
    scored, bad = read.scored, read.quarantine
    score, human, each = numbers_of(scored)
    n_decided, agreed = agreement(score, human, each)
    found = [f"{note}." for note in read.notes]
    if len(bad):
        found.append(
            f"{read.n_quarantined} of {read.n_rows} rows cannot be used, such as: "
            f"{bad['detail'].iloc[0]}."
        )
    found += [read.repeats] if read.repeats else []
    if n_decided and not _differs(agreed, n_decided):
        few = _reach(n_decided) > _USEFUL - agreed
        found.append(
            f"the judge prefers what people prefer in {agreed:.0%} of {n_decided:,} decided "
            f"battles{', too few to tell from chance' if few else ', no better than chance'}."
        )
    names = () if read.is_counted else (*ORDERS, *LENGTHS)
    columns: dict[str, Any] = {name: as_numbers(scored[name]) for name in names}
    biases = diagnose_biases(score, **columns)
    for name, share, n in zip(biases.diagnostic, biases.value, biases.n, strict=True):
        if name in _BIASES and _differs(share, int(n)):
            found.append(_BIASES[name].format(share=share, n=n))
    return found


def _differs(share: float, n: int) -> bool:
    """Return whether a share of n battles differs from one half, by a test at 5 %."""
    return abs(share - 0.5) > _reach(n)


def _reach(n: int) -> float:
    """Return half the width of the 95 % interval of a share of n battles that is one half."""
    return 1.96 * 0.5 / math.sqrt(n)


def _advised(name: str, layout: Layout | None) -> Diagnosis:
    """Return the diagnosis of a file of votes alone, or of another program's verdicts."""
    advice, told = (layout and layout.advice) or VOTES, layout.name if layout else ""
    holds = advice.holds.format(layout=told)
    command = advice.command.format(file=shlex.quote(name), layout=told)
    if layout and layout.advice is VOTES:
        name = f"{name} ({told})"
    counts = ("", 0, 0, 0, 0, 0, False, False)
    lacks, supports = [advice.lacks], list(advice.supports)
    return Diagnosis(name, holds, *counts, advice.gate, supports, lacks, [], command)


def _apart(battles: pd.DataFrame) -> str:
    """Return a sentence on models without a chain of battles to the others; empty if none is."""
    try:
        require_connected(as_coded(battles, "derived", every_vote=True))
    except ValueError as error:
        return str(error)
    return ""
