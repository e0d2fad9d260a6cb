"""Folders of a corpus' candidates and votes: files, whether complete, and content hashes."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from upath import UPath

from judgeline.paths import candidates_uri, votes_uri
from resources.tables.store import require_slug

SETTLED_SECONDS = 5.0
"""A file that was changed more recently may still be growing."""
PATIENCE_SECONDS = 60.0
"""A file without an end that nobody has changed for longer is taken as it is, and refused."""
MAX_BYTES = 200_000_000
_UNFINISHED = (".part", ".tmp", ".crdownload", ".partial", ".swp", "~")

State = Literal["complete", "settling", "no-end", "no-permission"]


class Seen(NamedTuple):
    """A file's last known state: name, bytes, time of change (seconds), sha256 of its content.

    The hash of an incomplete file is that of its last complete content, or empty. The hash of a
    file over `MAX_BYTES`, or of one without read permission, is that of its name and size.
    """

    name: str
    size: int
    changed: float
    content_hash: str
    state: State

    @property
    def is_waiting(self) -> bool:
        """Whether another look may find it complete."""
        return self.state in ("settling", "no-end")


def folder_of(corpus: str, what: Literal["candidates", "votes"] = "candidates") -> UPath:
    """Return the folder of a corpus' candidates or votes; it need not exist."""
    uri = candidates_uri() if what == "candidates" else votes_uri()
    return UPath(uri) / require_slug(corpus)


def list_files(
    folder: UPath, known: Mapping[str, Seen] | None = None, *, now: float | None = None
) -> list[Seen]:
    """Return the files of a folder by name; a file of unchanged size and time is not read again."""
    if not folder.exists():
        if known:
            require_mounted(folder)
        return []
    names = sorted(path.name for path in folder.iterdir())
    paths = [folder / name for name in names if not is_passed_over(name)]
    moment, before = time.time() if now is None else now, known or {}
    seen = [look(path, before.get(path.name), now=moment) for path in paths if path.is_file()]
    return [one for one in seen if one is not None]


def list_votes(corpus: str, known: Mapping[str, Seen] | None = None) -> list[Seen]:
    """Return the files of votes on a corpus, whose names end in .jsonl; others are passed over."""
    folder = folder_of(corpus, "votes")
    if folder.is_file():
        raise NotADirectoryError(
            f"{folder} is a file, and should be the folder of votes on {corpus}: no new votes are "
            "read; give it another name, and move it into a folder of this name"
        )
    return [one for one in list_files(folder, known) if one.name.lower().endswith(".jsonl")]


def require_mounted(folder: UPath) -> None:
    """Raise an OSError if a folder that held files before has gone with the one that it is in."""
    if folder.protocol in ("", "file") and not folder.parent.exists():
        raise OSError(
            f"{folder.parent} is not there, and held files of {folder.name} before: is it "
            f"mounted? Nothing is withdrawn; to withdraw them all, leave {folder.parent} there "
            "and empty"
        )


def wait_until_settled(folder: UPath) -> None:
    """Wait once, for `SETTLED_SECONDS`, if a file in a folder changed just now."""
    if any(seen.state == "settling" for seen in list_files(folder)):
        time.sleep(SETTLED_SECONDS)


def hash_of(files: Sequence[Seen]) -> str:
    """Return a hash of the complete files of a folder; empty without any."""
    hashes = sorted({one.content_hash for one in files if not one.is_waiting})
    return hashlib.sha256("".join(hashes).encode()).hexdigest() if hashes else ""


def printable_name(name: str) -> str:
    """Return a file's name as text that can be stored, whatever bytes it was made of."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def is_passed_over(name: str) -> bool:
    """Return whether a file's name says that it is hidden, or still being written."""
    return name.startswith(".") or name.lower().endswith(_UNFINISHED)


def look(path: UPath, before: Seen | None = None, *, now: float) -> Seen | None:
    """Return the state of one file now, None if it is gone; `before` is its last known state."""
    try:
        found = path.stat()  # of an object store whose objects have no time of change: 0
        size, changed = int(found.st_size), float(found.st_mtime)
        if before is not None and before[1:3] == (size, changed) and before.state == "complete":
            return before
        held = before.content_hash if before else ""
        if 0 <= now - changed < SETTLED_SECONDS:
            return Seen(path.name, size, changed, held, "settling")
        if size > MAX_BYTES:
            return Seen(path.name, size, changed, _hash_of_name(path.name, size), "complete")
        content = path.read_bytes()
    except FileNotFoundError:  # gone since the folder was listed
        return None
    except PermissionError:  # allowing it changes neither size nor time, so that it is tried again
        return Seen(path.name, size, changed, _hash_of_name(path.name, size), "no-permission")
    is_parquet = path.name.lower().endswith((".parquet", ".pq"))  # its writer ends with a mark
    has_end = content[8:].endswith(b"PAR1") if is_parquet else content.endswith((b"\n", b"\r"))
    if not has_end and 0 <= now - changed < PATIENCE_SECONDS:
        return Seen(path.name, size, changed, held, "no-end")
    return Seen(path.name, size, changed, hashlib.sha256(content).hexdigest(), "complete")


def _hash_of_name(name: str, size: int) -> str:
    return hashlib.sha256(f"{name}\x1f{size}".encode("utf-8", "surrogatepass")).hexdigest()
