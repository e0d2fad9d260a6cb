"""From a rating to its votes: `judgeline why` on a small arena, and its page in a browser."""

import io
import json
import shutil
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from browsing import fits, opened, show
from rich.console import Console
from scipy.optimize import brentq

from assets.provenance import MADE_FROM
from judgeline.cli import main
from judgeline.report import lead_text
from pipelines.commands.why import Why, explain_rating
from pipelines.commands.why_shown import lines_of, markdown_of, show_why
from resources.tables.store import open_store

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J[red]bold[/red] :smile: \u202egnorw\u202c\n"
    "# heading\n```\n<script>alert(1)</script>\n[x](javascript:alert(1)) " + "y" * 900
)


@pytest.fixture
def ask(finished, monkeypatch, tmp_path):
    """Ask why, over a copy of the tables that a test may change."""
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JUDGELINE_CONFIG", str(finished.home))
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    tables = tmp_path / "home" / "tables"
    shutil.copytree(finished.home / "tables", tables)

    def explain(model: str, **options) -> Why:
        return explain_rating(model, "tiny", "careful", store=open_store(str(tables)), **options)

    explain.tables = tables
    return explain


@pytest.fixture
def best(finished) -> str:
    return str(finished.stored("leaderboard", "tiny", "careful")["model"].iloc[0])


def changed(ask, place: str, **columns) -> pd.DataFrame:
    """Change columns of a stored table; return what it was."""
    file = ask.tables / f"{place}.parquet"
    table = pd.read_parquet(file)
    table.assign(**columns).to_parquet(file)
    return table


def put(ask, place: str, table: pd.DataFrame) -> None:
    file = ask.tables / f"{place}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    table.to_parquet(file)


WITHHELD = "withheld: kappa 0.05 < 0.20"


def printed(why: Why, **options) -> str:
    out = io.StringIO()
    show_why(Console(file=out, width=100, force_terminal=False), lines_of(why, **options))
    return out.getvalue()


def test_a_rating_is_that_of_the_board_with_everything_behind_it(ask, finished, best):
    why = ask(best, top=2, instance=finished.instance)
    row = finished.stored("leaderboard", "tiny", "careful").iloc[0]
    assert why.rating["rating"] == row["rating"]
    assert why.rating["evidence"] == f"judge and {row['n_votes']} votes"
    heldout = finished.stored("heldout_ratings", "tiny", "careful")
    own = heldout.query("model == @best and method == 'auto'").iloc[0]
    assert why.rating["judge_rating"] == own["rating"]
    half = why.rating["threshold"] * why.rating["spread"]
    ends = np.array([-half + min(own["outward"], 0), half + max(own["outward"], 0)])
    assert row[["judge_lower", "judge_upper"]].tolist() == pytest.approx(own["rating"] + ends)
    assert why.rating["outward"] == pytest.approx(own["outward"])
    assert why.rating["n_calibrating"] == 12  # as of a newcomer, its own residual included
    folds = finished.stored("beta_folds", "tiny", "careful").set_index("held_out_model")
    assert why.fold["beta"] == folds.loc[best, "beta"]
    assert (len(why.raises), len(why.lowers)) == (2, 2)
    assert why.raises[0].influence > why.raises[1].influence > 0 > why.lowers[1].influence
    strongest = why.raises[0]
    assert [reading.order for reading in strongest.readings] == ["AB", "BA"]
    soft = ask(best, top=1, method="soft").raises[0]
    points = np.mean([reading.difference for reading in soft.readings])
    assert soft.outcome == pytest.approx(1 / (1 + np.exp(-why.fold["beta"] * points)))
    assert all('"response_1"' in reading.answer for reading in strongest.readings)
    assert strongest.instruction
    assert strongest.completion != strongest.opponent_completion


def test_votes_are_among_what_moves_a_rating_by_judge_and_votes(ask, finished, best):
    why, share = ask(best, top=1000), ask(best, top=1).judge_share
    votes, row = pd.DataFrame(why.votes), why.rating
    scored = finished.stored("scored_battles", "tiny", "careful").set_index("battle_id")
    own = scored[scored["human_outcome"].notna()]
    own = own[own["model_a"].eq(best) | own["model_b"].eq(best)]
    assert {*votes["battle_id"]} == {*own.index}
    told = own["human_outcome"].where(own["model_a"].eq(best), 1 - own["human_outcome"])
    votes = votes.set_index("battle_id")
    assert votes["outcome"].to_dict() == told.to_dict()
    chance = votes["expected"]
    pull = share / (1 - share) * (chance * (1 - chance)).sum()  # d / v of the posterior
    moved = (row["rating"] - row["judge_rating"]) * np.log(10) / 400
    assert (votes["outcome"] - chance).sum() == pytest.approx(pull * moved, rel=1e-6)
    strongest = votes["influence"].abs().idxmax()
    anchors = np.log(1 / chance - 1)  # below the rating, in logits

    def left(step):
        kept = votes.index != strongest
        fresh = 1 / (1 + np.exp(-(step - anchors[kept])))
        return (votes["outcome"][kept] - fresh).sum() - pull * (moved + step)

    without = brentq(left, -1, 1) * 400 / np.log(10)
    assert -without == pytest.approx(votes.loc[strongest, "influence"], rel=0.02)
    text = printed(ask(best, top=1))
    assert f"a point more of it moves the rating by {share:.2f}" in text
    assert "Votes that move the rating most (2 of" in text
    assert "Battles that raise the judge's rating most (1 of" in text
    assert "what holds its place by the judge alone" in text
    alone = printed(ask(best, top=1, method="soft"))
    assert "Votes that move" not in alone
    assert "Battles that raise the rating most" in alone


def test_what_holds_a_place_is_few_battles_of_the_corpus(ask, finished, best):
    board = finished.stored("leaderboard", "tiny", "careful")
    board = board.sort_values("judge_rating", ascending=False)  # battles hold the judge's order
    (lead,) = ask(str(board["model"].iloc[0])).leads
    assert [lead.model, lead.rival] == board["model"].head(2).tolist()
    assert lead.lead == pytest.approx(-board["judge_rating"].head(2).diff().iloc[1])
    assert lead.lead_without < 0
    scored = finished.stored("scored_battles", "tiny", "careful")
    assert {*lead.battle_ids} <= {*scored["battle_id"]}
    assert 0 < len(lead.battle_ids) < len(scored) / 2
    above, below = ask(board["model"].iloc[1]).leads
    assert above == lead
    assert [below.model, below.rival] == board["model"].iloc[1:3].tolist()
    assert f"{lead.model} leads {lead.rival} by" in printed(ask(lead.model))


def test_an_interval_is_a_threshold_times_a_spread_and_auto_has_a_name(ask, finished, best):
    why = ask(best, top=0)
    own, ratings = why.rating, finished.stored("heldout_ratings", "tiny", "careful")
    row = ratings.query("model == @best and method == 'auto'").iloc[0]
    clustered = row["vote_std_error"] * np.sqrt(row["design_effect"])
    assert own["vote_std_error"] == pytest.approx(clustered)
    parts = [own["judge_std_error"], own["vote_std_error"], own["excess_sd"]]
    assert own["spread"] == pytest.approx(np.linalg.norm(parts))
    assert {"human", "hard", "soft", "hard-rescaled", "gap", "average", "auto"} <= {*why.by_method}
    assert why.by_method["auto"] == why.by_method["gap"] == own["judge_rating"]
    text = printed(why)
    assert f": {own['threshold']:.2f} x {own['spread']:.1f} Elo to either side" in text
    assert f"rank 1, between 1 and {own['worst_rank']}" in text
    alone = f"{own['judge_rating']:.1f} Elo, as if nobody had voted on it"
    places = [text.index(part) for part in (f"{own['rating']:.1f} Elo", own["evidence"], alone)]
    assert places == sorted(places)
    assert ("farther out" in text) is (abs(own["outward"]) >= 0.05)
    assert "auto is gap: 11 other models have votes, fewer than 20; " in text
    assert f"hard {why.by_method['hard']:.1f}" in text


def test_the_runs_and_what_they_said_are_told(ask, finished, best):
    why = ask(best, top=0, instance=finished.instance)
    assert [one.asset for one in why.made][-2:] == ["leaderboard", "battle_influences"]
    assert {one.run_id for one in why.made} <= {run.run_id for run in finished.instance.get_runs()}
    assert why.origin["sample_seed"] == why.origin["rating_settings"]["seed"] == 0
    assert [len(why.origin[name]) for name in ("template_hash", "judge_identity")] == [64, 32]
    text = printed(why)
    assert why.origin["judge_identity"] in text
    assert f"run {why.made[0].run_id}, code version {why.made[0].code_version}" in text


def test_ratings_carry_their_origin_as_metadata(finished):
    for asset in ("heldout_ratings", "leaderboard"):
        metadata = finished.metadata(asset)
        origin = {**metadata, **metadata.get(MADE_FROM, {})}
        assert origin["prompt_version"] == "1"
        assert {"verdicts", "scored_battles"} <= set(origin["inputs"])
        assert metadata["dagster/table_name"] == asset


def test_influences_are_those_of_the_table(ask, finished, best):
    own = finished.stored("battle_influences", "tiny", "careful").query("model == @best")
    why = ask(best, top=50)
    assert why.n_battles == len(own)
    told = {one.battle_id: one.influence for one in (*why.raises, *why.lowers)}
    assert told == pytest.approx(own.set_index("battle_id")["influence"].to_dict())


@pytest.mark.parametrize("method", ["hard", "human", "soft-rescaled"])
def test_other_methods_are_worked_out_here(ask, finished, best, method):
    why = ask(best, method=method, top=1)
    ratings = finished.stored("heldout_ratings", "tiny", "careful")
    own = ratings.query("model == @best and method == @method")
    assert why.rating["rating"] == pytest.approx(own["rating"].item())
    assert why.n_battles == own["n_battles"].item()


def test_tables_of_before_are_explained_without_influences_or_runs(ask, best):
    shutil.rmtree(ask.tables / "battle_influences")
    why = ask(best, top=1)
    assert why.raises
    assert why.made == []
    assert "no runs are recorded here" in printed(why)


def test_a_withheld_rating_shows_no_battle_and_no_number(ask, best):
    hidden = ("rank", "rating", "std_error", "lower", "upper", "best_rank")
    changed(ask, "leaderboard/tiny/careful", **dict.fromkeys(hidden, np.nan), flags=WITHHELD)
    why = ask(best, method="hard")
    assert (why.raises, why.lowers, why.rating["rating"]) == ([], [], None)
    text = printed(why)
    assert f"ratings {WITHHELD}" in text
    assert "human rating" in text


def test_a_model_beyond_all_that_people_have_rated_is_told(ask, finished, best):
    board = finished.stored("leaderboard", "tiny", "careful")
    people, new = board["human_rating"], board.loc[board["human_rating"].isna(), "model"].iloc[0]
    assert ask(new, top=0).beyond == ""
    own = board["model"].eq(new)
    rating = board["judge_rating"].mask(own, people.max() + 90)
    flags = board["flags"].mask(own, "no-votes;beyond-anchors")
    changed(ask, "leaderboard/tiny/careful", judge_rating=rating, flags=flags)
    said = f"{new} stands above all 12 models that people have rated ({people.max() + 90:.0f}, "
    why = ask(new, top=0)
    assert why.beyond.startswith(said)
    assert "have people vote on its battles first." in " ".join(printed(why).split())
    assert json.loads(json.dumps(why.as_record()))["beyond"] == why.beyond
    assert ask(best, top=0).beyond == ""


def test_what_stands_on_no_leaderboard_is_withheld_with_it(ask, finished):
    """An attack control is on no board, and its rating would tell how the judge places."""
    name, board = "control:null-model", finished.stored("leaderboard", "tiny", "careful")
    row = board.head(1).assign(model=name, human_rating=np.nan, flags="control;no-votes")
    row = row.assign(control="null-model", content_hash="c" * 64)
    put(ask, "candidate_ratings/tiny/careful", row)
    assert ask(name).rating["rating"] == board["rating"].iloc[0]
    changed(ask, "leaderboard/tiny/careful", flags=WITHHELD)
    why = ask(name)
    assert why.withheld == "kappa 0.05 < 0.20"
    assert (why.raises, why.lowers, why.fold) == ([], [], {})
    judged = ("rating", "lower", "upper", "std_error", "rank", "best_rank", "threshold")
    assert [why.rating[one] for one in judged] == [None] * 7


def test_a_candidate_has_no_votes_and_names_its_file(ask, finished):
    new = "brand-new"
    scored = finished.stored("scored_battles", "tiny", "careful")
    voted = scored[scored["human_outcome"].notna()].head(20)
    battles = voted.assign(
        battle_id=[f"new-{k}" for k in range(20)],
        model_a=new,
        human_outcome=np.nan,
        candidate=new,
        control=None,
        content_hash="c" * 64,
    )
    answers = finished.stored("verdicts", "tiny", "careful")
    judged = answers[answers["status"].eq("ok")].head(20)
    judged = judged.assign(battle_id=list(battles["battle_id"]))
    stated = {"model": new, "control": None, "content_hash": "c" * 64, "flags": "candidate"}
    row = finished.stored("leaderboard", "tiny", "careful").head(1)
    put(ask, "candidate_ratings/tiny/careful", row.assign(human_rating=np.nan, n_votes=0, **stated))
    own = {"model": [new], "file": ["brand-new.jsonl"], "content_hash": ["c" * 64]}
    put(ask, "candidates/tiny", pd.DataFrame(own))
    put(ask, "candidate_battles/tiny", battles.assign(completion_a="a", completion_b="b"))
    both = pd.concat([judged] * 2).assign(order=["AB"] * 20 + ["BA"] * 20)
    put(ask, "candidate_verdicts/tiny/careful", both)
    shutil.rmtree(ask.tables / "battle_influences")
    why = ask(new, top=1)
    assert why.n_battles == 20
    assert why.candidate == {"content_hash": "c" * 64, "file": "brand-new.jsonl"}
    text = printed(why)
    assert "no human votes" in text
    assert "brand-new.jsonl" in text
    with pytest.raises(ValueError, match="candidates are rated by 'auto' alone"):
        ask(new, method="hard")


def test_a_pooled_rating_is_explained_by_its_judges(ask, finished):
    tables, board = open_store(str(ask.tables)), finished.stored("pooled_leaderboard", "tiny")
    row = board.iloc[0]
    best = str(row["model"])
    why = explain_rating(best, "tiny", "pooled", store=tables, instance=finished.instance)
    assert why.rating["rating"] == row["rating"]
    half = why.rating["threshold"] * why.rating["spread"]
    outward = why.rating["outward"]
    upper = row["judge_rating"] + half + max(outward, 0)
    assert row["judge_upper"] == pytest.approx(upper)
    assert outward == pytest.approx(row["outward"])
    own = {name: finished.stored("leaderboard", "tiny", name) for name in ("careful", "hasty")}
    theirs = {name: one.set_index("model")["judge_rating"][best] for name, one in own.items()}
    assert {name: one["judge_rating"] for name, one in why.judges.items()} == theirs
    assert {one["weight"] for one in why.judges.values()} == {0.5}
    assert why.made[-1].asset == "pooled_leaderboard"
    text = printed(why)
    assert f"judgeline why {best} --corpus tiny --judge hasty" in text
    assert f"{theirs['careful']:.1f} Elo" in text
    assert "regression of votes on the mean score and gap of careful, hasty" in text
    record = json.loads(json.dumps(why.as_record(), allow_nan=False))
    assert record["judges"].keys() == theirs.keys()


def test_a_pooled_candidate_names_its_file_and_the_judges_that_lack_it(ask):
    board = changed(ask, "pooled_leaderboard/tiny")
    names = ("rating", "lower", "upper", "judge_rating", "judge_lower", "judge_upper")
    numbers = dict.fromkeys((*names, "human_rating"), np.nan)
    flags = "candidate;no-votes;not-by-all-judges"
    row = board.head(1).assign(**numbers, model="brand new", basis="", flags=flags)
    put(ask, "pooled_leaderboard/tiny", pd.concat([board, row]))
    stored = {"model": ["brand new"], "file": ["brand-new.jsonl"], "content_hash": ["c" * 64]}
    put(ask, "candidates/tiny", pd.DataFrame(stored))
    why = explain_rating("brand new", "tiny", "pooled", store=open_store(str(ask.tables)))
    assert why.candidate["file"] == "brand-new.jsonl"
    assert why.rating["rating"] is None
    text = printed(why)
    assert "careful: no rating (not on its leaderboard)" in text
    assert "judgeline why 'brand new' --corpus tiny --judge careful" in text


@pytest.mark.parametrize(
    ("asked", "gone", "told"),
    [
        ({"judge": "pooled", "method": "hard"}, "", "rate by 'pooled' alone; leave out --method"),
        ({"judge": "pooled", "model": "{}x"}, "", "unknown model '{}x'; did you mean '{}'"),
        ({"judge": "pooled"}, "pooled_leaderboard/tiny", "no pooled leaderboard .*two judges"),
        ({"model": "{}x"}, "", "unknown model '{}x'; did you mean '{}'"),
        ({"corpus": "tinny"}, "", "unknown corpus 'tinny'; did you mean 'tiny'"),
        ({"judge": "carful"}, "", "unknown judge 'carful'; did you mean 'careful'"),
        ({"judge": "hasty"}, "leaderboard/tiny/hasty", "by judge 'hasty': it ran into a gate"),
        ({"judge": "hasty"}, "leaderboard/tiny/hasty reference_ratings/tiny/hasty",
         "by judge 'hasty': it ended early, and a run says why"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained_is_refused_with_a_remedy(ask, best, asked, gone, told):
    for table in gone.split():
        (ask.tables / f"{table}.parquet").unlink()
    given = {"model": "{}", "corpus": "tiny", "judge": "careful", **asked}
    given["model"] = given["model"].format(best)
    with pytest.raises(ValueError, match=told.format(best, best)):
        explain_rating(**given, store=open_store(str(ask.tables)))


def test_texts_from_outside_are_inert_everywhere(ask, best):
    why = ask(best, top=1)
    readings = tuple(
        replace(one, answer=HOSTILE, reasoning=HOSTILE) for one in why.raises[0].readings
    )
    assert "its thoughts" not in printed(why)  # a simulated judge has none
    texts = {"opponent": HOSTILE[:60], "instruction": HOSTILE, "completion": HOSTILE}
    why = replace(why, raises=[replace(why.raises[0], readings=readings, **texts)])
    text = printed(why)
    assert not {"\x1b", "\x07", "\u202e"} & {*text}
    assert text.count("its thoughts before that:") == len(readings) == 2
    assert "[red]bold[/red] :smile:" in text  # shown as it is, not obeyed
    assert "more characters)" in text
    assert "y" * 60 in text
    whole = printed(why, full_text=True)
    assert whole.count("y") - text.count("y") >= 6 * 400
    markdown = markdown_of(lines_of(why))
    assert "\x1b" not in markdown
    outside = [row for row in markdown.splitlines() if not row.startswith("    ")]
    assert not [row for row in outside if "<" in row or "](" in row or row.startswith("```")]
    assert sum(row.startswith("# ") for row in markdown.splitlines()) == 1


def test_the_command_prints_json_tables_and_markdown(ask, best, capsys):
    arguments = ["why", best, "--corpus", "tiny", "--judge", "careful", "--top", "1"]
    assert main([*arguments, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["model"] == best
    assert len(record["raises"][0]["readings"]) == 2
    assert main([*arguments, "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith(f"# {best}, judged by careful on tiny")
    assert main(arguments) == 0
    assert "rubric points for" in capsys.readouterr().out
    assert main(["why", "nobody", *arguments[2:]]) == 1
    assert "unknown model 'nobody'" in capsys.readouterr().err


def test_the_report_shows_leads_battles_costs_and_runs(finished, ask, best):
    page = (finished.home / "reports" / "tiny.html").read_text(encoding="utf-8")
    assert all(lead_text(lead) in unescape(page) for lead in ask(best).leads)
    assert page.count('<details class="battle"') >= 14 * 2
    for title in ("Battles behind the ratings", "What judging took", "Where these numbers come"):
        assert title in page


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("profile"), logs=["browser"]) as one:
        yield one.driver


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_of_a_run_fits_and_finds_battles(finished, browser, best, width, scheme):
    show(browser, finished.home / "reports" / "tiny.html", width=width, scheme=scheme)
    assert browser.get_log("browser") == []
    browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    assert fits(browser, width)
    shown = browser.execute_script(
        "const of = document.querySelector('#j1-all .browser');"
        "const choice = of.querySelector('select');"
        "choice.value = arguments[0]; choice.dispatchEvent(new Event('change'));"
        "return [...of.querySelectorAll('.battle')].filter(b => b.checkVisibility())"
        ".map(b => b.dataset.model)",
        best,
    )
    assert len(shown) == 6
    assert set(shown) == {best}
