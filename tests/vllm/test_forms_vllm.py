"""Scores and choices from a real vLLM server, of a model whose probabilities are known."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from answering import annotate

from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.managed import judge as managed_judge
from judgeline.judges.managed.judge import Server, running
from judgeline.judges.managed.options import Hosting
from resources.config.corpora import CorpusDefinition
from resources.opening import open_judge

pytestmark = pytest.mark.slow

CORPUS = CorpusDefinition(slug="c", display_name="C", reader="battles", location="nowhere")
CHANCES = {
    "<|grade|>": {"8": 0.99, "9": 0.01},
    "8": {"7": 0.6, "5": 0.3, "\n": 0.1},
    "7": {"\n": 1.0},
    "<|choose|>": {"B": 0.6, "A": 0.3, "C": 0.1},
    "B": {"\n": 1.0},
}
ROUNDING = 0.02  # of logits of eight significant bits


@pytest.fixture
def one_server(
    judge: JudgeDefinition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """A server that every form asks: starting one takes longer than all that it is asked."""
    with running("known", judge, judge.vllm, Hosting(print, logs=tmp_path / "logs")) as server:
        monkeypatch.setattr(managed_judge, "running", lambda *_: nullcontext(server))
        yield server


@pytest.fixture
def judge(
    tmp_path: Path, python: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> JudgeDefinition:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    script = Path(__file__).resolve().parent / "known_model.py"
    model = tmp_path / "known"
    subprocess.run(
        [python, str(script), str(model), json.dumps(CHANCES)], check=True, env={**os.environ}
    )
    return JudgeDefinition.model_validate(
        {
            "slug": "known",
            "display_name": "Known",
            "family": "none",
            "kind": "vllm",
            "model": str(model),
            "asks": ["score", "choice"],
            "decoding": {"max_tokens": 50},
            "vllm": {"extra_args": ["--enforce-eager"]},
        }
    )


def test_a_real_server_tells_the_probabilities_that_its_model_has(judge, one_server, battles):
    some = battles.head(5).assign(question_id=[f"q{n}" for n in range(5)])
    opened = open_judge(judge, CORPUS, form="score")
    scores = annotate(opened, some, slug="known")
    assert float(opened.metadata["prompt_tokens_per_second"]) > 0
    assert opened.metadata["prompt_tokens_cached"].endswith("%")
    assert scores["status"].tolist() == ["ok"] * 10
    assert scores["score"].tolist() == [87] * 10
    assert scores["evidence"].unique().tolist() == ["log-probabilities"]
    mean = 0.6 * 87 + 0.3 * 85 + 0.1 * 8
    assert scores["expected_score"].to_numpy() == pytest.approx(1 + (mean - 1) / 11, rel=ROUNDING)
    assert scores["covered"].to_numpy() == pytest.approx(0.99, rel=ROUNDING)
    listed = json.loads(scores["log_probabilities"].iloc[0])[0][2]
    assert len(listed) >= 20

    choices = annotate(open_judge(judge, CORPUS, form="choice"), some, slug="known")
    assert choices["status"].tolist() == ["ok"] * 10
    assert choices["choice"].tolist() == [0.0, 1.0] * 5  # the second place, whoever stands there
    chances = choices.loc[choices["order"].eq("AB"), ["p_a", "p_tie", "p_b"]].to_numpy()
    assert chances == pytest.approx(np.tile([0.3, 0.1, 0.6], (5, 1)), rel=ROUNDING)
    # of the letter and of the line's end, which is certain; the end of the turn is no word
    assert choices["perplexity"].to_numpy() == pytest.approx(0.6 ** (-1 / 2), rel=ROUNDING)
