"""The home of an installation: its instance file, and the storage that the environment chooses."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
import yaml

from judgeline.atomic import write_whole
from judgeline.paths import ROOT, readable_home_message
from judgeline.paths import home as home_path
from pipelines.instance import homes
from pipelines.instance.homes import open_instance, prepare_home

SECRET = "correct horse battery staple"  # noqa: S105
GIVEN = {
    "DAGSTER_PG_HOST": "127.0.0.1", "DAGSTER_PG_PORT": "5432", "DAGSTER_PG_DB": "judgeline",
    "DAGSTER_PG_USERNAME": "judge", "DAGSTER_PG_PASSWORD": SECRET,
}  # fmt: skip


@pytest.fixture
def chosen(home, monkeypatch):
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    return home


@pytest.fixture
def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield probe.getsockname()[1]  # bound, and nobody listens


def test_the_file_names_variables_and_holds_no_value_of_theirs(chosen, monkeypatch):
    monkeypatch.setattr(homes, "require_postgres", lambda: None)
    prepare_home()
    text = (chosen / "dagster.yaml").read_text(encoding="utf-8")
    assert SECRET not in text
    database = yaml.safe_load(text)["storage"]["postgres"]["postgres_db"]
    assert database.pop("scheme") == "postgresql+psycopg2"
    assert sorted(value["env"] for value in database.values()) == sorted(GIVEN)
    assert text.count(str(chosen)) == 2  # artifacts and captured logs


def test_missing_variables_are_all_named(chosen, monkeypatch):
    monkeypatch.delenv("DAGSTER_PG_DB")
    monkeypatch.setenv("DAGSTER_PG_PASSWORD", "")
    with pytest.raises(ValueError, match="needs DAGSTER_PG_DB, DAGSTER_PG_PASSWORD: set them"):
        prepare_home()


def test_a_silent_server_is_named_without_the_password(chosen, monkeypatch, free_port):
    monkeypatch.setenv("DAGSTER_PG_PORT", str(free_port))
    with pytest.raises(ValueError, match=f"127.0.0.1:{free_port}.*see whether it runs") as caught:
        prepare_home()
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert not chosen.exists()


@pytest.mark.parametrize("port", ["0", "70000", "54x", "-1"])
def test_a_wrong_port_is_shown(chosen, monkeypatch, port):
    monkeypatch.setenv("DAGSTER_PG_PORT", port)
    with pytest.raises(ValueError, match=f"DAGSTER_PG_PORT is '{port}', not a port"):
        prepare_home()


def test_both_instance_files_differ_in_their_storage_only():
    files = ROOT / "dagster.yaml", ROOT / "deploy" / "dagster.postgres.yaml"
    mine, production = (yaml.safe_load(file.read_text(encoding="utf-8")) for file in files)
    assert mine.pop("storage") != production.pop("storage")
    assert mine == production


def test_home_has_an_instance_file_with_absolute_folders_and_sqlite(home, monkeypatch):
    monkeypatch.delenv("DAGSTER_PG_HOST", raising=False)
    assert prepare_home() == home
    text = (home / "dagster.yaml").read_text(encoding="utf-8")
    settings = yaml.safe_load(text)
    assert settings["storage"]["custom"]["class"] == "SqliteStorage"
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


def test_an_instance_of_the_checkout_keeps_runs_at_home(home):
    with dg.DagsterInstance.from_config(str(ROOT)) as started_by_dagster_dev:
        run = started_by_dagster_dev.create_run_for_job(lonely)
        assert started_by_dagster_dev.compute_log_manager._base_dir == str(home / "compute_logs")
    with open_instance() as ours:
        assert ours.get_run_by_id(run.run_id) is not None


@dg.job
def lonely() -> None:
    """Do nothing."""


def test_programs_that_open_a_new_home_at_once_all_can(tmp_path: Path) -> None:
    """Each makes the tables of a home where there are none; three tries, four programs each."""
    program = "from pipelines.instance.homes import open_instance; open_instance().dispose()"
    for number in range(3):
        home = {"JUDGELINE_HOME": str(tmp_path / str(number))}
        command = [sys.executable, "-c", program]
        environment = {name: text for name, text in os.environ.items() if name != "DAGSTER_HOME"}
        programs = [
            subprocess.Popen(command, env={**environment, **home}, cwd=ROOT, stderr=subprocess.PIPE)
            for _ in range(4)
        ]
        assert [(one.communicate()[1][-200:], one.returncode) for one in programs] == 4 * [(b"", 0)]


@pytest.mark.parametrize("make", [prepare_home, lambda: write_whole(home_path() / "a" / "b", b"")])
def test_a_new_home_is_closed_to_other_users_and_an_open_one_is_named(make, home) -> None:
    before = os.umask(0o022)
    try:
        make()
    finally:
        os.umask(before)
    assert home.stat().st_mode & 0o777 == 0o700
    assert readable_home_message() == ""
    home.chmod(0o755)
    assert readable_home_message().endswith(f"can read {home}; close it: chmod 700 {home}")
