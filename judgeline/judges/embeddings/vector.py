"""The vector of a text, or the reason why it has none."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class Embedding(NamedTuple):
    """The vector of a text, shape (dimensions,); or None and why there is none.

    Failures are ``empty``, ``context_overflow``, ``content_filter`` and ``rejected``.
    """

    vector: Vector | None
    failure: str = ""
