"""Bodies without an end: how much of one is read, from every kind of endpoint."""

import http.server
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering import answered
from channels import PROMPT, presentation
from fault_server import KEY

from judgeline.judges.batch.provider import Provider
from judgeline.judges.embeddings.definition import EmbedderDefinition
from judgeline.judges.embeddings.served import ServedEmbedder
from judgeline.judges.live.endpoint import Endpoint, EndpointError
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.live.probe import Capabilities
from judgeline.judges.live.troubles import Retries, RetryPolicy

MIB = 1 << 20
READ, WHOLE = 64, 150
ONCE = RetryPolicy(attempts=1, base_s=0.001, cap_s=0.001)
FOUND = Capabilities("max_tokens", False, False, None)


class Endless(http.server.BaseHTTPRequestHandler):
    """Sends a body in chunks for as long as it is read, up to `WHOLE` MiB."""

    protocol_version = "HTTP/1.1"
    packing, status = "", 200

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.do_GET()

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        if self.packing:
            self.send_header("content-encoding", self.packing)
        self.end_headers()
        piece = b"100000\r\n" + b"[" * MIB + b"\r\n"
        try:
            for _ in range(WHOLE):
                self.wfile.write(piece)
                self.server.sent += 1  # type: ignore[attr-defined]
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        return


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    sent = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    handler = type("Handler", (Endless,), getattr(request, "param", {}))
    with Server(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def at_most() -> float:
    """MiB that a server can send to who reads `READ`: the kernel holds some more on both ends."""
    sizes = [Path(f"/proc/sys/net/ipv4/tcp_{end}mem").read_text().split()[2] for end in "rw"]
    return min(READ + sum(map(int, sizes)) / MIB + 2, WHOLE - 1)


def served(url: str, folder: Path) -> ServedJudge:
    fields = ServedFields(model="m", timeout_s=60.0)
    site = Site(Endpoint(url, KEY), folder, ONCE, declared=FOUND)
    return ServedJudge("j", fields, PROMPT, site)


def provider(server: Server) -> Provider:
    return Provider(Retries(Endpoint(server.url, KEY), ONCE, pytest.fail), 60.0)


@pytest.mark.parametrize(
    "server", [{}, {"status": 400}, {"status": 500}, {"packing": "gzip"}], indirect=True
)
def test_an_answer_without_an_end_is_broken_off(server: Server, tmp_path: Path) -> None:
    (answer,) = answered(served(server.url, tmp_path), [presentation(0)])
    assert answer.failure == "unreadable_reply"
    assert server.sent <= at_most()


def test_vectors_without_an_end_are_broken_off(server: Server) -> None:
    definition = EmbedderDefinition(slug="e", kind="openai", model="m", base_url=server.url)
    with pytest.raises(EndpointError, match="longer than 67,108,864 bytes"):
        list(ServedEmbedder(definition, Endpoint(server.url, KEY), ONCE).embed(["text"]))
    assert server.sent <= at_most()


def test_a_provider_of_batches_is_broken_off_too(server: Server) -> None:
    with pytest.raises(EndpointError, match="longer than 67,108,864 bytes"):
        provider(server).look("batch_1")
    assert server.sent <= at_most()


def test_a_file_of_results_is_read_from_disk_line_by_line(server: Server) -> None:
    lines = provider(server).lines("file-1")
    assert lines is not None
    assert max(map(len, lines)) == READ * MIB
    assert server.sent == WHOLE


@pytest.mark.slow
def test_memory_stays_bounded_whatever_is_sent(server: Server, tmp_path: Path) -> None:
    program = f"""
        import resource, sys
        sys.path[:0] = {sys.path!r}
        from pathlib import Path
        from test_reply_sizes import answered, presentation, served
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answers = answered(served({server.url!r}, Path({str(tmp_path)!r})), [presentation(0)])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, answers[0].failure)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    kib, failure = said.split()
    assert (int(kib) < 256 * 1024, failure) == (True, "unreadable_reply")
