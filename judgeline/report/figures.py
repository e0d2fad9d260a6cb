"""The report's figures: what each shows, in words and as a drawing.

A figure that cannot be drawn says why instead. What is drawn where is in `charts`.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from judgeline.diagnostics import expected_calibration_error, reliability_curve
from judgeline.elo import fit_beta
from judgeline.report.charts import (
    RULERS,
    draw_betas,
    draw_errors,
    draw_intervals,
    draw_reliability,
    draw_residuals,
    draw_ruler,
    rows_height,
    straight_line,
)
from judgeline.report.drawing import draw_png, draw_svg, printable
from judgeline.report.wording import method_words, number, status_words


class Illustration(NamedTuple):
    """A figure of the report; without a drawing, the caption says why there is none."""

    title: str
    caption: str
    svg: str


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
    svg = draw_svg(
        lambda axes, palette: draw_intervals(axes, palette, leaderboard),
        key=key,
        title=title,
        description=description,
        height=rows_height(len(leaderboard)),
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
        If no model of the leaderboard has a rating.
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
    svg = draw_svg(
        lambda axes, palette: draw_ruler(axes, palette, rated),
        key=key,
        title=title,
        description=f"Scatter of judge rating against human rating. {_slopes(rated, 'rating')}",
        height=4.4,
    )
    return Illustration(title, caption, svg)


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
    svg = draw_svg(
        lambda axes, palette: draw_residuals(axes, palette, rated),
        key=key,
        title=title,
        description=f"Scatter of residuals around zero with straight lines. {slopes}",
        height=3.6,
    )
    return Illustration(title, caption, svg)


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
    svg = draw_svg(
        lambda axes, palette: draw_reliability(axes, palette, bins.mean_x, bins.mean_y, bounds),
        key=key,
        title=title,
        description=caption,
        height=4.0,
    )
    return Illustration(title, caption, svg)


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
    svg = draw_svg(
        lambda axes, palette: draw_betas(axes, palette, beta_folds),
        key=key,
        title=title,
        description=f"{len(usable)} slopes from {number(low, 3)} to {number(high, 3)} logits "
        "per rubric point.",
        height=rows_height(len(beta_folds)),
    )
    return Illustration(title, caption, svg)


def error_figure(summary: pd.DataFrame, *, key: str, ranking_method: str) -> Illustration:
    """Return the mean absolute error of every way to rate, in Elo points, best first."""
    title = "Error of every way to rate"
    table = summary[summary["mae"].notna()].sort_values("mae", kind="stable")
    if table.empty:
        return Illustration(title, "Not drawn: no model has a human rating.", "")
    caption = (
        "Mean absolute distance between judge rating and human rating, best first; the filled "
        f"dot ranks the leaderboard: {method_words(ranking_method)}."
    )
    said = ", ".join(
        f"{method_words(row.method)} {number(row.mae, 1)}" for row in table.itertuples()
    )
    svg = draw_svg(
        lambda axes, palette: draw_errors(axes, palette, table, ranking_method),
        key=key,
        title=title,
        description=f"Mean absolute error in Elo points: {said}.",
        height=rows_height(len(table)),
    )
    return Illustration(title, caption, svg)


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
