"""A real vLLM server's environment (or a skip), a tiny model, and texts: real, or the arena's."""

import os
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from judgeline.judges.managed.judge import PYTHON_VARIABLE, VllmError, vllm_python
from judgeline.judges.opening import read_template
from judgeline.verdict.dictation import _CODES
from resources.arena.simulation import arena_options, build_arena

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
N_BATTLES = 40
N_TEXTS_READ = 600


@pytest.fixture(scope="session")
def python() -> str:
    """The interpreter with vLLM, or a skip that says how to get one."""
    if not os.environ.get(PYTHON_VARIABLE):
        pytest.skip(f"{PYTHON_VARIABLE} is not set; `make test-vllm` sets it")
    try:
        return vllm_python("tiny")
    except VllmError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def completions(request: pytest.FixtureRequest) -> pd.DataFrame:
    """Answers of several models to the same questions, without repeated and blank ones."""
    try:
        file = request.getfixturevalue("data_dir") / "alpacaeval_completions.parquet"
        table = pd.read_parquet(file)
    except (pytest.skip.Exception, FileNotFoundError):
        table = simulated_completions()
    return table[table["completion"].str.len() > 20]


def simulated_completions() -> pd.DataFrame:
    """The built-in arena's texts, in the columns of the real ones."""
    options = arena_options({"n_prompts": 60, "n_voted": 10, "n_battles": 600}, 0, "arena")
    arena = build_arena(options)
    rows = [
        (prompt.question_id, model, prompt.instruction, completion)
        for model, texts in zip(arena.models, arena.completions, strict=True)
        for prompt, completion in zip(arena.prompts, texts, strict=True)
    ]
    columns = ["question_id", "model", "instruction", "completion"]
    return pd.DataFrame(rows, columns=columns).drop_duplicates(["question_id", "completion"])


@pytest.fixture(scope="session")
def model(python: str, completions: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama with random weights; its tokenizer has read some of the texts."""
    folder = tmp_path_factory.mktemp("model")
    text = folder / "text.txt"
    rubric = read_template("fenced-rubric.txt")
    read = completions[["instruction", "completion"]].head(N_TEXTS_READ).to_numpy().ravel()
    text.write_text("\n".join([rubric, *read]), encoding="utf-8")
    subprocess.run(
        [python, str(HERE / "tiny_model.py"), str(folder / "tiny"), str(text)],
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    return folder / "tiny"


def without_numbers(text: str) -> str:
    """A text without a mark, so that no answer of random weights can be an echo of it.
    Only plain words stay: ``I`` is a Roman numeral, ``on`` is the Turkish ten."""
    return re.sub(r"[\w+/-]+", lambda word: word[0] if is_plain(word[0]) else "some", text)


def is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.casefold() not in _CODES


@pytest.fixture(scope="session")
def battles(completions: pd.DataFrame) -> pd.DataFrame:
    """Battles on one question, texts without marks; the vote goes to the longer text."""
    by_question = [group for _, group in completions.groupby("question_id", sort=True)]
    rows = []
    for number, group in enumerate(by_question[:N_BATTLES]):
        pair = group.sample(n=2, random_state=number)
        first, second = map(without_numbers, pair["completion"])
        model_a, model_b = pair["model"]
        rows.append(
            {
                "battle_id": f"b{number}", "model_a": model_a, "model_b": model_b,
                "instruction": without_numbers(pair["instruction"].iloc[0]),
                "completion_a": first, "completion_b": second,
                "human_outcome": float(len(first) > len(second)),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)
