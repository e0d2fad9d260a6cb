"""The commands of the lineage, which join the command line of the library by an entry point.

What belongs here: options and help. Anything heavy is imported by the command that needs it, so
that `--help` answers at once.
"""

import json
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from judgeline.options import EXIT_CODES, GATE_FAILED, examples, option
from judgeline.terminal import complain, open_console, plain
from pipelines.commands.file_commands import (
    BudgetOption,
    CorpusOption,
    DryRunOption,
    ForceOption,
    Text,
    Texts,
    candidates_app,
    corpora_app,
    judges_app,
    of,
    of_corpus,
    of_judge,
    verdicts_app,
)

app = typer.Typer(
    help="  judgeline run --corpus arena                 the whole chain on the built-in arena\n\n"
    "  judgeline leaderboard --corpus arena         what came out\n\n"
    "  judgeline ui                                 every step in a browser"
)
"""Commands that join those of the library."""


Failure = StrEnum(
    "Failure",
    "refusal content_filter context_overflow truncated parse_error echo tool_call other_model "
    "rejected unreadable_reply",
)
"""Failures that are asked for again only on request."""


@app.command(
    epilog=examples(
        "run --corpus arena",
        "run --corpus arena --judge careful --select 'leaderboard+' --dry-run",
        "run --corpus mine --judge gpt-4o-mini --budget 20USD",
    )
)
def run(
    corpus: CorpusOption,
    judge: Annotated[
        Texts,
        of_judge(
            "Slug of a judge; repeat for more. All that make sense for the corpus by default."
        ),
    ] = None,
    select: Annotated[
        Texts,
        option(
            "Only this asset, or a selection such as 'scored_battles+'; repeat for more.",
            metavar="ASSETS",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    budget: BudgetOption = None,
    retry: Annotated[
        list[Failure] | None,
        option(
            "Ask again where a judge failed like this; repeat for more. Answers lost on the "
            "way are always asked for again; those cut short, unreadable or an echo, once."
        ),
    ] = None,
    force: Annotated[
        bool,
        option("Make every table again, changed or not; stored answers are reused.", "--force"),
    ] = False,
    verbose: Annotated[
        bool, option("Print a line per table and check.", "--verbose", "-v")
    ] = False,
) -> None:
    """Make the tables of a corpus, in this process, with progress; those up to date stay.

    A table is made again if its code, its inputs or its settings have changed. Needs no server;
    everything it leaves is visible in `judgeline ui`. Exits with 2 when a blocking quality check
    fails: what depends on the failed asset is then not made.
    """
    from pipelines.instance.homes import compute_in_one_thread

    compute_in_one_thread()
    from judgeline.judges.budget import Budget
    from pipelines.commands.plan import require_covered
    from pipelines.commands.run import run_lineage
    from resources.stores import StoredVerdicts

    console = open_console()
    lineage = partial(
        run_lineage,
        corpus=corpus,
        judges=judge or None,
        select=select or None,
        verdict_store=StoredVerdicts(retry_also=list(retry or ())),
        console=console,
    )
    cap = Budget.parse(budget) if budget else None
    if cap:
        plan = lineage(dry_run=True, force=force)
        if plan.exit_code:
            raise typer.Exit(plan.exit_code)
        require_covered(plan.plan, cap)
        if dry_run:
            stops = any(step.cut_short for step in plan.plan)
            but = ", but candidates.budget stops the run before" if stops else ""
            console.print(f"The budget of {cap} covers what is expected{but}.", soft_wrap=True)
            return
    done = lineage(dry_run=dry_run, budget=cap, force=force, verbose=verbose)
    raise typer.Exit(done.exit_code)


@app.command(
    epilog=examples(
        "leaderboard --corpus arena",
        "leaderboard --corpus arena --judge careful --format csv > ratings.csv",
        then="In CSV a text that begins like a formula has an apostrophe before it. "
        'In JSON an infinite bound is the text "inf" or "-inf".\n\n' + EXIT_CODES,
    )
)
def leaderboard(
    corpus: CorpusOption,
    judge: Annotated[
        Text,
        of_judge(
            "Slug of a judge, or 'pooled', all together; all that have a leaderboard by default."
        ),
    ] = None,
    style: Annotated[
        Literal["table", "csv", "json", "md"],
        option("A table to read, or something to process.", "--format", show_default=True),
    ] = "table",
) -> None:
    """Print the leaderboards that `judgeline run` made of a corpus."""
    from judgeline.paths import home
    from judgeline.terminal import machine_readable, show_leaderboard
    from pipelines.commands.leaderboards import (
        stored_changes,
        stored_evidence,
        stored_leaderboards,
    )

    boards, definition = stored_leaderboards(corpus, judge)
    what, is_simulated = definition.display_name, definition.reader == "arena"
    if is_simulated and "simulat" not in what.lower():
        what = f"{what} (simulation)"
    if style != "table":
        if is_simulated:
            complain("Note", f"these are ratings of the {what}", style="yellow")
        sys.stdout.write(machine_readable(boards, style))
        return
    console = open_console()
    for name, board in boards.groupby("judge", sort=False):
        title = f"{plain(what)}, judged by {plain(name)}, in Elo"
        show_leaderboard(console, board, title, *stored_evidence(corpus, str(name)))
        if changed := stored_changes(corpus, str(name)):
            console.print(f"[yellow]Note[/]: {plain(changed)}", soft_wrap=True)
    if (report := home() / "reports" / f"{corpus}.html").exists():
        console.print(f"Report: {plain(report.absolute().as_uri())}", soft_wrap=True)


@app.command(
    epilog=examples(
        "why some-model --corpus arena --judge careful",
        "why some-model --corpus arena --judge careful --top 1 --full-text --format md",
    )
)
def why(
    model: Annotated[
        str, typer.Argument(help="Name on the leaderboard, or of a candidate.", show_default=False)
    ],
    corpus: CorpusOption,
    judge: Annotated[str, of_judge("Slug of a judge, or 'pooled', all together.")],
    top: Annotated[int, option("Battles each way.", min=0, max=50, show_default=True)] = 5,
    method: Annotated[Text, option("Such as hard or human; by default the one that ranks.")] = None,
    style: Annotated[
        Literal["table", "json", "md"], option("How to print it.", "--format", show_default=True)
    ] = "table",
    full_text: Annotated[bool, option("Show texts and answers whole.", "--full-text")] = False,
) -> None:
    """Say where a rating comes from: interval, slope, battles, verdicts, prompt, judge and runs.

    Battles are those that move the rating most, with what the rating would lose without each.
    """
    from pipelines.commands.why import explain_rating
    from pipelines.commands.why_shown import lines_of, markdown_of, show_why

    found = explain_rating(model, corpus, judge, top=top, method=method)
    lines = lines_of(found, full_text=full_text)
    if style == "table":
        show_why(open_console(), lines)
    elif style == "md":
        sys.stdout.write(markdown_of(lines))
    else:
        typer.echo(json.dumps(found.as_record(), indent=1, allow_nan=False))


@app.command(
    epilog=examples("embed rated.csv --text reason --with hashed --out rated-embedded.parquet")
)
def embed(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    text: Annotated[str, option("Column of the texts, such as a judge's reasons.")],
    embedder: Annotated[
        str, of("embeddings", "Slug of config/embeddings.yaml or your own file of them.", "--with")
    ],
    out: Annotated[Path, option("A new file, .jsonl or .parquet.")],
    force: ForceOption = False,
) -> None:
    """Write FILE with a vector of each text in the column embedding, for quantitative judges.

    `judgeline.learn_ratings` and `judgeline.learn_judge` learn from it. A vector that was made by a
    served model is kept, and never bought twice.
    """
    from pipelines.commands.embed import embed_file

    console = open_console()
    say = partial(console.print, soft_wrap=True)
    account, size = embed_file(
        file, text, embedder, out, lambda line: say(plain(line)), force=force
    )
    say(
        f"{account.n_texts:,} different texts: {account.n_made:,} vectors of {size} numbers made "
        f"now, {account.n_stored:,} from the store"
    )
    for why, n_failed in sorted(account.failed.items()):
        say(f"{n_failed:,} have no vector: {plain(why)}")
    say(f"{plain(out)} has them in the column embedding")


@app.command(epilog=examples("checks --corpus arena --out arena-checks"))
def checks(
    corpus: CorpusOption,
    out: Annotated[
        Path, option("Folder to write to; the project is made in it.", show_default=False)
    ],
) -> None:
    """Write the checks of a corpus's tables as a project of Great Expectations.

    DIR/gx/expectations has a suite for each table and judge, as its JSON; the data docs beside say
    how the stored tables do. Pages hold counts and ranges, and no texts of the tables; their styles
    and scripts come from the network when a browser opens them. Exits with 2 where a table breaks a
    check that does more than warn.
    """
    from judgeline.suggest import unknown_name
    from resources.config.corpora import load_corpora
    from resources.tables.documents import write_documents
    from resources.tables.store import open_store

    if corpus not in (known := load_corpora()):
        raise ValueError(unknown_name("corpus", corpus, known, "corpora.yaml"))
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; name a folder with --out")
    console, found = open_console(), []
    for suite in write_documents(out, open_store(), corpus):
        found.append(suite)
        said = f"not met: {'; '.join(suite.failed)}" if suite.failed else "all met"
        console.print(plain(f"{suite.suite}: {suite.n_expectations} expectations, {said}"))
    if not found:
        raise ValueError(
            f"corpus {corpus!r} has no stored tables; make them: judgeline run --corpus {corpus}"
        )
    page = out / "gx" / "uncommitted" / "data_docs" / "local_site" / "index.html"
    n_failed = sum(bool(suite.failed) for suite in found)
    console.print(f"{len(found)} suites, {n_failed} not met: {plain(page.absolute().as_uri())}")
    if any(suite.is_broken for suite in found):
        raise typer.Exit(GATE_FAILED)


@app.command(
    epilog=examples(
        "backfill --judge gpt-4o-mini --budget 20USD",
        "backfill --judge strict --corpus arena --yes --here",
    )
)
def backfill(
    judge: Annotated[Texts, of_judge("Slug of a judge; repeat for more.")] = None,
    corpus: Annotated[
        Texts,
        of_corpus(
            "Slug of a corpus; repeat for more. By default all that were read and that the "
            "judge can judge."
        ),
    ] = None,
    budget: BudgetOption = None,
    yes: Annotated[bool, option("Do not ask for confirmation.", "--yes", "-y")] = False,
    dry_run: DryRunOption = False,
    here: Annotated[
        bool, option("Do the work in this process; needs no daemon.", "--here")
    ] = False,
    wait: Annotated[
        bool,
        option("Follow it to its end, or leave it running.", "--wait/--no-wait", show_default=True),
    ] = True,
    cancel: Annotated[Text, option("End a backfill that runs.", metavar="ID")] = None,
) -> None:
    """Have judges judge corpora that were read before; other judges' tables stay untouched.

    States calls, tokens and price first, and asks. The work is done by the daemon that
    `judgeline ui` starts: this command only follows it, and can be left with Ctrl-C. New models
    are not part of it: a sensor places them afterwards.
    """
    from pipelines.commands import backfill as work
    from pipelines.instance.homes import open_instance

    if cancel is not None:
        with open_instance() as instance:
            work.cancel(instance, cancel)
        open_console().print("The daemon ends it and its runs. What was bought is kept.")
        return
    if not judge:
        raise ValueError("name a judge: judgeline backfill --judge SLUG; `judgeline judges` lists")
    asked = (judge, corpus or (), budget or (), open_console())
    raise typer.Exit(work.run_backfill(*asked, yes=yes, dry_run=dry_run, here=here, wait=wait))


@app.command(epilog=examples("forget --judge strict --dry-run", "forget --corpus mine --yes"))
def forget(
    judge: Annotated[Text, of_judge("Slug of a judge.")] = None,
    corpus: Annotated[Text, of_corpus("Slug of a corpus.")] = None,
    model: Annotated[Text, option("Name of a model, as battles have it.")] = None,
    yes: Annotated[bool, option("Do not ask for confirmation.", "--yes", "-y")] = False,
    dry_run: Annotated[
        bool, option("Say what would be deleted, and delete nothing.", "--dry-run")
    ] = False,
) -> None:
    """Delete what is stored of a judge, a corpus or a model: tables, bought answers, runs.

    What was bought is gone: asking again costs again. Files of candidates, files of votes and
    config/ stay.
    """
    from pipelines.commands.forget import forget as forget_for_good

    asked = {"judge": judge, "corpus": corpus, "model": model}
    named = [(kind, name) for kind, name in asked.items() if name]
    if len(named) != 1:
        raise ValueError("name one thing to forget: --judge SLUG, --corpus SLUG or --model NAME")
    forget_for_good(open_console(), *named[0], yes=yes, dry_run=dry_run)


@app.command()
def ui(
    port: Annotated[int, option("Port on 127.0.0.1.", min=1, max=65535, show_default=True)] = 3000,
) -> None:
    """Open the lineage, its checks and its runs in a browser: Dagster's UI over the same home.

    There is no login, so it listens on 127.0.0.1 only and nothing else is offered, and pages of
    other sites are refused; to reach it from another machine, forward the port over ssh. Stop it
    with Ctrl-C. JUDGELINE_WEBHOOK, an address, is told of failed gates, drift, placed candidates
    and spent budgets meanwhile.
    """
    from pipelines.commands.ui import serve

    raise typer.Exit(serve(port, open_console()))


app.add_typer(verdicts_app, name="verdicts")
app.add_typer(candidates_app, name="candidates")
app.add_typer(judges_app, name="judges")
app.add_typer(corpora_app, name="corpora")
