"""How many presentations a second a server judges, with 16, 64 and 256 of them in flight.

The project's own rubric prompts on made-up texts go to an endpoint, or to a managed vLLM server
that is started for them, with and without a prefix cache. `--help` says the rest; README.md
beside this file says how to read the table.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import numpy as np
import pandas as pd
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from judgeline.judges.forms.form import Prompt
from judgeline.judges.forms.rubric import RUBRIC
from judgeline.judges.live.endpoint import Endpoint
from judgeline.judges.live.fields import DEFAULT_TEMPLATE, ServedFields
from judgeline.judges.managed.judge import (
    Server,
    VllmError,
    running,
    tokens_counted,
    vllm_python,
)
from judgeline.judges.managed.options import Hosting, VllmOptions
from judgeline.judges.opening import read_template
from judgeline.judges.presentation import Presentation, present
from judgeline.verdict import RubricError

IN_FLIGHT = (16, 64, 256)
LONGEST_S = 300.0
DRAIN_S = 15.0
"""Seconds kept back for the last answers of a row."""

N_WARM = 8
BATTLES_PER_QUESTION = 4
HEADS_OF_TABLE = (
    f"{'prefix cache':<14}{'in flight':>10}{'requests':>10}{'failed':>8}{'readable':>10}"
    f"{'wall s':>8}{'pres. /s':>10}{'prompt tok/s':>14}{'answer tok/s':>14}"
    f"{'prompt':>8}{'answer':>8}{'hits':>7}{'median s':>10}"
)


# ------------------------------------------------------------------ a model of made-up weights

CHAT = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MARKS = ["<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
N_MERGED = 8192
N_TEXTS_READ = 400


class Size(NamedTuple):
    """Sizes of a Llama: of its layers, and of its vocabulary."""

    hidden: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    vocabulary: int


SIZES = {
    "tiny": Size(128, 256, 2, 2, 2, 4096),
    "1b": Size(2048, 8192, 16, 32, 8, 128_256),
    "8b": Size(4096, 14_336, 32, 32, 8, 128_256),
}


def write_model(folder: Path, size: Size, texts: Sequence[str]) -> None:
    """Write a model without weights: its configuration, and a tokenizer that has read the texts."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": size.vocabulary,
        "hidden_size": size.hidden,
        "intermediate_size": size.inner,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.key_heads,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500_000.0,
        "hidden_act": "silu",
        "eos_token_id": 0,
        "bos_token_id": None,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": MARKS[0],
        "chat_template": CHAT,
        "clean_up_tokenization_spaces": False,
    }
    for name, content in (
        ("config.json", config),
        ("tokenizer_config.json", described),
        ("tokenizer.json", tokenizer(size.vocabulary, texts)),
    ):
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def tokenizer(vocabulary: int, texts: Sequence[str]) -> dict[str, Any]:
    """Return a byte-level tokenizer of this many words; those that no text has are made up."""
    pairs = Tokenizer(models.BPE())
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=min(vocabulary, N_MERGED),
        special_tokens=MARKS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pairs.train_from_iterator(texts, trainer)
    written: dict[str, Any] = json.loads(pairs.to_str())
    words = written["model"]["vocab"]
    words |= {f"Zq{number}": number for number in range(len(words), vocabulary)}
    return written


# ------------------------------------------------------------------ what is asked


def make_battles(n_battles: int, seed: int) -> pd.DataFrame:
    """Return battles between answers as long as people's; four battles ask one question."""
    rng = np.random.default_rng([seed, n_battles])
    words = _words(np.random.default_rng(0))
    weights = 1 / np.arange(2, len(words) + 2)
    weights /= weights.sum()

    def text(median: float) -> str:
        n_words = int(np.clip(rng.lognormal(np.log(median), 0.6), 5, 900))
        said = rng.choice(words, size=n_words, p=weights).tolist()
        stops = [f"{word}." if n % 13 == 12 else word for n, word in enumerate(said)]
        return " ".join(stops).capitalize()

    questions = [text(25) for _ in range(-(-n_battles // BATTLES_PER_QUESTION))]
    return pd.DataFrame(
        {
            "battle_id": [f"s{seed}-{number}" for number in range(n_battles)],
            "model_a": "x",
            "model_b": "y",
            "instruction": [questions[n // BATTLES_PER_QUESTION] for n in range(n_battles)],
            "completion_a": [text(180) for _ in range(n_battles)],
            "completion_b": [text(180) for _ in range(n_battles)],
        }
    )


ONSETS = (*"bcdfghlmnprstvw", "st", "tr", "pl")
VOWELS = ("a", "e", "i", "o", "u", "ea", "ou")


def _words(rng: np.random.Generator) -> list[str]:
    made = {
        "".join(f"{rng.choice(ONSETS)}{rng.choice(VOWELS)}" for _ in range(rng.integers(1, 4)))
        for _ in range(6000)
    }
    return sorted(made, key=lambda word: (len(word), word))


class Asking(NamedTuple):
    """A judge's prompt and model, which turn a presentation into the body of a request."""

    prompt: Prompt
    model: str
    n_tokens: int
    is_bound: bool
    is_made_up: bool

    def body(self, shown: Presentation) -> bytes:
        """Return the request of a judge that grades by rubric."""
        request: dict[str, Any] = {
            "model": self.model,
            "messages": self.prompt.messages(shown),
            "temperature": 0.0,
            "max_tokens": self.n_tokens,
        }
        if self.is_bound:
            request["response_format"] = RUBRIC.response_format
        elif self.is_made_up:
            request["ignore_eos"] = True
        return json.dumps(request).encode()


# ------------------------------------------------------------------ one row


class Reply(NamedTuple):
    """Reply to one request: its tokens, or the server's words of failure; and its seconds."""

    seconds: float
    n_prompt: int = 0
    n_answer: int = 0
    is_readable: bool = False
    failure: str | None = None


class Row(NamedTuple):
    """All replies of one number in flight, the seconds they took, and the cache's share."""

    replies: list[Reply]
    seconds: float
    hits: float | None


async def _ask_all(
    endpoint: Endpoint, bodies: Iterator[bytes], in_flight: int, most_s: float
) -> tuple[list[Reply], float]:
    """Keep so many requests in flight until none is left, or no new one may be sent."""
    replies: list[Reply] = []
    head = {"Authorization": f"Bearer {endpoint.key}", "Content-Type": "application/json"}
    began = time.perf_counter()

    async def worker(session: aiohttp.ClientSession) -> None:
        for body in bodies:
            replies.append(await _ask(session, f"{endpoint.url}/chat/completions", body))
            if time.perf_counter() - began > most_s:
                return

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=LONGEST_S),
        headers=head,
    ) as session:
        await asyncio.gather(*(worker(session) for _ in range(in_flight)))
        return replies, time.perf_counter() - began


async def _ask(session: aiohttp.ClientSession, url: str, body: bytes) -> Reply:
    began = time.perf_counter()
    try:
        async with session.post(url, data=body) as response:
            text = await response.text()
            if response.status != 200:
                return Reply(time.perf_counter() - began, failure=f"{response.status} {text[:300]}")
            reply = json.loads(text)
            said, used = reply["choices"][0]["message"]["content"], reply["usage"]
    except (aiohttp.ClientError, TimeoutError, ValueError, LookupError, TypeError) as error:
        return Reply(time.perf_counter() - began, failure=f"{type(error).__name__}: {error}")
    seconds = time.perf_counter() - began
    return Reply(seconds, used["prompt_tokens"], used["completion_tokens"], _is_readable(said))


def _is_readable(said: str | None) -> bool:
    try:
        RUBRIC.parse(said or "")
    except RubricError:
        return False
    return True


def cached_and_asked(endpoint: Endpoint) -> tuple[float, float] | None:
    """Return the prompt tokens a vLLM server found in its prefix cache, and all; else None."""
    counted = tokens_counted(endpoint)
    asked = counted.get("prefix_cache_queries")
    return (counted["prefix_cache_hits"], asked) if asked else None


def measure(
    endpoint: Endpoint, asking: Asking, in_flight: int, n_requests: int, most_s: float
) -> Row:
    """Return a row: the same texts for the same number in flight, whatever the server."""
    shown = present(make_battles(-(-n_requests // 2), seed=in_flight), 1)[:n_requests]
    bodies = iter([asking.body(one) for one in shown])
    before = cached_and_asked(endpoint)
    replies, seconds = asyncio.run(_ask_all(endpoint, bodies, in_flight, most_s))
    after = cached_and_asked(endpoint)
    hits = None
    if after is not None:
        cached, asked = (b - a for a, b in zip(before or (0.0, 0.0), after, strict=True))
        hits = cached / asked if asked else None
    return Row(replies, seconds, hits)


def row_line(cache: str, in_flight: int, row: Row) -> str:
    """Return a row of the table; rates are of the answered requests alone."""
    good = [reply for reply in row.replies if reply.failure is None]
    n_prompt, n_answer = sum(r.n_prompt for r in good), sum(r.n_answer for r in good)
    n_readable = sum(reply.is_readable for reply in good)
    hits = "-" if row.hits is None else f"{row.hits:.0%}"
    each = max(len(good), 1)
    median = statistics.median(r.seconds for r in good) if good else float("nan")
    return (
        f"{cache:<14}{in_flight:>10}{len(row.replies):>10}{len(row.replies) - len(good):>8}"
        f"{n_readable:>10}{row.seconds:>8.1f}{len(good) / row.seconds:>10.2f}"
        f"{n_prompt / row.seconds:>14.0f}{n_answer / row.seconds:>14.0f}"
        f"{n_prompt / each:>8.0f}{n_answer / each:>8.0f}{hits:>7}{median:>10.2f}"
    )


# ------------------------------------------------------------------ the table


class Clock:
    """Time limit of the whole benchmark, in seconds."""

    def __init__(self, most_s: float) -> None:
        self._end = time.monotonic() + most_s

    @property
    def left_s(self) -> float:
        """Seconds left."""
        return self._end - time.monotonic()


def print_rows(
    endpoint: Endpoint, asking: Asking, cache: str, given: argparse.Namespace, clock: Clock
) -> None:
    """Print a row per number in flight, and the first failure of each."""
    warm = make_battles(N_WARM // 2, seed=0)
    bodies = iter([asking.body(shown) for shown in present(warm, 1)])
    asyncio.run(_ask_all(endpoint, bodies, N_WARM, DRAIN_S))
    for in_flight in given.in_flight:
        most_s = min(given.seconds, clock.left_s - DRAIN_S)
        if most_s < 1:
            print(f"{cache:<14}{in_flight:>10}  not run: the time is over", flush=True)
            continue
        row = measure(endpoint, asking, in_flight, in_flight * given.rounds, most_s)
        print(row_line(cache, in_flight, row), flush=True)
        if failures := [reply.failure for reply in row.replies if reply.failure is not None]:
            print(f"    the first failure: {endpoint.redact(failures[0])}", flush=True)


def managed_rows(model: str, asking: Asking, given: argparse.Namespace, clock: Clock) -> None:
    """Print the rows of a managed server, once with a prefix cache and once without."""
    load = ("--load-format", "dummy") if asking.is_made_up else ()
    fields, start_s = ServedFields(model=model), 0.0
    for cache in given.caches:
        if clock.left_s < start_s + DRAIN_S:
            left = f"a start takes {start_s:.0f} s, and {clock.left_s:.0f} are left"
            print(f"{cache:<14}not run: {left}", flush=True)
            continue
        switch = "--enable-prefix-caching" if cache == "on" else "--no-enable-prefix-caching"
        options = VllmOptions(
            max_model_len=given.max_model_len,
            extra_args=(*load, switch, *given.server_arguments),
            startup_timeout_s=clock.left_s,
        )
        began = time.monotonic()
        logs = given.logs or Path(tempfile.mkdtemp(prefix="serving-"))
        with running("serving", fields, options, Hosting(_tell, logs=logs)) as server:
            start_s = time.monotonic() - began
            print(_started_line(server, start_s), flush=True)
            print_rows(server.endpoint, asking, cache, given, clock)
            stopping = time.monotonic()
        print(f"stopped after {time.monotonic() - stopping:.1f} s", flush=True)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _started_line(server: Server, seconds: float) -> str:
    return f"vLLM {server.version} answers after {seconds:.0f} s; its log is {server.log}"


def make_asking(model: str, given: argparse.Namespace) -> Asking:
    """Return the model and prompt by which presentations are asked."""
    template = read_template(DEFAULT_TEMPLATE)
    return Asking(
        Prompt(template, RUBRIC),
        model,
        given.tokens,
        is_bound=given.bound,
        is_made_up=given.made_up is not None,
    )


def run(given: argparse.Namespace) -> None:
    """Print the table of the endpoint, the model or the made-up model that was named."""
    clock = Clock(given.minutes * 60)
    print(HEADS_OF_TABLE, flush=True)
    if given.url:
        endpoint = Endpoint(given.url.rstrip("/"), os.environ.get("BENCHMARK_API_KEY", "none"))
        print_rows(endpoint, make_asking(given.model, given), "as served", given, clock)
        return
    if given.model:
        managed_rows(given.model, make_asking(given.model, given), given, clock)
        return
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / given.made_up
        asking = make_asking(str(model), given)
        shown = present(make_battles(N_TEXTS_READ, seed=1), 1)
        texts = [asking.prompt.messages(one)[0]["content"] for one in shown[::2]]
        write_model(model, SIZES[given.made_up], texts)
        managed_rows(str(model), asking, given, clock)


def parse_arguments() -> argparse.Namespace:
    """Return the options; `--quick` fills in those of a small run on a processor."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--url", help="an endpoint, up to /v1; BENCHMARK_API_KEY has its key")
    parser.add_argument("--model", help="its model; without --url, one that vLLM is to serve")
    parser.add_argument("--made-up", choices=SIZES, help="serve a Llama of random weights")
    parser.add_argument("--quick", action="store_true", help="a tiny made-up model, few requests")
    parser.add_argument("--in-flight", type=int, nargs="+", default=list(IN_FLIGHT))
    parser.add_argument("--rounds", type=int, default=6, help="requests per place in flight")
    parser.add_argument("--seconds", type=float, default=25.0, help="a row sends none after these")
    parser.add_argument("--minutes", type=float, default=LONGEST_S / 60, help="of it all, at most")
    parser.add_argument("--tokens", type=int, default=110, help="an answer's most")
    parser.add_argument("--bound", action="store_true", help="bind answers to the rubric's schema")
    parser.add_argument("--caches", nargs="+", choices=("on", "off"), default=["on", "off"])
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--logs", type=Path, help="folder of the managed server's logs")
    parser.add_argument(
        "--server-arguments", nargs=argparse.REMAINDER, default=[], help="the last: vLLM's own"
    )
    given = parser.parse_args()
    if given.quick:
        given.made_up = given.made_up or "tiny"
        given.in_flight, given.rounds, given.seconds = [4, 16], 2, 20.0
        given.server_arguments = [*given.server_arguments, "--enforce-eager"]
    return given


def main() -> int:
    """Measure a served model by the options, or say which package or file is missing."""
    given = parse_arguments()
    if given.url and not given.model:
        print("--url needs --model: not run")
        return 2
    if not (given.url or given.model or given.made_up):
        print("needs --url and --model, --model or --made-up: not run")
        return 0
    try:
        if not given.url:
            vllm_python("serving")
    except VllmError as error:
        print(f"{error}: not run")
        return 0
    try:
        run(given)
    except VllmError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
