"""Figures: colours, words and bytes of every drawing, and the contrast of the page's colours."""

import base64
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from report_examples import example_judge
from scipy.stats import binomtest

from assets import thumbnails as pictures
from judgeline.report.drawing import ROLES, Chart, ticks
from judgeline.report.figures import (
    Illustration,
    beta_figure,
    error_figure,
    interval_figure,
    reliability_figure,
    residual_figure,
    ruler_figure,
    wilson_interval,
)

STYLE = (Path(__file__).parents[2] / "judgeline/report/templates/style.css").read_text("utf-8")


def all_figures() -> list[Illustration]:
    tables = example_judge()
    return [
        interval_figure(tables.leaderboard, key="a", coverage="90 %"),
        ruler_figure(tables.heldout_ratings, key="b"),
        residual_figure(tables.heldout_ratings, key="c"),
        reliability_figure(tables.scored_battles, key="d"),
        beta_figure(tables.beta_folds, key="e"),
        error_figure(tables.summary, key="f", ranking_method="auto"),
    ]


@pytest.fixture(scope="module")
def figures() -> list[Illustration]:
    return all_figures()


def test_every_colour_follows_the_scheme(figures: list[Illustration]) -> None:
    for figure in figures:
        assert re.findall(r"#[0-9a-fA-F]{6}|rgb\(", figure.svg) == []
        used = set(re.findall(r"var\(--fig-(\w+)\)", figure.svg))
        assert used <= set(ROLES)
        assert {"ink", "muted", "soft"} & used
    assert "headline" in set(re.findall(r"var\(--fig-(\w+)\)", figures[1].svg))
    assert {"soft", "hard"} & set(re.findall(r"var\(--fig-(\w+)\)", figures[0].svg)) == set()


def test_every_colour_has_a_value_in_both_schemes() -> None:
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)")
    for role in ROLES:
        assert f"--fig-{role}: #" in light
        assert f"--fig-{role}: #" in dark


def test_drawings_are_well_formed_named_and_carry_no_style_of_their_own(figures):
    for figure in figures:
        root = ElementTree.fromstring(figure.svg)  # noqa: S314 - our own drawing
        assert root.find("title").text == figure.title
        assert root.find("desc").text
        assert root.attrib["role"] == "img"
        assert not {"width", "height"} & set(root.attrib)  # scales with its box
        assert root.attrib["viewBox"].startswith("0 0 360 ")
        assert root.find(".//style") is None


def test_drawings_are_deterministic(figures: list[Illustration]) -> None:
    assert [figure.svg for figure in all_figures()] == [figure.svg for figure in figures]


def places(root: ElementTree.Element) -> tuple[dict[str, float], dict[str, float], list[str]]:
    """Where each text stands, across and down, and what follows each M of the paths drawn."""
    texts = [
        (one.text, float(one.attrib["x"]), float(one.attrib["y"])) for one in root.iter("text")
    ]
    grid, *drawn = (path.attrib["d"] for path in root.iter("path"))
    assert "H" in grid
    return {t: x for t, x, _ in texts}, {t: y for t, _, y in texts}, "".join(drawn).split("M")[1:]


def test_marks_stand_where_the_scales_say() -> None:
    chart = Chart("across", "down", x_range=(0.0, 10.0))
    chart.marks([2.0, np.nan, 8.0], [-40.0, 0.0, 60.0], "soft")
    chart.lines([2.0, 8.0], [-40.0, 60.0], "hard")
    x, y, drawn = places(ElementTree.fromstring(chart.svg(key="k", title="t", description="d")))  # noqa: S314
    assert [text for text in x if text.isdigit()][:6] == ["0", "2", "4", "6", "8", "10"]
    low = f"{x['2']:.2f} {y['−40'] - 3.2:.2f}"
    high = f"{x['8']:.2f} {y['60'] - 3.2:.2f}"
    assert y["60"] < y["−40"]
    assert [one.split("m")[0] for one in drawn] == [low, high, f"{low}L{high}"]


def test_names_stand_from_the_top_beside_their_marks() -> None:
    chart = Chart("across", names=["first", "second", "third"], name_roles={1: "new"})
    chart.marks([1.0, 2.0, 3.0], [0, 1, 2], "soft", "s", label="judge")
    svg = chart.svg(key="k", title="t", description="d")
    _, y, drawn = places(ElementTree.fromstring(svg))  # noqa: S314
    rows = [float(one.split()[1].split("m")[0]) for one in drawn[:3]]
    assert rows == sorted(rows)
    assert rows == pytest.approx([y[name] - 3.2 for name in ("first", "second", "third")])
    assert re.findall(r'fig-(\w+)\)">(first|second|third)</text>', svg) == [
        ("muted", "first"),
        ("new", "second"),
        ("muted", "third"),
    ]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.0, "0.0 0.2 0.4 0.6 0.8 1.0"),
        (1193.0, 1761.0, "1200 1300 1400 1500 1600 1700"),
        (-0.0031, 0.0042, "−0.002 0.000 0.002 0.004"),
        (0.793, 0.887, "0.80 0.82 0.84 0.86 0.88"),
        (2.0, 14.5, "2.5 5.0 7.5 10.0 12.5"),
    ],
)
def test_ticks_are_few_round_numbers_within(low: float, high: float, texts: str) -> None:
    assert [text for _, text in ticks(low, high)] == texts.split()


def test_slopes_are_those_of_the_example(figures: list[Illustration]) -> None:
    # hard = 1500 + 1.6 (human - 1500) + the errors that soft = 1500 + 0.97 (...) has too
    said = re.findall(r"[+-]\d+\.\d", figures[2].caption.replace("−", "-"))
    hard, soft, auto = (float(slope) for slope in said)
    assert hard - soft == pytest.approx(100 * (1.6 - 0.97), abs=0.11)
    assert auto == soft  # as the example has it


def test_unbounded_intervals_are_drawn_and_counted() -> None:
    board = example_judge(threshold=float("inf")).leaderboard
    figure = interval_figure(board, key="k", coverage="90 %")
    assert "14 of 14 intervals are unbounded" in figure.caption
    assert "stroke-dasharray" in figure.svg


def test_the_best_rating_stands_beside_those_of_judge_and_votes_alone(figures) -> None:
    svg = figures[0].svg
    for label in ("judge and votes", "judge, no votes", "judge alone", "votes alone"):
        assert svg.count(f">{label}</text>") == 1
    voted = example_judge().leaderboard.dropna(subset="human_rating")
    assert ">judge, no votes</text>" not in interval_figure(voted, key="k", coverage="90 %").svg


def test_a_judge_that_contradicts_humans_has_no_reliability_diagram() -> None:
    battles = example_judge().scored_battles
    turned = battles.assign(score_difference=-battles["score_difference"])
    figure = reliability_figure(turned, key="k")
    assert (figure.svg, figure.caption) == (
        "",
        "Not drawn: beta has no value (contradicts humans).",
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("]]></text></svg>\n<b>--><!--&", "]]></text></svg> <b>--><!--&"),
        ("costs $1 or $2", "costs $1 or $2"),
        ("bell\x07nul\x00turn\u202e", "bell nul turn"),
        ("a" * 40, "a" * 29 + "…"),
    ],
)
def test_names_are_plain_text_in_a_drawing(name: str, shown: str) -> None:
    board = example_judge().leaderboard.assign(model=name)
    svg = interval_figure(board, key="k", coverage="90 %").svg
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own drawing
    assert [text.text for text in root.iter("text")].count(shown) == 14


@pytest.mark.parametrize(("agreed", "n"), [(0, 7), (7, 7), (31, 64), (1, 2)])
def test_wilson_interval_is_scipys(agreed: int, n: int) -> None:
    expected = binomtest(agreed, n).proportion_ci(method="wilson")
    low, high = wilson_interval(np.array([agreed / n]), np.array([n]))[:, 0]
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert low <= agreed / n <= high


DRIFT = pd.DataFrame(
    {
        "statistic": ["beta", "flip_rate"] * 3,
        "epoch": [1, 1, 2, 2, 3, 3],
        "z": [0.3, None, -4.1, 0.2, None, 1.0],
        "moved": [False, False, True, False, False, False],
    }
)


@pytest.mark.parametrize(
    "drawn",
    [
        lambda: pictures.intervals(example_judge().leaderboard.head(2)),
        lambda: pictures.drift_over_epochs(DRIFT),
    ],
)
def test_thumbnails_are_small_drawings_in_markdown(drawn):
    text = drawn().value
    head, _, data = text.partition("base64,")
    assert head.startswith("![")
    assert head.endswith("](data:image/svg+xml;")
    svg = base64.b64decode(data.removesuffix(")"), validate=True)
    assert svg.startswith(b"<svg xmlns=")
    assert svg.endswith(b"</svg>")
    assert len(svg) < 60_000


# Contrast of the page's colours as WCAG 2.2 asks for it, computed in both schemes

TEXT, GRAPHIC = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11, level AA
SURFACES = ("page", "surface")
WASHES = {"mark-wash": "accent", "warn-wash": "warn", "new-wash": "new"}
TEXTS = ("ink", "muted", "accent", "warn")
MARKS = (
    "faint", "new", "fig-hard", "fig-soft", "fig-headline", "fig-new", "fig-ink", "fig-muted",
)  # fmt: skip

Colour = tuple[float, float, float]


def schemes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.S)
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in blocks)
    return {"light": light, "dark": {**light, **dark}}


def channels(colour: str, behind: str) -> Colour:
    """Red, green and blue in [0, 1], over what is behind where the colour lets it through."""
    own = [int(colour[k : k + 2], 16) / 255 for k in range(1, len(colour), 2)]
    alpha = own[3] if len(own) == 4 else 1.0
    back = [int(behind[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (alpha * a + (1 - alpha) * b for a, b in zip(own, back, strict=False))
    return red, green, blue


def luminance(colour: Colour) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str, behind: str) -> float:
    pair = (luminance(channels(colour, behind)) for colour in (first, second))
    low, high = sorted(pair)
    return (high + 0.05) / (low + 0.05)


def test_the_formula_knows_black_on_white() -> None:
    assert contrast("#000000", "#ffffff", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("surface", SURFACES)
def test_text_can_be_read(scheme: str, surface: str) -> None:
    colours = schemes()[scheme]
    for name in TEXTS:
        ratio = contrast(colours[name], colours[surface], colours[surface])
        assert ratio >= TEXT, (scheme, name, surface, ratio)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("wash", WASHES)
def test_text_can_be_read_on_marked_rows(scheme: str, wash: str) -> None:
    colours = schemes()[scheme]
    for name in ("ink", "muted", WASHES[wash]):
        ratio = contrast(colours[name], colours[wash], colours["surface"])
        assert ratio >= TEXT, (scheme, name, wash, ratio)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_and_controls_can_be_seen(scheme: str) -> None:
    colours = schemes()[scheme]
    for name in MARKS:
        for surface in SURFACES:
            ratio = contrast(colours[name], colours[surface], colours[surface])
            assert ratio >= GRAPHIC, (scheme, name, surface, ratio)


def test_the_simulation_band_can_be_read() -> None:
    ink = re.search(r"\.simulation \{.*?\bcolor: (#\w+);", STYLE, re.S)[1]
    assert contrast(ink, schemes()["light"]["simulation"], "#ffffff") >= 7
