"""A home that an older version made, of 2026-11-23 and 40 tables, goes on in this one.

It is the archive beside this file: `home`, without its report, and `config`. Commit a8b8235 made it
by `judgeline run --corpus tiny` in /srv/judgeline on a host called example.
"""

import tarfile
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
from conftest import Workshop, kept_in
from test_forget import answers

from assets.provenance import latest
from judgeline.cli import main
from pipelines.definitions import build_definitions
from pipelines.instance.internals import CODE_VERSION_TAG

pytestmark = pytest.mark.slow

OLDER = Path(__file__).with_name("home_of_2026_11_23.tar.xz")
PLACES = ("tiny", "tiny|hasty")
Made = dict[tuple[str, str], tuple[str, str]]


def made(instance: dg.DagsterInstance) -> Made:
    """Return the code version and the run that last made each table of a place."""
    records = {
        (key.to_user_string(), place): latest(instance, key.to_user_string(), place)
        for key in instance.all_asset_keys()
        for place in PLACES
    }
    return {
        place: (record.asset_materialization.tags[CODE_VERSION_TAG], record.run_id)
        for place, record in records.items()
        if record
    }


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    """The older home in a new place, as commands find it."""
    with tarfile.open(OLDER) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JUDGELINE_CONFIG", str(tmp_path / "config"))
    for name in ("CANDIDATES", "TABLES", "VERDICTS", "EMBEDDINGS"):
        monkeypatch.delenv(f"JUDGELINE_{name}", raising=False)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    with kept_in(tmp_path / "home") as instance:
        yield Workshop(tmp_path / "home", instance)


def test_an_older_home_goes_on(older: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    board = older.stored("leaderboard", "tiny", "hasty")
    assert main(["leaderboard", "--corpus", "tiny"]) == 0  # before anything is made again
    assert board["model"].iloc[0] in capsys.readouterr().out

    bought, files, before = answers(older.home), older.files(), made(older.instance)
    unreadable = sum(
        older.stored(name, "tiny", "hasty")["status"].ne("ok").sum()
        for name in ("verdicts", "score_verdicts", "choice_verdicts")
    )
    assert main(["run", "--corpus", "tiny"]) == 0, capsys.readouterr().err
    capsys.readouterr()

    # bought again: what nobody could read, and nothing else
    again = answers(older.home)
    assert 0 < unreadable < 0.02 * len(bought)
    assert len(again) - len(bought) == unreadable
    assert {*again["identity"]} == {*bought["identity"]}

    # made again: what the code of today makes otherwise, and what follows from it
    graph = build_definitions().resolve_asset_graph()
    today = {node.key.to_user_string(): node.code_version for node in graph.asset_nodes}
    after = made(older.instance)
    lived_on = {place: one for place, one in before.items() if place[0] in today}
    changed = {place for place, (code, _) in lived_on.items() if code != today[place[0]]}
    untouched = {place for place, one in lived_on.items() if after[place] == one}
    assert changed
    assert not changed & untouched
    again = {name for name, _ in {*lived_on} - untouched}
    for name in again - {name for name, _ in changed}:
        before_it = graph.get(dg.AssetKey(name)).parent_keys
        assert again & {key.to_user_string() for key in before_it}, name
    assert all(code == today[name] for (name, _), (code, _) in after.items() if name in today)
    now = older.files()
    retired = {name for name in files if name.split("/")[0] not in today}
    assert retired  # they lie unused
    assert {name: now[name] for name in retired} == {name: files[name] for name in retired}
    for name, place in untouched:
        file = f"{name}/{place.replace('|', '/')}.parquet"
        assert now[file] == files[file]

    # what it says
    best = older.stored("leaderboard", "tiny", "hasty")["model"].iloc[0]
    pd.testing.assert_series_equal(
        older.stored("leaderboard", "tiny", "hasty").set_index("model")["human_rating"],
        board.set_index("model")["human_rating"],
        check_like=True,
    )
    assert main(["leaderboard", "--corpus", "tiny"]) == 0
    assert best in capsys.readouterr().out
    assert main(["why", best, "--corpus", "tiny", "--judge", "hasty"]) == 0
    told = capsys.readouterr().out
    assert "Battles that raise the judge's rating most" in told
    assert after["leaderboard", "tiny|hasty"][1] in told
    assert main(["run", "--corpus", "tiny"]) == 0
    assert made(older.instance) == after
