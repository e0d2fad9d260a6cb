"""`judgeline judges` and `judgeline corpora`: list what is configured, add to it, remove from it.

What belongs here: options, help and lists. The files are written by `resources.config.local`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgeline.cli import EXIT_CODES
from judgeline.terminal import open_console, plain

if TYPE_CHECKING:
    from resources.config.corpora import CorpusDefinition
    from resources.config.entries import EntryKind

judges_app = typer.Typer(
    help="List the configured judges, add one or remove one of your own.", rich_markup_mode="rich"
)
corpora_app = typer.Typer(
    help="List the configured corpora, add one or remove one of your own.", rich_markup_mode="rich"
)
SlugArgument = Annotated[str, typer.Argument(metavar="SLUG", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting, in YAML; a.b=1 sets b under a. Repeat for more. It takes the place of the "
        "example's; without an example of that name the settings are the entry.",
        show_default=False,
    ),
]


@judges_app.callback(invoke_without_command=True)
def _judges(context: typer.Context) -> None:
    from resources.config.judges import KIND

    if context.invoked_subcommand is None:
        rows = [
            (
                j.slug,
                j.display_name,
                j.kind,
                j.family,
                "-" if j.kind == "recorded" else ", ".join(j.asks),
            )
            for j in KIND.load(None).values()
        ]
        _list(KIND, ("slug", "name", "kind", "family", "asks"), rows)


@corpora_app.callback(invoke_without_command=True)
def _corpora(context: typer.Context) -> None:
    from resources.config.corpora import KIND

    if context.invoked_subcommand is None:
        rows = [
            (c.slug, c.display_name, c.reader, c.location or "-", _judges_of(c))
            for c in KIND.load(None).values()
        ]
        _list(KIND, ("slug", "name", "reader", "location", "judges"), rows)


@judges_app.command(
    "add",
    epilog="[bold]Examples[/bold]\n\n"
    "  judgeline judges add gpt-4o-mini\n\n"
    "  judgeline judges add strict --set kind=openai --set model=gpt-4o-mini-2024-07-18 "
    "--set api_key_env=OPENAI_API_KEY --set display_name=Strict --set family=gpt\n\n" + EXIT_CODES,
)
def add_judge(slug: SlugArgument, settings: SetOption = None) -> None:
    """Write a judge into config/local/judges.yaml, from an example or from settings.

    It is checked first; nobody is asked anything. Keys never stand in the file: 'api_key_env' names
    the environment variable that has one.
    """
    from resources.config.judges import KIND

    _add(KIND, slug, settings or ())
    if KIND.load(None)[slug].kind in ("openai", "vllm"):
        _say(f"  judgeline run --corpus CORPUS --judge {slug} --dry-run    what it would cost")


@corpora_app.command(
    "add",
    epilog="[bold]Examples[/bold]\n\n"
    "  judgeline corpora add lmarena-100k\n\n"
    "  judgeline corpora add mine --set reader=battles --set location=data/mine.parquet\n\n"
    + EXIT_CODES,
)
def add_corpus(slug: SlugArgument, settings: SetOption = None) -> None:
    """Write a corpus into config/local/corpora.yaml, from an example or from settings.

    It is checked first, and not read yet. Judges that it names are added too, where there are
    examples of them.
    """
    from resources.config.corpora import KIND
    from resources.config.judges import KIND as JUDGES

    _add(KIND, slug, settings or ())
    judges = KIND.load(None)[slug].judges
    missing = {*(judges or ())} - {*JUDGES.load(None)}
    for judge in sorted(missing & JUDGES.examples().keys()):
        _add(JUDGES, judge, ())
    for judge in sorted(missing - JUDGES.examples().keys()):
        _say(f"Judge {plain(judge)} is not configured yet: judgeline judges add {plain(judge)} ...")
    of_judge = "" if judges else " --judge JUDGE"
    _say(f"  judgeline run --corpus {slug}{of_judge} --dry-run    what would be asked, its price")


@judges_app.command("remove", epilog=EXIT_CODES)
def remove_judge(slug: SlugArgument) -> None:
    """Take a judge out of config/local/judges.yaml; tables and bought verdicts stay."""
    from resources.config.judges import KIND

    _remove(KIND, slug)


@corpora_app.command("remove", epilog=EXIT_CODES)
def remove_corpus(slug: SlugArgument) -> None:
    """Take a corpus out of config/local/corpora.yaml; tables and bought verdicts stay."""
    from resources.config.corpora import KIND

    _remove(KIND, slug)


def _add(kind: "EntryKind", slug: str, settings: Sequence[str]) -> None:
    from resources.config.local import add_entry

    file = add_entry(kind, slug, settings)
    _say(f"{kind.what.capitalize()} {plain(slug)} stands in {plain(file)}, yours to change.")


def _remove(kind: "EntryKind", slug: str) -> None:
    from resources.config.local import remove_entry

    file = remove_entry(kind, slug)
    _say(f"{kind.what.capitalize()} {plain(slug)} is out of {plain(file)}. Nothing was deleted.")


def _judges_of(definition: "CorpusDefinition") -> str:
    return "(each run decides)" if definition.judges is None else ", ".join(definition.judges)


def _list(kind: "EntryKind", columns: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    from judgeline.terminal import plain_table

    open_console().print(plain_table(kind.plural.capitalize(), columns, rows))
    others = ", ".join(sorted(kind.examples().keys() - {row[0] for row in rows}))
    _say(f"Yours stand in {plain(kind.own_file)}.")
    _say(f"To add: judgeline {kind.plural} add SLUG. Examples: {plain(others)}")


def _say(text: str) -> None:
    open_console().print(text, soft_wrap=True)
