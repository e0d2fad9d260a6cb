"""`judgeline labels` says a stored plan, or what to do first."""

import shutil

import pytest

from judgeline import cli
from resources.config.paths import config_dir


@pytest.fixture
def installed(workshop, monkeypatch):
    """The workshop as the installation that the command line looks at, its prompts included."""
    assert workshop.catalog.corpus("tiny")  # writes the configuration
    shutil.copytree(config_dir() / "prompts", workshop.home / "prompts")
    monkeypatch.setenv("JUDGELINE_HOME", str(workshop.home))
    monkeypatch.setenv("JUDGELINE_CONFIG", str(workshop.home))
    monkeypatch.delenv("JUDGELINE_TABLES", raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    return workshop


def test_the_plan_is_said_in_words(installed, capsys):
    assert cli.main(["labels", "--corpus", "tiny", "--judge", "careful"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "judgeline run --corpus tiny --judge careful" in said
    outcome = installed.run("careful", select=["+label_plan"])
    assert outcome.exit_code == 0, outcome
    plan = installed.stored("label_plan", "tiny", "careful")
    assert cli.main(["labels", "--corpus", "tiny", "--judge", "careful"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the corpus" in said
    assert plan.loc[0, "plan"][:40] in said


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--corpus", "tinny", "--judge", "careful"], "did you mean 'tiny'?"),
        (["--corpus", "tiny", "--judge", "carefull"], "did you mean 'careful'?"),
    ],
)
def test_an_unknown_name_is_told(installed, capsys, arguments, told):
    del installed
    assert cli.main(["labels", *arguments]) == 1
    assert told in " ".join(capsys.readouterr().err.split())
