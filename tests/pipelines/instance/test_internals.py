"""The contract with parts of Dagster that are not its public interface: an upgrade shows here."""

import ast
import importlib.util
import logging
import os
import sys
import threading
from typing import Any

import dagster as dg
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.utils import FuturesAwareThreadPoolExecutor

from assets.partitions import CORPUS, corpus_judge_key, register
from assets.provenance import check_records
from judgeline.paths import ROOT
from pipelines.definitions import defs
from pipelines.instance import codeserver, internals
from pipelines.instance.internals import (
    BulkActionStatus,
    backfill_at_work,
    data_version,
    input_version,
    launch_backfill,
)


def test_only_the_instance_imports_them() -> None:
    files = sorted((ROOT / "pipelines").rglob("*.py"))
    found = {
        str(path.relative_to(ROOT))
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dagster._")
    }
    places = ("codeserver", "daemon", "internals", "storage")
    assert found == {f"pipelines/instance/{name}.py" for name in places}


def test_workers_are_forked_from_a_process_that_has_imported_all(monkeypatch, tmp_path):
    program = tmp_path / "served.py"
    program.write_text(
        "import dagster as dg\n@dg.job\ndef nothing(): ...\ndefs = dg.Definitions(jobs=[nothing])\n"
    )
    told: list[Any] = []

    def serve() -> None:
        from dagster._grpc.server import DagsterApiServer

        assert DagsterApiServer is codeserver.ForkingServer
        server = DagsterApiServer(
            threading.Event(),
            logging.getLogger("test"),
            FuturesAwareThreadPoolExecutor(max_workers=1),
            LoadableTargetOrigin(executable_path=sys.executable, python_file=str(program)),
        )
        told.append(server._mp_ctx.get_start_method())

    monkeypatch.setattr(codeserver, "dagster_main", serve)
    monkeypatch.setattr(codeserver.server, "DagsterApiServer", codeserver.server.DagsterApiServer)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    codeserver.main()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert told == ["forkserver"]
    for module in codeserver.PRELOADED:
        assert importlib.util.find_spec(module)


def test_a_backfill_is_known_to_the_instance_and_to_its_daemon() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["c"], judges=["j"])
        partition = str(corpus_judge_key("c", "j"))
        targets = [(dg.AssetKey("verdicts"), partition), (dg.AssetKey("report"), "c")]
        assert backfill_at_work(instance) == ""
        graph = defs.resolve_asset_graph()
        found = launch_backfill(instance, graph, targets, {"a": "b"}, "title")
        assert backfill_at_work(instance) == found
        stored = instance.get_backfill(found)
        assert stored.is_asset_backfill
        assert (stored.status, stored.tags) == (BulkActionStatus.REQUESTED, {"a": "b"})
        with dg.partition_loading_context(dynamic_partitions_store=instance):
            wanted = {*stored.asset_backfill_data.target_subset.iterate_asset_partitions()}
        assert wanted == {*targets}
        instance.update_backfill(stored.with_status(BulkActionStatus.COMPLETED_SUCCESS))
        assert backfill_at_work(instance) == ""
        assert stored.status not in internals.BULK_ACTION_TERMINAL_STATUSES


def test_versions_are_those_that_dagster_writes_into_what_follows() -> None:
    @dg.asset(partitions_def=CORPUS, code_version="1")
    def first() -> None: ...

    @dg.asset(partitions_def=CORPUS, deps=[first], code_version="2")
    def second() -> None: ...

    @dg.asset_check(asset=second, partitions_def=CORPUS)
    def fine() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["c"])
        made = dg.materialize([first, second, fine], partition_key="c", instance=instance)
        (event,) = made.asset_materializations_for_node("second")
        assert event.tags[internals.CODE_VERSION_TAG] == "2"
        version = data_version(instance, first.key, ["c"])
        assert version
        assert input_version(event.tags, first.key) == version
        assert data_version(instance, first.key, ["never made"]) == ""
        assert data_version(instance, first.key, ["c"] * 1000) != ""
        (key,) = fine.check_keys
        assert check_records(instance, [key], "c")[key].status.value == "SUCCEEDED"
        assert key not in check_records(instance, [key], "another")
