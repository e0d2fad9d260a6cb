"""What several tests of judges share: a vLLM that is none."""

from pathlib import Path

import managed
import pytest

from resources.judges.managed import server as servers


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> managed.FakeVllm:
    fake = managed.install(tmp_path / "site")
    monkeypatch.delenv("JUDGELINE_VLLM_PYTHON", raising=False)
    for name, value in fake.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(servers, "PATIENCE_S", 0.3)
    return fake
