"""Output of the commands: tables for people, and the same leaderboard for other programs."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd

    from judgeline.api import Board, Diagnosis
    from judgeline.io.judged import JudgedBattles
    from judgeline.planning import Plan

_HIDDEN = "\N{REPLACEMENT CHARACTER}"

_MANY = 0.05  # share of quarantined rows that deserves a warning

PIPE_WIDTH = 124
"""Columns to lay tables out in when the output is no terminal."""


class LastingConsole(Console):
    """A console that prints nothing after a broken pipe, so that the command runs to its end.

    A run of the lineage, or a command's exit code, is not for `| head` to decide. A name such as
    ``q:100:7b`` is a name: no codes of emojis are replaced, and no numbers coloured.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> None:
        """Write nowhere from now on, instead of ending the program."""
        self.quiet = True
        silence(self.file)


def silence(stream: IO[str]) -> None:
    """Redirect a broken pipe to the null device, so that flushing at exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def open_console(**options: Any) -> Console:
    """Return a console that neither wraps tables nor guesses a width when piped.

    `options` are rich's, such as ``stderr=True``, or ``file`` for a stream of one's own.
    """
    console = LastingConsole(**options)
    if console.is_terminal:
        return console
    return LastingConsole(**{"width": PIPE_WIDTH, **options})


def leaderboard_table(board: "pd.DataFrame", title: str) -> Table:
    """Return a leaderboard as a table for the terminal; ratings and intervals in Elo points."""
    from judgeline.intervals import COUNTS, WITHHELD, withheld_reason
    from judgeline.report.wording import rank_text

    table = Table(title=title, title_justify="left")
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("model", overflow="fold")
    counts = [name.removeprefix("n_").replace("_", " ") for name in COUNTS]
    for name in ("rating", "interval", "evidence", "judge\nalone", "votes\nalone", *counts):
        table.add_column(name, justify="right", no_wrap=name != "evidence")
    table.add_column("flags", overflow="fold")
    for row in board.to_dict("records"):
        reason = withheld_reason(row["flags"])
        is_hidden = math.isnan(row["rating"])
        interval = "-" if is_hidden else f"{elo(row['lower'])} to {elo(row['upper'])}"
        cells = (rank_text(row), row["model"], elo(row["rating"]), interval)
        alone = (elo(row["judge_rating"]), elo(row["human_rating"]))
        flags = row["flags"].removeprefix(WITHHELD + reason).lstrip(";")
        texts = map(
            printable,
            (*cells, row["evidence"] or "-", *alone, *(row[name] for name in COUNTS), flags),
        )
        table.add_row(*map(Text, texts))  # which nobody reads as markup
    return table


def show_leaderboard(
    console: Console,
    board: "pd.DataFrame",
    title: str,
    calibration: "pd.DataFrame | None" = None,
    summary: "pd.DataFrame | None" = None,
    predictions: "pd.DataFrame | None" = None,
) -> None:
    """Print a leaderboard, what it is rated by, and what the votes say of its judge."""
    from judgeline.intervals import withheld_reason
    from judgeline.report.evidence import beyond_lines, evidence_lines
    from judgeline.report.wording import basis_text

    console.print(leaderboard_table(board, title))
    if reason := withheld_reason(board["flags"].iloc[0]):
        console.print(f"[bold red]Judge withheld[/]: {plain(reason)}", soft_wrap=True)
    else:
        console.print(f"The judge alone: {plain(basis_text(board))}", soft_wrap=True)
    lines = beyond_lines(board)
    if calibration is not None and summary is not None:
        lines = evidence_lines(board, calibration, summary, predictions)
    for text, warns in lines:
        console.print("[yellow]Note[/]: " * warns + plain(text), soft_wrap=True)


def plain(text: object) -> str:
    """Return text from outside without markup and control characters, safe for a terminal."""
    return escape(printable(text))


def printable(text: object) -> str:
    """Return text from outside without control characters, where markup is none."""
    return "".join(c if c.isprintable() or c in "\n\t" else _HIDDEN for c in str(text))


def complain(kind: str, message: str, *, style: str = "bold red") -> None:
    """Print a message of one paragraph on standard error."""
    paragraph = " ".join(str(message).split())
    open_console(stderr=True).print(f"[{style}]{kind}:[/] {plain(paragraph)}", soft_wrap=True)


def elo(rating: float) -> str:
    """Return a rating in whole Elo points; a dash where there is none."""
    if math.isnan(rating):
        return "-"
    return f"{rating:.0f}" if math.isfinite(rating) else ("∞" if rating > 0 else "-∞")


def machine_readable(board: "pd.DataFrame", style: str) -> str:
    """Return a leaderboard as csv, json or md, inert in each (`judgeline.report.escaping`).

    In Markdown a missing value is a dash. In JSON it is null, and an infinite bound the text
    ``"inf"`` or ``"-inf"``, which JSON numbers cannot say.
    """
    from judgeline.report.escaping import in_csv, in_json, in_markdown, json_value, with_texts

    if style == "csv":
        return in_csv(board)
    known = board.astype(object).where(board.notna(), None)
    if style == "md":
        from judgeline.report.wording import MISSING

        numbers = board.select_dtypes("number").columns
        texts = [place for place, name in enumerate(board) if name not in numbers]
        shown = with_texts(known, in_markdown)
        layout = {"floatfmt": ".1f", "missingval": MISSING, "disable_numparse": texts}
        return str(shown.to_markdown(index=False, **layout)) + "\n"
    return in_json(json_value(known.to_dict("records"))) + "\n"


def plain_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a terminal table of rows; cells are plain text, never markup."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else plain(cell) for cell in row))
    return table


def show_ranked(console: Console, board: "Board") -> None:
    """Print the results of a ranking: rows left out, ratings, agreement, thresholds and files."""
    from judgeline.intervals import least_miscoverage
    from judgeline.io import questions_of
    from judgeline.report.wording import surrogacy_text

    _show_read(console, board.battles, board.source)
    ranking = board.ranking
    calibration = ranking.conformal_calibration
    show_leaderboard(console, ranking.leaderboard, "Ratings, in Elo", calibration, ranking.summary)
    method = ranking.leaderboard["method"].iloc[0]
    if questions_of(board.battles.scored) is None:
        console.print("Battles are taken as independent: none are known to share a question.")
    if found := surrogacy_text(ranking.judge_diagnostics):
        console.print(f"[yellow]Note[/]: {found}", soft_wrap=True)
    n_battles, settings = board.battles.n_battles, board.settings
    is_asked = settings.n_resamples is not None or board.battles.is_counted
    if not is_asked and not settings.resolved(n_battles).n_resamples:
        console.print(
            f"[yellow]Note[/]: the closed form of the standard error scales the intervals; of "
            f"{n_battles:,} battles no resamples are drawn unless --n-resamples asks for them, and "
            "std_error of heldout.csv is empty.",
            soft_wrap=True,
        )
    console.print(_agreement(ranking.summary, calibration))
    for line in _notes(calibration, method):
        console.print(f"[yellow]Note[/] {plain(line)}.", soft_wrap=True)
    used = calibration[calibration["method"] == method].iloc[0]
    least = least_miscoverage(int(used["n_models"]))
    if math.isinf(used["threshold"]) and used["miscoverage"] < least < 1:
        console.print(f"Finite intervals with these votes: --miscoverage {least:g} --force")
    show_files(console, board.files)


def _notes(calibration: "pd.DataFrame", ranking: str) -> list[str]:
    """Return a line per note on the method that ranks, and one line on all others."""
    lines, others = [], []
    for note, methods in calibration.groupby("note", sort=False)["method"]:
        names = ", ".join(methods)
        if note and ranking in [*methods]:
            whose = "every method" if len(methods) == len(calibration) else names
            lines.append(f"({whose}): {note}")
        elif note:
            others.append(f"{names}: {note}")
    if others:
        lines.append(f"(other methods; no rating above is theirs): {'; '.join(others)}")
    return lines


def _show_read(console: Console, battles: "JudgedBattles", source: str) -> None:
    """Print the number of battles read from a file, and the rows left out with their reasons."""
    from judgeline.io import battles_by

    rows = "row" if battles.n_quarantined == 1 else "rows"
    console.print(
        f"{battles.n_battles:,} battles of {plain(source)}, judged by "
        f"{plain(battles.judge)}; {battles.n_quarantined:,} {rows} quarantined, "
        f"{battles.n_unscored:,} battles without usable scores"
    )
    for note in filter(None, (battles.plain, *battles.notes)):
        console.print(f"[yellow]Note[/]: {plain(note)}.", soft_wrap=True)
    if battles.repeats:
        console.print(f"[yellow]Note[/]: {battles.repeats}")
    if len(battles.quarantine):
        counts = battles_by(battles.quarantine["reason"], battles.quarantine)
        console.print(plain_table("Quarantined rows", ("reason", "rows"), counts.items()))
        share = battles.quarantined_share
        if share > _MANY:
            console.print(
                f"[bold yellow]Warning[/]: {share:.0%} of the rows could not be used, such as: "
                f"{plain(battles.quarantine['detail'].iloc[0])}. Ratings speak of the others only."
            )


def _agreement(summary: "pd.DataFrame", calibration: "pd.DataFrame") -> Table:
    table = Table(title="Agreement with human ratings, each model held out", title_justify="left")
    table.add_column("method")
    for name in ("mean error (Elo)", "Spearman", "Kendall", "mean beta", "threshold"):
        table.add_column(name, justify="right")
    threshold = calibration.set_index("method")["threshold"]
    for row in summary.to_dict("records"):
        numbers = (row["mae"], row["spearman"], row["kendall"], row["mean_beta"])
        precise = (f"{numbers[0]:.1f}", *(f"{number:.3f}" for number in numbers[1:]))
        shown = (text.replace("nan", "-") for text in precise)
        table.add_row(row["method"], *shown, f"{threshold[row['method']]:.2f}")
    return table


_OF_THE_JUDGE = {
    "chance": "by the labels the judge is no better than chance on {}: look at its codes of pass "
    "and fail.",
    "labels-cannot-tell": "labels cannot tell whether the judge is better than chance on {}: label "
    "more answers.",
}
"""By status of the corrected pass rates of systems."""


def show_plan(console: Console, found: "Plan", labels: Any = None) -> None:
    """Print what judges are worth, their frontiers, and labels to buy: rows and notes."""
    from judgeline.planning import frontier_note

    for line in found.lines():
        console.print(plain(line), soft_wrap=True)
    columns = ("judge", "calls a model", "votes on it", "half-width, Elo", "cost")
    rows = [
        (row.judge, f"{row.n_calls:,.0f}", row.n_votes, elo(row.half_width), _money(row.cost))
        for row in found.frontier.itertuples()
    ]
    console.print(plain_table("What narrows one model's interval", columns, rows))
    console.print(frontier_note(found.frontiers), soft_wrap=True)
    if labels is not None:
        title = "Labels for shorter intervals of win rates"
        console.print(plain_table(title, ("of", "chosen by", "plan"), labels[0]))
        for note in labels[1]:
            console.print(f"[yellow]Note[/], {plain(note)}", soft_wrap=True)


def _money(cost: float) -> str:
    return "-" if math.isnan(cost) else f"{cost:,.2f}"


def show_rates(console: Console, rates: "pd.DataFrame", miscoverage: float) -> None:
    """Print each system's pass rate, the labels' and the judge's own beside it, and its basis."""
    from judgeline.io import ONE_SYSTEM
    from judgeline.winrate import RATE_RULE, RATES

    def cell(row: dict[str, Any]) -> str:
        """Return a rate with its interval; a dash where there is none."""
        if row["status"] != "ok":
            return "-"
        return f"{row['rate']:.1%} ({row['lower']:.1%} to {row['upper']:.1%})"

    title = f"Share of answers that people would pass, {1 - miscoverage:.0%} intervals"
    rows = []
    for system, table in rates.groupby("system", sort=False):
        by = {row["estimator"]: row for row in table.to_dict("records")}
        headline = table.loc[table["headline"], "estimator"].tolist()
        shown = cell(by[headline[0]]) if headline else "-"
        counts = f"{by['judge']['n_answers']:,}", f"{by['judge']['n_labels']:,}"
        why = headline[0] if headline else by["prediction-powered"]["note"]
        rows.append((system, shown, why, cell(by["labels"]), cell(by["judge"]), *counts))
    names = ("system", "pass rate", "estimator", "labels alone", "judge alone", "answers", "labels")
    console.print(plain_table(title, names, rows))
    for estimator in dict.fromkeys(rates.loc[rates["headline"], "estimator"]):
        console.print(f"{estimator}: {RATES[estimator]}.", soft_wrap=True)
    console.print(RATE_RULE, soft_wrap=True)
    for status, sentence in _OF_THE_JUDGE.items():
        if named := rates.loc[rates["status"].eq(status), "system"].tolist():
            told = sentence.format(plain(", ".join(map(str, named[:5]))))
            console.print(f"[yellow]Note[/]: {told}", soft_wrap=True)
    if {*rates["system"]} == {ONE_SYSTEM}:
        console.print("All answers are of one system: no column names another.", soft_wrap=True)


def show_plain(
    console: Console, battles: "JudgedBattles", ratings: "pd.DataFrame", source: str
) -> None:
    """Print plain ratings, a table for each source, and what they are by."""
    from judgeline.uncalibrated import WHOSE

    shown = battles if battles.judge else battles._replace(judge="people")
    _show_read(console, shown, source)
    for whose, table in ratings.groupby("source", sort=False):
        rows = []
        for row in table.to_dict("records"):
            interval = (
                "-" if math.isnan(row["lower"]) else f"{elo(row['lower'])} to {elo(row['upper'])}"
            )
            rows.append((row["model"], elo(row["rating"]), interval, f"{row['n_battles']:,}"))
        console.print(
            plain_table(f"Ratings of {whose}", ("model", "rating", "interval", "battles"), rows)
        )
        console.print(f"Bradley-Terry {WHOSE[str(whose)]}; 1500 is the mean.", soft_wrap=True)
        if n_apart := int(table["component"].max()):
            console.print(
                f"[yellow]Note[/]: no battles tie {n_apart + 1} sets of models together: ratings "
                "of two sets do not compare (column component of --format csv).",
                soft_wrap=True,
            )


def show_agreement(console: Console, found: "pd.DataFrame", source: str) -> None:
    """Print how far a judge agrees with gold labels."""

    def cell(row: Mapping[str, Any]) -> tuple[str, ...]:
        """Return a measure's name, value, interval and number of rows."""
        numbers = [row[name] for name in ("value", "lower", "upper")]
        is_share = row["measure"] not in ("kappa", "rank correlation")
        texts = ["-" if math.isnan(x) else f"{x:.1%}" if is_share else f"{x:.2f}" for x in numbers]
        return row["measure"], texts[0], f"{texts[1]} to {texts[2]}", f"{row['n']:,}"

    rows = [cell(row) for row in found.to_dict("records")]
    console.print(
        plain_table(f"Gold labels of {plain(source)}", ("measure", "value", "interval", "n"), rows)
    )
    if len(rows) == 1:
        console.print(
            "These are labels without verdicts: so often a judge agrees that reads nothing. Add "
            "its verdicts as a column verdict, in the same codes.",
            soft_wrap=True,
        )


def show_splits(console: Console, splits: "pd.DataFrame", n_labels: int) -> None:
    """Print which further answers of each system people should label."""
    from judgeline.winrate.labels import paying_text

    names = ("system", "passed", "failed", "label more that pass", "that fail")
    widths, rows = ("half-width now", "half-width then"), []
    for row in splits.to_dict("records"):
        own = [f"{row[name]:.0f}" for name in ("more_passed", "more_failed")]
        own += [f"{row[name]:.1%}" for name in ("half_width_now", "half_width")]
        counts = f"{row['n_passed']:,}", f"{row['n_failed']:,}"
        rows.append((row["system"], *counts, *(own if row["status"] == "ok" else ["-"] * 4)))
    title = f"{n_labels:,} labels of each system in all, and the half-width of 'corrected'"
    console.print(plain_table(title, (*names, *widths), rows))
    for row in splits[splits["status"].eq("ok")].to_dict("records"):
        fewer = min(row["n_passed"], row["n_failed"])
        if worth := paying_text(row["pays_from"], row["pays_to"], fewer):
            console.print(f"{plain(row['system'])}: {worth}", soft_wrap=True)
    for row in splits[splits["note"].ne("")].to_dict("records"):
        noted = f"[yellow]Note[/], {plain(row['system'])}: {plain(row['note'])}"
        console.print(noted, soft_wrap=True)


def show_files(console: Console, files: dict[str, Path]) -> None:
    """Print where the results are, one path a line so that it can be copied."""
    for path in files.values():
        console.print(f"  {plain(path)}", soft_wrap=True)


def show_diagnosis(console: Console, found: "Diagnosis") -> None:
    """Print a diagnosis, its titles in bold."""
    for title, sentence in found.lines():
        console.print(f"[bold]{title}[/]: " * bool(title) + plain(sentence), soft_wrap=True)
