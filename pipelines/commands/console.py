"""Console output of a run: a line per asset and check, a progress bar, and the outcome."""

import io
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import dagster as dg
from rich import progress
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.segment import Segments
from rich.text import Text

from assets.messages import news_in
from judgeline.judges.judge_plan import JudgePlan, told
from judgeline.options import COULD_NOT_RUN, GATE_FAILED, OK
from judgeline.report import inert
from judgeline.terminal import open_console, plain, printable

_Table = tuple[dg.AssetKey, str]
_BOARD_STANDS = "checks_of_leaderboard"  # the step after which a leaderboard holds
_PAUSE_S = 20.0  # between lines about one step, where no bar can move
_MARKS = {"done": "green", "ok": "dim", "warn": "yellow", "FAIL": "bold red"}


class RunReporter(logging.Handler):
    """Turns the events of runs into lines, of assets and checks if `verbose`, else of jobs."""

    def __init__(self, console: Console, *, verbose: bool = True) -> None:
        super().__init__()
        self._verbose = verbose
        self.wants_board = not verbose
        self._on_board: Callable[[], None] | None = None
        self._board: RenderableType | None = None
        self.outcome: RunOutcome | None = None
        self._passed: Counter[str] = Counter()
        self._last_line = time.monotonic()
        self._print_to(console)

    def _print_to(self, console: Console) -> None:
        self.console, self._progress = console, progress_bar(console)
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()
        follows = self.outcome is not None and self.outcome.ends_in_a_board
        if self._board is not None and not follows:
            self.console.print(self._board)

    @contextmanager
    def still(self) -> Iterator[None]:
        """Pause the progress bar in a block that forks: a thread that draws would hold locks."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def in_memory(self) -> io.StringIO:
        """Write to memory from now on, in a forked process; return the stream."""
        shown, memory, self.wants_board = self.console, io.StringIO(), False
        self._print_to(
            open_console(
                file=memory,
                width=shown.width,
                force_terminal=shown.is_terminal,
                no_color=shown.no_color,
                legacy_windows=False,
            )
        )
        return memory

    def repeat(self, printed: str) -> None:
        """Print the lines that were collected in memory."""
        self.console.print(Text.from_ansi(printed), soft_wrap=True, end="")

    def show_board(self, board: RenderableType, note: str = "") -> None:
        """Show a note and a board below the bar until the end; print them where no bar can move.

        At the end the board is printed, unless the final one follows by the run's `outcome`.
        """
        self.wants_board, shown = False, Group(plain(note), board)
        if self.console.is_terminal:
            self._board = board
            self._progress.board = Segments([*self.console.render(shown)])  # laid out once
        else:
            self.console.print(shown)

    def begin(self, title: str, n_steps: int, on_board: Callable[[], None] | None = None) -> None:
        """Announce a job on a partition; `on_board` is called when its leaderboard stands."""
        self._passed.clear()
        self._on_board = on_board
        self._began = time.monotonic()
        if self._verbose:
            self.console.print(f"[bold]{plain(title)}[/bold]")
        self._progress.reset(self._task, total=n_steps, description=plain(title))

    def end(self, title: str) -> None:
        """Print the number of tables made and checks passed of a job without lines of its own."""
        if self._verbose:
            return
        tables, checks, warned = (self._passed[mark] for mark in ("done", "ok", "warn"))
        seconds = time.monotonic() - self._began
        counts = f"{tables:>3} tables made, {checks:>3} checks passed, {seconds:>4.0f} s"
        more = f", {warned} warned" if warned else ""
        self.console.print(f"[bold]{plain(title):<32}[/bold]{counts}{more}")

    def line(self, mark: str, text: str, detail: str | None = None) -> None:
        """Print a marked line, `detail` below it; the mark is one of done, ok, warn and FAIL."""
        self._passed[mark] += 1
        if mark != "FAIL" and not self._verbose:
            return
        marked(self.console, mark, _MARKS[mark], text)
        if detail:
            seen = Text(inert(detail), style="dim")
            if is_short := mark == "ok" and self.console.is_terminal:  # what fits one line
                seen.no_wrap, seen.overflow = True, "ellipsis"
            self.console.print(Padding(seen, (0, 0, 0, 7), expand=is_short))

    def logger(self) -> dg.LoggerDefinition:
        """Return the Dagster logger that feeds this reporter."""

        def console(_: dg.InitLoggerContext) -> logging.Logger:
            log = logging.Logger("judgeline.run", level=logging.DEBUG)
            log.addHandler(self)
            return log

        return dg.LoggerDefinition(console, description="One line per asset and check.")

    def emit(self, record: logging.LogRecord) -> None:
        """Report an event or a message of Dagster's log."""
        metadata = getattr(record, "dagster_meta", {})
        if (event := metadata.get("dagster_event")) is not None:
            self.event(event)
        else:
            self.message(metadata.get("orig_message", record.getMessage()), record.levelno)

    def event(self, event: dg.DagsterEvent) -> None:
        """Print a line for an event of a table, check or failure; other events print nothing."""
        step = (event.step_key or "").replace("__", ".")
        if event.is_step_start:
            self._progress.update(self._task, description=printable(step))
        elif event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            found = event.asset_check_evaluation_data
            gate = found.severity == dg.AssetCheckSeverity.ERROR
            mark = "ok" if found.passed else "FAIL" if gate else "warn"
            name = f"{found.asset_key.to_user_string()}: {found.check_name}".replace("_", " ")
            if found.passed:
                self.line(mark, name, found.description)
            else:  # `print_outcome` has the reason
                self.line(mark, f"{name}; the reason is at the end")
        elif event.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
            self._materialization(event.step_materialization_data.materialization)
        elif event.is_step_failure and error_name(event) not in (BLOCKED, INTERRUPTED):
            self.line("FAIL", step)
        if event.is_step_success or event.is_step_failure or event.is_step_skipped:
            self._progress.advance(self._task)
        if event.is_step_success and event.step_key == _BOARD_STANDS and self._on_board:
            self._on_board()

    def message(self, text: str, level: int = logging.INFO) -> None:
        """Show how far a long step is, beside the progress bar; a warning on a line of its own."""
        if not (news := news_in(text)):
            return
        if level >= logging.WARNING:
            said(self.console, f"  warn {news}")
            return
        self._progress.update(self._task, description=printable(news))
        if not self.console.is_terminal and time.monotonic() - self._last_line >= _PAUSE_S:
            self._last_line = time.monotonic()
            said(self.console, f"  ...  {news}")

    def _materialization(self, made: dg.AssetMaterialization) -> None:
        rows, kept = map(made.metadata.get, ("dagster/partition_row_count", "kept"))
        count = f" ({rows.value:,} row{'' if rows.value == 1 else 's'})" if rows else ""
        name = made.asset_key.to_user_string()
        self.line("done", f"{name}{count}", str(kept.value) if kept else None)


class _Bar(progress.Progress):
    """A progress bar above a board, where there is one."""

    board: RenderableType | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, and the board below it: a low terminal cuts off its last ranks."""
        yield from super().get_renderables()
        if self.board is not None:
            yield self.board


def progress_bar(console: Console) -> _Bar:
    """Return the bar below the lines, which is gone at the end; none where nobody looks."""
    return _Bar(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=24),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


BLOCKED, INTERRUPTED = "DagsterAssetCheckFailedError", "DagsterExecutionInterruptedError"
"""Errors of a step that a blocking check stopped, which says why, or a signal to the process."""


def error_name(event: dg.DagsterEvent) -> str | None:
    """Return the class of the error that a step failed with."""
    error = event.step_failure_data.error
    return error.cls_name if error is not None else None


def cause(event: dg.DagsterEvent) -> str:
    """Return why a step failed, in one paragraph: the error that Dagster's own ones wrap."""
    failure = event.step_failure_data
    error = failure.error
    if error is None:
        return "failed without saying why; its log in the UI has more"
    while error.cause is not None and (error.cls_name or "").startswith("Dagster"):
        error = error.cause
    if failure.user_failure_data and failure.user_failure_data.description:
        return " ".join(failure.user_failure_data.description.split())
    kind = rf"^(?:\w+\.)*{re.escape(error.cls_name)}: " if error.cls_name else "^"
    return re.sub(kind, "", " ".join(error.message.split()))


def errors_of(failures: Iterable[dg.DagsterEvent], partition: str) -> list[str]:
    """Return why steps of a partition failed, but for those that a blocking check stopped."""
    stated = [event for event in failures if error_name(event) != BLOCKED]
    return [f"{event.step_key} of {partition}: {cause(event)}" for event in stated]


def marked(console: Console, mark: str, style: str, text: str) -> None:
    """Print a line with a mark before it."""
    console.print(f"  [{style}]{mark:<4}[/] {plain(text)}", soft_wrap=True)


def said(console: Console, text: str) -> None:
    """Print a text from outside as one line, as it is."""
    console.print(plain(text), soft_wrap=True)


class FailedCheck(NamedTuple):
    """A quality check that did not pass; a gate stops what follows, a warning does not."""

    asset: str
    check: str
    partition: str
    is_gate: bool
    description: str


def failed_check(found: dg.AssetCheckEvaluation, partition: str) -> FailedCheck:
    """Return a failed check with its observation and remedy."""
    asset, is_gate = found.asset_key.to_user_string(), found.severity == dg.AssetCheckSeverity.ERROR
    return FailedCheck(asset, found.check_name, partition, is_gate, found.description or "")


@dataclass
class RunOutcome:
    """Outcome of runs of the lineage of a corpus; of a dry run, `n_battles` and `plan`.

    A dry run of ratings of single answers has `n_texts` in place of battles.

    `judges` are those asked for, or that the corpus implies; `errors` say why something could not
    run, one paragraph each; `report` is the one that this run wrote. The tables of assets in
    `there` can be read; those in `made`, with their partitions, were made now, and those in
    `up_to_date` before.
    """

    corpus: str
    judges: tuple[str, ...] = ()
    failed_checks: list[FailedCheck] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    report: Path | None = None
    n_battles: int | None = None
    n_texts: int | None = None
    plan: tuple[JudgePlan, ...] = ()
    there: set[dg.AssetKey] = field(default_factory=set)
    made: set[_Table] = field(default_factory=set)
    up_to_date: set[_Table] = field(default_factory=set)

    @property
    def intention(self) -> str:
        """What a dry run would do, in words; empty for any other run."""
        if self.n_texts is not None:
            return f"Would learn from {self.n_texts:,} rated texts of {self.corpus}."
        if self.n_battles is not None:
            return f"Would judge {self.n_battles:,} battles of {self.corpus}:"
        return ""

    @property
    def ends_in_a_board(self) -> bool:
        """Whether a run that is not `verbose` prints the final board of its report."""
        return self.report is not None and bool(self.made) and not self.errors

    @property
    def exit_code(self) -> int:
        """Exit code: 1 if there are errors, else 2 if a gate failed, else 0."""
        failed = GATE_FAILED if any(check.is_gate for check in self.failed_checks) else OK
        return COULD_NOT_RUN if self.errors else failed

    def add(self, other: "RunOutcome") -> None:
        """Add the results of further jobs; those make no report."""
        self.failed_checks += other.failed_checks
        self.errors += other.errors
        self.there |= other.there
        self.made |= other.made
        self.up_to_date |= other.up_to_date


def print_plan(plan: Iterable[JudgePlan], console: Console) -> None:
    """Print the plan of each judge's calls."""
    for step in plan:
        calls, *details = told(step)
        said(console, "\n    ".join([f"  {calls}", *details]))


def print_outcome(outcome: RunOutcome, console: Console) -> None:
    """Print the outcome of a run: its plan, or every failure with its cause."""
    if outcome.intention:
        said(console, outcome.intention)
    print_plan(outcome.plan, console)
    for check in outcome.failed_checks:
        kind, style = ("Gate", "bold red") if check.is_gate else ("Warning", "yellow")
        name = f"{check.check.replace('_', ' ')} ({check.asset}, {check.partition})"
        console.print(f"\n[{style}]{kind}[/{style}]: {plain(name)}")
        description = Text(inert(check.description))
        if console.is_terminal:
            console.print(Padding(description, (0, 0, 0, 2)))
        else:
            console.print(Text("  ") + description, soft_wrap=True)
    for error in outcome.errors:
        console.print(f"\n[bold red]Could not run[/bold red]: {plain(error)}")
    if n := len(outcome.up_to_date - outcome.made):
        tables = "1 table is" if n == 1 else f"{n} tables are"
        end = f"{tables} up to date. Nothing was made; judgeline run --force makes them again."
        if outcome.made:
            end = f"{len(outcome.made)} made; {tables} up to date."
        console.print(f"\n{end}", soft_wrap=True)
    if outcome.report is not None:
        said(console, f"\nReport: {outcome.report.absolute().as_uri()}")
