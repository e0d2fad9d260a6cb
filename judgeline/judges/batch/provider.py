"""The provider's side: files and batches, with the retries and the messages of served judges."""

import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any, Literal, NamedTuple

from judgeline.judges.batch.records import Record
from judgeline.judges.forms.form import Form
from judgeline.judges.live.bridge import run_once
from judgeline.judges.live.connection import Connection, Send
from judgeline.judges.live.endpoint import EndpointError, OutOfReachError
from judgeline.judges.live.errors import MOST_BYTES, MalformedReplyError, StatusError
from judgeline.judges.live.replies import member, read_reply, tokens_of, understood
from judgeline.judges.live.troubles import (
    TROUBLES,
    Retries,
    RetryPolicy,
    Trouble,
    codes_in,
    diagnose_status,
    said_in,
)
from judgeline.judges.presentation import Answer, Presentation

CHAT: Literal["/v1/chat/completions"] = "/v1/chat/completions"

_SEPARATORS = {ord(one): f"\\u{ord(one):04x}" for one in "\x85\u2028\u2029"}


class Limits(NamedTuple):
    """Most requests, and most bytes, of one batch; those of OpenAI by default."""

    requests: int = 50_000
    bytes: int = 200_000_000


class Part(NamedTuple):
    """Requests of one batch: the calls, and the file to upload."""

    identities: list[str]
    file: IO[bytes]


class Result(NamedTuple):
    """Result of one request of a batch: an answer, and its value if it could be read.

    `hopeless` says why the same, asked again, would fail until somebody mends something: that is no
    answer. `is_lost` marks a result that the provider has deleted.
    """

    answer: Answer
    is_billed: bool
    value: Any = None
    hopeless: str | None = None
    is_lost: bool = False


NOTHING = Result(
    Answer(None, "transport", 0, 0, said="the provider did not carry the request out"),
    is_billed=False,
)
"""The result of a request that was not carried out."""

LOST = Result(
    Answer(None, "transport", 0, 0, said="the provider has deleted the results"),
    is_billed=True,
    is_lost=True,
)
"""What is known of a request whose results are gone: it may have been carried out."""


def write_parts(requests: Iterable[tuple[str, dict[str, Any]]], limits: Limits) -> Iterator[Part]:
    """Yield the files of requests within the limits; each is written when the last is done with."""
    lines = ((identity, _write(identity, body)) for identity, body in requests)
    identity, line = next(lines, ("", b""))
    while line:
        identities: list[str] = []
        left = limits.bytes
        with TemporaryFile() as file:
            while line and (
                not identities or (len(line) <= left and len(identities) < limits.requests)
            ):
                identities.append(identity)
                file.write(line)
                left -= len(line)
                identity, line = next(lines, ("", b""))
            yield Part(identities, file)


def _write(identity: str, body: dict[str, Any]) -> bytes:
    line = {"custom_id": identity, "method": "POST", "url": CHAT, "body": body}
    text = json.dumps(line, ensure_ascii=False)
    # legal within JSON, but what some programs take for the end of a line
    return (text.translate(_SEPARATORS) + "\n").encode("utf-8")


def read_lines(content: Iterable[bytes]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Yield the identity and the content of the lines of a result file; None for no result."""
    for line in content:
        if not line.strip():
            continue
        try:
            read = json.loads(line)
        except ValueError:
            read = None
        result = read if isinstance(read, dict) else {}
        identity = result.get("custom_id")
        yield identity if isinstance(identity, str) else None, result


def read_result(
    line: dict[str, Any], shown: Presentation, policy: RetryPolicy, form: Form
) -> Result:
    """Return the result in a line, read as if its reply had come by itself."""
    reply = member(line, "response")
    status, body = member(reply, "status_code"), member(reply, "body")
    stated, is_success = tokens_of(body), status == 200
    if is_success:
        try:
            reading = understood(body, partial(read_reply, shown=shown, form=form))
        except MalformedReplyError as error:
            failed = replace(NOTHING.answer, failure=error.failure, said=str(error))
            return Result(failed, is_billed=True)
        except StatusError as error:
            status, body = error.status, {"error": error.error}
        else:
            return Result(reading.answer, is_billed=True, value=reading.value)
    trouble = _trouble(status, member(body, "error") or line.get("error"), policy, shown)
    stopped = trouble.message if trouble.action == "stop" else None
    answer = Answer(None, trouble.failure, *stated, said=trouble.message)
    is_worked_on = is_success and trouble.may_be_paid
    return Result(answer, is_billed=is_worked_on or any(stated), hopeless=stopped)


def _trouble(status: Any, error: Any, policy: RetryPolicy, shown: Presentation) -> Trouble:
    said = said_in(error)
    if not isinstance(status, int):  # it was never sent: the batch expired or was cancelled
        return Trouble("retry", "transport", None, f"{member(error, 'code')}: {said}")
    texts = "\n".join((shown.instruction, shown.first_completion, shown.second_completion))
    return diagnose_status(status, said, {}, policy, codes=codes_in(error), shown=texts)


MARK = "judgeline"
"""Key of the token in a batch's metadata."""

_PAGE = 100
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
        """Wait for the longest pause between attempts, in which a request in flight arrives."""
        time.sleep(self._retries.policy.cap_s)

    def upload(self, name: str, file: IO[bytes]) -> str:
        """Return the id of a file of requests, uploaded; by itself it costs nothing."""
        file.flush()

        async def send(connection: Connection) -> Any:
            """Upload the file from its beginning."""
            file.seek(0)
            return _named(
                await connection.ask(
                    lambda client: client.files.with_raw_response.create(
                        file=(name, file), purpose="batch"
                    )
                )
            )

        return str(self._insist("take a file of requests", send)["id"])

    def create(self, record: Record) -> str | None:
        """Return the id of the batch made of a record's file, or None if that is not known."""

        async def send(connection: Connection) -> Any:
            """Create the batch of the uploaded file."""
            try:
                return _named(
                    await connection.ask(
                        lambda client: client.batches.with_raw_response.create(
                            input_file_id=record.file_id or "",
                            endpoint=CHAT,
                            completion_window="24h",
                            metadata={MARK: record.token},
                        )
                    )
                )
            except TROUBLES as error:
                status = error.status if isinstance(error, StatusError) else 0
                if 400 <= status < 500 and status not in _UNCLEAR:
                    raise
                return None

        batch = self._insist("make a batch of a file", send)
        return None if batch is None else str(batch["id"])

    def find(self, record: Record) -> str | None:
        """Return the id of the batch that came of a record's file, wherever it was created."""

        async def search(connection: Connection) -> Any:
            """Return the batch of the file, looked for page by page; None where none is."""
            query: dict[str, Any] = {"limit": _PAGE}
            while True:
                page = await connection.ask(
                    lambda client: client.batches.with_raw_response.list(**query)
                )
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
        """Return whether the provider has a file."""
        found = self._unless_missing(
            "find a file", lambda client: client.files.with_raw_response.retrieve(file_id)
        )
        return found is not None

    def delete(self, file_id: str) -> None:
        """Delete a file, so that no batch can be made of it; one that is gone is fine."""
        self._unless_missing(
            "delete a file", lambda client: client.files.with_raw_response.delete(file_id)
        )

    def look(self, batch_id: str) -> Any | None:
        """Return the present state of a batch; None if the provider does not know it."""
        return self._unless_missing(
            "say how a batch is", lambda client: client.batches.with_raw_response.retrieve(batch_id)
        )

    def lines(self, file_id: str) -> Iterator[bytes] | None:
        """Return the lines of a result file, or None if it is gone."""

        async def fetch(connection: Connection) -> IO[bytes]:
            """Return a result file, fetched into a temporary one."""
            file = TemporaryFile()  # noqa: SIM115  its reader closes it
            try:
                async with connection.pieces(
                    lambda client: client.files.with_streaming_response.content(file_id)
                ) as pieces:
                    async for piece in pieces:
                        file.write(piece)
                file.seek(0)
            except BaseException:
                file.close()
                raise
            return file

        file = self._insist("hand over results", fetch, may_be_gone=True)
        return None if file is None else _lines_of(file)

    def _unless_missing(self, what: str, send: Send) -> Any | None:
        async def named(connection: Connection) -> Any:
            return _named(await connection.ask(send))

        return self._insist(what, named, may_be_gone=True)

    def _insist(
        self,
        what: str,
        ask: Callable[[Connection], Awaitable[Any]],
        *,
        may_be_gone: bool = False,
    ) -> Any:
        """Return the result of a request, retried while its trouble may pass.

        It is None where the provider does not know what is asked for (404), and that `may_be_gone`.
        """
        connection = Connection(self._retries.endpoint, self._timeout_s)
        insisting = self._retries.insist(
            partial(self._retries.tried, partial(ask, connection)), Counter()
        )
        outcome = run_once(insisting, connection.close)
        if not isinstance(outcome, Trouble):
            return outcome
        if may_be_gone and outcome.status == _NOT_FOUND:
            return None
        kind = OutOfReachError if outcome.action == "retry" else EndpointError
        raise kind(
            f"the endpoint {self._retries.endpoint.url} did not {what}: {outcome.message}. See "
            "that it offers the Batch API (if not, remove 'batch' from the judge in "
            "judges.yaml) and that the key may use it, then run again: what was submitted "
            "is collected then, and not paid for twice"
        )


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


def _came_of(batch: Any, record: Record) -> bool:
    """Whether a batch was made of a record's file; not every provider keeps metadata."""
    token = member(member(batch, "metadata"), MARK)
    return bool(token == record.token or member(batch, "input_file_id") == record.file_id)
