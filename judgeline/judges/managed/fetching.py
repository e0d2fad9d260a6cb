"""Weights of a managed judge, downloaded before its server needs them."""

import subprocess
from pathlib import Path

from judgeline.judges.live.fields import ServedFields
from judgeline.judges.managed.judge import VllmError, server_environment, vllm_python

# In the environment of vLLM, whose loader prefers safetensors and leaves other forms alone then.
# A folder on disk may lack files of a download that was interrupted: it serves where the hub cannot
# be asked, and otherwise the rest is downloaded.
_FETCH = """
import sys
from huggingface_hub import list_repo_files, snapshot_download
name, revision = sys.argv[1], sys.argv[2] or None
try:
    files = list_repo_files(name, revision=revision)
except Exception:
    print(snapshot_download(name, revision=revision, local_files_only=True))
    sys.exit()
others = ["onnx/*", "*.h5", "*.msgpack"]
if any(file.endswith(".safetensors") for file in files):
    others += ["*.gguf", "*.bin", "*.pt", "*.pth", "original/*"]
print(snapshot_download(name, revision=revision, ignore_patterns=others))
"""


def fetch_weights(slug: str, fields: ServedFields) -> str:
    """Return the folder of a judge's weights.

    Missing files are downloaded; the download prints its progress to standard error. Where the hub
    cannot be asked, the folder on disk serves. VllmError if there is none.
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
            "HF_TOKEN, and leave HF_HUB_OFFLINE unset until they are on disk"
        )
    return fetched.stdout.strip()
