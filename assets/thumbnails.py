"""Thumbnails of tables in the catalogue: bars, intervals and curves as Markdown with a drawing."""

import base64

import dagster as dg
import numpy as np
import pandas as pd

from judgeline.report import Chart, Illustration, interval_figure, picture

_ROLES = ("hard", "soft", "headline", "new", "missed", "ink", "muted")
_MARKS = "osv^D<>P"


def _shown(illustration: Illustration) -> dg.MarkdownMetadataValue:
    """Return a drawing as metadata; its title is read aloud, or where images are off."""
    if not illustration.svg:
        return dg.MetadataValue.md(illustration.caption)
    data = base64.b64encode(picture(illustration).encode()).decode()
    return dg.MetadataValue.md(f"![{illustration.title}](data:image/svg+xml;base64,{data})")


def _drawn(chart: Chart, title: str) -> dg.MarkdownMetadataValue:
    return _shown(Illustration(title, "", chart.svg(key="plot", title=title, description=title)))


def bars(counts: pd.Series, *, label: str) -> dg.MarkdownMetadataValue:
    """Return horizontal bars of counts by name, the largest on top, with the axis' label."""
    ordered = counts.sort_values(ascending=False)
    names, size = [str(name) for name in ordered.index], ordered.to_numpy(dtype=float)
    chart = Chart(label, names=names, x_range=(0.0, 1.05 * max(float(size.max()), 1.0)))
    rows = np.arange(size.size)
    chart.lines(np.column_stack([0 * size, size]), np.column_stack([rows, rows]), "hard", width=8)
    return _drawn(chart, f"{label} by {counts.index.name or 'name'}")


def reliability(predicted: pd.Series, observed: pd.Series) -> dg.MarkdownMetadataValue:
    """Return the share of human wins observed where a share was predicted, bin by bin."""
    chart = Chart("predicted share of human wins", "observed share")
    chart.lines([0, 1], [0, 1], "muted")
    chart.lines(predicted, observed, "soft")
    chart.marks(predicted, observed, "soft")
    return _drawn(chart, "Observed against predicted share of human wins")


def win_rates(shown: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return each model's naive, headline and human win rate, the best headline on top."""
    ordered = shown.sort_values(["win_rate", "naive_win_rate"], ascending=False)
    rows = np.arange(len(ordered))
    chart = Chart("win rate", names=[str(model) for model in ordered["model"]], x_range=(0.0, 1.0))
    ends = ordered[["win_rate_lower", "win_rate_upper"]]
    chart.lines(ends, np.column_stack([rows, rows]), "headline", width=4, opacity=0.45)
    for column, label, role, mark in (
        ("win_rate", "in people's eyes, with interval", "headline", "o"),
        ("naive_win_rate", "as judged", "hard", "X"),
        ("human_win_rate", "as people voted", "ink", "D"),
    ):
        chart.marks(ordered[column], rows, role, mark, hollow=mark == "D", label=label)
    return _drawn(chart, "Win rates as judged, in people's eyes, and as people voted")


def intervals(leaderboard: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return a leaderboard's ratings with their intervals, in Elo points."""
    return _shown(interval_figure(leaderboard, key="plot", coverage=""))


def drift_over_epochs(drift: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return each statistic's change since the baseline by epoch, in standard errors.

    Filled marks are changes beyond chance.
    """
    last = max(6.0, float(drift["epoch"].max()) + 0.5)  # whole numbers of epochs below the axis
    label = "epoch (filled: moved beyond chance)"
    chart = Chart(label, "standard errors from baseline", x_range=(0.0, last))
    chart.lines([0, last], [0, 0], "muted")
    for number, (name, rows) in enumerate(drift.groupby("statistic", sort=False)):
        role, mark = _ROLES[number % len(_ROLES)], _MARKS[number % len(_MARKS)]
        chart.lines(rows["epoch"], rows["z"], role, width=1, label=str(name))
        for moved in (True, False):
            part = rows[rows["moved"].eq(moved)]
            chart.marks(part["epoch"], part["z"], role, mark, hollow=not moved)
    return _drawn(chart, "Change of each statistic since the baseline, by epoch")
