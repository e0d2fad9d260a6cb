import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
import yaml
from dagster._core.events import EngineEventData

from assets.partitions import register
from judgeline.cli import main
from pipelines.definitions import build_definitions
from pipelines.instance.homes import prepare_home, recover
from resources.config.paths import ROOT

JUDGED = {
    "verdicts",
    "reliability_panel",
    "score_verdicts",
    "choice_verdicts",
    "soft_outcomes",
    "consistency",
    "scored_battles",
    "beta_folds",
    "heldout_ratings",
    "battle_influences",
    "candidate_scores",
    "candidate_ratings",
    "attack_controls",
    "predictions",
    "conformal_calibration",
    "leaderboard",
    "judge_diagnostics",
    "judge_gate",
    "missingness",
    "missing_bounds",
    "adjusted_win_rates",
    "adjustment_coverage",
    "label_plan",
    "reference_ratings",
    "reference_diagnostics",
    "rationale_embeddings",
    "quantitative_outcomes",
    "quantitative_judges",
    "method_ratings",
    "scoring_methods",
}
OF_CORPUS = {
    "raw_battles",
    "quarantined_battles",
    "recorded_verdicts",
    "battles",
    "sampled_battles",
    "judge_comparison",
    "pooled_leaderboard",
    "method_comparison",
    "rating_systems",
}


def report_of(workshop):
    return workshop.home / "reports" / "tiny.html"


def test_whole_lineage_succeeds(finished):
    assert "Gate: " not in finished.printed  # nor has it errors, or the fixture had failed
    assert set(finished.files()) == {
        *(f"{name}/tiny.parquet" for name in OF_CORPUS),
        *(f"{name}/tiny/{judge}.parquet" for name in JUDGED for judge in ("careful", "hasty")),
    }


def test_report_is_a_file_of_its_own_and_no_table(finished):
    page = report_of(finished).read_text(encoding="utf-8")
    assert "Careful" in page
    assert "Hasty" in page
    assert "simulat" in page.lower()


def test_every_contestant_is_on_the_leaderboard_the_new_ones_without_votes(finished):
    board = finished.stored("leaderboard", "tiny", "careful")
    assert len(board) == 14
    assert board["human_rating"].isna().sum() == 2
    assert board["n_votes"].eq(0).sum() == 2


def test_comparison_has_both_judges(finished):
    table = finished.stored("judge_comparison", "tiny")
    assert set(table["judge"]) == {"careful", "hasty", "pooled"}
    assert table.loc[table["judge"].ne("pooled"), "n_verdicts"].eq(600).all()
    assert set(table["method"]) >= {"hard", "soft"}


def test_judges_together_have_a_board_in_table_report_and_terminal(finished, monkeypatch, capsys):
    assert finished.catalog  # its files lie in the home
    monkeypatch.setenv("JUDGELINE_HOME", str(finished.home))
    monkeypatch.setenv("JUDGELINE_CONFIG", str(finished.home))
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
    board = page[page.index('<section id="pooled">') : page.index('<section id="comparison">')]
    assert "of 12 intervals hold the human rating (90 % promised)." in board
    assert all(model in board for model in pooled["model"])
    assert main(["leaderboard", "--corpus", "tiny", "--judge", "pooled"]) == 0
    printed = capsys.readouterr().out
    assert "judged by pooled" in printed
    assert basis in printed


def test_a_line_is_printed_per_step_and_check(finished):
    printed = finished.printed
    assert "judge job tiny|careful" in printed
    assert "done verdicts (600 rows)" in printed
    assert "ok   verdicts: both orders are present" in printed
    assert "Traceback" not in printed
    assert f"Report: {report_of(finished)}" in printed


def test_runs_are_on_record_in_the_instance(finished):
    runs = finished.instance.get_runs()
    assert sorted(run.job_name for run in runs) == [
        "comparison_job",
        "corpus_job",
        "judge_job",
        "judge_job",
    ]


def test_metadata_carries_plain_numbers_tables_and_a_picture(finished):
    instance = finished.instance
    event = instance.get_latest_materialization_event(dg.AssetKey("leaderboard"))
    metadata = event.asset_materialization.metadata
    assert isinstance(metadata["median_half_width"].value, float)
    assert metadata["plot"].value.startswith("![")
    assert "data:image/png;base64," in metadata["plot"].value
    assert metadata["dagster/partition_row_count"].value == 14
    sampled = instance.get_latest_materialization_event(dg.AssetKey("sampled_battles"))
    spread = sampled.asset_materialization.metadata
    assert spread["appearances_minimum"].value >= spread["appearances_uniform_minimum"].value
    assert pytest.approx(spread["appearances_median"].value, abs=3) == 2 * 300 / 14


def test_checks_of_each_judge_are_in_the_report(finished):
    page = report_of(finished).read_text(encoding="utf-8")
    assert "most answers parse" in page.replace("_", " ")


def test_running_one_judge_again_leaves_every_other_table_alone(workshop):
    workshop.run(select=["group:corpus", "verdicts"])
    folder = workshop.home / "tables"
    for name in workshop.files():
        os.utime(folder / name, ns=(0, 0))
    workshop.run("hasty", select=["verdicts", "scored_battles"], force=True)
    written = {name for name in workshop.files() if (folder / name).stat().st_mtime_ns > 0}
    assert written == {"verdicts/tiny/hasty.parquet", "scored_battles/tiny/hasty.parquet"}


def test_a_failed_gate_stops_that_judge_is_explained_and_exits_with_two(workshop):
    outcome = workshop.run("careful", "mumbler")
    assert outcome.exit_code == 2
    assert outcome.errors == ()
    gates = [check for check in outcome.failed_checks if check.is_gate]
    assert [(gate.asset, gate.check, gate.partition) for gate in gates] == [
        ("verdicts", "most_answers_parse", "tiny|mumbler")
    ]
    assert "at least 50% of answers parse" in gates[0].description
    made = {name for name in workshop.files() if "mumbler" in name}
    # empty, and of no rubric verdict
    unasked = ("score_verdicts", "choice_verdicts", "soft_outcomes", "candidate_scores")
    assert made == {f"{name}/tiny/mumbler.parquet" for name in ("verdicts", *unasked)}
    assert "Gate: most answers parse (verdicts, tiny|mumbler)" in workshop.printed
    compared = workshop.stored("judge_comparison", "tiny")
    assert set(compared["judge"]) == {"careful"}
    assert outcome.report.is_file()


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
    ],
)
def test_wrong_names_run_nothing_and_suggest_right_ones(workshop, options, told):
    outcome = workshop.run(*options.pop("judges", ()), **options)
    assert outcome.exit_code == 1
    assert told in outcome.errors[0]
    assert workshop.files() == {}
    assert workshop.instance.get_runs() == []


def test_dry_run_counts_and_writes_nothing(workshop):
    outcome = workshop.run("careful", "hasty", dry_run=True)
    assert outcome.exit_code == 0
    assert outcome.n_battles == 300
    assert {(step.partition, step.n_calls) for step in outcome.plan} == {
        ("tiny|careful", 600),
        ("tiny|hasty", 600),
    }
    assert "tiny|careful: 600 calls" in workshop.printed
    assert workshop.files() == {}
    assert workshop.instance.get_runs() == []
    assert workshop.instance.get_dynamic_partitions("corpus") == []


def test_selection_makes_what_was_named(workshop):
    workshop.run("careful", select=["battles"])
    assert workshop.files() == {}  # its input is not there
    workshop.run("careful", select=["+battles"])
    assert {name.split("/")[0] for name in workshop.files()} == {
        "raw_battles",
        "quarantined_battles",
        "recorded_verdicts",
        "battles",
    }


def test_a_larger_sample_keeps_what_was_chosen(workshop):
    workshop.run("careful", select=["group:corpus"])
    before = workshop.stored("sampled_battles", "tiny")["battle_id"].tolist()
    workshop.tiny["sample_size"] = 350
    workshop.run("careful", select=["sampled_battles"])
    after = workshop.stored("sampled_battles", "tiny")["battle_id"].tolist()
    assert after[:300] == before
    assert len(after) == 350


# Automation


def _ticker(workshop):
    """Evaluate every condition as the daemon would; return what each tick requests."""
    definitions = build_definitions(catalog=workshop.catalog, tables=workshop.tables)
    keys = definitions.resolve_asset_graph().get_all_asset_keys()
    cursor = None

    def tick() -> set[str]:
        nonlocal cursor
        result = dg.evaluate_automation_conditions(
            defs=definitions, instance=workshop.instance, cursor=cursor
        )
        cursor = result.cursor
        return {key.to_user_string() for key in keys if result.get_num_requested(key)}

    return tick


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_cheap_tables_follow_and_nothing_ever_asks_for_verdicts(workshop):
    register(workshop.instance, corpora=["tiny"], judges=["careful", "hasty"])
    tick = _ticker(workshop)
    requested = [tick()]

    def after(*select: str) -> set[str]:
        workshop.run("careful", select=list(select))
        requested.append(tick())
        return requested[-1]

    assert after("raw_battles") == {"battles"}
    assert after("battles") == {"sampled_battles"}
    assert after("sampled_battles") == set()
    assert after("verdicts") == {"scored_battles", "missingness"}
    assert after("scored_battles") == {
        "beta_folds",
        "adjusted_win_rates",
        "adjustment_coverage",
        "label_plan",
    }
    # leaderboard and gate do not wait for the panel, which nobody asked for; without choices there
    # are no scoring methods to compare
    assert after("scored_battles+ and not group:comparison") == {
        "judge_comparison",
        "pooled_leaderboard",
        "report",
    }
    assert after("judge_comparison", "pooled_leaderboard", "report") == set()
    assert after("reliability_panel") == {
        "judge_gate",
        "leaderboard",
        "predictions",
        "attack_controls",  # it shows no number that the gate withholds
    }
    workshop.tiny["sample_size"] = 350
    assert "scored_battles" in after("sampled_battles")
    workshop.tiny["arena"] = {**workshop.tiny["arena"], "n_battles": 390}
    assert "battles" in after("raw_battles")
    assert not any("verdicts" in tables for tables in requested)
    assert not any("raw_battles" in tables for tables in requested)
    assert not any("reliability_panel" in tables for tables in requested)


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
def test_nothing_follows_verdicts_that_failed_a_blocking_check(workshop):
    register(workshop.instance, corpora=["tiny"], judges=["mumbler"])
    tick = _ticker(workshop)
    tick()
    workshop.run("mumbler", select=["group:corpus", "verdicts"])
    assert tick() == set()


# The instance


def test_home_has_an_instance_file_with_absolute_folders(home):
    assert prepare_home() == home
    text = (home / "dagster.yaml").read_text(encoding="utf-8")
    settings = yaml.safe_load(text)
    assert settings["storage"]["custom"]["config"]["base_dir"] == str(home / "storage")
    assert settings["telemetry"]["enabled"] is False
    assert settings["nux"]["enabled"] is False
    assert ".judgeline/" not in text.replace(str(home), "")
    assert [path.name for path in home.iterdir()] == ["dagster.yaml"]


def test_a_chosen_dagster_home_is_left_alone(home, tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "theirs"))
    assert prepare_home() == tmp_path / "theirs"
    assert not home.exists()


def test_state_of_the_root_file_stays_out_of_the_repository():
    settings = yaml.safe_load((ROOT / "dagster.yaml").read_text(encoding="utf-8"))
    folders = [
        settings["storage"]["custom"]["config"]["base_dir"],
        settings["local_artifact_storage"]["config"]["base_dir"],
        settings["compute_logs"]["config"]["base_dir"],
    ]
    assert {Path(folder).parts[0] for folder in folders} == {".judgeline"}
    assert ".judgeline/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def _started_run(instance, pid):
    """A run that said in which process it is under way."""

    @dg.job
    def stuck(): ...

    run = instance.create_run_for_job(stuck)
    metadata = {"pid": dg.MetadataValue.text(str(pid))}
    instance.report_engine_event("under way", run, EngineEventData(metadata=metadata))
    instance.report_dagster_event(
        dg.DagsterEvent(dg.DagsterEventType.PIPELINE_START.value, "stuck"), run.run_id
    )
    return run.run_id


def test_only_runs_whose_process_is_gone_are_given_up():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with dg.DagsterInstance.ephemeral() as instance:
        dead = _started_run(instance, ended.pid)
        alive = _started_run(instance, os.getpid())
        assert recover(instance) == [dead]
        assert instance.get_run_by_id(dead).status == dg.DagsterRunStatus.FAILURE
        assert instance.get_run_by_id(alive).status == dg.DagsterRunStatus.STARTED
        assert recover(instance) == []


def test_a_process_that_ended_and_was_not_collected_is_gone():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # wait, and leave it a zombie
    with dg.DagsterInstance.ephemeral() as instance:
        run = _started_run(instance, ended.pid)
        assert recover(instance) == [run]
    ended.wait()


def test_released_sample_reproduces_the_published_ratings(make_workshop, sample, expected_dir):
    workshop = make_workshop()
    workshop.tiny = {
        "display_name": "Released sample",
        "reader": "softelo-annotations",
        "location": str(sample),
        "judges": ["recorded"],
        "rating": {"l2": 0.005, "hard_outcome": "recorded", "n_resamples": 0},
    }
    outcome = workshop.run()
    assert outcome.errors == ()
    assert outcome.exit_code == 0
    ours = workshop.stored("heldout_ratings", "tiny", "recorded").set_index(["method", "model"])
    theirs = pd.read_csv(expected_dir / "softelo_sample_heldout.csv").set_index(["method", "model"])
    assert len(theirs) == 28
    for column, published, tolerance in (
        ("human_rating", "human_elo", 0.005),
        ("rating", "judge_elo", 0.005),
        ("beta", "beta", 1e-5),
    ):
        difference = ours[column].reindex(theirs.index) - theirs[published]
        assert difference[theirs[published].notna()].abs().max() < tolerance, column


def test_a_misspelt_embedding_is_told_before_anything_is_asked(workshop):
    workshop.tiny["embeddings"] = "hashd"
    outcome = workshop.run("careful")
    assert outcome.exit_code == 1
    assert "did you mean 'hashed'" in outcome.errors[0]
    assert not workshop.files()


def test_where_every_judge_is_stopped_scoring_methods_are_compared_all_the_same(workshop):
    """A judge whose scores go against the votes: no leaderboard, and a page that says so."""
    outcome = workshop.run("contrary")
    assert outcome.exit_code == 2
    assert outcome.errors == ()
    assert any(check.check == "beta_is_usable" for check in outcome.failed_checks)
    assert workshop.stored("leaderboard", "tiny", "contrary") is None
    compared = workshop.stored("method_comparison", "tiny")
    rows = compared.set_index("method")
    assert rows.loc["hard", "mae"] > 0
    assert pd.isna(rows.loc["soft", "mae"])
    assert "No judge has ratings on the human scale" in outcome.report.read_text(encoding="utf-8")
