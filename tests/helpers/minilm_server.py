"""A server of /v1/embeddings over the real all-MiniLM-L6-v2; as a program it prints its URL."""

import argparse
import base64
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import uvicorn
from minilm import DIMENSION, NAME, Encoded, MiniLM, TooLongError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

__all__ = ["DIMENSION", "NAME", "EmbeddingsServer", "serving"]

Body = dict[str, Any]
Fault = Callable[[Body], Response | None]


class Model(Protocol):
    """What turns texts into vectors."""

    def encode(self, texts: list[str]) -> Encoded: ...


def error(status: int, message: str) -> JSONResponse:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind, "code": None}}, status)


@dataclass
class EmbeddingsServer:
    """The routes, and what was asked of them. A fault may answer a request in our stead."""

    model: Model
    fault: Fault | None = None
    asked: list[Body] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    _busy: threading.Lock = field(default_factory=threading.Lock)

    @property
    def texts(self) -> list[str]:
        """Every text that was ever sent, repeats included."""
        return [text for body in self.asked for text in body["input"]]

    def app(self) -> Starlette:
        routes = [
            Route("/v1/embeddings", self.embeddings, methods=["POST"]),
            Route("/v1/models", self.models),
        ]
        return Starlette(routes=routes)

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": NAME, "object": "model"}]})

    async def embeddings(self, request: Request) -> Response:
        body = await request.json()
        if isinstance(body.get("input"), str):
            body["input"] = [body["input"]]
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        if self.fault and (answer := self.fault(body)) is not None:
            return answer
        return refused(body) or await run_in_threadpool(self._embedded, body)

    def _embedded(self, body: Body) -> Response:
        try:
            with self._busy:
                encoded = self.model.encode(body["input"])
        except TooLongError as problem:
            return error(400, str(problem))
        return JSONResponse(reply(encoded, body.get("encoding_format", "float")))


def refused(body: Body) -> Response | None:
    """What the protocol allows and this model cannot do is refused, as others do it."""
    texts = body.get("input")
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        return error(400, "input must be a text or a list of texts")
    if body.get("model") != NAME:
        return error(404, f"The model `{body.get('model')}` does not exist.")
    if body.get("dimensions") is not None:
        return error(400, "This model does not support changing its dimensions.")
    if body.get("encoding_format", "float") not in ("float", "base64"):
        return error(400, "encoding_format must be float or base64")
    return None


def reply(encoded: Encoded, encoding_format: str) -> Body:
    data = [
        {"object": "embedding", "index": n, "embedding": written(vector, encoding_format)}
        for n, vector in enumerate(encoded.vectors)
    ]
    n_tokens = sum(encoded.n_tokens)
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "data": data, "model": NAME, "usage": usage}


def written(vector: Any, encoding_format: str) -> str | list[float]:
    if encoding_format == "float":
        return [float(x) for x in vector]
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


@contextlib.contextmanager
def serving(model: Model, fault: Fault | None = None, port: int = 0) -> Iterator[EmbeddingsServer]:
    """Serve in a thread; `url` is the base URL that clients are given."""
    server = EmbeddingsServer(model, fault)
    config = uvicorn.Config(
        server.app(), host="127.0.0.1", port=port, log_level="error", loop="asyncio"
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        if not thread.is_alive():
            raise RuntimeError(f"no server came up on port {port}; choose another")
        time.sleep(0.01)
    server.url = f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        running.should_exit = True
        thread.join(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose one")
    with serving(MiniLM(), port=parser.parse_args().port) as server:
        print(server.url, flush=True)  # noqa: T201
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
