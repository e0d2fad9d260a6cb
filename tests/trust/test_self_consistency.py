import itertools

import numpy as np
import pandas as pd
import pytest
from relations_twin import count_subsets

from judgeline.io import score_battles
from judgeline.steps.trust import consistency_table, rubric_outcomes
from judgeline.tables.trust import ALL, CONFLICT, CONSISTENCY, OVERALL, VIOLATION
from judgeline.verdict.outcomes import CRITERIA


def battles(*rows: tuple[str, str, str], language: str | list = "en") -> pd.DataFrame:
    """Battles b0, b1, ... of question, model A and model B."""
    return pd.DataFrame(rows, columns=["question_id", "model_a", "model_b"]).assign(
        battle_id=[f"b{i}" for i in range(len(rows))], language=language, category=None
    )


def series(*values: float) -> pd.Series:
    return pd.Series(values, index=[f"b{i}" for i in range(len(values))]).dropna()


def table(some: pd.DataFrame, outcomes: dict, scores: dict | None = None, **more) -> pd.DataFrame:
    keyed = {(source, OVERALL): one for source, one in outcomes.items()}
    return consistency_table(some, keyed, scores or {}, **{"tolerance": 0.0, **more})


def violations(found: pd.DataFrame, size: int, category: str = ALL) -> pd.Series:
    rows = found[found["measure"].eq(VIOLATION) & found["size"].eq(size)]
    (row,) = rows[rows["category"].eq(category)].to_dict("records")
    return pd.Series(row)


TRIANGLE = battles(("q", "ant", "bee"), ("q", "bee", "cat"), ("q", "ant", "cat"))


def test_sets_with_a_missing_pair_do_not_count() -> None:
    found = table(TRIANGLE, {"choice": series(1.0, np.nan, 1.0)})
    for size in (3, 4, 5):
        row = violations(found, size)
        assert row["n"] == 0
        assert np.isnan(row["ratio"])


def test_sides_and_repeated_battles_are_brought_together() -> None:
    some = battles(
        ("q", "bee", "ant"), ("q", "bee", "cat"), ("q", "ant", "cat"), ("q", "cat", "ant")
    )
    # ant > bee, bee > cat, and of two battles ant against cat each wins one: a tie
    row = violations(table(some, {"choice": series(0.0, 1.0, 1.0, 1.0)}), 3)
    assert row[["n", "ratio", "circular", "equality"]].tolist() == [1, 1, 0, 1]


def test_every_language_has_its_own_rows() -> None:
    some = pd.concat([TRIANGLE, TRIANGLE.assign(question_id="r", language=None)])
    some = some.assign(battle_id=[f"b{i}" for i in range(6)])
    outcome = series(1.0, 1.0, 0.0, 1.0, 1.0, 1.0)
    found = table(some, {"choice": outcome}, {"score": series(1, 1, 1, 1, 1, 1)})
    shares = [violations(found, 3, c)["ratio"] for c in (ALL, "en", "unknown")]
    assert shares == [0.5, 1.0, 0.0]
    conflicts = found[found["measure"].eq(CONFLICT)].set_index("category")
    assert conflicts["ratio"].to_dict() == {ALL: 1 / 6, "en": 1 / 3, "unknown": 0.0}
    assert conflicts["n"].to_dict() == {ALL: 6, "en": 3, "unknown": 3}
    own = table(some.assign(category="one"), {"choice": outcome})
    assert own["category"].unique().tolist() == [ALL]  # a single category is the whole
    two = some.assign(category=["code;math"] * 3 + ["math"] * 3)
    found = table(two, {"choice": outcome}, {"score": series(1, 1, 1, 1, 1, 1)})
    assert [violations(found, 3, c)["ratio"] for c in (ALL, "code", "math")] == [0.5, 1.0, 0.5]
    conflicts = found[found["measure"].eq(CONFLICT)].set_index("category")
    assert conflicts["n"].to_dict() == {ALL: 6, "code": 3, "math": 6}
    named = table(two.replace("math", ALL), {"choice": outcome})
    assert not named.duplicated(["measure", "size", "category"]).any()


def test_conflicts_by_hand_and_within_the_tolerance() -> None:
    some = battles(*[("q", "ant", "bee"), ("q", "ant", "cat"), ("q", "ant", "dog")])
    outcome, gap = series(1.0, 0.5, 0.0), series(0.5, 0.5, 0.5)
    found = table(some, {"choice": outcome}, {"score": gap})
    row = found[found["measure"].eq(CONFLICT)].iloc[0]
    assert row[["source", "scores", "n"]].tolist() == ["choice", "score", 3]
    assert row["ratio"] == pytest.approx(2 / 3)  # the tie, and the loss
    apart = table(some, {"choice": outcome}, {"score": series(2.0, 0.1, -2.0)}, tolerance=0.2)
    assert apart.loc[0, "ratio"] == 0.0


def test_only_battles_both_scored_and_compared_can_conflict() -> None:
    found = table(TRIANGLE, {"choice": series(1.0, 1.0)}, {"score": series(np.nan, -1.0, 1.0)})
    row = found[found["measure"].eq(CONFLICT)].iloc[0]
    assert (row["n"], row["ratio"]) == (1, 1.0)
    none = table(TRIANGLE, {"choice": series(1.0)}, {"score": series(np.nan, -1.0)})
    assert none.loc[0, "n"] == 0
    assert np.isnan(none.loc[0, "ratio"])


def test_nothing_compared_is_an_empty_table() -> None:
    found = table(TRIANGLE, {})
    pd.testing.assert_frame_equal(found, CONSISTENCY.empty())


def test_ratios_are_those_of_looking_at_every_subset() -> None:
    rng, n = np.random.default_rng(8), 6
    pairs = list(itertools.combinations(range(n), 2))
    drawn = rng.choice([0.0, 0.5, 1.0, np.nan], size=(4, len(pairs)), p=[0.4, 0.2, 0.3, 0.1])
    some = battles(*[(f"q{k}", str(i), str(j)) for k in range(4) for i, j in pairs])
    found = table(some, {"choice": series(*drawn.ravel())})
    matrices = np.full((4, n, n), 0.5)
    for matrix, shares in zip(matrices, drawn, strict=True):
        for (i, j), share in zip(pairs, shares, strict=True):
            matrix[i, j], matrix[j, i] = share, 1 - share
    for size in (3, 4, 5):
        tallies = [count_subsets(matrix, size) for matrix in matrices]
        complete, *broken = np.sum(tallies, axis=0)
        row = violations(found, size)
        assert row["n"] == complete > 0
        expected = np.array(broken) / complete
        assert row[["ratio", "circular", "equality"]].tolist() == pytest.approx(expected.tolist())


def verdict(battle: str, order: str, gaps: dict[str, float], **more) -> dict:
    marks = {f"{c}_a": 5.0 + gaps.get(c, 0.0) for c in CRITERIA}
    fixed = {"battle_id": battle, "judge": "stub", "order": order, "replicate": 0, "status": "ok"}
    others = {**{f"{c}_b": 5.0 for c in CRITERIA}, "recorded_outcome": None}
    return {**fixed, **marks, **others, **more}


def test_criteria_have_outcomes_of_their_own() -> None:
    told = pd.DataFrame(
        [
            verdict("b0", "AB", {"clarity": 2, "fluency": -1}),
            verdict("b0", "BA", {"clarity": -1, "fluency": -1}),
            verdict("b1", "AB", {"clarity": 1}),
            verdict("b2", "mean", {"factuality": -0.5}),
            verdict("b1", "BA", {"clarity": 1}, status="refusal"),
        ]
    )
    found = rubric_outcomes(TRIANGLE, told)
    assert list(found) == [OVERALL, *CRITERIA]
    assert found["clarity"].to_dict() == {"b0": 0.5, "b2": 0.5}  # opposite signs; no difference
    assert found["fluency"].to_dict() == {"b0": 0.0, "b2": 0.5}
    assert found["factuality"].to_dict() == {"b0": 0.5, "b2": 0.0}


def test_overall_is_the_outcome_that_battles_are_scored_by() -> None:
    rng = np.random.default_rng(3)
    rows = [
        verdict(f"b{i}", order, dict(zip(CRITERIA, rng.integers(-4, 6, 6), strict=True)))
        for i in range(3)
        for order in ("AB", "BA")
    ]
    told = pd.DataFrame(rows).assign(recorded_outcome=np.nan)
    some = TRIANGLE.assign(
        cluster_id="c", human_outcome=np.nan, completion_a="one", completion_b="other"
    )
    scored = score_battles(some, told).set_index("battle_id")["judge_outcome"]
    assert rubric_outcomes(some, told)[OVERALL].to_dict() == scored.to_dict()
