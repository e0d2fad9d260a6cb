from typing import Any

import numpy as np
import pandas as pd
import pytest

from judgeline.io import score_battles
from judgeline.tables.corpus import SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.tables.judging import SCORED_COLUMNS
from judgeline.verdict.outcomes import CRITERIA


def battles(*ids: str, **columns: Any) -> pd.DataFrame:
    table = pd.DataFrame({"battle_id": list(ids)}).assign(
        question_id="q", cluster_id="q", model_a="x", model_b="y", language=None,
        human_outcome=np.nan, completion_a="four", completion_b="eleven, yes",
    )  # fmt: skip
    return table.assign(**columns)


def verdict(battle: str, order: str, a: float, b: float, **columns: Any) -> dict[str, Any]:
    scores = {f"{name}_{side}": v for side, v in (("a", a), ("b", b)) for name in CRITERIA}
    return {
        **dict.fromkeys(VERDICT_DTYPES),
        "battle_id": battle,
        "judge": "j",
        "order": order,
        "replicate": 0,
        "status": "ok",
        **scores,
        **columns,
    }


def failed(battle: str, order: str, status: str = "parse_error") -> dict[str, Any]:
    return verdict(battle, order, 1, 1, status=status) | dict.fromkeys(SCORE_COLUMNS)


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(VERDICT_DTYPES)).astype(VERDICT_DTYPES)


@pytest.mark.parametrize(
    ("ab", "ba", "score", "outcome"),
    [
        ((8, 6), (7, 6), 1.5, 1.0),
        ((5, 6), (3, 6), -2.0, 0.0),
        ((9, 5), (5, 6), 1.5, 0.5),  # the orders disagree
        ((9, 5), (6, 6), 2.0, 1.0),  # one order without a preference
        ((7, 7), (4, 4), 0.0, 0.5),
        ((10, 1), (10, 1), 9.0, 1.0),
    ],
)
def test_two_orders_make_a_score_and_an_outcome(ab, ba, score, outcome):
    verdicts = table(verdict("b", "AB", *ab), verdict("b", "BA", *ba))
    scored = score_battles(battles("b"), verdicts)
    assert list(scored.columns) == list(SCORED_COLUMNS)
    row = scored.iloc[0]
    assert (row["score_difference"], row["judge_outcome"]) == (score, outcome)
    assert (row["difference_ab"], row["difference_ba"]) == (ab[0] - ab[1], ba[0] - ba[1])
    assert (row["length_a"], row["length_b"]) == (4, 11)
    assert np.isnan(row["recorded_outcome"])


def test_criteria_count_alike() -> None:
    lead = verdict("b", "AB", 5, 5, clarity_a=8.0)
    scored = score_battles(battles("b"), table(lead, verdict("b", "BA", 5, 5)))
    assert scored["score_difference"].tolist() == [0.25]  # 3 points on one of six, in one order


def test_replicates_are_averaged_within_an_order() -> None:
    verdicts = table(
        verdict("b", "AB", 9, 3),
        verdict("b", "AB", 5, 5, replicate=1),
        failed("b", "AB") | {"replicate": 2},
        verdict("b", "BA", 6, 5),
    )
    scored = score_battles(battles("b"), verdicts)
    assert scored["difference_ab"].tolist() == [3.0]
    assert scored["score_difference"].tolist() == [2.0]


def test_a_battle_needs_both_orders() -> None:
    verdicts = table(
        verdict("one", "AB", 8, 6),
        verdict("half", "AB", 8, 6),
        failed("half", "BA"),
        failed("none", "AB", "refusal"),
        failed("none", "BA", "transport"),
        verdict("both", "BA", 8, 6),
        verdict("both", "AB", 8, 6),
        verdict("elsewhere", "AB", 8, 6),
    )
    scored = score_battles(battles("none", "both", "one", "half", "unseen"), verdicts)
    assert scored["battle_id"].tolist() == ["both"]


@pytest.mark.parametrize(("a", "outcome"), [(7.5, 1.0), (5.0, 0.5), (1.5, 0.0)])
def test_a_published_mean_stands_for_both_orders(a: float, outcome: float) -> None:
    verdicts = table(verdict("b", "mean", a, 5, recorded_outcome=0.75))
    scored = score_battles(battles("b", completion_a=None, completion_b=None), verdicts)
    row = scored.iloc[0]
    assert (row["score_difference"], row["judge_outcome"]) == (a - 5, outcome)
    assert row["recorded_outcome"] == 0.75
    assert scored[["difference_ab", "difference_ba", "length_a"]].isna().all(axis=None)
    assert str(scored["length_a"].dtype) == "Int64"


def test_swapping_the_models_mirrors_everything() -> None:
    rng = np.random.default_rng(3)
    marks = rng.integers(1, 11, size=(50, 4))
    ids = [f"b{i}" for i in range(50)]
    there, back = [], []
    for battle, (a, b, c, d) in zip(ids, marks.tolist(), strict=True):
        there += [verdict(battle, "AB", a, b), verdict(battle, "BA", c, d)]
        back += [verdict(battle, "BA", b, a), verdict(battle, "AB", d, c)]
    one = score_battles(battles(*ids), table(*there))
    two = score_battles(battles(*ids), table(*back))
    assert np.array_equal(one["score_difference"], -two["score_difference"])
    assert np.array_equal(one["judge_outcome"], 1 - two["judge_outcome"])


def test_no_verdicts_make_an_empty_table() -> None:
    scored = score_battles(battles("b"), table())
    assert len(scored) == 0
    assert list(scored.columns) == list(SCORED_COLUMNS)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([verdict("b", "AB", 8, 6), verdict("b", "BA", 8, 6, judge="k")], "2 judges"),
        ([verdict("b", "first", 8, 6)], "'first'"),
        ([verdict("b", "AB", 8, 6), verdict("b", "mean", 8, 6)], "both an averaged"),
        ([verdict("b", "AB", 8, 11)], "11"),
        ([verdict("b", "AB", 8, np.nan)], "is nan in row"),
    ],
)
def test_impossible_verdicts_are_named(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_battles(battles("b"), table(*rows))


def bare(battle: str, order: str, outcome: float, **columns: Any) -> dict[str, Any]:
    """A plain verdict: an outcome without rubric scores."""
    return verdict(battle, order, 1, 1, **columns) | {
        **dict.fromkeys(SCORE_COLUMNS),
        "recorded_outcome": outcome,
    }


@pytest.mark.parametrize(
    ("ab", "ba", "score", "outcome"),
    [
        (1, 1, 1.0, 1.0),
        (0, 0, -1.0, 0.0),
        (0.5, 0.5, 0.0, 0.5),
        (1, 0.5, 0.5, 1.0),  # one order without a preference
        (1, 0, 0.0, 0.5),  # the orders disagree
    ],
)
def test_plain_verdicts_count_as_score_differences(ab, ba, score, outcome):
    scored = score_battles(battles("b"), table(bare("b", "AB", ab), bare("b", "BA", ba)))
    assert scored[["score_difference", "judge_outcome"]].to_numpy().tolist() == [[score, outcome]]
    assert scored["recorded_outcome"].tolist() == [(ab + ba) / 2]
    assert scored[["difference_ab", "difference_ba"]].to_numpy().tolist() == [
        [2 * ab - 1, 2 * ba - 1]
    ]


def test_plain_verdicts_need_both_orders_and_average_replicates() -> None:
    said = table(
        bare("p", "AB", 1),
        bare("p", "AB", 0.5, replicate=1),
        bare("p", "BA", 1),
        bare("half", "AB", 1),
        failed("half", "BA"),
        bare("once", "mean", 0.75),
    )
    scored = score_battles(battles("p", "half", "once"), said)
    assert scored["battle_id"].tolist() == ["p", "once"]
    assert scored["score_difference"].tolist() == [0.75, 0.5]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [bare("p", "AB", 1), bare("p", "BA", 1), verdict("q", "AB", 7, 6)],
            "2 of 3 of judge 'j'.*name two judges",
        ),
        ([bare("p", "mean", 1), bare("q", "mean", 0.7)], "2 of 2 of judge 'j'.*0.7.*rubric"),
        ([bare("p", "AB", 0.3), bare("p", "BA", 1)], "One is 0.3"),
    ],
)
def test_outcomes_that_are_no_plain_verdicts_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        score_battles(battles("p", "q"), table(*rows))


def test_a_failed_verdict_with_a_published_outcome_is_a_failed_verdict() -> None:
    mute = failed("p", "mean") | {"recorded_outcome": 1.0}
    assert score_battles(battles("p"), table(mute)).empty
