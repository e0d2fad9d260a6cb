from pathlib import Path

import pytest

from resources.config.paths import ROOT, config_dir, home, tables_uri

VARIABLES = ("JUDGELINE_HOME", "JUDGELINE_CONFIG", "JUDGELINE_TABLES")


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_everything_lies_in_the_checkout_by_default() -> None:
    assert (ROOT / "pyproject.toml").is_file()
    assert (home(), config_dir()) == (ROOT / ".judgeline", ROOT / "config")
    assert tables_uri() == str(ROOT / ".judgeline" / "tables")


def test_home_moves_the_tables_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path))
    assert tables_uri() == str(tmp_path / "tables")


def test_a_relative_home_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGELINE_HOME", "here")
    assert home() == tmp_path / "here"


def test_tables_may_be_a_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGELINE_TABLES", "s3://bucket/tables")
    assert tables_uri() == "s3://bucket/tables"
