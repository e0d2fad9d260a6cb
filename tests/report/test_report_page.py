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

from judgeline.report import JudgeTables, write_report
from judgeline.report.wording import flag_words, number, span


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


@pytest.mark.slow
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


def test_a_method_that_is_nearer_than_the_one_that_ranks_is_said(html: str) -> None:
    said = "the mean absolute error is hard 57.6 Elo, and 61.3 Elo by auto (headline), which ranks."
    assert html.count("Another method is nearer to people here") == 1  # of two judges
    assert said in html


def test_the_headline_counts_the_intervals_that_hold_and_no_split(html: str) -> None:
    texts = Page(html).texts
    held = texts[texts.index("intervals hold the human rating (90 % promised)") :]
    assert next(text for text in held[1:] if text) == "13 of 13"
    assert "coverage on held-back models" not in html
    headlines = re.findall(r'<dl class="headline">.*?</dl>', html, re.S)
    assert len(headlines) == 2
    assert "100 %" not in "".join(headlines)


def test_missed_intervals_carry_a_mark_and_the_word(tmp_path: Path) -> None:
    tables = example_judge()
    board = tables.leaderboard
    off = board.assign(upper=board["upper"].mask(board.index < 2, board["rating"] - 30))
    html = write(tmp_path / "missed.html", [replace(tables, leaderboard=off)], comparison=None)
    assert html.count('<span class="badge">missed</span>') == 2
    assert html.count('<tr class="missed">') == 2
    assert "11 of 13" in Page(html).texts
    assert "judge, missed" in Page(html).texts  # the chart's legend


def test_ranks_stand_with_those_that_chance_allows_and_no_tier_is_left(html: str) -> None:
    assert '<td class="number" data-key="9.0">9 (6 to 11)</td>' in html
    assert not re.search(r"\btiers?\b", html, re.I)


def test_the_basis_of_a_board_is_said_once(html: str) -> None:
    said = "Models are rated by auto; gap: 12 others (13 of 14 models); gap: 13 others (1 of 14"
    assert html.count(said) == 2  # once a judge


def test_coverage_of_random_halves_says_what_it_is_and_groups_below_are_marked(html: str) -> None:
    texts = Page(html).texts
    assert "random halves: near its target by design" in texts
    group = "above the upper third 2 of 5"
    assert texts.count(f"⚠ {group}; fewer battles 6 of 6") == 4  # two methods of both judges
    assert html.count(f"unlike those that calibrate them: {group}.") == 2


def test_surrogacy_is_said_where_ratings_are(html: str) -> None:
    assert html.count("(gamma 0.50, SE 0.16)") == 2


def test_tables_of_an_earlier_version_are_shown(tmp_path: Path) -> None:
    tables = example_judge()
    new = ["best_rank", "worst_rank", "basis"]
    splits = ["excess_sd", "n_structured", "structured_coverage", "structured", "structured_below"]
    board = tables.leaderboard.drop(columns=new).assign(tier=1, method="soft")
    conformal = tables.conformal_calibration.drop(columns=splits)
    old = replace(tables, leaderboard=board, conformal_calibration=conformal)
    html = write(tmp_path / "old.html", [old], comparison=None)
    assert "Models are rated by soft. 90 % intervals" in html


def test_infinite_thresholds_read_unbounded_with_their_reason(html: str) -> None:
    page = Page(html)
    assert f"Intervals are unbounded: {TOO_FEW}." in page.texts
    assert f"soft (calibrated), auto (headline): {TOO_FEW}." in page.texts
    assert not {"inf", "nan", "NaN", "−inf"} & set(page.texts)
    assert page.texts.count("unbounded") >= 14  # every interval of the noisy judge


def test_folds_without_a_slope_and_failed_checks_are_said(html: str) -> None:
    assert "Beta has no value in 1 of 14 folds (separable)" in html
    assert "1 of 2 quality checks failed" in html
    assert "Raise the judge&#39;s token limit" in html


def test_models_without_votes_carry_a_badge(html: str) -> None:
    assert html.count('<span class="badge">no human votes</span>') == 2  # one per judge
    assert "the judge always prefers it" in html


@pytest.mark.slow
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
        "import sys, pathlib; sys.path[:0] = sys.argv[1:]; import judgeline.report;"
        "assert not [m for m in sys.modules if m.startswith('matplotlib')];"
        "from test_report_tables import example_judge;"
        "from judgeline.report.figures import beta_figure;"
        "beta_figure(example_judge().beta_folds, key='k');"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, *sys.path], check=True)


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


@pytest.mark.slow
def test_judges_together_have_a_section_with_their_board_alone(tmp_path: Path) -> None:
    board = example_judge("careful", "Careful").leaderboard.assign(
        method="pooled", basis="regression of votes on the mean score and gap of 2 judges"
    )
    page = write(tmp_path / "pooled.html", pooled=board)
    section = page[page.index('<section id="pooled">') : page.index('<section id="comparison">')]
    assert "rated by pooled, regression of votes on the mean score and gap of 2 judges" in section
    assert re.search(r"\d+ of \d+ intervals hold the human rating \(\d+ % promised\)\.", section)
    assert section.count("<table") == 1
    assert '<a href="#pooled">' in page
    assert 'id="pooled"' not in write(tmp_path / "without.html")
