"""Small pictures for the catalogue, as Markdown that carries them."""

import base64
import io
import tempfile
from pathlib import Path

import dagster as dg
import pandas as pd

from resources.report import leaderboard_figure_png


def picture(png: bytes, alt: str) -> dg.MarkdownMetadataValue:
    """Return a PNG as metadata; the text is what is read where pictures are not shown."""
    return dg.MetadataValue.md(f"![{alt}](data:image/png;base64,{base64.b64encode(png).decode()})")


def bars(counts: pd.Series, *, label: str) -> dg.MarkdownMetadataValue:
    """Return horizontal bars of counts by name, the largest on top, with the axis' label."""
    from matplotlib.figure import Figure  # half a second, only where something is drawn

    ordered = counts.sort_values()
    figure = Figure(figsize=(5, 0.6 + 0.3 * len(ordered)), layout="constrained")
    axes = figure.add_subplot()
    axes.barh([str(name) for name in ordered.index], ordered.to_numpy())
    axes.set_xlabel(label)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=80)
    return picture(file.getvalue(), f"{label} by {counts.index.name or 'name'}")


def intervals(leaderboard: pd.DataFrame, title: str) -> dg.MarkdownMetadataValue:
    """Return a leaderboard's ratings with their intervals, in Elo points."""
    with tempfile.TemporaryDirectory() as folder:
        path = leaderboard_figure_png(leaderboard, Path(folder) / "leaderboard.png", title)
        return picture(path.read_bytes(), "Ratings with their intervals, in Elo points")
