"""`judgeline judges` and `judgeline corpora`: list, add and remove configured entries.

What belongs here: options, help and lists. The files are written by `resources.config.local`.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgeline.cli import EXIT_CODES, examples, option
from judgeline.terminal import open_console, plain

if TYPE_CHECKING:
    from resources.config.entries import EntryKind

SlugArgument = Annotated[str, typer.Argument(metavar="SLUG", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    option(
        "A setting, in YAML; a.b=1 sets b under a. Repeat for more. It takes the place of the "
        "example's; without an example of that name the settings are the entry.",
        "--set",
        metavar="KEY=VALUE",
    ),
]
_LISTED = {
    "judges": ("slug", "display_name", "kind", "family", "asks"),
    "corpora": ("slug", "display_name", "reader", "location", "judges"),
}


def _kind(plural: str) -> "EntryKind[Any]":
    kind: EntryKind[Any] = import_module(f"resources.config.{plural}").KIND
    return kind


def _cell(entry: Any, name: str) -> str:
    value = getattr(entry, name)
    if name == "judges" and value is None:
        return "(each run decides)"
    if value is None or (name == "asks" and entry.kind == "recorded"):
        return "-"
    return value if isinstance(value, str) else ", ".join(value)


def _group(what: str, plural: str) -> typer.Typer:
    """Return the group of commands about one kind of entries, with its list and `remove`."""
    group = typer.Typer(
        help=f"List the configured {plural}, add one or remove one of your own.",
        rich_markup_mode="rich",
    )

    @group.callback(invoke_without_command=True)
    def _list(context: typer.Context) -> None:
        from judgeline.terminal import plain_table

        if context.invoked_subcommand is not None:
            return
        kind, fields = _kind(plural), _LISTED[plural]
        known, columns = kind.load(), [name.removeprefix("display_") for name in fields]
        rows = [[_cell(entry, name) for name in fields] for entry in known.values()]
        open_console().print(plain_table(plural.capitalize(), columns, rows))
        others = ", ".join(sorted(kind.examples().keys() - known))
        _say(f"Yours stand in {plain(kind.own_file)}.")
        _say(f"To add: judgeline {plural} add SLUG. Examples: {plain(others)}")

    @group.command(
        epilog=EXIT_CODES,
        help=f"Take a {what} out of config/local/{plural}.yaml; tables and bought verdicts stay.",
    )
    def remove(slug: SlugArgument) -> None:
        from resources.config.local import remove_entry

        file = remove_entry(_kind(plural), slug)
        _say(f"{what.capitalize()} {plain(slug)} is out of {plain(file)}. Nothing was deleted.")

    return group


judges_app, corpora_app = _group("judge", "judges"), _group("corpus", "corpora")


@judges_app.command(
    "add",
    epilog=examples(
        "judges add gpt-4o-mini",
        "judges add strict --set kind=openai --set model=gpt-4o-mini-2024-07-18 --set "
        "api_key_env=OPENAI_API_KEY --set display_name=Strict --set family=gpt",
    ),
)
def add_judge(slug: SlugArgument, settings: SetOption = None) -> None:
    """Write a judge into config/local/judges.yaml, from an example or from settings.

    It is checked first; nobody is asked anything. Keys never stand in the file: 'api_key_env' names
    the environment variable that has one.
    """
    _add(_kind("judges"), slug, settings or ())
    if _kind("judges").load()[slug].kind in ("openai", "vllm"):
        _say(f"  judgeline run --corpus CORPUS --judge {slug} --dry-run    what it would cost")


@corpora_app.command(
    "add",
    epilog=examples(
        "corpora add lmarena-100k",
        "corpora add mine --set reader=battles --set location=data/mine.parquet",
    ),
)
def add_corpus(slug: SlugArgument, settings: SetOption = None) -> None:
    """Write a corpus into config/local/corpora.yaml, from an example or from settings.

    It is checked first, and not read yet. Judges that it names are added too, where there are
    examples of them.
    """
    kind, judges = _kind("corpora"), _kind("judges")
    _add(kind, slug, [_from_here(setting) for setting in settings or ()])
    named = kind.load()[slug].judges or ()
    for judge in sorted({*named} - {*judges.load()}):
        if judge in judges.examples():
            _add(judges, judge, ())
            continue
        _say(f"Judge {plain(judge)} is not configured yet: judgeline judges add {plain(judge)} ...")
    of_judge = "" if named else " --judge JUDGE"
    _say(f"  judgeline run --corpus {slug}{of_judge} --dry-run    what would be asked, its price")


def _from_here(setting: str) -> str:
    """Return a setting with the full path of a location that is in this folder alone.

    A relative location counts from the checkout.
    """
    from resources.config.paths import ROOT

    key, _, place = setting.partition("=")
    is_here = key == "location" and Path(place).exists() and not (ROOT / place).exists()
    return f"{key}={Path(place).resolve()}" if is_here else setting


def _add(kind: "EntryKind[Any]", slug: str, settings: Sequence[str]) -> None:
    from resources.config.local import add_entry

    file = add_entry(kind, slug, settings)
    _say(f"{kind.what.capitalize()} {plain(slug)} stands in {plain(file)}, yours to change.")


def _say(text: str) -> None:
    open_console().print(text, soft_wrap=True)
