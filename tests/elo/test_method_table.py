"""Scoring methods are gathered on the battles that all of them scored, and what they cost."""

import numpy as np
import pandas as pd
import pytest

from judgeline.report.methods import MEANINGS
from resources.method_table import KINDS, LEAST_SHARE, count_spending, gather_methods

MODELS = ("a", "b", "c")
N = 20


def scored() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    sides = [rng.choice(MODELS, size=2, replace=False) for _ in range(N)]
    return pd.DataFrame(
        {
            "battle_id": [f"battle-{k}" for k in range(N)],
            "model_a": [pair[0] for pair in sides],
            "model_b": [pair[1] for pair in sides],
            "judge_outcome": rng.choice([0.0, 0.5, 1.0], size=N),
            "score_difference": rng.normal(size=N),
        }
    )


def soft(sources: tuple[str, ...], n_battles: int = N) -> pd.DataFrame:
    rows = [
        {
            "battle_id": f"battle-{k}",
            "source": source,
            "outcome": float(k % 2),
            "soft_outcome": 0.25 + k / 100 if source == "likelihood" else np.nan,
            "score_difference": k - 10.0 if source.startswith("score") else np.nan,
        }
        for source in sources
        for k in range(n_battles)
    ]
    columns = ["battle_id", "source", "outcome", "soft_outcome", "score_difference"]
    return pd.DataFrame(rows, columns=columns).astype(
        {name: float for name in columns if name not in ("battle_id", "source")}
    )


def learnt(n_battles: int = N, method: str = "btl") -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "held_out_model": model,
                "battle_id": f"battle-{k}",
                "method": method,
                "outcome": (k + 30 * fold) / 100,
            }
            for fold, model in enumerate(MODELS)
            for k in reversed(range(n_battles))
        ],
        columns=["held_out_model", "battle_id", "method", "outcome"],
    )


def test_a_judge_with_a_rubric_alone_has_hard_and_soft() -> None:
    gathered = gather_methods(scored(), soft(()), learnt(0))
    assert not gathered.methods  # hard and soft are the battles' own
    assert len(gathered.battles) == N
    assert set(gathered.notes) == set(KINDS) - {"hard", "soft"}
    assert all(gathered.notes.values())


def test_every_method_reads_its_own_column() -> None:
    everything = soft(("choice", "perplexity", "likelihood", "score", "score-plain"))
    both = pd.concat([learnt(), learnt(method="btl2")])
    gathered = gather_methods(scored(), everything, both)
    assert set(gathered.methods) == set(KINDS) - {"hard", "soft"}
    assert not gathered.notes
    k = np.arange(N)
    of = gathered.methods
    np.testing.assert_array_equal(of["choice"].outcome, k % 2)
    np.testing.assert_allclose(of["likelihood"].outcome, 0.25 + k / 100)
    np.testing.assert_allclose(of["likelihood-calibrated"].score_difference, k / 100 - 0.25)
    np.testing.assert_allclose(of["score"].score_difference, k - 10)


def test_learnt_outcomes_have_a_row_per_model_in_its_order() -> None:
    outcome = gather_methods(scored(), soft(()), learnt()).methods["btl"].outcome
    assert outcome.shape == (len(MODELS), N)
    np.testing.assert_allclose(outcome[2], (np.arange(N) + 60) / 100)


def test_methods_keep_the_battles_that_all_of_them_scored() -> None:
    gathered = gather_methods(scored(), soft(("choice",), 18), learnt(17))
    assert len(gathered.battles) == 17
    assert gathered.available == {
        **dict.fromkeys(KINDS, 0), "hard": N, "soft": N, "choice": 18, "btl": 17,
    }  # fmt: skip
    assert all(
        np.size(method.outcome if method.outcome is not None else method.score_difference)
        in (17, 17 * len(MODELS))
        for method in gathered.methods.values()
    )


def test_a_method_with_gaps_is_left_out_rather_than_costing_the_others() -> None:
    few = int(LEAST_SHARE * N) - 1
    gathered = gather_methods(scored(), soft(("choice",), few), learnt(0))
    assert "choice" not in gathered.methods
    assert len(gathered.battles) == N
    assert gathered.available["choice"] == few
    assert f"{few} of {N} battles" in gathered.notes["choice"]


def test_gaps_in_different_places_do_not_add_up() -> None:
    everything = soft(("choice", "likelihood", "score"))
    gone = {"choice": range(3), "likelihood": range(3, 6), "score": range(6, 9)}
    kept = [
        int(battle.removeprefix("battle-")) not in gone[source]
        for battle, source in zip(everything["battle_id"], everything["source"], strict=True)
    ]
    gathered = gather_methods(scored(), everything[kept], learnt(0))
    assert len(gathered.battles) >= LEAST_SHARE * N
    assert "choice" in gathered.methods
    assert {"likelihood", "score"} <= set(gathered.notes)


def test_a_missing_value_is_no_battle_of_the_method() -> None:
    table = soft(("likelihood",))
    table.loc[0, "soft_outcome"] = np.nan
    gathered = gather_methods(scored(), table, learnt(0))
    assert gathered.available["likelihood"] == N - 1
    assert "battle-0" not in set(gathered.battles["battle_id"])


def test_a_battle_twice_is_refused() -> None:
    twice = pd.concat([soft(("choice",)), soft(("choice",), 1)])
    with pytest.raises(ValueError, match=r"battle 'battle-0' twice for 'choice'"):
        gather_methods(scored(), twice, learnt(0))


def test_a_model_without_a_fold_is_refused() -> None:
    short = learnt()
    with pytest.raises(ValueError, match=r"no fold for \['c'\]"):
        gather_methods(scored(), soft(()), short[short["held_out_model"].ne("c")])


def test_calls_with_one_identity_are_paid_for_once() -> None:
    asked = pd.DataFrame(
        {
            "identity": ["x", "x", "y", None],
            "prompt_tokens": pd.array([10, 10, 7, 1], dtype="Int64"),
            "completion_tokens": pd.array([2, 2, 4, 1], dtype="Int64"),
        }
    )
    spent = count_spending(
        {"verdicts": asked, "choice_verdicts": asked[:0], "score_verdicts": asked[2:]}
    )
    assert spent["soft"] == spent["hard"] == spent["btl"] == (3, 18, 7)
    assert spent["likelihood"] == (0, 0, 0)
    assert spent["score"] == spent["btl2"] == (2, 8, 5)


def test_tokens_that_a_call_does_not_tell_are_not_zero() -> None:
    silent = pd.DataFrame(
        {
            "identity": ["x", "y"],
            "prompt_tokens": pd.array([10, None], dtype="Int64"),
            "completion_tokens": pd.array([None, None], dtype="Int64"),
        }
    )
    tables = {"verdicts": silent, "choice_verdicts": silent[:1], "score_verdicts": silent[:0]}
    calls, asked, said = count_spending(tables)["soft"]
    assert calls == 2
    assert np.isnan(asked)
    assert np.isnan(said)
    assert count_spending(tables)["likelihood"][:2] == (1, 10)


def test_every_method_is_explained() -> None:
    assert list(MEANINGS) == list(KINDS)
