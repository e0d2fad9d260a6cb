"""Drawing without a screen: one figure in, theme-aware inline SVG or a PNG out.

Charts are drawn in sentinel colours. In SVG each becomes a CSS variable of the page, so one
drawing serves the light and the dark scheme; a PNG takes the light values at once. Matplotlib
is imported only when something is drawn, and never through its global state.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Palette = Mapping[str, str]
Chart = Callable[["Axes", Palette], None]

WIDTH = 5.0
"""Inches of every figure: 360 units, the width of a telephone, so text stays legible there."""

_ROLES = ("ink", "muted", "grid", "surface", "hard", "soft", "headline", "new", "missed")

# Colours that no chart would choose by accident, one per role.
SENTINELS: Palette = {role: f"#01fe{place:02x}" for place, role in enumerate(_ROLES)}

# Okabe and Ito's colours for marks; the page's style sheet holds the dark values.
LIGHT: Palette = {
    "ink": "#1c2430",
    "muted": "#5d6875",
    "grid": "#dfe3e8",
    "surface": "#ffffff",
    "hard": "#d55e00",
    "soft": "#0072b2",
    "headline": "#8a3b8f",
    "new": "#009e73",
    "missed": "#c4161c",
}

_NOT_IN_PAGE = re.compile(
    r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style.*?</style>|"
    r"font-family: [^;\"]*;? ?|\sxmlns(:\w+)?=\"[^\"]*\"",
    re.DOTALL,
)


def draw_svg(chart: Chart, *, key: str, title: str, description: str, height: float) -> str:
    """Return a chart, `height` inches high, as an inline SVG element in the page's colours."""
    with _figure(chart, SENTINELS, key, height) as figure:
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _embed(out.getvalue(), key, title, description)


def draw_png(chart: Chart, *, key: str, height: float) -> bytes:
    """Return a chart as the bytes of a PNG file in the light colours, 1100 pixels wide."""
    with _figure(chart, LIGHT, key, height) as figure:
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=220, metadata={"Software": None})
    return out.getvalue()


def printable(text: str) -> str:
    """Return the text on one line, without characters that no drawing may hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


@contextmanager
def _figure(chart: Chart, palette: Palette, key: str, height: float) -> "Iterator[Figure]":
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_settings(palette, key)), warnings.catch_warnings():
        # The page sets names in the reader's own fonts, not in the one that measures them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        chart(figure.add_subplot(), palette)
        yield figure


def _settings(palette: Palette, key: str) -> dict[str, Any]:
    ink, muted, grid, surface = (palette[role] for role in ("ink", "muted", "grid", "surface"))
    return {
        "axes.axisbelow": True,
        "axes.edgecolor": grid,
        "axes.facecolor": "none",
        "axes.grid": True,
        "axes.labelcolor": muted,
        "axes.labelsize": 9,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": ink,
        "axes.titlelocation": "left",
        "axes.titlesize": 10,
        "figure.facecolor": surface if palette is LIGHT else "none",
        "font.family": "DejaVu Sans",  # ships with matplotlib: the same layout everywhere
        "font.size": 9,
        "grid.color": grid,
        "grid.linewidth": 0.6,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "legend.labelcolor": ink,
        "svg.fonttype": "none",
        "svg.hashsalt": key,
        "text.color": ink,
        "text.parse_math": False,  # a dollar sign in a model's name is a dollar sign
        "xtick.color": grid,
        "xtick.labelcolor": muted,
        "ytick.color": grid,
        "ytick.labelcolor": muted,
    }


def _embed(svg: str, key: str, title: str, description: str) -> str:
    """Turn a stand-alone drawing into an element of a page, with its own names and no links."""
    svg = _NOT_IN_PAGE.sub("", svg).strip()
    for role, colour in SENTINELS.items():
        svg = svg.replace(colour, f"var(--fig-{role})")
    svg = re.sub(r'\bid="', f'id="{key}-', svg)
    svg = re.sub(r'xlink:href="#', f'href="#{key}-', svg)
    svg = svg.replace("url(#", f"url(#{key}-")
    svg = re.sub(r'(<svg) width="[^"]*" height="[^"]*"', r"\1", svg)
    opening = f'<svg role="img" aria-labelledby="{key}-title {key}-desc"'
    names = f'<title id="{key}-title">{escape(printable(title))}</title>'
    names += f'<desc id="{key}-desc">{escape(printable(description))}</desc>'
    head, body = svg.removeprefix("<svg").split(">", 1)
    return f"{opening}{head}>{names}{body}"
