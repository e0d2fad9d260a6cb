"""In which pool a judge is asked, and that its place is held while it is asked and no longer."""

from types import SimpleNamespace

import dagster as dg
import pytest
from sqlalchemy.exc import OperationalError

from assets.judging import budgets
from assets.judging.asking import _log
from assets.judging.budgets import retried_later
from assets.judging.pools import pool_of
from judgeline.judges.buying import BudgetError
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.live.endpoint import EndpointError, OutOfReachError


def judge(kind: str, **fields: object) -> JudgeDefinition:
    return JudgeDefinition(slug="j", display_name="J", family="none", kind=kind, **fields)


@pytest.mark.parametrize(
    ("definition", "pool"),
    [
        (judge("recorded"), None),
        (judge("openai", model="m", base_url="http://127.0.0.1:8000/v1"),
         "endpoint-127-0-0-1-8000"),
        (judge("openai", model="m", base_url="https://api.example.com/v1"),
         "endpoint-api-example-com"),
        (judge("openai", model="m", endpoint_name="Our Server/2"), "endpoint-our-server-2"),
        (judge("openai", model="m", endpoint_name="e", batch=True), None),
        (judge("vllm", model="m"), "gpu"),
        (judge("vllm", model="m", vllm={"pool": "gpu-2"}), "gpu-2"),
    ],
)  # fmt: skip
def test_judges_of_one_endpoint_share_a_pool(definition, pool):
    assert pool_of(definition) == pool


def test_the_endpoint_may_be_named_by_the_environment(monkeypatch):
    monkeypatch.setenv("JUDGE_URL", "https://llm.example.org/v1")
    assert pool_of(judge("openai", model="m", base_url="JUDGE_URL")) == "endpoint-llm-example-org"
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert pool_of(judge("openai", model="m")) == "endpoint-api-openai-com"


def outcome(failures: list[Exception], *, watched: bool) -> tuple[bool, int]:
    """Whether a step that fails like this, one attempt after another, succeeds in the end, and
    how many attempts it got."""
    left, attempts = list(failures), []

    @dg.asset
    def asked(context: dg.AssetExecutionContext) -> None:
        attempts.append(context.retry_number)
        with retried_later(context):
            if left:
                raise left.pop(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "FIRST_WAIT_S", 0.0)
        if not watched:
            patch.setattr(budgets, "is_watched", lambda context: False)
        with dg.DagsterInstance.ephemeral() as instance:
            result = dg.materialize([asked], instance=instance, raise_on_error=False)
    assert attempts == list(range(len(attempts)))
    return result.success, len(attempts)


def test_a_database_that_is_away_may_come_back():
    away = OperationalError("SELECT 1", None, Exception("connection refused"))
    wrapped = RuntimeError("too many retries for DB connection")  # as Dagster's storage does
    wrapped.__cause__ = away
    assert outcome([wrapped], watched=False) == (True, 2)


def test_answers_do_not_wait_for_their_log():
    class Log:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def log(self, level: int, text: str) -> None:
            raise self.error

    away = SimpleNamespace(log=Log(OperationalError("INSERT", None, Exception("refused"))))
    _log(away, "half way")
    with pytest.raises(ZeroDivisionError):
        _log(SimpleNamespace(log=Log(ZeroDivisionError())), "half way")


def test_what_may_pass_is_tried_again():
    silence = OutOfReachError("the endpoint does not answer")
    assert outcome([silence, ConnectionResetError()], watched=False) == (True, 3)
    assert outcome([silence] * 9, watched=False) == (False, 1 + budgets.MAX_RETRIES)


@pytest.mark.parametrize(
    "final", [EndpointError("wrong key"), BudgetError("spent"), ValueError("no text")]
)
def test_what_cannot_succeed_is_tried_once(final):
    assert outcome([final], watched=False) == (False, 1)


def test_a_run_that_somebody_watches_fails_at_once():
    assert outcome([OutOfReachError("silence")], watched=True) == (False, 1)
