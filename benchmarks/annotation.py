"""Throughput of the verdict path as a share of its server's rate, and its use of memory.

A raw load generator and the whole verdict path (prompt, client, parser, store) send the same
requests to the same server, in turns. `--help` says the rest; README.md beside this file says
how to read the table.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
from upath import UPath

from judgeline.judges.annotation import annotate
from judgeline.judges.buying import Account, Buyer
from judgeline.judges.forms.form import Prompt
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.fields import ServedFields
from judgeline.judges.live.judge import ServedJudge, Site
from judgeline.judges.opening import read_template
from judgeline.judges.options import Decoding
from judgeline.judges.presentation import present
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.verdict import CRITERIA, RESPONSES

CAPACITIES = (50, 100, 200, 400)  # requests per second
LATENCY_S = 0.25
MODEL = "benchmark"
MIB = 1 << 20


# ------------------------------------------------------------------ a server of known capacity


class Server:
    """Answers chat requests, so many at a time, each after so many seconds; on loopback."""

    def __init__(self, slots: int, latency_s: float) -> None:
        self._slots, self._latency_s = asyncio.Semaphore(slots), latency_s
        scores = {name: dict.fromkeys(CRITERIA, 7) for name in RESPONSES}
        self._judged, self._probed = json.dumps(scores), json.dumps({"colour": "teal"})

    async def serve(self) -> None:
        """Print the port and serve until the process ends."""
        server = await asyncio.start_server(self._converse, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (
                        int(line[15:])
                        for line in head.split(b"\r\n")
                        if line[:15].lower() == b"content-length:"
                    ),
                    0,
                )
                body = await reader.readexactly(length)
                writer.write(await self._reply(body))
                await writer.drain()
        writer.close()

    async def _reply(self, body: bytes) -> bytes:
        if not body:
            return _http({"object": "list", "data": []})
        if self._latency_s:
            async with self._slots:
                await asyncio.sleep(self._latency_s)
        text = self._probed if b'"colour"' in body else self._judged
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}
        usage = {"prompt_tokens": len(body) // 4, "completion_tokens": 110}
        return _http(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 0,
                "model": MODEL,
                "choices": [choice],
                "usage": {**usage, "total_tokens": sum(usage.values())},
            }
        )


def _http(content: dict[str, Any]) -> bytes:
    body = json.dumps(content).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextlib.contextmanager
def serving(slots: int, latency_s: float) -> Iterator[str]:
    """Give the URL of a server in a process of its own."""
    command = [sys.executable, __file__, "--serve", str(slots), str(latency_s)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.kill()
        process.wait()


# ------------------------------------------------------------------ the two ways of asking


def make_battles(n: int, words: int = 300) -> pd.DataFrame:
    """Return battles whose texts are as long as people's, all different."""
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(n)],
            "model_a": "x",
            "model_b": "y",
            "instruction": [f"Question {i}: " + "what of it " * 10 for i in range(n)],
            "completion_a": [f"First answer to {i}. " + "word " * words for i in range(n)],
            "completion_b": [f"Second answer to {i}. " + "word " * words for i in range(n)],
        }
    )


async def _generate(url: str, bodies: list[bytes], concurrency: int, key: str) -> None:
    """Post bodies over bare sockets, one connection a worker, reading only the lengths back."""
    place = urlsplit(url)
    head = (
        f"POST {place.path}/chat/completions HTTP/1.1\r\nhost: {place.netloc}\r\n"
        f"authorization: Bearer {key}\r\ncontent-type: application/json\r\ncontent-length: "
    ).encode()
    queue = iter(bodies)

    async def worker() -> None:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        for body in queue:
            writer.write(head + str(len(body)).encode() + b"\r\n\r\n" + body)
            reply = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in reply[:16]:
                raise RuntimeError(reply[:200].decode(errors="replace"))
            fields = reply.lower().split(b"content-length:")
            await reader.readexactly(int(fields[1].split(b"\r\n")[0]))
        writer.close()

    await asyncio.gather(*(worker() for _ in range(concurrency)))


def raw_seconds(url: str, template: str, battles: pd.DataFrame, judge: ServedFields) -> float:
    """Return the seconds that a bare load generator takes for the requests of some battles."""
    request = {
        "model": judge.model,
        "temperature": judge.decoding.temperature,
        "top_p": judge.decoding.top_p,
        "max_tokens": judge.decoding.max_tokens,
        "response_format": RUBRIC.response_format,
    }
    bodies = [
        json.dumps({"messages": Prompt(template, RUBRIC).messages(shown), **request}).encode()
        for shown in present(battles, 1)
    ]
    key = os.environ.get("BENCHMARK_API_KEY", "none")
    began = time.perf_counter()
    asyncio.run(_generate(url, bodies, judge.concurrency, key))
    return time.perf_counter() - began


def open_judge(url: str, template: str, fields: ServedFields, folder: Path) -> ServedJudge:
    """Return a judge at a server, probed."""
    key = os.environ.get("BENCHMARK_API_KEY", "none")
    judge = ServedJudge(
        "benchmark", fields, Prompt(template, RUBRIC), Site(Endpoint(url, key), folder)
    )
    if not judge.capabilities.json_schema:
        raise RuntimeError(f"{url} binds no JSON schema; the two sides would ask differently")
    return judge


def path_seconds(judge: ServedJudge, battles: pd.DataFrame) -> float:
    """Return the seconds from battles to stored verdicts by the judge, the buyer and the store."""
    with tempfile.TemporaryDirectory() as folder:
        buyer = Buyer(VerdictStore(UPath(folder)))
        began = time.perf_counter()
        verdicts = annotate(judge, battles, slug="benchmark", buyer=buyer)
        seconds = time.perf_counter() - began
    failed = verdicts["status"].ne("ok").sum()
    if failed:
        raise RuntimeError(f"{failed} of {len(verdicts)} verdicts failed: a rate of nothing")
    return seconds


# ------------------------------------------------------------------ the tables


def compare(url: str, label: str, fields: ServedFields, n_battles: int, repeats: int) -> None:
    """Print the answers per second of load generator and judge at one server, in turns."""
    template = read_template(fields.template)
    raw, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        judge = open_judge(url, template, fields, Path(folder))
        for turn in range(repeats):
            battles = make_battles(n_battles).assign(
                instruction=lambda t, turn=turn: t["instruction"] + f"({turn})"
            )
            raw.append(2 * n_battles / raw_seconds(url, template, battles, fields))
            ours.append(2 * n_battles / path_seconds(judge, battles))
    shares = [b / a for a, b in zip(raw, ours, strict=True)]
    print(
        f"{label:<28}{statistics.median(raw):>10.1f}{statistics.median(ours):>12.1f}"
        f"{statistics.median(shares):>9.1%}   {min(shares):.1%} to {max(shares):.1%}",
        flush=True,
    )


def throughput(options: argparse.Namespace) -> None:
    """Print the share of a server's answers per second that becomes verdicts."""
    print(f"{'server':<28}{'raw /s':>10}{'verdicts /s':>12}{'share':>9}   median and range")
    if options.url:
        fields = ServedFields(
            model=options.model,
            concurrency=options.concurrency,
            decoding=Decoding(max_tokens=512),
        )
        compare(options.url, options.model, fields, options.battles or 200, options.repeats)
        return
    for capacity in options.capacities:
        slots = max(1, round(capacity * LATENCY_S))
        fields = ServedFields(model=MODEL, concurrency=2 * slots)
        n_battles = options.battles or max(200, 15 * capacity)
        with serving(slots, LATENCY_S) as url:
            label = f"{slots} at a time, {LATENCY_S:g} s each"
            compare(url, label, fields, n_battles, options.repeats)


def resident() -> float:
    """Return the memory of this process, its resident set, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def memory(n_battles: int) -> None:
    """Print the resident set while many battles are judged by a server that never waits."""
    template = read_template("fenced-rubric.txt")
    battles = make_battles(n_battles, words=30)
    marks = [0.01, 0.1, 0.25, 0.5, 0.75, 1.0]
    peak, stop = [0.0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            peak[0] = max(peak[0], resident())

    def tell(account: Account) -> None:
        share = account.n_asked / account.n_needed
        if marks and share >= marks[0]:
            rate = account.n_asked / account.seconds
            print(f"{marks.pop(0):>8.0%}{resident():>10.0f}{rate:>12.0f}", flush=True)

    with tempfile.TemporaryDirectory() as folder, serving(1, 0.0) as url:
        fields = ServedFields(model=MODEL, concurrency=32)
        judge = open_judge(url, template, fields, Path(folder) / "endpoints")
        buyer = Buyer(VerdictStore(UPath(Path(folder) / "verdicts")))
        print(f"{n_battles:,} battles, both orders: {resident():.0f} MiB with the texts loaded")
        print(f"{'judged':>8}{'MiB':>10}{'per second':>12}", flush=True)
        threading.Thread(target=watch, daemon=True).start()
        verdicts = annotate(judge, battles, slug="benchmark", buyer=buyer, on_progress=tell)
        stop.set()
        made = f"{len(verdicts):,} rows, peak {peak[0]:.0f} MiB"
        print(f"{'table':>8}{resident():>10.0f}{'':>12}  {made}")


def main() -> None:
    """Measure throughput or memory of asking a judge."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="one capacity, 5,000 battles")
    parser.add_argument("--capacities", type=int, nargs="+", default=list(CAPACITIES))
    parser.add_argument("--battles", type=int, help="battles per turn, for another precision")
    parser.add_argument("--memory-battles", type=int, default=100_000, help="0 leaves it out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--url", help="a real server to ask instead, up to /v1")
    parser.add_argument("--model", default=MODEL, help="its model; BENCHMARK_API_KEY has its key")
    parser.add_argument("--concurrency", type=int, default=64, help="requests in flight at --url")
    parser.add_argument("--serve", nargs=2, type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(Server(int(options.serve[0]), options.serve[1]).serve())
        return
    if options.quick:
        options.capacities, options.memory_battles = [100], min(options.memory_battles, 5000)
    throughput(options)
    if options.memory_battles and not options.url:
        print()
        memory(options.memory_battles)


if __name__ == "__main__":
    main()
