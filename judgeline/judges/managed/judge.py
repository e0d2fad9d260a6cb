"""A judge of kind ``vllm``, and its server: started, waited for, and stopped for certain."""

import contextlib
import http.client
import json
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent
from typing import IO, Literal
from urllib.parse import urlsplit

from judgeline.judges.budget import Budget
from judgeline.judges.forms.form import Prompt, Reading
from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.fields import EndpointFields, ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.live.probe import Capabilities
from judgeline.judges.live.replies import member
from judgeline.judges.managed import guard
from judgeline.judges.managed.cause import last_error, remedy_of
from judgeline.judges.managed.options import Hosting, VllmOptions
from judgeline.judges.presentation import Presentation

Tell = Callable[[str], None]

_IN_FLIGHT = 256  # by default: vLLM answers together what it gets together
PYTHON_VARIABLE = "JUDGELINE_VLLM_PYTHON"
HOST = "127.0.0.1"

# its `vllm` command looks for a distribution of that name, which the builds for a CPU are not
_MODULE = "vllm.entrypoints.openai.api_server"
# free whitespace lets a small model fill its answer with line breaks
_COMPACT = '{"backend": "xgrammar", "disable_any_whitespace": true}'
Runner = Literal["generate", "pooling"]
_OF_RUNNER = {
    "generate": {"--structured-outputs-config": _COMPACT},
    "pooling": {"--runner": "pooling", "--convert": "embed"},
}
_NAMED = {"generate": ("judge", "judges.yaml"), "pooling": ("embedding", "config/embeddings.yaml")}
"""What an entry that starts a server is called, and the file that it stands in, by runner."""

_IS_THERE = (
    "import importlib.util, sys; found = importlib.util.find_spec('vllm');"
    "sys.exit(3 if found is None or found.origin is None else 0)"
)
_LONGEST_LOOK_S = 60.0

PATIENCE_S = 20.0
"""Seconds between asking a server to stop and killing it."""

_LOOK_EVERY_S = 0.25
_LOOK_AT_REST_EVERY_S = 0.05
_LONGEST_BURIAL_S = 30.0
_LONGEST_END_S = 5.0
_TELL_EVERY_S = 5.0
_LONGEST_START = 8  # times the patience
_COUNTED = ("prompt_tokens", "generation_tokens", "prefix_cache_queries", "prefix_cache_hits")
_LAST_LINES = 20
_TAIL_BYTES = 1 << 14
_READ_FOR_ERROR_BYTES = 1 << 20
_LONGEST_WORD = 120


class VllmError(RuntimeError):
    """The server could not be started, or did not stay up."""


@dataclass(repr=False)
class Server:
    """A running server: where it is, how it was started, and whether it still runs."""

    process: subprocess.Popen[bytes]
    endpoint: Endpoint
    command: list[str]
    log: Path
    model: str
    report: IO[str] | None = None
    file: str = "judges.yaml"
    version: str = "unknown"
    loading_s: float = 0.0

    @property
    def exit_code(self) -> int | None:
        """Exit code of the server; None while it runs."""
        return self.process.poll()

    def has_ended(self) -> bool:
        """Return whether the server is gone, after a moment in which its end can become known."""
        if self._is_ready():
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LONGEST_END_S)
        return self.exit_code is not None

    def last_lines(self, n_lines: int = _LAST_LINES) -> list[str]:
        """Return the end of the server's log, without the key."""
        text = self._end_of_log(_TAIL_BYTES)
        lines = [line.rstrip() for line in text.replace("\r", "\n").split("\n") if line.strip()]
        return [self.endpoint.redact(line) for line in lines[-n_lines:]]

    def failure(self, what: str) -> VllmError:
        """Return an error with a sentence on the server, its last error and its last lines.

        A server that still runs may have survived its last error, which is left out then.
        """
        said = indent("\n".join(self.last_lines()) or "(nothing)", "  ")
        error = None
        if self.exit_code is not None:
            error = last_error(self._end_of_log(_READ_FOR_ERROR_BYTES))
        if error is None:
            return VllmError(f"{what}; its log is {self.log} and ends with:\n{said}")
        remedy = remedy_of(error)
        words = indent(self.endpoint.redact(error), "  ") + (
            f".\nRemedy: {remedy}" if remedy else ""
        )
        return VllmError(
            f"{what}; the last error in its log is:\n{words}.\n"
            f"Its log is {self.log} and ends with:\n{said}"
        )

    def _end_of_log(self, n_bytes: int) -> str:
        with self.log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - n_bytes))
            return stream.read().decode("utf-8", "replace")

    def wait_until_ready(self, timeout_s: float, tell: Tell) -> None:
        """Return once the server answers with its model and our key.

        The patience is for its silence: while its log grows it loads, or downloads. One that talks
        without end gets several times the patience.
        """
        started = told = moved = time.monotonic()
        size = 0
        while not self._is_ready():
            now = time.monotonic()
            if (grown := self.log.stat().st_size) != size:
                size, moved = grown, now
            if self.exit_code is not None:
                raise self.failure(
                    f"vLLM stopped with exit code {self.exit_code} after {now - started:.0f} s, "
                    "before it could answer"
                )
            is_silent = now - moved > timeout_s
            if is_silent or now - started > _LONGEST_START * timeout_s:
                how = (
                    f"did not answer within {timeout_s:g} s of its last word, "
                    f"{now - started:.0f} s after its start"
                    if is_silent
                    else f"did not answer in {now - started:.0f} s, {_LONGEST_START} times its "
                    "patience, though it wrote to its log all along"
                )
                raise self.failure(
                    f"vLLM {how}; if it only needs longer, raise vllm.startup_timeout_s in "
                    f"{self.file}"
                )
            if now - told >= _TELL_EVERY_S:
                told = now
                latest = "".join(self.last_lines(1))[:_LONGEST_WORD] or "nothing said yet"
                tell(f"vllm: loading, {now - started:.0f} s: {latest}")
            time.sleep(_LOOK_EVERY_S)
        self.loading_s = time.monotonic() - started
        self.version = str((self._get("/version") or {}).get("version", "unknown"))
        tell(f"vllm: ready after {self.loading_s:.0f} s, version {self.version}")

    def stop(self) -> None:
        """Stop the server and all of its processes; return when all of it is gone."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.wait() < 0:  # somebody killed the guard, which kept its word till then
            said = "" if self.report is None else self.report.read()
            clear_up(int(said) if said else None, str(self.endpoint.key), PATIENCE_S)
        if self.report is not None:
            self.report.close()

    def _is_ready(self) -> bool:
        """Whether our model is served there, to our key; another server on the port has neither."""
        if self.exit_code is not None or self._get("/health") is None:
            return False
        models = member(self._get("/v1/models"), "data")
        return isinstance(models, list) and self.model in [member(one, "id") for one in models]

    def _get(self, path: str) -> dict[str, object] | None:
        """Return the object at a path, empty if there is none, or None if that fails."""
        body = body_of(self.endpoint, path)
        try:
            found = json.loads(body) if body and body.strip() else {}
        except ValueError:
            return None
        return found if body is not None and isinstance(found, dict) else None


def body_of(endpoint: Endpoint, path: str) -> bytes | None:
    """Return what a server has at a path beside ``/v1``, over plain HTTP; None if that fails."""
    where = urlsplit(endpoint.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=5)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {endpoint.key}"})
        reply = connection.getresponse()
        body = reply.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return body if reply.status == http.client.OK else None


def tokens_counted(endpoint: Endpoint) -> dict[str, float]:
    """Return the tokens that a vLLM server counted since its start; nothing where it does not say.

    It counts those that it read, wrote, looked up in its prefix cache, and found there.
    """
    text = (body_of(endpoint, "/metrics") or b"").decode("utf-8", "replace")
    lines = {name: re.findall(rf"(?m)^vllm:{name}_total\b.* (\S+)$", text) for name in _COUNTED}
    return {name: sum(map(float, found)) for name, found in lines.items() if found}


@contextmanager
def running(
    slug: str,
    fields: EndpointFields,
    options: VllmOptions,
    hosting: Hosting,
    *,
    runner: Runner = "generate",
) -> Iterator[Server]:
    """Run the server of a judge or embedder for a while: ready inside, gone outside."""
    tell = hosting.tell
    word, file = _NAMED[runner]
    python = vllm_python(slug, word)
    port, key = _free_port(), secrets.token_urlsafe(32)
    command = server_command(python, fields, options, port, runner)
    hosting.logs.mkdir(parents=True, exist_ok=True)
    when = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    log = hosting.logs / f"{slug}-{when}-{os.getpid()}-{secrets.token_hex(2)}.log"
    tell(f"vllm: starting {fields.model} for {slug}; its log is {log}")
    process, report = _launch(command, server_environment(python, key), log)
    endpoint = Endpoint(f"http://{HOST}:{port}/v1", key)
    server = Server(process, endpoint, command, log, str(fields.model), report, file)
    try:
        server.wait_until_ready(options.startup_timeout_s, tell)
        yield server
    finally:
        server.stop()


def _launch(
    command: list[str], environment: dict[str, str], log: Path
) -> tuple[subprocess.Popen[bytes], IO[str]]:
    """Start a server's guard; return it, and the stream of its report."""
    reading, writing = os.pipe()
    report = os.fdopen(reading, encoding="ascii")
    given = [str(value) for value in (os.getpid(), PATIENCE_S, writing)]
    try:
        with log.open("ab") as stream:
            process = subprocess.Popen(  # noqa: S603 - the command is ours
                [sys.executable, "-I", guard.__file__, *given, *command],
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=[writing],
                start_new_session=True,  # an interrupt at the terminal is ours to pass on
            )
    finally:
        os.close(writing)
    return process, report


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def clear_up(session: int | None, mark: str, patience_s: float) -> None:
    """Wait until all processes of a server have ended; kill those left after a while.

    `session` is the one that the server leads, if it is known; `mark` a text in the environment of
    its processes alone; after `patience_s` seconds the rest is killed.
    """
    started = time.monotonic()
    while left := list(_members(session, mark)):
        waited = time.monotonic() - started
        if waited > patience_s + _LONGEST_BURIAL_S:
            return
        if waited >= patience_s:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(_LOOK_AT_REST_EVERY_S)
    if session is not None and not Path("/proc/self").exists():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(session, signal.SIGKILL)


def _members(session: int | None, mark: str) -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (place / "stat").read_text(encoding="utf-8", errors="replace")
            state, _, _, led_by = stat.rpartition(")")[2].split()[:4]
            if state == "Z":
                continue
            if int(led_by) == session or mark.encode() in (place / "environ").read_bytes():
                yield int(place.name)


def vllm_python(slug: str, word: str = "judge") -> str:
    """Return the interpreter in which vLLM is installed: ``JUDGELINE_VLLM_PYTHON``, or this one.

    Errors name the entry `slug` by a word.
    """
    python = os.environ.get(PYTHON_VARIABLE, "").strip() or sys.executable
    try:
        look = subprocess.run(  # noqa: S603 - the interpreter that the user named
            [python, "-c", _IS_THERE],
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            capture_output=True,
            timeout=_LONGEST_LOOK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VllmError(
            f"{word} {slug!r}: {PYTHON_VARIABLE} names {python!r}, which does not run "
            f"({error}); set it to the Python of an environment that holds vLLM"
        ) from error
    if look.returncode:
        raise VllmError(
            f"{word} {slug!r} needs vLLM, which {python} does not have; install it beside "
            f"judgeline (pip install -c constraints.txt -e '.[app,vllm]'), or into an environment "
            f"of its own (python3 -m venv ENV; ENV/bin/pip install vllm) and set "
            f"{PYTHON_VARIABLE}=ENV/bin/python"
        )
    return python


def server_command(
    python: str,
    fields: EndpointFields,
    options: VllmOptions,
    port: int,
    runner: Runner = "generate",
) -> list[str]:
    """Return the command that serves a model on a loopback port; no key is in it."""
    model = str(fields.model)
    local = Path(model).expanduser()
    optional = {"--revision": fields.revision, "--max-model-len": options.max_model_len}
    settings = {
        "--model": str(local.resolve()) if local.is_dir() else model,
        "--served-model-name": model,
        "--host": HOST,
        "--port": port,
        "--tensor-parallel-size": options.tensor_parallel_size,
        "--data-parallel-size": options.data_parallel_size,
        "--dtype": options.dtype,
        **_OF_RUNNER[runner],
        **{name: value for name, value in optional.items() if value is not None},
    }
    words = [str(word) for pair in settings.items() for word in pair]
    return [python, "-m", _MODULE, *words, "--disable-uvicorn-access-log", *options.extra_args]


def server_environment(python: str, key: str) -> dict[str, str]:
    """Return the environment of the server: ours, its key, and the tools of its interpreter."""
    tools = str(Path(python).absolute().parent)
    return {
        **os.environ,
        "VLLM_API_KEY": key,
        "PATH": os.pathsep.join((tools, os.environ.get("PATH", os.defpath))),
        "PYTHONSAFEPATH": "1",  # the folder we run in is none of the server's
        "PYTHONUNBUFFERED": "1",
    }


NOWHERE = Endpoint("http://127.0.0.1/v1", "none")


class ManagedJudge(ServedJudge):
    """A judge on a vLLM server of our own; its abilities are declared, not asked."""

    def __init__(
        self,
        slug: str,
        fields: ServedFields,
        options: VllmOptions,
        prompt: Prompt,
        hosting: Hosting,
    ) -> None:
        shaping = options.shaping()
        named = {
            "kind": "vllm",
            "endpoint": "vllm",
            "dtype": shaping.dtype,
            "max_model_len": str(shaping.max_model_len or ""),
            "extra_args": json.dumps(shaping.extra_args),
        }
        declared = Capabilities(
            "max_tokens", True, True, options.max_model_len, options.alternatives
        )
        site = Site(NOWHERE, hosting.logs, warn=hosting.warn, declared=declared, named=named)
        if "concurrency" not in fields.model_fields_set:
            fields = fields.model_copy(update={"concurrency": _IN_FLIGHT})
        super().__init__(slug, fields, prompt, site)
        self._options, self._hosting = options, hosting
        self._last: Server | None = None
        self.waiting_s = 0.0  # for a slot and the server, before the first question
        self._speed: dict[str, str] = {}

    @property
    def metadata(self) -> Mapping[str, str]:
        """Metadata of the server that answered last, if one was needed."""
        if self._last is None:
            return {"server": "none was started"}
        return {
            "server": f"vLLM {self._last.version}",
            "seconds_loading": f"{self._last.loading_s:.1f}",
            **self._speed,
            "command": shlex.join(self._last.command),
            "log": str(self._last.log),
        }

    def _started(self, scope: ExitStack) -> Server:
        """Return the server, which runs until a stack is closed, and holds a slot of its pool."""
        scope.enter_context(self._hosting.claim(self._options.pool))
        hosted = running(self._slug, self._fields, self._options, self._hosting)
        return scope.enter_context(hosted)

    @contextmanager
    def _clocked(self, server: Server) -> Iterator[None]:
        """Measure the tokens a second that a server reads and writes meanwhile, as it counts."""
        before, started = tokens_counted(server.endpoint), time.monotonic()
        yield
        seconds, after = time.monotonic() - started, tokens_counted(server.endpoint)
        read, written, asked, cached = (after.get(one, 0) - before.get(one, 0) for one in _COUNTED)
        if read:
            self._speed = {
                "prompt_tokens_per_second": f"{read / seconds:.1f}",
                "answer_tokens_per_second": f"{written / seconds:.1f}",
                "prompt_tokens_cached": f"{cached / asked:.1%}" if asked else "unknown",
            }

    def answer(
        self, presentations: Sequence[Presentation], budget: Budget
    ) -> Generator[tuple[int, Reading]]:
        """Yield the answers of a served judge, on a server that is leased, or ends with them."""
        if not presentations:
            return
        self.require_price(budget)
        with self._hosting.scope() as scope:
            waiting = time.monotonic()
            lease = self._hosting.lease
            what = f"{self._fields.model} {self._fields.revision} {self._options}"
            server = self._started(scope) if lease is None else lease.server(what, self._started)
            self._last = server
            self.waiting_s = time.monotonic() - waiting
            site = replace(self._site, endpoint=server.endpoint)
            asked = ServedJudge(self._slug, self._fields, self._prompt, site)
            asked.counts = self.counts
            given = scope.enter_context(closing(asked.answer(presentations, budget)))
            scope.enter_context(self._clocked(server))
            for position, reading in given:
                if reading.status == "transport" and server.has_ended():
                    raise server.failure(
                        f"judge {self._slug!r}: vLLM stopped with exit code {server.exit_code} "
                        "while it answered; what it had answered is kept"
                    )
                yield position, reading
