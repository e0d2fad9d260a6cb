"""A real local server of /v1/embeddings over the real MiniLM, and every way it may misbehave."""

import base64
import json
import math
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from minilm import DIMENSION, NAME, Encoded, MiniLM
from minilm_server import EmbeddingsServer, error, reply, serving
from starlette.responses import JSONResponse, Response
from upath import UPath

from judgeline.judges.embeddings import buying
from judgeline.judges.embeddings.buying import EmbeddingStore, VectorBuyer
from judgeline.judges.embeddings.definition import EmbedderDefinition
from judgeline.judges.embeddings.served import ServedEmbedder
from judgeline.judges.live import bridge
from judgeline.judges.live.endpoint import Endpoint, EndpointError
from judgeline.judges.live.troubles import RetryPolicy
from judgeline.judges.store.writing import PATIENCE, VerdictWriter

pytestmark = pytest.mark.slow

KEY = "sk-secret-0123456789abcdef"
QUICK = RetryPolicy(attempts=3, base_s=0.002, cap_s=0.01)
LONG = "word " * 400


@pytest.fixture
def server(minilm: MiniLM) -> Iterator[EmbeddingsServer]:
    with serving(minilm) as running:
        yield running


def embedder(server: EmbeddingsServer, **fields: Any) -> ServedEmbedder:
    settings = {"slug": "e", "kind": "openai", "model": NAME, "timeout_s": 20.0, **fields}
    return ServedEmbedder(EmbedderDefinition(**settings), Endpoint(server.url, KEY), QUICK)


def buyer(server: EmbeddingsServer, folder: Path, **fields: Any) -> VectorBuyer:
    return VectorBuyer(embedder(server, **fields), EmbeddingStore(UPath(folder)))


def numbered(n: int) -> list[str]:
    return [f"Response {i} is better." for i in range(n)]


def test_vectors_belong_to_their_texts_however_they_are_packed(server, minilm, tmp_path):
    texts = numbered(23)
    found = buyer(server, tmp_path, batch_size=4, concurrency=3).vectors([*texts, *texts])
    assert list(map(len, (body["input"] for body in server.asked))).count(4) == 5
    assert Counter(server.texts) == Counter(texts)  # each once
    expected = minilm.encode(texts).vectors
    assert np.array([found[text] for text in texts]) == pytest.approx(expected, abs=1e-6)


def test_the_server_answers_the_official_client_in_both_encodings(minilm: MiniLM) -> None:
    import openai

    texts = ["one text", "and another one"]
    with serving(minilm) as server, openai.OpenAI(base_url=server.url, api_key="x") as client:
        exact = client.embeddings.create(model=NAME, input=texts)  # base64, unless told otherwise
        decimal = client.embeddings.create(model=NAME, input=texts, encoding_format="float")
    assert [body["encoding_format"] for body in server.asked] == ["base64", "float"]
    for answer in (exact, decimal):
        vectors = np.array([item.embedding for item in answer.data], np.float32)
        assert vectors.shape == (2, DIMENSION)
        assert vectors == pytest.approx(minilm.encode(texts).vectors, abs=1e-6)


def test_nothing_is_bought_twice_and_another_model_is_bought_anew(server, tmp_path):
    texts = numbered(5)
    first = buyer(server, tmp_path).vectors(texts)
    again = buyer(server, tmp_path)
    second = again.vectors([*texts, "A new one."])
    assert server.texts == [*texts, "A new one."]
    assert (again.account.n_stored, again.account.n_made) == (5, 1)
    assert all((first[text] == second[text]).all() for text in texts)
    buyer(server, tmp_path, revision="2").vectors(texts)
    assert server.texts[6:] == texts


def test_a_store_that_has_all_needs_no_server_and_no_key(server, tmp_path):
    texts = numbered(3)
    kept = buyer(server, tmp_path, endpoint_name="here").vectors(texts)
    definition = EmbedderDefinition(slug="e", kind="openai", model=NAME, endpoint_name="here")
    nowhere = ServedEmbedder(definition, Endpoint("http://127.0.0.1:1/v1", None, "no key"))
    found = VectorBuyer(nowhere, EmbeddingStore(UPath(tmp_path))).vectors(texts)
    assert all((found[text] == kept[text]).all() for text in texts)
    with pytest.raises(ValueError, match="no key"):
        VectorBuyer(nowhere, EmbeddingStore(UPath(tmp_path))).vectors(["new"])


def test_a_text_that_is_too_long_is_counted_and_never_cut(server, tmp_path):
    """By the server's own limit, or by ours, over which a text is not even sent."""
    texts = [*numbered(9), LONG, *numbered(20)[9:]]
    bought = buyer(server, tmp_path)
    assert set(bought.vectors(texts)) == set(texts) - {LONG}
    assert bought.account.failed == {"context_overflow": 1}
    before, limited = len(server.texts), buyer(server, tmp_path, max_characters=20)
    assert set(limited.vectors(["short", "x" * 21, " \n"])) == {"short"}
    assert server.texts[before:] == ["short"]
    assert limited.account.failed == {"context_overflow": 1, "empty": 1}


def test_a_limit_holds_for_vectors_that_were_bought_without_it(server, tmp_path):
    long = "x" * 5000
    server.fault = changed(lambda data: data)  # a server that takes any length, and cuts it
    assert set(buyer(server, tmp_path).vectors(["short", long])) == {"short", long}
    limited = buyer(server, tmp_path, max_characters=100)
    assert set(limited.vectors(["short", long])) == {"short"}
    assert limited.account.failed == {"context_overflow": 1}
    assert (limited.account.n_stored, limited.account.n_made) == (1, 0)
    assert set(buyer(server, tmp_path, max_characters=5000).vectors([long])) == {long}
    assert server.texts == ["short", long]  # and none was asked for again


def test_vectors_are_taken_by_index_and_decimals_are_read(server, minilm, tmp_path):
    def scrambled(body: dict[str, Any]) -> Response:
        whole = reply(minilm.encode(body["input"]), "float")
        return JSONResponse({**whole, "data": whole["data"][::-1]})

    server.fault, texts = scrambled, numbered(4)
    found = buyer(server, tmp_path).vectors(texts)
    expected = minilm.encode(texts).vectors
    assert np.array([found[text] for text in texts]) == pytest.approx(expected, abs=1e-6)


def changed(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[dict[str, Any]], Response]:
    """A reply to n texts, changed; vectors have two numbers."""

    def answer(body: dict[str, Any]) -> Response:
        data = [
            {"object": "embedding", "index": n, "embedding": [1.0, 0.0]}
            for n in range(len(body["input"]))
        ]
        text = json.dumps({"object": "list", "model": NAME, "data": change(data)})
        return Response(text, media_type="application/json")

    return answer


def with_embedding(value: Any) -> Callable[[list[dict[str, Any]]], Any]:
    return lambda data: [*data[:-1], {**data[-1], "embedding": value}]


MALFORMED = {
    "too few": (changed(lambda data: data[:-1]), "2 vectors for 3 texts"),
    "too many": (changed(lambda data: [*data, data[0]]), "4 vectors for 3 texts"),
    "one twice": (changed(lambda data: [data[0], data[0], data[2]]), "two vectors for one text"),
    "no index": (changed(lambda data: [{"embedding": [1.0]}] * 3), "a vector is for text 'None'"),
    "index out of range": (changed(lambda data: [{**d, "index": 7} for d in data]), "text '7'"),
    "unequal lengths": (changed(with_embedding([1.0])),
     r"different lengths in one reply: \[1, 2\]"),
    "nan": (changed(with_embedding([math.nan, 1.0])), "text 2 is unusable: 1 of its numbers"),
    "infinite in 32 bits": (changed(with_embedding([1e39, 1.0])), "1 of its numbers"),
    "words": (changed(with_embedding(["x", "y"])), "holds something that is no number"),
    "null": (changed(with_embedding(None)), "text 2 is unusable"),
    "nested": (changed(with_embedding([[1.0, 0.0]])), "its shape is"),
    "half a number": (changed(with_embedding(base64.b64encode(b"12345").decode())),
     "text 2 is unusable"),
    "no base64": (changed(with_embedding("!!")), "text 2 is unusable"),
    "no data": (lambda body: JSONResponse({"object": "list"}), "no list of vectors"),
    "a page": (lambda body: Response("<html>login</html>", media_type="text/html"),
     "the reply is no JSON: <html>login"),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_reply_is_refused_with_place_and_remedy(server, tmp_path, name):
    server.fault, told = MALFORMED[name]
    bought = buyer(server, tmp_path)
    with pytest.raises(EndpointError, match=told) as caught:
        bought.vectors(numbered(3))
    assert "embedding 'e'" in str(caught.value)
    assert "config/embeddings.yaml" in str(caught.value)
    assert len(server.asked) == 2  # it may have been paid for
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("reply", "n_asked", "told"),
    [
        (lambda: Response(b"x", headers={"content-encoding": "br"}), 1, "packed as 'br', unasked"),
        (lambda: JSONResponse({"error": {"message": "no thread", "code": 7}}), 2, "no list of"),
    ],
)
def test_an_unreadable_reply_ends_it_before_texts_are_sent_again(
    server, tmp_path, reply, n_asked, told
):
    server.fault = lambda body: reply()
    with pytest.raises(EndpointError, match=told):
        buyer(server, tmp_path).vectors(numbered(64))
    assert len(server.asked) == n_asked


def test_what_passes_is_tried_again(server: EmbeddingsServer, tmp_path: Path) -> None:
    left = [error(503, "overloaded"), error(429, "slow down")]
    server.fault = lambda body: left.pop(0) if left else None
    bought = buyer(server, tmp_path)
    assert len(bought.vectors(numbered(2))) == 2
    assert bought.embedder.counts["retries"] == 2


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, f"wrong key {KEY}"), (404, "no such model"), (400, "no \x1b[2J dimensions")],
)
def test_an_endpoint_that_refuses_all_is_told_without_the_key(server, tmp_path, status, message):
    server.fault = lambda body: error(status, message)
    with pytest.raises(EndpointError, match=f"HTTP {status}") as caught:
        buyer(server, tmp_path).vectors(numbered(8))
    assert KEY not in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(server.asked) == 2  # the texts, and a plain one
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_one_text_that_is_refused_alone_is_counted(server, tmp_path):
    texts = numbered(8)
    server.fault = lambda body: error(400, "odd") if texts[5] in body["input"] else None
    bought = buyer(server, tmp_path)
    assert set(bought.vectors(texts)) == set(texts) - {texts[5]}
    assert bought.account.failed == {"rejected": 1}


def test_a_model_that_changes_under_its_name_is_told(server, tmp_path):
    buyer(server, tmp_path).vectors(["one"])
    server.fault = changed(lambda data: data)
    told = f"2 numbers came after vectors of {DIMENSION}.*revision"
    with pytest.raises(RuntimeError, match=told):
        buyer(server, tmp_path).vectors(["one", "two"])


def test_what_was_bought_before_a_failure_is_kept(server: EmbeddingsServer, tmp_path: Path) -> None:
    texts = numbered(12)
    server.fault = lambda body: error(401, "key revoked") if len(server.asked) > 2 else None
    with pytest.raises(EndpointError, match="key revoked"):
        buyer(server, tmp_path, batch_size=4, concurrency=1).vectors(texts)
    server.fault, before = None, len(server.texts)
    buyer(server, tmp_path).vectors(texts)
    assert server.texts[before:] == texts[8:]


def test_damaged_files_are_named_and_what_they_held_is_bought_again(server, tmp_path):
    buyer(server, tmp_path).vectors(["one"])
    (shard,) = tmp_path.rglob("*.parquet")
    shard.write_bytes(shard.read_bytes()[:-20])
    again = buyer(server, tmp_path)
    assert set(again.vectors(["one"])) == {"one"}
    assert again.account.damaged == (str(shard),)
    assert server.texts == ["one", "one"]


BATCH, FLUSHED, BACKLOG = 2, 5, 2  # texts in a request, rows in a shard, replies not yet taken
MOST_LOST = (
    BATCH  # in flight
    + (BACKLOG + 2) * BATCH  # replies that wait, and the one just taken
    + 2 * PATIENCE * FLUSHED  # those waiting for their shard, and those being written
)


def _buy_slowly(url: str, folder: str, n: int) -> None:
    bridge._MOST_WAITING = BACKLOG
    buying.VerdictWriter = partial(VerdictWriter, rows=FLUSHED, seconds=0.05)
    definition = EmbedderDefinition(
        slug="e", kind="openai", model=NAME, endpoint_name="x", batch_size=BATCH, concurrency=1
    )
    embedder = ServedEmbedder(definition, Endpoint(url, KEY), QUICK)
    VectorBuyer(embedder, EmbeddingStore(UPath(folder))).vectors(numbered(n))


class Numbered:
    """A model whose vectors are the numbers in the texts."""

    def encode(self, texts: list[str]) -> Encoded:
        time.sleep(0.005)
        vectors = np.zeros((len(texts), DIMENSION), np.float32)
        vectors[:, 0] = [int(text.split()[1]) for text in texts]
        return Encoded(vectors, [1] * len(texts))


def test_kill_9_loses_at_most_what_waits_for_its_shard(tmp_path: Path) -> None:
    n, n_kills, n_before = 400, 4, 80
    context = multiprocessing.get_context("spawn")
    with serving(Numbered()) as server:
        for _ in range(n_kills):
            before = len(server.texts)
            process = context.Process(target=_buy_slowly, args=(server.url, str(tmp_path), n))
            process.start()
            while len(server.texts) < before + n_before and process.is_alive():
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            assert process.exitcode == -signal.SIGKILL, "it ended by itself"
        _buy_slowly(server.url, str(tmp_path), n)
        n_bought = len(server.texts)
        assert n <= n_bought <= n + n_kills * MOST_LOST
        whole = buyer(server, tmp_path, endpoint_name="x").vectors(numbered(n))
        assert len(server.texts) == n_bought
    assert [vector[0] for vector in map(whole.get, numbered(n))] == list(range(n))
