"""What the tests of managed servers share: a vLLM that is none, and who is still alive."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import processes
from processes import is_alive as is_alive

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


@dataclass
class FakeVllm:
    """A folder on PYTHONPATH that calls itself vllm, and what its servers wrote down."""

    folder: Path
    variables: dict[str, str]

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.lines("pids")]

    def behaves(self, **how: object) -> dict[str, str]:
        self.variables["FAKE_VLLM"] = json.dumps(how)
        return self.variables


def install(folder: Path) -> FakeVllm:
    module = folder / "vllm" / "entrypoints" / "openai" / "api_server.py"
    module.parent.mkdir(parents=True)
    (folder / "vllm" / "__init__.py").touch()
    script = str(HERE / "fake_vllm.py")
    module.write_text(f"import runpy\nrunpy.run_path({script!r}, run_name='__main__')\n")
    path = ":".join(map(str, (folder, HERE, ROOT)))
    return FakeVllm(folder, {"PYTHONPATH": path, "FAKE_VLLM_NOTES": str(folder), "FAKE_VLLM": "{}"})


def wait_for(happened: Callable[[], object], what: str) -> None:
    processes.wait_for(what, happened, seconds=60, pause=0.02)
