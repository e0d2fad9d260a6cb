"""A judge asked in batches: one purchase whatever happens on the way, its limits and its news."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from answering import answered as all_answers
from batch_server import BatchServer, Line, answered, turned_down
from channels import QUICK, SHOWN, batch
from fault_server import KEY, USAGE, Body, FaultServer, error, serving, stated
from starlette.responses import JSONResponse, Response

from judgeline.judges.batch.provider import Limits, read_result
from judgeline.judges.budget import Budget
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.judge import call_identity
from judgeline.judges.live.endpoint import EndpointError, OutOfReachError
from judgeline.judges.presentation import Answer, Presentation

pytestmark = pytest.mark.slow
FINE = [None] * 30


def failures(
    server: FaultServer, folder: Path, shown: list[Presentation] = SHOWN, **how: Any
) -> list[str | None]:
    return [answer.failure for answer in all_answers(batch(server, folder, **how), shown)]


def on_third(line: Line) -> Line:
    """Answer requests about question 3 in some way, the others well."""

    def choose(body: Body) -> Body:
        about = "\nquestion 3\n" in body["messages"][0]["content"]
        return line(body) if about else answered(body)

    return choose


def hold(server: BatchServer) -> Callable[[str], None]:
    """Let no batch end."""

    def before(step: str) -> None:
        for made in list(server.batches.values()):
            made["status"] = "in_progress"

    return before


# what comes of requests


def test_equal_presentations_are_submitted_once_and_all_answered(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        given = all_answers(batch(server, tmp_path), [SHOWN[0], SHOWN[1], SHOWN[0]])
    assert len(given) == 3
    assert given[0] == given[2] != given[1]
    assert server.submitted.total() == 2


def success(body: Any) -> dict[str, Any]:
    return {"response": {"status_code": 200, "body": body}, "error": None}


def test_a_success_without_a_completion_is_unreadable(tmp_path: Path) -> None:
    with serving(BatchServer(line=on_third(lambda body: success("<html>")))) as server:
        given = [answer for answer in all_answers(batch(server, tmp_path), SHOWN) if answer.failure]
    assert [one.failure for one in given] == ["unreadable_reply"] * 2
    assert {one.said for one in given} == {'the reply holds no choices: "<html>"'}


@pytest.mark.parametrize(
    "line",
    [
        turned_down(500, "oops"),
        turned_down(429, "slow down"),
        lambda body: {"response": None, "error": {"code": "c", "message": "m"}},
        lambda body: success({"error": {"message": "overloaded", "code": 503}}),
        lambda body: {"response": 7, "error": 7},
    ],
)
def test_lines_without_a_usable_reply_are_lost_on_the_way(line: Line, tmp_path: Path) -> None:
    with serving(BatchServer(line=on_third(line))) as server:
        given = failures(server, tmp_path)
    assert given == [None] * 6 + ["transport"] * 2 + [None] * 22


@pytest.mark.parametrize(
    ("error", "tokens", "is_billed", "said"),
    [
        ({"message": "blocked", "code": "content_filter"}, None, True, "HTTP 200: blocked"),
        ({"message": "overloaded", "code": 503}, None, False, "HTTP 503: overloaded"),
        ({"message": "broke off", "code": 502}, USAGE, True, "HTTP 502: broke off"),
        ("no luck", None, True, "HTTP 200: no luck"),
    ],
)
def test_an_error_in_a_success_is_billed_as_live_and_keeps_its_words(
    error, tokens, is_billed, said
):
    body = {"error": error, **({"usage": stated(tokens)} if tokens else {})}
    result = read_result(success(body), SHOWN[0], QUICK, RUBRIC)
    assert (result.is_billed, result.answer.said) == (is_billed, said)
    answer = result.answer
    assert (answer.prompt_tokens, answer.completion_tokens) == (tokens or (0, 0))


@pytest.mark.parametrize(
    "line", [turned_down(404, "no such model"), turned_down(429, "x", "insufficient_quota")]
)
def test_what_no_request_can_mend_stops_the_run_and_keeps_the_others(line, tmp_path):
    given: dict[int, Answer] = {}
    with serving(BatchServer(line=on_third(line))) as server:
        asked = batch(server, tmp_path)
        with pytest.raises(EndpointError, match="run again: what was answered is kept"):
            given.update(asked.answer(SHOWN, Budget()))
        assert len(given) == 28
        server.line = answered
        assert failures(server, tmp_path, SHOWN[6:8]) == [None] * 2
    assert (max(server.submitted.values()), server.submitted.total()) == (2, 32)


def test_a_refused_batch_names_the_reasons_without_the_key(tmp_path: Path) -> None:
    server = BatchServer(end=lambda n: "failed")
    server.reason = lambda: f"the key {KEY} has no access"  # type: ignore[method-assign]
    with serving(server), pytest.raises(EndpointError, match=r"has no access \(line 1\)") as caught:
        failures(server, tmp_path)
    assert KEY not in str(caught.value)
    server.end = lambda n: "completed"
    with serving(server):
        assert failures(server, tmp_path) == FINE
    assert set(server.submitted.values()) == {1}


def test_one_refused_batch_of_several_keeps_the_others(tmp_path: Path) -> None:
    given: dict[int, Answer] = {}
    with (
        serving(BatchServer(end=lambda n: "failed" if n == 3 else "completed")) as server,
        pytest.raises(EndpointError, match="the model does not exist"),
    ):
        given.update(batch(server, tmp_path, Limits(10)).answer(SHOWN, Budget()))
    assert len(given) == server.submitted.total() == 20


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_what_a_day_did_not_suffice_for_costs_nothing_and_is_asked_again(end, tmp_path):
    budget = Budget()
    with serving(BatchServer(end=lambda n: end if n == 1 else "completed")) as server:
        first = dict(batch(server, tmp_path).answer(SHOWN, budget))
        lost = [SHOWN[i] for i, one in first.items() if one.status == "transport"]
        assert len(lost) == budget.spent.calls == 15
        assert failures(server, tmp_path, lost) == [None] * 15
    assert server.submitted.total() == 45


def test_lines_of_strangers_are_counted_and_lines_that_are_missing_are_lost(tmp_path: Path) -> None:
    server = BatchServer()

    def tamper(step: str) -> None:
        for name, content in server.files.items():
            if step == "content" and b'"response"' in content:
                lines = content.splitlines()
                strange = [b"no JSON", b"[]", b'{"custom_id": "stranger"}', b"", lines[5]]
                server.files[name] = b"\n".join([*lines[1:], *strange])

    server.before = tamper
    with serving(server):
        asked = batch(server, tmp_path)
        given = all_answers(asked, SHOWN)
    assert [answer.failure for answer in given].count("transport") == 1
    assert asked.counts["unknown"] == 3


def test_a_failure_that_is_stored_is_asked_again_and_one_that_is_not_comes_again(tmp_path):
    unread = ["parse_error"] * 30
    with serving(BatchServer(line=lambda body: answered(body, "Response 1 is better."))) as server:
        asked = batch(server, tmp_path)
        assert failures(server, tmp_path) == unread
        server.line = answered
        assert failures(server, tmp_path) == unread  # as after a kill
        stored = {call_identity(asked, shown): datetime.now(UTC) for shown in SHOWN}
        asked.acknowledge(dict.fromkeys(stored, datetime(2020, 1, 1, tzinfo=UTC)))  # of before
        assert failures(server, tmp_path) == unread
        assert set(server.submitted.values()) == {1}
        asked.acknowledge(stored)
        assert failures(server, tmp_path) == FINE
    assert set(server.submitted.values()) == {2}


# results that are gone


@pytest.mark.parametrize(("deletes", "n_times"), [(False, 1), (True, 2)])
def test_a_lost_store_costs_nothing_unless_the_results_are_gone_too(deletes, n_times, tmp_path):
    with serving(BatchServer()) as server:
        given = all_answers(batch(server, tmp_path), SHOWN)
        if deletes:
            server.files.clear()
        assert all_answers(batch(server, tmp_path), SHOWN) == given
    assert set(server.submitted.values()) == {n_times}


def without(server: BatchServer, kind: str) -> Callable[[str], None]:
    """Have the provider delete one kind of result file before it hands over any."""

    def before(step: str) -> None:
        if step == "content":
            for made in server.batches.values():
                server.files.pop(made[kind], None)

    return before


@pytest.mark.parametrize(
    ("kind", "kept", "n_charged"),
    [
        ("output_file_id", {"transport": 28, "content_filter": 2}, 22),
        ("error_file_id", {None: 22, "transport": 8}, 30),
    ],
)
def test_of_results_that_are_gone_in_part_the_rest_counts(kind, kept, n_charged, tmp_path):
    budget = Budget(calls=30)
    server = BatchServer(line=on_third(turned_down(400, "blocked", "content_filter")))
    server.end, server.share_done = (lambda n: "expired"), 0.8  # 22 answered, 2 turned down, 6 not
    server.before = without(server, kind)
    with serving(server):
        given = dict(batch(server, tmp_path).answer(SHOWN, budget))
        assert Counter(one.answer.failure for one in given.values()) == kept
        assert (server.submitted.total(), budget.n_open, budget.spent.calls) == (30, 0, n_charged)
        server.before, server.line = (lambda step: None), answered
        server.end = lambda n: "completed"
        left = [SHOWN[i] for i, one in given.items() if one.status == "transport"]
        assert set(failures(server, tmp_path, left)) == {None}
    assert server.submitted.total() == 30 + len(left)


def test_a_provider_that_deletes_everything_is_paid_once_in_a_run(tmp_path: Path) -> None:
    budget, server = Budget(), BatchServer()
    server.before = without(server, "output_file_id")
    with serving(server):
        given = dict(batch(server, tmp_path).answer(SHOWN, budget))
    assert {one.status for one in given.values()} == {"transport"}
    assert (server.submitted.total(), budget.spent.calls, budget.n_open) == (30, 30, 0)


# the way there


@pytest.mark.parametrize("step", ["upload", "look", "content", "list", "find", "delete"])
@pytest.mark.parametrize("fault", [500, 429, 408])
def test_what_passes_is_tried_again(step: str, fault: int, tmp_path: Path) -> None:
    seen: list[str] = []

    def before(name: str) -> Any:
        if name == "create" and "create" not in seen:
            seen.append(name)
            return error(500, "lost on the way")  # so that files and batches are searched, too
        if name == step and seen.count(name) < 2:
            seen.append(name)
            return error(fault, "busy", retry_after_ms="1")
        return None

    with serving(BatchServer(before=before)) as server:
        assert failures(server, tmp_path) == FINE
    assert seen.count(step) == 2
    assert set(server.submitted.values()) == {1}


class Outage:
    """Some step fails for as long as many a run of attempts, after it went well for a while."""

    def __init__(self, step: str, n_well: int, n_failures: int) -> None:
        self._step, self._well, self.left = step, n_well, n_failures

    def __call__(self, name: str) -> Any:
        self._well -= name == self._step
        if name != self._step or self._well >= 0 or self.left == 0:
            return None
        self.left -= 1
        return error(503, "the network is down")


def test_a_provider_that_is_gone_is_given_up_at_the_limit_that_was_said(tmp_path: Path) -> None:
    said: list[str] = []
    ends: list[BaseException] = []

    def ask() -> None:
        try:
            failures(server, tmp_path, tell=said.append, warn=said.append, outage_s=1.0)
        except OutOfReachError as error:
            ends.append(error)

    asking, server = threading.Thread(target=ask), BatchServer()
    server.before = hold(server)
    with serving(server):
        asking.start()
        while "look" not in server.steps:
            time.sleep(0.01)
    asking.join(15)
    assert [server.url in str(error) for error in ends] == [True]
    assert any("tried again for 1 s at most" in text for text in said)
    assert "batches with 30 requests go on" in said[-1]


@pytest.mark.parametrize(("step", "n_well"), [("look", 1), ("content", 0)])
def test_an_outage_while_batches_are_under_way_is_waited_for(step, n_well, tmp_path):
    news: list[str] = []
    outage = Outage(step, n_well, 5 * QUICK.attempts)
    with serving(BatchServer(before=outage)) as server:
        assert failures(server, tmp_path, warn=news.append) == FINE
    assert outage.left == 0
    assert sum("the network is down" in line for line in news) == 1
    assert set(server.submitted.values()) == {1}


@pytest.mark.parametrize(("n_well", "outage_s"), [(0, 600.0), (1, 0.0)])
def test_an_endpoint_not_reached_for_too_long_ends_the_wait(n_well, outage_s, tmp_path):
    outage = Outage("look", n_well, 10**9)
    with (
        serving(BatchServer(before=outage)) as server,
        pytest.raises(EndpointError, match="the network is down"),
    ):
        failures(server, tmp_path, outage_s=outage_s)


REPLIES: dict[str, Callable[[], Response]] = {
    "lost": lambda: error(502, "lost"),
    "empty object": lambda: JSONResponse({}),
    "another object": lambda: JSONResponse({"result": "ok"}),
    "empty id": lambda: JSONResponse({"id": ""}),
    "page of a proxy": lambda: Response("<html>proxy</html>", media_type="text/html"),
    "no JSON": lambda: Response("{", media_type="application/json"),
    "unavailable for long": lambda: error(503, "later", retry_after="9999"),
    "redirect": lambda: Response(status_code=303, headers={"location": "/elsewhere"}),
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize(("n_replies", "keeps_metadata"), [(1, True), (1, False), (100, True)])
def test_a_creation_with_a_void_reply_is_not_repeated(reply, n_replies, keeps_metadata, tmp_path):
    left = iter(range(n_replies))

    def after(name: str) -> Any:
        return REPLIES[reply]() if name == "create" and next(left, None) is not None else None

    others = {f"old_{i}": {"id": f"old_{i}", "input_file_id": "x"} for i in range(250)}
    server = BatchServer(after=after, keeps_metadata=keeps_metadata, batches=dict(others))
    with serving(server):
        for _ in range(2):
            assert failures(server, tmp_path) == FINE
    assert len(server.batches) == 251
    assert set(server.submitted.values()) == {1}


def test_a_batch_that_cannot_be_searched_for_stays_written_down(tmp_path: Path) -> None:
    def after(name: str) -> Any:
        return JSONResponse({}) if name in ("create", "list") else None

    with serving(BatchServer(after=after)) as server:
        with pytest.raises(EndpointError, match="did not list its batches"):
            failures(server, tmp_path)
        server.after = lambda name: None
        assert failures(server, tmp_path) == FINE
    assert set(server.submitted.values()) == {1}


def test_an_endpoint_without_batches_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with serving(FaultServer()) as server, pytest.raises(EndpointError, match="the Batch API"):
        failures(server, tmp_path)
    assert not list((tmp_path / "batches").rglob("*.json"))


def test_another_account_is_not_asked_to_pay_again_and_a_damaged_record_is_not_ignored(tmp_path):
    with serving(BatchServer()) as server:
        failures(server, tmp_path)
        (record,) = (tmp_path / "batches").rglob("*.json")
        server.batches.clear()
        with pytest.raises(EndpointError, match="use the key that submitted it, or") as caught:
            failures(server, tmp_path)
        assert str(record) in str(caught.value)
        record.write_text("{")
        with pytest.raises(ValueError, match=r"no record of a submitted batch.*paid for again"):
            failures(server, tmp_path)


# limits and money


@pytest.mark.parametrize(
    ("limits", "n_batches"), [(Limits(7, 10**9), 5), (Limits(50, 30_000), None), (Limits(30), 1)]
)
def test_batches_keep_to_the_limits(limits: Limits, n_batches: int | None, tmp_path: Path) -> None:
    server = BatchServer(most_requests=limits.requests, most_bytes=limits.bytes)
    with serving(server):
        assert failures(server, tmp_path, limits=limits) == FINE
    assert set(server.submitted.values()) == {1}
    assert len(server.batches) == (n_batches or len(server.uploads)) > (n_batches is None)
    assert all(len(one) <= limits.bytes for one in server.uploads)


def test_what_a_batch_left_over_buys_another(tmp_path: Path) -> None:
    budget = Budget(tokens=25_000)  # few at a time: each may take its limit of tokens
    with serving(BatchServer()) as server:
        given = dict(batch(server, tmp_path).answer(SHOWN, budget))
    assert sorted(given) == list(range(30))
    assert len(server.batches) > 2
    assert budget.spent.prompt_tokens + budget.spent.completion_tokens == 30 * sum(USAGE)


def test_what_goes_on_without_us_counts_in_full_and_collecting_it_costs_nothing(tmp_path):
    stopped, later = Budget(calls=10), Budget(calls=5)
    with serving(BatchServer()) as server:
        given = batch(server, tmp_path, Limits(5)).answer(SHOWN[:10], stopped)
        next(given)
        given.close()  # type: ignore[attr-defined]
        assert (stopped.n_open, stopped.spent.calls) == (0, 10)
        assert stopped.spent.prompt_tokens > 1000
        collected = dict(batch(server, tmp_path).answer(SHOWN, later))
    assert sorted(collected) == list(range(15))
    assert later.spent.calls == 5


# news, and the key


def test_news_tell_how_batches_are(tmp_path: Path) -> None:
    news: list[str] = []
    with serving(BatchServer(line=on_third(turned_down(500, "x")))) as server:
        failures(server, tmp_path, tell=news.append)
    states = [line.split(": ")[1].split(",")[0] for line in news]
    assert states == ["validating", "in_progress", "finalizing", "completed"]
    assert news[-1].endswith("28 answered, 2 failed")
    assert "of 30 requests" in news[0]


def test_a_wrong_key_is_told_at_once_and_shows_nowhere(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with serving(BatchServer()) as server:
        failures(server, tmp_path, SHOWN[:4])
        server.before = lambda step: error(401, f"incorrect key {KEY}", "invalid_api_key")
        with pytest.raises(EndpointError, match=r"incorrect key \[key\]") as caught:
            failures(server, tmp_path)
    assert server.steps.count("upload") == 2  # no retries of what cannot succeed
    assert server.keys == {f"Bearer {KEY}"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 2
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in caplog.text + str(caught.value)
