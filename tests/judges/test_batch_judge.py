"""A judge asked in batches: the verdicts of the live one, its failures, its money, its key."""

import json
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
from fault_server import (
    FINAL,
    KEY,
    UNREADABLE,
    USAGE,
    Body,
    FaultServer,
    error,
    judged,
    serving,
    stated,
)
from starlette.responses import JSONResponse, Response
from test_served_client import QUICK, TEMPLATE, presentation

from judgeline.verdict.identity import identity_hash
from resources.judges.batch.collecting import Pace
from resources.judges.batch.judge import BatchJudge, LiveJudge
from resources.judges.batch.lines import Limits
from resources.judges.budget import Budget
from resources.judges.calls import call_identity
from resources.judges.judge import Answer, Presentation
from resources.judges.live.endpoint import Endpoint, EndpointError, OutOfReachError
from resources.judges.live.fields import Price, ServedFields
from resources.judges.live.judge import ServedJudge

pytestmark = pytest.mark.slow

SHOWN = [presentation(i, order) for i in range(15) for order in ("AB", "BA")]
FIELDS: dict[str, Any] = {"model": "tiny", "timeout_s": 5.0, "endpoint_name": "here"}


def batch_judge(
    server: FaultServer,
    folder: Path,
    limits: Limits | None = None,
    tell: Callable[[str], None] | None = None,
    outage_s: float = 600.0,
    warn: Callable[[str], None] = logging.warning,
    **fields: Any,
) -> BatchJudge:
    return BatchJudge(
        "j",
        ServedFields(**FIELDS, **fields),
        TEMPLATE,
        Endpoint(server.url, KEY),
        folder / "endpoints",
        QUICK,
        folder=folder / "batches",
        limits=limits,
        pace=Pace(0.001, 0.004, outage_s),
        tell=tell,
        warn=warn,
    )


def live_judge(server: FaultServer, folder: Path, **fields: Any) -> ServedJudge:
    declared = ServedFields(**FIELDS, **fields)
    endpoint = Endpoint(server.url, KEY)
    places = {"probes": folder / "endpoints", "folder": folder / "batches"}
    return LiveJudge("j", declared, TEMPLATE, endpoint, policy=QUICK, **places)


def first_is(number: int, line: Line) -> Line:
    """Answer requests about one question in some way, the others well."""

    def choose(body: Body) -> Body:
        about = f"\nquestion {number}\n" in body["messages"][0]["content"]
        return line(body) if about else answered(body)

    return choose


def by_index(judge: ServedJudge, shown: list[Presentation], budget: Budget) -> dict[int, Answer]:
    return dict(judge.answer(shown, budget))


# the same verdicts


@pytest.mark.parametrize("schema", ["bound", "ignored"])
@pytest.mark.parametrize("fields", [{}, {"log_probabilities": "on"}])
def test_verdicts_and_identity_are_those_of_the_live_judge(
    schema: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    with serving(BatchServer(json_schema=schema)) as server:
        batch, live = (
            batch_judge(server, tmp_path, **fields),
            live_judge(server, tmp_path, **fields),
        )
        assert all_answers(live, SHOWN) == all_answers(batch, SHOWN)
        assert identity_hash(batch.identity) == identity_hash(live.identity)
        assert set(server.submitted) == {call_identity(live, shown) for shown in SHOWN}
        sent = [json.loads(line)["body"] for line in server.uploads[0].splitlines()]
        assert [set(body) for body in sent] == [set(body) for body in server.presentations[:30]]


def test_texts_of_all_kinds_survive_the_file(tmp_path: Path) -> None:
    odd = [
        "line\u2028separator",
        "next\x85line",
        "nul\0",
        "\ud800 half",
        'quote" \\ {}',
        "日本語\r\n",
    ]
    shown = [
        Presentation("b", "AB", 0, f"{text} {i}", text, text * 2, "x", "y")
        for i, text in enumerate(odd)
    ]
    with serving(BatchServer()) as server:
        batch, live = batch_judge(server, tmp_path), live_judge(server, tmp_path)
        assert all_answers(live, shown) == all_answers(batch, shown)
    for separator in ("\u2028", "\x85"):
        assert separator not in server.uploads[0].decode()


def test_equal_presentations_are_submitted_once_and_all_answered(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        given = all_answers(batch_judge(server, tmp_path), [SHOWN[0], SHOWN[1], SHOWN[0]])
    assert len(given) == 3
    assert given[0] == given[2] != given[1]
    assert server.submitted.total() == 2


def test_nothing_to_ask_asks_nothing(tmp_path: Path) -> None:
    nowhere = FaultServer(url="http://127.0.0.1:9/v1")
    assert all_answers(batch_judge(nowhere, tmp_path, structured_output="off"), []) == []


# failures


def as_line(name: str) -> Line:
    """What a line holds where the live server would have failed in some way."""

    def line(body: Body) -> Body:
        faults = {**UNREADABLE, **{key: fault for key, (_, fault) in FINAL.items()}}
        reply = faults[name](FaultServer(), body)
        content = {
            "status_code": reply.status_code,
            "request_id": "r",
            "body": json.loads(reply.body),
        }
        return {"response": content, "error": None}

    return line


@pytest.mark.parametrize("name", [*FINAL, *UNREADABLE])
def test_failures_have_the_class_that_they_have_live(name: str, tmp_path: Path) -> None:
    with serving(BatchServer(lambda texts, n: name, line=as_line(name))) as server:
        (live,) = all_answers(live_judge(server, tmp_path), [SHOWN[0]])
        (given,) = all_answers(batch_judge(server, tmp_path), [SHOWN[0]])
    assert given.failure == live.failure is not None
    assert given.text == live.text
    assert server.submitted.total() == 1  # no second question


@pytest.mark.parametrize(
    "line",
    [
        turned_down(500, "oops"),
        turned_down(429, "slow down"),
        lambda body: {"response": None, "error": {"code": "c", "message": "m"}},
        lambda body: {"response": {"status_code": 200, "body": "<html>"}, "error": None},
        lambda body: {"response": 7, "error": 7},
    ],
)
def test_lines_without_a_usable_reply_are_lost_on_the_way(line: Line, tmp_path: Path) -> None:
    with serving(BatchServer(line=first_is(3, line))) as server:
        given = all_answers(batch_judge(server, tmp_path), SHOWN)
    assert [i for i, answer in enumerate(given) if answer.failure == "transport"] == [6, 7]
    assert [answer.failure for answer in given].count(None) == 28


@pytest.mark.parametrize(
    "line", [turned_down(404, "no such model"), turned_down(429, "x", "insufficient_quota")]
)
def test_what_no_request_can_mend_stops_the_run_and_keeps_the_others(
    line: Line, tmp_path: Path
) -> None:
    given: dict[int, Answer] = {}
    with serving(BatchServer(line=first_is(3, line))) as server:
        asked = batch_judge(server, tmp_path)
        with pytest.raises(EndpointError, match="run again: what was answered is kept"):
            given.update(asked.answer(SHOWN, Budget()))
        assert len(given) == 28
        server.line = answered
        left = [SHOWN[6], SHOWN[7]]
        assert [answer.failure for answer in all_answers(asked, left)] == [None, None]
    assert max(server.submitted.values()) == 2
    assert server.submitted.total() == 32


def test_a_refused_batch_names_the_reasons_without_the_key(tmp_path: Path) -> None:
    server = BatchServer(end=lambda n: "failed")
    server.reason = lambda: f"the key {KEY} has no access"  # type: ignore[method-assign]
    with serving(server), pytest.raises(EndpointError) as caught:
        all_answers(batch_judge(server, tmp_path), SHOWN)
    assert "has no access (line 1)" in str(caught.value)
    assert KEY not in str(caught.value)
    server.end = lambda n: "completed"
    with serving(server):
        assert len(all_answers(batch_judge(server, tmp_path), SHOWN)) == 30
    assert set(server.submitted.values()) == {1}


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_what_a_day_did_not_suffice_for_is_asked_again(end: str, tmp_path: Path) -> None:
    with serving(BatchServer(end=lambda n: end if n == 1 else "completed")) as server:
        first = all_answers(batch_judge(server, tmp_path), SHOWN)
        failed = [i for i, answer in enumerate(first) if answer.failure]
        assert {first[i].failure for i in failed} == {"transport"}
        assert len(failed) == 15
        second = all_answers(batch_judge(server, tmp_path), [SHOWN[i] for i in failed])
    assert {answer.failure for answer in second} == {None}
    assert server.submitted.total() == 45


def test_lines_of_strangers_are_counted_and_lines_that_are_missing_are_lost(tmp_path: Path) -> None:
    server = BatchServer()

    def tamper(step: str) -> None:
        if step == "content":
            for name, content in server.files.items():
                if b'"response"' in content:
                    lines = content.splitlines()
                    strange = [b"no JSON", b"[]", b'{"custom_id": "stranger"}', b"", lines[5]]
                    server.files[name] = b"\n".join([*lines[1:], *strange])

    server.before = tamper
    with serving(server):
        asked = batch_judge(server, tmp_path)
        given = all_answers(asked, SHOWN)
    assert [answer.failure for answer in given].count("transport") == 1
    assert asked.counts["unknown"] == 3


def test_a_parse_error_that_is_stored_is_asked_again_and_one_that_is_not_comes_again(
    tmp_path: Path,
) -> None:
    with serving(BatchServer(line=lambda body: answered(body, "Response 1 is better."))) as server:
        asked = batch_judge(server, tmp_path)
        assert {answer.failure for answer in all_answers(asked, SHOWN)} == {"parse_error"}
        server.line = answered
        again = all_answers(batch_judge(server, tmp_path), SHOWN)  # as after a kill
        assert {answer.failure for answer in again} == {"parse_error"}
        assert set(server.submitted.values()) == {1}
        stored = {call_identity(asked, shown): datetime.now(UTC) for shown in SHOWN}
        asked.acknowledge(dict.fromkeys(stored, datetime(2020, 1, 1, tzinfo=UTC)))  # of before
        assert all_answers(batch_judge(server, tmp_path), SHOWN) == again
        assert set(server.submitted.values()) == {1}
        asked.acknowledge(stored)
        third = all_answers(batch_judge(server, tmp_path), SHOWN)
        assert {answer.failure for answer in third} == {None}
        assert set(server.submitted.values()) == {2}


# the way there


def test_a_lost_store_costs_nothing(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        given = all_answers(batch_judge(server, tmp_path), SHOWN)
        assert all_answers(batch_judge(server, tmp_path), SHOWN) == given
    assert set(server.submitted.values()) == {1}


def test_results_that_the_provider_deleted_are_asked_for_anew(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        given = all_answers(batch_judge(server, tmp_path), SHOWN)
        server.files.clear()
        assert all_answers(batch_judge(server, tmp_path), SHOWN) == given
    assert set(server.submitted.values()) == {2}


def without(server: BatchServer, kind: str) -> Callable[[str], None]:
    """Have the provider delete one kind of result file before it hands over any."""

    def before(step: str) -> None:
        if step == "content":
            for batch in server.batches.values():
                server.files.pop(batch[kind], None)

    return before


@pytest.mark.parametrize("kind", ["output_file_id", "error_file_id"])
def test_results_of_which_one_file_is_gone_keep_what_the_other_holds(
    kind: str, tmp_path: Path
) -> None:
    budget = Budget(calls=30)
    server = BatchServer(line=first_is(3, turned_down(400, "blocked", "content_filter")))
    server.end = lambda n: "expired"
    server.share_done = 0.8  # 22 answered, 2 turned down, 6 not carried out
    server.before = without(server, kind)
    with serving(server):
        given = by_index(batch_judge(server, tmp_path), SHOWN, budget)
        kept = Counter(answer.failure for answer in given.values())
        assert kept == (
            {"transport": 28, "content_filter": 2}
            if kind == "output_file_id"
            else {None: 22, "transport": 8}
        )
        assert (server.submitted.total(), budget.n_open) == (30, 0)
        assert budget.spent.calls == (22 if kind == "output_file_id" else 30)
        server.before, server.end, server.line = (
            (lambda step: None),
            (lambda n: "completed"),
            answered,
        )
        left = [SHOWN[i] for i, answer in given.items() if answer.failure == "transport"]
        assert {one.failure for one in all_answers(batch_judge(server, tmp_path), left)} == {None}
    assert server.submitted.total() == 30 + len(left)


def test_a_provider_that_deletes_everything_is_paid_once_in_a_run(tmp_path: Path) -> None:
    budget = Budget()
    server = BatchServer()
    server.before = without(server, "output_file_id")
    with serving(server):
        given = by_index(batch_judge(server, tmp_path), SHOWN, budget)
    assert {answer.failure for answer in given.values()} == {"transport"}
    assert (server.submitted.total(), budget.spent.calls, budget.n_open) == (30, 30, 0)


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
        given = all_answers(batch_judge(server, tmp_path), SHOWN)
    assert {answer.failure for answer in given} == {None}
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

    def hold(step: str) -> None:
        for batch in list(server.batches.values()):
            batch["status"] = "in_progress"

    def ask() -> None:
        try:
            judge = batch_judge(server, tmp_path, tell=said.append, warn=said.append, outage_s=1.0)
            all_answers(judge, SHOWN)
        except OutOfReachError as error:
            ends.append(error)

    asking = threading.Thread(target=ask)
    with serving(BatchServer(before=hold)) as server:
        asking.start()
        while "look" not in server.steps:
            time.sleep(0.01)
    asking.join(15)
    assert [server.url in str(error) for error in ends] == [True]
    assert any("tried again for 1 s at most" in text for text in said)
    assert "batches with 30 requests go on" in said[-1]


@pytest.mark.parametrize(("step", "n_well"), [("look", 1), ("content", 0)])
def test_an_outage_while_batches_are_under_way_is_waited_for(
    step: str, n_well: int, tmp_path: Path
) -> None:
    news: list[str] = []
    outage = Outage(step, n_well, 5 * QUICK.attempts)
    with serving(BatchServer(before=outage)) as server:
        given = all_answers(batch_judge(server, tmp_path, warn=news.append), SHOWN)
    assert {answer.failure for answer in given} == {None}
    assert outage.left == 0
    assert sum("the network is down" in line for line in news) == 1
    assert set(server.submitted.values()) == {1}


@pytest.mark.parametrize(("n_well", "outage_s"), [(0, 600.0), (1, 0.0)])
def test_an_endpoint_that_was_never_reached_or_not_for_too_long_ends_the_wait(
    n_well: int, outage_s: float, tmp_path: Path
) -> None:
    outage = Outage("look", n_well, 10**9)
    with (
        serving(BatchServer(before=outage)) as server,
        pytest.raises(EndpointError, match="the network is down"),
    ):
        all_answers(batch_judge(server, tmp_path, outage_s=outage_s), SHOWN)


@pytest.mark.parametrize("keeps_metadata", [True, False])
def test_a_creation_whose_reply_was_lost_is_found(keeps_metadata: bool, tmp_path: Path) -> None:
    lost = iter([True])

    def after(name: str) -> Any:
        return error(502, "lost") if name == "create" and next(lost, False) else None

    others = {f"old_{i}": {"id": f"old_{i}", "input_file_id": "x"} for i in range(250)}
    server = BatchServer(after=after, keeps_metadata=keeps_metadata, batches=dict(others))
    with serving(server):
        given = all_answers(batch_judge(server, tmp_path), SHOWN)
    assert {answer.failure for answer in given} == {None}
    assert set(server.submitted.values()) == {1}


UNCLEAR: dict[str, Callable[[], Response]] = {
    "empty object": lambda: JSONResponse({}),
    "another object": lambda: JSONResponse({"result": "ok"}),
    "empty id": lambda: JSONResponse({"id": ""}),
    "page of a proxy": lambda: Response("<html>proxy</html>", media_type="text/html"),
    "no JSON": lambda: Response("{", media_type="application/json"),
    "unavailable for long": lambda: error(503, "later", retry_after="9999"),
    "redirect": lambda: Response(status_code=303, headers={"location": "/elsewhere"}),
}


@pytest.mark.parametrize("reply", UNCLEAR)
@pytest.mark.parametrize("n_replies", [1, 100])
def test_a_creation_whose_reply_says_nothing_is_found_and_not_repeated(
    reply: str, n_replies: int, tmp_path: Path
) -> None:
    left = iter(range(n_replies))

    def after(name: str) -> Any:
        return UNCLEAR[reply]() if name == "create" and next(left, None) is not None else None

    with serving(BatchServer(after=after)) as server:
        for _ in range(2):
            given = all_answers(batch_judge(server, tmp_path), SHOWN)
            assert {answer.failure for answer in given} == {None}
    assert len(server.batches) == 1
    assert set(server.submitted.values()) == {1}


def test_a_batch_that_cannot_be_searched_for_stays_written_down(tmp_path: Path) -> None:
    def after(name: str) -> Any:
        return JSONResponse({}) if name in ("create", "list") else None

    with serving(BatchServer(after=after)) as server:
        with pytest.raises(EndpointError, match="did not list its batches"):
            all_answers(batch_judge(server, tmp_path), SHOWN)
        server.after = lambda name: None
        assert len(all_answers(batch_judge(server, tmp_path), SHOWN)) == 30
    assert set(server.submitted.values()) == {1}


def test_an_endpoint_without_batches_says_so_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with serving(FaultServer()) as server, pytest.raises(EndpointError) as caught:
        all_answers(batch_judge(server, tmp_path), SHOWN)
    assert "offers the Batch API" in str(caught.value)
    assert not list((tmp_path / "batches").rglob("*.json"))


def test_another_account_is_not_asked_to_pay_again(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        all_answers(batch_judge(server, tmp_path), SHOWN)
        server.batches.clear()
        with pytest.raises(
            EndpointError, match="use the key that submitted it, or delete"
        ) as caught:
            all_answers(batch_judge(server, tmp_path), SHOWN)
    (record,) = (tmp_path / "batches").rglob("*.json")
    assert str(record) in str(caught.value)


def test_a_damaged_record_is_not_ignored(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        all_answers(batch_judge(server, tmp_path), SHOWN)
        (record,) = (tmp_path / "batches").rglob("*.json")
        record.write_text("{")
        with pytest.raises(ValueError, match=r"no record of a submitted batch.*paid for again"):
            all_answers(batch_judge(server, tmp_path), SHOWN)


# limits


@pytest.mark.parametrize(
    ("limits", "n_batches"), [(Limits(7, 10**9), 5), (Limits(50, 30_000), None), (Limits(30), 1)]
)
def test_batches_keep_to_the_limits(limits: Limits, n_batches: int | None, tmp_path: Path) -> None:
    server = BatchServer(most_requests=limits.requests, most_bytes=limits.bytes)
    with serving(server):
        given = all_answers(batch_judge(server, tmp_path, limits), SHOWN)
    assert {answer.failure for answer in given} == {None}
    assert set(server.submitted.values()) == {1}
    assert len(server.batches) == (n_batches or len(server.uploads)) > (n_batches is None)
    assert all(len(one) <= limits.bytes for one in server.uploads)


def test_one_refused_batch_of_several_keeps_the_others(tmp_path: Path) -> None:
    given: dict[int, Answer] = {}
    with serving(BatchServer(end=lambda n: "failed" if n == 3 else "completed")) as server:
        with pytest.raises(EndpointError, match="the model does not exist"):
            given.update(batch_judge(server, tmp_path, Limits(10)).answer(SHOWN, Budget()))
        assert len(given) == 20
    assert server.submitted.total() == 20


# money


def test_the_budget_is_reserved_before_and_settled_after(tmp_path: Path) -> None:
    price = Price(prompt=1000.0, completion=5000.0)
    budget = Budget(calls=12, money=1e9, currency="USD")
    with serving(BatchServer()) as server:
        given = by_index(batch_judge(server, tmp_path, price_per_million=price), SHOWN, budget)
    assert sorted(given) == list(range(12))
    assert server.submitted.total() == 12
    assert budget.spent.calls == 12
    assert budget.spent.prompt_tokens == 12 * USAGE[0]
    assert budget.spent.completion_tokens == 12 * USAGE[1]
    assert budget.spent.money == pytest.approx(12 * (USAGE[0] + 5 * USAGE[1]) / 1000)
    assert budget.n_open == 0


def test_what_a_batch_left_over_buys_another(tmp_path: Path) -> None:
    budget = Budget(tokens=25_000)  # few at a time: each may take its limit of tokens
    with serving(BatchServer()) as server:
        given = by_index(batch_judge(server, tmp_path), SHOWN, budget)
    assert sorted(given) == list(range(30))
    assert len(server.batches) > 2
    assert budget.spent.prompt_tokens + budget.spent.completion_tokens == 30 * sum(USAGE)


def test_implausible_usage_counts_as_reserved_in_batches_too(tmp_path: Path) -> None:
    def stating_little(body: Body) -> Body:
        result = answered(body)
        result["response"]["body"]["usage"] = stated((1, 1))
        return result

    budget, warnings = Budget(tokens=60_000), []
    with serving(BatchServer(line=stating_little)) as server:
        judge = batch_judge(server, tmp_path, warn=warnings.append)
        given = by_index(judge, SHOWN, budget)
    assert {(one.prompt_tokens, one.completion_tokens) for one in given.values()} == {(1, 1)}
    assert 0 < len(given) < len(SHOWN)
    assert budget.spent.prompt_tokens + budget.spent.completion_tokens > 1700 * len(given)
    (warning,) = warnings
    assert "implausible usage: the endpoint states 1 + 1 tokens" in warning
    assert judge.counts["implausible_usage"] == len(given)


def test_what_was_not_carried_out_costs_nothing(tmp_path: Path) -> None:
    budget = Budget()
    with serving(BatchServer(end=lambda n: "expired")) as server:
        by_index(batch_judge(server, tmp_path), SHOWN, budget)
    assert budget.spent.calls == 15


def test_what_goes_on_without_us_counts_in_full(tmp_path: Path) -> None:
    budget = Budget(calls=30)
    with serving(BatchServer(end=lambda n: "completed")) as server:
        given = batch_judge(server, tmp_path, Limits(10)).answer(SHOWN, budget)
        next(given)
        given.close()  # type: ignore[attr-defined]
    assert (budget.n_open, budget.spent.calls) == (0, 30)
    assert budget.spent.prompt_tokens > 3000


def test_collecting_what_was_submitted_before_needs_no_budget(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        stopped = batch_judge(server, tmp_path).answer(SHOWN[:10], Budget())
        next(stopped)
        stopped.close()  # type: ignore[attr-defined]
        budget = Budget(calls=5)
        given = by_index(batch_judge(server, tmp_path), SHOWN, budget)
    assert sorted(given) == list(range(15))
    assert budget.spent.calls == 5


def test_a_budget_in_money_needs_a_price(tmp_path: Path) -> None:
    with serving(BatchServer()) as server, pytest.raises(ValueError, match="has no price"):
        by_index(batch_judge(server, tmp_path), SHOWN, Budget(money=1.0, currency="USD"))
    assert not server.batches


# news, and the key


def test_news_tell_how_batches_are(tmp_path: Path) -> None:
    news: list[str] = []
    with serving(BatchServer(line=first_is(3, turned_down(500, "x")))) as server:
        all_answers(batch_judge(server, tmp_path, tell=news.append), SHOWN)
    assert [line.split(": ")[1].split(",")[0] for line in news] == [
        "validating",
        "in_progress",
        "finalizing",
        "completed",
    ]
    assert news[-1].endswith("28 answered, 2 failed")
    assert "of 30 requests" in news[0]


def test_a_wrong_key_is_told_at_once_and_shows_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(BatchServer()) as server:
        all_answers(batch_judge(server, tmp_path), SHOWN[:4])
        server.before = lambda step: error(401, f"incorrect key {KEY}", "invalid_api_key")
        with pytest.raises(EndpointError) as caught:
            all_answers(batch_judge(server, tmp_path), SHOWN)
    assert "incorrect key [key]" in str(caught.value)
    assert server.steps.count("upload") == 2  # no retries of what cannot succeed
    assert server.keys == {f"Bearer {KEY}"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 2
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in caplog.text + "".join(map(repr, vars(batch_judge(server, tmp_path)).values()))


def test_answers_of_a_fixed_body_are_those_of_its_texts(tmp_path: Path) -> None:
    with serving(BatchServer()) as server:
        (given,) = all_answers(batch_judge(server, tmp_path), [SHOWN[0]])
    (line,) = [json.loads(one) for one in server.uploads[0].splitlines()]
    assert given.text == judged(line["body"])
    assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
