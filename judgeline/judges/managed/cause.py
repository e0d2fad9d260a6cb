"""The last error in a server's log, which most often is the cause of its end.

vLLM works in several processes. The one that ends last reports that another failed, and the words
of that other stand further up: often further than the end of a log that a person is shown.
"""

import re
from itertools import takewhile

_SOURCE = re.compile(
    r"^(?:\(\w+(?: pid=\d+)?\) ?)?(?:(?:ERROR|CRITICAL) [\d-]+ [\d:]+ \[[^\]]*\] ?)?"
)
"""Process, level, time and place that stand before a line of a log."""

_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exists|NotFound)(?:: |:?$)|Exception: "
)
_REFUSAL = re.compile(r"\S+\.py: error: ")
_OF_ANOTHER = re.compile(
    r"Engine core initialization failed|WorkerProc initialization failed|EngineDeadError"
    r"|EngineCore encountered an issue|CancelledError|[Ss]ee (?:root cause above|stack trace for)"
)
_NO_PART = re.compile(
    r"Traceback |During handling |The above exception |$| *File |[A-Z]+ \d|\[rank\d"
)
_MOST_LINES = 6
_LONGEST = 800


def last_error(log: str) -> str | None:
    """Return the last exception, or refused option, that reports no other one's end; else None.

    An exception comes with the lines of its message. Of a chain the last one has the words for a
    person: before ``ValueError: ... does not recognize this architecture`` stands ``KeyError``.
    """
    lines = [_SOURCE.sub("", line) for line in log.replace("\r", "\n").split("\n")]
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        if (_EXCEPTION.match(line) or _REFUSAL.match(line)) and not _OF_ANOTHER.search(line):
            rest = lines[number + 1 : number + _MOST_LINES]
            said = [line, *takewhile(lambda one: not _NO_PART.match(one), rest)]
            return "\n".join(one.rstrip() for one in said)[:_LONGEST]
    return None


_REMEDIES = {
    r"infer device type|No CUDA GPUs|no NVIDIA driver|out of bounds for 0 devices": (
        "vLLM sees no GPU: look at nvidia-smi and CUDA_VISIBLE_DEVICES, and whether the vLLM that "
        "is installed is built for this machine"
    ),
    r"OutOfMemory|out of memory|KV cache|kv cache|Free memory on device|memory for the cache": (
        "memory is short: stop what else holds it (nvidia-smi), lower vllm.max_model_len, spread "
        "the model by vllm.tensor_parallel_size, or take a smaller one"
    ),
    r"Error in memory profiling": (
        "the memory in use changed while the server measured it, as when another process ends; "
        "run again, when no other process comes or goes"
    ),
    r"Address already in use": "another process took the port in the meantime; run again",
    r"unrecognized arguments|\.py: error: ": "mend vllm.extra_args",
    r"LocalEntryNotFound|GatedRepo|RepositoryNotFound|gated repo": (
        "the model cannot be fetched: look at its name, accept its terms, set HF_TOKEN, and leave "
        "HF_HUB_OFFLINE unset until it is on disk"
    ),
    r"HFValidationError": (
        "'model' is neither a folder of this machine nor a model's name on the hub (OWNER/NAME); "
        "correct it"
    ),
    r"not recognize this architecture|architectures .* are not supported": (
        "this vLLM does not know the model; install a newer one"
    ),
}


def remedy_of(error: str) -> str | None:
    """Return what mends an error of a start, if it is one of those that are known."""
    found = (remedy for words, remedy in _REMEDIES.items() if re.search(words, error))
    return next(found, None)
