"""What is found out about an endpoint, when it is in trouble while being asked."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from fault_server import Body, FaultServer, error, serving
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from test_served_client import QUICK, TEMPLATE, judge

from resources.judges.live import judge as served
from resources.judges.live import probe
from resources.judges.live.endpoint import Endpoint, EndpointError
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge


class Troubled(FaultServer):
    """Refuses requests with a field, with a status, the first so many times."""

    field, status, times, plain_fails = "response_format", 503, 0, False

    def _refused(self, body: Body) -> Response | None:
        first = sum(self.field in seen for seen in self.bodies) <= self.times
        if self.field in body and first:
            return error(self.status, "overloaded")
        if self.plain_fails and any(self.field in seen for seen in self.bodies):
            return error(self.status, "overloaded")
        return super()._refused(body)


def test_an_outage_during_the_probe_is_not_what_the_endpoint_can_do(tmp_path: Path) -> None:
    server = Troubled()
    server.times = QUICK.attempts
    with serving(server):
        assert judge(server, tmp_path).capabilities.json_schema is True


@pytest.mark.parametrize("status", [503, 429, 408])
def test_what_came_of_an_outage_is_not_remembered(status: int, tmp_path: Path) -> None:
    server = Troubled()
    server.times, server.status, server.plain_fails = 10**6, status, True
    with serving(server), pytest.raises(EndpointError, match="run again"):
        judge(server, tmp_path).capabilities  # noqa: B018
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [400, 403, 404, 422, 500, 501])
def test_a_server_that_refuses_a_schema_for_good_has_none(status: int, tmp_path: Path) -> None:
    server = Troubled()
    server.times, server.status = 10**6, status
    with serving(server):
        found = judge(server, tmp_path).capabilities
    assert (found.json_schema, found.log_probabilities) == (False, True)


class Drip(Response):
    """A body that comes byte by byte and never ends."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        while True:
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await asyncio.sleep(0.02)


LISTS: dict[str, Any] = {
    "page": lambda: Response("<html>", media_type="text/html"),
    "no-json": lambda: Response("<html>", media_type="application/json"),
    "list": lambda: JSONResponse([{"id": "tiny"}]),
    "null": lambda: JSONResponse(None),
    "no-data": lambda: JSONResponse({"data": None}),
    "names": lambda: JSONResponse({"data": ["tiny"]}),
    "no-id": lambda: JSONResponse({"data": [{"name": "tiny"}]}),
    "truth": lambda: JSONResponse({"data": [{"id": "tiny", "max_model_len": True}]}),
    "text": lambda: JSONResponse({"data": [{"id": "tiny", "max_model_len": "8192"}]}),
    "negative": lambda: JSONResponse({"data": [{"id": "tiny", "max_model_len": -1}]}),
    "missing": lambda: error(404, "no such page"),
    "deep": lambda: Response(b"[" * 200_000, media_type="application/json"),
    "endless": Drip,
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_models_that_says_nothing_is_no_trouble(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Listing(FaultServer):
        async def models(self, request: Request) -> Response:
            listed: Response = LISTS[name]()
            return listed

    monkeypatch.setattr(probe, "_LIST_S", 0.3)
    with serving(Listing()) as server:
        assert judge(server, tmp_path).capabilities.max_context is None


def test_a_server_that_never_answers_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(served, "_PROBE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        fields = ServedFields(model="tiny")  # patient with answers, not with the probe
        asked = ServedJudge("j", fields, TEMPLATE, Endpoint(url, "k"), tmp_path)
        with pytest.raises(EndpointError, match=r"'j'.*did not answer a small request.*run again"):
            asked.capabilities  # noqa: B018


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[]",
        "null",
        '{"limit_field": "max_tokens"}',
        "[" * 100_000,
        json.dumps(
            {"limit_field": "max_tokens", "json_schema": "yes", "log_probabilities": 0}
            | {"max_context": "8"}
        ),
    ],
)
def test_what_cannot_be_read_is_not_remembered(damage: str, tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        found = judge(server, tmp_path).capabilities
        (file,) = tmp_path.iterdir()
        file.write_text(damage)
        assert judge(server, tmp_path).capabilities == found
        assert len(server.bodies) == 6
        assert judge(server, tmp_path).capabilities == found
        assert len(server.bodies) == 6
