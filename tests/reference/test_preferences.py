import numpy as np
import pandas as pd
import pytest

from assets.reference.anchoring import LEAST_COVERED, battles_with, covering, preferences_of


def soft(ids: list[str], share: float | None = 0.7) -> pd.DataFrame:
    return pd.DataFrame({"battle_id": ids, "source": "likelihood", "soft_outcome": share})


def scored(ids: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"battle_id": ids, "judge_outcome": 0.0})


IDS = [f"b{i}" for i in range(100)]
WITH_REFERENCE = pd.Series(IDS)


def test_battles_of_a_model_are_those_of_either_side() -> None:
    table = pd.DataFrame(
        {
            "battle_id": ["x", "y", "z"],
            "model_a": ["ant", "hub", "ant"],
            "model_b": ["hub", "ant", "e"],
        }
    )
    assert battles_with(table, "hub").tolist() == ["x", "y"]


def test_one_probability_does_not_outweigh_a_hundred_outcomes() -> None:
    found = preferences_of(soft(IDS[:1]), scored(IDS), WITH_REFERENCE)
    assert found.source == "rubric"
    assert found.share.size == 100
    assert "likelihood 1, rubric 100" in found.why
    assert "at least 80%" in found.why


@pytest.mark.parametrize(("n", "source"), [(79, "rubric"), (80, "likelihood"), (100, "likelihood")])
def test_probabilities_come_first_where_they_cover_most(n: int, source: str) -> None:
    assert LEAST_COVERED == 0.8
    assert preferences_of(soft(IDS[:n]), scored(IDS), WITH_REFERENCE).source == source


def test_only_battles_with_the_reference_count() -> None:
    elsewhere = [f"c{i}" for i in range(500)]
    found = preferences_of(soft(elsewhere + IDS[:1]), scored(IDS), WITH_REFERENCE)
    assert found.source == "rubric"
    found = preferences_of(soft(IDS[:1]), scored(elsewhere), WITH_REFERENCE)
    assert found.source == "likelihood"
    assert preferences_of(soft(elsewhere), scored(elsewhere), WITH_REFERENCE) is None


def test_unknown_preferences_cover_nothing() -> None:
    assert preferences_of(soft(IDS, None), scored(IDS[:3]), WITH_REFERENCE).source == "rubric"
    unknown = scored(IDS).assign(judge_outcome=np.nan)
    assert preferences_of(soft(IDS[:2]), unknown, WITH_REFERENCE).source == "likelihood"
    assert preferences_of(soft(IDS, None), unknown, WITH_REFERENCE) is None


def test_other_sources_are_no_probabilities_and_either_may_be_missing() -> None:
    table = soft(IDS).assign(source="choice")
    assert preferences_of(table, scored(IDS), WITH_REFERENCE).source == "rubric"
    assert preferences_of(soft(IDS), None, WITH_REFERENCE).source == "likelihood"
    assert preferences_of(table, None, WITH_REFERENCE) is None


def test_the_preferred_source_needs_not_be_the_first() -> None:
    assert covering({"a": 100, "b": 80}, prefer="b") == "b"
    assert covering({"a": 100, "b": 79}, prefer="b") == "a"
    assert covering({"a": 3}, prefer="b") == "a"
    assert covering({}, prefer="b") is covering({"a": 0, "b": 0}, prefer="b") is None
