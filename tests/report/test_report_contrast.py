"""Colours of the page, by the contrast that WCAG 2.2 asks for: computed, in both schemes."""

import re
from pathlib import Path

import pytest

import judgeline.report

STYLE = (Path(judgeline.report.__file__).parent / "templates" / "style.css").read_text("utf-8")
TEXT, GRAPHIC = 4.5, 3.0  # WCAG 2.2, 1.4.3 and 1.4.11, level AA
SURFACES = ("page", "surface")
WASHES = {"mark-wash": "accent", "warn-wash": "warn", "new-wash": "new"}
TEXTS = ("ink", "muted", "accent", "warn", "fig-missed")
MARKS = (
    "faint", "new", "fig-hard", "fig-soft", "fig-headline", "fig-new", "fig-missed", "fig-ink",
    "fig-muted",
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
