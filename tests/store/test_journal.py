"""Answers that wait to be stored: what a kill at any byte leaves of them."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from upath import UPath

from judgeline.judges.store import journal as storing
from judgeline.judges.store.journal import Journal
from judgeline.judges.store.verdicts import SCHEMA, VerdictStore
from judgeline.judges.store.writing import VerdictWriter

ROWS = [
    {"identity": f"i{n}", "status": "ok", "answered_at": datetime(2026, 1, 2, 3, 4, n, tzinfo=UTC),
     "answer": "x" * 10 * n, "prompt_tokens": n}
    for n in range(5)
]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    return tmp_path / ".journal"


def written(file):
    journal = Journal(file, SCHEMA)
    for row in ROWS:
        journal.add(row)
    return journal


def test_a_journal_gives_its_rows_as_a_shard_would(file):
    written(file)
    assert Journal(file, SCHEMA).rows() == pa.Table.from_pylist(ROWS, SCHEMA)


def test_a_journal_cut_at_any_byte_has_the_whole_rows_before_it(file):
    written(file)
    whole, before = file.read_bytes(), 0
    for size in range(len(whole) + 1):
        file.write_bytes(whole[:size])
        found = Journal(file, SCHEMA).rows()
        assert found == pa.Table.from_pylist(ROWS[: len(found)], SCHEMA)
        assert len(found) >= before
        before = len(found)
    assert before == len(ROWS)


def test_a_turn_while_rows_are_read_hides_none(file, monkeypatch):
    journal, read = written(file), storing._bytes_of

    def turned(path):
        found = read(path)
        journal.turn()
        return found

    monkeypatch.setattr(storing, "_bytes_of", turned)
    assert len(Journal(file, SCHEMA).rows()) >= len(ROWS)


def test_a_row_that_fits_no_schema_leaves_the_others(file):
    journal = Journal(file, SCHEMA)
    for row in (ROWS[0], ROWS[1] | {"answer": "\ud800"}, ROWS[2] | {"prompt_tokens": "many"}):
        journal.add(row)
    journal.add(ROWS[3])
    assert Journal(file, SCHEMA).rows()["identity"].to_pylist() == ["i0", "i3"]


def test_a_full_disk_is_left_to_the_shards(file, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    journal = written(file)
    monkeypatch.setattr("io.FileIO", full)
    journal.clear()
    journal.add(ROWS[0])
    assert not file.exists()


def test_what_a_killed_buyer_wrote_down_is_found_and_stored_by_the_next(tmp_path):
    store = VerdictStore(UPath(tmp_path))
    with VerdictWriter(store, "key", seconds=3600) as writer:
        for row in ROWS:
            writer.add(row)
        left = (tmp_path / "key" / ".journal").read_bytes()
    assert not (tmp_path / "key" / ".journal").exists()  # a writer that ends leaves none
    killed = VerdictStore(UPath(tmp_path / "killed"))
    killed.prepare("key")
    (tmp_path / "killed" / "key" / ".journal").write_bytes(left)
    identities = [row["identity"] for row in ROWS]
    with killed.buying("key", lambda: killed.find("key", identities)[0].empty, None) as lacking:
        assert not lacking
    assert (tmp_path / "killed" / "key" / ".journal").exists()  # it was only read
    assert killed.find("key", identities[:2])[0]["identity"].tolist() == identities[:2]
    with killed.exclusive("key"):
        assert not (tmp_path / "killed" / "key" / ".journal").exists()
    assert killed.find("key", identities)[0]["identity"].tolist() == identities


def test_rows_that_are_stored_and_written_down_count_once(tmp_path):
    store = VerdictStore(UPath(tmp_path))
    store.prepare("key")
    store.append("key", ROWS)
    written(tmp_path / "key" / ".journal")
    with store.exclusive("key"):
        pass
    assert store.find("key", ["i0"])[0]["n_attempts"].tolist() == [1]


def test_a_bad_line_and_a_short_write_cost_no_other_row(file):
    journal = Journal(file, SCHEMA)
    journal.add(ROWS[0])
    journal.add(ROWS[1])
    whole = file.read_bytes()
    file.write_bytes(whole[:-7] + b'\n{"identity": "no time"}\n' + b"[" * 100_000)
    journal.add(ROWS[2])
    assert Journal(file, SCHEMA).rows()["identity"].to_pylist() == ["i0", "i2"]


def test_under_steady_load_a_journal_has_what_is_not_stored(tmp_path, monkeypatch):
    store, (first, *others) = VerdictStore(UPath(tmp_path)), ROWS
    real, rest = store.append, iter(others)
    kept = []

    def slow(key, rows):
        real(key, rows)
        for row in rest:
            writer.add(row)  # another answer comes while these are stored
            break

    monkeypatch.setattr(store, "append", slow)
    with VerdictWriter(store, "key", seconds=3600) as writer:
        writer.add(first)
        for _ in others:
            writer._flush()
            kept.append(store.journal("key").rows()["identity"].to_pylist())
    assert kept == [["i1"], ["i2"], ["i3"], ["i4"]]
    assert list((tmp_path / "key").glob(".journal*")) == []
    assert len(store.find("key", [row["identity"] for row in ROWS])[0]) == len(ROWS)


def test_a_kill_while_rows_are_stored_leaves_them_and_those_that_came_since(file):
    journal = written(file)
    journal.turn()
    journal.add(ROWS[0] | {"identity": "since"})
    journal.turn()  # as after a place that could not be written to: nothing is written over
    assert Journal(file, SCHEMA).rows()["identity"].to_pylist() == [
        *(row["identity"] for row in ROWS), "since"
    ]  # fmt: skip
    Journal(file, SCHEMA).clear()
    assert list(file.parent.iterdir()) == []
