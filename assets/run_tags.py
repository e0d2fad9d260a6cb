"""Tags of runs, by which a schedule, a sensor or a person sets an asset's options."""

import dagster as dg
from dagster._core.errors import DagsterInvalidPropertyError

BUDGET_TAG = "judgeline/budget"
"""Caps what judges are asked, such as ``2000calls 5USD``."""
SPENT_TAG = "judgeline/spent"
"""In which a capped run says what it has spent, as JSON."""
SAMPLE_TAG = "judgeline/sample_size"
"""How many battles to choose, where that is more than the corpus' own ``sample_size``."""
REFRESH_TAG = "judgeline/refresh"
"""Marks the runs that a scheduled refresh of a corpus consists of."""


def run_of(context: dg.AssetExecutionContext) -> dg.DagsterRun | None:
    """Return the run that makes an asset, None where it is called as a function."""
    try:
        return context.run
    except DagsterInvalidPropertyError:
        return None


def tag_of(context: dg.AssetExecutionContext, name: str) -> str | None:
    """Return a tag of the run that makes an asset, None where there is none."""
    run = run_of(context)
    return run.tags.get(name) if run is not None else None
