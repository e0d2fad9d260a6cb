"""Every scoring method of a real judge on real texts, end to end.

Writes an installation of its own (corpus, judge, embeddings) over completions of real models,
runs the whole lineage on it and prints the comparison of scoring methods. `--help` says the
rest; README.md beside this file says how to read the table.

Nobody voted on these texts. Their place is taken by the published preferences of another judge
(weighted GPT-4 against one reference): of two answers to one question the one it prefers more
strongly to the reference wins, and they tie where the odds are below 3 to 2. Errors are thus
distances from that judge, not from people.
"""

import argparse
import itertools
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from judgeline.paths import ROOT
from judgeline.verdict import text_hash

LEFT_OUT = ("NullModel",)
"""It talks the published judge into preferring it, whatever the question."""

TIE_LOG_ODDS = math.log(1.5)
CORPUS, JUDGE = "real-texts", "small"


def read_answers(data: Path) -> pd.DataFrame:
    """Return the answers of real models, each with the log-odds of its published preference."""
    texts = pd.read_parquet(data / "alpacaeval_completions.parquet")
    told = pd.read_parquet(data / "alpacaeval_reference_battles.parquet")
    told = told.assign(
        preference=told["preference"].mask(told["model"].eq(told["reference_model"]), 0.5)
    )
    answers = texts.merge(told[["question_id", "model", "preference"]], on=["question_id", "model"])
    answers = answers[~answers["model"].isin(LEFT_OUT) & answers["preference"].between(0, 1)]
    share = answers["preference"].clip(1e-9, 1 - 1e-9)
    return answers.assign(log_odds=np.log(share / (1 - share)))


def choose_battles(
    answers: pd.DataFrame, n_battles: int, most_characters: int, seed: int
) -> pd.DataFrame:
    """Return battles between all pairs of models in turn, on texts short enough to read here."""
    rng = np.random.default_rng(seed)
    by_pair: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for _, group in answers.groupby("question_id", sort=True):
        for first, second in itertools.combinations(group.sort_values("model").itertuples(), 2):
            if len(first.completion) + len(second.completion) <= most_characters:
                pair = (first, second) if rng.random() < 0.5 else (second, first)
                by_pair.setdefault((first.model, second.model), []).append(_battle(*pair))
    for battles in by_pair.values():
        rng.shuffle(battles)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*by_pair.values()))
    return pd.DataFrame(itertools.islice(filter(None, turns), n_battles))


def _battle(a: Any, b: Any) -> dict[str, Any]:
    lead = a.log_odds - b.log_odds
    winner = "tie" if abs(lead) < TIE_LOG_ODDS else "model_a" if lead > 0 else "model_b"
    return {
        "battle_id": text_hash(f"{a.question_id} {a.model} {b.model}")[:16],
        "question_id": a.question_id,
        "model_a": a.model,
        "model_b": b.model,
        "winner": winner,
        "instruction": a.instruction,
        "completion_a": a.completion,
        "completion_b": b.completion,
        "language": "en",
    }


def furnish(folder: Path, battles: pd.DataFrame, given: argparse.Namespace) -> Path:
    """Write an installation with one corpus and one judge; return its configuration folder."""
    config = folder / "config"
    config.mkdir(parents=True, exist_ok=True)
    battles.to_json(folder / "battles.jsonl", orient="records", lines=True)
    corpus = {
        "display_name": "Real texts, another judge's preferences for votes",
        "reader": "battles",
        "location": str(folder / "battles.jsonl"),
        "judges": [JUDGE],
        "embeddings": "vectors",
        "reference": "gpt4_1106_preview",
    }
    judge = {
        "display_name": given.model.name,
        "family": "none",
        "kind": "vllm",
        "model": str(given.model),
        "asks": ["rubric", "score", "choice"],
        "score": {"scale": [1, 9], "digits_per_token": 1, "structured": True},
        "choice": {"structured": True},
        "structured_output": "on",
        "decoding": {"max_tokens": 200},
        "concurrency": 16,
        "vllm": {"max_model_len": 4096},
    }
    vectors: dict[str, Any] = {"kind": "hashed"}
    if given.embeddings_url:
        vectors = {
            "kind": "openai",
            "base_url": given.embeddings_url,
            "model": given.embeddings_model,
        }
    for name, entries in (
        ("corpora", {CORPUS: corpus}),
        ("judges", {JUDGE: judge}),
        ("embeddings", {"vectors": vectors}),
    ):
        (config / f"{name}.yaml").write_text(yaml.safe_dump(entries), encoding="utf-8")
    return config


def run(folder: Path, config: Path, *words: str) -> int:
    """Run a command over the installation and return its exit code."""
    variables = {"JUDGELINE_HOME": str(folder / "home"), "JUDGELINE_CONFIG": str(config)}
    done = subprocess.run(
        [sys.executable, "-m", "pipelines", *words],
        env={**os.environ, **variables},
        cwd=ROOT,
        check=False,
    )
    return done.returncode


def main() -> int:
    """Judge real models' answers in a fresh installation, and print the errors of its methods."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("JUDGELINE_DATA"))
    parser.add_argument("--model", type=Path, help="folder of a model that vLLM can serve")
    parser.add_argument("--folder", type=Path, default=Path("real-texts"), help="what is kept")
    parser.add_argument("--battles", type=int, default=300)
    parser.add_argument("--characters", type=int, default=1600, help="most, of both answers")
    parser.add_argument("--embeddings-url", help="of an OpenAI-compatible endpoint")
    parser.add_argument("--embeddings-model", default="all-MiniLM-L6-v2")
    parser.add_argument("--quick", action="store_true", help="60 battles")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if not given.data or not given.model:
        print("needs --model, and --data or JUDGELINE_DATA: not run")
        return 0
    answers = read_answers(Path(given.data))
    n_battles = 60 if given.quick else given.battles
    battles = choose_battles(answers, n_battles, given.characters, given.seed)
    given.folder.mkdir(parents=True, exist_ok=True)
    given.folder, given.model = given.folder.resolve(), given.model.resolve()
    config = furnish(given.folder, battles, given)
    print(battles["winner"].value_counts().to_string())
    code = run(given.folder, config, "run", "--corpus", CORPUS)
    table = given.folder / "home" / "tables" / "scoring_methods"
    for file in sorted(table.rglob("*.parquet")):
        shown = pd.read_parquet(file).dropna(subset="mae").sort_values("mae")
        print(file.stem)
        print(shown.drop(columns=["note"]).round(3).to_string(index=False))
    return code


if __name__ == "__main__":
    sys.exit(main())
