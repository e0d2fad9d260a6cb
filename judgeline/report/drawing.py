"""Drawing without a library: lines and marks on two axes, as SVG in the colours of the page.

Colours are CSS variables of the page, so that one drawing serves the light and the dark scheme.
Text is set in the reader's own font: margins are those of a wide one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judgeline.report.wording import number

ROLES = ("ink", "muted", "grid", "hard", "soft", "headline", "new")
"""Colours of the style sheet, ``--fig-ROLE``."""

_WIDTH = 360.0  # of a telephone, so text stays legible there
_FONT, _LETTER = 9.0, 4.9  # height of the text, and a letter's width
_ROW = 15.0
_MOST_TICKS = 6

_OUTLINES = {
    "s": (4, 45, 1.0), "D": (4, 0, 1.0), "^": (3, -90, 1.0), "v": (3, 90, 1.0), ">": (3, 0, 1.0),
    "<": (3, 180, 1.0), "*": (10, -90, 0.45), "X": (8, 45, 0.4), "P": (8, 0, 0.4),
}  # fmt: skip
"""Marks beside ``o``: corners, where the first one lies in degrees, and every second one's share
of the radius."""

Floats = NDArray[np.float64]


def printable(text: str) -> str:
    """Return the text on one line, without characters that no drawing may hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


class _Shape(NamedTuple):
    """Lines through points, or marks at them, of coordinates (n, k); `mark` is a mark's outline."""

    x: Floats
    y: Floats
    style: str
    mark: str
    label: str

    def path(self, x: Floats, y: Floats) -> str:
        """Return the SVG path through, or at, these places of the page."""
        rows = zip(x.tolist(), y.tolist(), strict=True)
        lines = (
            "L".join(f"{one:.2f} {other:.2f}{self.mark}" for one, other in zip(*row, strict=True))
            for row in rows
        )
        return f'<path d="M{"M".join(lines)}" style="{self.style}"/>'


class _Scale(NamedTuple):
    """Values, and the places of the page where their ends are drawn."""

    values: tuple[float, float]
    ends: tuple[float, float]

    def __call__(self, value: ArrayLike) -> Floats:
        """Return the places of values."""
        (low, high), (first, last) = self.values, self.ends
        share = (np.asarray(value, dtype=float) - low) / (high - low)
        place: Floats = first + share * (last - first)
        return place


@dataclass
class Chart:
    """Lines and marks in data units; along the left a scale, or a name for each row.

    `names` stand from the top, row 0, in the colour of `name_roles`; `height` is that of a chart
    without names, in units of which a drawing is 360 wide. The x axis spans `x_range`, or all that
    is drawn.
    """

    x_label: str
    y_label: str = ""
    height: float = 288.0
    names: Sequence[str] = ()
    name_roles: Mapping[int, str] = field(default_factory=dict)
    x_range: tuple[float, float] | None = None
    _shapes: list[_Shape] = field(default_factory=list)

    def lines(
        self, x: ArrayLike, y: ArrayLike, role: str, *,
        width: float = 1.2, dash: str = "", opacity: float = 1.0, label: str = "",
    ) -> None:  # fmt: skip
        """Draw a line through the points of each row of `x` and `y`, (k,) or (n, k)."""
        style = f"fill:none;stroke:var(--fig-{role});stroke-width:{width:g};opacity:{opacity:g}"
        if dash:
            style += f";stroke-dasharray:{dash}"
        across, down = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
        self._add(np.atleast_2d(across), np.atleast_2d(down), style, "", label)

    def marks(
        self, x: ArrayLike, y: ArrayLike, role: str, mark: str = "o", *,
        size: float = 5.5, hollow: bool = False, label: str = "",
    ) -> None:  # fmt: skip
        """Draw a mark at each point; `size` is its width."""
        style = f"fill:var(--fig-{role})"
        if hollow:
            style = f"fill:none;stroke:var(--fig-{role});stroke-width:1.1"
        across, down = (np.asarray(values, dtype=float).reshape(-1, 1) for values in (x, y))
        self._add(across, down, style, _outline(mark, size), label)

    def _add(self, x: Floats, y: Floats, style: str, mark: str, label: str) -> None:
        finite = (np.isfinite(x) & np.isfinite(y)).all(axis=1)
        if finite.any():
            self._shapes.append(_Shape(x[finite], y[finite], style, mark, label))

    def svg(self, *, key: str, title: str, description: str) -> str:
        """Return the chart as an element of a page, with ids that begin with its key."""
        legend, ceiling = self._legend()
        floor = ceiling + _ROW * len(self.names) if self.names else self.height - 32
        x_range = self.x_range or _range([shape.x for shape in self._shapes])
        if self.names:
            y_range = len(self.names) - 0.4, -0.6
            rows = [(float(row), _short(name)) for row, name in enumerate(self.names)]
        else:
            y_range = _range([shape.y for shape in self._shapes])
            rows = ticks(*y_range)
        left = 8 + 13 * bool(self.y_label) + max(_text_width(text) for _, text in rows)
        across = _Scale(x_range, (min(left, _WIDTH / 2), _WIDTH - 10))
        down = _Scale(y_range, (floor, ceiling))
        drawn = [shape.path(across(shape.x), down(shape.y)) for shape in self._shapes]
        body = "".join([self._axes(across, down, rows), *drawn, *legend])
        return (
            f'<svg overflow="visible" role="img" aria-labelledby="{key}-title {key}-desc" '
            f'viewBox="0 0 {_WIDTH:g} {floor + 32:g}"><title id="{key}-title">'
            f'{escape(printable(title))}</title><desc id="{key}-desc">'
            f"{escape(printable(description))}</desc>{body}</svg>"
        )

    def _axes(self, across: "_Scale", down: "_Scale", rows: list[tuple[float, str]]) -> str:
        """Return the lines of the grid, the numbers or names beside it, and the axes' titles."""
        (left, right), (floor, ceiling) = across.ends, down.ends
        edges, words = [f"M{left:.2f} {floor:.2f}H{right:.2f}"], []
        for value, text in ticks(*across.values):
            x = float(across(value))
            edges.append(f"M{x:.2f} {ceiling:.2f}V{floor + 3:.2f}")
            words.append(_text(x, floor + 13, text, anchor="middle"))
        for row, (value, text) in enumerate(rows):
            y = float(down(value))
            edges += [] if self.names else [f"M{left:.2f} {y:.2f}H{right:.2f}"]
            role = self.name_roles.get(row, "muted")
            words.append(_text(left - 5, y + 3.2, text, role, anchor="end"))
        words.append(_text((left + right) / 2, floor + 27, self.x_label, anchor="middle"))
        if self.y_label:
            y = (floor + ceiling) / 2
            turned = f' transform="rotate(-90 10 {y:.2f})"'
            words.append(_text(10, y, self.y_label, anchor="middle", more=turned))
        style = "stroke:var(--fig-grid);stroke-width:0.6"
        return "".join([f'<path d="{"".join(edges)}" style="{style}"/>', *words])

    def _legend(self) -> tuple[list[str], float]:
        """Return the labelled shapes beside their labels, and where the drawing begins below."""
        parts: list[str] = []
        x, y = 8.0, 10.0
        for shape in self._shapes:
            if not shape.label:
                continue
            if x > 8 and x + 18 + _text_width(shape.label) > _WIDTH:
                x, y = 8.0, y + 14
            ends = [[x + 6.0]] if shape.mark else [[x, x + 13.0]]
            parts.append(shape.path(np.array(ends), np.full_like(ends, y)))
            parts.append(_text(x + 18, y + 3.2, shape.label, "ink"))
            x += 32 + _text_width(shape.label)
        return parts, y + 14 if parts else 6.0


def _short(name: str) -> str:
    text = printable(name)
    return text if len(text) <= 30 else text[:29] + "…"


def _text_width(text: str) -> float:
    return _LETTER * sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _text(
    x: float, y: float, text: str, role: str = "muted", *, anchor: str = "start", more: str = ""
) -> str:
    return (
        f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}"{more} '
        f'style="font-size:{_FONT:g}px;fill:var(--fig-{role})">{escape(printable(text))}</text>'
    )


def _outline(mark: str, size: float) -> str:
    """Return the path of a mark around the point where the pen is."""
    if mark == "o":
        arc = f"a{size / 2:g} {size / 2:g} 0 1 0 "
        return f"m{-size / 2:g} 0{arc}{size:g} 0{arc}{-size:g} 0"
    n, turn, inner = _OUTLINES[mark]
    corner = np.arange(n)
    radius = 0.65 * size * np.where(corner % 2, inner, 1.0)
    angle = np.radians(turn + 360 / n * corner)
    corners = np.array([radius * np.cos(angle), radius * np.sin(angle)])
    steps = np.diff(corners, axis=1, prepend=0.0).T.tolist()
    return "m" + "l".join(f"{x:.2f} {y:.2f}" for x, y in steps) + "z"


def _range(values: Sequence[Floats]) -> tuple[float, float]:
    """Return the ends of a scale that holds all values, with some room on either side."""
    low, high = min(float(one.min()) for one in values), max(float(one.max()) for one in values)
    room = 0.04 * (high - low) or max(0.05 * abs(high), 1e-3)
    return low - room, high + room


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers between two ends, with their texts."""
    rough = (high - low) / _MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(part * power for part in (1, 2, 2.5, 5, 10) if part * power >= rough)
    digits = next(n for n in range(12) if math.isclose(round(step, n), step, rel_tol=1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(step * k, number(step * k, digits)) for k in range(first, last + 1)]
