"""The page's section on scoring methods: all of them on the same battles, for every judge."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from judgeline.report.companions import Companion, Table
from judgeline.report.drawing import Palette, draw_svg
from judgeline.report.figures import Illustration, name_rows, rows_height
from judgeline.report.grid import make_grid
from judgeline.report.wording import count, method_words, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEANINGS: dict[str, str] = {
    "hard": "rubric: who scored higher in both orders",
    "soft": "rubric: calibrated score difference",
    "choice": "choice: the letter said in both orders",
    "perplexity": "choice: the order that perplexed the judge less",
    "likelihood": "choice: probabilities of the letters, as published",
    "likelihood-calibrated": "choice: the same, with a slope fitted to votes",
    "score-plain": "single scores as said, with a slope fitted to votes",
    "score": "single scores, expected, with a slope fitted to votes",
    "btl": "rubric: explanation and score, regressed on votes",
    "btl2": "single scores: both reasons and scores, regressed on votes",
}
"""What each scoring method is, in a few words, in the order in which they are shown."""

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
    return Companion("Scoring methods", _sentences(rated), tables, figures)


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
    svg = draw_svg(
        lambda axes, palette: draw_method_errors(axes, palette, table),
        key="methods-figure",
        title=title,
        description=f"Mean absolute error of {len(rated)} judges by methods, smallest "
        f"{_one(best['mae'])} Elo ({best['named']}, {best['method']}).",
        height=rows_height(table["method"].nunique()) + 0.3,
    )
    caption = (
        "One row per scoring method, one mark per judge: the mean absolute difference between its "
        "ratings and the human ones."
    )
    return Illustration(title, caption, svg)


_MARKERS = "osDv^<>PX*"


def draw_method_errors(axes: "Axes", palette: Palette, table: pd.DataFrame) -> None:
    """Draw the error of each method in a row, a marker for each judge."""
    methods = list(dict.fromkeys(table["method"]))
    place = {method: row for row, method in enumerate(methods)}
    worst = table.groupby("method")["mae"].max()
    axes.hlines(range(len(methods)), 0, worst.reindex(methods), color=palette["grid"], lw=1.2)
    colours = (palette["soft"], palette["hard"], palette["new"], palette["ink"])
    for turn, (judge, own) in enumerate(table.groupby("named", sort=True)):
        _marks(axes, own, place, _MARKERS[turn % len(_MARKERS)], colours[turn % 4], str(judge))
    axes.set_xlim(0, 1.08 * table["mae"].max())
    name_rows(axes, pd.Series(methods).map(method_words))
    axes.set_xlabel("mean absolute error (Elo points)")
    axes.figure.legend(loc="outside upper left", ncol=2, handletextpad=0.4, columnspacing=1.4)


def _marks(
    axes: "Axes", own: pd.DataFrame, place: Mapping[str, int], marker: str, colour: Any, name: str
) -> None:
    rows = [place[method] for method in own["method"]]
    axes.plot(own["mae"], rows, marker, color=colour, mfc="none", ms=6, mew=1.3, label=name)
