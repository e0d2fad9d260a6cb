"""New models of a corpus of one's own: its served judge places them, or a line says what lacks."""

import json
import os
import shutil
import time
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml

from assets.partitions import corpus_judge_key, register
from judgeline.cli import OK, main
from pipelines.definitions import build_definitions
from pipelines.sensors.activity import active_judges
from pipelines.sensors.candidates import new_candidates
from pipelines.sensors.placing import place_candidates
from resources.config.catalog import Catalog
from resources.config.paths import ROOT
from resources.corpora.reading import read_corpus
from resources.tables.store import ParquetTables

SECRET = "sk-not-to-be-shown"  # noqa: S105 - of no account
JUDGES = {
    "strict": {
        "display_name": "Strict",
        "family": "f",
        "kind": "openai",
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1",
        "api_key_env": "STRICT_KEY",
    },
    "recorded": {"display_name": "R", "family": "none", "kind": "recorded"},
}


class OwnCorpus:
    """A user's file of battles as corpus `mine`, without `judges:`, and a dropped candidate."""

    def __init__(self, home: Path, instance: dg.DagsterInstance) -> None:
        self.home, self.instance = home, instance
        self.entry: dict[str, object] = {"reader": "battles", "location": str(home / "mine.csv")}
        self._write_battles()
        register(instance, corpora=["mine"], judges=["strict"])
        tables = home / "tables" / "battles"
        tables.mkdir(parents=True)
        read_corpus(self.catalog.corpus("mine")).battles.to_parquet(tables / "mine.parquet")
        self.answers = home / "candidates" / "mine" / "fresh.jsonl"
        self.answers.parent.mkdir(parents=True)
        rows = [{"instruction": f"Question {n}?", "completion": "New."} for n in range(30)]
        self.answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(self.answers, (time.time() - 1000,) * 2)

    def _write_battles(self) -> None:
        rng = np.random.default_rng(0)
        pairs = [(a, b) for a in "abcd" for b in "abcd" if a < b]
        rows = [
            {
                "model_a": f"model-{a}",
                "model_b": f"model-{b}",
                "human_outcome": rng.choice([1, 0, 0.5]),
                "instruction": f"Question {n}?",
                "completion_a": f"{a} {n}",
                "completion_b": f"{b} {n}",
            }
            for n in range(30)
            for a, b in pairs
        ]
        pd.DataFrame(rows).to_csv(self.home / "mine.csv", index=False)

    @property
    def catalog(self) -> Catalog:
        corpora, judges = self.home / "corpora.yaml", self.home / "judges.yaml"
        corpora.write_text(yaml.safe_dump({"mine": self.entry}))
        judges.write_text(yaml.safe_dump(JUDGES))
        return Catalog(corpora_file=str(corpora), judges_file=str(judges))

    def rate(self, judge: str) -> None:
        """Leave a judge's leaderboard, and the record of it, as a run would."""
        key = corpus_judge_key("mine", judge)
        made = dg.AssetMaterialization("leaderboard", partition=str(key))
        self.instance.report_runless_asset_event(made)
        folder = self.home / "tables" / "leaderboard" / "mine"
        folder.mkdir(parents=True, exist_ok=True)
        board = pd.DataFrame({"model": ["model-a"], "flags": [""]})
        board.to_parquet(folder / f"{judge}.parquet")

    def choose(self) -> None:
        """Run the job that reads what was dropped and chooses battles."""
        definitions = build_definitions(
            catalog=self.catalog, tables=ParquetTables(base_uri=str(self.home / "tables"))
        )
        job = definitions.resolve_job_def("candidate_job")
        assert job.execute_in_process(partition_key="mine", instance=self.instance).success

    def dropped(self) -> dg.SensorResult:
        with dg.build_sensor_context(instance=self.instance) as context:
            return new_candidates(context, catalog=self.catalog)

    def placed(self) -> dg.SensorResult | dg.SkipReason:
        with dg.build_sensor_context(instance=self.instance) as context:
            return place_candidates(context, catalog=self.catalog)

    def told(self, capsys: pytest.CaptureFixture[str], *command: str) -> str:
        """Return what a command about candidates prints, on one line."""
        _ = self.catalog  # written as it is now
        capsys.readouterr()
        assert main(["candidates", *command, "--corpus", "mine"]) == OK
        return " ".join(capsys.readouterr().out.split())


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("JUDGELINE_HOME", "JUDGELINE_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("JUDGELINE_CANDIDATES", "JUDGELINE_TABLES", "STRICT_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    shutil.copytree(ROOT / "config" / "prompts", tmp_path / "prompts")
    with dg.DagsterInstance.ephemeral() as instance:
        yield OwnCorpus(tmp_path, instance)


def test_a_judge_with_a_leaderboard_places_candidates(
    mine: OwnCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRICT_KEY", SECRET)
    assert mine.dropped().run_requests == []
    mine.rate("strict")
    [active] = active_judges(mine.catalog.corpus("mine"), mine.catalog, mine.instance)
    assert active.slug == "strict"
    assert [one.partition_key for one in mine.dropped().run_requests] == ["mine"]
    mine.choose()
    [request] = mine.placed().run_requests
    assert str(request.partition_key) == "mine|strict"


def test_a_missing_key_is_named_and_no_run_is_started(
    mine: OwnCorpus, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.rate("strict")
    mine.choose()
    lines = [
        mine.placed().skip_message,
        mine.told(capsys, "check", str(mine.answers)),
        mine.told(capsys, "list"),
    ]
    for line in lines:
        assert "judge 'strict'" in line
        assert "STRICT_KEY, which is not set" in line
    monkeypatch.setenv("STRICT_KEY", SECRET)
    assert len(mine.placed().run_requests) == 1
    for command in (["check", str(mine.answers)], ["list"]):
        told = mine.told(capsys, *command)
        assert "STRICT_KEY" not in told
        assert SECRET not in told


def test_without_a_leaderboard_every_line_names_a_run_that_makes_one(
    mine: OwnCorpus, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.rate("recorded")  # which cannot be asked about anything new
    lines = [
        mine.dropped().skip_reason.skip_message,
        mine.told(capsys, "check", str(mine.answers)),
        mine.told(capsys, "list"),
    ]
    assert all("judgeline run --corpus mine --judge SLUG" in line for line in lines)
    mine.entry["judges"] = ["strict"]
    named = mine.dropped().skip_reason.skip_message
    assert "judgeline run --corpus mine --judge strict" in named
    assert "STRICT_KEY" in named


def test_a_judge_that_the_corpus_does_not_list_is_not_asked_and_the_key_to_change_is_named(
    mine: OwnCorpus, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.entry["judges"] = ["recorded"]
    mine.rate("strict")
    for line in (
        mine.dropped().skip_reason.skip_message,
        mine.told(capsys, "check", str(mine.answers)),
        mine.told(capsys, "list"),
    ):
        assert "add strict to 'judges' of corpus 'mine' in config/corpora.yaml" in line
