"""Time and memory of a backfill: three corpora by eight judges on a real daemon.

Wall time and orchestration overhead per partition, memory of the servers, and how long the
interface's pages take in a real browser. `--help` says the rest; README.md beside this file says
how to read the tables. Needs the tests' folder, and the `test` extra.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from judgeline.paths import ROOT
from judgeline.verdict import CRITERIA

sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("e2e", "helpers")]

from living import Living  # noqa: E402

SAMPLE = "softelo_lmarena100k_sample.csv"
ARENA = {"n_prompts": 60, "n_battles": 800, "n_voted": 12, "n_new": 1}
SIMULATED, RECORDED = "arena-{}", "recorded"
MIB = 1 << 10  # /proc counts in kB
SERVERS = {
    "webserver": "pipelines.instance.webserver",
    "daemon": "daemon run",
    "code location": "api grpc",
}
WORKER, WORKERS = "spawn_main", "workers of runs"
PAGES = {
    "asset graph of the leaderboard": (
        "/assets/leaderboard?view=lineage&lineageDepth=10",
        ("raw_battles", "verdicts", "leaderboard", "report"),
    ),
    "asset graph of everything": ("/asset-groups", ("judging", "ratings", "comparison")),
    "partitions of the leaderboard": ("/assets/leaderboard?view=partitions", ("Failed (",)),
    "partitions of the verdicts": ("/assets/verdicts?view=partitions", ("Failed (",)),
    "partitions of the judge job": (
        "/locations/__repository__@judgeline/jobs/judge_job/partitions",
        ("Total partitions",),
    ),
}
LONGEST_SECONDS = 3 * 3600


# ------------------------------------------------------------------ corpora and judges


def simulated_judge(number: int) -> dict[str, Any]:
    """Return a judge of the arena whose traits are its own."""
    traits = {
        "seed": 100 + number,
        "noise": 0.5 + 0.15 * number,
        "mood": 0.3,
        "taste": 0.4,
        "style_taste": 0.2 + 0.02 * number,
        "position_bias": 0.1 * number,
        "verbosity_bias": 0.05 * number,
        "family_bias": 0.1,
        "malformed_rate": 0.002 * number,
        "refusal_rate": 0.0,
        "truncated_rate": 0.0,
    }
    asks = ["rubric", "score", "choice"]
    return {"kind": "builtin", "family": "oak", "asks": asks, "builtin": traits}


def perturbed(sample: pd.DataFrame, judge: str, rng: np.random.Generator) -> pd.DataFrame:
    """Return the sample as a made-up judge of a full release: its scores with noise added."""
    noise = float(rng.uniform(0.2, 1.5))
    scores = {}
    for side in ("scores_a", "scores_b"):
        given = np.array([list(json.loads(s.replace("'", '"')).values()) for s in sample[side]])
        moved = np.clip(np.round(2 * (given + rng.normal(0, noise, given.shape))) / 2, 1, 10)
        scores[side] = moved
    difference = (scores["scores_a"] - scores["scores_b"]).mean(axis=1)
    return pd.DataFrame(
        {
            "judge": judge,
            "original_question_id_hash": sample["row_id"],
            "model_a": sample["model_a"],
            "model_b": sample["model_b"],
            "human_pref": sample["human_pref"],
            "judge_pref": np.select([difference > 0, difference < 0], [0.0, 1.0], 0.5),
            **{
                side: [str(dict(zip(CRITERIA, row.tolist(), strict=True))) for row in rows]
                for side, rows in scores.items()
            },
        }
    )


def configure(place: Living, n_judges: int, n_arenas: int, sample: Path | None) -> list[str]:
    """Write corpora and judges into the configuration; return the partitions to backfill."""
    simulated = [f"simulated-{number}" for number in range(n_judges)]
    judges = {slug: simulated_judge(number) for number, slug in enumerate(simulated)}
    corpora: dict[str, Any] = {}
    for seed in range(n_arenas):
        entry = {"reader": "arena", "seed": seed, "judges": simulated, "embeddings": "hashed"}
        corpora[SIMULATED.format(seed)] = {**entry, "arena": ARENA}
    pairs = [f"{corpus}|{judge}" for corpus in corpora for judge in simulated]
    if sample is not None:
        recorded = [f"recorded-{number}" for number in range(n_judges)]
        judges |= {slug: {"kind": "recorded", "family": "unknown"} for slug in recorded}
        folder = place.config / "recorded"
        folder.mkdir()
        table, rng = pd.read_csv(sample), np.random.default_rng(1)
        for slug in recorded:
            perturbed(table, slug, rng).to_csv(folder / f"{slug}.csv", index=False)
        corpora[RECORDED] = {
            "reader": "softelo-annotations",
            "location": str(folder / "*.csv"),
            "judges": recorded,
            "rating": {"hard_outcome": "recorded", "n_resamples": 20},
        }
        pairs += [f"{RECORDED}|{judge}" for judge in recorded]
    for name, entries in (("corpora", corpora), ("judges", judges)):
        for slug, entry in entries.items():
            entry["display_name"] = f"{slug} (simulated for a benchmark)"
        (place.config / f"{name}.yaml").write_text(yaml.safe_dump(entries), encoding="utf-8")
    return pairs


# ------------------------------------------------------------------ the same work in one process


def in_process(pairs: Sequence[str]) -> None:
    """Print, as JSON, the seconds that each partition's judge job takes in this process alone."""
    from assets.partitions import corpus_judge_key, register
    from pipelines.definitions import build_definitions
    from pipelines.instance.homes import open_instance

    defs = build_definitions()
    split = [pair.split("|") for pair in pairs]
    corpora = list(dict.fromkeys(corpus for corpus, _ in split))
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    seconds = {}
    with open_instance() as instance:
        register(instance, corpora=corpora, judges=[judge for _, judge in split])
        for corpus in corpora:
            defs.resolve_job_def("corpus_job").execute_in_process(
                partition_key=corpus, instance=instance, run_config=quiet
            )
        job = defs.resolve_job_def("judge_job")
        busy = time.process_time()
        for corpus, judge in split:
            started = time.perf_counter()
            job.execute_in_process(
                partition_key=corpus_judge_key(corpus, judge),
                instance=instance,
                run_config=quiet,
                raise_on_error=False,
            )
            seconds[f"{corpus}|{judge}"] = time.perf_counter() - started
        busy = time.process_time() - busy
    print(json.dumps({"seconds": seconds, "busy": busy}))


def measured_in_process(folder: Path, place: Living, pairs: Sequence[str]) -> dict[str, Any]:
    """Run the same partitions over a home of their own; return what `in_process` printed."""
    environment = place.environment | {"JUDGELINE_HOME": str(folder / "in-process")}
    command = [sys.executable, "-W", "ignore", __file__, "--in-process", ",".join(pairs)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


# ------------------------------------------------------------------ the backfill


def prepare(place: Living, corpora: Sequence[str]) -> None:
    """Read every corpus, so that the backfill is of judges alone."""
    for corpus in corpora:
        place.command("run", "--corpus", corpus, "--select", "group:corpus")


def launch(place: Living, pairs: Sequence[str]) -> str:
    """Ask for the judge job's assets of some partitions, as the interface does."""
    query = """query($s: PipelineSelector!) { assetNodes(pipeline: $s) { assetKey { path } } }"""
    selector = {
        "pipelineName": "judge_job",
        "repositoryName": "__repository__",
        "repositoryLocationName": "judgeline",
    }
    keys = [{"path": n["assetKey"]["path"]} for n in place.ask(query, s=selector)["assetNodes"]]
    mutation = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p)
        { __typename ... on LaunchBackfillSuccess { backfillId } } }"""
    wanted = {"assetSelection": keys, "partitionNames": list(pairs)}
    launched = place.ask(mutation, p=wanted)["launchPartitionBackfill"]
    assert "backfillId" in launched, launched
    return str(launched["backfillId"])


def measured_backfill(place: Living, pairs: Sequence[str], memory: "Memory") -> dict[str, Any]:
    """Backfill the partitions and return the seconds until their last run ended."""
    started, busy = time.time(), memory.busy_seconds()
    name = launch(place, pairs)

    def over() -> bool:
        memory.look()
        state = next(b["status"] for b in place.backfills() if b["id"] == name)
        assert state != "FAILED", place.backfills()
        return state.startswith("COMPLETED")

    place.wait("the backfill to end", over, LONGEST_SECONDS, pause=0.5)
    busy = {role: now - busy[role] for role, now in memory.busy_seconds().items()}
    known = place.runs()
    runs = [run for run in known if run["tags"].get("dagster/backfill") == name]
    latest = max(run["endTime"] for run in runs)
    return {
        "wall": latest - started,
        "busy": busy,
        "runs": len(runs),
        "further": sum(run["creationTime"] > started for run in known) - len(runs),
        "failed": sum(run["status"] != "SUCCESS" for run in runs),
        "first run created after": min(run["creationTime"] for run in runs) - started,
        "start of a worker": _median(run["startTime"] - run["creationTime"] for run in runs),
        "a run, started to ended": _median(run["endTime"] - run["startTime"] for run in runs),
    }


def _median(values: Iterator[float]) -> float:
    return statistics.median(values)


# ------------------------------------------------------------------ memory


class Memory:
    """Peak memory (resident set, MiB) of the daemon, servers and runs below one process."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peaks: dict[str, float] = {}
        self.most_workers = 0

    def look(self) -> None:
        """Read the memory of the processes now; the kernel keeps each one's peak."""
        n_workers = 0
        for pid in _below(self._root):
            command = _command(pid)
            role = self._role(command)
            launched = SERVERS["code location"] in _parent_command(pid)
            if role is None and WORKER in command and launched:
                role, n_workers = "a run's worker", n_workers + 1
            peak = _peak(pid)
            if role is not None and peak is not None:
                self.peaks[role] = max(self.peaks.get(role, 0.0), peak)
        self.most_workers = max(self.most_workers, n_workers)

    def busy_seconds(self) -> dict[str, float]:
        """Return processor time by what used it: the servers themselves, and all else below them.

        All else is what the runs' workers used, with the processes that start them.
        """
        seconds = dict.fromkeys((*SERVERS, WORKERS), 0.0)
        for pid in _below(self._root):
            fields = [int(time) for time in _stat(pid)[11:15]]
            own, ended = sum(fields[:2]), sum(fields[2:])  # children that ended and were waited for
            role = self._role(_command(pid)) or WORKERS
            seconds[role] += own / os.sysconf("SC_CLK_TCK")
            seconds[WORKERS] += ended / os.sysconf("SC_CLK_TCK")
        return seconds

    @staticmethod
    def _role(command: str) -> str | None:
        return next((role for role, part in SERVERS.items() if part in command), None)


def _below(root: int) -> Iterator[int]:
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        for thread in _threads(pid):  # each has the children that it started
            waiting += map(int, _read(pid, f"task/{thread}/children").split())


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return []


def _parent_command(pid: int) -> str:
    fields = _stat(pid)
    return _command(int(fields[1])) if fields else ""


def _command(pid: int) -> str:
    return _read(pid, "cmdline").replace("\0", " ")


def _stat(pid: int) -> list[str]:
    """Return the fields of a process's stat file behind its name; proc(5) has two before them."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _peak(pid: int) -> float | None:
    lines = _read(pid, "status").splitlines()
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) / MIB if found else None


# ------------------------------------------------------------------ pages


def measured_pages(
    url: str, folder: Path, repeats: int, screenshots: Path | None
) -> list[tuple[str, str, list[float]]]:
    """Return the seconds until each page's content is there, with an empty cache and a full one.

    Time runs from the start of the navigation, on the browser's own clock, until the text of
    the page holds what it is for. The last load of a page is photographed if that is asked for.
    """
    from browsing import opened

    found = []
    for name, (path, expected) in PAGES.items():
        cold, warm = [], []
        for number in range(repeats):
            with opened(folder / f"{abs(hash(name))}-{number}") as browser:
                cold.append(_seconds(browser.driver, url + path, expected))
                browser.driver.get("about:blank")
                warm.append(_seconds(browser.driver, url + path, expected))
                if screenshots is not None and number == repeats - 1:
                    browser.photograph(name.replace(" ", "-"), screenshots)
        found += [(name, "cold", cold), (name, "warm", warm)]
    return found


def _seconds(driver: Any, url: str, expected: Sequence[str]) -> float:
    script = """const text = document.body ? document.body.innerText : '';
        return arguments[0].every(part => text.includes(part)) ? performance.now() : null;"""
    driver.get(url)
    deadline = time.monotonic() + 60
    while (now := driver.execute_script(script, list(expected))) is None:
        assert time.monotonic() < deadline, f"{url} never showed {expected}"
        time.sleep(0.02)
    return float(now) / 1000


# ------------------------------------------------------------------ the tables


def main() -> None:
    options = _options()
    if options.in_process:
        in_process(options.in_process.split(","))
        return
    n_judges, n_arenas = (2, 1) if options.quick else (options.judges, 2)
    options.repeats = 2 if options.quick else options.repeats
    sample = _sample()
    if sample is None:
        print(f"no {SAMPLE} (set JUDGELINE_DATA): one more arena takes the place of recorded data")
        n_arenas += 1
    with tempfile.TemporaryDirectory(prefix="judgeline-operations-") as name:
        folder = Path(name)
        place = Living(folder)
        pairs = configure(place, n_judges, n_arenas, sample)
        _report(place, pairs, folder, options)


def _report(
    place: Living,
    pairs: list[str],
    folder: Path,
    options: argparse.Namespace,
) -> None:
    corpora = list(dict.fromkeys(pair.split("|")[0] for pair in pairs))
    told = f"{len(corpora)} corpora, {len(pairs)} partitions, {os.cpu_count()} cores"
    print(told, flush=True)
    prepare(place, corpora)
    place.start()
    assert place.server is not None
    try:
        for judge in sorted({pair.split("|")[1] for pair in pairs} - set(place.keys("judge"))):
            place.add_partition("judge", judge)
        memory = Memory(place.server.pid)
        backfill = measured_backfill(place, pairs, memory)
        print_backfill(backfill, len(pairs), memory)
        pages = measured_pages(place.url, folder, options.repeats, options.screenshots)
        memory.look()
    finally:
        place.stop()
    print_servers(memory, pages)
    compared = pairs[:: max(1, len(pairs) // options.compared)]
    print_overhead(backfill, len(pairs), measured_in_process(folder, place, compared))


def print_backfill(backfill: dict[str, Any], n: int, memory: Memory) -> None:
    """Print time and memory of the backfill of n partitions."""
    print(f"\nbackfill of {n} partitions: {backfill['runs']} runs, {backfill['failed']} failed")
    print(f"{backfill['further']} further runs, at most {memory.most_workers} workers at a time")
    _print_seconds(
        {
            "wall time": backfill["wall"],
            "wall time per partition": backfill["wall"] / n,
            "busy, per partition": sum(backfill["busy"].values()) / n,
            **{f"  of which {role}": spent / n for role, spent in backfill["busy"].items()},
            "request to first run": backfill["first run created after"],
            "a run, created to started (median)": backfill["start of a worker"],
            "a run, started to ended (median)": backfill["a run, started to ended"],
        }
    )


def print_servers(memory: Memory, pages: list[tuple[str, str, list[float]]]) -> None:
    """Print the memory of the servers, and how long pages took."""
    print("\npeak resident set")
    for role, peak in memory.peaks.items():
        print(f"  {role:<40}{peak:>9.0f} MiB")
    print("\nseconds until a page shows its content: median and longest")
    for name, cache, loads in pages:
        told = f"{statistics.median(loads):>8.2f}{max(loads):>8.2f}"
        print(f"  {name:<34}{cache:<6}{told}  of {len(loads)}", flush=True)


def print_overhead(backfill: dict[str, Any], n: int, alone: dict[str, Any]) -> None:
    """Print what a partition takes in one process, and what a backfill of n adds to it."""
    seconds = list(alone["seconds"].values())
    mean = statistics.fmean(seconds)
    print(f"\nthe same work in one process, {len(seconds)} of the {n} partitions")
    _print_seconds(
        {
            "a partition (mean)": mean,
            "a partition (median)": statistics.median(seconds),
            "busy, per partition": alone["busy"] / len(seconds),
            "overhead per partition (wall)": backfill["wall"] / n - mean,
            "overhead per partition (busy)": sum(backfill["busy"].values()) / n
            - alone["busy"] / len(seconds),
        }
    )


def _print_seconds(figures: dict[str, float]) -> None:
    for name, value in figures.items():
        print(f"  {name:<40}{value:>9.1f} s", flush=True)


def _sample() -> Path | None:
    path = Path(os.environ.get("JUDGELINE_DATA") or ROOT / "data") / SAMPLE
    return path if path.is_file() else None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two corpora, two judges")
    parser.add_argument("--judges", type=int, default=8, help="judges per corpus (8)")
    parser.add_argument("--repeats", type=int, default=5, help="loads of a page (5)")
    parser.add_argument(
        "--compared", type=int, default=24, help="partitions run in one process as well (24)"
    )
    parser.add_argument("--screenshots", type=Path, help="folder for a picture of each page")
    parser.add_argument("--in-process", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
