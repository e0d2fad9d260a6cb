"""Which storage the environment chooses, and what is said where that cannot be."""

import socket

import pytest
import yaml

from pipelines.instance import postgres
from pipelines.instance.homes import prepare_home
from resources.config.paths import ROOT

SECRET = "correct horse battery staple"  # noqa: S105
GIVEN = {
    "DAGSTER_PG_HOST": "127.0.0.1",
    "DAGSTER_PG_PORT": "5432",
    "DAGSTER_PG_DB": "judgeline",
    "DAGSTER_PG_USERNAME": "judge",
    "DAGSTER_PG_PASSWORD": SECRET,
}


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


def test_sqlite_is_what_nobody_chose(home, monkeypatch):
    monkeypatch.delenv("DAGSTER_PG_HOST", raising=False)
    prepare_home()
    written = yaml.safe_load((home / "dagster.yaml").read_text(encoding="utf-8"))
    assert written["storage"]["custom"]["class"] == "SqliteStorage"


def test_the_file_names_variables_and_holds_no_value_of_theirs(chosen, monkeypatch):
    monkeypatch.setattr(postgres, "require_server", lambda: None)
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


def test_a_server_that_does_not_answer_is_named_without_the_password(
    chosen, monkeypatch, free_port
):
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
