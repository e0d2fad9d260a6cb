"""The model behind the embeddings server, against similarities that its documentation prints."""

import numpy as np
import openai
import pytest

pytest.importorskip("tokenizers")
from minilm import DIMENSION, NAME, MiniLM
from minilm_server import serving

pytestmark = pytest.mark.slow

PUBLISHED = [
    ("The weather is lovely today.", "It's so sunny outside!", 0.6660),
    ("The weather is lovely today.", "He drove to the stadium.", 0.1046),
    ("It's so sunny outside!", "He drove to the stadium.", 0.1411),
    ("A man is eating food.", "A man is eating a piece of bread.", 0.7553),
]


@pytest.mark.parametrize(("one", "other", "similarity"), PUBLISHED)
def test_similarities_are_the_published_ones(minilm, one, other, similarity):
    first, second = minilm.encode([one, other]).vectors
    assert first @ second == pytest.approx(similarity, abs=5.1e-5)


def test_both_encodings_say_the_same(minilm: MiniLM) -> None:
    texts = ["one text", "and another one"]
    with serving(minilm) as server, openai.OpenAI(base_url=server.url, api_key="x") as client:
        exact = client.embeddings.create(model=NAME, input=texts)  # base64, unless told otherwise
        decimal = client.embeddings.create(model=NAME, input=texts, encoding_format="float")
    assert [body["encoding_format"] for body in server.asked] == ["base64", "float"]
    for reply in (exact, decimal):
        vectors = np.array([item.embedding for item in reply.data], np.float32)
        assert vectors.shape == (2, DIMENSION)
        assert vectors == pytest.approx(minilm.encode(texts).vectors, abs=1e-6)
