"""Tables of the correct-reporting paper: closed forms, exact arithmetic and a slow twin."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from papers import correct_reporting
from papers.correct_reporting import (
    ESTIMATORS,
    FILE,
    GRID,
    bias_by_model,
    bias_under_shift,
    coverage_on_splits,
    coverage_over_grid,
    interval_lengths,
    judge_against_humans,
    listing,
    naive_bias,
    naive_coverage,
    read,
)
from papers.reproduce import reproduce
from papers.tables import Cell

Z = 1.959963984540054
N = 2000


@pytest.fixture(autouse=True)
def few_replications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correct_reporting, "N_REPLICATIONS", N)


def by_name(cells) -> dict[tuple[str, str], float]:
    return {(cell.row, cell.column): cell.value for cell in cells if isinstance(cell, Cell)}


def twin(p, q0, q1, n, m0, m1) -> tuple[np.ndarray, np.ndarray]:
    """The interval as METHODS writes it, without the two misprints of the listing."""
    p, n = (n * p + Z**2 / 2) / (n + Z**2), n + Z**2
    q0, q1 = (m0 * q0 + 1) / (m0 + 2), (m1 * q1 + 1) / (m1 + 2)
    m0, m1 = m0 + 2, m1 + 2
    theta, skill = (p + q0 - 1) / (q0 + q1 - 1), q0 + q1 - 1
    d = 2 * Z**2 * (-(1 - theta) * q0 * (1 - q0) / m0 + theta * q1 * (1 - q1) / m1)
    variance = p * (1 - p) / n + (1 - theta) ** 2 * q0 * (1 - q0) / m0
    half = Z * np.sqrt(variance + theta**2 * q1 * (1 - q1) / m1) / skill
    return np.clip(theta + d - half, 0, 1), np.clip(theta + d + half, 0, 1)


def test_printed_example_has_the_interval_of_the_formulas() -> None:
    values = [cell.value for cell in listing(None)]
    assert values == pytest.approx([0.2061, 0.4441], abs=5e-5)
    assert values == pytest.approx(twin(0.5, 0.7, 0.9, 1000, 100, 100), abs=1e-12)


@pytest.mark.parametrize("theta", [0.5, 0.7, 0.75, 0.8])
def test_coverage_of_the_naive_interval_is_that_of_drawn_judges(theta: float) -> None:
    """At 0.75 the judge's two errors cancel; a tenth beside it the interval holds little."""
    rng, n = np.random.default_rng(5), 200_000
    said = rng.binomial(1000, theta * 0.9 + (1 - theta) * 0.3, n) / 1000
    half = Z * np.sqrt(said * (1 - said) / 1000)
    held, found = (np.abs(said - theta) <= half).mean(), by_name(naive_coverage(None))
    row, error = "q0=0.7, q1=0.9, n=1000, naive", math.sqrt(0.25 / n)
    assert found[row, f"coverage at theta={theta}"] == pytest.approx(100 * held, abs=400 * error)
    assert found[row, f"length at theta={theta}"] == pytest.approx(2 * half.mean(), rel=1e-3)


def test_naive_bias_changes_sign_where_its_line_crosses_zero() -> None:
    found = by_name(naive_bias(None))
    row = "q1=0.9, q0=0.7"
    assert found[row, "bias at theta=0.0"] == pytest.approx(0.3)
    assert found[row, "bias at theta=1.0"] == pytest.approx(-0.1)
    crossing = np.interp(0, [-0.1, 0.3], [1.0, 0.0])
    assert found[row, "theta where the naive bias changes sign"] == pytest.approx(crossing)


def test_lengths_are_those_of_the_formulas() -> None:
    found = by_name(interval_lengths(None))
    for p in (0.3, 0.5, 0.7, 0.9):
        for m in (100, 200, 500, 1000):
            lower, upper = twin(p, 0.7, 0.9, 1e9, m / 2, m / 2)
            assert found[f"p={p}", f"length at m={m}"] == pytest.approx(upper - lower, abs=1e-6)
    assert found["p=0.3", "length at m=200"] == pytest.approx(0.130, abs=5e-4)
    column = "m for an interval shorter than 0.1"
    m = found["p=0.3, q0=0.7, q1=0.9, n infinite, m0=m1", column]
    lengths = [float(np.diff(twin(0.3, 0.7, 0.9, 1e9, k / 2, k / 2))[0]) for k in (m - 20, m)]
    assert lengths[1] < 0.1 <= lengths[0]
    assert lengths[0] == pytest.approx(0.1, abs=0.001)  # at 360 labels


def test_judge_beats_humans_in_the_published_range() -> None:
    found = by_name(judge_against_humans(None))
    assert math.isnan(found["q0=q1=0.85", "from theta"])  # below 1/2 + 1/(2 sqrt 2) = 0.854
    for q in (0.86, 0.9, 0.95, 0.99):
        reach = math.sqrt(0.5 - 1 / (4 * (2 * q - 1) ** 2))
        assert found[f"q0=q1={q}", "from theta"] == pytest.approx(0.5 - reach, abs=1e-4)
        assert found[f"q0=q1={q}", "to theta"] == pytest.approx(0.5 + reach, abs=1e-4)


def test_only_the_adjusted_estimate_has_no_bias_under_label_shift() -> None:
    found = by_name(bias_under_shift(None))
    p = 0.5 * 0.9 + 0.5 * 0.3
    for theta in (0.25, 0.5, 0.7):
        judged = theta * 0.9 + (1 - theta) * 0.3
        if_won, if_lost = theta * 0.9 / judged, theta * 0.1 / (1 - judged)
        expected = (p, theta, p + theta - judged, p * if_won + (1 - p) * if_lost, 0.5)
        for name, value in zip(ESTIMATORS, expected, strict=True):
            bias = found[name, f"bias at calibration theta={theta}"]
            assert bias == pytest.approx(value - 0.5, abs=0.006), name


@pytest.mark.parametrize("theta", [0.0, 0.2, 0.5, 0.95])
def test_coverage_and_length_are_those_of_a_twin(theta: float, monkeypatch) -> None:
    monkeypatch.setattr(correct_reporting, "GRID", [theta])
    found = by_name(coverage_over_grid(([(0.7, 0.9)], (200,)), None))
    rng, size = np.random.default_rng(5), 20_000
    p = rng.binomial(1000, 0.9 * theta + 0.3 * (1 - theta), size) / 1000
    lower, upper = twin(p, rng.binomial(100, 0.7, size) / 100, rng.binomial(100, 0.9, size) / 100,
                        1000, 100, 100)  # fmt: skip
    row, noise = "q0=0.7, q1=0.9, m=200, even", 100 * math.sqrt(0.05 * 0.95 * (1 / N + 1 / size))
    held = 100 * ((lower <= theta) & (theta <= upper)).mean()
    assert found[row, f"coverage at theta={theta}"] == pytest.approx(held, abs=4 * noise)
    length = (upper - lower).mean()
    assert found[row, f"length at theta={theta}"] == pytest.approx(length, rel=0.02)
    adaptive = found[row.replace("even", "adaptive"), f"coverage at theta={theta}"]
    assert 95 - 4 * noise < adaptive <= 100


def test_grid_has_21_win_rates_and_every_simulation_is_made() -> None:
    assert (len(GRID), GRID[1], GRID[-1]) == (21, 0.05, 1.0)
    made = {
        one.item.name.removeprefix("correct_reporting."): one
        for one in reproduce("correct-reporting")
    }
    assert {name for name, one in made.items() if not one.is_made} == {"table2", "fig7"}
    assert f"needs {FILE}" in made["table2"].line
    assert len(made["fig9-16"].cells) == 4 * 2 * 2 * 21 * 2


# ------------------------------------------------------------------ battles


def test_intervals_on_splits_hold_where_the_judge_errs_alike(tmp_path: Path) -> None:
    """4,000 battles of one model: 400 labels, whose interval has a known mean length."""
    rng, n = np.random.default_rng(4), 4000
    human = rng.random(n) < 0.6
    judge = np.where(human, rng.random(n) < 0.9, rng.random(n) < 0.3)
    as_b = rng.random(n) < 0.5
    table = pd.DataFrame(
        {
            "model_a": np.where(as_b, "other", "gpt-4"),
            "model_b": np.where(as_b, "gpt-4", "other"),
            "human_outcome": (human ^ as_b).astype(float),
            "judge_outcome": (judge ^ as_b).astype(float),
        }
    )
    ties = table.head(50).assign(human_outcome=0.5)
    pd.concat([table, ties]).to_csv(tmp_path / f"{FILE}.csv.gz", index=False)
    said: list[str] = []
    models = read(tmp_path, said.append)
    assert said == [f"reading {FILE}.csv.gz"]
    own = models[models["model"].eq("gpt-4")]
    assert own[["human", "judge"]].sum().tolist() == [human.sum(), judge.sum()]
    found = by_name(coverage_on_splits(models))
    lower, upper = twin(0.66, 0.7, 0.9, 3600, 160, 240)
    assert found["GPT-4", "ci_length"] == pytest.approx(upper - lower, rel=0.03)
    assert found["GPT-4", "coverage"] >= 90
    bias = by_name(bias_by_model(models))["gpt-4", "naive bias"]
    assert bias == pytest.approx(judge.mean() - human.mean())
    assert by_name(bias_by_model(models))["other", "naive bias"] == pytest.approx(-bias)


def test_refusal_of_a_file_does_not_offer_settings_of_rank(tmp_path: Path) -> None:
    battles = pd.DataFrame({"model_a": "x", "model_b": "y", "judge_outcome": 1.0}, index=range(60))
    battles["human_outcome"] = np.resize([1.0, -1.0, 2.0], 60)
    battles.to_csv(tmp_path / f"{FILE}.csv", index=False)
    with pytest.raises(ValueError, match="`paper` has no such setting: correct the file"):
        read(tmp_path, print)


def test_real_battles_give_a_row_per_model(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / f"{FILE}.csv").symlink_to(data_dir / "real" / "mtbench_gpt4.csv")
    table2 = next(reproduce("correct-reporting", tmp_path))
    rows = table2.cells.set_index(["row", "column"])
    assert rows.loc[("GPT-4", "coverage"), "printed"] == 97
    of_splits = 0.5 + 200 * math.sqrt(2 * 0.95 * 0.05 / 100)
    assert rows.loc[("GPT-4", "coverage"), "tolerance"] == pytest.approx(of_splits)
    assert rows.loc[("GPT-4", "ci_length"), "tolerance"] == 0.0005
    assert rows["value"].notna().sum() == 12
    assert rows.loc[("FastChat-T5-3B", "coverage"), "note"].startswith(f"needs {FILE}")
