from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from assets.reference.anchoring import against, meetings, preferences_by_run, rate_against
from assets.reference.reach import diagnose, gaps_against
from resources.config.corpora import ReferenceOptions
from resources.corpora.reading import read_files


def diagnosed(met: pd.DataFrame, reference: str, runs: np.ndarray | None = None) -> pd.DataFrame:
    table = against(met, reference)
    options = ReferenceOptions(n_population=int(table.notna().sum(axis=1).max()))
    rated = rate_against(table, reference, "likelihood", options, miscoverage=0.1)
    runs = np.full((*table.shape, 1), np.nan) if runs is None else runs
    return diagnose(table, rated, met, runs, seed=0, stream=("corpus", "judge"))


def value(found: pd.DataFrame, diagnostic: str, level: str | None = None) -> float:
    rows = found[found["diagnostic"].eq(diagnostic)]
    return (rows if level is None else rows[rows["level"].eq(level)])["value"].item()


@pytest.fixture
def met() -> pd.DataFrame:
    """Four models, each pair on 40 questions; a better one wins more often."""
    names, rng = ["ant", "bee", "cat", "dog"], np.random.default_rng(1)
    rows = [
        (f"q{q}", a, b, rng.beta(4 + j - i, 4 + i - j))
        for q in range(40)
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i < j
    ]
    table = pd.DataFrame(rows, columns=["question_id", "model_a", "model_b", "share"])
    table = table.assign(battle_id=[f"b{i}" for i in range(len(table))])
    return meetings(table, table.set_index("battle_id")["share"])


def test_a_reference_among_its_models_is_within_reach(met: pd.DataFrame) -> None:
    found = diagnosed(met, "bee")
    assert value(found, "models_within_reach") == 1
    assert value(found, "spearman_with_mean_preference") == pytest.approx(1)
    assert value(found, "std_error_difference") < 0.12  # before the factor, which is 0 here
    assert found.set_index("diagnostic").loc["models_within_reach", "passed"]


def test_other_references_on_one_scale_order_alike(met: pd.DataFrame) -> None:
    found = diagnosed(met, "ant")
    assert found["diagnostic"].eq("kendall_under_other_reference").sum() == 1  # no level: below 3
    assert "three" in found["note"].str.cat()
    five = met.assign(model=met["model"] + "2")
    more = pd.concat([met, five[five["opponent"].ne(five["model"].str[:-1])]])
    many = diagnosed(more, "bee")
    other = many[many["diagnostic"].eq("kendall_under_other_reference")]
    assert set(other["level"]) == {"ant", "cat", "dog"}
    assert other["n"].ge(3).all()
    assert other["value"].between(-1, 1).all()


def test_abstention_needs_runs_and_says_so(met: pd.DataFrame) -> None:
    found = diagnosed(met, "ant")
    row = found[found["diagnostic"].eq("abstention_coverage")].iloc[0]
    assert np.isnan(row["value"])
    assert "replicates" in row["note"]


def test_abstention_drops_prompts_on_which_runs_differ(met: pd.DataFrame) -> None:
    table = against(met, "ant").to_numpy()
    runs = np.stack([table, table], axis=2)
    runs[:, :10, 1] = 1 - runs[:, :10, 1].round()
    runs[:, :10, 0] = runs[:, :10, 0].round()  # opposite wins: a spread of 0.71
    found = diagnosed(met, "ant", runs)
    assert value(found, "abstention_coverage", "0.05") == pytest.approx(30 / 40)
    assert value(found, "abstention_shift", "0.3") >= 0
    half_told = runs.copy()
    half_told[:, 0, 1] = np.nan
    assert value(diagnosed(met, "ant", half_told), "abstention_coverage", "0.05") == pytest.approx(
        30 / 39
    )


def test_abstaining_from_everything_leaves_no_leaderboard(met: pd.DataFrame) -> None:
    table = against(met, "ant").to_numpy()
    runs = np.stack([np.zeros_like(table), np.ones_like(table)], axis=2)
    rows = diagnosed(met, "ant", runs).query("diagnostic == 'abstention_coverage'")
    assert rows["value"].isna().all()
    assert rows["note"].str.contains("keeps none").all()


def test_equal_preferences_have_no_ratio_and_no_crash() -> None:
    table = pd.DataFrame(
        {
            "model": ["ant", "ant", "bee", "bee"],
            "opponent": ["hub"] * 4,
            "question_id": ["p", "q"] * 2,
            "preference": [0.5] * 4,
        }
    )
    found = diagnosed(table, "hub")
    assert found.loc[found["diagnostic"].eq("std_error_ratio"), "value"].isna().all()
    assert np.isnan(value(found, "spearman_with_mean_preference"))


def test_gaps_of_nobody_are_none(met: pd.DataFrame) -> None:
    assert gaps_against(met, "emu").empty


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
