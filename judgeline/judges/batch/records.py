"""Records of batches: written before a provider gets one, so that none is paid twice."""

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from filelock import FileLock

from judgeline.atomic import sync_folder, write_whole


@dataclass(frozen=True)
class Record:
    """One batch, from the intention to submit it, written at a time in UTC.

    The identities of its calls are its requests' ``custom_id``. A batch may exist that has no
    `batch_id` here: the process that created it was killed before it could write that. A withdrawn
    record's file is being deleted at the provider. `answered` are calls whose failure was handed
    over: wanted once more, they are asked anew.
    """

    token: str
    written_at: str
    identities: tuple[str, ...]
    file_id: str | None = None
    batch_id: str | None = None
    is_withdrawn: bool = False
    answered: tuple[str, ...] = ()


class Records:
    """The records of one judge, in a folder that several processes may use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep every other process from submitting and recording; a kill ends it, too."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / ".lock"):
            yield

    def all(self) -> list[Record]:
        """Return all records, the oldest first; ValueError if one is damaged."""
        found = [_read(file) for file in self.folder.glob("*.json")]
        return sorted(found, key=lambda record: (record.written_at, record.token))

    def open(self, identities: Collection[str]) -> Record:
        """Write down that some calls are about to be submitted."""
        now = datetime.now(UTC).isoformat()
        return self.save(Record(token_hex(16), now, tuple(identities)))

    def save(self, record: Record) -> Record:
        """Write a record durably, over the one of the same token; return it."""
        write_whole(self.file(record.token), json.dumps(asdict(record)).encode("ascii"))
        return record

    def drop(self, record: Record) -> None:
        """Forget a record of which no batch has come or can come any more."""
        self.file(record.token).unlink(missing_ok=True)
        sync_folder(self.folder)

    def close(self, token: str, identities: Collection[str]) -> None:
        """Record calls of a batch whose failure was handed over, so that they may be asked anew."""
        if not identities:
            return
        with self.exclusive():
            file = self.file(token)
            if file.is_file():
                record = _read(file)
                answered = tuple(sorted({*record.answered, *identities}))
                self.save(replace(record, answered=answered))

    def close_stored(self, stored: Mapping[str, datetime]) -> None:
        """Note failures that were stored after a batch of theirs was opened, so handed over.

        Nothing else could have been stored since: a call under way is in one batch alone, and not
        asked live.
        """
        for record in self.all():
            opened = datetime.fromisoformat(record.written_at)
            known = stored.keys() & (set(record.identities) - set(record.answered))
            self.close(record.token, [one for one in known if stored[one] > opened])

    def under_way(self) -> set[str]:
        """Return the calls submitted, except those whose failure was handed over."""
        latest: set[str] = set()
        for record in self.all():
            latest = (latest | set(record.identities)) - set(record.answered)
        return latest

    def file(self, token: str) -> Path:
        """Return the file of a token's record."""
        return self.folder / f"{token}.json"


def _read(file: Path) -> Record:
    try:
        fields: dict[str, Any] = json.loads(file.read_text(encoding="ascii"))
        lists = {name: tuple(fields[name]) for name in ("identities", "answered")}
        return Record(**{**fields, **lists})
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{file} is no record of a submitted batch ({error}); restore it, or delete it if no "
            "batch of this judge is under way at the provider: its answers would be paid for again"
        ) from error
