"""An installation of its own, worked through the command line as a person would."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import yaml
from upath import UPath

from judgeline.judges.judge import judge_key
from judgeline.judges.store.verdicts import VerdictStore
from resources.config.corpora import load_corpora
from resources.config.judges import load_judges
from resources.opening import open_judge

ROOT = Path(__file__).resolve().parent.parent.parent
LONGEST_RUN_S = 1800  # a vLLM server on a busy CPU answers one question in seconds
RUN = ["run", "--corpus", "real", "--judge", "tiny"]
VERDICTS = ["--select", "+verdicts"]
"""As far as random weights get: what a judge of chance says of people fails the next gate."""


@dataclass
class Household:
    """A home and a configuration."""

    home: Path
    config: Path
    variables: dict[str, str]

    @classmethod
    def furnish(cls, folder: Path, **variables: str) -> "Household":
        """Make a home and a configuration; an empty variable is not set."""
        home, config = folder / "home", folder / "config"
        config.mkdir(parents=True)
        given = {**os.environ, "DAGSTER_HOME": "", **variables}
        given |= {"JUDGELINE_HOME": str(home), "JUDGELINE_CONFIG": str(config)}
        return cls(home, config, {name: value for name, value in given.items() if value})

    def define(self, model: object, **fields: Any) -> None:
        """Write the one judge's entry."""
        tiny = {
            "display_name": "Tiny",
            "family": "none",
            "kind": "vllm",
            "model": str(model),
            **fields,
        }
        (self.config / "judges.yaml").write_text(yaml.safe_dump({"tiny": tiny}), encoding="utf-8")

    def add_corpus(self, battles: pd.DataFrame, **fields: Any) -> None:
        file = self.config / "battles.parquet"
        battles.to_parquet(file)
        real = {"display_name": "Real", "reader": "battles", "location": str(file), **fields}
        (self.config / "corpora.yaml").write_text(yaml.safe_dump({"real": real}), encoding="utf-8")

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "pipelines", *words],
            env=self.variables,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def do(self, *words: str, exit_code: int = 0) -> str:
        """Run a command to its end; return what it printed on one line, and check its code."""
        process = self.start(*words)
        try:
            printed, _ = process.communicate(timeout=LONGEST_RUN_S)
        except subprocess.TimeoutExpired:
            process.terminate()  # its servers go with it
            raise
        assert process.returncode == exit_code, printed + self.server_logs()
        return " ".join(printed.split())

    def run(self, *words: str) -> str:
        return self.do(*RUN, *words)

    @property
    def servers(self) -> int:
        """How many servers were ever started."""
        return len(self._logs())

    def instance(self) -> dg.DagsterInstance:
        return dg.DagsterInstance.from_config(str(self.home))

    def server_logs(self) -> str:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace") for log in self._logs())

    def verdicts(self) -> pd.DataFrame:
        (file,) = (self.home / "tables").rglob("verdicts/**/*.parquet")
        return pd.read_parquet(file)

    def store(self) -> VerdictStore:
        return VerdictStore(UPath(self.home / "verdicts"))

    def key(self) -> str:
        """Return the name under which the store keeps the judge's answers."""
        config = self.config
        judge = load_judges(config / "judges.yaml")["tiny"]
        corpus = load_corpora(config / "corpora.yaml")["real"]
        return judge_key(open_judge(judge, corpus))

    def _logs(self) -> list[Path]:
        return sorted((self.home / "logs" / "vllm").glob("*.log"))
