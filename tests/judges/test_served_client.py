import datetime
import json
import logging
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answering import answered
from fault_server import (
    FINAL,
    KEY,
    TRANSIENT,
    UNREADABLE,
    USAGE,
    FaultServer,
    error,
    judged,
    scores_of,
    serving,
)

from judgeline.verdict.identity import identity_hash
from judgeline.verdict.rubric import parse_answer
from resources.config.paths import ROOT
from resources.judges.budget import Budget
from resources.judges.catalog import read_template
from resources.judges.judge import Answer, Presentation
from resources.judges.live import asking
from resources.judges.live.endpoint import Endpoint, EndpointError
from resources.judges.live.fields import ServedFields
from resources.judges.live.judge import ServedJudge
from resources.judges.live.troubles import RetryPolicy, retry_after

pytestmark = pytest.mark.slow

TEMPLATE = read_template(ROOT / "config" / "prompts" / "fenced-rubric.txt")
QUICK = RetryPolicy(attempts=8, base_s=0.002, cap_s=0.01)


def presentation(number: int, order: str = "AB") -> Presentation:
    texts = (f"first answer {number}", f"second answer {number}")
    shown = texts if order == "AB" else texts[::-1]
    return Presentation(f"b{number}", order, 0, f"question {number}", *shown, "x", "y")


def texts(shown: Presentation) -> tuple[str, ...]:
    return shown.instruction, shown.first_completion, shown.second_completion


def judge(
    server: FaultServer,
    folder: Path,
    policy: RetryPolicy = QUICK,
    *,
    warn: Callable[[str], None] = logging.warning,
    **fields: Any,
) -> ServedJudge:
    declared = ServedFields(model="tiny", timeout_s=2.0, **fields)
    endpoint = Endpoint(server.url, KEY)
    return ServedJudge("j", declared, TEMPLATE, endpoint, folder, policy, warn=warn)


def answers(server: FaultServer, folder: Path, n: int = 1, **fields: Any) -> list[Answer]:
    return answered(judge(server, folder, **fields), [presentation(i) for i in range(n)])


def always(name: str) -> Callable[[tuple[str, ...], int], str | None]:
    return lambda texts, n: name


def once(name: str) -> Callable[[tuple[str, ...], int], str | None]:
    return lambda texts, n: name if n == 0 else None


def test_answers_belong_to_their_presentations_and_read_as_scores(tmp_path: Path) -> None:
    shown = [presentation(i, order) for i in range(20) for order in ("AB", "BA")]
    with serving(FaultServer()) as server:
        given = answered(judge(server, tmp_path, concurrency=4), shown)
    for one, answer in zip(shown, given, strict=True):
        assert answer.failure is None
        expected = scores_of(texts(one))
        assert list(parse_answer(answer.text or "").first) == list(expected["response_1"].values())
        assert (answer.prompt_tokens, answer.completion_tokens) == USAGE
    assert server.keys == {f"Bearer {KEY}"}


@pytest.mark.parametrize("name", TRANSIENT)
def test_what_passes_is_tried_again(name: str, tmp_path: Path) -> None:
    with serving(FaultServer(once(name))) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure is None
    assert len(server.presentations) == 2


@pytest.mark.parametrize("name", ["500", "disconnect", "other-page"])
def test_what_does_not_pass_is_a_transport_failure(name: str, tmp_path: Path) -> None:
    with serving(FaultServer(always(name))) as server:
        (answer,) = answers(server, tmp_path)
    assert answer == Answer(None, "transport", 0, 0, said=answer.said)
    assert answer.said
    assert len(server.presentations) == QUICK.attempts


def test_a_silent_server_is_given_up_and_asked_again(tmp_path: Path) -> None:
    with serving(FaultServer(once("slow"))) as server:
        asked = ServedJudge(
            "j",
            ServedFields(model="tiny", timeout_s=0.2),
            TEMPLATE,
            Endpoint(server.url, KEY),
            tmp_path,
            QUICK,
        )
        (answer,) = answered(asked, [presentation(0)])
    assert answer.failure is None
    assert asked.counts["retries"] == 1


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_answer_is_asked_for_once_more(name: str, tmp_path: Path) -> None:
    with serving(FaultServer(once(name))) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure is None
    assert answer.text == judged(server.presentations[0])
    assert answer.prompt_tokens == 2 * USAGE[0]  # both requests were paid for
    roles = [message["role"] for message in server.presentations[1]["messages"]]
    assert roles == ["user", "assistant", "user"]


@pytest.mark.parametrize("name", UNREADABLE)
def test_twice_unreadable_is_a_parse_error(name: str, tmp_path: Path) -> None:
    with serving(FaultServer(always(name))) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure == "parse_error"
    assert len(server.presentations) == 2


@pytest.mark.parametrize("name", FINAL)
def test_every_other_failure_has_its_class_and_is_not_repeated(name: str, tmp_path: Path) -> None:
    with serving(FaultServer(always(name))) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure == FINAL[name][0]
    assert len(server.presentations) == 1


def test_a_third_of_failures_changes_no_verdict(tmp_path: Path) -> None:
    names = [*TRANSIENT, *UNREADABLE]

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        draw = np.random.default_rng([len(texts[0]), *texts[0].encode(), n])
        name = names[int(draw.integers(len(names)))]
        spoilt = name in UNREADABLE and draw.random() < 0.3 and n == 0
        return name if spoilt or (name in TRANSIENT and draw.random() < 0.5) else None

    with serving(FaultServer()) as calm:
        expected = [answer.text for answer in answers(calm, tmp_path / "calm", 150)]
    with serving(FaultServer(fault)) as stormy:
        asked = judge(stormy, tmp_path / "stormy", RetryPolicy(20, 0.001, 0.005))
        given = answered(asked, [presentation(i) for i in range(150)])
    failed = len(stormy.presentations) - 150
    assert failed / len(stormy.presentations) > 0.25
    spoilt = [answer for answer in given if answer.failure]
    # a repair may itself be unreadable only if the fault says so twice, which it never does
    assert spoilt == []
    assert [answer.text for answer in given] == expected


def test_concurrency_is_used_and_kept(tmp_path: Path) -> None:
    with serving(FaultServer(latency_s=0.02)) as server:
        answers(server, tmp_path, 60, concurrency=5)
    assert server.most_in_flight == 5


def test_retry_after_holds_everybody_back(tmp_path: Path) -> None:
    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return "wait" if not server.asked else None

    server = FaultServer(fault, extra={"wait": lambda s, b: error(429, "x", retry_after="1")})
    with serving(server):
        asked = judge(server, tmp_path, concurrency=1)
        asked.capabilities  # noqa: B018  probed before the clock starts
        started = time.monotonic()
        given = [answer.failure for answer in answered(asked, [presentation(i) for i in range(3)])]
    assert given == [None] * 3
    assert server.asked.total() == 4
    assert time.monotonic() - started >= 1.0


def test_each_closing_of_an_endpoint_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "LONG_S", 0.5)
    server = FaultServer(
        lambda texts, n: "wait" if n < 2 else None,
        extra={"wait": lambda s, b: error(429, "x", retry_after="1")},
    )
    warnings: list[str] = []
    with serving(server):
        asked = judge(server, tmp_path, concurrency=6, warn=warnings.append)
        given = answered(asked, [presentation(i) for i in range(6)])
    assert [answer.failure for answer in given] == [None] * 6
    assert [text.partition(" (")[0] for text in warnings] == [
        "HTTP 429, waits 1 s, attempt 2 of 8",
        "HTTP 429, waits 1 s, attempt 3 of 8",
    ]
    assert all(server.url in text for text in warnings)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_as_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


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


@pytest.mark.parametrize(
    ("status", "code", "headers"),
    [
        (401, None, {}),
        (404, "model_not_found", {}),
        (429, "insufficient_quota", {}),
        (429, None, {"retry_after": "86400"}),
    ],
)
def test_what_no_request_can_mend_stops_the_run_without_the_key(
    status: int, code: str | None, headers: dict[str, str], tmp_path: Path
) -> None:
    def hopeless(server: FaultServer | None, body: Any) -> Any:
        return error(status, f"wrong key {KEY}", code, **headers)

    class Closed(FaultServer):  # once it was asked to judge
        def _refused(self, body: Any) -> Any:
            return hopeless(self, body) if self.asked else super()._refused(body)

    closed = Closed(always("hopeless"), extra={"hopeless": hopeless})
    with serving(closed) as server, pytest.raises(EndpointError) as caught:
        answers(server, tmp_path)
    message = str(caught.value)
    assert f"HTTP {status}" in message
    assert "config/judges.yaml" in message
    assert KEY not in message
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_endpoint_that_has_gone_stops_the_run(tmp_path: Path) -> None:
    given = []
    with serving(FaultServer(always("500"))) as server:
        asked = judge(server, tmp_path, RetryPolicy(2, 0.001, 0.001))
        with pytest.raises(EndpointError, match="20 requests"):
            given.extend(asked.answer([presentation(i) for i in range(200)], Budget()))
    assert len(server.presentations) < 200


def test_nobody_there_is_said_at_once(tmp_path: Path) -> None:
    asked = judge(FaultServer(url="http://127.0.0.1:9/v1"), tmp_path, RetryPolicy(2, 0.001, 0.001))
    with pytest.raises(EndpointError, match="did not answer a plain request"):
        answered(asked, [presentation(0)])


def test_closing_early_cancels_what_is_in_flight(tmp_path: Path) -> None:
    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return None if texts[0] == "question 0" else "slow"

    with serving(FaultServer(fault, slow_s=1.5)) as server:
        given = judge(server, tmp_path, concurrency=8).answer(
            [presentation(i) for i in range(99)], Budget()
        )
        assert next(given)[1].failure is None
        time.sleep(0.1)
        started = time.monotonic()
        given.close()
        assert time.monotonic() - started < 1.0
        seen = len(server.presentations)
        time.sleep(0.2)
        assert len(server.presentations) == seen < 20


def test_an_interrupt_ends_a_process_promptly(tmp_path: Path) -> None:
    program = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from test_served_client import Budget, FaultServer, judge, presentation
        server = FaultServer(url=sys.argv[1])
        asked = judge(server, Path({str(tmp_path)!r}))
        for answer in asked.answer([presentation(i) for i in range(99)], Budget()):
            print("answered", flush=True)
    """

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return None if texts[0] == "question 0" else "slow"

    with serving(FaultServer(fault, slow_s=60)) as server:
        command = [sys.executable, "-c", textwrap.dedent(program), server.url]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "answered\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert "KeyboardInterrupt" in said


def test_an_error_of_the_consumer_leaves_no_thread_behind(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        given = judge(server, tmp_path).answer([presentation(i) for i in range(50)], Budget())
        next(given)
        assert any(thread.name == "served-judge" for thread in threading.enumerate())
        del given
    assert not any(thread.name == "served-judge" for thread in threading.enumerate())


# what the endpoint supports


@pytest.mark.parametrize(
    ("support", "found"), [("bound", True), ("ignored", False), ("refused", False)]
)
def test_a_schema_is_used_only_where_it_binds(support: str, found: bool, tmp_path: Path) -> None:
    with serving(FaultServer(json_schema=support)) as server:
        asked = judge(server, tmp_path)
        assert [answer.failure for answer in answered(asked, [presentation(0)])] == [None]
    assert asked.capabilities.json_schema is found
    assert asked.identity["structured_output"] == ("json_schema" if found else "none")
    assert all(("response_format" in body) is found for body in server.presentations)
    if found:
        schema = server.presentations[0]["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]) == ["response_1", "response_2"]


def test_an_endpoint_is_probed_once_and_remembered(tmp_path: Path) -> None:
    with serving(FaultServer(max_model_len=8192)) as server:
        first = judge(server, tmp_path).capabilities
        n_requests = len(server.bodies)
        again = judge(server, tmp_path)
        assert again.capabilities == first
        assert again.metadata["max_context"] == "8192"
        assert len(server.bodies) == n_requests == 3
    written = "".join(file.read_text() for file in tmp_path.iterdir())
    assert KEY not in written
    assert json.loads(written)["model"] == "tiny"


def test_the_newer_name_of_the_token_limit_is_found(tmp_path: Path) -> None:
    with serving(FaultServer(limit_field="max_completion_tokens")) as server:
        (answer,) = answers(server, tmp_path)
    assert answer.failure is None
    assert server.presentations[0]["max_completion_tokens"] == 4096


def test_log_probabilities_come_along_where_asked(tmp_path: Path) -> None:
    with serving(FaultServer()) as server:
        (plain,) = answers(server, tmp_path)
        (rich,) = answers(server, tmp_path, log_probabilities="on")
    assert plain.log_probabilities is None
    assert json.loads(rich.log_probabilities or "") == [["7", -0.25, [["7", -0.25]]]]


@pytest.mark.parametrize(
    ("server", "fields", "message"),
    [
        (FaultServer(json_schema="refused"), {"structured_output": "on"}, "'structured_output'"),
        (
            FaultServer(log_probabilities=False),
            {"log_probabilities": "on"},
            "log_probabilities: auto",
        ),
        (FaultServer(max_model_len=2048), {}, "lower decoding.max_tokens"),
    ],
)
def test_demands_that_cannot_be_met_are_named(
    server: FaultServer, fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with serving(server), pytest.raises(ValueError, match=message):
        answers(server, tmp_path, **fields)


def test_what_is_stored_already_needs_no_endpoint(tmp_path: Path) -> None:
    nowhere = FaultServer(url="http://127.0.0.1:9/v1")
    asked = judge(nowhere, tmp_path, structured_output="off")
    assert len(identity_hash(asked.identity)) == 64
    assert answered(asked, []) == []


# identity


BASE: dict[str, Any] = {"structured_output": "off", "model": "m"}


def identity(template: str = TEMPLATE, url: str = "http://h/v1", **fields: Any) -> str:
    declared = ServedFields(**{**BASE, **fields})
    one = ServedJudge("j", declared, template, Endpoint(url, KEY), Path("/nowhere"))
    assert KEY not in json.dumps(dict(one.identity))
    return identity_hash(one.identity)


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "other"},
        {"revision": "2"},
        {"decoding": {"temperature": 0.5}},
        {"decoding": {"top_p": 0.5}},
        {"decoding": {"max_tokens": 100}},
        {"decoding": {"seed": 1}},
        {"structured_output": "on"},
        {"log_probabilities": "on"},
        {"template": TEMPLATE + " "},
        {"url": "http://other/v1"},
        {"endpoint_name": "lab"},
    ],
)
def test_what_shapes_an_answer_is_identity(fields: dict[str, Any]) -> None:
    assert identity(**fields) != identity()


@pytest.mark.parametrize(
    "fields",
    [
        {"concurrency": 99},
        {"timeout_s": 5},
        {"replicates": 3},
        {"price_per_million": {"prompt": 1, "completion": 2}},
        {"api_key_env": "OTHER_KEY"},
    ],
)
def test_what_shapes_no_answer_is_not(fields: dict[str, Any]) -> None:
    assert identity(**fields) == identity()


def test_a_named_endpoint_may_move() -> None:
    named = {"endpoint_name": "lab"}
    assert identity(url="http://a/v1", **named) == identity(url="http://b/v1", **named)


# the key


def test_the_key_shows_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(FaultServer(once("500"))) as server:
        asked = judge(server, tmp_path)
        (answer,) = answered(asked, [presentation(0)])
        shown = [repr(asked), repr(asked._endpoint), repr(answer), str(asked.identity)]
        shown += [str(asked.metadata), caplog.text, *map(repr, vars(asked).values())]
    assert "Bearer " + KEY in server.keys
    assert not [text for text in shown if KEY in text]
    assert not [file for file in tmp_path.rglob("*") if KEY in file.read_text()]
