"""The command that answers where a rating comes from."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from judgeline.terminal import open_console

_MOST = 50


class WhyFormat(StrEnum):
    """What `why` prints: for people in a terminal, for programs, or for a page."""

    table = "table"
    json = "json"
    md = "md"


def why(
    model: Annotated[
        str, typer.Argument(help="Name on the leaderboard, or of a candidate.", show_default=False)
    ],
    corpus: Annotated[str, typer.Option(help="Slug of a corpus.", show_default=False)],
    judge: Annotated[
        str, typer.Option(help="Slug of a judge, or 'pooled', all together.", show_default=False)
    ],
    top: Annotated[int, typer.Option(min=0, max=_MOST, help="Battles each way.")] = 5,
    method: Annotated[
        str | None,
        typer.Option(
            help="Such as hard or human; by default the one that ranks.", show_default=False
        ),
    ] = None,
    style: Annotated[WhyFormat, typer.Option("--format", help="How to print it.")] = (
        WhyFormat.table
    ),
    full_text: Annotated[
        bool, typer.Option("--full-text", help="Show texts and answers whole.")
    ] = False,
) -> None:
    """Say where a rating comes from: interval, slope, battles, verdicts, prompt, judge and runs.

    Battles are those that move the rating most, with what the rating would lose without each.
    """
    from pipelines.commands.why import explain_rating
    from pipelines.commands.why_shown import lines_of, markdown_of, show_why

    found = explain_rating(model, corpus, judge, top=top, method=method)
    if style is WhyFormat.json:
        print(json.dumps(found.as_record(), indent=1, allow_nan=False))  # noqa: T201
        return
    lines = lines_of(found, full_text=full_text)
    if style is WhyFormat.md:
        print(markdown_of(lines), end="")  # noqa: T201
        return
    show_why(open_console(), lines)


EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "  judgeline why some-model --corpus arena --judge careful\n\n"
    "  judgeline why some-model --corpus arena --judge careful --top 1 --full-text --format md"
)
