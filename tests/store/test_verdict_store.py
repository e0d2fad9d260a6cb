"""Shards: whole or absent, read while written, merged without loss."""

import itertools
import multiprocessing
import random
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from answering import statuses
from buyer_process import store_in
from upath import UPath

from judgeline.judges.store import keyed as keyed_module
from judgeline.judges.store import keyed as shards
from judgeline.judges.store.verdicts import SCHEMA, VerdictStore
from judgeline.judges.store.writing import PATIENCE, VerdictWriter

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = "judge"
_spaces = itertools.count()


def row(identity: str, status: str = "ok", *, minutes: int = 0, answer: str = "{}") -> dict:
    return {
        "identity": identity,
        "status": status,
        "answered_at": NOON + timedelta(minutes=minutes),
        "answer": answer,
        "failure": None if status == "ok" else status,
        "log_probabilities": None,
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "judge": "j",
        "battle_id": "b",
        "order": "AB",
        "replicate": 0,
        "parts": "{}",
    }


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path: Path) -> VerdictStore:
    if request.param == "local":
        return VerdictStore(UPath(tmp_path / "deep" / "verdicts"))
    return VerdictStore(UPath(f"memory://verdicts-{next(_spaces)}"))


@pytest.fixture
def local(tmp_path: Path) -> VerdictStore:
    return store_in(tmp_path)


def files(store: VerdictStore) -> list[UPath]:
    return sorted((store.base / KEY).iterdir(), key=lambda path: path.name)


def test_what_was_stored_is_found_and_nothing_else(store: VerdictStore) -> None:
    assert statuses(store, KEY) == {}
    assert store.judge_keys() == []
    store.append(KEY, [row("a"), row("b", "refusal")])
    store.append(KEY, [row("c", answer="say 'ü'")])
    store.append("other", [row("z")])
    assert statuses(store, KEY) == {"a": "ok", "b": "refusal", "c": "ok"}
    assert store.judge_keys() == [KEY, "other"]
    found, scan = store.find(KEY, ["c", "z", "unknown"])
    assert found["identity"].tolist() == ["c"]
    assert found["answer"].tolist() == ["say 'ü'"]
    assert (scan.damaged, scan.unfinished) == ((), ())


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_first_usable_answer_counts_else_the_last_failure(local: VerdictStore, order) -> None:
    rows = [
        row("a", "truncated", minutes=9, answer="late failure"),
        row("a", minutes=2, answer="second"),
        row("a", minutes=1, answer="first"),
        row("b", "transport", minutes=1),
    ]
    for index in order:
        local.append(KEY, [rows[index]])
    local.append(KEY, [row("b", "parse_error", minutes=5)])
    found, _ = local.find(KEY, ["a", "b"])
    found = found.set_index("identity")
    assert found.loc["a", "answer"] == "first"
    assert found.loc["b", "status"] == "parse_error"
    assert statuses(local, KEY) == {"a": "ok", "b": "parse_error"}


def test_compaction_keeps_every_answer_in_one_shard(store: VerdictStore) -> None:
    for index in range(5):
        store.append(KEY, [row(f"i{index}"), row("again", minutes=index, answer=f"{index}")])
    identities = [*(f"i{index}" for index in range(5)), "again"]
    before, _ = store.find(KEY, identities)
    assert store.compact(KEY, min_shards=6) == 0
    assert store.compact(KEY) == 5
    assert len(files(store)) == 1
    after, _ = store.find(KEY, identities)
    assert after.set_index("identity").loc["again", "answer"] == "0"
    pd.testing.assert_frame_equal(
        *(table.sort_values("identity", ignore_index=True) for table in (before, after))
    )
    assert store.compact(KEY) == 0


def test_a_crash_while_compacting_loses_nothing_and_doubles_nothing(local, monkeypatch):
    for index in range(4):
        local.append(KEY, [row(f"i{index}", minutes=index)])
    deleted = []

    def crash(shard: UPath) -> None:
        if len(deleted) == 2:
            raise KeyboardInterrupt
        deleted.append(shard)
        shard.unlink()

    with monkeypatch.context() as patch:
        patch.setattr(keyed_module, "_delete", crash)
        with pytest.raises(KeyboardInterrupt):
            local.compact(KEY)
    assert len(files(local)) == 3  # two old ones and the merged one
    found, _ = local.find(KEY, [f"i{index}" for index in range(4)])
    assert sorted(found["identity"]) == ["i0", "i1", "i2", "i3"]
    assert local.compact(KEY) == 3
    assert statuses(local, KEY) == {f"i{index}": "ok" for index in range(4)}


def test_damaged_and_unfinished_files_are_skipped_reported_and_kept(local: VerdictStore) -> None:
    local.append(KEY, [row("a")])
    folder = Path((local.base / KEY).path)
    noise = "".join(random.Random(1).choices("0123456789abcdef", k=8000))  # noqa: S311
    whole = local.append(KEY, [row("b", answer=noise)])
    content = bytearray(Path(whole.path).read_bytes())
    half, flipped, empty = (folder / f"9-{name}.parquet" for name in ("half", "flip", "empty"))
    part = folder / ".9-torn.parquet.part"
    half.write_bytes(content[: len(content) // 2])
    content[len(content) // 3] ^= 0xFF
    flipped.write_bytes(content)
    empty.write_bytes(b"")
    part.write_bytes(b"PAR1")
    pq.write_table(SCHEMA.empty_table().select(["identity"]), folder / "9-foreign.parquet")
    found, scan = local.find(KEY, ["a", "b"])
    assert sorted(found["identity"]) == ["a", "b"]
    names = {Path(name).name for name in scan.damaged}
    assert names == {"9-half.parquet", "9-flip.parquet", "9-empty.parquet", "9-foreign.parquet"}
    assert [Path(name).name for name in scan.unfinished] == [part.name]
    assert local.compact(KEY) == 2
    assert {path.name for path in files(local)} >= {*names, part.name}
    assert statuses(local, KEY) == {"a": "ok", "b": "ok"}


def test_a_failing_disk_is_no_damaged_shard(local: VerdictStore, monkeypatch) -> None:
    local.append(KEY, [row("a")])

    def fails(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(type(local.base), "read_bytes", fails)
    with pytest.raises(OSError, match="Input/output"):
        statuses(local, KEY)


def test_a_shard_that_cannot_be_made_durable_is_not_there(local, monkeypatch) -> None:
    def fails(_: int) -> None:
        raise OSError(28, "No space left on device")

    local.append(KEY, [row("a")])
    with monkeypatch.context() as patch:
        patch.setattr(shards.os, "fsync", fails)
        with pytest.raises(OSError, match="No space"):
            local.append(KEY, [row("b")])
    assert statuses(local, KEY) == {"a": "ok"}
    assert len(files(local)) == 1


def test_file_and_folders_are_synced_before_a_shard_is_acknowledged(local, monkeypatch) -> None:
    synced = []
    real = shards.os.fsync

    def noting(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        real(descriptor)

    monkeypatch.setattr(shards.os, "fsync", noting)
    shard = Path(local.append(KEY, [row("a")]).path)
    folder = shard.parent
    assert [path for path in synced if path.suffix != ".part"] == [
        folder.parent.parent,
        folder.parent,
        folder,
    ]
    assert synced[-2].name.startswith(f".{shard.name}.")  # the content first, then its name


def test_no_shard_holds_a_pickle(store: VerdictStore) -> None:
    shard = store.append(KEY, [row("a")])
    assert shard.read_bytes()[:4] == b"PAR1"


def test_shards_of_older_versions_are_read_as_null_and_merged(local: VerdictStore) -> None:
    folder = Path(local.base.path) / KEY
    folder.mkdir(parents=True)
    old = [name for name in SCHEMA.names if name not in local.later]
    pq.write_table(pa.Table.from_pylist([row("a")], SCHEMA).select(old), folder / "1-old.parquet")
    local.append(KEY, [{**row("b"), "reply_model": "m", "said": "no"}])
    for n_merged in (2, 0):
        found, scan = local.find(KEY, ["a", "b"])
        assert scan.damaged == ()
        named = found.set_index("identity")["reply_model"]
        assert (pd.isna(named["a"]), named["b"]) == (True, "m")
        assert local.compact(KEY) == n_merged


# Streaming


def test_a_writer_stores_every_so_many_rows_and_the_rest_at_the_end(local: VerdictStore) -> None:
    with VerdictWriter(local, KEY, rows=10, seconds=60) as writer:
        for index in range(25):
            writer.add(row(f"i{index}"))
        deadline = time.monotonic() + 10
        while len(statuses(local, KEY)) < 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(statuses(local, KEY)) >= 10  # long before the minute is over
    assert len(statuses(local, KEY)) == 25


@pytest.mark.slow
def test_whoever_brings_answers_waits_for_a_slow_place_and_not_otherwise(local, monkeypatch):
    append, is_open = local.append, threading.Event()

    def slow(*place: object) -> object:
        is_open.wait(10)
        return append(*place)

    monkeypatch.setattr(local, "append", slow)
    with VerdictWriter(local, KEY, rows=10, seconds=60) as writer:
        brought: list[int] = []

        def bring() -> None:
            for index in range(100):
                writer.add(row(f"i{index}"))
                brought.append(index)

        bringer = threading.Thread(target=bring)
        bringer.start()
        deadline = time.monotonic() + 10
        while len(brought) < PATIENCE * 10 - 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        assert len(brought) == PATIENCE * 10 - 1  # at risk, those that are being written included
        is_open.set()
        bringer.join(10)
    assert len(statuses(local, KEY)) == 100


def test_a_writer_stores_while_nothing_new_comes(local: VerdictStore) -> None:
    with VerdictWriter(local, KEY, rows=10, seconds=0.05) as writer:
        writer.add(row("a"))
        deadline = time.monotonic() + 5
        while not statuses(local, KEY) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert statuses(local, KEY) == {"a": "ok"}


def test_a_writer_stores_what_came_before_an_error(local: VerdictStore) -> None:
    def interrupted() -> None:
        with VerdictWriter(local, KEY, rows=10) as writer:
            writer.add(row("a"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert statuses(local, KEY) == {"a": "ok"}


def test_a_writer_that_cannot_store_says_so(local: VerdictStore, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local, "append", fails)
    n_taken = 0

    def streamed() -> None:
        nonlocal n_taken
        with VerdictWriter(local, KEY, rows=1000, seconds=0.02) as writer:
            for n_taken in range(500):
                writer.add(row(f"i{n_taken}"))
                time.sleep(0.01)

    with pytest.raises(OSError, match="No space"):
        streamed()
    assert n_taken < 499  # it does not buy on where nothing can be kept


# Several processes


def _write(base: str, writer: int, n_shards: int) -> None:
    store = VerdictStore(UPath(base))
    for index in range(n_shards):
        store.append(KEY, [row(f"w{writer}-{index}"), row("common", minutes=writer)])


def _compact(base: str, n_times: int) -> None:
    for _ in range(n_times):
        VerdictStore(UPath(base)).compact(KEY)


@pytest.mark.slow
def test_writers_readers_and_compactors_at_once_lose_nothing(local: VerdictStore) -> None:
    context = multiprocessing.get_context("fork")
    base = local.base.path
    processes = [context.Process(target=_write, args=(base, w, 25)) for w in range(3)]
    processes += [context.Process(target=_compact, args=(base, 15)) for _ in range(2)]
    for process in processes:
        process.start()
    seen: set[str] = set()
    while any(process.is_alive() for process in processes):
        now = set(statuses(local, KEY))
        assert seen <= now  # what was there once never goes
        seen = now
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert set(statuses(local, KEY)) == {
        "common",
        *(f"w{w}-{index}" for w in range(3) for index in range(25)),
    }
    assert local.find(KEY, ["common"])[0]["answered_at"].tolist() == [pd.Timestamp(NOON)]


def test_storage_that_refuses_to_be_written_to_is_found_out_before_anything_is_bought(monkeypatch):
    remote = VerdictStore(UPath(f"memory://verdicts-{next(_spaces)}"))

    def deny(self: object, path: str, value: bytes, **settings: object) -> None:
        raise RuntimeError("403 Forbidden: PutObject")

    monkeypatch.setattr(type(remote.base.fs), "pipe_file", deny)
    with (
        pytest.raises(PermissionError, match=r"PutObject.*JUDGELINE_VERDICTS"),
        VerdictWriter(remote, KEY),
    ):
        pytest.fail("nothing may be bought")


def test_trying_a_storage_leaves_nothing_there() -> None:
    remote = VerdictStore(UPath(f"memory://verdicts-{next(_spaces)}"))
    with VerdictWriter(remote, KEY):
        pass
    assert remote.base.fs.find(remote.base.path) == []
    assert statuses(remote, KEY) == {}
