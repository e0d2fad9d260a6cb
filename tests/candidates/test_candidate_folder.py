"""What lies in the folder of candidates: completeness, contents, and what is read again."""

import hashlib
import os
import socket
from pathlib import Path

import pytest
from upath import UPath

from resources.candidates import folder as candidate_folder
from resources.candidates.folder import Seen, folder_of, list_files, printable_name
from resources.config.paths import candidates_uri

NOW = 1_000_000.0
LINE = b'{"question_id": "1", "completion": "x"}\n'


def put(path: Path, content: bytes = LINE, age: float = 100.0) -> Path:
    path.write_bytes(content)
    os.utime(path, (NOW - age, NOW - age))
    return path


def listed(folder: Path, known: list[Seen] | None = None) -> dict[str, Seen]:
    before = {seen.name: seen for seen in known or ()}
    return {seen.name: seen for seen in list_files(UPath(str(folder)), before, now=NOW)}


def test_a_complete_file_has_the_hash_of_its_content(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl")
    seen = listed(tmp_path)["a.jsonl"]
    assert seen.state == "complete"
    assert seen.content_hash == hashlib.sha256(LINE).hexdigest()


def test_what_is_being_written_is_not_looked_at(tmp_path: Path) -> None:
    for name in (".hidden.jsonl", "a.jsonl.part", "b.tmp", "c.jsonl.crdownload", "d.jsonl~"):
        put(tmp_path / name)
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")  # reading it would wait for ever
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind(str(tmp_path / "plug.jsonl"))
        assert listed(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "content", "age", "state"),
    [
        ("a.jsonl", LINE, 1.0, "settling"),
        ("a.jsonl", LINE, 6.0, "complete"),
        ("a.jsonl", LINE, -500.0, "complete"),  # a clock that goes ahead
        ("a.jsonl", LINE[:-1], 30.0, "no-end"),
        ("a.jsonl", LINE[:-1], 61.0, "complete"),  # nobody writes on: it is refused, and said
        ("a.parquet", b"PAR1 half of a fi", 30.0, "no-end"),
        ("a.parquet", b"PAR1 a whole file PAR1", 30.0, "complete"),
        ("a.csv", b"x\n", 30.0, "complete"),
    ],
)
def test_a_file_is_complete_when_it_rests_and_has_its_end(
    tmp_path: Path, name: str, content: bytes, age: float, state: str
) -> None:
    put(tmp_path / name, content, age)
    seen = listed(tmp_path)[name]
    assert seen.state == state
    assert bool(seen.content_hash) is (state == "complete")


def test_a_known_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.jsonl")
    put(tmp_path / "b.jsonl")
    before = listed(tmp_path)
    read = []
    plain = UPath(str(tmp_path)).__class__.read_bytes
    monkeypatch.setattr(
        UPath(str(tmp_path)).__class__,
        "read_bytes",
        lambda path: read.append(path.name) or plain(path),
    )
    put(tmp_path / "b.jsonl", LINE * 2)
    after = listed(tmp_path, list(before.values()))
    assert read == ["b.jsonl"]
    assert after["a.jsonl"] == before["a.jsonl"]
    assert after["b.jsonl"].content_hash != before["b.jsonl"].content_hash


def test_a_file_that_is_being_replaced_is_remembered(tmp_path: Path) -> None:
    put(tmp_path / "a.jsonl")
    before = listed(tmp_path)["a.jsonl"]
    put(tmp_path / "a.jsonl", LINE * 2, age=1.0)
    seen = listed(tmp_path, [before])["a.jsonl"]
    assert (seen.state, seen.content_hash) == ("settling", before.content_hash)


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_folder, "MAX_BYTES", 10)
    put(tmp_path / "a.jsonl")
    seen = listed(tmp_path)["a.jsonl"]
    assert seen.state == "complete"
    assert seen.content_hash != hashlib.sha256(LINE).hexdigest()


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert listed(tmp_path / "none") == {}


def test_object_stores_are_read_too() -> None:
    folder = UPath("memory://candidate-folder-test/arena")
    (folder / "a.jsonl").write_bytes(LINE)
    (folder / "b.jsonl.part").write_bytes(LINE)
    seen = list_files(folder, now=9e12)
    assert [(one.name, one.state) for one in seen] == [("a.jsonl", "complete")]
    assert list_files(folder, {one.name: one for one in seen}, now=9e12) == seen


def test_the_folder_is_at_home_unless_a_variable_moves_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGELINE_CANDIDATES", raising=False)
    assert str(folder_of("arena")) == str(home / "candidates" / "arena")
    monkeypatch.setenv("JUDGELINE_CANDIDATES", "s3://bucket/new")
    assert candidates_uri() == "s3://bucket/new"
    with pytest.raises(ValueError, match="unsafe"):
        folder_of("../up", str(home))


def test_a_name_of_other_bytes_can_be_stored() -> None:
    assert printable_name("caf\udce9.jsonl") == "caf\\udce9.jsonl"


def test_a_file_that_may_not_be_read_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "a.jsonl")
    put(tmp_path / "b.jsonl")
    folder = UPath(str(tmp_path))
    read = type(folder).read_bytes

    def refuse(path: UPath) -> bytes:
        if path.name == "a.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    with monkeypatch.context() as patch:  # the superuser of a test may read everything
        patch.setattr(type(folder), "read_bytes", refuse)
        seen = list_files(folder, now=NOW)
        assert [(one.state, one.is_waiting) for one in seen] == [
            ("no-permission", False),
            ("complete", False),
        ]
    allowed = listed(tmp_path, seen)["a.jsonl"]  # of the same size and time of change
    assert (allowed.state, allowed.content_hash) == ("complete", hashlib.sha256(LINE).hexdigest())
