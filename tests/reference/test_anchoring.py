"""Tables of one reference: its choice, preferences over it, ratings, and diagnostics."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import judgeline
from judgeline.steps.anchoring import (
    against,
    choose_reference,
    gaps_against,
    meetings,
    rate_against,
)
from judgeline.steps.reference import (
    LEAST_COVERED,
    covering,
    diagnose,
    preferences_by_run,
    preferences_of,
)
from judgeline.tables.reference import REFERENCE_RATINGS
from resources.config.corpora import ReferenceOptions
from resources.corpora.reading import read_files

PLAIN = ReferenceOptions()


def battles(*pairs: tuple[str, str]) -> pd.DataFrame:
    table = pd.DataFrame(pairs, columns=["model_a", "model_b"])
    numbers = [str(i) for i in range(len(pairs))]
    return table.assign(
        battle_id=["b" + n for n in numbers], question_id=["q" + n for n in numbers]
    )


def rate(preferences: list[float], source: str = "likelihood", options=PLAIN) -> pd.Series:
    table = pd.DataFrame([preferences], index=["ant"])
    return rate_against(table, "bee", source, options, miscoverage=0.1).iloc[0]


EVEN = [("ant", "bee"), ("ant", "cat"), ("bee", "cat"), ("ant", "cat")]


@pytest.mark.parametrize(
    ("pairs", "named", "model", "why"),
    [
        ([("ant", "hub"), ("hub", "bee"), ("cat", "hub"), ("cat", "hub")], None, "hub", "3 of 3"),
        (EVEN, None, "ant", "2 of 2"),  # ties with cat, by name
        ([*EVEN, ("bee", "cat")], None, "cat", "2 of 2"),  # its least-met one is met twice
        ([("ant", "hub"), ("hub", "bee")], "ant", "ant", "configured"),
    ],
)
def test_the_reference_is_named_or_met_its_least_met_opponent_most(pairs, named, model, why):
    chosen = choose_reference(battles(*pairs), named)
    assert chosen.model == model
    assert why in chosen.why


def test_an_unknown_reference_is_refused() -> None:
    with pytest.raises(ValueError, match=r"reference model 'hbu'; did you mean 'hub'"):
        choose_reference(battles(("ant", "hub")), "hbu")


def test_sides_do_not_matter_a_question_counts_once_and_no_share_is_no_tie() -> None:
    table = battles(("ant", "hub"), ("hub", "ant"), ("hub", "ant"), ("bee", "hub"))
    table["question_id"] = ["q0", "q1", "q1", "q0"]
    met = meetings(table, pd.Series({"b0": 0.9, "b1": 0.3, "b2": 0.5, "b3": np.nan}))
    found = against(met, "hub")
    assert found.index.tolist() == ["ant"]
    assert found.loc["ant"].to_dict() == pytest.approx({"q0": 0.9, "q1": 0.6})
    assert against(met, "ant").loc["hub", "q1"] == pytest.approx(0.4)


# ------------------------------------------------------------------ ratings


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
    expected = jeffreys(sum(values), len(values) - sum(values))
    assert rate(values, "rubric")[["lower", "upper", "gap"]].tolist() == pytest.approx(expected)


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
    asked = rate(values, options=ReferenceOptions(n_population=101, mean_kappa=0.64))
    assert (plain["factor"], asked["gap"]) == (1, plain["gap"])
    assert asked["factor"] == pytest.approx(math.sqrt((101 - 50) / 100) * 0.8)
    assert asked["std_error"] == pytest.approx(plain["std_error"] * asked["factor"])
    with pytest.raises(ValueError, match=r"50 prompts.*population of 40.*reference.n_population"):
        rate(values, options=ReferenceOptions(n_population=40))


def test_models_are_ranked_and_without_models_the_table_keeps_its_columns() -> None:
    table = pd.DataFrame([[0.1, 0.2], [0.8, 0.9]], index=["low", "high"])
    ranked = rate_against(table, "bee", "likelihood", PLAIN, miscoverage=0.1)
    assert ranked[["rank", "model"]].to_numpy().tolist() == [[1, "high"], [2, "low"]]
    none = rate_against(table[:0], "bee", "likelihood", PLAIN, miscoverage=0.1)
    pd.testing.assert_frame_equal(none, REFERENCE_RATINGS.empty())
    assert ranked.dtypes.to_dict() == none.dtypes.to_dict()


# ------------------------------------------------------------------ sources of preferences

IDS = [f"b{i}" for i in range(100)]
ELSEWHERE = [f"c{i}" for i in range(500)]
OF_HUB = battles(*[("ant", "hub"), ("hub", "ant")] * 50)
MET = pd.concat([OF_HUB, pd.DataFrame({"battle_id": ELSEWHERE}).assign(model_a="a", model_b="e")])


def soft(ids: list[str], share: float | None = 0.7, source: str = "likelihood") -> pd.DataFrame:
    return pd.DataFrame({"battle_id": ids, "source": source, "soft_outcome": share})


def scored(ids: list[str], outcome: float = 0.0) -> pd.DataFrame:
    return pd.DataFrame({"battle_id": ids, "judge_outcome": outcome})


@pytest.mark.parametrize(
    ("by_probability", "by_rubric", "source"),
    [
        (soft(IDS[:1]), scored(IDS), "rubric"),
        (soft(IDS[:79]), scored(IDS), "rubric"),
        (soft(IDS[:80]), scored(IDS), "likelihood"),
        (soft(ELSEWHERE + IDS[:1]), scored(IDS), "rubric"),  # battles of others do not count
        (soft(IDS[:1]), scored(ELSEWHERE), "likelihood"),
        (soft(ELSEWHERE), scored(ELSEWHERE), None),
        (soft(IDS, None), scored(IDS[:3]), "rubric"),  # unknown shares cover nothing
        (soft(IDS[:2]), scored(IDS, np.nan), "likelihood"),
        (soft(IDS, None), scored(IDS, np.nan), None),
        (soft(IDS, source="choice"), scored(IDS), "rubric"),
        (soft(IDS), None, "likelihood"),
        (soft(IDS, source="choice"), None, None),
    ],
)
def test_probabilities_come_first_where_they_cover_most(by_probability, by_rubric, source) -> None:
    assert LEAST_COVERED == 0.8
    found = preferences_of(MET, "hub", by_probability, by_rubric)
    assert (None if found is None else found.source) == source


def test_the_source_says_what_each_covers() -> None:
    found = preferences_of(MET, "hub", soft(IDS[:1]), scored(IDS))
    assert found.share.size == 100
    assert "likelihood 1, rubric 100" in found.why
    assert "at least 80%" in found.why


def test_the_preferred_source_needs_not_be_the_first() -> None:
    assert covering({"a": 100, "b": 80}, prefer="b") == "b"
    assert covering({"a": 100, "b": 79}, prefer="b") == "a"
    assert covering({"a": 3}, prefer="b") == "a"
    assert covering({}, prefer="b") is covering({"a": 0, "b": 0}, prefer="b") is None


def test_runs_are_means_over_complete_orders() -> None:
    rows = [
        ("b0", "AB", 0, "ok", 0.8, 0.2, 0.0),
        ("b0", "BA", 0, "ok", 0.4, 0.2, 0.4),
        ("b0", "AB", 1, "ok", 1.0, 0.0, 0.0),
        ("b0", "BA", 1, "parse_error", None, None, None),
        ("b1", "mean", 0, "ok", 0.25, 0.0, 0.75),
        ("b2", "mean", 0, "ok", 0.25, None, 0.75),  # a tie of unknown odds is not one of none
    ]
    columns = ["battle_id", "order", "replicate", "status", "p_a", "p_tie", "p_b"]
    chosen = pd.DataFrame(rows, columns=columns)
    found = preferences_by_run(pd.DataFrame(), "likelihood", pd.DataFrame(), chosen)
    assert found[0].to_dict() == pytest.approx({"b0": 0.7, "b1": 0.25})
    assert list(found.columns) == [0]  # run 1 of b0 lacks an order


# ------------------------------------------------------------------ diagnostics


def diagnosed(met: pd.DataFrame, reference: str, runs: np.ndarray | None = None) -> pd.DataFrame:
    table = against(met, reference)
    options = ReferenceOptions(n_population=int(table.notna().sum(axis=1).max()))
    rated = rate_against(table, reference, "likelihood", options, miscoverage=0.1)
    runs = np.full((*table.shape, 1), np.nan) if runs is None else runs
    return diagnose(table, rated, met, runs, seed=0, stream=("corpus", "judge"))


def value(found: pd.DataFrame, diagnostic: str, level: str | None = None) -> float:
    rows = found[found["diagnostic"].eq(diagnostic)]
    return (rows if level is None else rows[rows["level"].eq(level)])["value"].item()


@pytest.fixture(scope="module")
def met() -> pd.DataFrame:
    """Four models, each pair on 40 questions; a better one wins more often."""
    rng = np.random.default_rng(1)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    table = battles(*[("abcd"[i], "abcd"[j]) for _ in range(40) for i, j in pairs])
    table["question_id"] = np.repeat([f"q{q}" for q in range(40)], 6)
    share = [rng.beta(4 + j - i, 4 + i - j) for _ in range(40) for i, j in pairs]
    return meetings(table, pd.Series(share, index=table["battle_id"]))


def test_a_reference_among_its_models_is_within_reach(met: pd.DataFrame) -> None:
    found = diagnosed(met, "b")
    assert value(found, "models_within_reach") == 1
    assert value(found, "spearman_with_mean_preference") == pytest.approx(1)
    assert value(found, "std_error_difference") < 0.12  # before the factor, which is 0 here
    assert found.set_index("diagnostic").loc["models_within_reach", "passed"]


def test_other_references_on_one_scale_order_alike(met: pd.DataFrame) -> None:
    found = diagnosed(met, "a")
    assert found["diagnostic"].eq("kendall_under_other_reference").sum() == 1  # no level: below 3
    assert "three" in found["note"].str.cat()
    five = met.assign(model=met["model"] + "2")
    many = diagnosed(pd.concat([met, five[five["opponent"].ne(five["model"].str[:-1])]]), "b")
    other = many[many["diagnostic"].eq("kendall_under_other_reference")]
    assert set(other["level"]) == {"a", "c", "d"}
    assert other["n"].ge(3).all()
    assert other["value"].between(-1, 1).all()
    assert gaps_against(met, "emu").empty


def test_abstention_drops_prompts_on_which_runs_differ(met: pd.DataFrame) -> None:
    table = against(met, "a").to_numpy()
    without = diagnosed(met, "a").set_index("diagnostic").loc["abstention_coverage"]
    assert np.isnan(without["value"])
    assert "replicates" in without["note"]
    runs = np.stack([table, table], axis=2)
    runs[:, :10, 1] = 1 - runs[:, :10, 1].round()
    runs[:, :10, 0] = runs[:, :10, 0].round()  # opposite wins: a spread of 0.71
    found = diagnosed(met, "a", runs)
    assert value(found, "abstention_coverage", "0.05") == pytest.approx(30 / 40)
    assert value(found, "abstention_shift", "0.3") >= 0
    runs[:, 0, 1] = np.nan  # half of a prompt's runs are none
    assert value(diagnosed(met, "a", runs), "abstention_coverage", "0.05") == pytest.approx(30 / 39)
    torn = np.stack([np.zeros_like(table), np.ones_like(table)], axis=2)
    rows = diagnosed(met, "a", torn).query("diagnostic == 'abstention_coverage'")
    assert rows["value"].isna().all()
    assert rows["note"].str.contains("number of prompts kept").all()


def test_equal_preferences_have_no_ratio_and_no_crash() -> None:
    table = pd.DataFrame({"model": ["ant", "ant", "bee", "bee"], "question_id": ["p", "q"] * 2})
    found = diagnosed(table.assign(opponent="hub", preference=0.5), "hub")
    assert found.loc[found["diagnostic"].eq("std_error_ratio"), "value"].isna().all()
    assert np.isnan(value(found, "spearman_with_mean_preference"))


@pytest.mark.slow
def test_thirty_real_models(data_dir: Path) -> None:
    path = data_dir / "alpacaeval_reference_battles.parquet"
    if not path.is_file():
        pytest.skip(f"no real data: {path} does not exist")
    read = read_files("reference-battles", [path])
    share = read.verdicts.set_index("battle_id")["recorded_outcome"]
    found = diagnosed(meetings(read.battles, share), "gpt4_1106_preview")
    assert value(found, "spearman_with_mean_preference") > 0.999
    assert value(found, "std_error_difference") < 0.12
    assert value(found, "models_within_reach") == pytest.approx(4 / 29)
    assert value(found, "prompts_within_reach") < 0.95
    flagged = found[found["passed"].eq(False)]
    assert set(flagged["diagnostic"]) == {"models_within_reach", "prompts_within_reach"}


def test_a_table_is_rated_against_its_reference_in_one_call() -> None:
    """Wins and a loss over one model, in either seat: the mean of Beta(3.5, 1.5) is 0.7."""
    table = pd.DataFrame(
        [("ant", "hub", 1.0), ("hub", "ant", -1.0), ("ant", "hub", 1.0), ("ant", "hub", -1.0)],
        columns=["model_a", "model_b", "score_difference"],
    )
    rated = judgeline.reference_ratings(table.assign(human_outcome=None), "hub").iloc[0]
    assert (rated["model"], rated["wins"], rated["losses"]) == ("ant", 3, 1)
    assert rated["gap"] == pytest.approx(400 * math.log10(0.7 / 0.3))
    low, high = beta(3.5, 1.5).ppf([0.05, 0.95])
    assert rated["lower"] == pytest.approx(400 * math.log10(low / (1 - low)))
    assert rated["upper"] == pytest.approx(400 * math.log10(high / (1 - high)))
    assert judgeline.reference_ratings(table.assign(human_outcome=None, question_id="q"))[
        "n_prompts"
    ].tolist() == [1]
