"""Options of a vLLM server, under a judge's key `vllm` in `judges.yaml`, and its host."""

import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator

from judgeline.judges.live.fields import FEW_ALTERNATIVES, LOOKS_SECRET, MOST_ALTERNATIVES
from judgeline.judges.options import Options
from judgeline.paths import home

_HAVE_A_KEY = {
    "--model": "model",
    "--revision": "revision",
    "--tensor-parallel-size": "vllm.tensor_parallel_size",
    "-tp": "vllm.tensor_parallel_size",
    "--data-parallel-size": "vllm.data_parallel_size",
    "-dp": "vllm.data_parallel_size",
    "--dtype": "vllm.dtype",
    "--max-model-len": "vllm.max_model_len",
}
_OURS = ("--api-key", "--host", "--port", "--uds", "--served-model-name", "--root-path")
_REFUSED = (
    "would be kept with every answer and shown in the list of processes; remove it, and set "
    "HF_TOKEN in the environment for models that need one"
)
# the server takes an argument by its beginning too, as long as that fits no other
_SECRETS = re.compile(
    r"--hf-t\w*|--api-k\w*|--(.*[-.])?(token|key|password|passwd|secret|credentials?)",
    re.IGNORECASE,
)
_FAST = (
    "--gpu-memory-utilization --max-num-seqs --max-num-batched-tokens --cpu-offload-gb "
    "--swap-space --enable-prefix-caching --no-enable-prefix-caching --data-parallel- "
    "--disable-log-stats --uvicorn-log-level --api-server-count"
)
_SPEED_ONLY = tuple(_FAST.split())


class VllmOptions(Options):
    """Options that start the server of a judge of kind ``vllm``."""

    model_config = ConfigDict(hide_input_in_errors=True)

    tensor_parallel_size: int = Field(default=1, ge=1)
    data_parallel_size: int = Field(default=1, ge=1)
    dtype: str = Field(default="auto", min_length=1)
    max_model_len: int | None = Field(default=None, ge=32)
    extra_args: tuple[str, ...] = ()
    startup_timeout_s: float = Field(default=900.0, gt=0)
    pool: str = Field(default="gpu", pattern=r"^[A-Za-z0-9_/-]+$")

    @field_validator("extra_args")
    @classmethod
    def _leave_ours(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for name in map(_flag, given):
            if name in _HAVE_A_KEY:
                raise ValueError(f"{name} has a key of its own, '{_HAVE_A_KEY[name]}'; use that")
            if name in _OURS:
                raise ValueError(f"{name} is chosen for each start; remove it")
            if _SECRETS.fullmatch(name):
                raise ValueError(f"{name} {_REFUSED}")
        for position, argument in enumerate(given):
            if LOOKS_SECRET.search(argument):
                raise ValueError(f"number {position} holds what looks like a key; it {_REFUSED}")
        return given

    @property
    def alternatives(self) -> Literal[5, 20]:
        """Log-probabilities at a place: 20, unless ``--max-logprobs`` is less; -1 is no limit."""
        words = [word for argument in self.extra_args for word in re.split(r"[=\s]", argument)]
        limits = [
            int(value)
            for name, value in pairwise(words)
            if _flag(name) == "--max-logprobs" and re.fullmatch(r"-?\d+", value)
        ]
        few = limits and 0 <= limits[-1] < MOST_ALTERNATIVES
        return FEW_ALTERNATIVES if few else MOST_ALTERNATIVES

    def shaping(self) -> Self:
        """Return the options that can change an answer, without those of speed."""
        kept, is_speed = [], False
        for argument in self.extra_args:
            if argument.startswith("-"):
                is_speed = _flag(argument).startswith(_SPEED_ONLY)
            if not is_speed:
                kept.append(argument)
        return type(self)(
            dtype=self.dtype, max_model_len=self.max_model_len, extra_args=tuple(kept)
        )


def _flag(argument: str) -> str:
    name = re.split(r"[=\s]", argument, maxsplit=1)[0]
    return name.replace("_", "-") if name.startswith("--") else name


_LOG = logging.getLogger(__name__)

Claim = Callable[[str], AbstractContextManager[object]]


class Lease:
    """The server that the steps of one run use in turn.

    It runs until a step needs a server with other options. `done` names the steps that have ended.
    """

    def __init__(self) -> None:
        self._open, self._what = ExitStack(), ""
        self._server: Any = None
        self.done: set[str] = set()

    def server(self, what: str, start: Callable[[ExitStack], Any]) -> Any:
        """Return the server that was started for the same, or a new one in its place."""
        if self._what != what or self._server.exit_code is not None:
            self.end()
            self._server = start(self._open)
            self._what = what
        return self._server

    @property
    def is_open(self) -> bool:
        """Whether there is a server."""
        return bool(self._what)

    def end(self) -> None:
        """Stop the server, if there is one."""
        self._what = ""
        self._open.close()


@dataclass
class Hosting:
    """Services of the host of managed servers; no server outlives it, unless there is a `lease`.

    `tell` hears how batches and the start of a server go, `warn` each warning for a person. `claim`
    returns a context that holds a slot of a pool; by default none.
    """

    tell: Callable[[str], None] = _LOG.info
    claim: Claim = nullcontext
    warn: Callable[[str], None] = _LOG.warning
    logs: Path = field(default_factory=lambda: home() / "logs" / "vllm")
    lease: Lease | None = None
    _open: ExitStack = field(default_factory=ExitStack)

    def scope(self) -> ExitStack:
        """Return a stack for one server, closed by its user, or else with this hosting."""
        return self._open.enter_context(ExitStack())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """Stop every server that is still running; a leased one after an error."""
        self._open.close()
        if self.lease is not None and error is not None:
            self.lease.end()
