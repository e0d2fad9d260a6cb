"""How long a server is leased; the last error of its log, on what real servers wrote, shortened."""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import dagster as dg
import pytest
from catalogs import catalog_of

from assets.judging.asking import releasing
from assets.partitions import corpus_judge_key
from judgeline.judges.managed.cause import last_error, remedy_of
from judgeline.judges.managed.options import Lease
from resources.stores import StoredVerdicts

CORE = "(EngineCore pid=10) ERROR 11-27 10:34:40 [core.py:1234] "
API = "(APIServer pid=9) "
WRAPPED = [
    f"{API}Traceback (most recent call last):",
    f'{API}  File "/v1/engine/utils.py", line 1431, in wait_for_engine_startup',
    f"{API}RuntimeError: Engine core initialization failed. See root cause above. "
    "Failed core proc(s): {}",
    "/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 "
    "leaked shared_memory objects to clean up at shutdown",
]
TOO_LONG = (
    "ValueError: To serve at least one request with the model's max seq len (8000000), (7.63 GiB "
    "KV cache is needed, which is larger than the available KV cache memory (1.0 GiB)."
)
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 160.00 MiB. GPU 0 has a total "
    "capacity of 139.80 GiB of which 87.12 MiB is free."
)
TAKEN = (
    "ValueError: Free memory on device cuda:0 (74.04/139.8 GiB) on startup is less than desired "
    "GPU memory utilization (0.92, 128.62 GiB)."
)
HIDDEN = "AssertionError: DP adjusted local rank 0 is out of bounds for 0 devices."
MOVED = (
    "AssertionError: Error in memory profiling. Initial free memory 57.74 GiB, current free memory "
    "70.13 GiB."
)
OF_A_RANK = "[rank0]:[W1127 13:51:02 ProcessGroupNCCL.cpp:1575] Warning: destroy_process_group()"
NO_GPU = "RuntimeError: Failed to infer device type, please set the environment variable"
NO_OPTION = "api_server.py: error: unrecognized arguments: --no-such-option"
IN_USE = "OSError: [Errno 98] Address already in use"
NO_FOLDER = (
    "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or "
    "'namespace/repo_name': '/models/nothing'. Use `repo_type` argument if needed."
)
NOT_THERE = "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate snapshot"
UNKNOWN = (
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
    "  Value error, The checkpoint you are trying to load has model type `foo` but Transformers "
    "does not recognize this architecture."
)


def test_a_lease_lends_one_server_until_it_ends_or_another_is_asked_for() -> None:
    told: list[str] = []
    servers = {name: SimpleNamespace(exit_code=None) for name in "abc"}

    def start(name: str) -> Callable[[ExitStack], Any]:
        def started(scope: ExitStack) -> Any:
            told.append(f"start {name}")
            scope.callback(told.append, f"end {name}")
            return servers[name]

        return started

    lease = Lease()
    assert lease.server("a", start("a")) is lease.server("a", start("never")) is servers["a"]
    assert lease.server("b", start("b")) is servers["b"]
    servers["b"].exit_code = 9
    assert lease.server("b", start("c")) is servers["c"]
    lease.end()
    lease.end()
    assert told == ["start a", "end a", "start b", "end b", "start c", "end c"]


def test_a_lease_ends_when_no_table_of_the_run_is_left_to_ask_for(tmp_path: Path) -> None:
    here = ("verdicts", "choice_verdicts", "reliability_panel", "x")
    layer = SimpleNamespace(executable_asset_keys=[dg.AssetKey(name) for name in here])
    ended: list[str] = []
    store = StoredVerdicts(uri=str(tmp_path))
    store.lease.server("a", lambda scope: scope.callback(ended.append, "ended"))
    catalog = catalog_of(
        tmp_path,
        corpora="c: {reader: battles, location: x, panel: {battles: 0}}",
        judges="j: {kind: vllm, model: m, display_name: J, family: none, asks: [rubric, choice]}",
    )
    for name, error, n_ended in (
        ("verdicts", None, 0),
        ("choice_verdicts", ValueError("no text"), 0),
        ("reliability_panel", None, 1),
    ):
        run: Any = SimpleNamespace(
            asset_key=dg.AssetKey(name),
            job_def=SimpleNamespace(asset_layer=layer),
            partition_key=corpus_judge_key("c", "j"),
        )
        table = releasing(Mock(side_effect=error, __name__="make"))
        with suppress(ValueError):
            table(run, catalog=catalog, verdict_store=store)
        assert len(ended) == n_ended


@pytest.mark.parametrize("error", [TOO_LONG, OUT_OF_MEMORY, TAKEN])
def test_the_end_of_one_process_is_not_the_cause_but_the_error_of_another(error):
    trace = ["Traceback (most recent call last):", '  File "/v1/engine/core.py", line 1', error]
    trace.append(OF_A_RANK)
    assert last_error("\n".join([*(CORE + line for line in trace), *WRAPPED])) == error


@pytest.mark.parametrize("error", [NO_GPU, NO_OPTION, IN_USE, NOT_THERE, UNKNOWN])
def test_an_error_of_the_only_process_is_the_last_one_with_its_lines(error):
    before = ["KeyError: 'foo'", "", "During handling of the above exception, another occurred:"]
    lines = [*before, "Traceback (most recent call last):", *error.split("\n")]
    assert last_error("\n".join(API + line for line in lines)) == error
    assert last_error("\n".join(lines)) == error


def test_a_log_without_an_error_has_none():
    quiet = ["INFO 11-27 10:16:07 [entry.py:136] Error handling is on", "ready", ""]
    assert last_error("\n".join(quiet)) is None
    assert last_error("\n".join(WRAPPED)) is None
    assert last_error("") is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NO_GPU, "sees no GPU"),
        (HIDDEN, "sees no GPU"),
        (TAKEN, "stop what else holds it"),
        (MOVED, "run again"),
        (TOO_LONG, "vllm.max_model_len"),
        (OUT_OF_MEMORY, "vllm.max_model_len"),
        (IN_USE, "run again"),
        (NO_OPTION, "vllm.extra_args"),
        (NOT_THERE, "HF_TOKEN"),
        (NO_FOLDER, "neither a folder of this machine"),
        (UNKNOWN, "a newer one"),
    ],
)
def test_a_known_error_has_its_remedy(error, words):
    assert words in str(remedy_of(error))


def test_another_error_has_none():
    assert remedy_of("ZeroDivisionError: division by zero") is None
