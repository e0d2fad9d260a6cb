"""The command line and the environment with which a vLLM server is started."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from resources.judges.live.fields import ServedFields
from resources.judges.managed.options import VllmOptions

PYTHON_VARIABLE = "JUDGELINE_VLLM_PYTHON"
HOST = "127.0.0.1"

# its `vllm` command looks for a distribution of that name, which the builds for a CPU are not
_MODULE = "vllm.entrypoints.openai.api_server"
_COMPACT = '{"backend": "xgrammar", "disable_any_whitespace": true}'
_IS_THERE = (
    "import importlib.util, sys; found = importlib.util.find_spec('vllm');"
    "sys.exit(3 if found is None or found.origin is None else 0)"
)
_LONGEST_LOOK_S = 60.0


class VllmError(RuntimeError):
    """The server could not be started, or did not stay up."""


def vllm_python(slug: str, variables: Mapping[str, str] | None = None) -> str:
    """Return the interpreter in which vLLM is installed: ``JUDGELINE_VLLM_PYTHON``, or this one."""
    variables = os.environ if variables is None else variables
    named = variables.get(PYTHON_VARIABLE, "").strip()
    python = named or sys.executable
    try:
        look = subprocess.run(  # noqa: S603 - the interpreter that the user named
            [python, "-c", _IS_THERE],
            env={**variables, "PYTHONSAFEPATH": "1"},
            capture_output=True,
            timeout=_LONGEST_LOOK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VllmError(
            f"judge {slug!r}: {PYTHON_VARIABLE} names {python!r}, which does not run "
            f"({error}); set it to the Python of an environment that holds vLLM"
        ) from error
    if look.returncode:
        raise VllmError(
            f"judge {slug!r} needs vLLM, which {python} does not have; install it into an "
            f"environment of its own (python3 -m venv ENV; ENV/bin/pip install vllm) and set "
            f"{PYTHON_VARIABLE}=ENV/bin/python"
        )
    return python


def server_command(python: str, fields: ServedFields, options: VllmOptions, port: int) -> list[str]:
    """Return the command that serves a judge's model on a loopback port; no key is in it."""
    model = str(fields.model)
    local = Path(model).expanduser()
    optional = {"--revision": fields.revision, "--max-model-len": options.max_model_len}
    settings = {
        "--model": str(local.resolve()) if local.is_dir() else model,
        "--served-model-name": model,
        "--host": HOST,
        "--port": port,
        "--tensor-parallel-size": options.tensor_parallel_size,
        "--data-parallel-size": options.data_parallel_size,
        "--dtype": options.dtype,
        # free whitespace lets a small model fill its answer with line breaks
        "--structured-outputs-config": _COMPACT,
        **{name: value for name, value in optional.items() if value is not None},
    }
    words = [str(word) for pair in settings.items() for word in pair]
    return [python, "-m", _MODULE, *words, "--disable-uvicorn-access-log", *options.extra_args]


def server_environment(
    python: str, key: str, variables: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of the server: ours, its key, and the tools of its interpreter."""
    variables = os.environ if variables is None else variables
    tools = str(Path(python).absolute().parent)
    return {
        **variables,
        "VLLM_API_KEY": key,
        "PATH": os.pathsep.join((tools, variables.get("PATH", os.defpath))),
        "PYTHONSAFEPATH": "1",  # the folder we run in is none of the server's
        "PYTHONUNBUFFERED": "1",
    }
