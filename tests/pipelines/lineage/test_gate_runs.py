"""The gate under runs of the lineage: a judge of noise is withheld, and nothing is bought twice."""

import numpy as np
import pandas as pd
import pytest
from retiring import retire

from judgeline import cli
from judgeline.steps.methods import FIGURES

N_CALLS, N_PANEL, N_RUNS = 600, 20, 3
PANEL = {"battles": N_PANEL, "runs": N_RUNS}


@pytest.fixture(scope="module")
def gated(go_on):
    """The tiny arena with a panel, judged with care and by pure noise."""
    workshop = go_on()
    workshop.tiny["panel"] = PANEL
    return workshop, workshop.run("careful", "noise", select=["not key:quantitative_judges"])


def test_a_judge_of_noise_fails_the_gate_and_only_the_gate(gated):
    _, outcome = gated
    assert outcome.exit_code == 2
    assert outcome.errors == []
    (gate,) = [check for check in outcome.failed_checks if check.is_gate]
    assert (gate.asset, gate.check, gate.partition) == (
        "judge_gate",
        "judge_passed_the_gate",
        "tiny|noise",
    )
    assert "single_run_reliability" in gate.description
    (others,) = [
        one
        for one in outcome.failed_checks
        if one.check == "judge_meets_the_other_criteria" and one.partition == gate.partition
    ]
    assert "kappa" in others.description
    assert "Gate: judge passed the gate (judge_gate, tiny|noise)" in gated[0].printed


def test_its_leaderboard_is_by_votes_alone_with_the_reason(gated):
    board = gated[0].stored("leaderboard", "tiny", "noise")
    assert board.filter(regex="judge_|hard_|soft_|beta").isna().all(axis=None)
    assert board["flags"].str.startswith("withheld: ").all()
    voted, unvoted = board.iloc[:12], board.iloc[12:]
    assert voted["rating"].tolist() == voted["human_rating"].tolist()
    assert voted["rating"].is_monotonic_decreasing
    assert voted["evidence"].tolist() == [f"{n} votes" for n in voted["n_votes"]]
    assert np.isfinite(voted[["lower", "upper"]]).all(axis=None)
    assert unvoted[["rank", "rating", "lower", "upper"]].isna().all(axis=None)
    assert len(unvoted) == 2


def test_a_careful_judge_passes_and_is_rated(gated):
    board = gated[0].stored("leaderboard", "tiny", "careful")
    assert board["rating"].notna().all()
    gate = gated[0].stored("judge_gate", "tiny", "careful").set_index("criterion")
    assert gate.loc[gate["withholds"], "passed"].all()
    assert gate.loc["icc_average", "value"] > 0.9
    own = gated[0].stored("heldout_ratings", "tiny", "careful").query("method == 'auto'")
    human = own["human_rating"].dropna()
    skill = 1 - (own["residual"] ** 2).sum() / ((human - human.mean()) ** 2).sum()
    assert gate.loc["skill", "value"] == pytest.approx(skill)
    assert gate.loc["skill", "note"] == "12 models with votes"


def test_the_comparison_keeps_the_judge_without_what_rests_on_its_ratings(gated):
    table = gated[0].stored("judge_comparison", "tiny").set_index("judge")
    assert table.loc["noise", ["mae", "spearman", "coverage", "median_width"]].isna().all(axis=None)
    assert table.loc["noise", "kappa"].notna().all()
    assert table.loc["careful", "mae"].notna().all()
    assert "reliability" in gated[0].metadata("judge_comparison")["withheld noise"]


def test_no_method_of_a_withheld_judge_has_figures_and_its_price_stays(gated):
    table = gated[0].methods().set_index("judge")
    noise, careful = table.loc["noise"], table.loc["careful"]
    assert noise[list(FIGURES)].isna().all(axis=None)
    assert noise["note"].str.startswith("withheld: ").all()
    assert noise.set_index("method").loc["hard", "n_calls"] == N_CALLS
    assert careful.set_index("method").loc[["hard", "soft"], "mae"].notna().all()
    assert not careful["note"].str.contains("withheld").any()
    assert noise["note"].str.contains("reliability").all()


def sections(page: str, judge: str) -> str:
    """What the page has of a judge: its board, and everything else about it."""
    marks = f"Judge <bdi>{judge}</bdi>", f"<bdi>{judge.title()}</bdi>: everything"
    own = [part for part in page.split("<section ") if any(mark in part for mark in marks)]
    assert own
    return "".join(own)


def test_the_page_places_no_model_by_a_withheld_judge(gated):
    page = gated[1].report.read_text(encoding="utf-8")
    careful, noise = sections(page, "careful"), sections(page, "noise")
    for title in ("Against a reference", "Adjusted win rates"):
        assert f"{title}</h3>" in careful
        assert f"{title}</h3>" not in noise
    assert "Judge gate</h3>" in noise
    figures = page[page.index('<section id="methods">') :]
    assert "nearest to people by" in figures
    assert "Noise: nearest to people" not in figures
    assert "withheld: single_run_reliability" in figures


def test_a_judge_that_never_came_to_the_gate_is_not_withheld(finished_workshop):
    workshop = finished_workshop
    retire(workshop.instance, judges=["hasty"])
    folder = workshop.home / "tables" / "leaderboard"
    for path in folder.rglob("*.parquet"):
        path.unlink()
    outcome = workshop.run("careful", select=["scoring_methods"], force=True)
    assert outcome.errors == []
    assert workshop.methods()["mae"].notna().any()


def test_the_report_says_why_and_shows_no_rating_by_the_judge(gated):
    page = gated[1].report.read_text(encoding="utf-8")
    careful, noise = sections(page, "careful"), sections(page, "noise")
    assert "The ratings of this judge are withheld, since it failed its gate: " in noise
    assert "<figure>" in careful
    assert noise.count("<figure>") == 1  # of ratings by votes
    ratings = gated[0].stored("heldout_ratings", "tiny", "noise")
    soft = ratings.loc[ratings["method"].eq("soft"), "rating"]
    human = ratings["human_rating"].dropna().round()
    told = {f">{value:.0f}<" for value in soft[~soft.round().isin(human)]}
    assert told
    assert not [text for text in told if text in noise]


def test_the_terminal_says_why_instead_of_numbers(gated, monkeypatch, capsys):
    workshop = gated[0].install(monkeypatch)
    assert cli.main(["leaderboard", "--corpus", "tiny", "--judge", "noise"]) == 0
    told = capsys.readouterr().out
    assert told.count("Judge withheld: single_run_reliability") == 1
    human = workshop.stored("leaderboard", "tiny", "noise")["human_rating"].dropna()
    assert all(f" {rating:.0f} " in told for rating in human)
    assert cli.main(["leaderboard", "--corpus", "tiny", "--judge", "careful"]) == 0
    assert "withheld" not in capsys.readouterr().out


def test_what_is_not_measured_withholds_nothing_and_is_said(finished_workshop):
    workshop = finished_workshop  # no panel is configured
    assert workshop.stored("reliability_panel", "tiny", "careful").empty
    gate = workshop.stored("judge_gate", "tiny", "careful").set_index("criterion")
    assert pd.isna(gate.loc["single_run_reliability", "passed"])
    assert "see reliability_panel" in gate.loc["single_run_reliability", "note"]
    assert workshop.stored("leaderboard", "tiny", "careful")["rating"].notna().all()
    assert "add 'panel:" in workshop.metadata("reliability_panel")["note"]


def test_a_corpus_sets_what_withholds(finished_workshop):
    workshop = finished_workshop
    workshop.tiny["gate"] = {"kappa": 0.99, "withhold": ["kappa"]}
    assert workshop.run("careful", select=["judge_gate", "leaderboard"]).exit_code == 2
    board = workshop.stored("leaderboard", "tiny", "careful")
    assert board["flags"].str.match(r"withheld: kappa 0\.\d+ < 0\.99").all()
    workshop.tiny["gate"] = {"kappa": None, "withhold": ["kappa"]}
    again = workshop.run("careful", select=["judge_gate", "leaderboard"])
    assert again.exit_code == 0
    assert workshop.stored("leaderboard", "tiny", "careful")["rating"].notna().all()


def test_few_voted_models_have_finite_intervals_from_votes(workshop):
    """Six calibrate no interval of the judge at 90 %; votes on a model need no other model."""
    workshop.tiny["arena"] = {**workshop.tiny["arena"], "n_voted": 6}
    outcome = workshop.run("careful", select=["+leaderboard"])
    assert (outcome.exit_code, outcome.errors) == (0, []), workshop.printed
    warned = {check.check for check in outcome.failed_checks}
    assert "thresholds_are_finite" in warned
    assert not [check for check in outcome.failed_checks if check.is_gate]
    board = workshop.stored("leaderboard", "tiny", "careful")
    voted = board["n_votes"].gt(0)
    assert voted.sum() == 6
    assert np.isfinite(board.loc[voted, ["lower", "upper"]]).all(axis=None)
    assert board.loc[voted, "evidence"].str.fullmatch(r"\d+ votes").all()
    assert np.isinf(board[["judge_lower", "judge_upper"]]).all(axis=None)
    assert board.loc[~voted, "evidence"].eq("judge").all()


# what the panel buys

BUY = ["+reliability_panel"]


def test_the_first_run_is_that_of_the_verdicts_and_nothing_is_bought_twice(
    finished_workshop, shown
):
    workshop, judge = finished_workshop, "sloppy"  # some of its answers fail
    workshop.tiny["panel"] = PANEL
    (step,) = workshop.run(judge, dry_run=True).plan
    assert step.n_calls == N_CALLS + 2 * N_PANEL * (N_RUNS - 1)
    workshop.run(judge, select=BUY)
    assert len(shown) == len(set(shown)) == step.n_calls
    extra = [one for one in shown if one[2] > 0]
    assert len(extra) == 2 * N_PANEL * (N_RUNS - 1)
    panel = workshop.stored("reliability_panel", "tiny", judge)
    assert {battle for battle, *_ in extra} == set(panel["battle_id"])
    workshop.run(judge, select=["scored_battles"])
    scored = workshop.stored("scored_battles", "tiny", judge).set_index("battle_id")
    scored = scored["score_difference"]
    first = panel[panel["replicate"].eq(0)].set_index("battle_id")["score_difference"]
    pd.testing.assert_series_equal(first, scored.reindex(first.index), check_names=False)


def test_a_panel_made_again_asks_nothing_and_is_the_same(finished_workshop, shown):
    workshop = finished_workshop
    workshop.tiny["panel"] = PANEL
    workshop.run("careful", select=BUY)
    before, n_asked = workshop.stored("reliability_panel", "tiny", "careful"), len(shown)
    workshop.tiny["sample_size"] = 350
    workshop.run("careful", select=["sampled_battles", "verdicts", "reliability_panel"])
    assert len(shown) == n_asked + 100  # the new battles' verdicts
    pd.testing.assert_frame_equal(workshop.stored("reliability_panel", "tiny", "careful"), before)
    workshop.tiny["panel"] = {**PANEL, "battles": N_PANEL + 5}
    (step,) = workshop.run("careful", dry_run=True).plan
    assert step.n_calls == 2 * 5 * (N_RUNS - 1)
    (step,) = workshop.run("careful", dry_run=True, select=["verdicts"]).plan
    assert step.n_calls == 0
    workshop.run("careful", select=["reliability_panel"])
    grown = workshop.stored("reliability_panel", "tiny", "careful")
    pd.testing.assert_frame_equal(grown.head(len(before)), before)
    assert np.unique(grown["battle_id"]).size == N_PANEL + 5
