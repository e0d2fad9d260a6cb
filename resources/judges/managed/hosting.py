"""Hosting of judge servers: the pool they claim, who hears of them, and their end."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from resources.config.paths import home

Claim = Callable[[str], AbstractContextManager[object]]


@dataclass
class Hosting:
    """Needs of a judge server at its host.

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

    def close(self) -> None:
        """Stop every server that somebody left running."""
        self._open.close()


@contextmanager
def hosting(tell: Callable[[str], None], claim: Claim) -> Iterator[Hosting]:
    """Give a place for servers; none of them runs on after it."""
    place = Hosting(tell, claim)
    try:
        yield place
    finally:
        place.close()
