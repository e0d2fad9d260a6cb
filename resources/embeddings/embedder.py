"""Embedders: they turn texts into vectors, or return a failure class."""

import base64
import binascii
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from judgeline.verdict import identity_hash, text_hash

Vector = NDArray[np.float32]


class Embedding(NamedTuple):
    """The vector of a text, shape (dimensions,); or None and why there is none.

    Failures are ``empty``, ``context_overflow``, ``content_filter`` and ``transport``.
    """

    vector: Vector | None
    failure: str = ""


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything but the text that shapes a vector."""
        ...

    @property
    def is_bought(self) -> bool:
        """Whether a vector costs more than looking it up."""
        ...

    @property
    def counts(self) -> Counter[str]:
        """Requests, retries and tokens so far."""
        ...

    def refusal(self, text: str) -> str:
        """Return why a text has no vector, whatever is stored; empty if it may have one."""
        ...

    def embed(self, texts: Sequence[str]) -> Iterator[tuple[int, Embedding]]:
        """Yield what becomes of each text, with its position, in any order."""
        ...


def embedder_key(embedder: Embedder) -> str:
    """Return the hash of what identifies an embedder: 64 hexadecimal digits."""
    return identity_hash(embedder.identity)


def vector_identity(key: str, text: str) -> str:
    """Return the hash of a text together with what identifies its embedder."""
    return identity_hash({"embedder": key, "text": text_hash(text)})


def as_vector(numbers: Any) -> Vector:
    """Return numbers as a vector: a list of them, or 32-bit floats in base64."""
    try:
        if isinstance(numbers, str):
            numbers = np.frombuffer(base64.b64decode(numbers, validate=True), "<f4")
        with np.errstate(over="ignore"):  # what is too large for 32 bits is told below
            vector = np.asarray(numbers, dtype=np.float32)
    except (TypeError, ValueError, OverflowError, binascii.Error):
        raise ValueError("it holds something that is no number") from None
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"its shape is {vector.shape}, expected one number after another")
    if not np.isfinite(vector).all():
        raise ValueError(f"{int((~np.isfinite(vector)).sum())} of its numbers are not finite")
    return vector
