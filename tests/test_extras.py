"""Extras of pyproject.toml: they go together."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sources import ROOT


@pytest.mark.full
@pytest.mark.slow
def test_vllm_installs_beside_the_lineage(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    pinned = ["-c", "constraints.txt", "--report", str(report), "-e", ".[app,vllm]"]
    subprocess.run([*command, *pinned], cwd=ROOT, check=True)
    found = json.loads(report.read_text())["install"]
    versions = {one["metadata"]["name"].lower(): one["metadata"]["version"] for one in found}
    assert {"vllm", "dagster", "great-expectations", "openai"} <= {
        name.replace("_", "-") for name in versions
    }
