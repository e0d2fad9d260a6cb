"""Somebody is told, once, by a real server: signed, tried again, and with nothing of others."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import dagster as dg
import pytest

from judgeline.judges.buying import BudgetError
from pipelines.definitions import SENSORS
from pipelines.sensors import messages
from pipelines.sensors.messages import (
    NOT_SET,
    TOLD_TAG,
    UntoldError,
    messages_of,
    tell,
    tell_of_failures,
    tell_of_successes,
)
from resources import webhook
from resources.webhook import (
    SIGNED_BY,
    VARIABLE,
    UndeliveredError,
    Webhook,
    signature,
    who_is_told_text,
)

SIGNING = "a-secret-of-ours"
TEXT, KEY = "a text <script> from outside", "sk-0123456789abcdef"


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent, and answers by a list of statuses; 200 once that is used up."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses: list[int] = []
        self.got: list[tuple[str, dict, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/services/T0/B0?token=hidden"

    @property
    def bodies(self) -> list[dict]:
        return [json.loads(body) for _, _, body in self.got]


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.got.append((self.path, headers, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver(monkeypatch) -> Iterator[Receiver]:
    monkeypatch.setattr(webhook, "PAUSES_S", (0.0, 0.0))
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv(VARIABLE, server.url)
        monkeypatch.setenv(SIGNED_BY, SIGNING)
        yield server
        server.shutdown()
        thread.join()


# ------------------------------------------------------------------ the webhook


def test_a_secret_that_is_no_base64_is_refused_at_once(monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, "https://example.org/hook")
    monkeypatch.setenv(SIGNED_BY, "whsec_a*c")
    with pytest.raises(ValueError, match=SIGNED_BY) as raised:
        Webhook.of_environment()
    assert "a*c" not in str(raised.value)


def test_a_message_is_signed_over_its_id_time_and_body(receiver):
    Webhook.of_environment().post("judgeline_1", {"kind": "gate"})
    ((path, headers, body),) = receiver.got
    assert path == "/services/T0/B0?token=hidden"
    assert json.loads(body) == {"id": "judgeline_1", "kind": "gate"}
    signed = b"judgeline_1." + headers["webhook-timestamp"].encode() + b"." + body
    mac = base64.b64encode(hmac.new(SIGNING.encode(), signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    assert headers["content-type"] == "application/json"
    assert "authorization" not in headers


def test_the_signature_is_that_of_the_published_example():
    """From the specification of Standard Webhooks, version 1.0."""
    key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    found = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_server_that_fails_twice_gets_it_with_the_same_id_at_the_third_attempt(receiver):
    receiver.statuses = [503, 429]
    Webhook.of_environment().post("judgeline_2", {"kind": "drift"})
    assert [headers["webhook-id"] for _, headers, _ in receiver.got] == ["judgeline_2"] * 3


@pytest.mark.parametrize(("statuses", "n_asked"), [([302], 1), ([404], 1), ([500] * 3, 3)])
def test_redirects_are_not_followed_and_refusals_say_nothing_of_the_address(
    receiver, statuses, n_asked
):
    receiver.statuses = list(statuses)
    with pytest.raises(UndeliveredError, match=f"status {statuses[0]}") as raised:
        Webhook.of_environment().post("judgeline_3", {})
    assert [path.partition("?")[0] for path, _, _ in receiver.got] == ["/services/T0/B0"] * n_asked
    assert "hidden" not in str(raised.value)
    assert "hidden" not in repr(Webhook.of_environment())


def test_a_server_that_is_not_there_is_told_without_its_address(receiver, monkeypatch):
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:1/hidden")
    with pytest.raises(UndeliveredError, match="did not answer") as raised:
        Webhook.of_environment().post("judgeline_4", {})
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/hidden", "https://me:hidden@example.org/x", "ftp://hidden",
        "hidden", "https://example.org/hidden\nx",
    ],
)  # fmt: skip
def test_an_address_that_would_be_sent_in_the_clear_is_refused(monkeypatch, url):
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(ValueError, match="https://") as raised:
        who_is_told_text()
    assert "hidden" not in str(raised.value)


# ------------------------------------------------------------------ runs


@dg.asset(name="judge_gate")
def gate():
    pass


@dg.asset_check(asset=gate)
def judge_passed_the_gate():
    said = {"observed": TEXT, "verdict": TEXT, "epoch": TEXT, "key": KEY}
    return dg.AssetCheckResult(passed=False, description=f"{TEXT} {KEY}", metadata=said)


@dg.asset_check(asset=gate)
def judge_has_not_drifted():
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"verdict": "system", "epoch": 7, "observed": TEXT},
    )


@dg.asset_check(asset=gate)
def humans_voted():
    return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN)


@dg.asset_check(asset=gate)
def nobody_minds():
    return dg.AssetCheckResult(passed=True)


@dg.asset(
    name="candidate_ratings", partitions_def=dg.StaticPartitionsDefinition(["arena|gpt", "b"])
)
def placed():
    return dg.MaterializeResult(
        metadata={"dagster/row_count": 3, "models": TEXT}, data_version=dg.DataVersion("1")
    )


@dg.asset(name="verdicts")
def verdicts():
    try:
        raise BudgetError(f"the budget is spent: {TEXT} {KEY}")
    except BudgetError as error:
        raise RuntimeError(KEY) from error


def ran(instance: dg.DagsterInstance, *assets: object, key: str | None = None) -> dg.DagsterRun:
    tags = {"dagster/partition": key} if key and placed not in assets else {}
    result = dg.materialize(
        list(assets),
        instance=instance,
        tags=tags,
        partition_key=key if placed in assets else None,
        raise_on_error=False,
    )
    return instance.get_run_by_id(result.run_id)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


CHECKS = (gate, judge_passed_the_gate, judge_has_not_drifted, humans_voted, nobody_minds)


def test_a_failed_gate_drift_placed_models_and_a_spent_budget_are_told_without_texts(
    receiver, instance
):
    run = ran(instance, *CHECKS, placed, key="arena|gpt")
    assert tell(instance, run, Webhook.of_environment()) == 3
    failed = ran(instance, verdicts, key="arena|gpt")
    assert tell(instance, failed, Webhook.of_environment()) == 1
    told = {body["kind"]: body for body in receiver.bodies}
    assert sorted(told) == ["budget", "drift", "gate", "placed"]
    assert told["drift"]["verdict"] == "system"
    assert (told["drift"]["epoch"], told["drift"]["severity"]) == (7, "WARN")
    assert "verdict" not in told["gate"]
    assert told["placed"]["n_placed"] == 3
    assert (told["budget"]["corpus"], told["budget"]["about"]) == ("arena", "verdicts")
    assert told["budget"]["text"] == "judgeline: budget, arena gpt: verdicts"
    sent = b"".join(body for _, _, body in receiver.got)
    for secret in (TEXT, KEY, "script", SIGNING):
        assert secret.encode() not in sent


def test_a_partition_that_is_no_slug_is_left_out(receiver, instance):
    run = ran(instance, verdicts, key=f"{TEXT}|gpt")
    (message,) = messages_of(instance, run).values()
    assert (message["corpus"], message["judge"]) == ("", "gpt")


def test_the_same_placement_made_again_is_no_event(receiver, instance):
    for key, n_told in (("arena|gpt", 1), ("b", 1), ("arena|gpt", 0), ("b", 0)):
        assert len(messages_of(instance, ran(instance, placed, key=key))) == n_told


def test_each_message_arrives_once_and_a_crash_between_loses_none(receiver, instance, monkeypatch):
    run = ran(instance, *CHECKS)
    receiver.statuses = [200, 500, 500, 500]  # the second message meets a server that is down
    with pytest.raises(UndeliveredError):
        tell(instance, run, Webhook.of_environment())
    run = instance.get_run_by_id(run.run_id)
    first = receiver.bodies[0]["id"]
    assert run.tags[TOLD_TAG] == first

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(instance, "add_run_tags", dies)
        with pytest.raises(KeyboardInterrupt):  # it arrived, and nobody noted it
            tell(instance, run, Webhook.of_environment())
    assert tell(instance, run, Webhook.of_environment()) == 1
    second = receiver.bodies[-1]["id"]
    assert [body["id"] for body in receiver.bodies] == [first, *[second] * 5]
    assert tell(instance, instance.get_run_by_id(run.run_id), Webhook.of_environment()) == 0


def test_the_sensors_look_at_every_run_and_come_back_to_one_that_was_not_told(
    receiver, instance, monkeypatch
):
    sensor = tell_of_successes
    assert {tell_of_successes, tell_of_failures} <= set(SENSORS)
    with dg.build_sensor_context(instance=instance) as context:
        started = sensor.evaluate_tick(context)
    run = ran(instance, *CHECKS)
    receiver.statuses = [500] * 3
    for n_told in (0, 2):
        with dg.build_sensor_context(instance=instance, cursor=started.cursor) as context:
            if n_told == 0:
                with pytest.raises(UntoldError, match="tried again at the next tick"):
                    sensor.evaluate_tick(context)
                continue
            tick = sensor.evaluate_tick(context)
            assert f"delivered 2 messages about run {run.run_id}" in tick.skip_message
    assert VARIABLE in who_is_told_text()
    monkeypatch.delenv(VARIABLE)
    assert who_is_told_text().startswith("Nobody is told")
    with dg.build_sensor_context(instance=instance, cursor=started.cursor) as context:
        assert sensor.evaluate_tick(context).skip_message == NOT_SET
    assert messages.TOLD_TAG in instance.get_run_by_id(run.run_id).tags
