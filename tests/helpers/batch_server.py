"""A provider of batches on loopback in the protocol of OpenAI's Batch API.
A batch goes a step further at each look; what was submitted outlives a restart of the server."""

import asyncio
import email
import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fault_server import Body, FaultServer, completion, error, judged, shown_texts
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ENDS = ("completed", "failed", "expired", "cancelled")
Line = Callable[[Body], Body]


def answered(body: Body, text: str | None = None, **more: Any) -> Body:
    """What a line of the output file holds beside its ids, when the request went well."""
    reply = completion(body, judged(body) if text is None else text, **more)
    return {"response": {"status_code": 200, "request_id": "r", "body": reply}, "error": None}


def turned_down(status: int, message: str, code: str | None = None) -> Line:
    told = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    reply = {"status_code": status, "request_id": "r", "body": {"error": told}}
    return lambda body: {"response": reply, "error": None}


def not_done(code: str) -> Body:
    said = "This request could not be executed before the completion window expired."
    return {"response": None, "error": {"code": code, "message": said}}


@dataclass
class BatchServer(FaultServer):
    """What it does with batches, and what it has seen.
    `line` answers a body, `end` says how the n-th batch ends, `share_done` how much of one
    that ends early is done. `before` and `after` a step's effect are called with its name, and
    may reply themselves; a batch is there `late_s` after it was accepted."""

    line: Line | None = None
    end: Callable[[int], str] = lambda n: "completed"
    share_done: float = 0.5
    before: Callable[[str], Any] = lambda step: None
    after: Callable[[str], Any] = lambda step: None
    late_s: float = 0.0
    keeps_metadata: bool = True
    most_requests: int = 50_000
    most_bytes: int = 200_000_000
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Body] = field(default_factory=dict)
    submitted: Counter[str] = field(default_factory=Counter)
    steps: list[str] = field(default_factory=list)
    uploads: list[bytes] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def routes(self) -> list[Route]:
        return [
            Route("/v1/files", self._step("upload", self.upload), methods=["POST"]),
            Route("/v1/files/{id}", self._step("find", self.file), methods=["GET"]),
            Route("/v1/files/{id}", self._step("delete", self.delete), methods=["DELETE"]),
            Route("/v1/files/{id}/content", self._step("content", self.content)),
            Route("/v1/batches", self._step("create", self.create), methods=["POST"]),
            Route("/v1/batches", self._step("list", self.list_batches), methods=["GET"]),
            Route("/v1/batches/{id}", self._step("look", self.look), methods=["GET"]),
        ]

    def _step(self, name: str, act: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            self.keys.add(request.headers.get("authorization", ""))
            self.steps.append(name)
            await request.body()  # what arrived is acted upon, whether or not somebody waits
            if (reply := await asyncio.to_thread(self.before, name)) is not None:
                return reply
            reply = await act(request)
            if (other := await asyncio.to_thread(self.after, name)) is not None:
                return other
            return reply

        return handle

    async def upload(self, request: Request) -> Response:
        fields = multipart(request.headers["content-type"], await request.body())
        assert fields["purpose"] == b"batch"
        name = self._keep(fields["file"])
        self.uploads.append(fields["file"])
        return JSONResponse(self._file(name))

    async def file(self, request: Request) -> Response:
        name = request.path_params["id"]
        return JSONResponse(self._file(name)) if name in self.files else missing("file", name)

    async def delete(self, request: Request) -> Response:
        name = request.path_params["id"]
        if self.files.pop(name, None) is None:
            return missing("file", name)
        return JSONResponse({"id": name, "object": "file", "deleted": True})

    async def content(self, request: Request) -> Response:
        name = request.path_params["id"]
        if name not in self.files:
            return missing("file", name)
        return Response(self.files[name], media_type="application/octet-stream")

    async def create(self, request: Request) -> Response:
        asked = await request.json()
        assert asked["completion_window"] == "24h"
        assert asked["endpoint"] == "/v1/chat/completions"
        if asked["input_file_id"] not in self.files:
            return missing("file", asked["input_file_id"])
        await asyncio.sleep(self.late_s)
        number = next(self.numbers)
        batch = {
            "id": f"batch_{number}",
            "object": "batch",
            "endpoint": asked["endpoint"],
            "completion_window": "24h",
            "created_at": number,
            "input_file_id": asked["input_file_id"],
            "status": "validating",
            "metadata": asked.get("metadata") if self.keeps_metadata else None,
            "output_file_id": None,
            "error_file_id": None,
            "errors": None,
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        }
        self._validate(batch)
        self.batches[batch["id"]] = batch
        return JSONResponse(batch)

    async def list_batches(self, request: Request) -> Response:
        newest_first = list(self.batches.values())[::-1]
        after = request.query_params.get("after")
        if after:
            ids = [batch["id"] for batch in newest_first]
            newest_first = newest_first[ids.index(after) + 1 :]
        page = newest_first[: int(request.query_params.get("limit", 20))]
        more = len(page) < len(newest_first)
        return JSONResponse({"object": "list", "data": page, "has_more": more})

    async def look(self, request: Request) -> Response:
        batch = self.batches.get(request.path_params["id"])
        if batch is None:
            return missing("batch", request.path_params["id"])
        shown = dict(batch)
        self._advance(batch)
        return JSONResponse(shown)

    def _validate(self, batch: Body) -> None:
        content = self.files.get(batch["input_file_id"])
        lines = [json.loads(line) for line in (content or b"").splitlines()]
        ids = [line["custom_id"] for line in lines]
        fault = None
        if content is None:
            fault = "the input file is gone"
        elif len(lines) > self.most_requests or len(content) > self.most_bytes:
            fault = "the file is too large"
        elif len(set(ids)) < len(ids):
            fault = "a custom_id occurs twice"
        batch["fate"] = "failed" if fault else self.end(int(batch["id"].split("_")[1]))
        if batch["fate"] == "failed":
            told = {"code": "invalid", "message": fault or self.reason(), "line": 1, "param": None}
            batch["errors"] = {"object": "list", "data": [told]}
            return
        batch["request_counts"]["total"] = len(lines)
        self.submitted.update(ids)

    def reason(self) -> str:
        return "the model does not exist"

    def _advance(self, batch: Body) -> None:
        fate, order = batch["fate"], ("validating", "in_progress", "finalizing")
        if batch["status"] in ENDS:
            return
        place = order.index(batch["status"]) + 1
        if place < len(order) and fate != "failed":
            batch["status"] = order[place]
            return
        if fate != "failed":
            self._finish(batch)
        batch["status"] = fate

    def _finish(self, batch: Body) -> None:
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        n_done = len(lines) if batch["fate"] == "completed" else int(len(lines) * self.share_done)
        good, bad = [], []
        for place, line in enumerate(lines):
            carried_out = self.line or self._as_live
            result = carried_out(line["body"]) if place < n_done else not_done("batch_expired")
            written = {"id": f"batch_req_{place}", "custom_id": line["custom_id"], **result}
            reply = result["response"]
            ok = isinstance(reply, dict) and reply.get("status_code") == 200
            (good if ok else bad).append(json.dumps(written))
        for name, written in (("output_file_id", good), ("error_file_id", bad)):
            if written:
                in_any_order = "\n".join(sorted(written, key=lambda text: text[::-1])) + "\n"
                batch[name] = self._keep(in_any_order.encode())
        batch["request_counts"] |= {"completed": len(good), "failed": len(bad)}

    def _as_live(self, body: Body) -> Body:
        texts = shown_texts(body)
        reply = self.replied(self.fault(texts, 0), body)
        content = json.loads(reply.body)
        return {
            "response": {"status_code": reply.status_code, "request_id": "r", "body": content},
            "error": None,
        }

    def _keep(self, content: bytes) -> str:
        name = f"file-{next(self.numbers)}"
        self.files[name] = content
        return name

    def _file(self, name: str) -> Body:
        return {
            "id": name, "object": "file", "bytes": len(self.files[name]), "created_at": 0,
            "filename": f"{name}.jsonl", "purpose": "batch", "status": "processed",
        }  # fmt: skip


def missing(kind: str, name: str) -> Response:
    return error(404, f"No such {kind}: {name}")


def multipart(content_type: str, body: bytes) -> dict[str, bytes]:
    """The fields of a form, as the client sends files."""
    message = email.message_from_bytes(
        b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body
    )
    parts = message.get_payload()
    assert isinstance(parts, list)
    return {
        str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)
        for part in parts
    }
