"""Answers that wait to be stored: what a kill at any byte leaves of them."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from upath import UPath

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


def test_the_next_buyer_stores_what_a_killed_one_wrote_down(tmp_path):
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
    assert killed.find("key", identities)[0]["identity"].tolist() == identities
    assert not (tmp_path / "killed" / "key" / ".journal").exists()


def test_rows_that_are_stored_and_written_down_count_once(tmp_path):
    store = VerdictStore(UPath(tmp_path))
    store.prepare("key")
    store.append("key", ROWS)
    written(tmp_path / "key" / ".journal")
    with store.exclusive("key"):
        pass
    assert store.find("key", ["i0"])[0]["n_attempts"].tolist() == [1]
