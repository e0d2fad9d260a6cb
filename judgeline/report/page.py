"""The page: the sections of every judge put into one self-contained HTML file.

Nothing in the file refers to anything outside it, and its own content policy forbids the
network. Every name that comes from data passes through the template's escaping, and the page as a
whole through `inert`.
"""

import base64
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from judgeline.intervals import COUNTS
from judgeline.report.battles import MOST_PER_PAGE, MOST_TEXT
from judgeline.report.companions import cost_grid
from judgeline.report.escaping import inert, shortened
from judgeline.report.folded import costs_finding, provenance_finding
from judgeline.report.grid import columns, sort_key
from judgeline.report.judge_tables import JudgeTables, require_columns
from judgeline.report.methods_table import methods_section
from judgeline.report.sections import (
    boards_beside,
    comparison_grids,
    pooled_section,
    section_of,
)
from judgeline.report.wording import (
    count,
    number,
    span,
    status_words,
    unvoted_text,
)
from judgeline.tables.comparison import COMPARISON_COLUMNS

if TYPE_CHECKING:
    import jinja2

_UNRATED = (
    "No judge has ratings on the human scale here: each was stopped by a quality gate, such as "
    "scores that contradict people. What follows compares their scoring methods all the same."
)
TEMPLATES = Path(__file__).parent / "templates"


def write_report(
    path: Path,
    *,
    title: str,
    corpus_name: str,
    simulated: bool,
    judges: Sequence[JudgeTables],
    provenance: Mapping[str, str],
    comparison: pd.DataFrame | None,
    methods: pd.DataFrame | None = None,
    costs: pd.DataFrame | None = None,
    left_out: Sequence[str] = (),
    pooled: pd.DataFrame | None = None,
) -> Path:
    """Write the report of a corpus as one HTML file, atomically.

    The page says at every point of it whether the corpus is simulated. It begins with the board of
    the judge that is nearest to people; then judges are compared, and each has a folded section.
    There is one judge at least unless there are `methods` to show; `left_out` are
    judges with a leaderboard and no section, since their last run did not get through, `pooled` is
    the board of all together. Provenance stands at the end. Equal arguments give an equal file.

    Raises
    ------
    ValueError
        If there is no judge, a slug comes twice, or the comparison lacks a column.
    """
    slugs = [tables.judge for tables in judges]
    if len(set(slugs)) < len(slugs) or not (slugs or methods is not None):
        raise ValueError(f"a report needs judges, each once; got {slugs}")
    judges = sorted(judges, key=_error)
    if comparison is not None:
        require_columns(comparison, COMPARISON_COLUMNS, "judge_comparison")
    page = _environment().get_template("page.html.j2")
    script = "\n".join(
        (TEMPLATES / name).read_text(encoding="utf-8") for name in ("sort.js", "browse.js")
    )
    html = page.render(
        title=title,
        corpus_name=corpus_name,
        simulated=simulated,
        headline=_headline(judges),
        verdict=_verdict(judges),
        sections=[
            section_of(tables, f"j{place}", room=MOST_PER_PAGE // len(judges))
            for place, tables in enumerate(judges, start=1)
        ],
        comparison=[] if comparison is None else comparison_grids(comparison, judges),
        boards=boards_beside(judges, pooled),
        pooled=None if pooled is None else pooled_section(pooled, judges[0]),
        unrated="" if judges else _UNRATED,
        left_out=", ".join(left_out),
        methods=None
        if methods is None
        else methods_section(methods, {one.judge: one.display_name for one in judges}),
        costs=cost_grid(costs),
        costs_finding="" if costs is None or costs.empty else costs_finding(costs),
        provenance=dict(provenance),
        provenance_finding=provenance_finding(provenance),
        policy=policy(script),
        style=Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704
        script=Markup(script),  # noqa: S704
    )
    return write_atomically(path, inert(html))


def _error(tables: JudgeTables) -> float:
    """Return the mean error of the ranking method, in Elo points; infinity where none is shown."""
    errors = tables.summary.set_index("method")["mae"]
    error = float(errors.get(tables.ranking_method, math.inf))
    return math.inf if tables.withheld or math.isnan(error) else error


def _verdict(judges: Sequence[JudgeTables]) -> str:
    """Return the sentence to read first: how near the nearest judge is to people, and who leads."""
    if not judges or math.isinf(_error(judges[0])):
        return ""
    nearest, *others = judges
    board = nearest.leaderboard
    also = ", ".join(
        f"{one.display_name} {number(_error(one), 0)}" for one in others if _error(one) < math.inf
    )
    return (
        f"{unvoted_text(board)} "
        f"Ratings by {nearest.display_name} are {number(_error(nearest), 0)} Elo points from those "
        f"of people on average, each model rated without its own votes"
        f"{f' ({also})' if also else ''}. {_leader(board.iloc[0])}"
    ).strip()


def _leader(first: pd.Series) -> str:
    """Return the leading model and its evidence; nothing if it has few battles."""
    if "few-battles" in first["flags"]:
        return ""
    interval = span(first["lower"], first["upper"])
    return f"{first['model']} leads: {number(first['rating'])}, {interval}, by {first['evidence']}."


def _environment() -> "jinja2.Environment":
    import jinja2  # a printed leaderboard uses the words of the report alone

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Only drawings pass unescaped; they escape the names that they hold.
    environment.filters["drawing"] = lambda svg: Markup(svg)  # noqa: S704
    environment.filters["shortened"] = lambda text: shortened(inert(text), MOST_TEXT)
    environment.filters |= {"number": number, "count": count, "span": span}
    environment.filters |= {"key": sort_key, "status": status_words}
    environment.globals["counts"] = columns("; ".join(f"{name} ~count" for name in COUNTS))
    return environment


def policy(script: str) -> str:
    """Content policy: our one script by its hash, inline styles, and no network at all."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def write_atomically(path: Path, text: str) -> Path:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        return unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _headline(judges: Sequence[JudgeTables]) -> list[tuple[str, str]]:
    """Counts of the whole corpus, each with its unit in words."""
    if not judges:
        return []
    boards = pd.concat([tables.leaderboard[["model", "human_rating"]] for tables in judges])
    new = boards.loc[boards["human_rating"].isna(), "model"].nunique()
    battles = pd.concat(
        [
            tables.scored_battles.filter(["battle_id", "human_outcome", "n_battles"])
            for tables in judges
        ]
    )
    if len(judges) > 1:
        battles = battles.drop_duplicates("battle_id")
    each = battles.get("n_battles", pd.Series(1, index=battles.index))
    has_vote = battles["human_outcome"].notna()
    return [
        (count(boards["model"].nunique()), "models"),
        (count(new), "without human votes"),
        (count(each.sum()), "judged battles"),
        (count((each * has_vote).sum()), "human votes"),
        (count(len(judges)), "judge" if len(judges) == 1 else "judges"),
    ]
