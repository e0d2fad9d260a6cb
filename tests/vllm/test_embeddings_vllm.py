"""Vectors from a real vLLM server of our own, held against the model's own final layer."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from upath import UPath

from judgeline.judges.embeddings.buying import EmbeddingStore, VectorBuyer
from judgeline.judges.embeddings.definition import EmbedderDefinition
from judgeline.judges.embeddings.embedder import open_embedder
from judgeline.judges.managed.options import Hosting

pytestmark = pytest.mark.slow

TEXTS = ["The answer is clear.", "It gets the numbers wrong, and says so twice.", "The answer"]
FINAL_LAYER = """
import json, sys, torch
from transformers import AutoModel, AutoTokenizer
model = AutoModel.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
with torch.no_grad():
    given = [tokenizer(text, return_tensors="pt") for text in json.loads(sys.argv[2])]
    states = [model(**one).last_hidden_state[0, -1] for one in given]
print(json.dumps([(state / state.norm()).tolist() for state in states]))
"""


def test_a_judge_s_vector_is_its_final_layer_at_the_last_token(
    model: Path, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    vllm = {"extra_args": ["--enforce-eager"], "dtype": "float32"}
    definition = EmbedderDefinition(slug="tiny", kind="vllm", model=str(model), vllm=vllm)
    told: list[str] = []
    store = EmbeddingStore(UPath(tmp_path / "vectors"))
    with Hosting(told.append, logs=tmp_path / "logs") as hosting:
        found = VectorBuyer(open_embedder(definition, hosting), store).vectors(TEXTS)
        assert VectorBuyer(open_embedder(definition, hosting), store).vectors(TEXTS).keys() == {
            *TEXTS
        }
    assert sum("starting" in line for line in told) == 1  # the second time all were stored
    said = subprocess.run(
        [python, "-c", FINAL_LAYER, str(model), json.dumps(TEXTS)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ},
    ).stdout
    known = np.array(json.loads(said.splitlines()[-1]))
    ours = np.stack([found[text] / np.linalg.norm(found[text]) for text in TEXTS])
    assert (ours * known).sum(axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-3)
