"""The front door: one command line for ranking files, running the lineage and looking at both.

What belongs here: options, help, exit codes. Anything heavy is imported by the command that
needs it, so that `--help` answers at once and `rank` never loads the orchestrator.
"""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.commands.backfill_command import register_backfill
from pipelines.commands.candidate_commands import candidates_app
from pipelines.commands.interrupts import heed_interrupts
from pipelines.commands.terminal import open_console, plain, silence
from pipelines.commands.why_command import EPILOG as WHY_EPILOG
from pipelines.commands.why_command import why

OK, COULD_NOT_RUN, GATE_FAILED, INTERRUPTED = 0, 1, 2, 130
_USAGE_ERROR = typer.BadParameter.__mro__[2]  # click's own base; typer may bring its own click
_EXIT_CODES = (
    "[bold]Exit codes[/bold]  0 ok · 1 could not run (the message says what to do) · "
    "2 a quality gate failed · 130 interrupted"
)

app = typer.Typer(
    name="judgeline",
    help="Judge verdicts in, ratings on the human Elo scale with honest intervals out.\n\n"
    "[bold]Start here[/bold]\n\n"
    "  judgeline rank battles.csv --out ratings     rate the models of one file\n\n"
    "  judgeline run --corpus arena                 the whole chain on the built-in arena\n\n"
    "  judgeline leaderboard --corpus arena         what came out\n\n"
    "  judgeline ui                                 every step in a browser",
    epilog=_EXIT_CODES,
    rich_markup_mode="rich",
    add_completion=False,
    pretty_exceptions_enable=False,
)


class HardOutcome(StrEnum):
    """Where a judge's hard outcome comes from."""

    derived = "derived"
    recorded = "recorded"


class StdError(StrEnum):
    """Which standard error scales the intervals."""

    analytic = "analytic"
    bootstrap = "bootstrap"


class Format(StrEnum):
    """How a leaderboard is printed."""

    table = "table"
    csv = "csv"
    json = "json"
    md = "md"


class Failure(StrEnum):
    """Failures that are asked for again only on request."""

    refusal = "refusal"
    content_filter = "content_filter"
    context_overflow = "context_overflow"
    truncated = "truncated"
    parse_error = "parse_error"
    echo = "echo"
    tool_call = "tool_call"
    other_model = "other_model"


class VerdictFormat(StrEnum):
    """Formats of verdicts that other programs read and write."""

    alpaca_eval = "alpaca-eval"
    arena_hard = "arena-hard"
    mt_bench = "mt-bench"
    soft_elo = "soft-elo"


verdicts_app = typer.Typer(
    help="Why a call would hit or miss the verdict store, and verdict files of other programs.",
    rich_markup_mode="rich",
    no_args_is_help=True,
)
app.add_typer(verdicts_app, name="verdicts")

CorpusOption = Annotated[
    str, typer.Option(help="Slug of a corpus; `judgeline corpora` lists them.", show_default=False)
]


@app.callback(invoke_without_command=True)
def _front_door(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.")
    ] = False,
) -> None:
    if show_version:
        from importlib.metadata import version

        typer.echo(f"judgeline {version('judgeline')}")
        raise typer.Exit(OK)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "  judgeline rank annotations.csv --out ratings\n\n"
    "  judgeline rank scored.parquet --out ratings --method soft --method hard\n\n"
    "  judgeline rank scored.jsonl --out ratings --std-error bootstrap\n\n"
    "  judgeline rank scored.csv --out ratings --outcomes 1/-1/0\n\n" + _EXIT_CODES
)
def rank(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="Folder for the results; made if missing.", show_default=False)
    ],
    l2: Annotated[float, typer.Option(min=0, help="Penalty on squared strengths.")] = 0.01,
    hard_outcome: Annotated[
        HardOutcome, typer.Option(help="Take hard outcomes from the scores or from the file.")
    ] = HardOutcome.derived,
    n_resamples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples per model and method; 0 for none.")
    ] = 200,
    miscoverage: Annotated[
        float, typer.Option(help="Tolerated share of misses; 0.1 asks for 90 % coverage.")
    ] = 0.1,
    n_splits: Annotated[
        int, typer.Option(min=1, help="Random splits on which coverage is measured.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of resamples and splits.")] = 0,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Method to write, such as soft or hard; repeat for more. All by default; the "
            "leaderboard ranks by auto where it is among them, else by the first.",
            show_default=False,
        ),
    ] = None,
    std_error: Annotated[
        StdError, typer.Option(help="Standard error that scales the intervals.")
    ] = StdError.analytic,
    judge: Annotated[
        str | None, typer.Option(help="Which judge, where the file holds several.")
    ] = None,
    outcomes: Annotated[
        str | None,
        typer.Option(
            help="Codes of outcomes, human and judge's: A's, then B's, then any of ties, such as "
            "1/-1/0, 1/2 or model_a/model_b/tie/both_bad; by default 1/0/0.5.",
            show_default=False,
        ),
    ] = None,
    allow_quarantine: Annotated[
        bool,
        typer.Option(
            "--allow-quarantine",
            help="Rate what is left where more than 2 % of the rows have an unknown outcome or a "
            "NaN score.",
        ),
    ] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html as well.")
    ] = True,
) -> None:
    """Rate the models of one file of judged battles; no server, no configuration.

    FILE is a CSV of released [bold]Soft-Elo annotations[/bold] (sample or full layout), or
    [bold]scored battles[/bold] as CSV, Parquet or JSON lines with the columns model_a, model_b,
    score_difference (judge score of A minus B), human_outcome (A's share of the win: 1, 0.5, 0,
    empty for no vote) and, if there is one, judge_outcome. In place of score_difference,
    judge_outcome or verdict (A, B, tie, or levels such as A>>B) is enough: a win then counts as
    a score difference of 1. Outcomes of another coding are refused until --outcomes states them.

    Writes heldout.csv, conformal.csv, summary.csv, leaderboard.csv, quarantine.csv and
    report.html; all of them, or none.
    """
    from pipelines.commands.rank import QualityGateError, RankSettings, rank_file
    from pipelines.commands.terminal import show_ranked

    settings = RankSettings(
        l2=l2,
        hard_outcome=hard_outcome.value,
        n_resamples=n_resamples,
        miscoverage=miscoverage,
        n_splits=n_splits,
        seed=seed,
        std_error=std_error.value,
        methods=tuple(method or ()),
    )
    try:
        ranked = rank_file(
            file,
            out,
            settings,
            judge=judge,
            report=report,
            outcomes=outcomes,
            allow_quarantine=allow_quarantine,
        )
    except QualityGateError as error:
        _complain("Quality gate failed", str(error))
        raise typer.Exit(GATE_FAILED) from error
    show_ranked(open_console(), ranked, file)
    if not report and (out / "report.html").exists():
        _complain("Note", f"{out / 'report.html'} is of an earlier run", style="yellow")


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "  judgeline run --corpus arena\n\n"
    "  judgeline run --corpus arena --judge careful --select 'leaderboard+' --dry-run\n\n"
    "  judgeline run --corpus lmarena-100k --judge gpt-4o-mini --budget 20USD\n\n" + _EXIT_CODES
)
def run(
    corpus: CorpusOption,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="Slug of a judge; repeat for more. All that make sense for the corpus by default.",
            show_default=False,
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ASSETS",
            help="Only this asset, or a selection such as 'scored_battles+'; repeat for more.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run and what it would cost; stop.")
    ] = False,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CAP",
            help="Hard cap on what the judges are asked: 5000calls, 2Mtokens or 12.50USD; repeat "
            "to cap several. What is stored costs nothing. Runs nothing if more is expected.",
            show_default=False,
        ),
    ] = None,
    retry: Annotated[
        list[Failure] | None,
        typer.Option(
            help="Ask again where a judge failed like this; repeat for more. Answers lost on the "
            "way are always asked for again; those cut short, unreadable or an echo, once.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Make every table again, changed or not; stored answers are reused."
        ),
    ] = False,
) -> None:
    """Make the tables of a corpus, in this process, with progress; those up to date stay.

    A table is made again if its code, its inputs or its settings have changed. Needs no server;
    everything it leaves is visible in `judgeline ui`. Exits with 2 when a blocking quality check
    fails: what depends on the failed asset is then not made.
    """
    from pipelines.commands.judge_plan import require_covered
    from pipelines.commands.run import run_lineage
    from resources.judges.budget import Budget
    from resources.store.resource import StoredVerdicts

    asked: dict[str, Any] = {
        "corpus": corpus,
        "judges": judge or None,
        "select": select or None,
        "verdict_store": StoredVerdicts(retry_also=list(retry or ())),
    }
    console = open_console()
    if budget:
        cap = Budget.parse(budget)
        plan = run_lineage(**asked, dry_run=True, console=console)
        if plan.exit_code:
            raise typer.Exit(plan.exit_code)
        require_covered(plan.plan, cap)
        if dry_run:
            told = f"The budget of {cap} covers what is expected"
            if any(step.cut_short for step in plan.plan):
                told += ", but candidates.budget stops the run before"
            console.print(f"{told}.", highlight=False, soft_wrap=True)
            raise typer.Exit(OK)
        asked["budget"] = cap
    outcome = run_lineage(**asked, dry_run=dry_run, console=console, force=force)
    raise typer.Exit(outcome.exit_code)


@app.command()
def judges() -> None:
    """List the configured judges."""
    from resources.config.judges import load_judges
    from resources.config.paths import config_dir

    rows = [
        (
            j.slug,
            j.display_name,
            j.kind,
            j.family,
            "-" if j.kind == "recorded" else ", ".join(j.asks),
        )
        for j in load_judges().values()
    ]
    columns = ("slug", "name", "kind", "family", "asks")
    _list("Judges", columns, rows, config_dir() / "judges.yaml")


@app.command()
def corpora() -> None:
    """List the configured corpora."""
    from resources.config.corpora import load_corpora
    from resources.config.paths import config_dir

    rows = [
        (c.slug, c.display_name, c.reader, c.location or "-", _judges_of(c))
        for c in load_corpora().values()
    ]
    columns = ("slug", "name", "reader", "location", "judges")
    _list("Corpora", columns, rows, config_dir() / "corpora.yaml")


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "  judgeline leaderboard --corpus arena\n\n"
    "  judgeline leaderboard --corpus arena --judge careful --format csv > ratings.csv\n\n"
    "In CSV a text that begins like a formula has an apostrophe before it. "
    'In JSON an infinite bound is the text "inf" or "-inf".\n\n' + _EXIT_CODES
)
def leaderboard(
    corpus: CorpusOption,
    judge: Annotated[
        str | None,
        typer.Option(
            help="Slug of a judge, or 'pooled', all together; all that have a leaderboard by "
            "default."
        ),
    ] = None,
    style: Annotated[
        Format, typer.Option("--format", help="A table to read, or something to process.")
    ] = Format.table,
) -> None:
    """Print the leaderboards that `judgeline run` made of a corpus."""
    from pipelines.commands.leaderboards import stored_leaderboards
    from pipelines.commands.terminal import machine_readable, show_leaderboard
    from resources.config.paths import home

    boards, definition = stored_leaderboards(corpus, judge)
    what = definition.display_name
    if definition.reader == "arena" and "simulat" not in what.lower():
        what = f"{what} (simulation)"
    if style is not Format.table:
        if definition.reader == "arena":
            _complain("Note", f"these are ratings of the {what}", style="yellow")
        sys.stdout.write(machine_readable(boards, style.value))
        return
    console = open_console()
    for name, board in boards.groupby("judge", sort=False):
        title = f"{plain(what)}, judged by {plain(name)}, in Elo"
        show_leaderboard(console, board, title, definition.rating.miscoverage)
    if (report := home() / "reports" / f"{corpus}.html").exists():
        console.print(f"Report: {plain(report)}", soft_wrap=True)


@verdicts_app.command(
    epilog="[bold]Example[/bold]\n\n"
    "  judgeline verdicts explain battle-17 --judge strict --corpus arena\n\n" + _EXIT_CODES
)
def explain(
    battle: Annotated[str, typer.Argument(metavar="BATTLE", show_default=False)],
    judge: Annotated[str, typer.Option(help="Slug of a judge.", show_default=False)],
    corpus: Annotated[
        str | None,
        typer.Option(help="Slug of the battle's corpus; by default the first that has it."),
    ] = None,
) -> None:
    """Say per order and replicate whether BATTLE would be asked again, and why; asks nothing.

    On a miss it names the parts of the call in which the nearest stored verdict differs.
    """
    from pipelines.commands.terminal import plain_table
    from pipelines.commands.verdicts import explain_battle

    where, rows = explain_battle(battle, judge, corpus)
    columns = ("order", "replicate", "store", "why")
    console = open_console()
    console.print(f"{plain(battle)} of {plain(where)}, judged by {plain(judge)}", soft_wrap=True)
    console.print(plain_table("", columns, rows))


FormatOption = Annotated[
    VerdictFormat, typer.Option("--format", help="Format of the file.", show_default=False)
]
BaselineOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Of arena-hard: the model that all others met. CATEGORY=NAME, repeated, where a "
        "file to import has several.",
        show_default=False,
    ),
]
FirstInOption = Annotated[
    int,
    typer.Option(
        min=1, max=2, help="Of arena-hard: the game that shows the baseline as assistant A."
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]


@verdicts_app.command(
    "import",
    epilog="[bold]Examples[/bold]\n\n"
    "  judgeline verdicts import annotations.json --format alpaca-eval --out alpaca\n\n"
    "  judgeline verdicts import some-model.jsonl --format arena-hard --baseline gpt-4-0314 "
    "--out hard\n\n" + _EXIT_CODES,
)
def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", show_default=False)],
    style: FormatOption,
    out: Annotated[
        Path, typer.Option(help="Folder for the tables; made if missing.", show_default=False)
    ],
    baseline: BaselineOption = None,
    baseline_first_in: FirstInOption = 1,
    force: ForceOption = False,
) -> None:
    """Convert verdicts of another program to battles.parquet and verdicts.parquet.

    A failed game stays a failed verdict, and a row that fits no rule goes to quarantine.csv.
    Prints what to add to the configuration.
    """
    from pipelines.commands.exchange import import_verdicts
    from pipelines.commands.terminal import show_imported

    imported = import_verdicts(
        files,
        style.value,
        out,
        baseline=baseline or (),
        baseline_first_in=baseline_first_in,
        force=force,
    )
    show_imported(open_console(), imported)


@verdicts_app.command(
    epilog="[bold]Example[/bold]\n\n"
    "  judgeline verdicts export --corpus arena --judge careful --format soft-elo "
    "--out careful.csv\n\n" + _EXIT_CODES
)
def export(
    corpus: CorpusOption,
    judge: Annotated[str, typer.Option(help="Slug of a judge.", show_default=False)],
    style: FormatOption,
    out: Annotated[Path, typer.Option(help="The file.", show_default=False)],
    baseline: BaselineOption = None,
    baseline_first_in: FirstInOption = 1,
    force: ForceOption = False,
) -> None:
    """Write a judge's stored verdicts in the format of another program; asks nothing.

    Says what the format cannot hold, and how often that happened.
    """
    from pipelines.commands.exchange import export_verdicts
    from pipelines.commands.terminal import show_exported

    account = export_verdicts(
        corpus,
        judge,
        style.value,
        out,
        baseline=baseline or (),
        baseline_first_in=baseline_first_in,
        force=force,
    )
    show_exported(open_console(), account, style.value, out)


@app.command(
    epilog="[bold]Example[/bold]\n\n"
    "  judgeline labels --corpus arena --judge careful\n\n" + _EXIT_CODES
)
def labels(
    corpus: CorpusOption,
    judge: Annotated[str, typer.Option(help="Slug of a judge.", show_default=False)],
) -> None:
    """Say how many more battles to label, and of which kind, for shorter win-rate intervals.

    Labels chosen by the judge's verdict must not enter adjusted win rates: they serve the
    conditional estimate.
    """
    from pipelines.commands.labels import plan_lines
    from pipelines.commands.terminal import plain_table

    rows = plan_lines(corpus, judge)
    if not rows:
        raise ValueError(f"corpus {corpus!r} has no votes: without some there is nothing to plan")
    open_console().print(plain_table("", ("of", "chosen by", "plan"), rows))


app.command(epilog=f"{WHY_EPILOG}\n\n{_EXIT_CODES}")(why)


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 3000,
) -> None:
    """Open the lineage, its checks and its runs in a browser: Dagster's UI over the same home.

    There is no login, so it listens on 127.0.0.1 only and nothing else is offered, and pages of
    other sites are refused; to reach it from another machine, forward the port over ssh. Stop it
    with Ctrl-C.
    """
    from pipelines.commands.ui import serve

    raise typer.Exit(serve(port, open_console()))


register_backfill(app)
app.add_typer(candidates_app, name="candidates")


def _judges_of(definition: Any) -> str:
    return "(each run decides)" if definition.judges is None else ", ".join(definition.judges)


def _list(title: str, columns: Sequence[str], rows: list[tuple[Any, ...]], source: Path) -> None:
    from pipelines.commands.terminal import plain_table

    console = open_console()
    console.print(plain_table(title, columns, rows))
    console.print(f"Edit them in {plain(source)}", soft_wrap=True)


def _complain(kind: str, message: str, *, style: str = "bold red") -> None:
    paragraph = " ".join(str(message).split())
    open_console(stderr=True).print(f"[{style}]{kind}:[/] {plain(paragraph)}", soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the program's name; that of this process by default.

    Returns
    -------
    int
        0 ok, 1 could not run, 2 a quality gate failed, 130 interrupted.
    """
    heed_interrupts()
    try:
        code = _answer(arguments)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as stop:
        if BrokenPipeError not in (type(stop), type(stop.__context__)):
            raise
        silence(sys.stdout)  # `| head`: nobody reads on; typer makes of it that it exits with 1
        return OK
    return code


def _answer(arguments: Sequence[str] | None) -> int:
    """Do what a command line asks for; say what is wrong with it, and return the exit code."""
    try:
        code = app(args=arguments, prog_name="judgeline", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        raise
    except _USAGE_ERROR as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "judgeline")
        _complain("Error", f"{error.format_message()} (see: {command} --help)")
        return COULD_NOT_RUN
    except ImportError as error:
        _complain("Error", f"{error}; install the application with: pip install -e '.[app]'")
        return COULD_NOT_RUN
    except (ValueError, RuntimeError, OSError) as error:
        _complain("Error", str(error) or type(error).__name__)
        return COULD_NOT_RUN
    if code == INTERRUPTED:  # some versions of typer return it, others raise Abort
        _complain("Interrupted", "files are complete or absent; run it again when you like")
    return code if isinstance(code, int) else OK
