"""The page's section on scoring methods: all of them on the same battles, for every judge."""

from collections.abc import Mapping
from functools import partial

import pandas as pd

from judgeline.report.companions import Companion, Table
from judgeline.report.drawing import Chart
from judgeline.report.figures import Illustration
from judgeline.report.folded import scoring_finding
from judgeline.report.grid import make_grid
from judgeline.report.wording import count, method_words, number
from judgeline.tables.elo import MEANINGS

_one = partial(number, digits=1)

_RATED = (
    "named; method; meaning: What scores a battle; n_models; mae; mae_rescaled; stretch; spearman; "
    "coverage; median_width; n_calls | of the judge; prompt_tokens: Tokens read; "
    "completion_tokens: Tokens written; n_battles | common to all"
)
_ABSENT = "named; method; meaning: What would score a battle; note: Why it is not here"


def methods_section(comparison: pd.DataFrame, names: Mapping[str, str]) -> Companion:
    """Return the comparison of all scoring methods of a corpus."""
    named = comparison.assign(
        named=[names.get(slug, slug) for slug in comparison["judge"]],
        meaning=[MEANINGS.get(method, "") for method in comparison["method"]],
    )
    rated = named[named["mae"].notna()].sort_values("mae", kind="stable")
    absent = named[named["mae"].isna()]
    tables = []
    if len(rated):
        best = set(rated.groupby("judge")["mae"].idxmin())
        grid = make_grid(
            rated.reset_index(),
            "One row per judge and scoring method, the smallest error first; each judge's best is "
            "marked",
            _RATED,
            marked=lambda row: row.index in best,
        )
        tables.append(Table("methods-table", grid, is_central=True))
    if len(absent):
        caption = "One row per scoring method without numbers"
        tables.append(Table("methods-absent", make_grid(absent, caption, _ABSENT)))
    figures = [_figure(rated)] if len(rated) else []
    finding = scoring_finding(rated)
    return Companion("Scoring methods", _sentences(rated), tables, figures, finding)


def _sentences(rated: pd.DataFrame) -> list[str]:
    told = [
        "Whatever scores battles can feed the same ratings: here each scoring method of a judge "
        "goes through the same leave-one-model-out fit and the same conformal step, on the "
        "battles that all of the judge's methods scored. What was learnt from votes saw none of "
        "the model being rated."
    ]
    for _, own in rated.groupby("named", sort=False):
        best = own.iloc[0]
        told.append(
            f"{best['named']}: nearest to people by {method_words(best['method'])}, "
            f"{_one(best['mae'])} Elo off on average over {count(best['n_models'])} models and "
            f"{count(best['n_battles'])} battles, for {count(best['n_calls'])} calls."
        )
    return told


def _figure(rated: pd.DataFrame) -> Illustration:
    title = "Error of every scoring method"
    order = {method: place for place, method in enumerate(MEANINGS)}
    table = rated.assign(order=rated["method"].map(order)).sort_values(["order", "named"])
    best = rated.iloc[0]
    svg = draw_method_errors(table).svg(
        key="methods-figure",
        title=title,
        description=f"Mean absolute error of {len(rated)} judges by methods, smallest "
        f"{_one(best['mae'])} Elo ({best['named']}, {best['method']}).",
    )
    caption = (
        "One row per scoring method, one mark per judge: the mean absolute difference between its "
        "ratings and the human ones."
    )
    return Illustration(title, caption, svg)


_MARKS, _ROLES = "osDv^<>PX*", ("soft", "hard", "new", "ink")


def draw_method_errors(table: pd.DataFrame) -> Chart:
    """Draw the error of each method in a row, with a mark of its own for each judge."""
    methods = list(dict.fromkeys(table["method"]))
    place = {method: row for row, method in enumerate(methods)}
    reach = 0.0, 1.08 * float(table["mae"].max()) or 1.0
    names = list(map(method_words, methods))
    chart = Chart("mean absolute error (Elo points)", names=names, x_range=reach)
    for method, worst in table.groupby("method")["mae"].max().items():
        chart.lines([0.0, worst], place[method], "grid")
    for turn, (judge, own) in enumerate(table.groupby("named", sort=True)):
        mark, role = _MARKS[turn % len(_MARKS)], _ROLES[turn % len(_ROLES)]
        chart.marks(
            own["mae"], own["method"].map(place), role, mark, size=6, hollow=True, label=str(judge)
        )
    return chart
