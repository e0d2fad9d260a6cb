"""`judgeline candidates`: what a new model has to answer, and what becomes of its file."""

from pathlib import Path
from typing import Annotated

import typer

from judgeline.cli import GATE_FAILED
from judgeline.terminal import open_console, plain

candidates_app = typer.Typer(
    help="New models: which questions to answer, and what becomes of the file of answers.",
    rich_markup_mode="rich",
    no_args_is_help=True,
)

CorpusOption = Annotated[
    str, typer.Option(help="Slug of a corpus; `judgeline corpora` lists them.", show_default=False)
]


@candidates_app.command(
    epilog="[bold]Example[/bold]\n\n"
    "  judgeline candidates questions --corpus arena --out questions.jsonl"
)
def questions(
    corpus: CorpusOption,
    out: Annotated[Path, typer.Option(help="A new file, .jsonl or .parquet.", show_default=False)],
    n: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many; by default as many as a candidate has battles at most.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write the questions that a new model should answer: question_id, instruction, language.

    Those that most models with votes answered, in the corpus' mix of languages. Add a column
    `completion` and drop the file into the candidates folder.
    """
    from pipelines.commands.candidates import write_questions

    n_written, n_there = write_questions(corpus, out, n, force=force)
    open_console().print(
        f"{n_written:,} of {n_there:,} questions are in {plain(out)}", soft_wrap=True
    )


@candidates_app.command(
    epilog="[bold]Example[/bold]\n\n  judgeline candidates check answers.jsonl --corpus arena\n\n"
    "[bold]Exit codes[/bold]  0 it would be taken · 1 could not run · 2 it would be set aside"
)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    corpus: CorpusOption,
) -> None:
    """Say what would become of FILE in the candidates folder; nothing is run or asked."""
    from pipelines.commands.candidates import check_file

    told = check_file(file, corpus)
    console = open_console()
    for line in told.lines:
        console.print(plain(line), highlight=False, soft_wrap=True)
    if not told.is_taken:
        raise typer.Exit(GATE_FAILED)


@candidates_app.command("list")
def list_candidates(corpus: CorpusOption) -> None:
    """List the candidate files of a corpus: what became of each, its battles and its rating."""
    from judgeline.terminal import plain_table
    from pipelines.commands.candidates import candidate_rows, list_notes, where

    console = open_console()
    columns = ("file", "model", "state", "battles", "rating")
    console.print(plain_table(f"Candidates of {corpus}", columns, candidate_rows(corpus)))
    for note in list_notes(corpus):
        console.print(f"[bold red]{plain(note)}[/]", highlight=False, soft_wrap=True)
    console.print(f"Drop files into {plain(where(corpus))}", soft_wrap=True)
