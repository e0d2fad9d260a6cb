import hashlib
import math
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgeline.judges.embeddings.embedder import HashedEmbedder
from judgeline.paths import ROOT

TEXTS = st.text(alphabet="ab cé,.\n日", max_size=60)


def vector(text: str, dimensions: int = 256) -> np.ndarray | None:
    ((position, embedding),) = HashedEmbedder(dimensions).embed([text])
    assert position == 0
    return embedding.vector


def features(text: str) -> Counter[str]:
    words = re.findall(r"\w+", text.lower())
    return Counter(words) + Counter(f"{words[i]} {words[i + 1]}" for i in range(len(words) - 1))


def by_hand(text: str, dimensions: int) -> list[float] | None:
    """The slow twin: one feature after another, in Python's own numbers."""
    sums = [0] * dimensions
    for feature, count in features(text).items():
        number = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little")
        sums[(number >> 1) % dimensions] += -count if number & 1 else count
    norm = math.sqrt(sum(x * x for x in sums))
    return [x / norm for x in sums] if norm else None


@given(text=TEXTS, dimensions=st.sampled_from([2, 7, 256]))
def test_vectors_are_those_of_the_slow_twin(text: str, dimensions: int) -> None:
    found, expected = vector(text, dimensions), by_hand(text, dimensions)
    if expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, abs=1e-7)
        assert float(np.linalg.norm(found)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("text", ["", "  \n", "?!", "…"])
def test_a_text_without_words_has_no_vector(text: str) -> None:
    ((_, embedding),) = HashedEmbedder(256).embed([text])
    assert embedding == (None, "empty")


def test_another_process_makes_the_same_numbers() -> None:
    program = (
        "from judgeline.judges.embeddings.embedder import HashedEmbedder as H;"
        "[(_, e)] = H(256).embed(['Response 1 keeps the format.']); print(e.vector.tobytes().hex())"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "99", "PATH": ""},
    )
    assert bytes.fromhex(told.stdout) == vector("Response 1 keeps the format.").tobytes()
