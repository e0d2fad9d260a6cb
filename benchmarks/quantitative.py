"""What quantitative judges add to a base judge: learning curves and ablations on real rationales.

The rationales are real, and so are their embeddings, from any OpenAI-compatible endpoint:
``--base-url http://127.0.0.1:8000/v1 --model NAME``; tests/helpers/minilm_server.py starts
a local one.
README.md beside this file says how to read the tables.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.quantitative import fit_judge, preference_agreement

MEASURES = ("mse", "mae", "accuracy", "f1", "pearson", "spearman", "kendall")
ABLATIONS = (0.5, 0.75, 0.875)
FILE = "alpacaeval_rationales.parquet"


@dataclass(frozen=True)
class Judged:
    """Rows of real verdicts: embedding (n, d), score +1 or -1, target in [0, 1], question."""

    embeddings: np.ndarray
    score: np.ndarray
    target: np.ndarray
    question: np.ndarray

    def take(self, rows: np.ndarray) -> "Judged":
        """Return the chosen verdicts."""
        parts = (self.embeddings, self.score, self.target, self.question)
        return Judged(*(part[rows] for part in parts))

    def having(self, features: np.ndarray | slice, *, score: bool = True) -> "Judged":
        """Return the same rows with the chosen features; without a score all have 0."""
        kept = self.score if score else np.zeros_like(self.score)
        return Judged(self.embeddings[:, features], kept, self.target, self.question)


Prediction = Callable[[Judged, Judged, np.random.Generator], np.ndarray]


def btl(train: Judged, test: Judged, rng: np.random.Generator) -> np.ndarray:
    judge = fit_judge("btl", train.embeddings, train.score, train.target, train.question, rng=rng)
    return judge.predict(test.embeddings, test.score)


def least_squares(train: Judged, test: Judged, rng: np.random.Generator) -> np.ndarray:
    judge = fit_judge("ls", train.embeddings, train.score, train.target, train.question, rng=rng)
    return np.clip(judge.predict(test.embeddings, test.score), 0, 1)  # the targets' range


def verdict(_train: Judged, test: Judged, _rng: np.random.Generator) -> np.ndarray:
    return (test.score + 1) / 2


def without_score(train: Judged, test: Judged, rng: np.random.Generator) -> np.ndarray:
    everything = slice(None)
    return btl(train.having(everything, score=False), test.having(everything, score=False), rng)


def dropping(share: float) -> Prediction:
    def predict(train: Judged, test: Judged, rng: np.random.Generator) -> np.ndarray:
        n_features = train.embeddings.shape[1]
        features = np.sort(rng.permutation(n_features)[: round(n_features * (1 - share))])
        return btl(train.having(features), test.having(features), rng)

    return predict


JUDGES: dict[str, Prediction] = {
    "base judge": verdict,
    "BTL": btl,
    "LS": least_squares,
    **{f"BTL, {share:.1%} of features dropped": dropping(share) for share in ABLATIONS},
    "BTL, embedding dropped": dropping(1.0),
    "BTL, score dropped": without_score,
}


def split(question: np.ndarray, n_train: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return training rows of whole questions up to a number, and the rows of the others."""
    names, place = np.unique(question, return_inverse=True)
    order = np.argsort(rng.permutation(names.size)[place], kind="stable")
    train = order[:n_train]
    return train, np.flatnonzero(~np.isin(place, place[train]))


def learning_curve(
    judged: Judged, names: Sequence[str], sizes: Sequence[int], n_sets: int, seed: int
) -> pd.DataFrame:
    """Return one row per judge, training size and training set, with its measures."""
    rows = []
    for size in sizes:
        for number in range(n_sets):
            train, test = split(judged.question, size, np.random.default_rng([seed, size, number]))
            rest = judged.take(test)
            for name in names:
                rng = np.random.default_rng([seed, size, number, 1])
                said = JUDGES[name](judged.take(train), rest, rng)
                found = preference_agreement(said, rest.target)
                rows.append({"judge": name, "n": size, "set": number, **found})
    return pd.DataFrame(rows)


def table(curve: pd.DataFrame) -> str:
    """Return means over training sets, with standard deviations, as a markdown table."""
    groups = curve.groupby(["n", "judge"], sort=False)[list(MEASURES)]
    mean, spread = groups.mean(), groups.std()
    lines = [f"| training rows | judge | {' | '.join(MEASURES)} |", "|---:|---|" + "---:|" * 7]
    for key in mean.index:
        cells = [f"{mean.loc[key, m]:.3f} ({spread.loc[key, m]:.3f})" for m in MEASURES]
        lines.append(f"| {key[0]} | {key[1]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def embedded(texts: list[str], base_url: str, model: str, api_key_env: str | None) -> np.ndarray:
    """Return the embeddings of texts, shape (n, d), from an endpoint, or stop."""
    from judgeline.judges.embeddings.definition import EmbedderDefinition
    from judgeline.judges.embeddings.embedder import open_embedder

    given = {"slug": "benchmark", "kind": "openai", "base_url": base_url, "model": model}
    given |= {"batch_size": 16, "concurrency": 2, "timeout_s": 600.0}  # may be on this machine
    given |= {"api_key_env": api_key_env} if api_key_env else {}
    embedder = open_embedder(EmbedderDefinition.model_validate(given))
    vectors: dict[int, np.ndarray] = {}
    for place, found in embedder.embed(texts):
        if found.vector is None:
            raise SystemExit(f"rationale {place} has no vector: {found.failure}")
        vectors[place] = found.vector
    return np.array([vectors[place] for place in range(len(texts))], dtype=float)


def load(folder: Path, options: argparse.Namespace) -> tuple[Judged, pd.DataFrame]:
    """Return the rows with their embeddings, and the file they are from."""
    frame = pd.read_parquet(folder / FILE)
    texts = sorted(set(frame["rationale"]))
    vectors = embedded(texts, options.base_url, options.model, options.api_key_env)
    place = {text: number for number, text in enumerate(texts)}
    rows = vectors[[place[text] for text in frame["rationale"]]]
    # A verdict of 0 or 1 has no logit: it enters as -1 or +1, and its weight is fitted.
    score = 2.0 * frame["verdict_model_wins"].to_numpy(dtype=float) - 1
    target = frame["target_preference"].to_numpy(dtype=float)
    return Judged(rows, score, target, frame["question_id"].to_numpy(dtype=str)), frame


def main() -> None:
    """Print the learning curves of judges that learn from verdicts' embeddings."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--base-url", help="endpoint of embeddings, such as http://host:8000/v1")
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help="name at the endpoint")
    parser.add_argument("--api-key-env", help="environment variable that holds the key")
    parser.add_argument("--data", default=os.environ.get("JUDGELINE_DATA"), help="folder")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200, 500])
    parser.add_argument("--sets", type=int, default=10, help="training sets of each size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="one size, two training sets")
    options = parser.parse_args()
    if not options.base_url or not options.data:
        print(f"skipped: needs --base-url, and --data or JUDGELINE_DATA with {FILE}")
        return
    if options.quick:
        options.sizes, options.sets = options.sizes[:1], 2
    judged, frame = load(Path(options.data), options)
    wins = judged.target > 0.5
    print(
        f"{len(frame)} rationales on {frame['question_id'].nunique()} questions; embeddings of "
        f"{options.model}, {judged.embeddings.shape[1]} features; {options.sets} training sets of "
        f"each size (seed {options.seed}), tested on all other questions\n"
        f"positive: {frame['verdict_model_wins'].mean():.1%} of verdicts, {wins.mean():.1%} of "
        f"targets; saying 'never' is right for {1 - wins.mean():.1%}\n"
        "mean over training sets (standard deviation); BTL2 needs two scored answers: not here\n"
    )
    curve = learning_curve(judged, list(JUDGES), options.sizes, options.sets, options.seed)
    print(table(curve))


if __name__ == "__main__":
    main()
