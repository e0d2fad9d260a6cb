"""Stands in for vLLM: same start, same protocol, judges by arithmetic.
`FAKE_VLLM` is JSON: ``crash`` (exit code at once), ``deaf`` (opens no port), ``slow_start_s``,
``talks_s`` (so long it says how it loads, five times a second),
``family`` (children that ignore a polite stop, one in a session of its own), ``stubborn`` (so does
it), ``dies_after`` (answers), ``latency_s``; FAKE_VLLM_NOTES has files ``pids`` and ``answers``."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fault_server import completion, judged

HOW = json.loads(os.environ.get("FAKE_VLLM", "{}"))
NOTES = Path(os.environ["FAKE_VLLM_NOTES"])
KEY = os.environ["VLLM_API_KEY"]
STUBBORN = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "if sys.argv[1] == 'apart': os.setsid()\n"
    "print('ready', flush=True)\n"
    "time.sleep(600)"
)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def note(name: str, line: str) -> None:
    with (NOTES / name).open("a", encoding="utf-8") as stream:
        stream.write(f"{line}\n")


def counters() -> bytes:
    """A page of Prometheus: 300 tokens read and 20 written an answer, half of them cached."""
    n_answers = len((NOTES / "answers").read_text("utf-8").splitlines())
    counted = {"prompt_tokens": 300, "generation_tokens": 20}
    counted |= {"prefix_cache_queries": 300, "prefix_cache_hits": 150}
    return "".join(
        f"# TYPE vllm:{name}_total counter\n"
        f'vllm:{name}_total{{engine="0",model_name="a b"}} {float(n_answers * each)}\n'
        for name, each in counted.items()
    ).encode()


def vectors(body: dict[str, Any]) -> dict[str, Any]:
    return {"data": [{"index": n, "embedding": [1.0, n]} for n in range(len(body["input"]))]}


def verdict(body: dict[str, Any]) -> dict[str, Any]:
    is_choice = "one letter" in body["messages"][0]["content"]
    return completion(body, "A\n\nIt is right." if is_choice else judged(body))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = ""

    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(200, None)
        elif self.path == "/version":
            self.reply(200, {"version": "0.0-fake"})
        elif self.path == "/metrics":
            self.reply(200, counters() if (NOTES / "answers").exists() else None)
        elif self.is_known():
            self.reply(200, {"object": "list", "data": [{"id": self.model, "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.is_known():
            return
        time.sleep(HOW.get("latency_s", 0))
        note("answers", body["model"])
        self.reply(200, vectors(body) if "input" in body else verdict(body))
        if "dies_after" in HOW and len((NOTES / "answers").read_text()) // 5 >= HOW["dies_after"]:
            say("engine: out of memory")
            os._exit(9)

    def is_known(self) -> bool:
        known = self.headers["authorization"] == f"Bearer {KEY}"
        if not known:
            self.reply(401, {"error": {"message": f"the key is not {KEY}"}})
        return known

    def reply(self, status: int, body: dict[str, Any] | bytes | None) -> None:
        data = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def start_family() -> None:
    for where in ("here", "apart"):
        child = subprocess.Popen(
            [sys.executable, "-c", STUBBORN, where], stdout=subprocess.PIPE, text=True
        )
        child.stdout.readline()
        note("pids", str(child.pid))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("host", "served-model-name"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--port", type=int)
    options, _ = parser.parse_known_args()
    note("pids", str(os.getpid()))
    note("starts", " ".join(sys.argv))
    say(f"fake: serving {options.served_model_name}")
    if HOW.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if HOW.get("family"):
        start_family()
    if "crash" in HOW:
        say("\n".join(f"fake: line {n} of the log" for n in range(40)))
        say(f"fake: no GPU for {KEY}")
        sys.exit(HOW["crash"])
    for turn in range(int(5 * HOW.get("talks_s", 0))):
        say(f"fake: loading, {turn}")
        time.sleep(0.2)
    time.sleep(600 if HOW.get("deaf") else HOW.get("slow_start_s", 0))
    Handler.model = options.served_model_name
    ThreadingHTTPServer((options.host, options.port), Handler).serve_forever()


main()
