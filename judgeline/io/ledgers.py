"""Ledgers: files of JSON lines that only grow, and are refused rather than begun anew."""

import codecs
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from judgeline.suggest import quoted

Entry = dict[str, Any]
Kinds = Mapping[str, type | tuple[type, ...]]
"""Types of the values of an entry, by key."""


def read_ledger(path: Path, kinds: Kinds) -> list[Entry]:
    """Return the entries of a ledger, none where the file does not exist.

    ValueError for a line that is no entry with values of these types: a ledger that cannot be read
    is not empty, and what follows from one that is would be wrong.
    """
    if not path.exists():
        return []
    entries = []
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line.decode())
        except (ValueError, RecursionError):
            entry = None
        if not (isinstance(entry, dict) and _fits(entry, kinds)):
            shown = quoted(line.decode(errors="replace"))
            raise ValueError(
                f"{path}, line {number}: {shown} is no entry of this ledger; restore the "
                "file, since a new one would forget the looks that it counts"
            )
        entries.append(entry)
    return entries


def _fits(entry: Entry, kinds: Kinds) -> bool:
    """Return whether an entry has each key, with a value of its type; true is no number."""
    return all(
        isinstance(entry.get(key, ...), kind) and (kind is bool or not isinstance(entry[key], bool))
        for key, kind in kinds.items()
    )


def extend_ledger(path: Path, entries: Iterable[Entry]) -> None:
    """Append entries to a ledger and flush them to the disk; the file is made if missing.

    An editor may have left the last entry without an end of its line.
    """
    lines = "".join(json.dumps(entry, allow_nan=False) + "\n" for entry in entries)
    is_open = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
    lines = "\n" * (is_open and bool(lines)) + lines
    with path.open("a", encoding="utf-8", newline="\n") as ledger:
        ledger.write(lines)
        ledger.flush()
        os.fsync(ledger.fileno())
