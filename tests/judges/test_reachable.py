"""A run looks at keys, endpoints and models before it makes its first table."""

import io
from pathlib import Path

import dagster as dg
import pytest
import yaml
from buyer_process import numbered
from fault_server import FaultServer, error, serving
from rich.console import Console

from pipelines.commands.console import RunOutcome
from pipelines.commands.run import run_lineage
from resources.config.catalog import Catalog

BATTLES = numbered(12).assign(
    model_a=[f"m{i % 4}" for i in range(12)],
    model_b=[f"m{(i + 1) % 4}" for i in range(12)],
    human_outcome=[i % 3 / 2 for i in range(12)],
    language="en",
)


class Desk:
    """A home with one corpus and two judges, and what a run printed."""

    def __init__(self, folder: Path, url: str, **judge: object) -> None:
        self.folder, self.printed = folder, ""
        BATTLES.to_parquet(folder / "battles.parquet")
        corpus = {"reader": "battles", "location": str(folder / "battles.parquet")}
        served = {"display_name": "J", "family": "none", "kind": "openai", "model": "tiny"}
        judges = {
            "j": {**served, "base_url": url, **judge},
            "other": {**served, "base_url": url, "model": "other"},
        }
        for name, entries in (("corpora", {"c": corpus}), ("judges", judges)):
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(entries), encoding="utf-8")

    def run(self, *judges: str) -> RunOutcome:
        out = io.StringIO()
        files = {name: str(self.folder / f"{name[:-5]}.yaml") for name in FILES}
        with dg.DagsterInstance.ephemeral() as instance:
            outcome = run_lineage(
                corpus="c",
                judges=judges or ["j"],
                select=["+verdicts"],
                instance=instance,
                catalog=Catalog(**files),
                console=Console(file=out, width=200),
            )
            self.n_runs = instance.get_runs_count()
        self.printed = out.getvalue()
        return outcome

    def n_tables(self) -> int:
        return len(list((self.folder / "home").rglob("*.parquet")))


FILES = ("corpora_file", "judges_file")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("JUDGE_KEY", raising=False)


def assert_nothing_happened(desk: Desk, outcome: RunOutcome) -> str:
    (said,) = outcome.errors
    assert outcome.exit_code == 1
    assert (desk.n_runs, desk.n_tables()) == (0, 0)
    return said


def test_a_missing_key_is_said_before_anything_is_made(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        desk = Desk(tmp_path, server.url, api_key_env="JUDGE_KEY")
        said = assert_nothing_happened(desk, desk.run("other", "j"))
    assert "environment variable JUDGE_KEY, which is not set; set JUDGE_KEY" in said
    assert "judge 'j'" in said
    assert server.presentations == []


def test_an_unknown_model_is_said_before_anything_is_made(tmp_path: Path) -> None:
    class Picky(FaultServer):
        async def _reply(self, body):
            self.bodies.append(body)
            return error(404, f"The model {body['model']} does not exist", "model_not_found")

    with serving(Picky()) as server:
        desk = Desk(tmp_path, server.url)
        said = assert_nothing_happened(desk, desk.run())
    assert "The model tiny does not exist" in said
    assert server.presentations == []


@pytest.mark.slow
def test_an_endpoint_that_has_gone_is_said_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("judgeline.judges.live.troubles.RetryPolicy.delay", lambda *_: 0.0)
    with serving(FaultServer()) as server:
        desk = Desk(tmp_path, server.url)
        assert desk.run().exit_code == 0
        assert desk.n_tables() > 0
        n_asked = len(server.bodies)
        assert desk.run().exit_code == 0
        assert len(server.bodies) == n_asked  # all of it is stored: nobody is asked, nor looked at
    again = desk.run()
    assert again.exit_code == 0  # nor does it take the server
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("JUDGELINE_HOME", str(other / "home"))
    (other / "home").mkdir()
    (tmp_path / "home" / "endpoints").rename(other / "home" / "endpoints")  # it was known once
    gone = Desk(other, server.url)
    said = assert_nothing_happened(gone, gone.run())
    assert server.url in said or "tiny" in said
    assert "did not answer" in said
