"""Why a call misses: the parts in which the nearest stored verdict differs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from answering import annotate
from buyer_process import store_in
from fake_judges import ByRubric
from upath import UPath

from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.judge import call_parts
from judgeline.judges.presentation import Answer, Presentation, present
from judgeline.judges.store.verdicts import VerdictStore
from pipelines.commands.verdicts import Nearest, nearest, verdicts_of_battle

BATTLES = pd.DataFrame(
    {
        "battle_id": ["b0", "b1"],
        "model_a": "x",
        "model_b": "y",
        "instruction": ["Q0", "Q1"],
        "completion_a": ["one", "two"],
        "completion_b": ["eins", "zwei"],
    }
)


class Mute(ByRubric):
    def __init__(self, **changes: str) -> None:
        decoding = json.dumps({"temperature": 0, "max_tokens": 4096})
        self.identity: Mapping[str, str] = {
            "model": "m",
            "template": "t1",
            "decoding": decoding,
            **changes,
        }

    def replies(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Iterator[tuple[int, Answer]]:
        return ((n, Answer(None, "refusal", 1, 0)) for n in range(len(presentations)))


@pytest.fixture
def store(tmp_path: Path) -> VerdictStore:
    store = store_in(tmp_path)
    annotate(Mute(), BATTLES, slug="s", buyer=Buyer(store))
    return store


def explained(store: VerdictStore, judge: Mute, call: Presentation) -> Nearest | None:
    parts = call_parts(judge, call)
    return nearest(verdicts_of_battle(store, call.battle_id, parts), call.order, parts)


@pytest.mark.parametrize(
    ("changes", "judge", "told"),
    [
        ({}, {}, ()),
        ({"instruction": "Q0?"}, {}, ("the instruction",)),
        ({"first_completion": "one."}, {}, ("the first text",)),
        ({"second_completion": "eins."}, {}, ("the second text",)),
        ({}, {"template": "t2"}, ("the template",)),
        ({"replicate": 3}, {}, ("replicate (stored 0, now 3)",)),
        ({}, {"model": "n"}, ("judge setting model (stored m, now n)",)),
        ({}, {"seed": "4"}, ("judge setting seed (stored nothing, now 4)",)),
        ({}, {"decoding": json.dumps({"temperature": 0.7, "max_tokens": 4096})},
         ("judge setting decoding (stored temperature 0, now temperature 0.7)",)),
        ({"first_completion": "one."}, {"model": "n"},
         ("the first text", "judge setting model (stored m, now n)")),
    ],
)  # fmt: skip
def test_what_differs_is_named(store: VerdictStore, changes, judge, told) -> None:
    call = replace(present(BATTLES, 1)[0], **changes)
    found = explained(store, Mute(**judge), call)
    assert found is not None
    assert sorted(found.differences) == sorted(told)
    assert (found.judge, found.battle_id, found.order, found.status) == ("s", "b0", "AB", "refusal")


def test_a_renamed_battle_is_recognised_by_its_texts(store: VerdictStore) -> None:
    call = replace(present(BATTLES, 1)[3], battle_id="renamed")
    found = explained(store, Mute(model="n"), call)
    assert found is not None
    assert (found.battle_id, found.order) == ("b1", "BA")


def test_another_battle_has_nothing_near(store: VerdictStore) -> None:
    call = replace(present(BATTLES, 1)[0], battle_id="b9", instruction="another")
    assert explained(store, Mute(), call) is None
    empty = VerdictStore(UPath("memory://nothing-stored"))
    assert explained(empty, Mute(), present(BATTLES, 1)[0]) is None


def test_long_settings_are_stored_by_hash_only(store: VerdictStore) -> None:
    secret = "a long prompt " * 100
    annotate(Mute(prompt=secret), BATTLES, slug="s", buyer=Buyer(store))
    shards = [path.read_bytes() for path in Path(store.base.path).rglob("*.parquet")]
    assert not any(b"a long prompt" in content for content in shards)
    parts = call_parts(Mute(prompt=secret), present(BATTLES, 1)[0])
    assert len(parts["judge.prompt"]) == 64
