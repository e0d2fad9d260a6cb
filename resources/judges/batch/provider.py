"""The provider's side: files and batches, with the retries and the messages of served judges."""

import io
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any, Self

import httpx2
import openai

from resources.judges.batch.lines import CHAT
from resources.judges.batch.records import Record
from resources.judges.live.connection import MOST_BYTES
from resources.judges.live.endpoint import EndpointError, OutOfReachError
from resources.judges.live.replies import MalformedReplyError
from resources.judges.live.troubles import TROUBLES, Retries, Trouble

MARK = "judgeline"
"""Key of the token in a batch's metadata."""

_PAGE = 100
_UNCLEAR = {408, 409, 425}  # it may have been done, and the reply lost on the way
_LOST = Trouble("retry", "transport", None, "")


class Provider:
    """An endpoint that takes batches."""

    def __init__(self, client: openai.OpenAI, retries: Retries) -> None:
        self._client, self._retries = client, retries

    @classmethod
    @contextmanager
    def connected(cls, retries: Retries, timeout_s: float) -> Iterator[Self]:
        """Give a provider for a while, with a connection of its own."""
        client = retries.endpoint.blocking_client(timeout_s)
        try:
            yield cls(client, retries)
        finally:
            client.close()

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

        def send() -> Any:
            file.seek(0)
            return self._client.files.create(file=(name, file), purpose="batch")

        return str(self._insist("take a file of requests", send).id)

    def create(self, record: Record) -> str | None:
        """Return the id of the batch made of a record's file, or None if there may be one.

        There may be one after anything but a clear no: a reply that was lost is no reply, nor is
        one that cannot be read.
        """

        def send() -> Any:
            try:
                return _whole(
                    self._client.batches.create(
                        input_file_id=record.file_id or "",
                        endpoint=CHAT,
                        completion_window="24h",
                        metadata={MARK: record.token},
                    )
                )
            except TROUBLES as error:
                if _is_clear_no(error):
                    raise
                return None

        batch = self._insist("make a batch of a file", send)
        return None if batch is None else str(batch.id)

    def find(self, record: Record) -> str | None:
        """Return the id of the batch that came of a record's file, wherever it was created."""

        def search() -> Any:
            pages = self._client.batches.list(limit=_PAGE)
            if not isinstance(getattr(pages, "data", None), list):
                raise MalformedReplyError("the reply is no list")
            return next((one for one in pages if _came_of(one, record)), None)

        batch = self._insist("list its batches", search)
        return None if batch is None else str(batch.id)

    def has_file(self, file_id: str) -> bool:
        """Return whether a file is there."""
        retrieve = partial(self._client.files.retrieve, file_id)
        return self._unless_missing("find a file", retrieve) is not None

    def delete(self, file_id: str) -> None:
        """Delete a file, so that no batch can be made of it; one that is gone is fine."""
        self._unless_missing("delete a file", partial(self._client.files.delete, file_id))

    def look(self, batch_id: str) -> Any | None:
        """Return a batch as it is now, or None if there is none of that name."""
        retrieve = partial(self._client.batches.retrieve, batch_id)
        return self._unless_missing("say how a batch is", retrieve)

    def lines(self, file_id: str) -> Iterator[bytes] | None:
        """Return the lines of a result file, or None if it is gone."""

        def fetch() -> Any:
            with self._client.files.with_streaming_response.content(file_id) as reply:
                return _on_disk(reply.iter_bytes())

        file = self._unless_missing("hand over results", fetch)
        return None if file is None else _lines_of(file)

    def _unless_missing(self, what: str, call: Callable[[], Any]) -> Any | None:
        def send() -> Any:
            try:
                return call()
            except openai.NotFoundError:
                return None

        return self._insist(what, send)

    def _insist(self, what: str, call: Callable[[], Any]) -> Any:
        """Return the result of a call, tried again as often as it may help."""
        for attempt in itertools.count():
            try:
                return _whole(call())
            except TROUBLES as error:
                trouble = self._retries.diagnose(error)
            if (wait := self._retries.wait_s(attempt, trouble)) is None:
                break
            time.sleep(wait)
        kind = OutOfReachError if trouble.action == "retry" else EndpointError
        raise kind(
            f"the endpoint {self._retries.endpoint.url} did not {what}: {trouble.message}. See "
            "that it offers the Batch API (if not, remove 'batch' from the judge in "
            "config/judges.yaml) and that the key may use it, then run again: what was submitted "
            "is collected then, and not paid for twice"
        )


def _whole(reply: Any) -> Any:
    """Return a reply that is none, a file, or an object with an id; nothing else."""
    if reply is None or isinstance(reply, io.IOBase):
        return reply
    name = getattr(reply, "id", None)
    if isinstance(name, str) and name:
        return reply
    raise MalformedReplyError("the reply has no id")


def _on_disk(content: Iterator[bytes]) -> IO[bytes]:
    """Return a temporary file with the content of a reply."""
    file = TemporaryFile()  # noqa: SIM115  its reader closes it
    try:
        file.writelines(content)
        file.seek(0)
    except BaseException as error:
        file.close()
        if isinstance(error, httpx2.HTTPError):
            raise MalformedReplyError(f"the reply broke off: {error}") from None
        raise
    return file


def _lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; one longer than any answer comes in pieces, which say nothing."""
    with file:
        yield from iter(lambda: file.readline(MOST_BYTES), b"")


def _is_clear_no(error: Exception) -> bool:
    """Whether a provider says that it did not do what it was asked to do."""
    if not isinstance(error, openai.APIStatusError):
        return False
    return 400 <= error.status_code < 500 and error.status_code not in _UNCLEAR


def _came_of(batch: Any, record: Record) -> bool:
    """Whether a batch was made of a record's file; not every provider keeps metadata."""
    metadata = getattr(batch, "metadata", None) or {}
    return metadata.get(MARK) == record.token or batch.input_file_id == record.file_id
