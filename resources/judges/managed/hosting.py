"""Hosting of judge servers: the pool they claim, who hears of them, and their end."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from resources.config.paths import home

Claim = Callable[[str], AbstractContextManager[object]]


@dataclass
class Hosting:
    """Needs of a judge server at its host; no server runs on after it.

    `tell` hears how a start goes, and `claim` returns a context that holds a slot of a pool; by
    default a log hears it, and nothing is claimed.
    """

    tell: Callable[[str], None] = logging.getLogger(__name__).info
    claim: Claim = nullcontext
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
