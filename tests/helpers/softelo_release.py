"""A simulated release of Soft-Elo annotations: 22 files of three corpora, as published."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from judgeline.verdict import CRITERIA, slug

JUDGES = (
    "DeepSeek-V3.2", "GPT-OSS-120B", "GPT-OSS-20B", "Gemma4-26B-A4B", "Gemma4-E4B",
    "Llama-3.3-70B", "Qwen3-32B", "Qwen3.5-27B",
)  # fmt: skip
CORPORA = {"lmarena-100k": (55, "DE"), "lmarena-140k": (53, "DE"), "comparia": (116, "DE")}
ABSENT = {("lmarena-140k", "Qwen3-32B"), ("comparia", "DeepSeek-V3.2")}
FAMILIES = ("gpt", "gemma", "llama", "qwen", "deepseek", "claude", "mistral", "phi")
LANGUAGES = ("English", "Russian", "German", "Chinese")


def write_release(
    folder: Path,
    *,
    n_battles: int = 25_000,
    judges: Sequence[str] = JUDGES,
    corpora: Sequence[str] = tuple(CORPORA),
    seed: int = 7,
) -> list[Path]:
    """Write one file per corpus and judge; the judges of a corpus see the same battles."""
    paths = []
    for place, corpus in enumerate(corpora):
        rng = np.random.default_rng([seed, place])
        battles = _battles(rng, CORPORA[corpus][0], n_battles)
        for number, judge in enumerate(judges):
            if (corpus, judge) not in ABSENT:
                own = np.random.default_rng([seed, place, number])
                path = folder / f"{corpus}__{slug(judge)}.csv"
                _judged(own, battles, corpus, judge, 0.3 + 0.05 * number).to_csv(path, index=False)
                paths.append(path)
    return paths


def _battles(rng: np.random.Generator, n_models: int, n: int) -> pd.DataFrame:
    names = np.array([f"{FAMILIES[k % len(FAMILIES)]}-{k:03d}" for k in range(n_models)])
    strength = rng.normal(0, 0.5, n_models)
    first = rng.integers(n_models, size=n)
    second = (first + rng.integers(1, n_models, size=n)) % n_models
    gap = strength[first] - strength[second] + rng.normal(0, 1.2, n)
    human = np.where(rng.random(n) < 0.3, 0.5, (rng.random(n) > expit(gap)).astype(float))
    return pd.DataFrame(
        {
            "model_a": names[first],
            "model_b": names[second],
            "gap": gap,
            "human_pref": human,
            "hash": [f"q{row:06d}" for row in range(n)],
            "language": rng.choice(LANGUAGES, n, p=[0.55, 0.25, 0.15, 0.05]),
            "len_a": rng.integers(200, 4000, n),
            "len_b": rng.integers(200, 4000, n),
        }
    )


def _judged(
    rng: np.random.Generator, battles: pd.DataFrame, corpus: str, judge: str, slope: float
) -> pd.DataFrame:
    """Return the rows of one judge, whose score differences follow what people see, with noise."""
    n = len(battles)
    longer = (battles["len_a"] - battles["len_b"]).to_numpy() / 4000
    wanted = battles["gap"].to_numpy() / (2 * slope) + 0.3 * longer + rng.normal(0, 1, n)
    sides = []
    for sign in (1, -1):
        points = 6.5 + sign * wanted[:, None] / 2 + rng.normal(0, 0.5, (n, len(CRITERIA)))
        sides.append(np.clip(np.round(points * 2) / 2, 1, 10))
    difference = (sides[0] - sides[1]).mean(axis=1)
    table = pd.DataFrame(
        {
            "battle_id": [f"{judge}-{row}" for row in range(n)],
            "source_dataset": corpus,
            "judge": judge,
            "row_index": range(n),
            "instruction_id_hash": battles["hash"],
            "original_question_id_hash": battles["hash"],
            "instruction_index": range(n),
            "model_a": battles["model_a"],
            "model_b": battles["model_b"],
            "human_pref": battles["human_pref"],
            "human_label": "",
            "judge_pref": np.where(np.abs(difference) < 0.3, 0.5, (difference < 0).astype(float)),
            "judge_label": "",
        }
    )
    for side, scores in zip("ab", sides, strict=True):
        rows = [
            json.dumps(dict(zip(CRITERIA, row, strict=True)), separators=(",", ":"))
            for row in scores.tolist()
        ]
        table[f"scores_{side}"] = rows
    return table.assign(
        len_a=battles["len_a"],
        len_b=battles["len_b"],
        language=battles["language"],
        source="",
        metadata_model_a="",
        metadata_model_b="",
        parse_error=False,
        agree="",
    )
