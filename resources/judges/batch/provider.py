"""The provider's side: files and batches, with the retries and the messages of served judges."""

import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar
from urllib.parse import quote

import aiohttp

from resources.judges.batch.lines import CHAT
from resources.judges.batch.records import Record
from resources.judges.live.bridge import run_once
from resources.judges.live.connection import (
    MOST_BYTES,
    Connection,
    MalformedReplyError,
    StatusError,
)
from resources.judges.live.endpoint import EndpointError, OutOfReachError
from resources.judges.live.replies import member
from resources.judges.live.troubles import TROUBLES, Retries, Trouble

R = TypeVar("R")

MARK = "judgeline"
"""Key of the token in a batch's metadata."""

_PAGE = "100"
_NOT_FOUND = 404
_UNCLEAR = {408, 409, 425}  # it may have been done, and the reply lost on the way
_LOST = Trouble("retry", "transport", None, "")


class Provider:
    """An endpoint that takes batches; each request has a connection of its own."""

    def __init__(self, retries: Retries, timeout_s: float) -> None:
        self._retries, self._timeout_s = retries, timeout_s

    def attempts(self) -> Iterator[int]:
        """Count attempts, with a pause before each but the first."""
        attempt = 0
        wait: float | None = 0.0
        while wait is not None:
            time.sleep(wait)
            yield attempt
            wait, attempt = self._retries.wait_s(attempt, _LOST), attempt + 1

    def pause(self) -> None:
        """Wait until a request on its way has arrived: the longest pause between attempts."""
        time.sleep(self._retries.policy.cap_s)

    def upload(self, name: str, file: IO[bytes]) -> str:
        """Return the id of a file of requests, uploaded; by itself it costs nothing."""
        file.flush()

        async def send(connection: Connection) -> Any:
            with os.fdopen(os.dup(file.fileno()), "rb") as content:  # its sender closes it
                content.seek(0)
                form = aiohttp.FormData({"purpose": "batch"})
                form.add_field("file", content, filename=name)
                return _named(await connection.send("POST", "/files", data=form))

        return str(self._insist("take a file of requests", send)["id"])

    def create(self, record: Record) -> str | None:
        """Return the id of the batch made of a record's file, or None if there may be one.

        There may be one after anything but a clear no: a reply that was lost is no reply, nor is
        one that cannot be read.
        """
        asked = {
            "input_file_id": record.file_id or "",
            "endpoint": CHAT,
            "completion_window": "24h",
            "metadata": {MARK: record.token},
        }

        async def send(connection: Connection) -> Any:
            try:
                return _named(await connection.ask("/batches", asked))
            except TROUBLES as error:
                if _is_clear_no(error):
                    raise
                return None

        batch = self._insist("make a batch of a file", send)
        return None if batch is None else str(batch["id"])

    def find(self, record: Record) -> str | None:
        """Return the id of the batch that came of a record's file, wherever it was created."""

        async def search(connection: Connection) -> Any:
            query = {"limit": _PAGE}
            while True:
                page = await connection.ask("/batches", **query)
                batches = member(page, "data")
                if not isinstance(batches, list):
                    raise MalformedReplyError("the reply is no list")
                found = next((one for one in batches if _came_of(one, record)), None)
                last = member(batches[-1], "id") if batches else None
                if found or not last or page.get("has_more") is False or last == query.get("after"):
                    return found
                query["after"] = last

        batch = self._insist("list its batches", search)
        return None if batch is None else str(_named(batch)["id"])

    def has_file(self, file_id: str) -> bool:
        """Return whether a file is there."""
        return self._unless_missing("find a file", "GET", _file(file_id)) is not None

    def delete(self, file_id: str) -> None:
        """Delete a file, so that no batch can be made of it; one that is gone is fine."""
        self._unless_missing("delete a file", "DELETE", _file(file_id))

    def look(self, batch_id: str) -> Any | None:
        """Return a batch as it is now, or None if there is none of that name."""
        place = f"/batches/{quote(batch_id, safe='')}"
        return self._unless_missing("say how a batch is", "GET", place)

    def lines(self, file_id: str) -> Iterator[bytes] | None:
        """Return the lines of a result file, or None if it is gone."""

        async def fetch(connection: Connection) -> IO[bytes]:
            file = TemporaryFile()  # noqa: SIM115  its reader closes it
            try:
                async with connection.pieces("GET", f"{_file(file_id)}/content") as pieces:
                    async for piece in pieces:
                        file.write(piece)
                file.seek(0)
            except BaseException:
                file.close()
                raise
            return file

        file = self._insist("hand over results", _or_none(fetch))
        return None if file is None else _lines_of(file)

    def _unless_missing(self, what: str, method: str, place: str) -> Any | None:
        async def send(connection: Connection) -> Any:
            return _named(await connection.send(method, place))

        return self._insist(what, _or_none(send))

    def _insist(self, what: str, ask: Callable[[Connection], Awaitable[R]]) -> R:
        """Return the result of a request, tried again as often as it may help."""
        connection = Connection(self._retries.endpoint, self._timeout_s)

        async def attempt() -> R | Trouble:
            try:
                return await ask(connection)
            except TROUBLES as error:
                return self._retries.diagnose(error)

        outcome = run_once(self._retries.insist(attempt, Counter()), connection.close)
        if not isinstance(outcome, Trouble):
            return outcome
        kind = OutOfReachError if outcome.action == "retry" else EndpointError
        raise kind(
            f"the endpoint {self._retries.endpoint.url} did not {what}: {outcome.message}. See "
            "that it offers the Batch API (if not, remove 'batch' from the judge in "
            "config/judges.yaml) and that the key may use it, then run again: what was submitted "
            "is collected then, and not paid for twice"
        )


def _or_none(
    ask: Callable[[Connection], Awaitable[R]],
) -> Callable[[Connection], Awaitable[R | None]]:
    """Return a request whose result is None where there is nothing of that name."""

    async def send(connection: Connection) -> R | None:
        try:
            return await ask(connection)
        except StatusError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    return send


def _file(file_id: str) -> str:
    return f"/files/{quote(file_id, safe='')}"


def _named(reply: Any) -> Any:
    """Return a reply that is an object with an id; nothing else."""
    name = member(reply, "id")
    if isinstance(name, str) and name:
        return reply
    raise MalformedReplyError("the reply has no id")


def _lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; one longer than any answer comes in pieces, which say nothing."""
    with file:
        yield from iter(lambda: file.readline(MOST_BYTES), b"")


def _is_clear_no(error: Exception) -> bool:
    """Whether a provider says that it did not do what it was asked to do."""
    if not isinstance(error, StatusError):
        return False
    return 400 <= error.status < 500 and error.status not in _UNCLEAR


def _came_of(batch: Any, record: Record) -> bool:
    """Whether a batch was made of a record's file; not every provider keeps metadata."""
    token = member(member(batch, "metadata"), MARK)
    return token == record.token or member(batch, "input_file_id") == record.file_id
