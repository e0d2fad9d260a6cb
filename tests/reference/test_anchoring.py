import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from assets.reference.anchoring import (
    LEAST_COVERED,
    RATING_COLUMNS,
    against,
    battles_with,
    choose_reference,
    covering,
    meetings,
    no_ratings,
    preferences_of,
    rate_against,
)
from resources.config.corpora import ReferenceOptions

PLAIN = ReferenceOptions()


def battles(*pairs: tuple[str, str]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(len(pairs))],
            "question_id": [f"q{i}" for i in range(len(pairs))],
            "model_a": [a for a, _ in pairs],
            "model_b": [b for _, b in pairs],
        }
    )


def rate(preferences: list[float], source: str = "likelihood", options=PLAIN) -> pd.Series:
    table = pd.DataFrame([preferences], index=["ant"])
    return rate_against(table, "bee", source, options, miscoverage=0.1).iloc[0]


# ---------------------------------------------------------------- who is the reference


def test_the_hub_of_a_star_is_the_reference() -> None:
    star = battles(("ant", "hub"), ("hub", "bee"), ("cat", "hub"), ("cat", "hub"))
    chosen = choose_reference(star, None)
    assert chosen.model == "hub"
    assert "3 of 3" in chosen.why


def test_the_least_met_opponent_decides_then_battles_then_the_name() -> None:
    even = [("ant", "bee"), ("ant", "cat"), ("bee", "cat"), ("ant", "cat")]
    assert choose_reference(battles(*even), None).model == "ant"  # ties with cat by name
    assert choose_reference(battles(*even, ("bee", "cat")), None).model == "cat"


def test_the_configured_reference_wins() -> None:
    star = battles(("ant", "hub"), ("hub", "bee"))
    assert choose_reference(star, "ant") == ("ant", "configured")
    with pytest.raises(ValueError, match=r"unknown reference model 'hbu'; did you mean 'hub'"):
        choose_reference(star, "hbu")


# ---------------------------------------------------------------- from battles to preferences


def test_sides_do_not_matter_and_a_question_counts_once() -> None:
    table = battles(("ant", "hub"), ("hub", "ant"), ("hub", "ant"))
    table["question_id"] = ["q0", "q1", "q1"]
    share = pd.Series({"b0": 0.9, "b1": 0.3, "b2": 0.5})
    found = against(meetings(table, share), "hub")
    assert found.loc["ant"].to_dict() == pytest.approx({"q0": 0.9, "q1": 0.6})
    assert against(meetings(table, share), "ant").loc["hub", "q1"] == pytest.approx(0.4)


def test_a_battle_without_a_share_is_no_tie() -> None:
    found = meetings(battles(("ant", "hub"), ("bee", "hub")), pd.Series({"b0": 1.0, "b1": np.nan}))
    assert found["model"].tolist() == ["ant", "hub"]


# ---------------------------------------------------------------- ratings


def jeffreys(wins: float, losses: float) -> list[float]:
    """Lower, upper and gap of a 90 % interval, in Elo points, by scipy."""
    a, b = wins + 0.5, losses + 0.5
    shares = (*beta(a, b).ppf([0.05, 0.95]), a / (a + b))
    return [400 * math.log10(p / (1 - p)) for p in shares]


@pytest.mark.parametrize("source", ["rubric", "likelihood"])
def test_wins_and_losses_get_the_jeffreys_interval(source: str) -> None:
    row = rate([1, 1, 1, 1, 0, 0], source)
    assert row[["lower", "upper", "gap"]].tolist() == pytest.approx(jeffreys(4, 2))
    assert row[["n_prompts", "wins", "ties", "losses"]].tolist() == [6, 4, 0, 2]
    assert (row["mean_preference"], row["flags"]) == (4 / 6, "")


@pytest.mark.parametrize("thirds", [[0.0, 0.5, 1.0], [1.0, 0.5, 0.5], [0.0, 0.25, 1.0]])
def test_with_ties_the_error_is_that_of_drawing_prompts_again(thirds: list[float]) -> None:
    values = np.array(thirds * 66)
    rng = np.random.default_rng(5)
    wins = rng.choice(values, size=(4000, values.size)).sum(axis=1) + 0.5
    gaps = 400 * np.log10(wins / (values.size + 1 - wins))
    row = rate(list(values), "rubric")
    assert row["std_error"] == pytest.approx(gaps.std(ddof=1), rel=0.05)  # 4.5 standard errors
    lower, upper, gap = jeffreys(values.sum(), (1 - values).sum())
    assert row["gap"] == pytest.approx(gap)
    assert row["upper"] - row["lower"] < 0.92 * (upper - lower)


@pytest.mark.parametrize("values", [[0.5] * 9, [0.7]])
def test_a_spread_that_is_not_known_leaves_the_interval_of_counts(values: list[float]) -> None:
    row = rate(values, "rubric")
    wins = sum(values)
    expected = jeffreys(wins, len(values) - wins)
    assert row[["lower", "upper", "gap"]].tolist() == pytest.approx(expected)


def test_probabilities_get_the_error_of_their_own_spread() -> None:
    soft, hard = rate([0.45, 0.55] * 50), rate([0.0, 1.0] * 50)
    assert soft["gap"] == hard["gap"] == 0
    assert soft["std_error"] < hard["std_error"] / 5


@pytest.mark.parametrize(
    ("preferences", "flags"),
    [
        ([0.6], "one-prompt;all-wins"),
        ([0.5, 0.5], "all-ties"),
        ([1.0] * 10, "beyond-reach;all-wins"),
        ([0.01] * 10, "beyond-reach;all-losses"),
        ([0.9, 0.1], ""),
    ],
)
def test_what_limits_a_gap_is_flagged_and_the_gap_stays_finite(preferences, flags) -> None:
    row = rate(preferences)
    assert row["flags"] == flags
    assert np.isfinite(row[["gap", "lower", "upper", "std_error"]].astype(float)).all()
    assert row["lower"] < row["gap"] < row["upper"]


def test_factors_narrow_only_where_they_are_asked_for() -> None:
    values = [1.0] * 30 + [0.0] * 20
    plain = rate(values)
    assert plain["factor"] == 1
    asked = rate(values, options=ReferenceOptions(n_population=101, mean_kappa=0.64))
    assert asked["factor"] == pytest.approx(math.sqrt((101 - 50) / 100) * 0.8)
    assert asked["std_error"] == pytest.approx(plain["std_error"] * asked["factor"])
    assert asked["gap"] == plain["gap"]


def test_a_population_smaller_than_the_sample_is_refused() -> None:
    with pytest.raises(ValueError, match=r"50 prompts.*population of 40.*reference.n_population"):
        rate([1.0, 0.0] * 25, options=ReferenceOptions(n_population=40))


def test_models_are_ranked_and_without_models_the_table_keeps_its_columns() -> None:
    table = pd.DataFrame([[0.1, 0.2], [0.8, 0.9]], index=["low", "high"])
    ranked = rate_against(table, "bee", "likelihood", PLAIN, miscoverage=0.1)
    assert ranked["model"].tolist() == ["high", "low"]
    assert ranked["rank"].tolist() == [1, 2]
    none = rate_against(table[:0], "bee", "likelihood", PLAIN, miscoverage=0.1)
    assert tuple(none) == tuple(ranked) == RATING_COLUMNS
    assert (none.dtypes == no_ratings().dtypes).all()
    assert none.empty


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
