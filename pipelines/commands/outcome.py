"""Outcome of a run of the lineage, and its text."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from judgeline.cli import COULD_NOT_RUN, GATE_FAILED, OK
from judgeline.report import inert
from judgeline.terminal import plain
from resources.judges.judge_plan import JudgePlan, told


@dataclass(frozen=True)
class FailedCheck:
    """A quality check that did not pass; a gate stops what follows, a warning does not."""

    asset: str
    check: str
    partition: str
    is_gate: bool
    description: str


@dataclass(frozen=True)
class RunOutcome:
    """Outcome of a run of the lineage.

    Attributes
    ----------
    exit_code : int
        0 ok, 1 could not run, 2 a quality gate failed.
    corpus : str
        Slug of the corpus.
    judges : tuple of str
        Slugs of the judges that were asked for, or that the corpus implies.
    failed_checks : tuple of FailedCheck
        Gates and warnings, in the order in which they failed.
    errors : tuple of str
        Why something could not run, one paragraph each.
    report : Path or None
        The report that this run wrote.
    n_battles : int or None
        Of a dry run: battles that would be judged.
    plan : tuple of JudgePlan
        Of a dry run: what each judge would be asked.
    n_made, n_up_to_date : int
        Tables that this run made, and that it found as they have to be.
    """

    exit_code: int
    corpus: str
    judges: tuple[str, ...] = ()
    failed_checks: tuple[FailedCheck, ...] = ()
    errors: tuple[str, ...] = ()
    report: Path | None = None
    n_battles: int | None = None
    plan: tuple[JudgePlan, ...] = ()
    n_made: int = 0
    n_up_to_date: int = 0


def exit_code(failed_checks: Iterable[FailedCheck], errors: Iterable[str]) -> int:
    """Return 1 if anything could not run, else 2 if a gate failed, else 0."""
    if any(True for _ in errors):
        return COULD_NOT_RUN
    return GATE_FAILED if any(check.is_gate for check in failed_checks) else OK


def print_outcome(outcome: RunOutcome, console: Console) -> None:
    """Print what a person needs at the end: the plan, or every failure with its cause."""
    if outcome.n_battles is not None:
        console.print(f"Would judge {outcome.n_battles:,} battles of {plain(outcome.corpus)}:")
    for step in outcome.plan:
        calls, *details = told(step)
        console.print(f"  {plain(calls)}", highlight=False, soft_wrap=True)
        for detail in details:
            console.print(f"    {plain(detail)}", highlight=False, soft_wrap=True)
    for check in outcome.failed_checks:
        kind, style = ("Gate", "bold red") if check.is_gate else ("Warning", "yellow")
        name = f"{check.check.replace('_', ' ')} ({check.asset}, {check.partition})"
        console.print(f"\n[{style}]{kind}[/{style}]: {plain(name)}", highlight=False)
        _print_indented(check.description, console)
    for error in outcome.errors:
        console.print(f"\n[bold red]Could not run[/bold red]: {plain(error)}", highlight=False)
    if outcome.n_up_to_date:
        console.print(f"\n{_up_to_date(outcome)}", highlight=False, soft_wrap=True)
    if outcome.report is not None:
        console.print(f"\nReport: {plain(outcome.report)}", highlight=False, soft_wrap=True)


def _up_to_date(outcome: RunOutcome) -> str:
    tables = "1 table is" if outcome.n_up_to_date == 1 else f"{outcome.n_up_to_date} tables are"
    if outcome.n_made:
        return f"{outcome.n_made} made; {tables} up to date."
    return f"{tables} up to date. Nothing was made; judgeline run --force makes them again."


def _print_indented(text: str, console: Console) -> None:
    if console.is_terminal:
        console.print(Padding(Text(inert(text)), (0, 0, 0, 2)))
    else:
        console.print(Text(inert(f"  {text}")), soft_wrap=True)
