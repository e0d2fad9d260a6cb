"""A key is in the environment, and nowhere else afterwards: files, tables, events, words."""

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pyarrow.parquet as pq
import pytest
from fault_server import FaultServer, error, said, serving
from installation import Installation, graded

pytestmark = pytest.mark.slow

KEY = "sk-hush/7Qk3+9zX~Vw0=LmT5&rB8?yN2"
N_BATTLES = 60
SET = {"MY_KEY": KEY, "PYTHONASYNCIODEBUG": "1"}


def forms(key: str) -> set[str]:
    """The key as it is, as a URL, a header, JSON and base64 would write it."""
    found = {
        key, quote(key), quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1], repr(key),
    }  # fmt: skip
    for shift in range(3):  # base64 has three alignments of a text within a longer one
        text = base64.b64encode(b"x" * shift + key.encode()).decode().rstrip("=")
        whole = text[4 if shift else 0 : -2]
        found |= {whole, whole.translate(str.maketrans("+/", "-_"))}
    return found


def contents(file: Path) -> Iterator[str]:
    """Everything that a file says: its bytes, and what a table or a database in it holds."""
    yield file.read_bytes().decode("utf-8", "replace")
    if file.suffix == ".parquet":
        table = pq.read_table(file)
        yield from (str(value) for column in table.columns for value in column.to_pylist())
        yield str(table.schema.metadata)
    if file.read_bytes().startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            yield from database.iterdump()


def leaks(texts: dict[str, str], key: str = KEY) -> list[str]:
    return [where for where, text in texts.items() if any(form in text for form in forms(key))]


def left(folder: Path) -> dict[str, str]:
    return {str(f): "\n".join(contents(f)) for f in folder.rglob("*") if f.is_file()}


def installed(folder: Path, server: FaultServer, **variables: str) -> Installation:
    judge = {"api_key_env": "MY_KEY", "log_probabilities": "on"}
    return Installation(folder, server.url, N_BATTLES, judge=judge, environment=SET | variables)


def test_the_search_finds_a_key_wherever_it_is_put(tmp_path: Path) -> None:
    import pandas as pd

    hidden = {
        "plain": f"Bearer {KEY}.",
        "url": f"?key={quote(KEY, safe='')}",
        **{
            f"base64-{n}": base64.b64encode(b"u" * n + KEY.encode() + b"!").decode()
            for n in range(5)
        },
        "safe": base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
    }
    assert leaks(hidden) == list(hidden)
    pd.DataFrame({"a": [1] * 9, "b": [None] * 8 + [KEY]}).to_parquet(tmp_path / "t.parquet")
    with closing(sqlite3.connect(tmp_path / "any.db")) as database:
        database.execute("create table t (v text)")
        database.execute("insert into t values (?)", (KEY,))
        database.commit()
    assert len(leaks(left(tmp_path))) == 2
    assert leaks({"other": KEY[:-4], "none": ""}) == []


def test_a_run_leaves_the_key_nowhere(tmp_path: Path) -> None:
    """The server repeats the key in refusals, in unreadable answers and in errors."""
    said_back = {
        "said-refusal": said(f"I'm sorry, but the key {KEY} is not for grading."),
        "said-prose": said(f"You sent {KEY}. Well."),
        "said-grades": lambda s, b: said(f"{graded(b)} Sent with {KEY}.")(s, b),
        "said-error": lambda s, b: error(500, f"{KEY} broke me"),
        "said-400": lambda s, b: error(400, f"{KEY} is odd"),
    }
    names = list(said_back)

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        number = int(texts[0].split()[-1])
        name = names[number % len(names)] if number < 15 else None
        return None if name == "said-error" and n else name

    with serving(FaultServer(fault, answer=graded, extra=said_back)) as server:
        place = installed(tmp_path, server)
        words: dict[str, str] = {}
        for arguments in (
            ("run", "--corpus", "c", "--judge", "j", "--verbose"),
            ("run", "--corpus", "c", "--judge", "j", "--dry-run"),
            ("verdicts", "explain", "b0", "--judge", "j"),
            ("judges",),
        ):
            code, words[" ".join(arguments)] = place.command(*arguments)
            assert code == 0, words
        assert server.keys == {f"Bearer {KEY}"}
    # The client logs no request, so that a run says most with this option.
    assert "verdicts (" in words["run --corpus c --judge j --verbose"]
    assert (place.home / "reports" / "c.html").is_file()
    told = place.stored("verdicts", "c", "j")
    assert told["status"].value_counts().to_dict()["refusal"] == 6
    assert leaks(words | left(tmp_path)) == []


def test_a_refused_key_is_not_repeated(tmp_path: Path) -> None:
    extra: dict[str, Any] = {"wrong": lambda s, b: error(401, f"Incorrect API key: {KEY}")}

    def fault(texts: tuple[str, ...], n: int) -> str | None:
        return "wrong" if int(texts[0].split()[-1]) > 20 else None

    with serving(FaultServer(fault, answer=graded, extra=extra)) as server:
        place = installed(tmp_path, server)
        code, words = place.command("run", "--corpus", "c", "--judge", "j")
    assert code == 1
    assert "HTTP 401" in " ".join(words.split())  # lines end where the console does
    assert "[key]" in words
    assert leaks({"words": words} | left(tmp_path)) == []
