"""Candidate files: when one is complete, its answers, and the words in which it is set aside."""

import hashlib
import json
import os
import re
import socket
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from judgeline.paths import candidates_uri
from resources.candidates import file as candidate_file
from resources.candidates import folder as candidate_folder
from resources.candidates.file import Answered, RefusedError, read_candidate
from resources.candidates.folder import Seen, folder_of, list_files, printable_name

GOOD = {"question_id": "q1", "completion": "Yes."}


def lines(*records: Any) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def parquet(**columns: Any) -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def refusal(content: bytes, name: str = "new-model.jsonl") -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        read_candidate(name, content)
    return caught.value


# ------------------------------------------------------------------ answers


def test_a_file_names_its_model_family_metadata_and_answers() -> None:
    rows = [
        {**GOOD, "family": "oak", "temperature": 0.7, "run": {"seed": 3}, "tokens": 5},
        {**GOOD, "question_id": 2, "temperature": 0.7, "run": {"seed": 3}, "tokens": 6},
    ]
    found = read_candidate("new-model.jsonl", b"\xef\xbb\xbf" + b"\n".join(map(lines, rows)))
    assert (found.model, found.family) == ("new-model", "oak")
    assert found.metadata == {"temperature": 0.7, "run": {"seed": 3}}
    assert found.answers == [
        Answered("line 1", "q1", None, "Yes."),
        Answered("line 3", "2", None, "Yes."),
    ]
    named = read_candidate("x.jsonl", lines({**GOOD, "model": "Qwen/Qwen3 8B"}))
    assert named.model == "Qwen/Qwen3 8B"
    content = parquet(question_id=["q1"], completion=["Yes."], size=[7])
    same = read_candidate("new.model.parquet", content)
    assert (same.model, same.metadata) == ("new.model", {"size": 7})
    assert same.answers == [Answered("row 0", "q1", None, "Yes.")]


LONG = "x" * 121
WHOLE = parquet(question_id=["q1"], completion=["Yes."])
REFUSALS: dict[str, tuple[bytes, str, str]] = {
    "not UTF-8": (lines(GOOD) + b'{"completion": "\xff"}\n', "not-utf-8", r"line 2: byte b'\\xff'"),
    "a broken line": (lines(GOOD) + b'{"a": 1\n', "broken-json", r"line 2: .*no JSON object"),
    "a list": (lines([1, 2]), "broken-json", r"line 1: found '\[1, 2\]': expected one"),
    "a deep one": (b"[" * 100_000 + b"\n", "broken-json", "line 1: .*nested too deeply"),
    "a key twice": (b'{"a": 1, "a": 2}\n', "broken-json", "'a' occurs twice"),
    "no newline": (lines(GOOD)[:-1], "no-end", "ends without a newline"),
    "nothing": (b" \n", "empty-file", "holds nothing"),
    "no completion": (lines({"question_id": "q1", "text": "x"}), "missing-column", "'q.*', 'text'"),
    "no question": (lines({"completion": "x"}), "missing-column", "'question_id' or 'instruction'"),
    "neither here": (lines(GOOD, {"completion": "x"}), "no-question", "line 2: .* are empty"),
    "an empty answer": (
        lines(GOOD, GOOD | {"completion": " "}), "empty-completion", "line 2, .*: found ' '"),
    "no answer": (lines(GOOD | {"completion": None}), "empty-completion", "found None"),
    "a number": (lines(GOOD | {"completion": 5}), "not-text", "column 'completion': found 5"),
    "a false id": (lines(GOOD | {"question_id": True}), "not-text", "'question_id': found True"),
    "a model of 5": (lines(GOOD | {"model": 5}), "not-text", "line 1, column 'model': found 5"),
    "half a pair": (
        b'{"question_id": "q1", "completion": "ab\\ud800"}\n', "not-text",
        r"line 1, column 'completion': character 2 is '\\ud800'"),
    "two models": (
        lines(GOOD | {"model": "a"}, GOOD | {"model": "b"}), "two-models",
        "'a' in line 1 and 'b' in line 2"),
    "two families": (
        lines(GOOD | {"family": "a"}, GOOD, GOOD | {"family": "b"}), "two-families",
        "'a' in line 1 and 'b' in line 3; write one file per model"),
    "a line break": (lines(GOOD | {"model": "a\nb"}), "unsafe-model-name", r"is 'a\\nb'"),
    "a hidden sign": (lines(GOOD | {"model": "a\u202eb"}), "unsafe-model-name", "invisible"),
    "an outer space": (lines(GOOD | {"model": " a"}), "unsafe-model-name", "no space"),
    "a long name": (lines(GOOD | {"model": LONG}), "unsafe-model-name", "has 121 characters"),
    "a control": (lines(GOOD | {"model": "Control:x"}), "unsafe-model-name", "attack controls"),
}  # fmt: skip


NAMED: dict[str, tuple[bytes, str, str]] = {
    "answers.csv": (lines(GOOD), "unknown-format", "'.csv'; write JSON lines"),
    "answers.json": (lines(GOOD), "unknown-format", "'.json'"),
    "README": (lines(GOOD), "unknown-format", "''"),
    "mark.parquet": (b"PAR1 nonsense PAR1", "broken-parquet", "write it again"),
    "cut.parquet": (WHOLE[:-20] + WHOLE[-8:], "broken-parquet", "write it again"),
    "short.parquet": (b"PAR1", "broken-parquet", "write it again"),
    "none.parquet": (parquet(question_id=[], completion=[]), "empty-file", "holds nothing"),
}


@pytest.mark.parametrize("case", [*REFUSALS, *NAMED])
def test_a_file_is_set_aside_with_row_value_and_remedy(case: str) -> None:
    content, reason, sentence = (REFUSALS | NAMED)[case]
    found = refusal(content, case) if case in NAMED else refusal(content)
    assert found.reason == reason
    assert re.search(sentence, found.detail), found.detail
    assert ";" in found.detail or ":" in found.detail  # the remedy follows


TEXT = "x" * 1_000
REPEATED = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array([TEXT]))
IDS = list(map(str, range(100)))
WIDE = {f"column {n}": pa.nulls(100) for n in range(100)}
EACH_ITS_OWN = lines(*({f"column {n}": 1} for n in range(100)))
TOO_LARGE: dict[str, tuple[str, int, bytes, str]] = {
    "rows": ("MAX_ROWS", 1, parquet(question_id=IDS[:2], completion=["a", "b"]), "2 rows"),
    "lines": ("MAX_ROWS", 99, lines(*[GOOD] * 100), "has 100 rows"),
    "cells": ("MAX_CELLS", 9_999, parquet(**WIDE), "100 columns in 100 rows"),
    "columns": ("MAX_CELLS", 9_999, EACH_ITS_OWN, "100 columns in 100 rows"),
    "an answer": ("LONGEST_COMPLETION", 3, lines(GOOD), "4 characters, at most 3"),
    "unpacked": (
        "MAX_BYTES", 1_000, parquet(question_id=["q1"], completion=["Yes. " * 10_000]),
        "at most 1,000 are read"),
    # stored once, and there in every row
    "repeated": ("MAX_BYTES", 50_000, parquet(question_id=IDS, completion=REPEATED), "bytes"),
    "texts": ("MAX_BYTES", 50_000, parquet(question_id=IDS, completion=[TEXT] * 100), "bytes"),
    "lists": ("MAX_BYTES", 50_000, parquet(question_id=IDS, completion=[[TEXT]] * 100), "bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", TOO_LARGE)
def test_a_file_of_too_much_is_not_read(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, most, content, sentence = TOO_LARGE[case]
    monkeypatch.setattr(candidate_file, limit, most)
    assert limit != "MAX_BYTES" or len(content) < 20_000
    found = refusal(content, f"new.{'parquet' if content.startswith(b'PAR1') else 'jsonl'}")
    assert found.reason == "too-large"
    assert sentence in found.detail


def test_no_file_can_run_anything(tmp_path: Path) -> None:
    """A pickle inside Parquet's metadata, or as a file, is bytes like any other."""
    import pickle  # noqa: TID251

    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    trap = pickle.dumps(Trap())
    sink = BytesIO()
    table = pa.table({"question_id": ["q1"], "completion": ["Yes."]})
    pq.write_table(table.replace_schema_metadata({b"pandas": trap, b"x": trap}), sink)
    read_candidate("new.parquet", sink.getvalue())
    refusal(trap + b"\n", "new.jsonl")
    refusal(trap, "answers.pkl")
    assert not (tmp_path / "sprung").exists()


RECORDS = st.lists(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.none()), max_size=3
).map(lambda records: lines(*({**GOOD, **record} for record in records)))


@given(RECORDS | st.binary(max_size=200), st.sampled_from([".jsonl", ".parquet", ""]))
def test_any_bytes_are_read_or_set_aside_in_storable_words(content: bytes, ending: str) -> None:
    try:
        read_candidate(f"new{ending}", content + b"\n")
    except RefusedError as refused:
        f"{refused.reason} {refused.detail}".encode()


# ------------------------------------------------------------------ the folder

NOW = 1_000_000.0
LINE = b'{"question_id": "1", "completion": "x"}\n'
HASH = hashlib.sha256(LINE).hexdigest()


def put(path: Path, content: bytes = LINE, age: float = 100.0) -> Path:
    path.write_bytes(content)
    os.utime(path, (NOW - age, NOW - age))
    return path


def listed(folder: Path, known: list[Seen] | None = None) -> dict[str, Seen]:
    before = {seen.name: seen for seen in known or ()}
    return {seen.name: seen for seen in list_files(UPath(str(folder)), before, now=NOW)}


def test_a_file_that_is_being_written_is_not_looked_at(tmp_path: Path) -> None:
    assert listed(tmp_path / "none") == {}
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
def test_a_file_is_complete_when_it_rests_and_has_its_end(tmp_path, name, content, age, state):
    put(tmp_path / name, content, age)
    seen = listed(tmp_path)[name]
    assert seen.state == state
    assert seen.content_hash == (hashlib.sha256(content).hexdigest() if state == "complete" else "")


def test_a_known_file_is_read_again_when_it_has_changed(tmp_path, monkeypatch):
    for name in ("a.jsonl", "b.jsonl", "c.jsonl"):
        put(tmp_path / name)
    before, read = listed(tmp_path), []
    kind = type(UPath(str(tmp_path)))
    plain = kind.read_bytes
    monkeypatch.setattr(kind, "read_bytes", lambda path: read.append(path.name) or plain(path))
    put(tmp_path / "b.jsonl", LINE * 2)
    put(tmp_path / "c.jsonl", LINE * 2, age=1.0)
    after = listed(tmp_path, list(before.values()))
    assert read == ["b.jsonl"]
    assert after["a.jsonl"] == before["a.jsonl"]
    assert after["b.jsonl"].content_hash != HASH
    replaced = after["c.jsonl"]  # it is being replaced, not withdrawn
    assert (replaced.state, replaced.content_hash) == ("settling", HASH)


def test_a_folder_that_is_gone_with_its_parent_withdraws_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "disk" / "arena"
    disk.mkdir(parents=True)
    known = list(listed(put(disk / "a.jsonl").parent).values())
    disk.parent.rename(tmp_path / "unmounted")
    with pytest.raises(OSError, match="is it mounted"):
        listed(disk, known)
    disk.parent.mkdir()
    assert listed(disk, known) == {}


def test_object_stores_are_read_too() -> None:
    folder = UPath("memory://candidate-folder-test/arena")
    (folder / "a.jsonl").write_bytes(LINE)
    (folder / "b.jsonl.part").write_bytes(LINE)
    seen = list_files(folder, now=9e12)
    assert [(one.name, one.state) for one in seen] == [("a.jsonl", "complete")]
    assert list_files(folder, {one.name: one for one in seen}, now=9e12) == seen


def test_the_folder_is_at_home_unless_a_variable_moves_it(home, monkeypatch):
    monkeypatch.delenv("JUDGELINE_CANDIDATES", raising=False)
    assert str(folder_of("arena")) == str(home / "candidates" / "arena")
    monkeypatch.setenv("JUDGELINE_CANDIDATES", "s3://bucket/new")
    assert candidates_uri() == "s3://bucket/new"
    with pytest.raises(ValueError, match="unsafe"):
        folder_of("../up")
    assert printable_name("caf\udce9.jsonl") == "caf\\udce9.jsonl"


def test_a_file_that_may_not_be_read_is_named_and_tried_again(tmp_path, monkeypatch):
    put(tmp_path / "a.jsonl")
    kind = type(UPath(str(tmp_path)))

    def refuse(path: UPath) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:  # the superuser of a test may read everything
        patch.setattr(kind, "read_bytes", refuse)
        (seen,) = listed(tmp_path).values()
        assert (seen.state, seen.is_waiting) == ("no-permission", False)
        patch.setattr(candidate_folder, "MAX_BYTES", 10)
        (huge,) = listed(tmp_path).values()  # and never read
        assert (huge.state, len(huge.content_hash)) == ("complete", 64)
    allowed = listed(tmp_path, [seen])["a.jsonl"]  # of the same size and time of change
    assert (allowed.state, allowed.content_hash) == ("complete", HASH)
