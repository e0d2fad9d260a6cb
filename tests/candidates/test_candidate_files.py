"""One candidate file: what it says, and in which words it is set aside."""

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.candidates import file as candidate_file
from resources.candidates.file import CandidateFile, read_candidate
from resources.candidates.schema import RefusedError

GOOD = {"question_id": "q1", "completion": "Yes."}


def lines(*records: Any) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def parquet(**columns: Any) -> bytes:
    sink = BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def read(content: bytes, name: str = "new-model.jsonl") -> CandidateFile:
    return read_candidate(name, content)


def refusal(content: bytes, name: str = "new-model.jsonl") -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        read(content, name)
    assert repr(name)[1:-1] in caught.value.detail
    return caught.value


def test_the_name_of_the_file_is_the_models_unless_a_column_says_otherwise() -> None:
    assert read(lines(GOOD)).model == "new-model"
    assert read(lines({**GOOD, "model": "Qwen/Qwen3 8B"})).model == "Qwen/Qwen3 8B"


def test_other_columns_with_one_value_are_metadata() -> None:
    rows = [
        {**GOOD, "family": "oak", "temperature": 0.7, "run": {"seed": 3}, "tokens": 5},
        {**GOOD, "question_id": 2, "temperature": 0.7, "run": {"seed": 3}, "tokens": 6},
    ]
    found = read(lines(*rows))
    assert found.family == "oak"
    assert found.metadata == {"temperature": 0.7, "run": {"seed": 3}}
    assert [answer.question_id for answer in found.answers] == ["q1", "2"]
    assert [answer.number for answer in found.answers] == [1, 2]


def test_parquet_says_the_same_as_json_lines() -> None:
    content = parquet(question_id=["q1"], completion=["Yes."], size=[7])
    found = read(content, "new-model.parquet")
    assert (found.model, found.metadata) == ("new-model", {"size": 7})
    assert found.answers == [candidate_file.Answered(0, "q1", None, "Yes.")]


def test_blank_lines_and_a_byte_order_mark_do_no_harm() -> None:
    content = b"\xef\xbb\xbf" + lines(GOOD) + b"\n" + lines({**GOOD, "question_id": "q2"})
    assert [answer.number for answer in read(content).answers] == [1, 3]


LONG = "x" * 121

REFUSALS: dict[str, tuple[bytes, str, str]] = {
    "not UTF-8": (lines(GOOD) + b'{"completion": "\xff"}\n', "not-utf-8", r"line 2: byte b'\\xff'"),
    "a broken line": (lines(GOOD) + b'{"a": 1\n', "broken-json", r"line 2: no JSON object"),
    "a list": (lines([1, 2]), "broken-json", r"line 1: found \[1, 2\]; expected one object"),
    "a deep one": (b"[" * 100_000 + b"\n", "broken-json", "line 1: nested too deeply"),
    "a key twice": (b'{"a": 1, "a": 2}\n', "broken-json", "'a' occurs twice"),
    "no newline": (lines(GOOD)[:-1], "no-end", "does not end with a newline"),
    "nothing": (b" \n", "empty-file", "holds nothing"),
    "no completion": (
        lines({"question_id": "q1", "text": "x"}),
        "missing-column",
        "has 'question_id', 'text'",
    ),
    "no question": (lines({"completion": "x"}), "missing-column", "neither a column 'question_id'"),
    "neither here": (
        lines(GOOD, {"completion": "x"}),
        "no-question",
        "line 2: question_id and instruction are empty",
    ),
    "an empty answer": (
        lines(GOOD, {**GOOD, "completion": " "}),
        "empty-completion",
        "line 2, column 'completion': found ' '",
    ),
    "no answer": (lines({**GOOD, "completion": None}), "empty-completion", "found None"),
    "a number": (lines({**GOOD, "completion": 5}), "not-text", "column 'completion': found 5"),
    "a false id": (
        lines({**GOOD, "question_id": True}),
        "not-text",
        "column 'question_id': found True",
    ),
    "half a pair": (
        b'{"question_id": "q1", "completion": "ab\\ud800"}\n',
        "not-text",
        r"line 1, column 'completion': character 2 is '\\ud800'",
    ),
    "two models": (
        lines({**GOOD, "model": "a"}, {**GOOD, "model": "b"}),
        "two-models",
        "'a' in line 1 and 'b' in line 2",
    ),
    "two families": (
        lines({**GOOD, "family": "a"}, {**GOOD, "family": "b"}),
        "two-families",
        "one file per model",
    ),
    "a line break": (lines({**GOOD, "model": "a\nb"}), "unsafe-model-name", r"is 'a\\nb'"),
    "a hidden sign": (lines({**GOOD, "model": "a\u202eb"}), "unsafe-model-name", "invisible"),
    "an outer space": (lines({**GOOD, "model": " a"}), "unsafe-model-name", "no space"),
    "a long name": (lines({**GOOD, "model": LONG}), "unsafe-model-name", "has 121 characters"),
    "a control": (
        lines({**GOOD, "model": "Control:null-model"}),
        "unsafe-model-name",
        "those of attack controls",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_file_is_set_aside_with_row_value_and_remedy(case: str) -> None:
    content, reason, sentence = REFUSALS[case]
    found = refusal(content)
    assert found.reason == reason
    assert re.search(sentence, found.detail), found.detail
    assert ";" in found.detail or ":" in found.detail  # the remedy follows


@pytest.mark.parametrize("name", ["answers.csv", "answers.json", "README", "answers.pkl"])
def test_other_formats_are_named(name: str) -> None:
    assert refusal(lines(GOOD), name).reason == "unknown-format"


def test_broken_parquet_is_set_aside() -> None:
    whole = parquet(question_id=["q1"], completion=["Yes."])
    assert refusal(b"PAR1 nonsense PAR1", "new.parquet").reason == "broken-parquet"
    assert refusal(whole[:-20] + whole[-8:], "new.parquet").reason == "broken-parquet"
    assert refusal(b"PAR1", "new.parquet").reason == "broken-parquet"


def test_what_unpacks_to_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_file, "MAX_BYTES", 1000)
    content = parquet(question_id=["q1"], completion=["Yes. " * 10_000])
    assert len(content) < 4000
    found = refusal(content, "new.parquet")
    assert found.reason == "too-large"
    assert "at most 1,000 are read" in found.detail


def test_too_many_rows_and_endless_answers_are_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_file, "MAX_ROWS", 1)
    content = parquet(question_id=["q1", "q2"], completion=["a", "b"])
    assert "2 rows, at most 1" in refusal(content, "new.parquet").detail
    monkeypatch.setattr(candidate_file, "LONGEST_COMPLETION", 3)
    assert "4 characters, at most 3" in refusal(lines(GOOD)).detail


def test_no_file_can_run_anything(tmp_path: Path) -> None:
    """A pickle inside Parquet's metadata, or as a file, is bytes like any other."""
    import pickle  # noqa: TID251

    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    trap = pickle.dumps(Trap())
    table = pa.table({"question_id": ["q1"], "completion": ["Yes."]})
    sink = BytesIO()
    pq.write_table(table.replace_schema_metadata({b"pandas": trap, b"x": trap}), sink)
    read(sink.getvalue(), "new.parquet")
    refusal(trap + b"\n", "new.jsonl")
    assert not (tmp_path / "sprung").exists()


@given(st.binary(max_size=200), st.sampled_from([".jsonl", ".parquet", ""]))
def test_any_bytes_are_read_or_set_aside_in_storable_words(content: bytes, ending: str) -> None:
    try:
        read_candidate(f"new{ending}", content + b"\n")
    except RefusedError as refused:
        f"{refused.reason} {refused.detail}".encode()


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.none()), max_size=3))
def test_any_records_are_read_or_set_aside(records: list[dict[str, Any]]) -> None:
    try:
        read_candidate("new.jsonl", lines(*({**GOOD, **record} for record in records)))
    except RefusedError as refused:
        refused.detail.encode("utf-8")


def test_a_value_that_is_stored_once_counts_in_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_file, "MAX_BYTES", 50_000)
    text = "x" * 1_000
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array([text]))
    for completion in (repeated, [text] * 100, [[text]] * 100):
        content = parquet(question_id=list(map(str, range(100))), completion=completion)
        assert len(content) < 20_000
        assert refusal(content, "new-model.parquet").reason == "too-large"


def test_rows_and_cells_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    each_its_own = lines(*({f"column {n}": 1} for n in range(100)))  # 100 x 100 cells
    wide = parquet(**{f"column {n}": pa.nulls(100) for n in range(100)})
    monkeypatch.setattr(candidate_file, "MAX_CELLS", 9_999)
    for content, name in ((each_its_own, "new-model.jsonl"), (wide, "new-model.parquet")):
        found = refusal(content, name)
        assert (found.reason, "100 columns in 100 rows" in found.detail) == ("too-large", True)
    monkeypatch.setattr(candidate_file, "MAX_ROWS", 99)
    assert "has 100 rows" in refusal(each_its_own).detail
