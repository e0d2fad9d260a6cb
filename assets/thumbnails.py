"""Thumbnails of tables in the catalogue: Markdown with a drawing."""

import base64

import dagster as dg
import pandas as pd

from judgeline.report import Chart, Illustration, interval_figure, picture

_ROLES = ("hard", "soft", "headline", "new", "ink", "muted")
_MARKS = "osv^D<>P"


def _shown(illustration: Illustration) -> dg.MarkdownMetadataValue:
    """Return a drawing as metadata; its title is read aloud, or where images are off."""
    if not illustration.svg:
        return dg.MetadataValue.md(illustration.caption)
    data = base64.b64encode(picture(illustration).svg.encode()).decode()
    return dg.MetadataValue.md(f"![{illustration.title}](data:image/svg+xml;base64,{data})")


def intervals(leaderboard: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return a leaderboard's ratings with their intervals, in Elo points."""
    return _shown(interval_figure(leaderboard, key="plot", coverage=""))


def drift_over_epochs(drift: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return each statistic's change since the baseline by epoch, in standard errors."""
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
    title = "Change of each statistic since the baseline, by epoch"
    return _shown(Illustration(title, "", chart.svg(key="plot", title=title, description=title)))
