"""Charts: what is drawn on the axes, in the colours of a palette.

Hard ratings in squares, soft ones in dots, the headline in triangles, human ratings in hollow
diamonds, models without votes in stars and missed ones in crosses, so that no chart depends on
colour. Ratings and residuals are in Elo points, slopes in logits per rubric point.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.elo import HEADLINE
from judgeline.intervals import missed
from judgeline.report.drawing import Palette, printable
from judgeline.report.wording import method_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

RULERS = {"hard": ("hard", "s"), "soft": ("soft", "o"), HEADLINE: ("headline", "^")}
"""The methods that figures compare, with their colours and markers."""

_ROW_INCHES = 0.21
_NAME_LENGTH = 30


def straight_line(rated: pd.DataFrame, column: str) -> tuple[float, float] | None:
    """Return least-squares slope and intercept over human rating; None where there is no line."""
    x, y = rated["human_rating"].to_numpy(float), rated[column].to_numpy(float)
    if x.size < 3 or np.ptp(x) == 0:
        return None
    slope, intercept = np.polyfit(x - x.mean(), y, 1)
    return float(slope), float(intercept - slope * x.mean())


def rows_height(n_rows: int) -> float:
    """Return the height of a chart with one row per name, in inches."""
    return 1.05 + _ROW_INCHES * n_rows


def _short(name: Any) -> str:
    text = printable(str(name))
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"


def name_rows(axes: "Axes", names: pd.Series) -> None:
    """Give a chart one row per name, the first on top."""
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _legend(axes: "Axes", columns: int, heading: str | None = None) -> None:
    axes.figure.legend(
        loc="outside upper left",
        ncol=columns,
        handletextpad=0.4,
        columnspacing=1.4,
        title=heading,
        title_fontproperties={"weight": "bold", "size": 11},
        alignment="left",
    )


def draw_intervals(
    axes: "Axes", palette: Palette, leaderboard: pd.DataFrame, heading: str | None = None
) -> None:
    """Draw ratings with their intervals, best on top, and human ratings; dashed if unbounded."""
    table = leaderboard.reset_index(drop=True)
    new = table["human_rating"].isna()
    role = np.where(new, "new", np.where(missed(table), "missed", "headline"))
    _draw_whiskers(axes, [palette[name] for name in role], table)
    for name, marker, size, label in (
        ("headline", "o", 5, "judge"),
        ("missed", "X", 7, "judge, missed"),
        ("new", "*", 9, "judge, no votes"),
    ):
        group = table[role == name]
        if len(group):
            colour = palette[name]
            axes.plot(
                group["rating"], group.index, marker, color=colour, ms=size, mew=0, label=label
            )
    if not new.all():
        _draw_human(axes, palette, table[~new])
    name_rows(axes, table["model"])
    for place in np.flatnonzero(new):
        axes.get_yticklabels()[place].set_color(palette["new"])
    axes.set_xlabel("rating (Elo points)")
    _legend(axes, 4, heading)


def _draw_human(axes: "Axes", palette: Palette, rated: pd.DataFrame) -> None:
    axes.plot(
        rated["human_rating"],
        rated.index,
        "D",
        mfc="none",
        mec=palette["ink"],
        ms=4.5,
        mew=0.9,
        label="human",
    )


def _draw_whiskers(axes: "Axes", colours: Sequence[str], table: pd.DataFrame) -> None:
    ends = table[["lower", "upper"]].to_numpy(float)
    bounded = np.isfinite(ends).all(axis=1)
    shown = table[["lower", "upper", "rating", "human_rating"]].to_numpy(float)
    shown = shown[np.isfinite(shown)]
    margin = 0.04 * max(float(np.ptp(shown)), 50.0)
    limits = float(shown.min()) - margin, float(shown.max()) + margin
    axes.set_xlim(limits)
    for row, (colour, (low, high)) in enumerate(zip(colours, ends, strict=True)):
        if bounded[row]:
            axes.plot([low, high], [row, row], color=colour, lw=2.2, alpha=0.45)
        else:
            axes.plot(limits, [row, row], color=colour, lw=1.0, ls=(0, (3, 3)), alpha=0.7)


def draw_ruler(axes: "Axes", palette: Palette, rated: pd.DataFrame) -> None:
    """Draw judge over human rating by every ruler, a model's marks joined by a line."""
    ends = rated.groupby("human_rating")["rating"].agg(["min", "max"])
    axes.vlines(ends.index, ends["min"], ends["max"], color=palette["grid"], lw=1.2)
    edges = [rated["human_rating"].min(), rated["human_rating"].max()]
    axes.plot(edges, edges, color=palette["muted"], lw=1, ls=(0, (4, 3)), label="agreement")
    _draw_marks(axes, palette, rated, "rating")
    axes.set_xlabel("human rating (Elo points)")
    axes.set_ylabel("judge rating (Elo points)")
    _legend(axes, 4)


def draw_residuals(axes: "Axes", palette: Palette, rated: pd.DataFrame) -> None:
    """Draw residual over human rating by every ruler, each with its least-squares line."""
    axes.axhline(0, color=palette["muted"], lw=1, ls=(0, (4, 3)))
    _draw_marks(axes, palette, rated, "residual")
    for method, (role, _) in RULERS.items():
        group = rated[rated["method"] == method]
        line = straight_line(group, "residual")
        if line is not None:
            x = np.array([group["human_rating"].min(), group["human_rating"].max()])
            axes.plot(x, line[0] * x + line[1], color=palette[role], lw=1.2, alpha=0.6)
    axes.set_xlabel("human rating (Elo points)")
    axes.set_ylabel("residual (Elo points)")
    _legend(axes, 3)


def _draw_marks(axes: "Axes", palette: Palette, rated: pd.DataFrame, column: str) -> None:
    for method, (role, marker) in RULERS.items():
        group = rated[rated["method"] == method]
        if group.empty:
            continue
        axes.plot(
            group["human_rating"],
            group[column],
            marker,
            color=palette[role],
            ms=5.5,
            mew=0,
            label=method_words(method),
        )


def draw_reliability(
    axes: "Axes", palette: Palette, predicted: Floats, observed: Floats, bounds: Floats
) -> None:
    """Draw observed over predicted shares, shape (k,), with the observed ones' bounds (2, k)."""
    axes.plot([0.5, 1], [0.5, 1], color=palette["muted"], lw=1, ls=(0, (4, 3)), label="agreement")
    axes.errorbar(
        predicted,
        observed,
        yerr=np.abs(bounds - observed),
        fmt="o",
        color=palette["soft"],
        ecolor=palette["soft"],
        elinewidth=1,
        ms=5.5,
        mew=0,
        label="votes",
    )
    axes.set_xlabel("predicted share of votes with the judge")
    axes.set_ylabel("observed share")
    axes.set_xlim(0.48, 1.02)
    _legend(axes, 2)


def draw_betas(axes: "Axes", palette: Palette, beta_folds: pd.DataFrame) -> None:
    """Draw every fold's slope with one standard error, and a cross where there is none."""
    table = beta_folds.sort_values("held_out_model").reset_index(drop=True)
    fitted = table["status"] == "ok"
    usable = table[fitted]
    axes.axvline(usable["beta"].median(), color=palette["muted"], lw=1, ls=(0, (4, 3)))
    axes.errorbar(
        usable["beta"],
        usable.index,
        xerr=usable["std_error"],
        fmt="o",
        color=palette["soft"],
        ecolor=palette["soft"],
        elinewidth=1,
        ms=5,
        mew=0,
    )
    left = np.full(int((~fitted).sum()), axes.get_xlim()[0])
    axes.plot(left, table.index[~fitted], "x", color=palette["hard"], ms=6)
    name_rows(axes, table["held_out_model"])
    axes.set_xlabel("beta (logits per rubric point)")


def draw_errors(axes: "Axes", palette: Palette, summary: pd.DataFrame, ranking_method: str) -> None:
    """Draw the mean absolute error of every method, the ranking one filled."""
    table = summary.reset_index(drop=True)
    ranking = (table["method"] == ranking_method).to_numpy()
    axes.hlines(table.index, 0, table["mae"], color=palette["grid"], lw=1.2)
    colour = palette["headline"]
    for rows, fill in ((ranking, colour), (~ranking, "none")):
        axes.plot(table["mae"][rows], table.index[rows], "o", mfc=fill, mec=colour, ms=6, mew=1.1)
    axes.set_xlim(0, 1.08 * table["mae"].max())
    name_rows(axes, table["method"].map(method_words))
    axes.set_xlabel("mean absolute error (Elo points)")
