"""An installation with one corpus of battles and one served judge, run as a person would."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml
from fault_server import Body, shown_texts
from rich.console import Console
from serving import environment

from judgeline.paths import ROOT
from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES
from pipelines.commands.console import RunOutcome
from pipelines.commands.run import run_lineage
from resources.stores import StoredVerdicts
from resources.tables.store import ParquetTables

N_MODELS = 16


def contested(n_battles: int) -> pd.DataFrame:
    """Battles of models of known merit, stated in the text, and votes by it (two have none)."""
    rng = np.random.default_rng(5)
    skill = np.linspace(3.0, 8.0, N_MODELS)
    pairs = np.array([rng.permutation(N_MODELS)[:2] for _ in range(n_battles)])
    merit = np.clip(skill[pairs] + rng.normal(0, 1.5, pairs.shape), 1, 10)
    wins = rng.random(n_battles) < 1 / (1 + np.exp(merit[:, 1] - merit[:, 0]))
    voted = (pairs < N_MODELS - 2).all(axis=1)
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(n_battles)],
            "model_a": [f"model-{i:02}" for i in pairs[:, 0]],
            "model_b": [f"model-{i:02}" for i in pairs[:, 1]],
            "human_outcome": np.where(voted, wins.astype(float), np.nan),
            "instruction": [f"Question {i}" for i in range(n_battles)],
            "completion_a": [f"Answer {i}, merit {m:.3f}" for i, m in enumerate(merit[:, 0])],
            "completion_b": [f"Reply {i}, merit {m:.3f}" for i, m in enumerate(merit[:, 1])],
            "language": "en",
        }
    )


def grades(texts: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """What the server's model thinks: the merit in each text, a little less for the second."""
    merits = [float(text.rpartition(" ")[2]) for text in texts[1:]]
    seen = (merits[0], merits[1] - 0.3)
    tilts = np.linspace(-0.4, 0.4, len(CRITERIA))
    return {
        response: {
            criterion: int(np.clip(round(merit + tilt), 1, 10))
            for criterion, tilt in zip(CRITERIA, tilts, strict=True)
        }
        for response, merit in zip(RESPONSES, seen, strict=True)
    }


def graded(body: Body) -> str:
    return json.dumps(grades(shown_texts(body)))


@dataclass
class Installation:
    """A home and a configuration of judge ``j`` at an endpoint; `instance` records runs here."""

    folder: Path
    url: str
    n_battles: int
    instance: dg.DagsterInstance | None = None
    judge: Mapping[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    printed: str = ""

    def __post_init__(self) -> None:
        config = self.folder / "config"
        config.mkdir(parents=True)
        contested(self.n_battles).to_parquet(self.folder / "battles.parquet")
        corpus = {
            "reader": "battles",
            "location": str(self.folder / "battles.parquet"),
            "rating": {"n_resamples": 20},
            "gate": {"withhold": []},  # lasting faults cost it verdicts, which is the point here
        }
        judge = {
            "display_name": "J",
            "family": "none",
            "kind": "openai",
            "model": "tiny",
            "base_url": self.url,
            "endpoint_name": "here",
            **self.judge,
        }
        for name, entry in (("corpora", {"c": corpus}), ("judges", {"j": judge})):
            (config / f"{name}.yaml").write_text(yaml.safe_dump(entry), encoding="utf-8")

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def variables(self) -> dict[str, str]:
        """The environment that makes this installation the one that runs."""
        return {
            "JUDGELINE_HOME": str(self.home),
            "JUDGELINE_CONFIG": str(self.folder / "config"),
            **self.environment,
        }

    @property
    def tables(self) -> ParquetTables:
        return ParquetTables(base_uri=str(self.home / "tables"))

    def stored(self, *place: str) -> pd.DataFrame:
        """A table that a run left, by asset, corpus and judge."""
        found = self.tables.create_io_manager(None).stored(*place)
        assert found is not None, f"no table of {place}"
        return found

    def run(self, *, retry: Sequence[str] = (), **options: Any) -> RunOutcome:
        """Run the lineage in this process and keep what was printed."""
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.variables.items():
                patch.setenv(name, value)
            outcome = run_lineage(
                corpus="c",
                judges=["j"],
                instance=self.instance,
                verdict_store=StoredVerdicts(retry_also=list(retry)),
                console=Console(file=out, width=100),
                **options,
            )
        self.printed = out.getvalue()
        return outcome

    def metadata(self, asset: str) -> dict[str, Any]:
        """What the last run in this process said about an asset."""
        assert self.instance is not None
        event = self.instance.get_latest_materialization_event(dg.AssetKey(asset))
        assert event is not None
        return {k: v.value for k, v in event.asset_materialization.metadata.items()}

    def start(self, *arguments: str, log: Path | None = None) -> "subprocess.Popen[bytes]":
        """Start the command line in a process group of its own; its output goes to a file."""
        with (log or self.folder / "output.txt").open("ab") as sink:
            return subprocess.Popen(
                [sys.executable, "-m", "pipelines", *arguments],
                cwd=ROOT,
                env=environment(**self.variables),
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def command(self, *arguments: str) -> tuple[int, str]:
        """Run the command line to its end; return the exit code and everything it printed."""
        log = self.folder / f"output-{len(list(self.folder.glob('output-*')))}.txt"
        code = self.start(*arguments, log=log).wait(600)
        return code, log.read_text(encoding="utf-8")
