"""`judgeline checks`: the declared checks as a project of Great Expectations."""

import json

import pandas as pd
import pytest
from conftest import Workshop

from judgeline.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture
def installed(finished_workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    return finished_workshop.install(monkeypatch)


def test_suites_and_pages_are_written_and_say_what_is_broken(installed, tmp_path, capsys):
    out = tmp_path / "checks"
    assert main(["checks", "--corpus", "tiny", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "leaderboard.careful: " in printed
    suite = json.loads((out / "gx/expectations/leaderboard/careful.json").read_text())
    assert "model is unique" in {one["notes"] for one in suite["expectations"]}
    pages = out / "gx" / "uncommitted" / "data_docs" / "local_site"
    assert (pages / "index.html").is_file()
    board = installed.home / "tables" / "leaderboard" / "tiny" / "careful.parquet"
    table = pd.read_parquet(board)
    name = "sim <b>bold</b>"
    pd.concat([table, table.head(1)]).assign(model=name).to_parquet(board)
    assert main(["checks", "--corpus", "tiny", "--out", str(out)]) == 2
    printed = capsys.readouterr().out
    (line,) = [one for one in printed.splitlines() if one.startswith("leaderboard.careful: ")]
    assert "not met: model is unique" in line
    texts = [page.read_text(encoding="utf-8") for page in pages.rglob("*.html")]
    assert not [text for text in texts if name in text]


def test_what_cannot_be_written_is_refused_and_leaves_nothing(home, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")
    assert main(["checks", "--corpus", "arena", "--out", str(file)]) == 1
    assert main(["checks", "--corpus", "arean", "--out", str(tmp_path / "x")]) == 1
    assert main(["checks", "--corpus", "arena", "--out", str(tmp_path / "x")]) == 1
    told = capsys.readouterr().err
    for said in ("is a file", "did you mean 'arena'", "no stored tables"):
        assert said in told
    assert not (tmp_path / "x").exists()


def test_the_project_of_somebody_else_stays(installed, tmp_path, capsys):
    (tmp_path / "gx").mkdir()
    (tmp_path / "gx" / "great_expectations.yml").write_text("mine")
    assert main(["checks", "--corpus", "tiny", "--out", str(tmp_path)]) == 1
    assert "is a project of somebody else" in capsys.readouterr().err
    assert (tmp_path / "gx" / "great_expectations.yml").read_text() == "mine"
