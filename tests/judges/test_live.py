"""A judge that is asked live: what is tried again, what ends a run, and what an endpoint can do."""

import asyncio
import datetime
import gzip
import json
import logging
import os
import signal
import socket
import socketserver
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import yaml
from answering import annotate, answered
from buyer_process import numbered, store_in
from channels import NOWHERE, PATIENT_S, PROMPT, QUICK, always, live, on_question, once, some
from fault_server import (
    KEY,
    ODD,
    TRANSIENT,
    UNREADABLE,
    USAGE,
    Body,
    FaultServer,
    completion,
    error,
    judged,
    serving,
    shown_texts,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.live import client, probe, troubles
from judgeline.judges.live import judge as served
from judgeline.judges.live.connection import Connection, is_loopback
from judgeline.judges.live.endpoint import Endpoint, EndpointError, find_endpoint
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.live.probe import Capabilities
from judgeline.judges.live.troubles import (
    RetryPolicy,
    codes_in,
    diagnose_status,
    retry_after,
    said_in,
)
from judgeline.judges.presentation import Answer, Presentation
from judgeline.paths import ROOT
from judgeline.verdict.outcomes import CRITERIA
from judgeline.verdict.rubric import RESPONSES
from pipelines.commands.verdicts import explain_battle
from resources.config.corpora import load_corpora
from resources.config.judges import load_judges
from resources.opening import open_judge

pytestmark = pytest.mark.slow
SECRET = "azure-0123456789-hush"  # noqa: S105


def answers(server: FaultServer, folder: Path, n: int = 1, **fields: Any) -> list[Answer]:
    return answered(live(server, folder, **fields), some(n))


def failing(reply: Callable[[FaultServer, Body], Any], fault: Any = None) -> FaultServer:
    """A server that fails in some way, every question if it is not said which."""
    return FaultServer(fault or always("odd"), extra={"odd": reply})


def after_the_first(texts: tuple[str, ...], n: int) -> str | None:
    return None if texts[0] == "question 0" else "slow"


def until(holds: Callable[[], bool], patience_s: float = PATIENT_S) -> None:
    """Wait for something that another thread is about to do."""
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "served-judge"]


# what is tried again


@pytest.mark.parametrize("name", [*TRANSIENT, *ODD, "slow"])
def test_what_passes_is_tried_again(name: str, tmp_path: Path) -> None:
    with serving(FaultServer(once(name), slow_s=60.0)) as server:
        asked = live(server, tmp_path, timeout_s=1.5 if name == "slow" else PATIENT_S)
        (answer,) = answered(asked, some(1))
    assert (answer.failure, asked.counts["retries"]) == (None, 1)
    assert len(server.presentations) == 2


def test_what_does_not_pass_is_a_transport_failure(tmp_path: Path) -> None:
    with serving(FaultServer(always("500"))) as server:
        (answer,) = answers(server, tmp_path)
    assert answer == Answer(None, "transport", 0, 0, said=answer.said)
    assert answer.said
    assert len(server.presentations) == QUICK.attempts


PASSING = {"disconnect", "504", "slow"}


@pytest.mark.parametrize("name", [*ODD, "slow"])
def test_what_may_have_been_paid_for_is_asked_for_once_more(name: str, tmp_path: Path) -> None:
    with serving(FaultServer(always(name), slow_s=60.0)) as server:
        asked = live(server, tmp_path, timeout_s=1.5 if name == "slow" else PATIENT_S)
        (answer,) = answered(asked, some(1))
    failure = "transport" if name in PASSING else "unreadable_reply"
    assert answer == Answer(None, failure, 0, 0, said=answer.said)
    assert answer.said
    assert len(server.presentations) == 2


@pytest.mark.parametrize(
    ("status", "n_asked", "n_billed"),
    [(408, 8, 0), (429, 8, 0), (500, 8, 0), (502, 8, 0), (503, 8, 0), (504, 2, 2), (524, 2, 2)],
)
def test_what_is_asked_for_once_more_is_what_the_budget_counts(status, n_asked, n_billed, tmp_path):
    budget = Budget()
    with serving(failing(lambda s, b: error(status, "no", retry_after_ms="1"))) as server:
        answered(live(server, tmp_path), some(1), budget)
    assert (len(server.presentations), budget.spent.calls) == (n_asked, n_billed)


class HangsUp(socketserver.StreamRequestHandler):
    """Reads a request, counts it, and closes the connection without a word."""

    def handle(self) -> None:
        headers = dict(
            line.decode().lower().strip().split(": ")
            for line in iter(self.rfile.readline, b"\r\n")
            if b": " in line
        )
        self.rfile.read(int(headers["content-length"]))
        self.server.n_asked = getattr(self.server, "n_asked", 0) + 1


@pytest.mark.parametrize(("race_s", "n_asked", "n_billed"), [(60.0, 8, 0), (0.0, 2, 2)])
def test_a_server_that_hangs_up_had_its_pay_if_it_had_time_to_work(
    race_s, n_asked, n_billed, tmp_path, monkeypatch
):
    monkeypatch.setattr(client, "_RACE_S", race_s)
    budget, chat = Budget(), Capabilities("max_tokens", False, False, None, 0)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HangsUp) as server:
        threading.Thread(target=server.serve_forever).start()
        site = Site(Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", "k"), tmp_path)
        judge = ServedJudge(
            "j", ServedFields(model="tiny"), PROMPT, replace(site, policy=QUICK, declared=chat)
        )
        (answer,) = answered(judge, some(1), budget)
        server.shutdown()
    assert answer.failure == "transport"
    assert (server.n_asked, budget.spent.calls) == (n_asked, n_billed)


def test_an_unreadable_reply_is_kept_with_its_beginning(tmp_path: Path) -> None:
    with serving(failing(lambda s, b: JSONResponse({"detail": f"{KEY} " + "z" * 900}))) as server:
        (answer,) = answers(server, tmp_path)
    assert str(answer.said).startswith('the reply holds no choices: {"detail": "[key] zz')
    assert 280 < str(answer.said).count("z") <= 340


# what replies hold


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
PARTS: dict[str, tuple[list[Any], str | None]] = {
    "one part": ([{"type": "text", "text": "MARKS"}], None),
    "thoughts first": ([THOUGHT, {"type": "text", "text": "MARKS"}], None),
    "a flag for thoughts": ([{"text": "hm", "thought": True}, {"text": "MARKS"}], None),
    "several, and bare": ([{"type": "text", "text": ""}, "MARKS"], None),
    "a refusal": ([{"type": "refusal", "refusal": "I won't."}], "refusal"),
    "thoughts alone": ([THOUGHT], "parse_error"),
    "a picture": ([{"type": "image_url", "image_url": {"url": "x"}}], "unreadable_reply"),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_message_in_parts_is_its_text(name: str, tmp_path: Path) -> None:
    parts, failure = PARTS[name]

    def reply(server: FaultServer, body: Body) -> Response:
        text = json.dumps(judged(body))[1:-1]
        whole = completion(body, None)
        content = json.loads(json.dumps(parts).replace("MARKS", text))
        whole["choices"][0]["message"]["content"] = content
        return JSONResponse(whole)

    with serving(failing(reply)) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure == failure
    if failure is None:
        assert answer.text == judged(server.presentations[0])
    assert len(server.presentations) == (1 if failure in (None, "refusal") else 2)


def test_200_replies_in_parts_are_bought_once_and_errors_twice(tmp_path: Path) -> None:
    """Every tenth is an error under the status of a success, which nobody can class."""

    def reply(server: FaultServer, body: Body) -> Response:
        if shown_texts(body)[0].endswith("7"):
            return JSONResponse({"error": {"message": "no luck"}})
        whole = completion(body, None)
        text = {"type": "text", "text": judged(body)}
        whole["choices"][0]["message"]["content"] = [THOUGHT, text]
        return JSONResponse(whole)

    budget = Budget()
    with serving(failing(reply)) as server:
        asked = live(server, tmp_path, concurrency=16)
        given = answered(asked, some(200), budget)
    failures = Counter(answer.failure for answer in given)
    assert failures == {None: 180, "unreadable_reply": 20}
    assert len(server.presentations) == 180 + 2 * 20 == budget.spent.calls
    assert {answer.said for answer in given if answer.failure} == {"HTTP 200: no luck"}


def streamed(body: Body, *, is_whole: bool = True) -> Response:
    """A completion in server-sent events, as they stand in the protocol: roles, pieces, an end."""
    text = judged(body)
    head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "tiny-1"}
    deltas = [
        {"role": "assistant", "content": "", "reasoning": "So A"},
        {"content": text[:9], "reasoning": " wins."},
        {"content": text[9:]},
    ]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
              for delta in deltas]  # fmt: skip
    end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {**head, "choices": [], "usage": {"prompt_tokens": 400, "completion_tokens": 40}}
    events = [f"data: {json.dumps(one)}\n\n" for one in (*chunks, *([end] * is_whole), usage)]
    return Response(": hello\n\n" + "".join(events) + "data: [DONE]\n\n",
                    media_type="text/event-stream")  # fmt: skip


@pytest.mark.parametrize(("is_whole", "failure"), [(True, None), (False, "truncated")])
def test_an_answer_in_server_sent_events_is_read(is_whole, failure, tmp_path: Path) -> None:
    decoding = {"max_tokens": 4096}  # no bound, which a cut answer would lift
    with serving(failing(lambda s, b: streamed(b, is_whole=is_whole))) as server:
        (answer,) = answers(server, tmp_path, decoding=decoding)
    assert (answer.failure, answer.text) == (failure, judged(server.presentations[0]))
    assert (answer.prompt_tokens, answer.completion_tokens) == USAGE
    assert (answer.reply_model, answer.reasoning) == ("tiny-1", "So A wins.")
    assert len(server.presentations) == 1


@pytest.mark.parametrize("body", ["data: {]\n\n", 'data: {"choices": 7}\n\n', "event: ping\n\n"])
def test_events_without_a_completion_are_named(body: str, tmp_path: Path) -> None:
    with serving(failing(lambda s, b: Response(body, media_type="text/event-stream"))) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure == "unreadable_reply"
    assert body.split()[0] in str(answer.said) or "no choices" in str(answer.said)


@pytest.mark.parametrize(
    ("error", "failure", "words"),
    [
        ({"message": "too long: maximum context length is 9", "code": 400}, "context_overflow", ""),
        ({"message": "blocked", "type": "content_filter"}, "content_filter", ""),
        ({"message": "bad option", "code": "422"}, "rejected", "HTTP 422: bad option"),
        ("odd", "unreadable_reply", "odd"),
    ],
)
@pytest.mark.parametrize("where", ["body", "choice", "event"])
def test_an_error_in_a_success_has_its_own_status(where, error, failure, words, tmp_path) -> None:
    def reply(server: FaultServer, body: Body) -> Response:
        whole = completion(body, None)
        whole["choices"][0]["error"] = error
        if where == "event":
            return Response(f"data: {json.dumps({'error': error})}\n\n")
        return JSONResponse(whole if where == "choice" else {"error": error})

    with serving(failing(reply)) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure == failure
    assert words in str(answer.said)
    assert len(server.presentations) == (2 if failure == "unreadable_reply" else 1)


def test_a_provider_that_states_tokens_and_an_error_is_asked_twice(tmp_path: Path) -> None:
    def reply(server: FaultServer, body: Body) -> Response:
        whole = completion(body, "half of", "error")
        whole["choices"][0]["error"] = {"message": "upstream broke off", "code": 502}
        return JSONResponse(whole)

    budget = Budget()
    with serving(failing(reply)) as server:
        (answer,) = answered(live(server, tmp_path), some(1), budget)
    assert (answer.failure, answer.said) == ("transport", "HTTP 502: upstream broke off")
    assert (len(server.presentations), budget.spent.prompt_tokens) == (2, 2 * USAGE[0])


def test_a_lack_of_credit_in_a_success_ends_the_run_with_its_words(tmp_path: Path) -> None:
    class Router(FaultServer):
        def _refused(self, body: Body) -> Response | None:
            broke = {"error": {"message": "Insufficient credits", "code": 402}}
            return JSONResponse(broke) if self.asked else super()._refused(body)

    broke = {"error": {"message": "Insufficient credits", "code": 402}}
    server = Router(always("odd"), extra={"odd": lambda s, b: JSONResponse(broke)})
    with serving(server), pytest.raises(EndpointError, match="HTTP 402: Insufficient credits"):
        answers(server, tmp_path, 200, concurrency=16)
    asked = Counter(map(shown_texts, server.presentations))
    assert (max(asked.values()), len(asked) < 200) == (1, True)


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_answer_is_asked_for_once_more(name: str, tmp_path: Path) -> None:
    with serving(FaultServer(once(name))) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure is None
    assert answer.text == judged(server.presentations[0])
    assert answer.prompt_tokens == 2 * USAGE[0]  # both requests were paid for
    roles = [message["role"] for message in server.presentations[1]["messages"]]
    assert roles == ["user", "assistant", "user"]


def test_a_third_of_failures_changes_no_verdict(tmp_path: Path) -> None:
    names = [*TRANSIENT, *ODD, *UNREADABLE]

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        draw = np.random.default_rng([len(texts[0]), *texts[0].encode(), n])
        name = names[int(draw.integers(len(names)))]
        spoilt = name not in TRANSIENT and draw.random() < 0.3 and n == 0
        return name if spoilt or (name in TRANSIENT and draw.random() < 0.5) else None

    with serving(FaultServer()) as calm:
        expected = [answer.text for answer in answers(calm, tmp_path / "calm", 150)]
    with serving(FaultServer(fault)) as stormy:
        asked = live(stormy, tmp_path / "stormy", RetryPolicy(20, 0.001, 0.005))
        given = answered(asked, some(150))
    assert (len(stormy.presentations) - 150) / len(stormy.presentations) > 0.25
    assert [answer for answer in given if answer.failure] == []
    assert [answer.text for answer in given] == expected


def test_concurrency_is_used_and_kept(tmp_path: Path) -> None:
    with serving(FaultServer(latency_s=0.02)) as server:
        answers(server, tmp_path, 60, concurrency=5)
    assert server.most_in_flight == 5


def test_retry_after_holds_everybody_back(tmp_path: Path) -> None:
    server = failing(
        lambda s, b: error(429, "x", retry_after="1"),
        lambda texts, n: None if server.asked else "odd",
    )
    with serving(server):
        asked = live(server, tmp_path, concurrency=1)
        asked.capabilities  # noqa: B018  probed before the clock starts
        started = time.monotonic()
        assert [answer.failure for answer in answered(asked, some(3))] == [None] * 3
    assert server.asked.total() == 4
    assert time.monotonic() - started >= 1.0


def test_each_closing_of_an_endpoint_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setattr(troubles, "LONG_S", 0.5)

    class Together(FaultServer):  # all are asked before the first is refused
        async def _reply(self, body: Body) -> Response:
            if shown_texts(body):
                await all_asked.wait()
            return await super()._reply(body)

    all_asked, warnings = asyncio.Barrier(6), []
    extra = {"odd": lambda s, b: error(429, "x", retry_after="1")}
    with serving(Together(lambda texts, n: "odd" if n < 2 else None, extra=extra)) as server:
        together = RetryPolicy(8, 0.0, 0.0)  # all are sent again before the first is refused
        asked = live(server, tmp_path, together, concurrency=6, warn=warnings.append)
        given = answered(asked, some(6))
    assert [answer.failure for answer in given] == [None] * 6
    assert warnings == [f"HTTP 429, waits 1 s, attempt {n} of 8 ({server.url})" for n in (2, 3)]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, (None,)),
        ({"retry-after": "7"}, (7.0,)),
        ({"retry-after": "1.5"}, (1.5,)),
        ({"retry-after": "9", "retry-after-ms": "250"}, (0.25,)),
        ({"retry-after": "-3"}, (None,)),
        ({"retry-after": "soon"}, (None,)),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, (0.0,)),
        ({"retry-after": "Mon, 01 Jan 99999 00:00:00 GMT"}, (None, 0.0)),
        ({"retry-after": "Mon, 01 Jan 2030 00:00:00 +99999999999999999999"}, (None, 0.0)),
        ({"retry-after": "Mon, 01 Jan 0001 00:00:00 +0100"}, (None, 0.0)),
    ],
)
def test_retry_after_is_read_as_seconds(headers: dict[str, str], seconds: tuple[Any, ...]) -> None:
    assert retry_after(headers) in seconds


def test_retry_after_may_be_a_date() -> None:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=60)
    wait = retry_after({"retry-after": format_datetime(moment, usegmt=True)})
    assert wait == pytest.approx(60, abs=2)


def test_backoff_is_jittered_below_a_doubling_cap() -> None:
    rng, policy = np.random.default_rng(0), RetryPolicy(base_s=1.0, cap_s=6.0)
    for attempt, bound in enumerate([1, 2, 4, 6, 6]):
        draws = [policy.delay(attempt, rng) for _ in range(400)]
        assert min(draws) < 0.1 * bound
        assert 0.9 * bound < max(draws) <= bound


# what ends a run, and what does not


@pytest.mark.parametrize(
    ("status", "code", "headers"),
    [
        (401, None, {}),
        (404, "model_not_found", {}),
        (429, "insufficient_quota", {}),
    ],
)
def test_what_no_request_can_mend_stops_the_run_without_the_key(status, code, headers, tmp_path):
    def hopeless(server: FaultServer | None, body: Body) -> Response:
        return error(status, f"wrong key {KEY}", code, **headers)

    class Closed(FaultServer):  # once it was asked to judge
        def _refused(self, body: Body) -> Response | None:
            return hopeless(self, body) if self.asked else super()._refused(body)

    with (
        serving(Closed(always("odd"), extra={"odd": hopeless})) as server,
        pytest.raises(EndpointError, match=rf"HTTP {status}.*judges\.yaml") as caught,
    ):
        answers(server, tmp_path)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_wait_beyond_the_patience_is_said_and_not_laid_to_the_definition(tmp_path) -> None:
    busy = failing(lambda s, b: error(429, "rate limited", retry_after="301"))
    told = r"HTTP 429, asks for 301 s .*more than 300 s: rate limited\. Run again after that time"
    with serving(busy) as server, pytest.raises(EndpointError, match=told) as caught:
        answers(server, tmp_path)
    assert "judges.yaml" not in str(caught.value)


@pytest.mark.parametrize("padding", range(240, 300, 4))
def test_a_message_is_cut_only_after_the_key_is(padding: int, tmp_path: Path) -> None:
    class Closed(FaultServer):
        def _refused(self, body: Body) -> Response | None:
            return error(401, "y" * padding + f" wrong key {KEY}")

    with serving(Closed()) as server, pytest.raises(EndpointError, match="HTTP 401") as caught:
        answers(server, tmp_path)
    assert KEY[:4] not in str(caught.value)


def test_an_endpoint_that_has_gone_stops_the_run_and_keeps_what_came(tmp_path: Path) -> None:
    def dies(texts: tuple[str, ...], n: int) -> str | None:
        return "500" if int(texts[0].split()[-1]) >= 10 else None

    def bought(server: FaultServer) -> pd.DataFrame:
        asked = live(server, tmp_path, RetryPolicy(2, 0.002, 0.01), concurrency=4)
        buyer = Buyer(store_in(tmp_path))
        return annotate(asked, numbered(30), slug="j", buyer=buyer)

    with serving(FaultServer(dies)) as server, pytest.raises(EndpointError, match="20 requests"):
        bought(server)
    with serving(FaultServer()) as server:
        again = bought(server)
        assert len(server.presentations) == 40
    assert set(again["status"]) == {"ok"}


def test_nobody_there_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match="did not answer a plain request"):
        answered(live(NOWHERE, tmp_path, RetryPolicy(2, 0.001, 0.001)), some(1))


def page(content: bytes, status: int = 200, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(content, status, {"content-type": "application/json", **named})


BODIES: dict[str, Callable[[Body], Response]] = {
    "list": lambda b: JSONResponse([1]),
    "deep": lambda b: page(b"[" * 200_000),
    "deep-objects": lambda b: page(b'{"a":' * 200_000),
    "long-number": lambda b: page(b'{"id":' + b"1" * 10_000 + b"}"),
    "no-unicode": lambda b: page(b"\xff\xfe{}"),
    "no-charset": lambda b: page(b"{}", content_type="application/json; charset=nonsense"),
    "date": lambda b: page(b"{}", 429, retry_after="Mon, 01 Jan 2030 00:00:00 +" + "9" * 20),
    "packed": lambda b: page(gzip.compress(judged(b).encode()), content_encoding="gzip"),
    "server-deep": lambda b: page(b"[" * 200_000, 500),
}
OF_SERVER = {"date", "server-deep"}


@pytest.mark.parametrize("name", BODIES)
def test_one_odd_body_fails_one_presentation(name: str, tmp_path: Path) -> None:
    extra = {"odd": lambda s, b: BODIES[name](b)}
    with serving(FaultServer(on_question(3, "odd"), extra=extra)) as server:
        given = answers(server, tmp_path, 6)
    failure = "transport" if name in OF_SERVER else "unreadable_reply"
    assert [answer.failure for answer in given] == [None] * 3 + [failure] + [None] * 2


def test_a_packed_body_is_asked_for_once_and_kept_as_its_failure(tmp_path: Path) -> None:
    extra = {"packed": lambda s, b: BODIES["packed"](b)}
    with serving(FaultServer(on_question(1, "packed"), extra=extra)) as server:
        given = answers(server, tmp_path, 3)
    assert [answer.failure for answer in given] == [None, "unreadable_reply", None]
    assert "packed as 'gzip'" in str(given[1].said)
    assert len(server.presentations) == 3


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_text_that_a_firewall_dislikes_stops_nothing(status: int, tmp_path: Path) -> None:
    extra = {"blocked": lambda s, b: Response("<html>Attention required</html>", status)}

    with serving(FaultServer(on_question(0, "blocked"), extra=extra)) as server:
        live(server, tmp_path).capabilities  # noqa: B018  later runs remember them
        alone = answers(server, tmp_path, 1)  # nothing but it is asked, as in every later run
        given = answers(server, tmp_path, 5, concurrency=1)
    assert [answer.failure for answer in alone] == ["rejected"]
    assert [answer.failure for answer in given] == ["rejected", *[None] * 4]


def test_a_refusal_that_quotes_the_text_is_not_about_the_account(tmp_path: Path) -> None:
    def fault(server: FaultServer, body: Body) -> Response:
        message = "failed on input " + body["messages"][0]["content"]
        return JSONResponse({"error": {"message": message}}, 403)

    shown = Presentation("b", "AB", 0, "q", "my code raises insufficient_quota", "other", "x", "y")
    with serving(FaultServer(always("quote"), extra={"quote": fault})) as server:
        (answer,) = answered(live(server, tmp_path), [shown])
    assert answer.failure == "rejected"


def test_a_server_that_dislikes_every_text_ends_the_run_with_its_words(tmp_path: Path) -> None:
    extra = {"blocked": lambda s, b: Response("blocked by rule 17", 403)}
    with (
        serving(FaultServer(always("blocked"), extra=extra)) as server,
        pytest.raises(EndpointError, match="HTTP 403: blocked by rule 17"),
    ):
        answers(server, tmp_path, 60)
    assert len(server.presentations) <= 60


LONG = "This model's maximum context length is 4096 tokens. However, you requested 9000"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": LONG}},
        {"object": "error", "message": LONG, "code": 400},
        {"detail": LONG},
        {"detail": [{"loc": ["body"], "msg": LONG}]},
        {"error": LONG},
        LONG,
        None,
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_an_overflow_is_understood_in_every_form(body: Any, status: int, tmp_path: Path) -> None:
    plain = Response(LONG, status)
    extra = {"long": lambda s, b: plain if body is None else JSONResponse(body, status)}
    with serving(FaultServer(always("long"), extra=extra)) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure == "context_overflow"


OVERFLOWS = {
    "Gemini": (400, "The input token count (1200000) exceeds the maximum number of tokens allowed "
               "(1048576)."),
    "TGI": (422, "Input validation error: `inputs` must have less than 4095 tokens. Given: 9000"),
    "TGI, with the answer": (422, "Input validation error: `inputs` tokens + `max_new_tokens` must "
                             "be <= 4096. Given: 3000 `inputs` tokens and 4096 `max_new_tokens`"),
    "Ollama": (400, "the input length exceeds the context length"),
    "LM Studio": (400, "Cannot truncate prompt with n_keep (9000) >= n_ctx (4096)"),
    "Alibaba": (400, "Range of input length should be [1, 30720]"),
    "Zhipu": (400, "Prompt exceeds max length"),
    "Zhipu, in Chinese": (400, "Prompt \u8d85\u957f"),
    "xAI": (400, "This model's maximum prompt length is 131072 but the request contains 200000"),
    "Moonshot": (400, "Invalid request: Your request exceeded model token limit: 8192"),
    "Claude": (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
}  # fmt: skip
FILTERS = {
    "Alibaba": (400, {"code": "data_inspection_failed", "message": "Input data may contain "
                      "inappropriate content."}),
    "Alibaba, by a router": (400, {"message": "<400> InternalError.Algo.DataInspectionFailed: x"}),
    "Zhipu": (400, {"code": "1301", "message": "System detected something"}),
    "Zhipu, in words": (400, {"message": "potentially unsafe or sensitive content in input"}),
    "DeepSeek": (400, {"message": "Content Exists Risk"}),
}  # fmt: skip


@pytest.mark.parametrize("provider", OVERFLOWS)
def test_an_overflow_is_understood_in_the_words_of_its_provider(provider: str) -> None:
    status, words = OVERFLOWS[provider]
    assert diagnose_status(status, words, {}, QUICK)[:2] == ("note", "context_overflow")
    quoted = diagnose_status(status, words, {}, QUICK, shown=f"they say: {words}")
    assert quoted[:2] == ("note", "rejected")


@pytest.mark.parametrize("provider", FILTERS)
def test_a_filter_is_understood_in_the_words_of_its_provider(provider: str) -> None:
    status, told = FILTERS[provider]
    trouble = diagnose_status(status, said_in(told), {}, QUICK, codes=codes_in(told))
    assert trouble[:2] == ("note", "content_filter")


def test_what_cannot_pass_is_rejected() -> None:
    told = {status: diagnose_status(status, "no", {}, QUICK).failure for status in range(400, 500)}
    passing = dict.fromkeys((408, 409, 425, 429), "transport")
    rejected = dict.fromkeys(range(400, 500), "rejected")
    assert told == {**rejected, **passing, 413: "context_overflow"}


@pytest.mark.parametrize("end", ["SAFETY", "PROHIBITED_CONTENT", "RECITATION", "sensitive"])
def test_what_a_filter_of_another_name_withheld_is_its_class(end: str, tmp_path: Path) -> None:
    with serving(failing(lambda s, b: JSONResponse(completion(b, None, end)))) as server:
        assert answers(server, tmp_path)[0].failure == "content_filter"


def test_temperature_and_nucleus_are_sent_together_only_where_both_are_set(tmp_path: Path) -> None:
    both = {"temperature": 0.0, "top_p": 1.0}
    alone, other = {"top_p": None}, {"temperature": 0.7, "top_p": 0.9}
    cases = [({}, {"temperature"}), (both, {*both}), (alone, {"temperature"}), (other, {*both})]
    with serving(FaultServer()) as server:
        for number, (decoding, sent) in enumerate(cases):
            answers(server, tmp_path / str(number), decoding=decoding)
            assert [{*body} & {*both} for body in server.bodies] == [sent] * len(server.bodies)
            server.bodies.clear()


LIMITS: list[tuple[dict[str, Any], dict[str, Any], int | None]] = [
    ({}, {}, None),
    ({"decoding": {"max_tokens": 900}}, {}, 900),
    ({"structured_output": "off"}, {}, 4096),
    ({"reasoning_effort": "low"}, {}, 4096),
    ({}, {"json_schema": "ignored"}, 4096),
    ({}, {"limit_field": "max_completion_tokens"}, 4096),
]


@pytest.mark.parametrize(("fields", "server", "limit"), LIMITS)
def test_an_answer_that_a_schema_binds_gets_no_more_tokens_than_it_can_have(
    fields, server, limit, tmp_path
):
    longest = [dict.fromkeys(CRITERIA, 10) for _ in range(2)]
    text = json.dumps(dict(zip(RESPONSES, longest, strict=True)), indent=4)
    with serving(FaultServer(**server)) as endpoint:
        assert answers(endpoint, tmp_path, **fields)[0].failure is None
    asked = endpoint.presentations[0][endpoint.limit_field]
    assert asked == (limit or RUBRIC.most_tokens)
    if limit is None:
        assert len(text.encode()) < asked < 400  # a token is a byte at least


def test_a_bound_that_an_answer_does_not_fit_is_lifted_for_all(tmp_path: Path) -> None:
    def thinks(server: FaultServer, body: Body) -> Response:
        is_cut = body["max_tokens"] < 1000
        reply = completion(body, "" if is_cut else judged(body), "length" if is_cut else "stop")
        return JSONResponse(reply)

    with serving(failing(thinks)) as server:
        first, *others = answers(server, tmp_path, 5, concurrency=1)
    assert [one.failure for one in (first, *others)] == [None] * 5
    n_cut = sum(body["max_tokens"] < 1000 for body in server.presentations)
    assert (len(server.presentations) - n_cut, 1 <= n_cut <= 4) == (5, True)  # 4 were under work
    assert first.prompt_tokens == 2 * USAGE[0]  # both were paid for


def test_closing_early_cancels_what_is_in_flight(tmp_path: Path) -> None:
    with serving(FaultServer(after_the_first, slow_s=60.0)) as server:
        given = live(server, tmp_path, concurrency=8).answer(some(99), Budget())
        assert next(given)[1].status == "ok"
        until(lambda: server.in_flight == 8)
        started = time.monotonic()
        given.close()
        assert time.monotonic() - started < 20.0  # and not the minute that the others would take
        seen = len(server.presentations)
        time.sleep(0.2)
        assert len(server.presentations) == seen < 20


def test_an_interrupt_ends_a_process_promptly(tmp_path: Path) -> None:
    program = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from test_live import Budget, FaultServer, live, some
        server = FaultServer(url=sys.argv[1])
        asked = live(server, Path({str(tmp_path)!r}))
        for answer in asked.answer(some(99), Budget()):
            print("answered", flush=True)
    """

    with serving(FaultServer(after_the_first, slow_s=60)) as server:
        command = [sys.executable, "-c", textwrap.dedent(program), server.url]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "answered\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=50)  # the others would take a minute
    assert "KeyboardInterrupt" in said


def test_an_error_of_the_consumer_leaves_no_thread_behind(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        given = live(server, tmp_path).answer(some(50), Budget())
        next(given)
        assert threads() == ["served-judge"]
        del given
    assert threads() == []


# where requests go, and what they carry


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_sent_elsewhere(status: int, tmp_path: Path) -> None:
    class Moved(FaultServer):
        def _refused(self, body: Body) -> Response | None:
            target = other.url.replace("127.0.0.1", "localhost") + "/chat/completions"
            return Response(b"", status, {"location": target})

    with (
        serving(FaultServer()) as other,
        serving(Moved()) as server,
        pytest.raises(EndpointError, match=r"has moved to 'http://localhost.*'base_url'"),
    ):
        answers(server, tmp_path)
    assert other.bodies == []
    assert len(server.bodies) == 1


def test_no_proxy_is_asked_for_this_machine(tmp_path, monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(FaultServer()) as server:
        assert answers(server, tmp_path)[0].failure is None


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        *((host, True) for host in ("localhost", "a.localhost", "127.0.0.1", "127.1")),
        ("0.0.0.0", True),  # noqa: S104
        ("[::1]", True),
        ("[::]", True),
        *((host, False) for host in ("example.com", "10.0.0.1", "127.example.com", "1.1")),
    ],
)
def test_this_machine_is_known_by_all_its_names(host: str, is_here: bool) -> None:
    assert is_loopback(f"http://{host}:8000/v1") == is_here


def test_a_proxy_without_a_scheme_is_refused_unseen(tmp_path, monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "user:hush@proxy:3128")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="has no scheme") as caught:
        Connection(Endpoint("https://api.example.com/v1", KEY), 1.0)
    assert "hush" not in str(caught.value)


def test_what_was_asked_before_is_found_without_a_key(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        known, asked = live(server, tmp_path).identity, live(server, tmp_path)
        asked._site = replace(asked._site, endpoint=Endpoint(server.url, None, "set OTHER_KEY"))
        assert asked.identity == known
        with pytest.raises(ValueError, match="set OTHER_KEY"):
            answered(asked, some(1))


class Noting(FaultServer):
    """Remembers the headers and the address of the requests that judge."""

    seen: list[tuple[dict[str, str], str]]

    async def chat(self, request: Request) -> Response:
        self.seen = [*getattr(self, "seen", []), (dict(request.headers), str(request.url))]
        return await super().chat(request)


def opened(server: FaultServer, folder: Path, fields: dict[str, Any], **variables: str) -> Any:
    declared = ServedFields(model="tiny", base_url=server.url, timeout_s=PATIENT_S, **fields)
    with mock.patch.dict(os.environ, variables):
        place = find_endpoint("j", declared)
    return ServedJudge("j", declared, PROMPT, Site(place, folder))


def test_headers_query_and_body_reach_the_endpoint(tmp_path: Path) -> None:
    fields = {
        "headers": {"api-key": {"env": "AZURE_KEY"}, "X-Title": "judgeline"},
        "query": {"api-version": "2024-10-21"},
        "extra_body": {"provider": {"allow_fallbacks": False}},
        "reasoning_effort": "low",
    }
    with serving(Noting()) as server:
        asked = opened(server, tmp_path, fields, AZURE_KEY=SECRET)
        (answer,) = answered(asked, some(1))
        headers, url = server.seen[-1]
    assert answer.failure is None
    assert (headers["api-key"], headers["x-title"]) == (SECRET, "judgeline")
    assert "authorization" not in headers  # the placeholder for a key would be refused first
    assert url.endswith("/v1/chat/completions?api-version=2024-10-21")
    (body,) = server.presentations
    assert body["provider"] == {"allow_fallbacks": False}
    assert (body["reasoning_effort"], body["model"]) == ("low", "tiny")


def test_no_url_stands_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("httpx2")
    monkeypatch.setattr(logger, "disabled", False)  # a migration's configuration disables loggers
    caplog.set_level("INFO", logger="httpx2")
    with serving(Noting()) as server:
        asked = opened(server, tmp_path, {"query": {"version": "v of 1"}})
        answered(asked, some(1))
        _, url = server.seen[-1]
    assert url == f"{server.url}/chat/completions?version=v%20of%201"
    logged = [record.getMessage() for record in caplog.records if record.name == "httpx2"]
    assert logged
    assert not [text for text in logged if "127.0.0.1" in text or "version" in text]


def test_nothing_of_the_environment_goes_along(tmp_path: Path, monkeypatch) -> None:
    ambient = {
        "OPENAI_ORG_ID": "org-mine",
        "OPENAI_PROJECT_ID": "project-mine",
        "OPENAI_ADMIN_KEY": "admin-mine",
        "OPENAI_API_KEY": "key-mine",
        "OPENAI_CUSTOM_HEADERS": "X-Mine: mine\nHost: mine.example\nContent-Length: 5",
    }
    for name, value in ambient.items():
        monkeypatch.setenv(name, value)
    with serving(Noting()) as server:
        asked = opened(server, tmp_path, {})
        (answer,) = answered(asked, some(1))
        headers, _ = server.seen[-1]
    assert answer.failure is None
    assert not [name for name, value in headers.items() if "mine" in value]
    assert not [name for name in headers if name.startswith("x-stainless")]


@pytest.mark.parametrize("charset", ["zlib", "rot13", "utf-16", "idna", "nonsense"])
def test_a_charset_hides_no_status(charset: str, tmp_path: Path) -> None:
    kind = f"application/json; charset={charset}"
    body = json.dumps({"error": {"message": "no such key"}}).encode()
    refused = lambda s, b: Response(body, 401, media_type=kind)  # noqa: E731
    with serving(failing(refused)) as server:
        (answer,) = answers(server, tmp_path)
    assert (answer.failure, answer.said) == ("rejected", "HTTP 401: no such key")
    assert len(server.presentations) == 1


def test_no_cookie_comes_back(tmp_path: Path) -> None:
    class Setting(Noting):
        async def chat(self, request: Request) -> Response:
            reply = await super().chat(request)
            reply.set_cookie("session", "tracked")
            return reply

    with serving(Setting()) as server:
        server.url = server.url.replace("127.0.0.1", "localhost")  # an address never gets one back
        asked = opened(server, tmp_path, {"concurrency": 1})
        assert [answer.failure for answer in answered(asked, some(3))] == [None] * 3
    assert len(server.seen) > 3
    assert not [headers for headers, _ in server.seen if "cookie" in headers]


@pytest.mark.parametrize(
    ("fields", "variables", "sent"),
    [
        ({"headers": {"X-Team": {"env": "TEAM"}}, "api_key_env": "KEY"},
         {"TEAM": "team-of-mine", "KEY": "k"},
         {"authorization": "Bearer k", "x-team": "team-of-mine"}),
        ({"headers": {"authorization": {"env": "OWN"}}}, {"OWN": f"Api-Key {SECRET}"},
         {"authorization": f"Api-Key {SECRET}"}),
    ],
)  # fmt: skip
def test_a_header_goes_with_the_key_or_replaces_it(fields, variables, sent, tmp_path):
    with serving(Noting()) as server:
        answered(opened(server, tmp_path, fields, **variables), some(1))
        headers, _ = server.seen[-1]
    assert headers.items() >= sent.items()


def test_a_secret_header_is_in_no_answer_and_no_file(tmp_path: Path) -> None:
    fields = {"headers": {"Authorization": {"env": "OWN"}}}
    echoed = lambda s, b: JSONResponse(completion(b, f"{judged(b)} I was told {SECRET}."))  # noqa: E731
    extra = {"echo": echoed, "no": lambda s, b: error(400, f"no {SECRET}")}

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return {"question 1": "echo", "question 2": "no"}.get(texts[0])

    with serving(FaultServer(fault, extra=extra)) as server:
        asked = opened(server, tmp_path, fields, OWN=f"Bearer {SECRET}")
        given = answered(asked, some(3))
    assert str(given[1].text).endswith("I was told [key].")
    assert given[2].said == "HTTP 400: no [key]"
    shown = [repr(asked), repr(asked._site), str(asked.identity), str(asked.metadata)]
    shown += [repr(given), *map(repr, vars(asked).values())]
    assert not [text for text in shown if SECRET in text]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET in file.read_text()]


def test_words_and_model_of_an_answer_are_explained(tmp_path, monkeypatch):
    battles, config = numbered(2), tmp_path / "config"
    (tmp_path / "tables" / "sampled_battles").mkdir(parents=True)
    battles.to_parquet(tmp_path / "tables" / "sampled_battles" / "arena.parquet")
    config.mkdir()
    (config / "corpora.yaml").symlink_to(ROOT / "config" / "corpora.yaml")
    monkeypatch.setenv("JUDGELINE_CONFIG", str(config))
    monkeypatch.setenv("JUDGELINE_HOME", str(tmp_path))
    with serving(failing(lambda s, b: error(400, "no idea"), on_question(0, "odd"))) as server:
        entry = {"display_name": "J", "family": "f", "kind": "openai", "model": "tiny"}
        (config / "judges.yaml").write_text(yaml.safe_dump({"j": entry | {"base_url": server.url}}))
        judge = open_judge(load_judges()["j"], load_corpora()["arena"])
        annotate(judge, battles, slug="j", buyer=Buyer(store_in(tmp_path)))
    _, failed = explain_battle("b0", "j", "arena")
    _, fine = explain_battle("b1", "j", "arena")
    assert {(fate, "HTTP 400: no idea" in why) for *_, fate, why in failed} == {("hit", True)}
    assert {(fate, why) for *_, fate, why in fine} == {("hit", "answered by tiny")}


# what the endpoint supports


@pytest.mark.parametrize(
    ("support", "found"), [("bound", True), ("ignored", False), ("refused", False)]
)
def test_a_schema_is_used_only_where_it_binds(support: str, found: bool, tmp_path: Path) -> None:
    with serving(FaultServer(json_schema=support)) as server:
        asked = live(server, tmp_path)
        assert [answer.failure for answer in answered(asked, some(1))] == [None]
    assert asked.capabilities.json_schema is found
    assert asked.identity["structured_output"] == ("json_schema" if found else "none")
    assert all(("response_format" in body) is found for body in server.presentations)
    if found:
        schema = server.presentations[0]["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]) == ["response_1", "response_2"]


def test_an_endpoint_is_probed_once_and_remembered(tmp_path: Path) -> None:
    with serving(FaultServer(max_model_len=8192)) as server:
        first = live(server, tmp_path).capabilities
        n_requests = len(server.bodies)
        again = live(server, tmp_path)
        assert again.capabilities == first
        assert again.metadata["max_context"] == "8192"
        assert len(server.bodies) == n_requests == 3
    written = "".join(file.read_text() for file in (tmp_path / "endpoints").iterdir())
    assert KEY not in written
    assert json.loads(written)["model"] == "tiny"


def test_the_newer_name_of_the_token_limit_is_found(tmp_path: Path) -> None:
    with serving(FaultServer(limit_field="max_completion_tokens")) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure is None
    assert server.presentations[0]["max_completion_tokens"] == 4096


@pytest.mark.parametrize(
    ("server", "fields", "message"),
    [
        (FaultServer(json_schema="refused"), {"structured_output": "on"}, "'structured_output'"),
        (FaultServer(log_probabilities=False), {"log_probabilities": "on"},
         "log_probabilities: auto"),
        (FaultServer(max_model_len=2048), {}, "lower decoding.max_tokens"),
    ],
)  # fmt: skip
def test_demands_that_cannot_be_met_are_named(server, fields, message, tmp_path):
    with serving(server), pytest.raises(ValueError, match=message):
        answers(server, tmp_path, **fields)


class Troubled(FaultServer):
    """Refuses schemas, with a status, the first so many times."""

    def __init__(self, times: int, status: int = 503, *, plain_fails: bool = False) -> None:
        super().__init__()
        self.times, self.status, self.plain_fails = times, status, plain_fails

    def _refused(self, body: Body) -> Response | None:
        n_seen = sum("response_format" in seen for seen in self.bodies)
        if ("response_format" in body and n_seen <= self.times) or (self.plain_fails and n_seen):
            return error(self.status, "overloaded")
        return super()._refused(body)


def test_an_outage_during_the_probe_is_not_what_the_endpoint_can_do(tmp_path: Path) -> None:
    with serving(Troubled(QUICK.attempts)) as server:
        assert live(server, tmp_path).capabilities.json_schema is True


@pytest.mark.parametrize("status", [503, 429, 408])
def test_what_came_of_an_outage_is_not_remembered(status: int, tmp_path: Path) -> None:
    endless = Troubled(10**6, status, plain_fails=True)
    with serving(endless) as server, pytest.raises(EndpointError, match="run again"):
        live(server, tmp_path).capabilities  # noqa: B018
    assert not (tmp_path / "endpoints").exists()


@pytest.mark.parametrize("status", [400, 403, 404, 422, 500, 501])
def test_a_server_that_refuses_a_schema_for_good_has_none(status: int, tmp_path: Path) -> None:
    with serving(Troubled(10**6, status)) as server:
        found = live(server, tmp_path).capabilities
    assert (found.json_schema, found.log_probabilities) == (False, True)


def test_an_option_that_is_refused_in_a_success_is_none(tmp_path: Path) -> None:
    class Polite(FaultServer):
        def _refused(self, body: Body) -> Response | None:
            if not {"response_format", "logprobs"} & set(body):
                return None
            return JSONResponse({"error": {"message": "it is not supported", "code": None}})

    with serving(Polite()) as server:
        found = live(server, tmp_path).capabilities
    assert (found.json_schema, found.log_probabilities) == (False, False)


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
def test_a_list_of_models_that_says_nothing_is_no_trouble(name, tmp_path, monkeypatch):
    class Listing(FaultServer):
        async def models(self, request: Request) -> Response:
            listed: Response = LISTS[name]()
            return listed

    monkeypatch.setattr(probe, "_LIST_S", 0.3)
    with serving(Listing()) as server:
        assert live(server, tmp_path).capabilities.max_context is None


@pytest.mark.parametrize(
    ("patience_s", "probe_s", "told"),
    [
        (0.5, 60.0, "did not answer a small request within 0.5 s.*run again"),
        (150.0, 0.2, "did not answer a plain request.*Check that it is up"),  # asked twice
    ],
)
def test_a_server_that_never_answers_is_noticed(patience_s, probe_s, told, tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "_PATIENCE_S", patience_s)
    monkeypatch.setattr(served, "_PROBE_S", probe_s)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        fields = ServedFields(model="tiny")  # patient with answers, not with the probe
        asked = ServedJudge("j", fields, PROMPT, Site(Endpoint(url, KEY), tmp_path))
        with pytest.raises(EndpointError, match=rf"'j'.*{told}"):
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
        found = live(server, tmp_path).capabilities
        (file,) = (tmp_path / "endpoints").iterdir()
        file.write_text(damage)
        assert live(server, tmp_path).capabilities == found
        assert len(server.bodies) == 6
        assert live(server, tmp_path).capabilities == found
        assert len(server.bodies) == 6
