"""Hosting of judge servers: the pool they claim, who hears of them, and their end."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from resources.config.paths import home

Claim = Callable[[str], AbstractContextManager[object]]


def _unclaimed(pool: str) -> AbstractContextManager[object]:
    return nullcontext(pool)


@dataclass
class Hosting:
    """Needs of a judge server at its host.

    Attributes
    ----------
    tell : callable
        Is told how a start goes; a log by default.
    claim : callable
        Returns what holds a slot of a pool; by default nothing is claimed.
    logs : Path
        Folder of the servers' logs.
    """

    tell: Callable[[str], None] = logging.getLogger(__name__).info
    claim: Claim = _unclaimed
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
