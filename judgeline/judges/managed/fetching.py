"""Weights of a managed judge, downloaded before its server needs them."""

import subprocess
from pathlib import Path

from judgeline.judges.live.fields import ServedFields
from judgeline.judges.managed.judge import VllmError, server_environment, vllm_python

# in the environment of vLLM, whose loader prefers safetensors, and leaves other forms alone then
_FETCH = """
import sys
from huggingface_hub import list_repo_files, snapshot_download
name, revision = sys.argv[1], sys.argv[2] or None
is_safe = any(file.endswith(".safetensors") for file in list_repo_files(name, revision=revision))
others = ["*.bin", "*.pt", "*.pth", "original/*"] if is_safe else None
print(snapshot_download(name, revision=revision, ignore_patterns=others))
"""


def fetch_weights(slug: str, fields: ServedFields) -> str:
    """Return the folder of a judge's weights; what is not on disk is downloaded, and told.

    VllmError where they cannot be had; what the download said stands on standard error.
    """
    model = str(fields.model)
    if (local := Path(model).expanduser()).is_dir():
        return str(local)
    python = vllm_python(slug)
    fetched = subprocess.run(  # noqa: S603 - the interpreter that the user named
        [python, "-c", _FETCH, model, fields.revision or ""],
        env=server_environment(python, ""),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if fetched.returncode:
        raise VllmError(
            f"judge {slug!r}: the weights of {model!r} could not be fetched; why is said above. "
            "Look at 'model' and 'revision' in judges.yaml, accept the model's terms, set "
            "HF_TOKEN, and leave HF_HUB_OFFLINE unset"
        )
    return fetched.stdout.strip()
