"""Batches from the entry in judges.yaml to the verdicts, and their news on the way."""

from pathlib import Path
from typing import Any

import pytest
from answering import answered
from batch_server import BatchServer
from fault_server import KEY, serving
from test_batch_judge import SHOWN
from test_served_definitions import CORPUS, define

from resources.judges.batch.judge import BatchJudge
from resources.judges.catalog import open_judge
from resources.judges.live.fields import ServedFields


def test_one_word_in_the_entry_asks_in_batches(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    news: list[str] = []
    with serving(BatchServer()) as server:
        entry = {"base_url": server.url, "api_key_env": "MY_KEY", "batch_poll_s": 0.01}
        batch = open_judge(define(tmp_path, **entry, batch=True), CORPUS, news.append)
        live = open_judge(define(tmp_path, **entry), CORPUS)
        assert answered(live, SHOWN) == answered(batch, SHOWN)
        assert batch.identity == live.identity
        with pytest.raises(
            RuntimeError, match=r"30 of 30 calls .* in batches and are not collected"
        ):
            answered(live, SHOWN)  # nothing is stored here
    assert isinstance(batch, BatchJudge)
    assert not isinstance(live, BatchJudge)
    assert news[-1].endswith("completed, 30 answered, 0 failed")
    assert server.keys == {f"Bearer {KEY}"}
    assert len(list((home / "batches").rglob("*.json"))) == 1


def test_batches_are_off_unless_asked_for() -> None:
    assert ServedFields().batch is False
    assert ServedFields().batch_poll_s == 60.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "vllm", "batch": True}, "only kind 'openai' is asked in batches"),
        ({"kind": "recorded", "model": None, "batch": True}, r"not served: remove .*'batch'"),
        ({"batch": "perhaps"}, "'batch'"),
        ({"batch": True, "batch_poll_s": 0}, "'batch_poll_s'"),
        ({"batched": True}, "did you mean 'batch'"),
    ],
)
def test_mistakes_are_named(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        define(tmp_path, **fields)
