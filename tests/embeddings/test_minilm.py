"""The model behind the embeddings server, against similarities that its documentation prints."""

import numpy as np
import openai
import pytest

pytest.importorskip("tokenizers")
from minilm import DIMENSION, NAME, MiniLM, TooLongError
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


def test_company_in_a_batch_changes_no_vector(minilm: MiniLM) -> None:
    texts = ["", "x", "Model m is more detailed. " * 20, "Ünïcode — 日本語 😀"]
    together = minilm.encode(texts).vectors
    alone = np.concatenate([minilm.encode([text]).vectors for text in texts])
    assert together == pytest.approx(alone, abs=1e-6)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-6)


def test_a_text_that_is_too_long_is_refused_with_its_place(minilm: MiniLM) -> None:
    with pytest.raises(TooLongError, match="input 1 has 402"):
        minilm.encode(["short", "word " * 400])


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


@pytest.mark.parametrize(
    ("request_of", "kind"),
    [
        ({"model": "other", "input": ["x"]}, openai.NotFoundError),
        ({"model": NAME, "input": []}, openai.BadRequestError),
        ({"model": NAME, "input": ["x"], "dimensions": 8}, openai.BadRequestError),
        ({"model": NAME, "input": ["word " * 400]}, openai.BadRequestError),
    ],
)
def test_what_the_model_cannot_do_is_refused(minilm, request_of, kind):
    with (
        serving(minilm) as server,
        openai.OpenAI(base_url=server.url, api_key="x", max_retries=0) as client,
        pytest.raises(kind),
    ):
        client.embeddings.create(**request_of)
