"""The lines of batch files: requests as they are written, results as they are read."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from resources.judges.forms.form import Form
from resources.judges.judge import Answer, Presentation
from resources.judges.live.connection import MalformedReplyError
from resources.judges.live.replies import read_reply, understood
from resources.judges.live.troubles import RetryPolicy, Trouble, codes_in, diagnose_status

CHAT = "/v1/chat/completions"

_SEPARATORS = {ord(one): f"\\u{ord(one):04x}" for one in "\x85\u2028\u2029"}
_READ = 2000


class Limits(NamedTuple):
    """Most requests, and most bytes, of one batch; those of OpenAI by default."""

    requests: int = 50_000
    bytes: int = 200_000_000


class Part(NamedTuple):
    """Requests of one batch: the calls, and the file to upload."""

    identities: list[str]
    file: IO[bytes]


class Result(NamedTuple):
    """What came of one request: an answer, and its value if it could be read.

    `is_billed` tells whether it was paid for; `hopeless` why the same, asked again, would fail as
    well until somebody mends something. That is then no answer. `is_lost` marks a result that was
    there and that the provider has deleted.
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
    """Yield the files of requests within the limits; each is written when the last is done with.

    A request that alone is too long makes a file of its own, for the provider to refuse.
    """
    part, size = _new_part(), 0
    try:
        for identity, body in requests:
            line = _write(identity, body)
            is_full = len(part.identities) == limits.requests or size + len(line) > limits.bytes
            if part.identities and is_full:
                yield part
                part.file.close()
                part, size = _new_part(), 0
            part.identities.append(identity)
            part.file.write(line)
            size += len(line)
        if part.identities:
            yield part
    finally:
        part.file.close()


def _new_part() -> Part:
    return Part([], TemporaryFile())


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
    reply = _mapping(line.get("response"))
    status, body = reply.get("status_code"), _mapping(reply.get("body"))
    if status == 200:
        try:
            reading = understood(body, partial(read_reply, shown=shown, form=form))
        except MalformedReplyError as error:
            return Result(replace(NOTHING.answer, said=str(error)), is_billed=True)
        return Result(reading.answer, is_billed=True, value=reading.value)
    error = _mapping(body.get("error") or line.get("error"))
    trouble = _trouble(status, error, policy, shown)
    stopped = trouble.message if trouble.action == "stop" else None
    answer = Answer(None, trouble.failure, 0, 0, said=trouble.message)
    return Result(answer, is_billed=False, hopeless=stopped)


def _trouble(
    status: Any, error: dict[str, Any], policy: RetryPolicy, shown: Presentation
) -> Trouble:
    said = f"{error.get('code')}: {error.get('message')}"[:_READ]
    if not isinstance(status, int):  # it was never sent: the batch expired or was cancelled
        return Trouble("retry", "transport", None, said)
    texts = "\n".join((shown.instruction, shown.first_completion, shown.second_completion))
    return diagnose_status(status, said, {}, policy, codes=codes_in(error), shown=texts)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
