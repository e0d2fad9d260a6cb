"""Processes to be killed, which import nothing: they are forks of one that has imported it all."""

import multiprocessing
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

PRELOADED = ["buyer_process", "test_batch_kills"]


def forking() -> ForkServerContext:
    """Return the context of such processes; its server starts once, with the first of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with pytest.MonkeyPatch.context() as patch:  # where the server finds what it is to import
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=":")
        multiprocessing.forkserver.ensure_running()
    return context
