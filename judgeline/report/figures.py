"""The report's figures: what each shows, in words and as a drawing.

A figure that cannot be drawn says why instead. Hard ratings are drawn in squares, soft ones in
dots, the headline in triangles, human ratings in hollow diamonds, models without votes in stars and
missed ones in crosses, so that none depends on colour. Ratings and residuals are in Elo points.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from judgeline.diagnostics import expected_calibration_error, reliability_curve
from judgeline.elo import HEADLINE, fit_beta
from judgeline.intervals import missed
from judgeline.report.drawing import Chart, Palette, draw_png, draw_svg, printable
from judgeline.report.wording import method_words, number, status_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


class Illustration(NamedTuple):
    """A figure of the report; without a drawing, the caption says why there is none."""

    title: str
    caption: str
    svg: str


def _drawn(
    chart: Chart, key: str, title: str, caption: str, description: str, height: float
) -> Illustration:
    svg = draw_svg(chart, key=key, title=title, description=description, height=height)
    return Illustration(title, caption, svg)


def interval_figure(leaderboard: pd.DataFrame, *, key: str, coverage: str) -> Illustration:
    """Return the ratings of a leaderboard with their intervals, in Elo points."""
    title = "Ratings and their intervals"
    rated = leaderboard[leaderboard["rating"].notna()]
    if rated.empty:
        return Illustration(title, "Not drawn: no model has a rating by this method.", "")
    caption = (
        f"Filled: the judge's rating with its {coverage} interval. Hollow diamonds: the human "
        "rating. Stars: models without human votes. Crosses: the interval missed the human rating."
    )
    unbounded = int(np.isinf(leaderboard[["lower", "upper"]]).any(axis=1).sum())
    if unbounded:
        caption += f" Dashed: {unbounded} of {len(leaderboard)} intervals are unbounded."
    best, worst = rated.iloc[0], rated.iloc[-1]
    description = (
        f"{len(leaderboard)} models from {best['model']} at {number(best['rating'])} Elo down to "
        f"{worst['model']} at {number(worst['rating'])} Elo."
    )
    return _drawn(
        lambda axes, palette: draw_intervals(axes, palette, leaderboard),
        key,
        title,
        caption,
        description,
        rows_height(len(leaderboard)),
    )


def leaderboard_figure_png(leaderboard: pd.DataFrame, path: Path, title: str) -> Path:
    """Write the leaderboard's interval plot as a PNG file, atomically, and return its path.

    ValueError if no model of the leaderboard has a rating.
    """
    if leaderboard["rating"].isna().all():
        raise ValueError(f"leaderboard has no rating: nothing to draw in {path}")
    content = draw_png(
        lambda axes, palette: draw_intervals(axes, palette, leaderboard, printable(title)),
        key="leaderboard",
        height=rows_height(len(leaderboard)) + 0.3,
    )
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(content)
    return partial.replace(path)


def ruler_figure(heldout: pd.DataFrame, *, key: str) -> Illustration:
    """Return judge rating against human rating, one mark per voted model and ruler."""
    title = "Judge rating by human rating"
    rated = _rated(heldout)
    if rated.empty:
        return Illustration(title, "Not drawn: no model has a human rating.", "")
    caption = (
        "Where the judge's preferences put a model (hard), where calibrated scores put it (soft), "
        "and where the headline does. On the line, judge and humans agree."
    )

    def draw(axes: "Axes", palette: Palette) -> None:
        ends = rated.groupby("human_rating")["rating"].agg(["min", "max"])
        axes.vlines(ends.index, ends["min"], ends["max"], color=palette["grid"], lw=1.2)
        edges = [rated["human_rating"].min(), rated["human_rating"].max()]
        axes.plot(edges, edges, color=palette["muted"], lw=1, ls=(0, (4, 3)), label="agreement")
        _draw_marks(axes, palette, rated, "rating")
        axes.set_xlabel("human rating (Elo points)")
        axes.set_ylabel("judge rating (Elo points)")
        _legend(axes, 4)

    return _drawn(
        draw,
        key,
        title,
        caption,
        f"Scatter of judge rating against human rating. {_slopes(rated, 'rating')}",
        4.4,
    )


def residual_figure(heldout: pd.DataFrame, *, key: str) -> Illustration:
    """Return residual against human rating by every ruler: a ramp is a stretched one."""
    title = "Residual by human rating"
    rated = _rated(heldout)
    if rated.empty:
        return Illustration(title, "Not drawn: no model has a human rating.", "")
    slopes = _slopes(rated, "residual")
    caption = (
        "Judge rating minus human rating: a rising line means a stretched scale, a falling one "
        f"a compressed scale. {slopes}"
    )

    def draw(axes: "Axes", palette: Palette) -> None:
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

    return _drawn(
        draw,
        key,
        title,
        caption,
        f"Scatter of residuals around zero with straight lines. {slopes}",
        3.6,
    )


def reliability_figure(scored_battles: pd.DataFrame, *, key: str) -> Illustration:
    """Return how often humans agree with the judge against how often they were said to.

    The predicted share is the logistic function of the pooled slope times the absolute score
    difference, in ten bins of equal mass.
    """
    title = "Reliability of the calibrated scores"
    score, outcome = scored_battles["score_difference"], scored_battles["human_outcome"]
    fit = fit_beta(score, outcome)
    if fit.status != "ok":
        reason = f"Not drawn: beta has no value ({status_words(fit.status)})."
        return Illustration(title, reason, "")
    bins = reliability_curve(score, outcome, fit.beta)
    gap = number(100 * expected_calibration_error(bins), 1)
    caption = (
        f"{bins.n.sum()} decisive votes in {bins.n.size} bins of equal mass, with "
        f"beta = {number(fit.beta, 3)} logits per rubric point from all votes; bars are 95 % "
        f"Wilson intervals. Mean gap to the line: {gap} percentage points."
    )
    bounds = wilson_interval(bins.mean_y, bins.n)

    def draw(axes: "Axes", palette: Palette) -> None:
        axes.plot(
            [0.5, 1], [0.5, 1], color=palette["muted"], lw=1, ls=(0, (4, 3)), label="agreement"
        )
        axes.errorbar(
            bins.mean_x,
            bins.mean_y,
            yerr=np.abs(bounds - bins.mean_y),
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

    return _drawn(draw, key, title, caption, caption, 4.0)


def wilson_interval(
    share: NDArray[np.float64], n: NDArray[np.int64], *, coverage: float = 0.95
) -> NDArray[np.float64]:
    """Return the ends of Wilson's (1927, JASA 22) interval of each share, shape (2, k)."""
    z = ndtri((1 + coverage) / 2)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # At a share of 0 or 1 one end is the share itself; rounding must not cross it.
    return np.array([np.minimum(centre - half, share), np.maximum(centre + half, share)])


def beta_figure(beta_folds: pd.DataFrame, *, key: str) -> Illustration:
    """Return the slope of every fold, in logits per rubric point, with its standard error."""
    title = "Beta of every fold"
    usable = beta_folds[beta_folds["status"] == "ok"]
    if usable.empty:
        return Illustration(title, "Not drawn: no fold has a slope; see the flags.", "")
    caption = (
        "The slope from score difference to log-odds, fitted without the named model's votes; "
        "bars span one standard error either way. The vertical line is the median."
    )
    failed = len(beta_folds) - len(usable)
    if failed:
        caption += f" Crosses: {failed} of {len(beta_folds)} folds have no slope."
    low, high = usable["beta"].min(), usable["beta"].max()

    def draw(axes: "Axes", palette: Palette) -> None:
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

    return _drawn(
        draw,
        key,
        title,
        caption,
        f"{len(usable)} slopes from {number(low, 3)} to {number(high, 3)} logits per rubric point.",
        rows_height(len(beta_folds)),
    )


def error_figure(summary: pd.DataFrame, *, key: str, ranking_method: str) -> Illustration:
    """Return the mean absolute error of every way to rate, in Elo points, best first."""
    title = "Error of every way to rate"
    table = summary[summary["mae"].notna()].sort_values("mae", kind="stable", ignore_index=True)
    if table.empty:
        return Illustration(title, "Not drawn: no model has a human rating.", "")
    caption = (
        "Mean absolute distance between judge rating and human rating, best first; the filled "
        f"dot ranks the leaderboard: {method_words(ranking_method)}."
    )
    said = ", ".join(
        f"{method_words(row.method)} {number(row.mae, 1)}" for row in table.itertuples()
    )

    def draw(axes: "Axes", palette: Palette) -> None:
        ranking = (table["method"] == ranking_method).to_numpy()
        axes.hlines(table.index, 0, table["mae"], color=palette["grid"], lw=1.2)
        colour = palette["headline"]
        for rows, fill in ((ranking, colour), (~ranking, "none")):
            axes.plot(
                table["mae"][rows], table.index[rows], "o", mfc=fill, mec=colour, ms=6, mew=1.1
            )
        axes.set_xlim(0, 1.08 * table["mae"].max())
        name_rows(axes, table["method"].map(method_words))
        axes.set_xlabel("mean absolute error (Elo points)")

    return _drawn(
        draw,
        key,
        title,
        caption,
        f"Mean absolute error in Elo points: {said}.",
        rows_height(len(table)),
    )


def _rated(heldout: pd.DataFrame) -> pd.DataFrame:
    return heldout[heldout["method"].isin(RULERS) & heldout["residual"].notna()]


def _slopes(rated: pd.DataFrame, column: str) -> str:
    """Say the slope of every ruler in Elo points per 100 human Elo points."""
    said = []
    for method in RULERS:
        line = straight_line(rated[rated["method"] == method], column)
        if line is not None:
            slope = number(100 * line[0], 1, signed=True)
            said.append(f"{method_words(method)} {slope}")
    return f"Slopes in Elo per 100 human Elo: {', '.join(said)}." if said else ""
