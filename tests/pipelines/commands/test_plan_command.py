"""`judgeline plan --corpus`: what a judge is worth, labels to buy, or what to do first."""

import pandas as pd
import pytest

from judgeline import cli
from judgeline.steps.winrate import label_plan
from resources.config.corpora import load_corpora


@pytest.fixture
def installed(finished, monkeypatch):
    return finished.install(monkeypatch)


def test_the_plan_is_said_in_words(installed, capsys):
    scored = installed.stored("scored_battles", "tiny", "careful")
    plan = label_plan(scored, load_corpora()["tiny"].rating)
    assert cli.main(["plan", "--corpus", "tiny", "--judge", "careful"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "careful is worth" in said
    assert "What narrows one model's interval" in said
    assert "the corpus" in said
    assert plan.loc[0, "plan"][:40] in said
    assert any(plan["note"])
    assert all(note[:60] in said for note in plan["note"])


def test_a_reason_is_said_once_a_plan_and_a_common_note_once_in_all(installed, capsys, monkeypatch):
    plans = [["model", "m", "verdict", "Label 3.", "ok", "transported"]] * 2
    plans += [["model", "m", "human outcome", "No plan: too far.", "out-of-reach", "too far"]]
    columns = ["grouping", "level", "chosen_by", "plan", "status", "note"]
    table = pd.DataFrame(plans, columns=columns)
    monkeypatch.setattr("judgeline.steps.winrate.label_plan", lambda *_: table)
    assert cli.main(["plan", "--corpus", "tiny", "--judge", "careful"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (said.count("Label 3."), said.count("too far"), said.count("transported")) == (2, 1, 1)
    assert "2 of 3 plans: transported." in said


@pytest.mark.parametrize(
    ("corpus", "judge", "told"),
    [
        ("tinny", "careful", "did you mean 'tiny'?"),
        ("tiny", "carefull", "did you mean 'careful'?"),
        (
            "tiny",
            "sloppy",
            "by judge 'sloppy' yet; there are those of careful, hasty; run: judgeline run --corpus",
        ),
    ],
)
def test_an_unknown_name_is_told(installed, capsys, corpus, judge, told):
    assert cli.main(["plan", "--corpus", corpus, "--judge", judge]) == 1
    assert told in " ".join(capsys.readouterr().err.split())
