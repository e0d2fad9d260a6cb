"""The host of a judge: who hears of it, the pool its server claims, and the server's end."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from resources.config.paths import home

_LOG = logging.getLogger(__name__)

Claim = Callable[[str], AbstractContextManager[object]]


@dataclass
class Hosting:
    """Needs of a judge at its host; no server runs on after it.

    `tell` hears how batches and the start of a server go, `warn` each warning for a person; by
    default a log. `claim` returns a context that holds a slot of a pool; by default none.
    """

    tell: Callable[[str], None] = _LOG.info
    claim: Claim = nullcontext
    warn: Callable[[str], None] = _LOG.warning
    logs: Path = field(default_factory=lambda: home() / "logs" / "vllm")
    _open: ExitStack = field(default_factory=ExitStack)

    def scope(self) -> ExitStack:
        """Return a stack for one server, closed by its user, or else with this hosting."""
        return self._open.enter_context(ExitStack())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop every server that somebody left running."""
        self._open.close()
