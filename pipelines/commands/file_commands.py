"""Groups of commands: configured judges and corpora, files of verdicts and of candidates.

What belongs here: options and help. Anything heavy is imported by the command that needs it.
"""

import contextlib
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgeline.options import EXIT_CODES, GATE_FAILED, examples, option
from judgeline.terminal import open_console, plain

Text = str | None
Texts = list[str] | None


def of(plural: str, text: str, *names: str) -> Any:
    """Return an option that takes a judge, corpus or embedding, whose slug a shell completes."""

    def complete(incomplete: str) -> list[str]:
        with contextlib.suppress(ValueError, OSError):  # a configuration that cannot be read
            return [slug for slug in _kind(plural).load() if slug.startswith(incomplete)]
        return []

    return option(text, *names, autocompletion=complete)


of_judge, of_corpus = partial(of, "judges"), partial(of, "corpora")


CorpusOption = Annotated[str, of_corpus("Slug of a corpus; `judgeline corpora` lists them.")]
JudgeOption = Annotated[str, of_judge("Slug of a judge.")]
BudgetOption = Annotated[
    Texts,
    option(
        "Hard cap on what the judges are asked: 5000calls, 2Mtokens or 12.50USD; repeat to "
        "cap several. What is stored costs nothing. Starts nothing if more is expected.",
        metavar="CAP",
    ),
]
DryRunOption = Annotated[
    bool, option("Say what would be asked and its price; ask nobody.", "--dry-run")
]

verdicts_app = typer.Typer(
    help="Why a call would hit or miss the verdict store, and verdict files of other programs.",
    rich_markup_mode="rich",
    no_args_is_help=True,
)
candidates_app = typer.Typer(
    help="New models: which questions to answer, and what becomes of the file of answers.",
    rich_markup_mode="rich",
    no_args_is_help=True,
)


@verdicts_app.command(epilog=examples("verdicts explain battle-17 --judge strict --corpus arena"))
def explain(
    battle: Annotated[str, typer.Argument(metavar="BATTLE", show_default=False)],
    judge: JudgeOption,
    corpus: Annotated[
        Text, of_corpus("Slug of the battle's corpus; by default the first that has it.")
    ] = None,
) -> None:
    """Say per order and replicate whether BATTLE would be asked again, and why; asks nothing.

    On a miss it names the parts of the call in which the nearest stored verdict differs.
    """
    from judgeline.terminal import plain_table
    from pipelines.commands.verdicts import explain_battle

    where, rows = explain_battle(battle, judge, corpus)
    _say(f"{plain(battle)} of {plain(where)}, judged by {plain(judge)}")
    open_console().print(plain_table("", ("order", "replicate", "store", "why"), rows))


FormatOption = Annotated[
    Literal["alpaca-eval", "arena-hard", "mt-bench", "soft-elo"],
    option("Format of the file.", "--format"),
]
BaselineOption = Annotated[
    Texts,
    option(
        "Of arena-hard: the model that all others met. CATEGORY=NAME, repeated, where a "
        "file to import has several."
    ),
]
FirstInOption = Annotated[
    int,
    option(
        "Of arena-hard: the game that shows the baseline as assistant A.",
        min=1,
        max=2,
        show_default=True,
    ),
]
ForceOption = Annotated[bool, option("Replace files that are there.", "--force")]


@verdicts_app.command(
    "import",
    epilog=examples(
        "verdicts import annotations.json --format alpaca-eval --out alpaca",
        "verdicts import some-model.jsonl --format arena-hard --baseline gpt-4-0314 --out hard",
    ),
)
def import_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", show_default=False)],
    style: FormatOption,
    out: Annotated[Path, option("Folder for the tables; made if missing.")],
    baseline: BaselineOption = None,
    baseline_first_in: FirstInOption = 1,
    force: ForceOption = False,
) -> None:
    """Convert verdicts of another program to battles.parquet and verdicts.parquet.

    A failed game stays a failed verdict, and a row that fits no rule goes to quarantine.csv.
    Prints the commands that make a board of it.
    """
    from pipelines.commands.verdicts import import_verdicts, show_imported

    done = import_verdicts(files, style, out, baseline or (), baseline_first_in, force=force)
    show_imported(open_console(), done)


@verdicts_app.command(
    epilog=examples("verdicts export --corpus arena --judge careful --out careful.csv")
)
def export(
    corpus: CorpusOption,
    judge: JudgeOption,
    out: Annotated[Path, option("The file.")],
    force: ForceOption = False,
) -> None:
    """Write a judge's stored verdicts as Soft-Elo annotations; asks nothing.

    Says what the format cannot hold, and how often that happened.
    """
    from pipelines.commands.verdicts import export_verdicts, show_exported

    account = export_verdicts(corpus, judge, out, force=force)
    show_exported(open_console(), account, out)


@candidates_app.command(
    epilog=examples("candidates questions --corpus arena --out questions.jsonl", then="")
)
def questions(
    corpus: CorpusOption,
    out: Annotated[Path, option("A new file, .jsonl or .parquet.")],
    n: Annotated[
        int | None,
        option("How many; by default as many as a candidate has battles at most.", min=1),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write the questions that a new model should answer: question_id, instruction, language.

    Those that most models with votes answered, in the corpus' mix of languages. Add a column
    `completion` and drop the file into the candidates folder.
    """
    from pipelines.commands.candidates import write_questions

    n_written, n_there = write_questions(corpus, out, n, force=force)
    _say(f"{n_written:,} of {n_there:,} questions are in {plain(out)}")


@candidates_app.command(
    epilog=examples(
        "candidates check answers.jsonl --corpus arena",
        then="[bold]Exit codes[/bold]  0 it would be taken · 1 could not run · "
        "2 it would be set aside",
    )
)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)], corpus: CorpusOption
) -> None:
    """Say what would become of FILE in the candidates folder; nothing is run or asked."""
    from pipelines.commands.candidates import check_file

    is_taken, lines = check_file(file, corpus)
    _say(plain("\n".join(lines)))
    if not is_taken:
        raise typer.Exit(GATE_FAILED)


@candidates_app.command("list")
def list_candidates(corpus: CorpusOption) -> None:
    """List the candidate files of a corpus: what became of each, its battles and its rating."""
    from judgeline.terminal import plain_table
    from pipelines.commands.candidates import candidate_rows
    from resources.candidates.folder import folder_of

    rows, notes = candidate_rows(corpus)
    columns = ("file", "model", "state", "battles", "rating")
    open_console().print(plain_table(f"Candidates of {corpus}", columns, rows))
    for note in notes:
        _say(f"[bold red]{plain(note)}[/]")
    _say(f"Drop files into {plain(folder_of(corpus))}")


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


def _list_entries(plural: str) -> None:
    """Print the entries of one kind, and check each after that."""
    from judgeline.terminal import plain_table

    kind, fields = _kind(plural), _LISTED[plural]
    shared = kind.shared_file  # a folder of one's own is empty before the first is added
    is_new = shared.parent.is_dir() and not shared.exists()
    known = kind.load(kind.own_file if is_new else None)
    columns = [name.removeprefix("display_") for name in fields]
    rows = [[_cell(entry, name) for name in fields] for entry in known.values()]
    open_console().print(plain_table(plural.capitalize(), columns, rows))
    others = ", ".join(sorted(kind.examples().keys() - known))
    _say(f"Yours stand in {plain(kind.own_file)}.")
    _say(f"To add: judgeline {plural} add SLUG. Examples: {plain(others)}")
    for entry in known.values():
        kind.verify(entry)


def _group(what: str, plural: str) -> typer.Typer:
    """Return the group of commands about one kind of entries, with its list and `remove`."""
    group = typer.Typer(
        help=f"List the configured {plural}, add one or remove one of your own.",
        rich_markup_mode="rich",
    )

    @group.callback(invoke_without_command=True)
    def _list(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            _list_entries(plural)

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


@judges_app.command("fetch", epilog=examples("judges fetch qwen3-32b"))
def fetch_judge(slug: SlugArgument) -> None:
    """Download the weights of a judge of kind 'vllm', so that no GPU waits for them.

    They go where vLLM looks for them ($HF_HOME); what is there is not fetched again.
    """
    from judgeline.judges.managed.fetching import fetch_weights

    judge = _kind("judges").load().get(slug)
    if judge is None or judge.kind != "vllm":
        raise ValueError(f"{slug!r} is no configured judge of kind 'vllm'; see judgeline judges")
    _say(f"The weights of judge {plain(slug)} stand in {plain(fetch_weights(slug, judge))}.")


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
    from judgeline.paths import ROOT

    kind, judges = _kind("corpora"), _kind("judges")
    changed = []
    for setting in settings or ():
        key, _, place = setting.partition("=")  # a relative location counts from the checkout
        is_here = key == "location" and Path(place).exists() and not (ROOT / place).exists()
        changed.append(f"{key}={Path(place).resolve()}" if is_here else setting)
    _add(kind, slug, changed)
    named = kind.load()[slug].judges or ()
    for judge in sorted({*named} - {*judges.load()}):
        if judge in judges.examples():
            _add(judges, judge, ())
            continue
        _say(f"Judge {plain(judge)} is not configured yet: judgeline judges add {plain(judge)} ...")
    of_judge = "" if named else " --judge JUDGE"
    _say(f"  judgeline run --corpus {slug}{of_judge} --dry-run    what would be asked, its price")


def _add(kind: "EntryKind[Any]", slug: str, settings: Sequence[str]) -> None:
    from resources.config.local import add_entry

    file = add_entry(kind, slug, settings)
    _say(f"{kind.what.capitalize()} {plain(slug)} stands in {plain(file)}, yours to change.")


def _say(text: str) -> None:
    open_console().print(text, soft_wrap=True)
