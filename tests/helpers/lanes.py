"""Which lane runs: `make test-all` sets JUDGELINE_FULL, for everything at its full size."""

import os
from typing import TypeVar

FULL = bool(os.environ.get("JUDGELINE_FULL"))

Size = TypeVar("Size")


def sized(full: Size, otherwise: Size) -> Size:
    """Return a size of `make test-all`, or that of the other lanes."""
    return full if FULL else otherwise
