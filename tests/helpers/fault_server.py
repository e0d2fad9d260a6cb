"""A server that speaks the chat protocol on loopback, judges by arithmetic, and fails on demand."""

import asyncio
import contextlib
import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES

KEY = "sk-secret-0123456789abcdef"
FENCED = re.compile(r"<<<([0-9a-f]{8})\n(.*?)\n\1>>>", re.DOTALL)

USAGE = (400, 40)
"""Tokens that replies state: about what their texts have."""

Body = dict[str, Any]
Fault = Callable[["FaultServer", Body], Any]


def scores_of(texts: tuple[str, ...]) -> Body:
    """The scores of this server's model: digits of a hash of everything it was shown."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    marks = [1 + byte % 10 for byte in digest[:12]]
    return {
        response: dict(zip(CRITERIA, marks[6 * n : 6 * n + 6], strict=True))
        for n, response in enumerate(RESPONSES)
    }


def shown_texts(body: Body) -> tuple[str, ...]:
    return tuple(text for _, text in FENCED.findall(body["messages"][0]["content"]))


def judged(body: Body) -> str:
    return json.dumps(scores_of(shown_texts(body))) + "\n\nBecause of what they say."


def completion(
    body: Body, text: str | None, finish: str = "stop", refusal: str | None = None
) -> Body:
    choice: Body = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text, "refusal": refusal},
        "logprobs": None,
    }
    if body.get("logprobs"):
        token = {"token": "7", "logprob": -0.25, "bytes": None}
        choice["logprobs"] = {"content": [{**token, "top_logprobs": [token]}], "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": stated(USAGE),
    }


def stated(tokens: tuple[int, int]) -> Body:
    """The usage that a reply states: tokens of the prompt, and of the answer."""
    return {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}


def error(status: int, message: str, code: str | None = None, **headers: str) -> JSONResponse:
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return JSONResponse(body, status, {name.replace("_", "-"): v for name, v in headers.items()})


class HalfBody(Response):
    """Promises more than it sends, then hangs up."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", b"5000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"id": "chat', "more_body": True})
        raise ConnectionResetError


async def slow(server: "FaultServer", body: Body) -> Response:
    await asyncio.sleep(server.slow_s)
    return JSONResponse(completion(body, judged(body)))


def said(text: str | Callable[[Body], str], finish: str = "stop") -> Fault:
    def fault(server: "FaultServer", body: Body) -> Response:
        words = text(body) if callable(text) else text
        return JSONResponse(completion(body, words, finish))

    return fault


def first_mark(written: str) -> Callable[[Body], str]:
    return lambda body: re.sub(r"(: )\d+", rf"\g<1>{written}", judged(body), count=1)


TRANSIENT: dict[str, Fault] = {
    "429": lambda s, b: error(429, "slow down", "rate_limit_exceeded", retry_after="0"),
    "429-ms": lambda s, b: error(429, "slow down", retry_after_ms="5"),
    "408": lambda s, b: error(408, "too late"),
    "409": lambda s, b: error(409, "locked"),
    "500": lambda s, b: error(500, "oops"),
    "502-page": lambda s, b: Response("<html>bad gateway</html>", 502, media_type="text/html"),
    "503": lambda s, b: error(503, "overloaded", retry_after="0"),
    "200-503": lambda s, b: JSONResponse({"error": {"message": "overloaded", "code": 503}}),
}
"""Failures of the way to the judge: asking again succeeds."""

ODD: dict[str, Fault] = {
    "disconnect": lambda s, b: HalfBody(),
    "truncated-json": lambda s, b: Response(
        json.dumps(completion(b, judged(b)))[:120], media_type="application/json"
    ),
    "other-page": lambda s, b: Response("<html>login</html>", media_type="text/html"),
    "no-choices": lambda s, b: JSONResponse({**completion(b, ""), "choices": []}),
    "detail": lambda s, b: JSONResponse({"detail": "try /v2"}),
    "error-200": lambda s, b: JSONResponse({"error": {"message": "no luck", "type": "odd"}}),
    "504": lambda s, b: Response("gateway time-out", 504),
}
"""Failures that may have been paid for: they are asked for once more, and no oftener."""

UNREADABLE: dict[str, Fault] = {
    "prose": said("Response 1 is better."),
    "prose-around": said(lambda b: "Here are my grades: " + judged(b)),
    "cut-json": said(lambda b: judged(b)[:60]),
    "wrong-keys": said(lambda b: judged(b).replace("fluency", "style")),
    "eleven": said(first_mark("11")),
    "half-point": said(first_mark("7.5")),
    "nan": said(first_mark("NaN")),
    "empty": said(""),
}
"""Answers without scores: one repair is asked for, then they are parse errors."""

FINAL: dict[str, tuple[str, Fault]] = {
    "refusal-field": (
        "refusal",
        lambda s, b: JSONResponse(completion(b, None, refusal="I won't grade this.")),
    ),
    "refusal-prose": ("refusal", said("I'm sorry, I cannot compare these.")),
    "filtered": ("content_filter", said("", "content_filter")),
    "filtered-400": (
        "content_filter",
        lambda s, b: error(400, "blocked by the content policy", "content_filter"),
    ),
    "length": ("truncated", said(lambda b: judged(b)[:80], "length")),
    "thought-too-long": (
        "truncated",
        lambda s, b: error(400, "Not finished: max_tokens or model output limit was reached."),
    ),
    "context": (
        "context_overflow",
        lambda s, b: error(
            400, "This model's maximum context length is 4096 tokens", "context_length_exceeded"
        ),
    ),
    "odd-400": ("rejected", lambda s, b: error(400, "no such luck")),
}
"""Failures that asking the same again would not mend, and their classes."""


S = TypeVar("S", bound="FaultServer")


@dataclass
class FaultServer:
    """What the server supports, how it fails, and what it has seen.
    `fault` names, by the texts and how often they came, a fault above, of `extra`, or none."""

    fault: Callable[[tuple[str, ...], int], str | None] = lambda texts, n: None
    extra: dict[str, Fault] = field(default_factory=dict)
    json_schema: str = "bound"  # or "ignored", "refused"
    log_probabilities: bool = True
    limit_field: str = "max_tokens"
    max_model_len: int | None = 32768
    latency_s: float = 0.0
    slow_s: float = 5.0
    answer: Callable[[Body], str] = judged
    usage: tuple[int, int] = USAGE
    url: str = ""
    bodies: list[Body] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    headers: set[str] = field(default_factory=set)
    asked: Counter[Any] = field(default_factory=Counter)
    in_flight: int = 0
    most_in_flight: int = 0

    @property
    def presentations(self) -> list[Body]:
        return [body for body in self.bodies if shown_texts(body)]

    def routes(self) -> list[Route]:
        return []

    async def models(self, request: Request) -> Response:
        own = {"id": "tiny", "object": "model", "created": 0, "owned_by": "x"}
        if self.max_model_len is not None:
            own["max_model_len"] = self.max_model_len
        return JSONResponse({"object": "list", "data": [own]})

    async def chat(self, request: Request) -> Response:
        self.keys.add(request.headers.get("authorization", ""))
        self.headers |= set(request.headers)
        body = await request.json()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._reply(body)
        finally:
            self.in_flight -= 1

    async def _reply(self, body: Body) -> Response:
        self.bodies.append(body)
        if refused := self._refused(body):
            return refused
        await asyncio.sleep(self.latency_s)
        if not (texts := shown_texts(body)):
            reply = completion(body, self._small_talk(body))
            return JSONResponse({**reply, "usage": stated((20, 10))})
        name = self.fault(texts, self.asked[texts])
        self.asked[texts] += 1
        return await slow(self, body) if name == "slow" else self.replied(name, body)

    def replied(self, name: str | None, body: Body) -> Response:
        """The reply that judges, or that fails in the way of that name."""
        if name is None:
            reply = completion(body, self.answer(body))
            return JSONResponse({**reply, "usage": stated(self.usage)})
        final = {key: fault for key, (_, fault) in FINAL.items()}
        failed: Response = {**TRANSIENT, **ODD, **UNREADABLE, **final, **self.extra}[name](
            self, body
        )
        return failed

    def _refused(self, body: Body) -> Response | None:
        other = {"max_tokens", "max_completion_tokens"} - {self.limit_field}
        if other & set(body):
            return error(400, f"Unsupported parameter; use '{self.limit_field}' instead.")
        if self.json_schema == "refused" and "response_format" in body:
            return error(400, "response_format is not supported")
        if not self.log_probabilities and body.get("logprobs"):
            return error(400, "logprobs are not supported")
        return None

    def _small_talk(self, body: Body) -> str:
        bound = self.json_schema == "bound" and "response_format" in body
        return '{"colour": "teal"}' if bound else "It is blue."


@contextlib.contextmanager
def serving(server: S) -> Iterator[S]:
    """Run a server on a free loopback port for a while; its `url` says where."""
    app = Starlette(
        routes=[
            Route("/v1/models", server.models),
            Route("/v1/chat/completions", server.chat, methods=["POST"]),
            *server.routes(),
        ]
    )
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off")
    runner = uvicorn.Server(config)
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    while not runner.started:
        time.sleep(0.005)
    server.url = f"http://127.0.0.1:{runner.servers[0].sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        runner.should_exit = runner.force_exit = True
        thread.join(5)
