"""From what an embeddings endpoint replied to one vector per text, or the reason why not."""

from collections.abc import Sequence
from typing import Any

from resources.embeddings.embedder import Vector, as_vector
from resources.judges.live.replies import MalformedReplyError


def read_vectors(reply: Any, n_texts: int) -> list[Vector]:
    """Return the vectors of a reply, in the order of the texts that were sent."""
    data = getattr(reply, "data", None)
    if not isinstance(data, list) or len(data) != n_texts:
        found = len(data) if isinstance(data, list) else "no list of"
        raise MalformedReplyError(f"the reply holds {found} vectors for {n_texts} texts")
    by_place = {_place(item, n_texts): item for item in data}
    if len(by_place) != n_texts:
        raise MalformedReplyError("the reply holds two vectors for one text, and none for another")
    vectors = [_vector(by_place[place], place) for place in range(n_texts)]
    _require_one_length(vectors)
    return vectors


def tokens_of(reply: Any) -> int:
    """Return the tokens that a reply says it read; 0 if it does not say."""
    n_tokens = getattr(getattr(reply, "usage", None), "prompt_tokens", None)
    return n_tokens if type(n_tokens) is int and n_tokens > 0 else 0


def _place(item: Any, n_texts: int) -> int:
    place = getattr(item, "index", None)
    if type(place) is not int or not 0 <= place < n_texts:
        raise MalformedReplyError(
            f"a vector is for text {str(place)[:20]!r}, expected 0 to {n_texts - 1}"
        )
    return place


def _vector(item: Any, place: int) -> Vector:
    try:
        return as_vector(getattr(item, "embedding", None))
    except ValueError as error:
        problem = f"the vector of text {place} is unusable: {error}"
    raise MalformedReplyError(problem)


def _require_one_length(vectors: Sequence[Vector]) -> None:
    lengths = sorted({vector.size for vector in vectors})
    if len(lengths) > 1:
        raise MalformedReplyError(f"vectors of different lengths in one reply: {lengths}")
