import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from test_report_tables import (
    SCRIPT,
    TOO_FEW,
    example_comparison,
    example_judge,
    example_judges,
)

from resources.report import JudgeTables, write_report
from resources.report.wording import flag_words, number, span


def write(path: Path, judges: list[JudgeTables] | None = None, **changes: object) -> str:
    arguments: dict[str, object] = {
        "title": "Judges of an example",
        "corpus_name": "Example",
        "simulated": False,
        "judges": example_judges() if judges is None else judges,
        "provenance": {"corpus": "example", "<i>seed</i>": "<img src=x onerror=alert(2)>"},
        "comparison": example_comparison(),
    }
    return write_report(path, **{**arguments, **changes}).read_text(encoding="utf-8")


class Page(HTMLParser):
    """Elements and attributes as a browser's parser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(" ".join(data.split()))


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write(tmp_path_factory.mktemp("report") / "report.html", simulated=True)


def test_judges_that_are_left_out_are_named(tmp_path: Path) -> None:
    told = write(tmp_path / "one.html", left_out=["hasty", "<b>x</b>"])
    assert "Left out, since" in told
    assert "hasty, &lt;b&gt;x&lt;/b&gt;" in told
    assert "Left out, since" not in write(tmp_path / "none.html")


def test_untrusted_names_stay_text(html: str) -> None:
    page = Page(html)
    assert page.tags.count("script") == 1  # ours
    assert "img" not in page.tags
    assert "b" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert SCRIPT in page.texts  # in the table and, as text, in the drawings
    assert "ember-mini $x^2$" in page.texts


def test_nothing_refers_outside_the_file(html: str) -> None:
    page = Page(html)
    links = {value for name, value in page.attributes if name in ("href", "src", "xlink:href")}
    assert {link for link in links if not link.startswith(("#", "data:,"))} == set()
    assert set(re.findall(r"https?:|//\w+\.|@import|url\((?!#)", html)) == set()


def test_the_policy_forbids_the_network_and_names_the_one_script(html: str) -> None:
    policy = next(value for name, value in Page(html).attributes if "default-src" in value)
    assert policy.startswith("default-src 'none'")
    assert re.search(r"script-src 'sha256-[\w+/]{43}='", policy)
    assert not re.search(r"https?:|\*|unsafe-eval|script-src[^;]*unsafe", policy)


def test_ids_are_unique_and_every_reference_has_a_target(html: str) -> None:
    attributes = Page(html).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))
    wanted = {value[1:] for name, value in attributes if name == "href" and value[:1] == "#"}
    wanted |= {target for name, value in attributes if name == "aria-labelledby"
               for target in value.split()}  # fmt: skip
    wanted |= set(re.findall(r"url\(#([^)]+)\)", html))
    assert wanted <= set(ids)


def test_a_simulation_says_so_and_a_corpus_does_not(html: str, tmp_path: Path) -> None:
    assert "SIMULATION" in Page(html).texts
    assert "<title>Simulation: Judges of an example</title>" in html
    assert "simulation" not in write(tmp_path / "real.html").split("</style>")[1].lower()


def test_soft_worse_than_hard_is_said_and_better_too(html: str) -> None:
    worse = "Calibration made this judge worse: the mean absolute error is 61.3 Elo with soft"
    assert html.count("Calibration made this judge worse") == 1
    assert worse in html
    assert "the mean absolute error is 19.5 Elo soft and 57.6 Elo hard" in html


def test_infinite_thresholds_read_unbounded_with_their_reason(html: str) -> None:
    page = Page(html)
    assert f"Intervals are unbounded: {TOO_FEW}." in page.texts
    assert f"soft (calibrated): {TOO_FEW}." in page.texts
    assert not {"inf", "nan", "NaN", "−inf"} & set(page.texts)
    assert page.texts.count("unbounded") >= 14  # every interval of the noisy judge


def test_folds_without_a_slope_and_failed_checks_are_said(html: str) -> None:
    assert "Beta has no value in 1 of 14 folds (separable)" in html
    assert "1 of 2 quality checks failed" in html
    assert "Raise the judge&#39;s token limit" in html


def test_models_without_votes_carry_a_badge(html: str) -> None:
    assert html.count('<span class="badge">no human votes</span>') == 2  # one per judge
    assert "the judge always prefers it" in html


@pytest.mark.filterwarnings("error")
def test_equal_arguments_give_an_equal_file(html: str, tmp_path: Path) -> None:
    assert write(tmp_path / "again.html", simulated=True) == html


def test_a_failed_write_leaves_the_old_report_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("the old report")

    def broken(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write(path)
    assert path.read_text() == "the old report"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_one_judge_without_comparison_checks_or_ratings_still_makes_a_page(tmp_path: Path) -> None:
    tables = example_judge()
    nothing = {"rating": float("nan"), "lower": float("nan"), "upper": float("nan")}
    bare = replace(
        tables,
        leaderboard=tables.leaderboard.assign(**nothing, human_rating=float("nan")),
        heldout_ratings=tables.heldout_ratings.assign(residual=float("nan")),
        summary=tables.summary.assign(mae=float("nan")),
        beta_folds=tables.beta_folds.assign(status="contradicts-humans"),
        scored_battles=tables.scored_battles.assign(human_outcome=float("nan")),
        judge_diagnostics=tables.judge_diagnostics.iloc[:0],
        checks=None,
    )
    html = write(tmp_path / "report.html", [bare], comparison=None)
    assert html.count("Not drawn: ") == 6
    assert "nan%" not in html
    assert "Comparison of judges" not in html


@pytest.mark.parametrize("judges", [[], [example_judge(), example_judge()]])
def test_judges_must_be_there_and_differ(judges: list[JudgeTables], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a report needs judges, each once"):
        write(tmp_path / "report.html", judges)


def test_a_comparison_must_have_its_columns(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="judge_comparison lacks kappa"):
        write(tmp_path / "report.html", comparison=example_comparison().drop(columns="kappa"))


def test_matplotlib_waits_until_something_is_drawn_and_pyplot_forever() -> None:
    program = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); import resources.report;"
        "assert not [m for m in sys.modules if m.startswith('matplotlib')];"
        "from test_report_tables import example_judge;"
        "from resources.report.figures import beta_figure;"
        "beta_figure(example_judge().beta_folds, key='k');"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    here = Path(__file__).parent
    subprocess.run([sys.executable, "-c", program, str(here)], check=True, cwd=here.parents[1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-12.34, "−12.3"),
        (12.34, "+12.3"),
        (-0.04, "0.0"),
        (float("nan"), "–"),
        (pd.NA, "–"),
        (None, "–"),
        (float("inf"), "unbounded"),
    ],
)
def test_numbers_read_as_a_person_writes_them(value: float, text: str) -> None:
    assert number(value, 1, signed=True) == text


def test_intervals_and_flags_read_as_words() -> None:
    assert span(1401.2, 1500.7) == "1401 – 1501"
    assert span(float("-inf"), float("inf")) == "unbounded"
    assert flag_words("no-votes;brand-new") == ["no human votes", "brand new"]
    assert flag_words("") == []
