"""`judgeline paper`, which joins the one command line in a checkout."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgeline.options import examples, option
from judgeline.terminal import open_console, plain

app = typer.Typer(
    help="  judgeline paper correct-reporting            a paper, with its printed values\n\n"
)

PaperName = Literal[
    "soft-elo", "correct-reporting", "reference-anchored", "trustjudge", "quantitative"
]


@app.command(
    epilog=examples(
        "paper soft-elo --data annotations --stream released",
        "paper soft-elo --data annotations --out tables",
        "paper correct-reporting --out tables",
    )
)
def paper(
    name: Annotated[PaperName, typer.Argument(metavar="NAME", show_default=False)],
    data: Annotated[
        Path | None,
        option("Folder with the data of the paper."),
    ] = None,
    out: Annotated[
        str | None, option("Folder for a CSV per table; made if missing.", metavar="<path>")
    ] = None,
    stream: Annotated[
        Literal["own", "released"],
        option("Random draws: ours, or those of the released program (soft-elo)."),
    ] = "own",
) -> None:
    """Make the tables and figures of a paper again, each cell beside its printed value.

    NAME is soft-elo, correct-reporting, reference-anchored, trustjudge or quantitative. A line per
    item says what it was made from, how many cells lie within tolerance and the largest
    difference, or which file would supply it. A CSV of an earlier run is replaced; that of an item
    that cannot be made is removed.
    """
    from papers.reproduce import reproduce
    from papers.tables import require_folder, write_table

    if out is not None and not out.strip():
        raise typer.BadParameter("'--out' is empty; name a folder, such as --out tables")
    folder = None if out is None else Path(out)
    if folder is not None:
        require_folder(folder)
    errors, console = open_console(stderr=True), open_console()
    for made in reproduce(name, data, say=lambda line: errors.print(plain(line)), stream=stream):
        console.print(plain(made.line), soft_wrap=True)
        if folder is not None:
            write_table(made, folder)
