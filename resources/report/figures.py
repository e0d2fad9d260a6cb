"""The report's figures: what each shows, in words and as a drawing.

Ratings and residuals in Elo points, slopes in logits per rubric point. The hard ruler is
drawn in squares, the calibrated one in dots, human ratings in hollow diamonds and models
without votes in stars, so that no figure depends on colour.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.beta import BetaFit, fit_beta
from resources.report.drawing import Palette, draw_png, draw_svg
from resources.report.reliability import MIN_VOTES, reliability_bins
from resources.report.wording import method_words, number, status_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RULERS = {"hard": "s", "soft": "o"}
_ROW_INCHES = 0.21
_NAME_LENGTH = 30


class Illustration(NamedTuple):
    """A figure of the report; without a drawing, the caption says why there is none."""

    title: str
    caption: str
    svg: str


def interval_figure(leaderboard: pd.DataFrame, *, key: str, coverage: str) -> Illustration:
    """Return the ratings of a leaderboard with their intervals, in Elo points.

    Parameters
    ----------
    leaderboard : DataFrame
        One row per model in ranking order.
    key : str
        Unique on the page.
    coverage : str
        What the intervals promise, such as ``"90 %"``.

    Returns
    -------
    Illustration
        Never without a drawing.
    """
    title = "Ratings and their intervals"
    caption = (
        f"Filled: the judge's rating with its {coverage} interval. Hollow diamonds: the human "
        "rating. Stars: models without human votes, which the interval is made for."
    )
    unbounded = int(np.isinf(leaderboard[["lower", "upper"]]).any(axis=1).sum())
    if unbounded:
        caption += f" Dashed: {unbounded} of {len(leaderboard)} intervals are unbounded."
    best, worst = leaderboard.iloc[0], leaderboard.iloc[-1]
    description = (
        f"{len(leaderboard)} models from {best['model']} at {number(best['rating'])} Elo down to "
        f"{worst['model']} at {number(worst['rating'])} Elo."
    )
    svg = draw_svg(
        lambda axes, palette: _draw_intervals(axes, palette, leaderboard),
        key=key,
        title=title,
        description=description,
        height=_rows_height(len(leaderboard)),
    )
    return Illustration(title, caption, svg)


def leaderboard_figure_png(leaderboard: pd.DataFrame, path: Path, title: str) -> Path:
    """Write the leaderboard's interval plot as a PNG file, atomically.

    Parameters
    ----------
    leaderboard : DataFrame
        One row per model in ranking order, ratings in Elo points.
    path : Path
        Where to write; the folder must exist.
    title : str
        Heading of the picture, taken as plain text.

    Returns
    -------
    Path
        The path written.

    Raises
    ------
    ValueError
        If the leaderboard is empty.
    """
    if leaderboard.empty:
        raise ValueError(f"leaderboard is empty: nothing to draw in {path}")

    def chart(axes: "Axes", palette: Palette) -> None:
        _draw_intervals(axes, palette, leaderboard)
        axes.figure.suptitle(title, x=0.02, ha="left", fontsize=11, color=palette["ink"])

    content = draw_png(chart, key="leaderboard", height=_rows_height(len(leaderboard)) + 0.3)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_bytes(content)
    return partial.replace(path)


def ruler_figure(heldout: pd.DataFrame, *, key: str) -> Illustration:
    """Return judge rating against human rating, hard and soft, one mark per voted model."""
    title = "Calibrated against hard ruler"
    rated = _rated(heldout)
    if rated.empty:
        return Illustration(title, "Not drawn: no model has a human rating.", "")
    caption = (
        "Each model twice: where the judge's preferences put it (hard) and where calibrated "
        "scores put it (soft). On the line, judge and humans agree."
    )
    svg = draw_svg(
        lambda axes, palette: _draw_ruler(axes, palette, rated),
        key=key,
        title=title,
        description=f"Scatter of judge rating against human rating. {_slopes(rated, 'rating')}",
        height=4.4,
    )
    return Illustration(title, caption, svg)


def residual_figure(heldout: pd.DataFrame, *, key: str) -> Illustration:
    """Return residual against human rating, hard and soft: a ramp is a stretched ruler."""
    title = "Residual by human rating"
    rated = _rated(heldout)
    if rated.empty:
        return Illustration(title, "Not drawn: no model has a human rating.", "")
    slopes = _slopes(rated, "residual")
    caption = "Judge rating minus human rating. A rising line means a stretched scale. " + slopes
    svg = draw_svg(
        lambda axes, palette: _draw_residuals(axes, palette, rated),
        key=key,
        title=title,
        description=f"Scatter of residuals around zero with straight lines. {slopes}",
        height=3.6,
    )
    return Illustration(title, caption, svg)


def reliability_figure(scored_battles: pd.DataFrame, *, key: str) -> Illustration:
    """Return how often humans agree with the judge against how often they were said to.

    The predicted share is the logistic function of the pooled slope times the absolute score
    difference, in bins of equal mass; battles without a decisive vote or with equal scores
    are left out.
    """
    title = "Reliability of the calibrated scores"
    fit = fit_beta(scored_battles["score_difference"], scored_battles["human_outcome"])
    if fit.status != "ok":
        reason = f"Not drawn: beta has no value ({status_words(fit.status)})."
        return Illustration(title, reason, "")
    bins = reliability_bins(
        scored_battles["score_difference"], scored_battles["human_outcome"], beta=fit.beta
    )
    if bins.empty:
        reason = f"Not drawn: fewer than {MIN_VOTES} decisive votes on unequal scores."
        return Illustration(title, reason, "")
    caption = _reliability_caption(fit, bins)
    svg = draw_svg(
        lambda axes, palette: _draw_reliability(axes, palette, bins),
        key=key,
        title=title,
        description=caption,
        height=4.0,
    )
    return Illustration(title, caption, svg)


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
    svg = draw_svg(
        lambda axes, palette: _draw_betas(axes, palette, beta_folds),
        key=key,
        title=title,
        description=f"{len(usable)} slopes from {number(low, 3)} to {number(high, 3)} logits "
        "per rubric point.",
        height=_rows_height(len(beta_folds)),
    )
    return Illustration(title, caption, svg)


def _reliability_caption(fit: BetaFit, bins: pd.DataFrame) -> str:
    weights = bins["n"] / bins["n"].sum()
    gap = float((weights * (bins["predicted"] - bins["observed"]).abs()).sum())
    return (
        f"{bins['n'].sum()} decisive votes in {len(bins)} bins of equal mass, with "
        f"beta = {number(fit.beta, 3)} logits per rubric point from all votes; bars are 95 % "
        f"Wilson intervals. Mean gap to the line: {number(100 * gap, 1)} percentage points."
    )


def _rated(heldout: pd.DataFrame) -> pd.DataFrame:
    rulers = heldout["method"].isin(_RULERS) & heldout["human_rating"].notna()
    return heldout[rulers]


def _rows_height(n_rows: int) -> float:
    return 1.05 + _ROW_INCHES * n_rows


def _short(name: Any) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"


def _line(rated: pd.DataFrame, column: str) -> tuple[float, float] | None:
    """Least-squares slope and intercept over human rating; None where no line is defined."""
    x, y = rated["human_rating"].to_numpy(float), rated[column].to_numpy(float)
    if x.size < 3 or np.ptp(x) == 0:
        return None
    slope, intercept = np.polyfit(x - x.mean(), y, 1)
    return float(slope), float(intercept - slope * x.mean())


def _slopes(rated: pd.DataFrame, column: str) -> str:
    """Say the slope of every ruler in Elo points per 100 human Elo points."""
    said = []
    for method in _RULERS:
        line = _line(rated[rated["method"] == method], column)
        if line is not None:
            slope = number(100 * line[0], 1, signed=True)
            said.append(f"{method_words(method)} {slope}")
    return f"Slopes in Elo per 100 human Elo: {', '.join(said)}." if said else ""


def _name_rows(axes: "Axes", names: pd.Series) -> None:
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _legend(axes: "Axes", columns: int) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncol=columns,
        handletextpad=0.2,
        columnspacing=1.2,
        borderaxespad=0.1,
    )


def _draw_intervals(axes: "Axes", palette: Palette, leaderboard: pd.DataFrame) -> None:
    table = leaderboard.reset_index(drop=True)
    new = table["human_rating"].isna()
    _draw_whiskers(axes, palette, table, new)
    for group, colour, marker, size, label in (
        (table[~new], palette["soft"], "o", 5, "judge"),
        (table[new], palette["new"], "*", 9, "judge, no human votes"),
    ):
        if len(group):
            axes.plot(
                group["rating"], group.index, marker, color=colour, ms=size, mew=0, label=label
            )
    if not new.all():
        _draw_human(axes, palette, table[~new])
    _name_rows(axes, table["model"])
    for place in np.flatnonzero(new):
        axes.get_yticklabels()[place].set_color(palette["new"])
    axes.set_xlabel("rating (Elo points)")
    _legend(axes, 3)


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


def _draw_whiskers(axes: "Axes", palette: Palette, table: pd.DataFrame, new: pd.Series) -> None:
    ends = table[["lower", "upper"]].to_numpy(float)
    bounded = np.isfinite(ends).all(axis=1)
    shown = table[["lower", "upper", "rating", "human_rating"]].to_numpy(float)
    shown = shown[np.isfinite(shown)]
    margin = 0.04 * max(float(np.ptp(shown)), 50.0)
    limits = float(shown.min()) - margin, float(shown.max()) + margin
    axes.set_xlim(limits)
    for row, (low, high) in enumerate(ends):
        colour = palette["new"] if new[row] else palette["soft"]
        if bounded[row]:
            axes.plot([low, high], [row, row], color=colour, lw=2.2, alpha=0.45)
        else:
            axes.plot(limits, [row, row], color=colour, lw=1.0, ls=(0, (3, 3)), alpha=0.7)


def _draw_ruler(axes: "Axes", palette: Palette, rated: pd.DataFrame) -> None:
    ends = rated.groupby("human_rating")["rating"].agg(["min", "max"])
    axes.vlines(ends.index, ends["min"], ends["max"], color=palette["grid"], lw=1.2)
    edges = [rated["human_rating"].min(), rated["human_rating"].max()]
    axes.plot(edges, edges, color=palette["muted"], lw=1, ls=(0, (4, 3)), label="agreement")
    _draw_marks(axes, palette, rated, "rating")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("human rating (Elo points)")
    axes.set_ylabel("judge rating (Elo points)")
    _legend(axes, 3)


def _draw_residuals(axes: "Axes", palette: Palette, rated: pd.DataFrame) -> None:
    axes.axhline(0, color=palette["muted"], lw=1, ls=(0, (4, 3)))
    _draw_marks(axes, palette, rated, "residual")
    for method in _RULERS:
        group = rated[rated["method"] == method]
        line = _line(group, "residual")
        if line is not None:
            x = np.array([group["human_rating"].min(), group["human_rating"].max()])
            axes.plot(x, line[0] * x + line[1], color=palette[method], lw=1.2, alpha=0.6)
    axes.set_xlabel("human rating (Elo points)")
    axes.set_ylabel("residual (Elo points)")
    _legend(axes, 2)


def _draw_marks(axes: "Axes", palette: Palette, rated: pd.DataFrame, column: str) -> None:
    for method, marker in _RULERS.items():
        group = rated[rated["method"] == method]
        axes.plot(
            group["human_rating"],
            group[column],
            marker,
            color=palette[method],
            ms=5.5,
            mew=0,
            label=method_words(method),
        )


def _draw_reliability(axes: "Axes", palette: Palette, bins: pd.DataFrame) -> None:
    axes.plot([0.5, 1], [0.5, 1], color=palette["muted"], lw=1, ls=(0, (4, 3)), label="agreement")
    bars = _distances(bins)
    axes.errorbar(
        bins["predicted"],
        bins["observed"],
        yerr=bars,
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


def _distances(bins: pd.DataFrame) -> NDArray[np.float64]:
    return np.array([bins["observed"] - bins["lower"], bins["upper"] - bins["observed"]])


def _draw_betas(axes: "Axes", palette: Palette, beta_folds: pd.DataFrame) -> None:
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
    _name_rows(axes, table["held_out_model"])
    axes.set_xlabel("beta (logits per rubric point)")
