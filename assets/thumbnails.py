"""Thumbnails of tables in the catalogue: bars, intervals and curves as Markdown with a PNG."""

import base64
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import dagster as dg
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def picture(png: bytes, alt: str) -> dg.MarkdownMetadataValue:
    """Return a PNG as metadata; the text is what is read where pictures are not shown."""
    return dg.MetadataValue.md(f"![{alt}](data:image/png;base64,{base64.b64encode(png).decode()})")


def bars(counts: pd.Series, *, label: str) -> dg.MarkdownMetadataValue:
    """Return horizontal bars of counts by name, the largest on top, with the axis' label."""
    ordered = counts.sort_values()
    with _axes(height=0.6 + 0.3 * len(ordered)) as (axes, file):
        axes.barh([str(name) for name in ordered.index], ordered.to_numpy())
        axes.set_xlabel(label)
    return picture(file.getvalue(), f"{label} by {counts.index.name or 'name'}")


def reliability(predicted: pd.Series, observed: pd.Series) -> dg.MarkdownMetadataValue:
    """Return the share of human wins observed where a share was predicted, bin by bin."""
    with _axes(height=3.0) as (axes, file):
        axes.plot([0, 1], [0, 1], color="0.8")
        axes.plot(predicted, observed, marker="o")
        axes.set_xlabel("predicted share of human wins")
        axes.set_ylabel("observed share")
    return picture(file.getvalue(), "Observed against predicted share of human wins")


def win_rates(shown: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return each model's naive, headline and human win rate, the best headline on top."""
    ordered = shown.sort_values(["win_rate", "naive_win_rate"], na_position="first")
    place = list(range(len(ordered)))
    with _axes(height=0.8 + 0.25 * len(ordered)) as (axes, file):
        axes.hlines(
            place, ordered["win_rate_lower"], ordered["win_rate_upper"], color="0.7", linewidth=4
        )
        for column, label, marker in (
            ("win_rate", "in people's eyes, with interval", "o"),
            ("naive_win_rate", "as judged", "x"),
            ("human_win_rate", "as people voted", "|"),
        ):
            axes.plot(ordered[column], place, marker, label=label)
        axes.set_yticks(place, [str(model) for model in ordered["model"]])
        axes.set_xlim(0, 1)
        axes.set_xlabel("win rate")
        axes.legend(fontsize="small")
    return picture(file.getvalue(), "Win rates as judged, in people's eyes, and as people voted")


def intervals(leaderboard: pd.DataFrame, title: str) -> dg.MarkdownMetadataValue:
    """Return a leaderboard's ratings with their bounded intervals, in Elo points."""
    place = list(range(len(leaderboard)))
    ends = leaderboard[["lower", "upper"]].replace([math.inf, -math.inf], math.nan)
    with _axes(height=1.0 + 0.2 * len(leaderboard)) as (axes, file):
        axes.hlines(place, ends["lower"], ends["upper"], color="0.7", linewidth=3)
        axes.plot(leaderboard["rating"], place, "o", label="judge")
        axes.plot(leaderboard["human_rating"], place, "D", markerfacecolor="none", label="human")
        axes.set_yticks(place, [str(model) for model in leaderboard["model"]])
        axes.invert_yaxis()
        axes.set_xlabel("rating (Elo points)")
        axes.set_title(title)
        axes.legend(fontsize="small")
    return picture(file.getvalue(), "Ratings with their intervals, in Elo points")


def drift_over_epochs(drift: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Return each statistic's change since the baseline by epoch, in standard errors.

    Filled marks are changes beyond chance.
    """
    with _axes(height=4.0) as (axes, file):
        axes.axhline(0, color="0.8")
        for number, (name, rows) in enumerate(drift.groupby("statistic", sort=False)):
            colour, marker = f"C{number}", "osv^D<>p"[number % 8]
            axes.plot(rows["epoch"], rows["z"], color=colour, linewidth=1)
            for moved, face in ((True, colour), (False, "white")):
                part = rows[rows["moved"].eq(moved)]
                axes.plot(part["epoch"], part["z"], marker, color=colour, markerfacecolor=face)
            axes.plot([], [], marker, color=colour, label=str(name))
        axes.locator_params("x", integer=True)
        axes.set_xlabel("epoch (filled: moved beyond chance)")
        axes.set_ylabel("standard errors from baseline")
        axes.legend(
            fontsize="x-small",
            ncols=4,
            frameon=False,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
        )
    return picture(file.getvalue(), "Change of each statistic since the baseline, by epoch")


@contextmanager
def _axes(*, height: float) -> "Iterator[tuple[Axes, io.BytesIO]]":
    """Give axes to draw on, and the file that holds the PNG afterwards; inches."""
    from matplotlib import rc_context  # half a second, only where something is drawn
    from matplotlib.figure import Figure

    with rc_context({"text.parse_math": False}):  # a dollar sign in a name is a dollar sign
        figure, file = Figure(figsize=(5, height), layout="constrained"), io.BytesIO()
        yield figure.add_subplot(), file
        figure.savefig(file, format="png", dpi=80)
