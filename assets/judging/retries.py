"""Retries of steps that ask a judge: only after failures that may pass."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
from sqlalchemy.exc import OperationalError

from resources.judges.live.endpoint import OutOfReachError

MAX_RETRIES = 3
FIRST_WAIT_S = 60.0
"""Seconds until the first further attempt; each later one waits four times as long."""

TRANSIENT = (OutOfReachError, ConnectionError, TimeoutError, OperationalError)
"""Failures of the way to an endpoint, a store or the database of runs."""


@contextmanager
def retried_later(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Request a retry of an automatic step after a transient error."""
    try:
        yield
    except Exception as error:
        if is_watched(context) or not is_transient(error):
            raise
        wait_s = FIRST_WAIT_S * 4**context.retry_number
        raise dg.RetryRequested(max_retries=MAX_RETRIES, seconds_to_wait=wait_s) from error


@contextmanager
def transient_ignored() -> Iterator[None]:
    """Ignore a transient error."""
    try:
        yield
    except Exception as error:
        if not is_transient(error):
            raise


def is_transient(error: BaseException | None) -> bool:
    """Return whether an error, or a cause of it, is transient."""
    while error is not None and not isinstance(error, TRANSIENT):
        error = error.__cause__
    return error is not None


def is_watched(context: dg.AssetExecutionContext) -> bool:
    """Return whether a run was started in a process of its own, as `judgeline run` does."""
    return context.run.remote_job_origin is None
