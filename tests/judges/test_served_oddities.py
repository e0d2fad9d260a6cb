"""What servers send that is no answer, and what one odd reply must not do to a run."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answering import answered
from fault_server import KEY, Body, FaultServer, completion, error, judged, serving
from starlette.responses import JSONResponse, Response
from test_served_client import QUICK, TEMPLATE, always, answers, judge, presentation

from resources.judges.judge import Answer, Presentation
from resources.judges.live.endpoint import Endpoint, EndpointError
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge
from resources.judges.live.troubles import retry_after

Change = Callable[[Body], Any]


def odd(change: Change) -> dict[str, Any]:
    return {"odd": lambda s, b: JSONResponse(change(completion(b, judged(b))))}


def with_choice(**parts: Any) -> Change:
    return lambda whole: {**whole, "choices": [{**whole["choices"][0], **parts}]}


def with_usage(usage: Any) -> Change:
    return lambda whole: {**whole, "usage": usage}


def without_finish(whole: Body) -> Body:
    choice = {k: v for k, v in whole["choices"][0].items() if k != "finish_reason"}
    return {**whole, "choices": [choice]}


def one_answer(folder: Path, extra: dict[str, Any], **fields: Any) -> tuple[Answer, int]:
    with serving(FaultServer(always("odd"), extra=extra)) as server:
        (answer,) = answers(server, folder, **fields)
    return answer, len(server.presentations)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (with_choice(finish_reason="stop"), (None, 1)),
        (with_choice(finish_reason=None), (None, 1)),
        (with_choice(finish_reason="eos_token"), (None, 1)),
        (without_finish, ("truncated", 1)),
        (with_choice(finish_reason="tool_calls"), ("tool_call", 1)),
        (with_choice(finish_reason=["stop"]), ("truncated", 1)),
        (with_choice(finish_reason="error"), ("transport", QUICK.attempts)),
    ],
    ids=["stop", "null", "eos", "absent", "tools", "list", "error"],
)
def test_only_an_answer_that_ended_by_itself_counts(
    change: Change, expected: tuple[str | None, int], tmp_path: Path
) -> None:
    answer, n_asked = one_answer(tmp_path, odd(change))
    assert (answer.failure, n_asked) == expected


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 3}, (12, 3)),
        ({"prompt_tokens": 10**30, "completion_tokens": 3}, (0, 3)),
        ({"prompt_tokens": -(10**6), "completion_tokens": 3}, (0, 3)),
        ({"prompt_tokens": "12", "completion_tokens": 12.5}, (0, 0)),
        ({"prompt_tokens": {"a": 1}, "completion_tokens": True}, (0, 0)),
        (None, (0, 0)),
        ([1], (0, 0)),
        ("many", (0, 0)),
    ],
)
def test_tokens_are_counts_or_unknown(usage: Any, tokens: tuple[int, int], tmp_path: Path) -> None:
    price = {"prompt": 1, "completion": 2}
    answer, _ = one_answer(tmp_path, odd(with_usage(usage)), price_per_million=price)
    assert answer.failure is None
    assert (answer.prompt_tokens, answer.completion_tokens) == tokens


@pytest.mark.parametrize(
    ("logs", "kept"),
    [
        ({"content": [{"token": "7", "logprob": -0.2}]}, [["7", -0.2, []]]),
        ({"content": [{"token": "7", "logprob": -0.2, "top_logprobs": None}]}, [["7", -0.2, []]]),
        ({"content": [{"token": 7, "logprob": -0.2}]}, None),
        ({"content": [{"token": "7", "logprob": "x"}]}, None),
        ({"content": [None]}, None),
        ({"content": "abc"}, None),
        ({"tokens": ["a"], "token_logprobs": [-1]}, None),
        ([1], None),
    ],
)
def test_log_probabilities_in_another_form_cost_no_answer(
    logs: Any, kept: Any, tmp_path: Path
) -> None:
    answer, n_asked = one_answer(tmp_path, odd(with_choice(logprobs=logs)), log_probabilities="on")
    assert (answer.failure, n_asked) == (None, 1)
    found = answer.log_probabilities
    assert (None if found is None else json.loads(found)) == kept


def page(content: bytes, status: int = 200, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(content, status, {"content-type": "application/json", **named})


BODIES: dict[str, Callable[[Body], Response]] = {
    "message-text": lambda b: JSONResponse(with_choice(message="hello")(completion(b, "x"))),
    "message-list": lambda b: JSONResponse(with_choice(message=[1])(completion(b, "x"))),
    "choice-text": lambda b: JSONResponse({**completion(b, "x"), "choices": ["x"]}),
    "choices-object": lambda b: JSONResponse({**completion(b, "x"), "choices": {"0": 1}}),
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


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_one_odd_body_fails_one_presentation(name: str, tmp_path: Path) -> None:
    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return "odd" if texts[0] == "question 3" else None

    extra = {"odd": lambda s, b: BODIES[name](b)}
    with serving(FaultServer(fault, extra=extra)) as server:
        given = answers(server, tmp_path, 6)
    assert [answer.failure for answer in given] == [None] * 3 + ["transport"] + [None] * 2


@pytest.mark.parametrize(
    "date",
    [
        "Mon, 01 Jan 99999 00:00:00 GMT",
        "Mon, 01 Jan 2030 00:00:00 +99999999999999999999",
        "Mon, 01 Jan 0001 00:00:00 +0100",
    ],
)
def test_a_moment_that_is_none_asks_for_no_wait(date: str) -> None:
    assert retry_after({"retry-after": date}) in (None, 0.0)


# one text that something on the way dislikes


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_text_that_a_firewall_dislikes_stops_nothing(status: int, tmp_path: Path) -> None:
    extra = {"blocked": lambda s, b: Response("<html>Attention required</html>", status)}

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return "blocked" if texts[0] == "question 0" else None

    with serving(FaultServer(fault, extra=extra)) as server:
        judge(server, tmp_path).capabilities  # noqa: B018  later runs remember them
        alone = answers(server, tmp_path, 1)  # nothing but it is asked, as in every later run
        given = answers(server, tmp_path, 5, concurrency=1)
    assert [answer.failure for answer in alone] == ["transport"]
    assert [answer.failure for answer in given] == ["transport", *[None] * 4]


@pytest.mark.slow
def test_a_server_that_dislikes_every_text_ends_the_run_with_its_words(tmp_path: Path) -> None:
    extra = {"blocked": lambda s, b: Response("blocked by rule 17", 403)}
    with (
        serving(FaultServer(always("blocked"), extra=extra)) as server,
        pytest.raises(EndpointError, match="HTTP 403: blocked by rule 17"),
    ):
        answers(server, tmp_path, 60)
    assert len(server.presentations) <= 60


def quoting(status: int, **parts: Any) -> dict[str, Any]:
    def fault(server: FaultServer, body: Body) -> Response:
        message = "failed on input " + body["messages"][0]["content"]
        return JSONResponse({"error": {"message": message, **parts}}, status)

    return {"quote": fault}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "an essay on the maximum context length"),
        (422, "what the content policy says, and what is flagged by moderation"),
        (400, "my code prints: output limit was reached"),
        (500, "my code raises insufficient_quota"),
        (403, "my code raises insufficient_quota"),
    ],
)
def test_what_a_server_quotes_is_not_what_it_says(status: int, words: str, tmp_path: Path) -> None:
    shown = Presentation("b", "AB", 0, "q", words, "other", "x", "y")
    with serving(FaultServer(always("quote"), extra=quoting(status))) as server:
        (answer,) = answered(judge(server, tmp_path), [shown])
    assert answer.failure == "transport"


def test_what_a_server_says_by_a_code_is_believed_whatever_it_quotes(tmp_path: Path) -> None:
    shown = Presentation("b", "AB", 0, "q", "the context length", "other", "x", "y")
    extra = quoting(400, code="context_length_exceeded")
    with serving(FaultServer(always("quote"), extra=extra)) as server:
        (answer,) = answered(judge(server, tmp_path), [shown])
    assert answer.failure == "context_overflow"


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


# where requests go


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


def test_no_proxy_is_asked_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(FaultServer()) as server:
        assert answers(server, tmp_path)[0].failure is None


# the key


def test_a_key_that_a_server_repeats_is_not_stored(tmp_path: Path) -> None:
    said = lambda body: judged(body) + f" Authorization: Bearer {KEY}"  # noqa: E731
    tokens = [KEY[:4], KEY[4:]]
    logs = {"content": [{"token": t, "logprob": -0.5, "top_logprobs": []} for t in tokens]}
    extra = {
        "said": lambda s, b: JSONResponse(with_choice(logprobs=logs)(completion(b, said(b)))),
        "refused": lambda s, b: JSONResponse(completion(b, None, refusal=f"not with {KEY}")),
    }

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return "said" if texts[0] == "question 0" else "refused"

    with serving(FaultServer(fault, extra=extra)) as server:
        given = answers(server, tmp_path, 2, log_probabilities="on")
    assert [answer.failure for answer in given] == [None, "refusal"]
    assert given[1].text == "not with [key]"
    assert KEY not in repr(given)
    assert given[0].log_probabilities is None


def test_a_placeholder_for_a_key_is_not_cut_out_of_answers(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        placeholder = Endpoint(server.url, "r")
        asked = ServedJudge("j", ServedFields(model="tiny"), TEMPLATE, placeholder, tmp_path, QUICK)
        (answer,) = answered(asked, [presentation(0)])
    assert answer.text == judged(server.presentations[0])


@pytest.mark.parametrize("padding", range(240, 300, 4))
def test_a_message_is_cut_only_after_the_key_is(padding: int, tmp_path: Path) -> None:
    class Closed(FaultServer):
        def _refused(self, body: Body) -> Response | None:
            return error(401, "y" * padding + f" wrong key {KEY}")

    with serving(Closed()) as server, pytest.raises(EndpointError) as caught:
        answers(server, tmp_path)
    assert "HTTP 401" in str(caught.value)
    assert KEY[:4] not in str(caught.value)


# replicates


def test_replicates_are_drawn_with_seeds_of_their_own(tmp_path: Path) -> None:
    one = presentation(0)
    runs = [
        Presentation(
            *(getattr(one, n) for n in ("battle_id", "order")),
            k,
            one.instruction,
            one.first_completion,
            one.second_completion,
            "x",
            "y",
        )
        for k in range(3)
    ]
    with serving(FaultServer()) as server:
        answered(judge(server, tmp_path, decoding={"seed": 7}), runs)
        answered(judge(server, tmp_path), runs)
    seeds = [body.get("seed") for body in server.presentations]
    assert sorted(seeds[:3]) == [7, 8, 9]
    assert seeds[3:] == [None] * 3


# a judge without a key


def test_what_was_asked_before_is_found_without_a_key(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        known = judge(server, tmp_path).identity
        keyless = Endpoint(server.url, None, "set OTHER_KEY")
        fields = ServedFields(model="tiny")
        asked = ServedJudge("j", fields, TEMPLATE, keyless, tmp_path, QUICK)
        assert asked.identity == known
        with pytest.raises(ValueError, match="set OTHER_KEY"):
            answered(asked, [presentation(0)])
