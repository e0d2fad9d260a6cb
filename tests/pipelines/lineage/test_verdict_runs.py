"""The verdict store under runs of the lineage: nothing asked twice, budgets kept, misses told."""

import shutil

import pandas as pd
import pytest

from judgeline import cli
from judgeline.judges.budget import Budget
from judgeline.judges.opening import read_template
from pipelines.commands import verdicts
from pipelines.commands.console import RunOutcome
from resources.stores import StoredVerdicts

N_CALLS = 600
BUY = ["+verdicts"]


def test_verdicts_made_again_ask_nothing_and_are_the_same(finished_workshop, shown):
    workshop = finished_workshop
    workshop.run("noise", select=BUY)
    first = workshop.stored("verdicts", "tiny", "noise")
    assert len(shown) == N_CALLS
    seen = workshop.metadata("verdicts")
    assert (seen["n_asked"], seen["n_resumed"], seen["n_retried"]) == (N_CALLS, 0, 0)
    assert workshop.run("noise", select=["verdicts"], force=True).exit_code == 0
    assert len(shown) == N_CALLS
    pd.testing.assert_frame_equal(workshop.stored("verdicts", "tiny", "noise"), first)
    seen = workshop.metadata("verdicts")
    assert (seen["n_asked"], seen["n_resumed"]) == (0, N_CALLS)
    assert seen["failures"] == {}
    assert seen["damaged_files"] == []


def test_dry_run_counts_what_is_missing(finished_workshop, shown):
    workshop = finished_workshop
    before = workshop.stored("sampled_battles", "tiny")["battle_id"].tolist()
    workshop.tiny["sample_size"] = 350
    outcome = workshop.run("careful", "noise", dry_run=True)
    assert [(step.n_calls, step.n_stored) for step in outcome.plan] == [(100, N_CALLS), (700, 0)]
    assert "tiny|careful: 100 calls (600 answered already)" in workshop.printed
    workshop.run("careful", select=BUY)
    assert len(shown) == 100
    after = workshop.stored("sampled_battles", "tiny")["battle_id"].tolist()
    assert (after[:300], len(after)) == (before, 350)
    workshop.run("careful", dry_run=True)
    assert "tiny|careful: no calls (700 answered already)" in workshop.printed


def test_dry_run_counts_no_failure_that_the_run_would_leave(finished_workshop, shown):
    workshop = finished_workshop
    workshop.run("sloppy", select=BUY)
    assert workshop.stored("verdicts", "tiny", "sloppy")["status"].ne("ok").any()
    for force in (False, True):
        n_before = len(shown)
        (step,) = workshop.run("sloppy", dry_run=True, select=BUY, force=force).plan
        workshop.run("sloppy", select=BUY, force=force)
        assert (step.n_calls, step.n_stored) == (len(shown) - n_before, 2 * N_CALLS - len(shown))
        assert (step.n_calls > 0) == force


def test_a_budget_is_a_cap_in_the_run_too(finished_workshop, shown):
    workshop = finished_workshop
    outcome = workshop.run("noise", "contrary", select=BUY, budget=Budget(650))
    assert outcome.exit_code == 1
    assert len(shown) == 650
    (error,) = outcome.errors
    assert "budget of 650 calls is spent" in error
    assert "550 of the 600 calls to judge 'contrary' are missing" in error
    assert workshop.stored("verdicts", "tiny", "contrary") is None
    plan = workshop.run("noise", "contrary", dry_run=True).plan
    assert [step.n_calls for step in plan] == [0, 550]
    assert workshop.run("noise", "contrary", select=BUY, budget=Budget(550)).exit_code == 0
    assert len(shown) == 2 * N_CALLS


def test_failures_are_asked_for_again_and_counted(finished_workshop, shown):
    workshop = finished_workshop
    workshop.run("mumbler", select=BUY)
    n_failed = workshop.stored("verdicts", "tiny", "mumbler")["status"].ne("ok").sum()
    workshop.run("mumbler", select=["verdicts"])
    assert len(shown) == N_CALLS + n_failed
    assert workshop.metadata("verdicts")["n_retried"] == n_failed
    assert workshop.metadata("verdicts")["failures"] == {"parse_error": n_failed}


def test_the_store_can_lie_elsewhere(finished_workshop, shown, tmp_path, monkeypatch):
    workshop = finished_workshop
    shutil.rmtree(workshop.home / "verdicts")
    monkeypatch.setenv("JUDGELINE_VERDICTS", f"memory://{tmp_path.name}")
    workshop.run("careful", select=["verdicts"], force=True)
    assert len(shown) == N_CALLS
    assert not (workshop.home / "verdicts").exists()
    workshop.run("careful", dry_run=True)
    assert "no calls (600 answered already)" in workshop.printed


def test_other_failures_are_asked_for_again_on_request(monkeypatch):
    taken = {}

    def noted(**options):
        taken.update(options)
        return RunOutcome("tiny")

    monkeypatch.setattr("pipelines.commands.run.run_lineage", noted)
    assert cli.main(["run", "--corpus", "tiny", "--retry", "refusal"]) == 0
    assert taken["verdict_store"].retry_also == ["refusal"]
    assert cli.main(["run", "--corpus", "tiny", "--retry", "boredom"]) == 1
    with pytest.raises(ValueError, match="unknown failure class 'boredom'"):
        StoredVerdicts(retry_also=["boredom"])


# judgeline verdicts explain


@pytest.fixture
def explained(finished, monkeypatch):
    """A workshop whose battles the careful judge has judged, and one of them."""
    finished.install(monkeypatch)
    return finished, finished.stored("sampled_battles", "tiny")["battle_id"][0]


def test_a_hit_is_explained(explained):
    _, battle = explained
    assert verdicts.explain_battle(battle, "careful") == (
        "tiny",
        [("AB", 0, "hit", "answered"), ("BA", 0, "hit", "answered")],
    )


def test_another_prompt_misses_and_is_told(explained, shown):
    workshop, battle = explained
    (workshop.home / "prompts").mkdir()
    (workshop.home / "prompts" / "rubric.txt").write_text(f"{read_template()}!", encoding="utf-8")
    _, rows = verdicts.explain_battle(battle, "careful", "tiny")
    assert [row[:3] for row in rows] == [("AB", 0, "miss"), ("BA", 0, "miss")]
    assert all(row[3].endswith("differs in the template") for row in rows)
    assert shown == []


def test_another_judge_misses_and_is_told(explained):
    _, battle = explained
    _, rows = verdicts.explain_battle(battle, "noise")
    assert "of hasty" in rows[0][3]
    assert "mood 0.3, noise 1.2, now mood 9, noise 9" in rows[0][3].replace(".0", "")


def test_the_command_prints_a_row_per_order(explained, capsys):
    _, battle = explained
    assert cli.main(["verdicts", "explain", battle, "--judge", "careful"]) == 0
    printed = capsys.readouterr().out
    assert f"{battle} of tiny, judged by careful" in printed
    assert printed.count("answered") == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["b", "--judge", "carefull"], "'careful'"),
        (
            ["nobody", "--judge", "careful"],
            "no battle 'nobody' in the tables of any configured corpus; correct the id",
        ),
        (["b", "--judge", "careful", "--corpus", "tyni"], "'tiny'"),
        (["b", "--judge", "recorded"], "came with the corpus"),
    ],
)
def test_wrong_names_are_explained(explained, capsys, arguments, told):
    assert cli.main(["verdicts", "explain", *arguments]) == 1
    assert told in capsys.readouterr().err
