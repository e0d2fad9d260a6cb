"""A judge of kind vllm: known without a server, asked through one that ends with the answers."""

import dataclasses
from pathlib import Path

import managed
import pandas as pd
import pytest
from buyer_process import numbered
from upath import UPath

from resources.judges.annotation import annotate
from resources.judges.budget import Budget
from resources.judges.buying import Buyer
from resources.judges.forms.form import Prompt
from resources.judges.forms.rubric import RUBRIC
from resources.judges.judge import present
from resources.judges.live.fields import Decoding, ServedFields
from resources.judges.managed.judge import ManagedJudge
from resources.judges.managed.options import Hosting, VllmOptions
from resources.judges.managed.server import VllmError
from resources.store.verdicts import VerdictStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc: Linux only"),
]

TEMPLATE = "{delimiter} {instruction} {first_completion} {second_completion}"
FIELDS = ServedFields(model="tiny", concurrency=2)
BATTLES = numbered(10)


def judge(place: Hosting | None = None, template: str = TEMPLATE, **options) -> ManagedJudge:
    fields = FIELDS.model_copy(update=options.pop("fields", {}))
    given = place or Hosting(logs=Path("nowhere"))
    return ManagedJudge("tiny", fields, VllmOptions(**options), Prompt(template, RUBRIC), given)


def buy(tmp_path: Path, place: Hosting) -> tuple[pd.DataFrame, Buyer]:
    buyer = Buyer(VerdictStore(UPath(tmp_path / "verdicts")))
    return annotate(judge(place), BATTLES, slug="tiny", buyer=buyer), buyer


def starts(fake: managed.FakeVllm) -> int:
    return len(fake.lines("starts"))


def none_left(fake: managed.FakeVllm) -> bool:
    return not any(map(managed.is_alive, fake.pids))


def test_what_shapes_an_answer_is_in_the_identity_and_speed_is_not():
    plain = judge().identity
    assert plain["kind"] == plain["endpoint"] == "vllm"
    assert plain["structured_output"] == "json_schema"
    for options in (
        {"tensor_parallel_size": 4},
        {"data_parallel_size": 2},
        {"startup_timeout_s": 5},
        {"pool": "gpu-2"},
        {"extra_args": ["--gpu-memory-utilization", "0.8", "--max_num_seqs=64"]},
        {"fields": {"concurrency": 99, "timeout_s": 1.0}},
    ):
        assert judge(**options).identity == plain, options
    others = [
        judge(dtype="float32"),
        judge(max_model_len=8192),
        judge(extra_args=["--reasoning-parser", "qwen3"]),
        judge(extra_args=["--max-num-seqs", "4", "--quantization=fp8"]),
        judge(fields={"revision": "abc"}),
        judge(fields={"decoding": Decoding(seed=1)}),
        judge(fields={"log_probabilities": "auto"}),
        judge(fields={"structured_output": "off"}),
        judge(template=TEMPLATE + "!"),
    ]
    identities = [plain, *(one.identity for one in others)]
    assert len({tuple(sorted(one.items())) for one in identities}) == len(identities)


def test_answers_that_are_stored_need_no_server(fake, tmp_path):
    place = Hosting(logs=tmp_path / "logs")
    first, bought = buy(tmp_path, place)
    assert first["status"].tolist() == ["ok"] * 20
    assert first["reply_model"].notna().all()
    assert (starts(fake), bought.account.n_asked) == (1, 20)
    again, bought = buy(tmp_path, place)
    pd.testing.assert_frame_equal(again, first)
    assert (starts(fake), bought.account.n_asked) == (1, 0)
    assert none_left(fake)


def test_the_server_ends_when_the_answers_are_taken_or_left(fake, tmp_path):
    shown = present(BATTLES, 1)
    asked = judge(Hosting(logs=tmp_path / "logs"))
    assert asked.metadata == {"server": "none was started"}
    answers = asked.answer(shown, Budget())
    assert fake.pids == []  # nothing runs before the first answer is wanted
    next(answers)
    assert managed.is_alive(fake.pids[0])
    answers.close()
    assert none_left(fake)
    assert asked.metadata["server"] == "vLLM 0.0-fake"
    assert "--served-model-name tiny" in asked.metadata["command"]
    assert len(list(asked.answer(shown, Budget()))) == 20
    assert none_left(fake)
    assert list(asked.answer([], Budget())) == []
    assert starts(fake) == 2


def test_a_slot_is_held_while_the_server_runs_and_no_longer(fake, tmp_path):
    events: list[str] = []

    class Slot:
        def __init__(self, pool: str) -> None:
            self.pool = pool

        def __enter__(self) -> None:
            events.append(f"take {self.pool}, {starts(fake)} started")

        def __exit__(self, *_: object) -> None:
            events.append(f"give {self.pool}, {'nobody' if none_left(fake) else 'somebody'} left")

    place = Hosting(claim=Slot, logs=tmp_path / "logs")
    assert len(list(judge(place, pool="gpu-2").answer(present(BATTLES, 1), Budget()))) == 20
    assert events == ["take gpu-2, 0 started", "give gpu-2, nobody left"]


def test_a_step_that_fails_with_the_answers_half_taken_leaves_no_server(fake, tmp_path):
    kept = []

    def fail() -> None:
        with Hosting(lambda text: None) as place:
            place.logs = tmp_path / "logs"
            answers = judge(place).answer(present(BATTLES, 1), Budget())
            kept.append(answers)  # as a traceback would
            next(answers)
            assert managed.is_alive(fake.pids[0])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert none_left(fake)


def test_a_server_that_dies_while_it_answers_ends_the_run_and_loses_nothing(
    fake, tmp_path, monkeypatch
):
    monkeypatch.setenv("FAKE_VLLM", fake.behaves(dies_after=6)["FAKE_VLLM"])
    monkeypatch.setattr("resources.judges.live.judge.RetryPolicy", impatient())
    place = Hosting(logs=tmp_path / "logs")
    with pytest.raises(VllmError, match=r"(?s)exit code 9 while it answered.*out of memory"):
        buy(tmp_path, place)
    assert none_left(fake)
    monkeypatch.setenv("FAKE_VLLM", "{}")
    done, bought = buy(tmp_path, place)
    assert done["status"].tolist() == ["ok"] * 20
    assert 20 - 8 <= bought.account.n_asked <= 20 - 5  # two in flight may be lost with it


def impatient() -> type:
    @dataclasses.dataclass(frozen=True)
    class Impatient(servers_policy()):
        attempts: int = 2
        base_s: float = 0.01

    return Impatient


def servers_policy() -> type:
    from resources.judges.live.troubles import RetryPolicy

    return RetryPolicy


def test_a_budget_in_money_without_a_price_is_refused_before_anything_starts(fake, tmp_path):
    def claim(pool: str) -> None:
        pytest.fail(f"nobody needs {pool}")

    asked = judge(Hosting(claim=claim, logs=tmp_path / "logs"))
    with pytest.raises(ValueError, match=r"judge 'tiny' has no price"):
        list(asked.answer(present(BATTLES, 1), Budget.parse(["5EUR"])))
    assert fake.pids == []


def test_a_definition_that_leaves_no_room_for_an_answer_is_refused_before_anything_starts(fake):
    with pytest.raises(ValueError, match=r"context of 'tiny' is 2048; lower decoding.max_tokens"):
        assert judge(max_model_len=2048).identity
    assert fake.pids == []
