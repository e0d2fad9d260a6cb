"""What a file of battles is, what it supports, and what is missing for more."""

import math
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judgeline.elo import code_battles, fit_beta_folds, require_connected
from judgeline.io import LAYOUTS, MissingColumnsError, as_coded, as_numbers, file_columns
from judgeline.usable import QualityGateError, readable, require_usable

OF_PROGRAMS = ("alpaca-eval", "arena-hard", "mt-bench")
"""Layouts of verdicts that `judgeline verdicts import` reads, in a checkout."""
_VOTES_ALONE = (
    "votes of people without verdicts of a judge",
    "nothing to rate models by yet: these votes have no judge",
    "Verdicts of a judge on the same battles: score_difference, judge_score_a and judge_score_b, "
    "judge_winner or verdict. A checkout of judgeline asks a judge for them (docs/judges.md).",
)
_VERDICTS_ALONE = (
    "verdicts of a judge without votes of people",
    "without a vote, nothing says how far the judge's scale is from that of people",
    "Votes of people on some of the battles: human_outcome (1, 0.5, 0) or winner.",
)


class Diagnosis(NamedTuple):
    """What `doctor` found in a file or table.

    `gate` says why the judge's ratings cannot be put on the human scale, empty where they can.
    `judge_connected` and `people_connected` tell whether a chain of battles, or of voted battles,
    ties all models; `missing` has a sentence for each thing that more would need, `next` the one
    command to run now.
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
    next: str


def doctor(
    battles: pd.DataFrame | Path | str,
    *,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
    miscoverage: float = 0.1,
) -> Diagnosis:
    """Say what a file or table of judged battles is and supports, without rating it.

    Parameters
    ----------
    battles, judge, outcomes, columns
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
    source = battles if isinstance(battles, pd.DataFrame) else Path(battles)
    name = "a table" if isinstance(source, pd.DataFrame) else str(source)
    layout = _layout(source) if isinstance(source, Path) else ""
    if layout in OF_PROGRAMS:
        return _half_file(name, layout, frozenset())
    try:
        read = readable(source, judge, outcomes, columns, allow_quarantine=True)
    except MissingColumnsError as error:
        if not layout and error.missing not in ({"human_outcome"}, {"score_difference"}):
            raise
        return _half_file(name, layout, error.missing)
    scored = read.scored
    voted = scored[scored["human_outcome"].notna()]
    people = {*voted["model_a"], *voted["model_b"]}
    models = {*scored["model_a"], *scored["model_b"]}
    apart, people_apart = _apart(scored), _apart(voted) if len(voted) else "nobody voted"
    gate = apart or _gate(scored)
    n_others = math.ceil(1 / miscoverage - 1 - 1e-9)
    n_counted = int(as_coded(scored, "derived").voted_models().sum())
    n_lacking = n_others + 1 - n_counted
    has_orders = bool(scored[["difference_ab", "difference_ba"]].notna().all(axis=1).any())
    supports = [
        (not apart, "ratings of all models by the judge alone"),
        (bool(people) and not people_apart, "ratings of the voted models by people"),
        (not gate, "ratings on the human scale"),
        (not gate and n_lacking <= 0, f"finite {1 - miscoverage:.0%} intervals"),
        (has_orders, "position bias of the judge"),
    ]
    missing = [
        (bool(apart), f"{apart}."),
        (bool(gate) and not apart, f"Human scale: {gate}."),
        (bool(people and people_apart), f"Votes do not tie their models: {people_apart}."),
        (
            n_lacking > 0,
            f"Finite intervals: {n_others} others calibrate that of a voted model, and {n_counted} "
            f"models have votes that count; add votes on {n_lacking} more.",
        ),
        (
            len(read.quarantine) > 0,
            f"{len(read.quarantine)} of {read.n_rows} rows cannot be used, such as: "
            f"{''.join(read.quarantine['detail'].head(1))}.",
        ),
        (
            not has_orders,
            "Position bias: judge both orders, and add difference_ab and difference_ba.",
        ),
    ]
    return Diagnosis(
        source=name,
        layout=read.plain or "battles with scores of a judge",
        judge=read.judge,
        n_battles=len(scored),
        n_models=len(models),
        n_votes=len(voted),
        n_voted_models=len(people),
        n_quarantined=len(read.quarantine),
        judge_connected=not apart,
        people_connected=not people_apart,
        gate=gate,
        supports=[what for is_there, what in supports if is_there],
        missing=[what for is_lacking, what in missing if is_lacking],
        next=_command("doctor" if gate else "rank", name, judge, outcomes, columns),
    )


def _command(
    verb: str,
    name: str,
    judge: str | None = None,
    outcomes: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> str:
    """Return the command line that reads a file as it was read here."""
    pairs = ",".join(f"{ours}={own}" for ours, own in (columns or {}).items())
    options = {"judge": judge, "outcomes": outcomes, "columns": pairs}
    if verb == "rank":
        options = {"out": "ratings", **options}
    stated = (f"--{option} {shlex.quote(value)}" for option, value in options.items() if value)
    return " ".join([f"judgeline {verb} {shlex.quote(name)}", *stated])


def _layout(path: Path) -> str:
    """Return the published layout of a file that has no verdict of ours; empty for any other."""
    columns = set(file_columns(path)) if path.is_file() else set()
    ours = ("battles", "softelo-annotations")
    fitting = [
        name
        for name, layouts in LAYOUTS.items()
        if name not in ours and any(set(needed.split()) <= columns for needed in layouts)
    ]
    return fitting[0] if fitting else ""


def _half_file(name: str, layout: str, missing: Collection[str]) -> Diagnosis:
    """Return what is said of a file that `rank` cannot rate: what it is, why, what it lacks."""
    supports: list[str] = []
    command = _command("doctor", name)
    if layout in OF_PROGRAMS:
        command = f"judgeline verdicts import {shlex.quote(name)} --format {layout} --out DIR"
        supports = ["import into the lineage"]
        what, gate, lacks = (
            f"verdicts of another program ({layout})",
            "verdicts of another program are rated by the lineage, in a checkout",
            "Votes of people, which such files do not have.",
        )
    elif missing == {"human_outcome"}:
        what, gate, lacks = _VERDICTS_ALONE
    else:
        what, gate, lacks = _VOTES_ALONE
        name = f"{name} ({layout})" if layout else name
    counts = ("", 0, 0, 0, 0, 0, False, False)
    return Diagnosis(name, what, *counts, gate, supports, [lacks], command)


def _apart(battles: pd.DataFrame) -> str:
    """Return which models have no chain of battles to the others; empty if all have one."""
    outcome = as_numbers(battles["judge_outcome"])
    sides, score = (battles["model_a"], battles["model_b"]), battles["score_difference"]
    votes = as_numbers(battles["human_outcome"])
    try:
        require_connected(
            code_battles(*sides, human_outcome=votes, judge_outcome=outcome, score_difference=score)
        )
    except ValueError as error:
        return str(error)
    return ""


def _gate(scored: pd.DataFrame) -> str:
    """Return why a judge's scores cannot be put on the human scale; empty if they can."""
    try:
        require_usable(scored, fit_beta_folds(as_coded(scored, "derived")))
    except (QualityGateError, ValueError) as error:
        return str(error)
    return ""
