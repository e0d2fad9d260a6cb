"""Executor of launched runs: in a process of their own, tagged with its host."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from pipelines.instance.workers import HOST_TAG, this_host


class OnNamedHost(dg.Executor):
    """An executor that first tags the run with its host, and leaves the rest to another.

    The tag tells who may say that the run's process is gone: see `recover`.
    """

    def __init__(self, inner: dg.Executor) -> None:
        self._inner = inner

    @property
    def retries(self) -> Any:
        """Whether steps are retried: as the inner executor says."""
        return self._inner.retries

    @property
    def step_dependency_config(self) -> Any:
        """What steps wait for: as the inner executor says."""
        return self._inner.step_dependency_config

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[dg.DagsterEvent]:
        """Tag the run, then execute it; yields what the inner executor yields."""
        plan_context.instance.add_run_tags(plan_context.run_id, {HOST_TAG: this_host()})
        yield from self._inner.execute(plan_context, execution_plan)


@dg.executor(name="in_process", config_schema=dg.in_process_executor.config_schema)
def in_process_on_named_host(context: dg.InitExecutorContext) -> dg.Executor:
    """Execute the steps one after another in the run's process, which says where it is."""
    return OnNamedHost(dg.in_process_executor.executor_creation_fn(context))
