"""The commands of the lineage, added to the command line of the library.

What belongs here: options and help. Anything heavy is imported by the command that needs it, so
that `--help` answers at once.
"""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from judgeline.cli import EXIT_CODES, OK, app, complain
from judgeline.terminal import open_console, plain
from pipelines.commands.backfill_command import register_backfill
from pipelines.commands.candidate_commands import candidates_app
from pipelines.commands.why_command import EPILOG as WHY_EPILOG
from pipelines.commands.why_command import why

app.info.help += (
    "  judgeline run --corpus arena                 the whole chain on the built-in arena\n\n"
    "  judgeline leaderboard --corpus arena         what came out\n\n"
    "  judgeline ui                                 every step in a browser"
)


class Format(StrEnum):
    """Format of a printed leaderboard."""

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


@app.command(
    epilog="[bold]Examples[/bold]\n\n"
    "  judgeline run --corpus arena\n\n"
    "  judgeline run --corpus arena --judge careful --select 'leaderboard+' --dry-run\n\n"
    "  judgeline run --corpus lmarena-100k --judge gpt-4o-mini --budget 20USD\n\n" + EXIT_CODES
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
    from pipelines.commands.plan import require_covered
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
    'In JSON an infinite bound is the text "inf" or "-inf".\n\n' + EXIT_CODES
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
    from judgeline.terminal import machine_readable, show_leaderboard
    from pipelines.commands.leaderboards import stored_leaderboards
    from resources.config.paths import home

    boards, definition = stored_leaderboards(corpus, judge)
    what = definition.display_name
    if definition.reader == "arena" and "simulat" not in what.lower():
        what = f"{what} (simulation)"
    if style is not Format.table:
        if definition.reader == "arena":
            complain("Note", f"these are ratings of the {what}", style="yellow")
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
    "  judgeline verdicts explain battle-17 --judge strict --corpus arena\n\n" + EXIT_CODES
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
    from judgeline.terminal import plain_table
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
    "--out hard\n\n" + EXIT_CODES,
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
    from pipelines.commands.exchange import import_verdicts, show_imported

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
    "--out careful.csv\n\n" + EXIT_CODES
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
    from pipelines.commands.exchange import export_verdicts, show_exported

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
    "  judgeline labels --corpus arena --judge careful\n\n" + EXIT_CODES
)
def labels(
    corpus: CorpusOption,
    judge: Annotated[str, typer.Option(help="Slug of a judge.", show_default=False)],
) -> None:
    """Say how many more battles to label, and of which kind, for shorter win-rate intervals.

    Labels chosen by the judge's verdict must not enter adjusted win rates: they serve the
    conditional estimate.
    """
    from judgeline.terminal import plain_table
    from pipelines.commands.leaderboards import plan_lines

    rows = plan_lines(corpus, judge)
    if not rows:
        raise ValueError(f"corpus {corpus!r} has no votes: without some there is nothing to plan")
    open_console().print(plain_table("", ("of", "chosen by", "plan"), rows))


app.command(epilog=f"{WHY_EPILOG}\n\n{EXIT_CODES}")(why)


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
    from judgeline.terminal import plain_table

    console = open_console()
    console.print(plain_table(title, columns, rows))
    console.print(f"Edit them in {plain(source)}", soft_wrap=True)
