"""The page: what it says, what it never says, and that nothing of it runs or leaves the file."""

import re
import subprocess
import sys
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_examples import (
    HOSTILE,
    SCRIPT,
    TOO_FEW,
    Page,
    example_battles,
    example_comparison,
    example_judge,
    example_judges,
    write,
)

from judgeline.report import JudgeTables
from judgeline.report.battles import MOST_PER_PAGE, MOST_TEXT
from judgeline.report.grid import FIELDS, columns
from judgeline.report.wording import flag_words, number, span
from judgeline.tables.words import WORDS
from judgeline.terminal import leaderboard_table
from judgeline.winrate import LabelPlans, WinRateCoverage


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    return write(folder / "report.html", simulated=True)


def judge(**changes: object) -> JudgeTables:
    return replace(example_judge(), **changes)


# Safety


def test_untrusted_names_and_texts_stay_text(html: str) -> None:
    page = Page(html)
    assert page.tags.count("script") == 1  # ours
    assert not {"img", "b", "iframe", "object", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [value for _, value in page.attributes if "javascript:" in value]
    assert not {"\x1b", "\x00", "\u202e", "\U000e0041"} & set(html)
    assert SCRIPT in page.texts  # in the table and, as text, in the drawings
    assert "ember-mini $x^2$" in page.texts
    assert any("</script><script>document.title='stolen'" in text for text in page.texts)
    assert "1\u2009000 more" not in html
    assert "… (1,000 more characters)" in html


def test_thoughts_stand_beside_the_answer_as_text(tmp_path: Path) -> None:
    thought = HOSTILE[0] + HOSTILE[1] + "t" * 3_000
    (battle,) = example_battles(models=1)[:1]
    readings = (replace(battle.readings[0], reasoning=thought), battle.readings[1])
    shown = judge(battles=[replace(battle, readings=readings)])
    html = write(tmp_path / "thoughts.html", [shown], comparison=None)
    page = Page(html)
    assert page.texts.count("Its thoughts before that answer") == 1  # the other has none
    assert any(thought[:1_900] in text for text in page.texts)
    assert (page.tags.count("script"), "svg" in thought, "t" * 2_500 in html) == (1, True, False)
    assert not [name for name, _ in page.attributes if name.startswith("on")]


def test_nothing_refers_outside_the_file_and_the_policy_forbids_it(html: str) -> None:
    page = Page(html)
    links = {value for name, value in page.attributes if name in ("href", "src", "xlink:href")}
    assert {link for link in links if not link.startswith(("#", "data:,"))} == set()
    assert set(re.findall(r"https?:|//\w+\.|@import|url\((?!#)", html)) == set()
    policy = next(value for name, value in page.attributes if "default-src" in value)
    assert policy.startswith("default-src 'none'")
    assert re.search(r"script-src 'sha256-[\w+/]{43}='", policy)
    assert not re.search(r"https?:|\*|unsafe-eval|script-src[^;]*unsafe", policy)


def test_ids_are_unique_and_every_reference_has_a_target(html: str) -> None:
    attributes = Page(html).attributes
    ids = [value for name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))
    wanted = {value[1:] for name, value in attributes if name == "href" and value[:1] == "#"}
    for name, value in attributes:
        wanted |= set(value.split()) if name == "aria-labelledby" else set()
    wanted |= set(re.findall(r"url\(#([^)]+)\)", html))
    assert wanted <= set(ids)


# What the page says


@pytest.mark.parametrize(
    ("said", "times"),
    [
        ("<title>Simulation: Judges of an example</title>", 1),
        ("Another method is nearer to people here", 1),  # of two judges
        ("hard 57.6 Elo, and 61.3 Elo by auto (headline), which ranks: it was", 1),
        ('<td class="number" data-key="9.0">9 <span class="chance">(6 to 11)</span></td>', None),
        ("By the judge alone they are rated by auto, gap: 12 to 13 others.", 2),
        ("4 of 14 models may be the best.", 2),
        ("the judge is 20 Elo from people on average; a perfect judge would show 11.", 1),
        ("Skill 0.94 (0.88 to 0.97): ", 2),
        ("<dt>skill: what the judge knows without votes</dt><dd>0.94</dd>", 2),
        ('<td class="nowrap" data-key="143.0">judge and 143 votes</td>', 26),
        ('<td class="nowrap" data-key="0.0">judge</td>', 2),
        ("intervals hold", 0),
        ("unlike those that calibrate them: above the upper third 2 of 5.", 2),
        (">⚠ above the upper third 2 of 5; fewer battles 6 of 6<", 4),  # two methods, two judges
        ("random halves: near its target by design", None),
        ("(gamma 0.50, SE 0.16)", 2),
        (f"Intervals are unbounded: {TOO_FEW}.", 1),
        (TOO_FEW, 1),
        ('soft (calibrated), auto (headline): <a href="#j2-findings">the reason is above', 1),
        ("Beta has no value in 1 of 14 folds (separable)", 1),
        (">1 of 2 quality checks failed</a>: parse rate.", 1),
        ("Raise the judge&#39;s token limit", 1),
        ("1 of 2 checks passed, with what each saw", 1),
        ('<span class="badge">no human votes</span>', 2),
        ("the judge always prefers it", None),
        ("coverage on held-back models", 0),
        ("Left out, since", 0),
        ('id="pooled"', 0),
    ],
)
def test_the_page_says(html: str, said: str, times: int | None) -> None:
    assert said in html if times is None else html.count(said) == times


def test_what_the_first_sentence_says_of_a_board_is_not_said_beside_it_again(html: str) -> None:
    """Each board says once whom nobody has voted on, the first one in the sentence above it."""
    assert html.count("Not voted on: ") == 2


def test_summaries_of_folded_sections_say_what_is_in_them(html: str) -> None:
    summaries = re.findall(
        r"<summary><(h[23])>(.*?)</\1> <span class=\"said\">(.*?)</span></summary>", html
    )
    said = {re.sub("<.*?>", "", title): finding for _, title, finding in summaries}
    assert said["Careful judge: everything"] == (
        "19.5 Elo from people on average over 13 models; 1 quality check failed."
    )
    assert said["Provenance"] == "2 settings and versions."
    assert said["Coverage and width of the intervals"] == (
        "Intervals by auto (headline) are unbounded."  # of the noisy judge, which comes last
    )


def test_the_first_screen_holds_no_ids_and_no_parameters(html: str) -> None:
    first = html[: html.index('id="comparison"')]
    assert "Not voted on: " in first
    assert not re.search(r"gamma|is nearer to people here|without \d+ of \d+ battles", first)
    assert 'href="#' in first


def test_the_nearest_of_all_methods_is_named_first(tmp_path: Path) -> None:
    known = example_judge()
    near = known.summary.iloc[:1].assign(method="average", mae=9.5)
    summary = pd.concat([known.summary, near], ignore_index=True)
    page = write(tmp_path / "near.html", [judge(summary=summary)], comparison=None)
    assert "nearer to people here: the mean absolute error is average 9.5 Elo" in page


def test_numbers_of_the_page_are_words_where_there_is_no_number(html: str) -> None:
    texts = Page(html).texts
    assert "SIMULATION" in texts
    assert not {"inf", "nan", "NaN", "−inf"} & set(texts)
    assert texts.count("unbounded") >= 14  # every interval of the noisy judge
    assert not re.search(r"\btiers?\b", html, re.I)
    headlines = re.findall(r'<dl class="headline">.*?</dl>', html, re.S)
    assert len(headlines) == 2
    assert "100 %" not in "".join(headlines)


def test_models_far_from_people_and_beyond_them_are_named_in_words(tmp_path: Path) -> None:
    """新模型-nova, which nobody voted on, put above the best of people's 1672."""
    board = example_judge().leaderboard
    new = board["human_rating"].isna()
    flags = board["flags"].mask(board.index == 1, "far-from-people")
    off = board.assign(
        flags=flags.mask(new, "no-votes;beyond-anchors"),
        judge_rating=board["judge_rating"].mask(new, 1801.0),
    )
    usual = write(tmp_path / "usual.html", [judge()], comparison=None)
    page = write(tmp_path / "off.html", [judge(leaderboard=off)], comparison=None)
    said = "新模型-nova stands above all 13 models that people have rated (1801, best of them 1672)"
    flags = ">judge far from people</td>", ">beyond all that people have rated</td>"
    for words in (*flags, said):
        assert (page.count(words), usual.count(words)) == (1, 0), words
    assert f'<p class="finding warns">{said}' in page


def test_the_leader_is_the_first_of_the_board_or_none(tmp_path: Path) -> None:
    board = example_judge().leaderboard
    first = board["model"].iloc[0]
    few = board.assign(flags=board["flags"].mask(board.index == 0, "no-votes;few-battles"))
    page = write(tmp_path / "few.html", [judge(leaderboard=few)], comparison=None)
    assert "Elo points from those of people on average" in page
    assert not re.search(r" leads(:| those)", page)
    usual = write(tmp_path / "usual.html", [judge()], comparison=None)
    assert f"{escape(first)} leads: " in usual


def test_a_count_of_the_board_is_shown_by_its_name_in_terminal_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("intervals", "report.page"):
        monkeypatch.setattr(f"judgeline.{module}.COUNTS", ("n_battles", "n_met_models"))
    board = example_judge().leaderboard
    board = board.assign(n_met_models=[7001 + row for row in range(len(board))])
    page = write(tmp_path / "counts.html", [judge(leaderboard=board)], comparison=None)
    assert '<span class="label">Met models</span></th>' in page
    assert 'data-key="7001.0">7\u2009001</td>' in page
    shown = leaderboard_table(board, "")
    cells = {str(column.header): [str(cell) for cell in column.cells] for column in shown.columns}
    assert cells["met models"][0] == "7001"
    assert cells["battles"] == board["n_battles"].astype(str).tolist()


def test_widths_that_no_half_could_try_are_not_called_unbounded(tmp_path: Path) -> None:
    tables = example_judge()
    widths = dict.fromkeys(["median_width", "width_min", "width_max"], np.inf)
    counts = []
    for more in ({}, widths, {**widths, "threshold": np.inf}):
        conformal = tables.conformal_calibration.assign(**more)
        found = judge(conformal_calibration=conformal)
        page = write(tmp_path / f"{len(counts)}.html", [found], comparison=None)
        counts.append(page.count("unbounded"))
    assert counts[0] == counts[1] < counts[2]


def test_tables_of_an_earlier_version_are_shown(tmp_path: Path) -> None:
    tables = example_judge()
    splits = ["excess_sd", "n_structured", "structured_coverage", "structured", "structured_below"]
    splits += ["skill", "skill_lower", "skill_upper", "floor"]
    splits += ["published_threshold", "published_width"]
    board = tables.leaderboard.drop(columns="basis").assign(tier=1, method="soft")
    conformal = tables.conformal_calibration.drop(columns=splits)
    old = judge(leaderboard=board, conformal_calibration=conformal)
    html = write(tmp_path / "old.html", [old], comparison=None)
    said = re.search(r"90 % intervals: (\d+) of (\d+) are finite, median width (\d+) Elo", html)
    finite = (board["upper"] - board["lower"]).replace(np.inf, np.nan).dropna()
    known = [len(finite), len(board), round(finite.median())]
    assert [int(part) for part in said.groups()] == known
    assert "By the judge alone they are rated by soft. " in html
    assert "Skill: not measured, with 13 models that have votes." in html
    assert "Missing verdicts" not in html
    assert "simulation" not in html.split("</style>")[1].lower()


def test_one_judge_without_comparison_checks_or_ratings_still_makes_a_page(tmp_path: Path) -> None:
    tables = example_judge()
    numbers = ["rating", "lower", "upper", "judge_rating", "judge_lower", "judge_upper"]
    nothing = dict.fromkeys(numbers, float("nan"))
    bare = judge(
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


def test_judges_together_and_judges_left_out(tmp_path: Path) -> None:
    basis = "regression of votes on the mean score and gap of 2 judges"
    board = example_judge().leaderboard.assign(method="pooled", basis=basis)
    page = write(tmp_path / "pooled.html", pooled=board, left_out=["hasty", "<b>x</b>"])
    section = page[page.index('<section id="pooled">') : page.index('<section id="j1-all"')]
    assert f"rated by pooled, {basis}" in section
    assert section.count("<table") == 1
    assert "stands above all" not in section
    new = board["human_rating"].isna()
    above = board.assign(
        flags=board["flags"].mask(new, "no-votes;beyond-anchors"),
        judge_rating=board["judge_rating"].mask(new, 1801.0),
    )
    assert "nova stands above all 13 models" in write(tmp_path / "above.html", pooled=above)
    assert '<a href="#pooled">' in page
    assert "Left out, since" in page
    assert "hasty, &lt;b&gt;x&lt;/b&gt;" in page


def test_a_withheld_judge_has_no_battles_on_the_page(tmp_path: Path) -> None:
    board = example_judge().leaderboard
    told = {"asset": "candidate_ratings", "name": "controls_stay_low", "passed": False}
    told |= {"observed": "null-model is rated 1777 Elo", "remedy": ""}
    checks = pd.concat([example_judge().checks, pd.DataFrame([told])])
    for flags, is_shown in (("withheld: kappa 0.05 < 0.20", False), ("", True)):
        shown = judge(leaderboard=board.assign(flags=flags), checks=checks)
        html = write(tmp_path / "report.html", [shown], comparison=None)
        assert ('class="battle"' in html) is ("1777" in html) is is_shown


def test_a_page_stays_bounded_however_much_there_is(tmp_path: Path) -> None:
    many = [*example_battles(models=14)] * 60
    few, full = (
        len(write(tmp_path / "x.html", [judge(battles=battles)], comparison=None))
        for battles in (example_battles(), many)
    )
    assert full - few < 1.2 * MOST_PER_PAGE  # escapes take a little more than what they stand for
    assert len(many) * MOST_TEXT > 2 * MOST_PER_PAGE  # so that there was something to leave out


# What it is made of


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_equal_arguments_give_an_equal_file(html: str, tmp_path: Path) -> None:
    assert write(tmp_path / "again.html", simulated=True) == html


def test_a_failed_write_leaves_the_old_report_alone(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("the old report")

    def broken(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write(path)
    assert path.read_text() == "the old report"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("judges", [[], [example_judge(), example_judge()]])
def test_judges_must_be_there_and_differ(judges: list[JudgeTables], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a report needs judges, each once"):
        write(tmp_path / "report.html", judges)


def test_a_column_that_lacks_is_named_with_its_table_and_judge(tmp_path: Path) -> None:
    tables = example_judge()
    with pytest.raises(ValueError, match="leaderboard of judge 'careful' lacks upper, flags"):
        judge(leaderboard=tables.leaderboard.drop(columns=["upper", "flags"]))
    with pytest.raises(ValueError, match="'careful' is empty"):
        judge(leaderboard=tables.leaderboard.iloc[:0])
    with pytest.raises(ValueError, match="judge_comparison lacks kappa"):
        write(tmp_path / "report.html", comparison=example_comparison().drop(columns="kappa"))


def test_fields_are_columns_of_the_declared_tables_or_made_here() -> None:
    made_here = {"named", "meaning", "split", "target", "width", "width_range", "n_missing_other"}
    # of checks, runs, costs and of the account of judging, which are no tables of the lineage
    made_here |= {"asset", "blocking", "made_at", "name", "n_bought", "n_calls", "remedy"}
    made_here |= {"price", *LabelPlans._fields, *WinRateCoverage._fields}
    assert {column.field for column in columns(FIELDS)} <= WORDS.keys() | made_here


def test_a_list_of_columns_says_what_differs() -> None:
    usual, renamed, unit, form = columns("mae; mae: Error ~two; mae | points; note: Why ~yes")
    assert (usual.label, usual.unit, usual.show(1.25), usual.numeric) == (
        "Mean absolute error", "Elo", "1.2", True,
    )  # fmt: skip
    assert (renamed.label, renamed.unit, renamed.show(1.25)) == ("Error", "", "1.25")
    assert (unit.label, unit.unit) == (usual.label, "points")
    assert (form.label, form.show(True), form.numeric) == ("Why", "yes", False)


@pytest.mark.slow
def test_a_drawing_needs_no_matplotlib() -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[1:];"
        "from report_examples import example_judge;"
        "from judgeline.report.figures import beta_figure;"
        "assert '<svg' in beta_figure(example_judge().beta_folds, key='k').svg;"
        "assert not [m for m in sys.modules if m.startswith('matplotlib')]"
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
    assert [one.ranking_method for one in example_judges()] == ["auto", "auto"]
