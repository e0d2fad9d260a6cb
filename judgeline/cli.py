"""The command line of the library, to which a checkout adds the commands of the lineage.

What belongs here: options, help, exit codes. Anything heavy is imported by the command that
needs it, so that `--help` answers at once and `rank` never loads the orchestrator.
"""

import contextlib
import difflib
import gc
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from judgeline.options import (
    CANNOT_TELL,
    COULD_NOT_RUN,
    EXIT_CODES,
    GATE_FAILED,
    INTERRUPTED,
    OK,
    examples,
    option,
    shared,
    with_options,
    with_settings,
)
from judgeline.rating_options import STATED, RatingOptions
from judgeline.suggest import QualityGateError, message_of
from judgeline.terminal import complain, open_console, plain, show_ranked, silence

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_AGAIN_S = 0.05
_COLLECTED_AFTER = 200_000, 50, 100  # objects: imports make many that stay, and few cycles
_CHECKOUT = Path(__file__).resolve().parents[1]
CHECKOUT_COMMANDS = (
    "run", "judges", "corpora", "leaderboard", "verdicts", "why", "ui", "backfill",
    "candidates", "forget", "checks", "embed", "paper",
)  # fmt: skip
"""Commands that a checkout adds: those of the lineage, and the papers' tables."""
_COMMANDS, _BOARDS = "judgeline.commands", "judgeline.boards"  # groups of entry points
_PLANS, _PAGES = "judgeline.plans", "judgeline.pages"
_INSTALL = {
    True: "in the checkout: pip install -e '.[app]'",
    False: "the installation lacks a package: pip install --force-reinstall judgeline",
}
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]  # click's own base; typer may bring its own click

app = typer.Typer(
    name="judgeline",
    help="Judge verdicts in, ratings on the human Elo scale with honest intervals out.\n\n"
    "[bold]Start here[/bold]\n\n"
    "  judgeline example --out battles.csv          a file to try the others on\n\n"
    "  judgeline doctor battles.csv                 what a file supports\n\n"
    "  judgeline rank battles.csv --out ratings     rate the models of one file\n\n"
    "  judgeline compare battles.csv A B            is A above B?\n\n"
    "  judgeline gate battles.csv --new A --current B --margin 20    may A replace B?\n\n"
    "  judgeline seal battles.csv --out a.seal.json       predict before people vote\n\n"
    "  judgeline plan battles.csv                   what the judge is worth, what narrows\n\n"
    "  judgeline vote battles.csv --goal GOAL       a page on which people vote\n\n"
    "  judgeline rates answers.csv                  pass rates, from verdicts and some labels\n\n",
    epilog=EXIT_CODES,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


FileArgument = Annotated[Path, typer.Argument(metavar="FILE", show_default=False)]
JudgeName = Annotated[str | None, option("Which judge, where there are several.")]
Columns = Annotated[
    str | None,
    option("Columns that the file calls otherwise, such as human_outcome=label,model_a=left."),
]
Outcomes = Annotated[
    str | None,
    option(
        "Codes of outcomes, human and judge's: A's, then B's, then any of ties, such as 1/-1/0, "
        "1/2 or model_a/model_b/tie/both_bad; by default 1/0/0.5."
    ),
]
Missing = Annotated[
    list[str] | None,
    option(
        "Value that stands for a failed verdict, such as -1 or error; repeat for more. 'nothing' "
        "if every number is a score, though one stands apart from the others."
    ),
]
AllowQuarantine = Annotated[
    bool,
    option(
        "Use what is left where more than 2 % of the rows have an unknown outcome or a NaN score.",
        "--allow-quarantine",
    ),
]
Form = Annotated[
    Literal["text", "json"], option("Sentences, or one JSON object.", "--format", show_default=True)
]
Rows = Annotated[
    Literal["text", "csv", "json"],
    option("A table, or every row as CSV or JSON.", "--format", show_default=True),
]
SameNames = Annotated[
    bool,
    option(
        "Join names that differ only in case, blanks, hyphens, quotes, invisible characters or "
        "the provider's prefix, under the most frequent.",
        "--same-names",
    ),
]
Votes = Annotated[
    list[Path] | None,
    option("File of votes that a page of `judgeline vote` saved; repeat for more, or a folder."),
]
CorpusName = Annotated[
    str | None, option("Compare on the leaderboard that `judgeline run` made of a corpus.")
]
Level = Annotated[
    float | None,
    option(f"As for rank; by default {RatingOptions.miscoverage}, or as the corpus was made."),
]
READING = (
    shared("judge", JudgeName),
    shared("outcomes", Outcomes),
    shared("columns", Columns),
    shared("missing", Missing),
    shared("same_names", SameNames, False),
    shared("allow_quarantine", AllowQuarantine, False),
)
"""How a file is read, as `rank` reads it; the last one says what is done about unknown values."""
VOTED = (*READING, shared("votes", Votes))
"""The same with people's votes joined."""


@app.callback(invoke_without_command=True)
def _front_door(
    context: typer.Context,
    show_version: Annotated[bool, option("Print the version and stop.", "--version")] = False,
) -> None:
    if show_version:
        from importlib.metadata import version

        typer.echo(f"judgeline {version('judgeline')}")
        raise typer.Exit(OK)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(
    epilog=examples(
        "rank annotations.csv --out ratings",
        "rank scored.parquet --out ratings --method soft --method hard",
        "rank scored.jsonl --out ratings --std-error bootstrap",
        "rank scored.csv --out ratings --outcomes 1/-1/0",
        "rank --counts counts.parquet --out ratings",
    )
)
@with_options(*VOTED)
@with_settings(*STATED)
def rank(
    context: typer.Context,
    file: FileArgument,
    out: Annotated[str, option("Folder for the results; made if missing.", metavar="<path>")],
    method: Annotated[
        list[str] | None,
        option(
            "Method to write, such as soft or hard; repeat for more. By default all but the "
            "smoothed ones, such as smoothed-0.75, which take a fit each; the leaderboard ranks "
            "by auto where it is among them, else by the first."
        ),
    ] = None,
    counts: Annotated[
        bool,
        option(
            "Refuse a file without the column n_battles, which counts alike battles.", "--counts"
        ),
    ] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write report.html as well.")
    ] = True,
    plain_ties: Annotated[
        Literal["half", "davidson"] | None,
        option(
            "Write plain.csv and style.csv as well: Bradley-Terry ratings of votes and of the "
            "judge as they are, with ties as half a win or modelled after Davidson.",
            "--plain",
        ),
    ] = None,
    component: Annotated[
        int | None,
        option("Rate one set of models, where votes tie them to several: 0 is the largest.", min=0),
    ] = None,
    force: Annotated[bool, option("Replace the results that the folder holds.", "--force")] = False,
    **options: Any,
) -> None:
    """Rate the models of one file of judged battles; no server, no configuration.

    FILE holds released [bold]Soft-Elo annotations[/bold] (sample or full layout), or
    [bold]scored battles[/bold] as CSV, JSON, Parquet or Feather (packed or not) with the columns
    model_a, model_b, score_difference (judge score of A minus B; or judge_score_a and
    judge_score_b), human_outcome (A's share of the win: 1, 0.5, 0, empty for no vote; or winner)
    and, if there is one, judge_outcome. In place of scores, judge_outcome (1, 0.5, 0) or
    judge_winner or verdict (A, B, tie, or levels such as A>>B) is enough: a win then counts as a
    score difference of 1.
    Other names of columns are stated by --columns, other codes of outcomes by --outcomes.

    A column n_battles says how many battles are alike and stand in one row, as a query of a
    warehouse gives them. Parquet files of 5 million rows and more are counted so, in bounded
    memory; what needs single battles (resamples, diagnoses of position and length) is left out.

    Writes heldout.csv, conformal.csv, summary.csv, leaderboard.csv, quarantine.csv and
    report.html, with --plain also plain.csv and style.csv; all of them, or none.
    """
    from judgeline.api import Settings, rank_file
    from judgeline.io.counting import is_large
    from judgeline.io.formats import files_of

    folder, settings = _folder(out), {name: options.pop(name) for name in STATED}
    if plain_ties and is_large(files_of(file)):
        said = "--plain needs single battles: this large file is read row by row, in minutes and GB"
        complain("Note", said, style="yellow")
    board = rank_file(
        file,
        folder,
        Settings(**settings, methods=tuple(method or ())),
        report=report,
        force=force,
        counts=counts,
        plain=plain_ties,
        component=component,
        **_stated(options),
        command=shlex.join(["judgeline", *(context.obj or [])]),
    )
    show_ranked(open_console(), board)
    if board.withheld:
        complain("Quality gate failed", f"{board.withheld}; the board shows people's votes alone")
    written = {path.name for path in board.files.values()}
    for name in ("report.html", "plain.csv", "style.csv"):
        if name not in written and (old := folder / name).exists():
            complain("Note", f"{old} is of an earlier run", style="yellow")
    if board.withheld:
        raise typer.Exit(GATE_FAILED)


@app.command(epilog=examples("example --out battles.csv"))
def example(
    out: Annotated[Path, option("A new file, .csv.")],
    force: Annotated[bool, option("Replace the file.", "--force")] = False,
) -> None:
    """Write 6,000 battles of 24 simulated models to try the other commands on.

    A judge scored all of them, and people voted on those between 22 of the models.
    """
    from judgeline.example import example_battles

    if out.exists() and not force:
        raise ValueError(f"{out} is there already; name another file, or replace it with --force")
    example_battles().to_csv(out, index=False)
    console = open_console()
    console.print(plain(f"{out} has 6,000 battles, of models of a simulation."), soft_wrap=True)
    console.print(plain(f"  judgeline rank {out} --out ratings"), soft_wrap=True)


@app.command(epilog=examples("doctor battles.csv"))
@with_options(*READING[:-1])
def doctor(file: FileArgument, form: Form = "text", **reading: Any) -> None:
    """Diagnose a file of battles: its layout, the analyses it supports, and missing columns.

    Nothing is rated or written. Exit code 2 says that the judge would fail the quality gate.
    """
    from judgeline.api import doctor as diagnose
    from judgeline.report import in_json
    from judgeline.terminal import show_diagnosis

    found = diagnose(file, **_stated(reading))
    if form == "json":
        typer.echo(in_json(found._asdict()))
    else:
        show_diagnosis(open_console(), found)
    if found.gate:
        raise typer.Exit(GATE_FAILED)


@app.command(
    epilog=examples(
        "compare battles.csv gpt-4 claude-v1",
        "compare gpt-4 claude-v1 --corpus mine --judge careful --format json",
    )
)
@with_options(*VOTED)
def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILE] A B",
            help="Two models, after a file of battles as rank reads it unless --corpus names one.",
            show_default=False,
        ),
    ],
    corpus: CorpusName = None,
    miscoverage: Level = None,
    form: Form = "text",
    **reading: Any,
) -> None:
    """Say which of two models is above the other, or that it cannot be told and what would tell.

    The difference of their ratings has an interval of its own: two models whose intervals overlap
    may be told apart. Exit code 0 says that one is above, 3 that it cannot be told.
    """
    from dataclasses import asdict

    from judgeline.comparing import compare_on
    from judgeline.report import in_json, json_value

    ranked = _ranked(names, corpus, miscoverage, reading)
    found = compare_on(ranked.leaderboard, *ranked.names, miscoverage=ranked.miscoverage)
    if form == "json":
        typer.echo(in_json(json_value(asdict(found))))
    else:
        _print_lines(found.lines())
    if found.answer == "cannot tell":
        raise typer.Exit(CANNOT_TELL)


@app.command(
    epilog=examples(
        "gate battles.csv --new gpt-5 --current gpt-4 --margin 20",
        "gate battles.csv --new gpt-5 --current gpt-4 --margin 20 --junit gate.xml --looks 12",
        "gate battles.csv --new gpt-5 --current gpt-4 --margin 20 --votes votes/",
        "gate --corpus mine --judge careful --new gpt-5 --current gpt-4 --margin 20",
    )
)
@with_options(*VOTED)
def gate(
    new: Annotated[str, option("The model that is to be released.")],
    current: Annotated[str, option("The model that it would replace.")],
    margin: Annotated[float, option("Elo points by which the new model may be worse; 0 or more.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Battles as rank reads them.", show_default=False),
    ] = None,
    corpus: CorpusName = None,
    error: Annotated[
        float, option("Probability that any of all looks answers wrongly.", show_default=True)
    ] = 0.05,
    looks: Annotated[
        int | None,
        option("Looks that are planned; by default any number, each with less error.", min=1),
    ] = None,
    ledger: Annotated[
        Path | None,
        option("File that counts the looks; by default FILE.gate.jsonl. Keep it between runs."),
    ] = None,
    same_maker: Annotated[
        bool, option("Let a judge of the new model's maker decide.", "--same-maker")
    ] = False,
    junit: Annotated[Path | None, option("Write the answer as JUnit XML.")] = None,
    json: Annotated[Path | None, option("Write the answer with all numbers as JSON.")] = None,
    markdown: Annotated[Path | None, option("Write the answer as Markdown.")] = None,
    **reading: Any,
) -> None:
    """Say whether a new model may replace the current one: better than it minus a margin.

    Three answers: better than -margin (exit code 0), worse by more than the margin (2), cannot tell
    yet (3), with the votes or calls that would tell. Anything else exits with 1. The error holds
    for all looks that the ledger counts, of one release or many; the same battles looked at
    again are no new look.
    """
    from judgeline.atomic import write_whole
    from judgeline.gating import WRITERS, gate_on

    if (file is None) == (corpus is None):
        raise ValueError("gate takes a file or --corpus SLUG: judgeline gate FILE --new A ...")
    try:
        ranked = _ranked([*[str(file)] * (file is not None), new, current], corpus, None, reading)
    except QualityGateError as unusable:  # no answer about the two models
        raise ValueError(str(unusable)) from unusable
    found = gate_on(
        ranked.leaderboard, new, current,
        margin=margin,
        miscoverage=ranked.miscoverage,
        error=error,
        looks=looks,
        ledger=ledger or _ledger_of(file, corpus),
        judge=ranked.judge,
        families=ranked.families,
        same_maker=same_maker,
    )  # fmt: skip
    _print_lines(found.lines())
    for form, path in (("junit", junit), ("json", json), ("markdown", markdown)):
        if path:
            write_whole(path, f"{WRITERS[form](found)}\n".encode())
    if not found.passes:
        raise typer.Exit(GATE_FAILED if found.decision == "worse" else CANNOT_TELL)


def _ledger_of(file: Path | None, corpus: str | None) -> Path:
    from judgeline.io.formats import GATE_LEDGER
    from judgeline.paths import home

    return Path(f"{home() / str(corpus) if file is None else file}{GATE_LEDGER}")


def _print_lines(lines: Iterable[str]) -> None:
    console = open_console()
    for line in lines:
        console.print(plain(line), soft_wrap=True)


def _stated(reading: dict[str, Any]) -> dict[str, Any]:
    """Return how a file is read as functions of the library take it."""
    own = {"columns": _mapping(reading["columns"]), "missing": reading["missing"] or None}
    if "votes" in reading:
        own["votes"] = _files_of_votes(reading["votes"] or [])
    return {**reading, **own}


def _require_of_files(**stated: object) -> None:
    """Refuse options of files where a corpus is named."""
    if given := [n for n, v in stated.items() if v is not None and v is not False and v != []]:
        option_name = given[0].replace("_", "-")
        raise ValueError(f"--{option_name} is for files; leave it out, or leave out --corpus")


class _Ranked(NamedTuple):
    """A leaderboard with two models of it; its judge, by family where that is known."""

    leaderboard: Any
    miscoverage: float
    names: Sequence[str]
    judge: str
    families: Any


def _ranked(
    names: Sequence[str], corpus: str | None, miscoverage: float | None, reading: dict[str, Any]
) -> _Ranked:
    """Return the leaderboard of a file or of a corpus, with the models to compare."""
    if corpus is None:
        return _rank_of_file(names, miscoverage, reading)
    of_file = {name: value for name, value in reading.items() if name != "judge"}
    _require_of_files(**of_file, miscoverage=miscoverage)
    return _rank_of_corpus(names, corpus, reading["judge"])


def _rank_of_file(
    names: Sequence[str], miscoverage: float | None, reading: dict[str, Any]
) -> _Ranked:
    from judgeline.api import rank as rank_battles

    if len(names) != 3:
        raise ValueError(
            f"two models of a file are compared, got {len(names)} words: judgeline compare FILE A "
            "B, or judgeline compare A B --corpus SLUG --judge SLUG"
        )
    board = rank_battles(Path(names[0]), _at_level(miscoverage), **_stated(reading))
    own = board.settings.miscoverage
    return _Ranked(board.leaderboard, own, names[1:], board.battles.judge, {})


def _at_level(miscoverage: float | None, **settings: Any) -> Any:
    """Return settings with a stated share of misses, or that of the default."""
    from judgeline.api import Settings

    level = Settings.miscoverage if miscoverage is None else miscoverage
    return Settings(miscoverage=level, **settings)


def _rank_of_corpus(names: Sequence[str], corpus: str, judge: str | None) -> _Ranked:
    if len(names) != 2:
        raise ValueError(
            f"with --corpus, compare takes two models, got {len(names)}: "
            f"judgeline compare A B --corpus {corpus}"
        )
    boards, definition = _of_lineage(_BOARDS, "compare FILE A B, or gate FILE")(corpus, judge)
    judges = boards["judge"].unique().tolist()
    if len(judges) > 1:
        raise ValueError(
            f"{corpus!r} has leaderboards of {', '.join(judges)}; name one with --judge"
        )
    rating = definition.rating
    return _Ranked(boards, rating.miscoverage, names, boards.attrs["family"], rating.families)


@app.command(
    epilog=examples(
        "seal battles.csv --out release-7.seal.json",
        "verify release-7.seal.json",
        "score release-7.seal.json --votes battles-with-votes.csv",
    )
)
@with_options(*VOTED)
@with_settings(*STATED)
def seal(
    file: FileArgument,
    out: Annotated[Path, option("The seal to write; one that is there is never replaced.")],
    **options: Any,
) -> None:
    """Seal a board before people vote: its ratings, inputs, code and settings in one JSON file.

    Publish the digest that is printed. Then anybody can recompute the board (judgeline verify), and
    votes that come later show whether its intervals hold (judgeline score).
    """
    from judgeline.api import Settings
    from judgeline.sealing import seal as seal_board

    settings = Settings(**{name: options.pop(name) for name in STATED})
    found = seal_board(file, out, settings, _stated(options))
    models = [row["model"] for row in found["predictions"]]
    _print_lines(
        [
            f"{out}: {len(found['board'])} models, {len(models)} of them without votes"
            f"{': ' * bool(models)}{', '.join(models[:10])}{', ...' * (len(models) > 10)}.",
            f"Digest: {found['digest']}",
        ]
    )


@app.command(
    epilog=examples(
        "verify release-7.seal.json",
        "verify release-7.seal.json --expect 5347da86f866749f... --file battles.csv",
    )
)
def verify(
    path: Annotated[Path, typer.Argument(metavar="SEAL", show_default=False)],
    file: Annotated[
        Path | None, option("The battles, where they are not where they were when sealed.")
    ] = None,
    expect: Annotated[str | None, option("The digest that was published.")] = None,
) -> None:
    """Recompute a sealed board from its inputs, offline, and say what nobody can verify.

    Exit code 2 says that seal, inputs or board differ from what was sealed.
    """
    from judgeline.sealing import verify as verify_seal

    found = verify_seal(path, file, expect=expect)
    _print_lines(found.lines())
    if found.problems:
        raise typer.Exit(GATE_FAILED)


@app.command(
    epilog=examples(
        "score release-7.seal.json --votes battles-with-votes.csv",
        "score seals/*.seal.json --votes battles.csv --ledger seals/record.jsonl",
    )
)
@with_options(*READING)
def score(
    paths: Annotated[list[Path], typer.Argument(metavar="SEAL...", show_default=False)],
    votes: Annotated[
        Path,
        option(
            "The battles with people's votes, as rank reads them; or votes that a page saved, to "
            "join to the battles beside the seal."
        ),
    ],
    ledger: Annotated[
        Path | None,
        option("File that keeps the scores; by default predictions.jsonl beside the first seal."),
    ] = None,
    **reading: Any,
) -> None:
    """Score sealed predictions by votes that have come since, each once.

    Prints how many held and the evidence against the promise, which may be looked at any time: a
    kept promise reaches 20 at most once in 20 ledgers, for ever. Exit code 2 says that it did.
    """
    from judgeline.sealing import score_seals

    own = _stated(reading) if any(reading.values()) else {}
    found = score_seals(paths, votes, ledger or paths[0].parent / "predictions.jsonl", own)
    _print_lines(found.lines())
    if found.is_broken:
        raise typer.Exit(GATE_FAILED)


def _of_lineage(group: str, otherwise: str) -> Any:
    """Return what a checkout adds for ``--corpus``, by its group of entry points."""
    if not is_checkout():
        raise ValueError(
            "--corpus reads tables of the lineage, which runs from a checkout of judgeline; of a "
            f"file: judgeline {otherwise}"
        )
    (added,) = _entry_points(group)
    return added.load()


@app.command(
    epilog=examples(
        "plan battles.csv --half-width 40",
        "plan by-one.csv by-other.csv --half-width 40 --call-price 0.002 --vote-price 0.5",
        "plan battles.csv --votes votes/",
        "plan --corpus arena --judge careful",
    )
)
@with_options(*VOTED[1:])
def plan(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Battles as rank reads them, a file for each judge; none with --corpus.",
            show_default=False,
        ),
    ] = None,
    corpus: Annotated[
        str | None, option("Plan from the tables that `judgeline run` made of a corpus.")
    ] = None,
    judge: Annotated[
        list[str] | None, option("Which judge, where there are several; repeat for more.")
    ] = None,
    half_width: Annotated[
        float | None, option("Elo points that an interval is to reach to either side.", min=1.0)
    ] = None,
    call_price: Annotated[float | None, option("What one call of the judge costs.", min=0)] = None,
    vote_price: Annotated[float | None, option("What one vote costs.", min=0)] = None,
    target_votes: Annotated[
        float | None,
        option(
            "Votes behind the human rating that an interval promises to hold; by default the "
            "median of the models with votes.",
            min=1,
        ),
    ] = None,
    miscoverage: Level = None,
    form: Form = "text",
    **reading: Any,
) -> None:
    """Say what a judge is worth in votes, and what narrows an interval: calls, votes, more judges.

    A judge is worth the number of votes a model that would place it as well. Its own errors stay
    however often it is asked, so that from some number of calls on nothing narrows: then votes do.
    The table has the half-width of one model's interval by calls, votes and cost, and --half-width
    names the cheapest mix (without prices: the fewest votes, then the fewest calls). With --corpus
    and one judge it says too how many battles to label for shorter win-rate intervals.
    """
    from judgeline.api import plan as plan_file
    from judgeline.planning import Prices, plan_of
    from judgeline.report import in_json, json_value
    from judgeline.terminal import show_plan

    if bool(files) == bool(corpus):
        raise ValueError("plan takes files or --corpus: judgeline plan FILE, or --corpus SLUG")
    options: dict[str, Any] = {"half_width": half_width, "n_target_votes": target_votes}
    labels: Any = None
    if corpus:
        _require_of_files(**reading, miscoverage=miscoverage)
        rated, rating, labels = _of_lineage(_PLANS, "plan FILE")(corpus, judge or [])
        bought = Prices(*(float("nan") if one is None else one for one in (call_price, vote_price)))
        found = plan_of(rated, rating, prices=bought, **options)
    else:
        options |= {"call_price": call_price, "vote_price": vote_price, **_stated(reading)}
        found = plan_file(files or [], _at_level(miscoverage), judge=judge or None, **options)
    if form == "json":
        typer.echo(in_json(json_value(found.as_record())))
    else:
        show_plan(open_console(), found, labels)


@app.command(
    epilog=examples("rates answers.csv --columns label=reviewed", "rates answers.csv --labels 200")
)
@with_settings("miscoverage")
def rates(
    file: FileArgument,
    columns: Annotated[
        str | None,
        option("Columns that the file calls otherwise, such as verdict=grade,label=reviewed."),
    ] = None,
    labels: Annotated[
        int | None, option("Divide so many labels of each system, in place of the rates.", min=1)
    ] = None,
    form: Rows = "text",
    **settings: Any,
) -> None:
    """Say which share of answers people would pass, from a judge's verdicts and some labels.

    FILE has an answer per row: [bold]verdict[/bold], the judge's (pass or fail, true or false, 1 or
    0), [bold]label[/bold], a person's in the same codes and empty where nobody looked, and
    [bold]system[/bold] where there are several.
    """
    from judgeline.api import pass_rates, split_labels
    from judgeline.terminal import machine_readable, show_rates, show_splits

    options: dict[str, Any] = {"columns": _mapping(columns), **settings}
    if labels is None:
        found = pass_rates(file, **options)
    else:
        found = split_labels(file, n_labels=labels, **options)
    if form == "text" and labels is not None:
        show_splits(open_console(), found, labels)
    elif form == "text":
        show_rates(open_console(), found, **settings)
    else:
        typer.echo(machine_readable(found, form), nl=False)


@app.command(
    epilog=examples(
        'vote battles.csv --goal "place new-model within 40" --out vote.html',
        'vote battles.csv --goal "place new-model within 40" --raters 3 --out vote.html',
        'vote --corpus mine --judge careful --goal "place new-model within 40" --out vote.html',
    )
)
@with_options(*VOTED)
@with_settings("seed")
def vote(
    goal: Annotated[str, option("What the votes are for: 'place MODEL within POINTS' (Elo).")],
    out: Annotated[Path, option("The page to write, such as vote.html.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Battles as rank reads them.", show_default=False),
    ] = None,
    corpus: Annotated[
        str | None, option("Take the battles that `judgeline run` had judged of a corpus.")
    ] = None,
    raters: Annotated[int, option("How many people vote.", min=1, show_default=True)] = 1,
    miscoverage: Level = None,
    **options: Any,
) -> None:
    """Write one page on which people vote blind, with the battles that a goal needs most.

    FILE is one that rank reads, with the texts: [bold]instruction[/bold],
    [bold]completion_a[/bold] and [bold]completion_b[/bold]. The page loads nothing and sends
    nothing: open it in any browser, also on a phone, and vote by keys A, B, T (tie), X (both bad),
    S (skip), U (undo). Progress stays in that browser; [bold]Save votes[/bold] writes a file, and
    rank joins such files:

    judgeline rank FILE --votes votes-1.jsonl --votes votes-2.jsonl --out ratings

    With --corpus, files in the folder votes/SLUG of the home are counted by judgeline run.
    """
    from judgeline.api import vote as vote_on_file
    from judgeline.voting import parse_goal, require_raters, write_page

    if (file is None) == (corpus is None):
        raise ValueError("vote takes a file or --corpus SLUG: judgeline vote FILE --goal GOAL ...")
    seed = options.pop("seed")
    if file is not None:
        settings = _at_level(miscoverage, seed=seed)
        page = vote_on_file(file, goal, out, settings, n_raters=raters, **_stated(options))
    else:
        judge = options.pop("judge")
        _require_of_files(**options, miscoverage=miscoverage)
        wanted = parse_goal(goal)
        require_raters(raters)
        table, scored, rated, rating = _of_lineage(_PAGES, "vote FILE")(corpus, judge)
        known = (table, scored, rated, rating, wanted)
        page = write_page(out, *known, n_raters=raters, seed=seed)
    _print_lines(page.lines())


def _is_of_votes(file: Path) -> bool:
    return file.suffix.lower() == ".jsonl" and not file.name.startswith(".") and file.is_file()


def _files_of_votes(given: Sequence[Path]) -> list[Path]:
    """Return files, and those of folders whose names end in .jsonl and are not hidden."""
    held = {
        one: sorted(filter(_is_of_votes, one.iterdir())) if one.is_dir() else [one] for one in given
    }
    if empty := [str(one) for one, files in held.items() if not files]:
        raise ValueError(
            f"no file of votes (*.jsonl) in {', '.join(empty)}; move what the page saved there, or "
            "name the file with --votes"
        )
    return [file for files in held.values() for file in files]


@app.command(
    name="plain", epilog=examples("plain verdicts.csv", "plain 'runs/*.json' --judge tone")
)
@with_options(*READING)
@with_settings("miscoverage")
def plain_ratings(
    file: FileArgument,
    ties: Annotated[
        Literal["half", "davidson"], option("Ties as half a win, or modelled after Davidson.")
    ] = "half",
    form: Rows = "text",
    **options: Any,
) -> None:
    """Rate models by verdicts or votes as they are: Bradley-Terry over all battles.

    For verdicts of a judge [bold]without votes[/bold] of people, such as those of AlpacaEval,
    Arena-Hard or MT-bench, for scores of single answers, and for votes without verdicts. Nothing is
    calibrated: ratings by a judge are on its own scale.
    """
    from judgeline.terminal import machine_readable, show_plain
    from judgeline.uncalibrated import rate_plain, read_plain

    level = options.pop("miscoverage")
    read = read_plain(file, **_stated(options))
    ratings = rate_plain(read, ties=ties, miscoverage=level)
    if form == "text":
        show_plain(open_console(), read, ratings, file.name)
    else:
        typer.echo(machine_readable(ratings, form), nl=False)


@app.command(epilog=examples("agreement pairs.jsonl --columns label=gold,verdict=gpt4"))
@with_settings("miscoverage")
def agreement(
    file: FileArgument,
    columns: Columns = None,
    outcomes: Outcomes = None,
    missing: Missing = None,
    form: Rows = "text",
    **settings: Any,
) -> None:
    """Measure a judge by gold labels: agreement, kappa, and position bias where it saw both orders.

    FILE has a pair, or an answer, per row: [bold]label[/bold], what is right, and
    [bold]verdict[/bold], the judge's, in the same codes or as marks;
    [bold]verdict_swapped[/bold] is the verdict with the second answer shown first.
    """
    from judgeline.terminal import machine_readable, show_agreement
    from judgeline.uncalibrated import agreement as measure

    told = {"outcomes": outcomes, "missing": missing or None, **settings}
    found = measure(file, columns=_mapping(columns), **told)
    if form == "text":
        show_agreement(open_console(), found, file.name)
    else:
        typer.echo(machine_readable(found, form), nl=False)


def _folder(out: str) -> Path:
    if not out.strip():
        raise typer.BadParameter("'--out' is empty; name a folder, such as --out ratings")
    return Path(out)


def _mapping(columns: str | None) -> dict[str, str]:
    """Return the file's own names of columns from ``name=own,name=own``."""
    pairs = [pair.partition("=") for pair in (columns or "").split(",") if pair.strip()]
    for name, sign, own in pairs:
        if not (name.strip() and sign and own.strip()):
            raise ValueError(
                f"--columns is {columns!r}; write our name of a column, =, and the file's, with "
                "commas between pairs: human_outcome=label,model_a=left"
            )
    stated = {name.strip(): own.strip() for name, _, own in pairs}
    if len(stated) < len(pairs):
        raise ValueError(f"--columns is {columns!r}, which names a column twice; name each once")
    return stated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the program's name; that of this process by default.

    Returns
    -------
    int
        0 ok, 1 could not run, 2 a quality gate failed, 3 cannot tell, 130 interrupted.
    """
    gc.set_threshold(*_COLLECTED_AFTER)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started this, as `>&-` does
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if not {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"} & os.environ.keys():
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # small matrices: more threads only wait
    try:
        with heed_interrupts():
            code = _answer(arguments)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as stop:
        if BrokenPipeError not in (type(stop), type(stop.__context__)):
            raise
        silence(sys.stdout)  # `| head`: nobody reads on; typer makes of it that it exits with 1
        return OK
    return code


def is_checkout() -> bool:
    """Return whether the package lies in a checkout, which has the commands of the lineage."""
    return (_CHECKOUT / "pipelines" / "commands" / "cli.py").is_file()


def _with_checkout(arguments: Sequence[str]) -> bool:
    """Add the commands of a checkout where the package lies in one.

    Elsewhere such a command is answered with what it needs. The library's own command needs none.
    """
    commands = [one for one in app.registered_commands if one.callback]
    own = [one.name or getattr(one.callback, "__name__", "") for one in commands]
    if arguments[:1] and arguments[0] in own:
        return True
    if is_checkout():
        for entry in _entry_points(_COMMANDS):
            if (_CHECKOUT / entry.module.partition(".")[0]).is_dir():  # an image leaves some out
                _join(entry.load())
        return True
    if not (named := [word for word in arguments[:1] if word in CHECKOUT_COMMANDS]):
        return True
    complain(
        "Error",
        f"judgeline {named[0]} comes with a checkout of judgeline: "
        "clone the repository and run `make demo` there; judgeline rank needs no checkout",
    )
    return False


def _entry_points(group: str) -> "Iterable[EntryPoint]":
    """Return the entry points of a checkout, by its metadata or else by its pyproject.toml.

    A checkout may be used without an installation, or with one that is older than the group. A
    wheel declares the same entry points but lacks their modules.
    """
    from importlib.metadata import EntryPoint, entry_points

    if installed := entry_points(group=group):
        return installed
    import tomllib

    project = tomllib.loads((_CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["entry-points"][group]
    return [EntryPoint(name=name, value=declared[name], group=group) for name in declared]


def _join(commands: typer.Typer) -> None:
    """Add commands and their lines of help to the command line, once."""
    if all(group.typer_instance is not commands for group in app.registered_groups):
        app.add_typer(commands)
        app.info.help = f"{app.info.help}{commands.info.help}"


def _answer(arguments: Sequence[str] | None) -> int:
    """Run the command of a command line, print its error if it has one, return the exit code."""
    try:
        typed = list(sys.argv[1:] if arguments is None else arguments)
        if not _with_checkout(typed):
            return COULD_NOT_RUN
        code = app(args=arguments, prog_name="judgeline", standalone_mode=False, obj=typed)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        raise
    except _USAGE_ERROR as error:
        command = getattr(getattr(error, "ctx", None), "command_path", "judgeline")
        message = _with_typed_value(error, _with_near_choice(error.format_message()))
        complain("Error", f"{message} (see: {command} --help)")
        return COULD_NOT_RUN
    except ImportError as error:
        complain("Error", f"{error}; {_INSTALL[is_checkout()]}")
        return COULD_NOT_RUN
    except (ValueError, RuntimeError, OSError, QualityGateError) as error:
        of_gate = isinstance(error, QualityGateError)
        complain("Quality gate failed" if of_gate else "Error", message_of(error))
        return GATE_FAILED if of_gate else COULD_NOT_RUN
    if code == INTERRUPTED:  # some versions of typer return it, others raise Abort
        _Interrupt.is_answered = True
        left = "files are complete or absent, and answers that came are stored"
        complain("Interrupted", f"{left}; run it again when you like")
    return code if isinstance(code, int) else OK


def _with_near_choice(message: str) -> str:
    """Return a message on a wrong choice of an option with the choice that was probably meant."""
    text = message.replace("Value error, ", "")
    wrong = re.search(r"'([^']*)' is not one of (.*)", text)
    known = re.findall(r"'(.*?)'", wrong[2]) if wrong else []
    near = difflib.get_close_matches(wrong[1].casefold(), known, n=1) if wrong else []
    return f"{text} Did you mean {near[0]!r}?" if near else text


def _with_typed_value(error: Exception, message: str) -> str:
    """Return a message on a wrong option with the value that pydantic refused, if it lacks it."""
    found: list[Any] = getattr(error.__cause__, "errors", list)()  # pydantic tells its input
    wrong = repr(found[0]["input"]) if found else ""
    is_told = message.partition(": ")[2].startswith(wrong)
    return message if is_told else f"{message.rstrip('.')}; got {wrong}"


@contextlib.contextmanager
def heed_interrupts() -> Iterator[None]:
    """Have SIGINT interrupt a block: at any moment of it, and also where it was ignored.

    A shell script has each command that it starts in the background ignore SIGINT.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _interrupt), sys.unraisablehook
    sys.unraisablehook = _report_dropped
    _Interrupt.is_answered = False
    try:
        yield
    finally:
        _Interrupt.is_answered = True
        sys.unraisablehook = before[1]
        signal.signal(signal.SIGINT, before[0])


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise _Interrupt


class _Interrupt(KeyboardInterrupt):
    """An interrupt that comes again if it is dropped before anybody has answered it.

    Python drops any exception in a finalizer, numpy in some comparisons of types.
    """

    is_answered = False

    def __del__(self) -> None:
        if not (self.is_answered or sys.is_finalizing()):
            timer = threading.Timer(_AGAIN_S, _interrupt_again)
            timer.daemon = True
            timer.start()


def _interrupt_again() -> None:
    if not _Interrupt.is_answered:
        os.kill(os.getpid(), signal.SIGINT)


def _report_dropped(dropped: Any) -> None:
    """Report an exception that Python drops, unless it is an interrupt, which comes again."""
    if not issubclass(dropped.exc_type, _Interrupt):
        sys.__unraisablehook__(dropped)
