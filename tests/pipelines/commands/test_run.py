import io
import os
from pathlib import PurePosixPath

import dagster as dg
import pandas as pd
import pytest
from retiring import retire
from rich.console import Console

from assets.partitions import CORPUS, register
from judgeline.cli import main
from pipelines.commands.leaderboards import print_conclusion
from pipelines.definitions import build_definitions, defs
from resources.tables.declared import TABLES

APART = {
    *("drift_answers", "judge_drift", "candidates", "candidate_battles", "candidate_verdicts"),
    *("learnt_ratings", "votes"),
}
"""Tables that a run on battles without candidates, drift watch and votes does not make."""


def report_of(workshop):
    return workshop.home / "reports" / "tiny.html"


def test_the_whole_lineage_is_made_and_stored_as_declared(finished):
    assert "Gate: " not in finished.printed  # nor has it errors, or the fixture had failed
    graph, expected = defs.resolve_asset_graph(), {}
    for name in set(TABLES) - APART:
        of_corpus = graph.get(dg.AssetKey(name)).partitions_def == CORPUS
        for judge in ("careful", "hasty")[of_corpus:]:
            place = (name, "tiny") if of_corpus else (name, "tiny", judge)
            expected["/".join(place) + ".parquet"] = TABLES[name].dtypes
    stored = {place: PurePosixPath(place).with_suffix("").parts for place in finished.files()}
    assert expected == {
        place: {name: str(kind) for name, kind in finished.stored(*parts).dtypes.items()}
        for place, parts in stored.items()
    }


def test_every_contestant_is_on_the_board_and_the_comparison_has_both_judges(finished):
    board = finished.stored("leaderboard", "tiny", "careful")
    assert len(board) == 14
    assert board["human_rating"].isna().sum() == 2
    assert board["n_votes"].eq(0).sum() == 2
    table = finished.stored("judge_comparison", "tiny")
    assert set(table["judge"]) == {"careful", "hasty", "pooled"}
    assert table.loc[table["judge"].ne("pooled"), "n_verdicts"].eq(600).all()
    assert set(table["method"]) >= {"hard", "soft"}


@pytest.fixture
def found(finished, monkeypatch):
    """The same as commands find it."""
    assert finished.catalog  # its files lie in the home
    monkeypatch.setenv("JUDGELINE_HOME", str(finished.home))
    monkeypatch.setenv("JUDGELINE_CONFIG", str(finished.home))


@pytest.mark.usefixtures("found")
def test_judges_together_have_a_board_in_table_report_and_terminal(finished, capsys):
    pooled = finished.stored("pooled_leaderboard", "tiny")
    assert len(pooled) == 14
    assert pooled["rating"].is_monotonic_decreasing
    assert pooled[["lower", "upper", "best_rank", "worst_rank"]].notna().all(axis=None)
    basis = "regression of votes on the mean score and gap of careful, hasty"
    assert set(pooled["basis"]) == {basis}
    row = finished.stored("judge_comparison", "tiny").set_index("judge").loc["pooled"]
    assert row["mae"] == pytest.approx(pooled["residual"].abs().mean())
    assert (row["method"], row["n_scored"]) == ("pooled", 300)
    page = report_of(finished).read_text(encoding="utf-8")
    for named in ("Careful", "Hasty", "most answers parse"):
        assert named in page.replace("_", " ")
    assert "simulat" in page.lower()
    board = page[page.index('<section id="pooled">') : page.index('<section id="j1-all"')]
    voted = pooled[pooled["n_votes"].gt(0)]
    told = [f">judge and {n} votes<" for n in voted["n_votes"]]
    assert voted["evidence"].tolist() == [text.strip("<>") for text in told]
    assert all(text in board for text in told)
    assert all(model in board for model in pooled["model"])
    assert main(["leaderboard", "--corpus", "tiny", "--judge", "pooled"]) == 0
    printed = capsys.readouterr().out
    assert "judged by pooled" in printed
    assert basis in printed


@pytest.mark.usefixtures("found")
def test_it_ends_with_the_board_of_the_judge_that_is_nearest_to_people(finished):
    out = io.StringIO()
    print_conclusion(Console(file=out, width=120), "tiny")
    errors = finished.stored("judge_comparison", "tiny").set_index(["method", "judge"])["mae"]
    best, other = errors["auto"].sort_values().index
    said = " ".join(out.getvalue().split())
    assert f" by {best}, in Elo" in said
    calibration = finished.stored("conformal_calibration", "tiny", best).set_index("method")
    assert f"Skill {calibration.loc['auto', 'skill']:.2f} (" in said
    first = finished.stored("leaderboard", "tiny", best)["best_rank"].eq(1).sum()
    assert f"{first} of 14 models may be the best." in said
    assert "intervals hold the human rating" not in said
    assert f"is {best}: {errors['auto', best]:.0f} Elo off on average" in said
    assert f"; {other} is {errors['auto', other]:.0f} off." in said
    assert f"would be {errors['hard', best]:.0f} by its preferences alone and" in said
    assert f"{errors['soft', best]:.0f} by its calibrated scores" in said
    print_conclusion(Console(file=out), "nowhere")


def test_a_line_is_printed_per_step_and_check(finished):
    printed = finished.printed
    jobs = ("judge job tiny|careful", "judge job tiny|hasty", "comparison job tiny")
    begun = [printed.index(f"\n{job}\n") for job in jobs]
    assert begun == sorted(begun)
    assert "done verdicts (600 rows)" in printed
    assert "ok   verdicts: both orders are present" in printed
    assert "Traceback" not in printed
    assert f"Report: {report_of(finished).as_uri()}" in printed
    runs = sorted(run.job_name for run in finished.instance.get_runs())
    assert runs == ["comparison_job", "corpus_job", "judge_job", "judge_job"]


def test_the_leaderboard_stands_before_tables_that_it_does_not_need(finished):
    graph = defs.resolve_asset_graph()
    needed = {*dg.AssetSelection.assets("leaderboard").upstream().resolve(graph)}
    judged = {*defs.resolve_job_def("judge_job").asset_layer.executable_asset_keys}
    runs = [run for run in finished.instance.get_runs() if run.job_name == "judge_job"]
    assert len(runs) == 2
    for one in runs:
        found = finished.instance.get_run_step_stats(one.run_id)
        began = {step.step_key: step.start_time for step in found}
        later = min(began[key.to_user_string()] for key in judged - needed)
        assert max(began[key.to_user_string()] for key in judged & needed) < later
        assert began["checks_of_leaderboard"] < later


@pytest.fixture
def two_processes(finished_workshop, monkeypatch):
    """A finished workshop as commands find it, whose judges are shared out."""
    monkeypatch.setattr("pipelines.commands.run.n_processes", lambda: 2)
    return finished_workshop.install(monkeypatch)


def test_a_run_that_goes_on_shows_the_first_board_before_what_is_still_made(two_processes):
    workshop = two_processes
    for judge in ("careful", "hasty"):
        (workshop.home / "tables" / "predictions" / "tiny" / f"{judge}.parquet").unlink()
    outcome = workshop.run(verbose=False)
    assert {key.to_user_string() for key, _ in outcome.made} >= {"predictions", "report"}
    printed = " ".join(workshop.printed.split())
    told = "The first board stands. Still being made: predictions, judge hasty, comparison, report."
    assert printed.count(told) == 1
    first, _, rest = printed.partition("judge job tiny|careful")
    assert told in first
    assert "Tiny arena by careful, in Elo" in first
    assert rest.count(", in Elo") == 1  # the board at the end
    workshop.run(verbose=False)
    assert "first board" not in workshop.printed
    (workshop.home / "tables" / "heldout_ratings" / "tiny" / "careful.parquet").unlink()
    workshop.run(verbose=False)
    before = workshop.printed.partition("judge job tiny|careful")[0]
    assert ", in Elo" not in before  # what the board is made of may change it


def test_a_process_beside_this_one_leaves_no_journal(two_processes):
    workshop = two_processes
    before = {run.run_id for run in workshop.instance.get_runs()}
    workshop.run(select=["adjusted_win_rates"], force=True)
    made = [run for run in workshop.instance.get_runs() if run.run_id not in before]
    (beside,) = [run for run in made if run.tags["dagster/partition"] == "tiny|hasty"]
    files = {path.name for path in workshop.home.rglob(f"{beside.run_id}.db*")}
    assert files == {f"{beside.run_id}.db"}


def test_warnings_of_a_simulation_are_a_count_unless_more_is_asked_for(finished_workshop):
    whole = finished_workshop.run()
    warned = [f"{one.check.replace('_', ' ')} ({one.asset}" for one in whole.failed_checks]
    assert warned
    assert all(f"Warning: {text}" in finished_workshop.printed for text in warned)
    short = finished_workshop.run(verbose=False)
    assert short.failed_checks == whole.failed_checks
    printed = finished_workshop.printed
    assert f"Warnings: {len(warned)}, all of this simulation and none of data" in printed
    assert not any(text in printed for text in warned)


def test_metadata_carries_plain_numbers_tables_and_a_picture(finished):
    metadata, spread = finished.metadata("leaderboard"), finished.metadata("sampled_battles")
    assert isinstance(metadata["median_half_width"], float)
    assert metadata["plot"].startswith("![")
    assert "data:image/svg+xml;base64," in metadata["plot"]
    assert metadata["dagster/partition_row_count"] == 14
    assert spread["appearances_minimum"] >= spread["appearances_uniform_minimum"]
    assert pytest.approx(spread["appearances_median"], abs=3) == 2 * 300 / 14


def test_running_one_judge_again_leaves_every_other_table_alone(finished_workshop):
    workshop = finished_workshop
    folder = workshop.home / "tables"
    for name in workshop.files():
        os.utime(folder / name, ns=(0, 0))
    workshop.run("hasty", select=["verdicts", "scored_battles"], force=True)
    written = {name for name in workshop.files() if (folder / name).stat().st_mtime_ns > 0}
    assert written == {"verdicts/tiny/hasty.parquet", "scored_battles/tiny/hasty.parquet"}


def test_a_failed_gate_stops_that_judge_each_time_is_explained_and_exits_with_two(
    finished_workshop,
):
    workshop = finished_workshop
    retire(workshop.instance, judges=["hasty"])
    outcome = workshop.run("careful", "mumbler")
    assert outcome.exit_code == 2
    assert outcome.errors == []
    gates = [check for check in outcome.failed_checks if check.is_gate]
    assert [(gate.asset, gate.check, gate.partition) for gate in gates] == [
        ("verdicts", "most_answers_parse", "tiny|mumbler")
    ]
    assert "at least 50% of answers parse" in gates[0].description
    made = {name for name in workshop.files() if "mumbler" in name}
    # empty, and of no rubric verdict
    unasked = ("score_verdicts", "choice_verdicts", "soft_outcomes")
    assert made == {f"{name}/tiny/mumbler.parquet" for name in ("verdicts", *unasked)}
    assert "Gate: most answers parse (verdicts, tiny|mumbler)" in workshop.printed
    compared = workshop.stored("judge_comparison", "tiny")
    assert set(compared["judge"]) == {"careful"}
    assert outcome.report.is_file()
    again = workshop.run("mumbler", select=["+leaderboard"])
    assert again.exit_code == 2
    assert [check.check for check in again.failed_checks if check.is_gate] == ["most_answers_parse"]
    assert "Gate: most answers parse (verdicts, tiny|mumbler)" in workshop.printed
    assert len(again.made) == 1
    assert workshop.stored("scored_battles", "tiny", "mumbler") is None


def test_a_judge_whose_last_run_was_stopped_leaves_the_comparison(finished_workshop):
    workshop = finished_workshop
    path = workshop.home / "tables" / "scored_battles" / "tiny" / "hasty.parquet"
    scored = pd.read_parquet(path)
    scored.assign(score_difference=-scored["score_difference"]).to_parquet(path)
    outcome = workshop.run("hasty", select=["beta_folds", "heldout_ratings"], force=True)
    assert [check.check for check in outcome.failed_checks] == ["beta_is_usable"]
    assert "contradicts-humans" in outcome.failed_checks[0].description
    before = set(workshop.stored("judge_comparison", "tiny")["judge"])
    assert before == {"careful", "hasty", "pooled"}
    workshop.run("careful", select=["pooled_leaderboard", "judge_comparison"])
    assert set(workshop.stored("judge_comparison", "tiny")["judge"]) == {"careful"}
    assert workshop.stored("pooled_leaderboard", "tiny").empty


def test_a_failed_step_is_explained_in_one_paragraph_and_exits_with_one(workshop):
    workshop.tiny["arena"] = {**workshop.tiny["arena"], "n_prompts": 1}
    outcome = workshop.run("careful")
    assert outcome.exit_code == 1
    assert len(outcome.errors) == 1
    assert "raise n_prompts" in outcome.errors[0]
    assert "Traceback" not in workshop.printed
    assert "File " not in workshop.printed
    assert "\n" not in outcome.errors[0]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"corpus": "tyni"}, "'tiny'"),
        ({"judges": ("carefull",)}, "'careful'"),
        ({"judges": ("recorded",)}, "knows what came with a corpus"),
        ({"select": ["leaderbord"]}, "'leaderboard'"),
        ({"select": ["verdicts +++ ("]}, "cannot select"),
        ({"tiny": {"embeddings": "hashd"}, "judges": ("careful",)}, "did you mean 'hashed'"),
    ],
)
def test_wrong_names_run_nothing_and_suggest_right_ones(workshop, options, told):
    workshop.tiny |= options.pop("tiny", {})
    outcome = workshop.run(*options.pop("judges", ()), **options)
    assert outcome.exit_code == 1
    assert told in outcome.errors[0]
    assert workshop.files() == {}
    assert workshop.instance.get_runs() == []


def test_dry_run_counts_and_writes_nothing(workshop):
    outcome = workshop.run("careful", "hasty", dry_run=True)
    assert outcome.exit_code == 0
    assert outcome.n_battles == 300
    planned = {step.partition: step.n_calls for step in outcome.plan}
    assert planned == {"tiny|careful": 600, "tiny|hasty": 600}
    assert "tiny|careful: 600 calls" in workshop.printed
    assert workshop.files() == {}
    assert workshop.instance.get_runs() == []
    assert workshop.instance.get_dynamic_partitions("corpus") == []


def test_selection_makes_what_was_named(workshop):
    workshop.run("careful", select=["battles"])
    assert workshop.files() == {}  # its input is not there
    workshop.run("careful", select=["+battles"])
    names = {name.split("/")[0] for name in workshop.files()}
    assert names == {"raw_battles", "quarantined_battles", "recorded_verdicts", "battles"}


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_nothing_follows_verdicts_that_failed_a_blocking_check(workshop):
    register(workshop.instance, corpora=["tiny"], judges=["mumbler"])
    definitions, cursor = build_definitions(catalog=workshop.catalog, tables=workshop.tables), None
    for _ in range(2):
        ticked = dg.evaluate_automation_conditions(definitions, workshop.instance, cursor=cursor)
        if cursor is None:
            workshop.run("mumbler", select=["group:corpus", "verdicts"])
        cursor = ticked.cursor
    assert ticked.total_requested == 0


def test_where_every_judge_is_stopped_scoring_methods_are_compared_all_the_same(workshop):
    """A judge whose scores go against the votes: no leaderboard, and a page that says so."""
    outcome = workshop.run("contrary", select=["not key:quantitative_judges"])
    assert outcome.exit_code == 2
    assert outcome.errors == []
    assert any(check.check == "beta_is_usable" for check in outcome.failed_checks)
    assert workshop.stored("leaderboard", "tiny", "contrary") is None
    rows = workshop.methods().set_index("method")
    assert rows.loc["hard", "mae"] > 0
    assert pd.isna(rows.loc["soft", "mae"])
    assert "No judge has ratings on the human scale" in outcome.report.read_text(encoding="utf-8")
