"""Small tables of each stage whose answers can be worked out in the head."""

import numpy as np
import pandas as pd
import pytest

CRITERIA = ("adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency")
MODELS = ("ant", "bee", "cat", "dog")


@pytest.fixture
def raw_battles() -> pd.DataFrame:
    """60 battles of four models: every pair ten times, wins shared, ties in between."""
    pairs = [(a, b) for i, a in enumerate(MODELS) for b in MODELS[i + 1 :]] * 10
    n = len(pairs)
    ids = [f"battle-{i:02d}" for i in range(n)]
    return pd.DataFrame(
        {
            "battle_id": ids,
            "question_id": [f"question-{i % 20:02d}" for i in range(n)],
            "cluster_id": [f"session-{i % 15:02d}" for i in range(n)],
            "model_a": [a for a, _ in pairs],
            "model_b": [b for _, b in pairs],
            "human_outcome": [[1.0, 0.0, 1.0, 0.5][(i // 6) % 4] for i in range(n)],
            "instruction": ["Say something."] * n,
            "completion_a": ["Something."] * n,
            "completion_b": ["Else."] * n,
            "language": ["en", "fr"] * (n // 2),
            "n_turns": pd.Series([1] * n, dtype="Int64"),
            "timestamp": pd.Series(pd.NaT, index=range(n), dtype="datetime64[us, UTC]"),
        }
    )


@pytest.fixture
def sampled_battles(raw_battles: pd.DataFrame) -> pd.DataFrame:
    """The first 24 battles: each pair four times."""
    return raw_battles.head(24).assign(selection_order=np.arange(24))


@pytest.fixture
def quarantined_battles() -> pd.DataFrame:
    """Two rows that could not be read."""
    return pd.DataFrame(
        {
            "row": [3, 9],
            "file": ["battles.csv"] * 2,
            "battle_id": ["battle-77", None],
            "reason": ["unknown-winner", "self-battle"],
            "detail": ["winner is 'A>>B'", "'ant' against itself"],
        }
    )


@pytest.fixture
def verdicts(sampled_battles: pd.DataFrame) -> pd.DataFrame:
    """Both orders of every sampled battle, all answered."""
    rows = pd.concat([sampled_battles.assign(order=order) for order in ("AB", "BA")])
    n = len(rows)
    scores = {f"{c}_{side}": np.full(n, 6.0 + (side == "a")) for side in "ab" for c in CRITERIA}
    return pd.DataFrame(
        {
            "battle_id": rows["battle_id"].to_numpy(),
            "judge": "stub",
            "order": rows["order"].to_numpy(),
            "replicate": np.zeros(n, dtype=np.int64),
            "status": "ok",
            **scores,
            "recorded_outcome": np.nan,
            "answer": "{}",
            "log_probabilities": pd.Series([None] * n, dtype="str"),
            "prompt_tokens": pd.Series([10] * n, dtype="Int64"),
            "completion_tokens": pd.Series([5] * n, dtype="Int64"),
            "identity": [f"{i:064x}" for i in range(n)],
        }
    )


@pytest.fixture
def scored_battles(raw_battles: pd.DataFrame) -> pd.DataFrame:
    """All 60 battles scored, mostly as people voted, with some noise in the scores."""
    n = len(raw_battles)
    lean = (raw_battles["human_outcome"] - 0.5).to_numpy() * 2
    score = np.round(12 * (lean + np.tile([1.5, -1.5, 0.5, -0.5, 0.25, -0.25], n // 6))) / 12
    columns = ["battle_id", "question_id", "cluster_id", "model_a", "model_b", "language"]
    return raw_battles[columns].assign(
        human_outcome=raw_battles["human_outcome"],
        score_difference=score,
        judge_outcome=(np.sign(score) + 1) / 2,
        recorded_outcome=np.nan,
        difference_ab=score,
        difference_ba=score,
        length_a=pd.Series([10] * n, dtype="Int64"),
        length_b=pd.Series([5] * n, dtype="Int64"),
    )
