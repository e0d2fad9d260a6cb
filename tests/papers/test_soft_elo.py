"""Tables of the Soft-Elo paper: the reference program's numbers, other libraries, closed forms."""

import ast
import csv
import math
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy.optimize import brentq
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from softelo_release import JUDGES, write_release

import judgeline
from judgeline.verdict import CRITERIA
from papers import soft_elo
from papers.reproduce import reproduce
from papers.soft_elo_data import Judged, on_splits, read, residuals_of
from papers.soft_elo_text import (
    by_language,
    family_excess,
    partial_length_correlation,
    size_by_language,
)

Cells = dict[tuple[str, str, str], float]


def cells_of(folder: Path) -> pd.DataFrame:
    made = pd.concat([table.cells for table in reproduce("soft-elo", folder)])
    assert not made.duplicated(["item", "row", "column"]).any()
    return made


def by_name(cells: pd.DataFrame) -> Cells:
    made = cells[cells["value"].notna()]
    return {
        (item.removeprefix("soft_elo."), row, column): value
        for item, row, column, value in made[["item", "row", "column", "value"]].to_numpy()
    }


def battles_of(path: Path) -> pd.DataFrame:
    """A file as plain numbers, A first: human and judge are A's shares."""
    raw = pd.read_csv(path)
    score = [
        sum(ast.literal_eval(a)[c] - ast.literal_eval(b)[c] for c in CRITERIA) / 6
        for a, b in zip(raw["scores_a"], raw["scores_b"], strict=True)
    ]
    return raw.assign(human=1 - raw["human_pref"], judge=1 - raw["judge_pref"], score=score)


@pytest.fixture(scope="module")
def sample_folder(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    (folder / sample.name).symlink_to(sample)
    return folder


@pytest.fixture(scope="module")
def found(sample_folder: Path) -> Cells:
    return by_name(cells_of(sample_folder))


@pytest.fixture(scope="module")
def battles(sample: Path) -> pd.DataFrame:
    return battles_of(sample)


@pytest.fixture(scope="module")
def expected(expected_dir: Path) -> pd.DataFrame:
    """What the reference program computed; its residual is human minus judge."""
    return pd.read_csv(expected_dir / "softelo_sample_heldout.csv").assign(
        residual=lambda table: -table["residual"]
    )


# ------------------------------------------------------------------ the released sample


def test_errors_are_those_of_the_reference_program(found: Cells, expected_dir: Path) -> None:
    """It penalises half as much, which moves errors by less than 0.05 Elo."""
    with (expected_dir / "softelo_sample_summary.csv").open() as file:
        hard, soft = csv.DictReader(file)
    own = {column: value for (item, _, column), value in found.items() if item == "table2"}
    assert own["elo_mae_hard"] == pytest.approx(float(hard["mae"]), abs=0.05)
    assert own["elo_mae_soft"] == pytest.approx(float(soft["mae"]), abs=0.05)
    fall = 100 * (1 - float(soft["mae"]) / float(hard["mae"]))
    assert own["mae_reduction"] == pytest.approx(fall, abs=0.1)
    assert own["beta_star"] == pytest.approx(float(soft["mean_beta"]), abs=1e-5)
    change = float(soft["spearman_rho"]) - float(hard["spearman_rho"])
    assert own["delta_spearman_soft_minus_hard"] == pytest.approx(change, abs=1e-12)
    rho = float(hard["spearman_rho"])
    assert found["table1", "recorded", "spearman_rho"] == pytest.approx(rho, abs=1e-12)
    for name, value in own.items():
        if name.startswith("elo_mae"):
            assert found["table8", "recorded", name] == value


def test_agreement_is_that_of_scikit_learn_and_of_hand(found: Cells, battles) -> None:
    classes = [np.sign(battles[name] - 0.5).astype(int) for name in ("judge", "human")]
    kappa = cohen_kappa_score(*classes)
    assert found["table1", "recorded", "kappa"] == pytest.approx(kappa, abs=1e-12)
    size = battles["score"].abs()
    assert found["table1", "recorded", "mean_abs_s"] == pytest.approx(size.mean(), abs=1e-12)
    sided = battles[battles["human"].ne(0.5) & battles["judge"].ne(0.5)]
    agrees = sided["judge"].eq(sided["human"])
    for name, low, high in (("small |s|", -1, 0.5), ("1 to 2", 1, 2), ("|s| > 4", 4, 10)):
        own = agrees[(sided["score"].abs() > low) & (sided["score"].abs() <= high)]
        cell = found["fig3", "agreement on non-tied battles", name]
        assert cell == pytest.approx(100 * own.mean(), abs=1e-9)


def test_calibration_errors_are_those_of_the_released_function(found: Cells, battles) -> None:
    """Human and judge labels that are no ties, their agreement, and ten bins by `qcut`."""
    decisive = battles[battles["human"].ne(0.5)]
    model = LogisticRegression(fit_intercept=False, C=np.inf, tol=1e-10)
    beta = model.fit(decisive[["score"]], decisive["human"]).coef_[0, 0]
    sided = decisive[decisive["judge"].ne(0.5)]
    assert len(sided) == 489
    for slope, item, row, column in (
        (1.0, "fig3", "ECE of recorded", "beta = 1"),
        (beta, "fig3", "ECE of recorded", "fitted beta"),
        (beta, "table7", "recorded", "LMArena 100K / ece"),
    ):
        chance = 1 / (1 + np.exp(-slope * sided["score"].abs()))
        agrees = sided["judge"].eq(sided["human"]).astype(float)
        bins = pd.qcut(chance, 10, duplicates="drop")
        means = pd.DataFrame({"p": chance, "y": agrees}).groupby(bins, observed=True).mean()
        error = np.average((means["p"] - means["y"]).abs(), weights=bins.value_counts(sort=False))
        assert found[item, row, column] == pytest.approx(error, abs=1e-6)
    assert found["table7", "recorded", "LMArena 100K / ece"] == pytest.approx(0.0582, abs=0.0005)


def test_residuals_are_those_of_the_reference_program(found: Cells, expected) -> None:
    for method, own in expected.groupby("method"):
        residual = own.sort_values("human_elo")["residual"].to_numpy()
        for number, part in enumerate(np.split(residual, [3, 7, 10]), start=1):
            cell = found["fig14", f"mean signed residual {method}", f"Q{number}"]
            assert cell == pytest.approx(part.mean(), abs=0.1)


def test_subset_of_all_battles_is_the_whole(tmp_path: Path) -> None:
    """20 battles for each of 55 models are all of them, in another order."""
    write_release(tmp_path, n_battles=1100, judges=JUDGES[:1], corpora=["lmarena-100k"])
    found = by_name(cells_of(tmp_path))
    for name in ("elo_mae_hard", "elo_mae_soft"):
        whole = found["table2", JUDGES[0], name]
        assert found["fig6", f"{name} / {JUDGES[0]}", "b=20"] == pytest.approx(whole, abs=1e-6)
    assert ("fig6", f"elo_mae_hard / {JUDGES[0]}", "b=50") not in found
    for name in ("beta", "median_width_soft"):
        assert all(found["fig6", f"{name} / {JUDGES[0]}", f"b={b}"] > 0 for b in (5, 10, 20))


# ------------------------------------------------------------------ slopes and strengths


def slope(rows: pd.DataFrame, *, ties: bool) -> float:
    """The slope of votes on score differences, by scikit-learn; a tie is half of either."""
    both = pd.concat([rows.assign(won=1, weight=rows["human"]),
                      rows.assign(won=0, weight=1 - rows["human"])])  # fmt: skip
    both = both[both["weight"].gt(0) & (both["human"].ne(0.5) | ties)]
    model = LogisticRegression(fit_intercept=False, C=np.inf, tol=1e-12)
    return model.fit(both[["score"]], both["won"], both["weight"]).coef_[0, 0]


def held_out(rows: pd.DataFrame, model: str, share: pd.Series) -> float:
    """Rating of a model left out: anchors by scikit-learn, then the root of its own slope."""
    own = rows["model_a"].eq(model) | rows["model_b"].eq(model)
    others = sorted({*rows["model_a"], *rows["model_b"]} - {model})
    sides = [
        pd.get_dummies(pd.Categorical(rows.loc[~own, name], others)).to_numpy(float)
        for name in ("model_a", "model_b")
    ]
    weight = np.concatenate([share[~own], 1 - share[~own]])
    won = np.repeat([1, 0], (~own).sum())
    fit = LogisticRegression(fit_intercept=False, C=50, tol=1e-12, max_iter=10_000)
    fit.fit(np.vstack([sides[0] - sides[1]] * 2), won, weight)
    strength = dict(zip(others, fit.coef_[0] - fit.coef_[0].mean(), strict=True))
    is_a = rows.loc[own, "model_a"].eq(model)
    anchor = rows.loc[own, "model_b"].where(is_a, rows.loc[own, "model_a"]).map(strength)
    y = share[own].where(is_a, 1 - share[own])
    pull = lambda x: (y - 1 / (1 + np.exp(anchor - x))).sum() - 0.02 * x  # noqa: E731
    return 1500 + 400 / math.log(10) * brentq(pull, -20, 20, xtol=1e-12)


@pytest.fixture(scope="module")
def by_slope(battles) -> pd.DataFrame:
    """Slopes and soft errors of the sample by fold, pooled, and with ties in the fit."""
    models, rows = sorted({*battles["model_a"], *battles["model_b"]}), []
    pooled = slope(battles, ties=False)
    for model in models:
        others = battles[battles["model_a"].ne(model) & battles["model_b"].ne(model)]
        row = {"people": held_out(battles, model, battles["human"])}
        slopes = {"fold": slope(others, ties=False), "pooled": pooled,
                  "ties": slope(others, ties=True)}  # fmt: skip
        for name, beta in slopes.items():
            share = 1 / (1 + np.exp(-beta * battles["score"]))
            row |= {f"beta_{name}": beta, name: held_out(battles, model, share)}
        rows.append(row)
    return pd.DataFrame(rows)


def test_other_slopes_move_ratings_as_by_scikit_learn(found: Cells, by_slope) -> None:
    error = {
        name: (by_slope[name] - by_slope["people"]).abs().mean()
        for name in ("fold", "pooled", "ties")
    }
    rank = {name: spearmanr(by_slope[name], by_slope["people"]).statistic for name in error}
    apart = (by_slope["beta_fold"] - by_slope["beta_pooled"]).abs()
    moved = "change of soft MAE, held-out against pooled beta"
    ties = "all battles (ties 0.5) against non-ties"
    expected = {
        ("deviation of held-out beta from pooled beta", "mean"): apart.mean(),
        ("deviation of held-out beta from pooled beta", "max"): apart.max(),
        (moved, "mean"): abs(error["fold"] - error["pooled"]),
        (moved, "max"): abs(error["fold"] - error["pooled"]),
        (ties, "beta ratio"): by_slope["beta_ties"].mean() / by_slope["beta_fold"].mean(),
        (ties, "MAE increase"): error["ties"] - error["fold"],
        (ties, "delta Spearman"): rank["ties"] - rank["fold"],
    }
    assert {key: found["text", *key] for key in expected} == pytest.approx(expected, abs=1e-4)
    assert expected[ties, "beta ratio"] < 0.9


def test_sizes_of_scores_by_strength_and_agreement(found: Cells, battles, expected) -> None:
    people = expected[expected["method"].eq("hard")].set_index("model")["human_elo"]
    top, bottom = people[people >= people.quantile(0.75)], people[people <= people.quantile(0.25)]
    a_top, b_top = (battles[f"model_{side}"].isin(top.index) for side in "ab")
    a_low, b_low = (battles[f"model_{side}"].isin(bottom.index) for side in "ab")
    size = battles["score"].abs()
    across = (a_top & b_low) | (b_top & a_low)
    for name, rows in (("top", a_top & b_top), ("bottom", across)):
        assert rows.any()
        cell = found["text", "median |s|", f"top quartile vs {name} quartile"]
        assert cell == pytest.approx(size[rows].median())
    sided = battles[battles["human"].ne(0.5) & battles["judge"].ne(0.5)]
    r = sided["score"].abs().corr(sided["judge"].eq(sided["human"]).astype(float))
    cell = found["fig7", "LMArena 100K / recorded", "r of |s| and agreement"]
    assert cell == pytest.approx(r, abs=1e-9)


# ------------------------------------------------------------------ intervals


def test_threshold_is_the_26th_of_27_scores() -> None:
    rng = np.random.default_rng(3)
    draws = [on_splits(rng.standard_normal(55), np.ones(55)) for _ in range(300)]
    coverage = [one["coverage"] for one in draws]
    error = np.std(coverage) / math.sqrt(len(coverage))
    assert np.mean(coverage) == pytest.approx(100 * 26 / 28, abs=4 * error)
    residual = np.arange(1.0, 56.0)
    found = on_splits(residual, np.full(55, 2.0))
    assert found["median_width"] == pytest.approx(2 * 2 * found["threshold"])
    assert 0.5 * 26 <= found["threshold"] <= 0.5 * 54
    assert found["width_min"] <= found["median_width"] <= found["width_max"]


def test_too_few_models_have_no_threshold(found: Cells) -> None:
    assert math.isinf(found["table3", "recorded", "threshold_soft"])  # 7 of 14 calibrate
    assert found["table3", "recorded", "coverage_soft"] == 100


def test_released_stream_is_that_of_the_reference_program(
    sample_folder: Path, expected, expected_dir: Path
) -> None:
    """20 resamples and five splits of one seed; what is left is its optimiser's tolerance."""
    [one] = read(sample_folder, print, stream="released")["LMArena 100K"]
    for method, own in expected.groupby("method"):
        rows = residuals_of(one.heldout, method)
        assert rows.model.tolist() == own["model"].tolist()
        assert rows.std_error == pytest.approx(own["judge_elo_se"].to_numpy(), abs=0.01)
        assert rows.residual == pytest.approx(own["residual"].to_numpy(), abs=0.05)
    with (expected_dir / "softelo_sample_conformal.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    columns = {
        "threshold": "qhat",
        "median_width": "median_width",
        "width_min": "median_width_min",
        "width_max": "median_width_max",
    }
    for method, row in rows.items():
        for name, column in columns.items():
            wanted = float(row[column])
            assert one.numbers[f"{name}_{method}"] == pytest.approx(wanted, rel=2e-3)
        assert one.numbers[f"coverage_{method}"] == pytest.approx(100 * float(row["coverage"]))
    made = {
        table.item.name: table.cells
        for table in reproduce("soft-elo", sample_folder, stream="released")
    }
    cells = made["soft_elo.table3"].query("row == 'recorded'").set_index("column")["value"]
    assert cells["median_width_hard"] == pytest.approx(306.4, abs=0.3)
    assert cells["median_width_soft"] == pytest.approx(96.4, abs=0.1)


def test_only_soft_elo_has_a_released_stream() -> None:
    with pytest.raises(ValueError, match="--stream is 'released'; of trustjudge there is own"):
        reproduce("trustjudge", stream="released")


# ------------------------------------------------------------------ two judges


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pair")
    write_release(folder, n_battles=1500, judges=JUDGES[:2], corpora=["lmarena-100k"])
    return folder


@pytest.fixture(scope="module")
def judged(pair: Path) -> list[Judged]:
    said: list[str] = []
    found = read(pair, said.append)
    names = [f"reading {k} of 2: {path.name}" for k, path in enumerate(sorted(pair.iterdir()), 1)]
    assert said == [*names, "judges: LMArena 100K 2"]
    return found["LMArena 100K"]


def test_ratings_by_language_are_those_of_scikit_learn(pair: Path, judged) -> None:
    """A penalty of 0.01 on squared strengths is C = 50 of a logistic regression."""
    errors, correlations, sizes = [], [], []
    for path in pair.iterdir():
        board = judgeline.rank(path, judgeline.Settings(hard_outcome="recorded", n_resamples=0))
        human = board.leaderboard.set_index("model")["human_rating"]
        own = battles_of(path).query("language == 'English'")
        models = sorted({*own["model_a"], *own["model_b"]})
        sides = [
            pd.get_dummies(pd.Categorical(own[s], models)).to_numpy(float)
            for s in ("model_a", "model_b")
        ]
        design = np.vstack([sides[0] - sides[1]] * 2)
        outcome = np.repeat([1, 0], len(own))
        weight = np.concatenate([own["judge"], 1 - own["judge"]])
        fit = LogisticRegression(fit_intercept=False, C=50, tol=1e-9, max_iter=10_000)
        strength = fit.fit(design, outcome, weight).coef_[0]
        rating = 400 / math.log(10) * (strength - strength.mean())
        people = human[models] - human[models].mean()
        sizes.append(own["score"].abs().mean())
        errors.append(np.abs(rating - people).mean())
        correlations.append(spearmanr(rating, people).statistic)
    found = by_language(tuple(judged))["English"]
    assert found["elo_mae_hard"] == pytest.approx(np.mean(errors), abs=0.01)
    assert found["spearman_hard"] == pytest.approx(np.mean(correlations), abs=1e-3)
    assert found["n_prompts"] == len(own)
    cells = {cell.row: cell.value for cell in size_by_language({"LMArena 100K": judged})}
    assert cells["English"] == pytest.approx(np.mean(sizes), abs=1e-9)


def test_partial_correlation_is_that_of_pingouin(judged: list[Judged]) -> None:
    for one in judged:
        table = one.ratings("hard").assign(length=one.mean_by_model("length"))
        r = pingouin.partial_corr(table, "residual", "length", "human_rating")["r"].item()
        assert partial_length_correlation(one) == pytest.approx(r, abs=1e-9)


def test_means_by_model_by_hand(pair: Path, judged: list[Judged]) -> None:
    one = judged[0]
    raw = pd.read_csv(sorted(pair.iterdir())[0])
    model = raw["model_a"][0]
    lengths = [*raw.loc[raw["model_a"].eq(model), "len_a"]]
    lengths += [*raw.loc[raw["model_b"].eq(model), "len_b"]]
    assert one.mean_by_model("length")[model] == pytest.approx(np.mean(lengths))
    assert one.mean_by_model("points").between(1, 10).all()


def test_family_excess_by_hand() -> None:
    judges = [Judged("LMArena 100K", name, pd.DataFrame()) for name in ("GPT-1", "Qwen1", "Phi-1")]
    values = {
        "GPT-1": pd.Series({"gpt-4": 8.0, "qwen-7b": 5.0, "yi": 6.0}),
        "Qwen1": pd.Series({"gpt-4": 7.0, "qwen-7b": 6.0, "yi": 6.0}),
        "Phi-1": pd.Series({"gpt-4": 6.0, "qwen-7b": 4.0, "yi": 5.0}),
    }
    # GPT-1: own 8 - 6.5; others 5 - 5 and 6 - 5.5. Qwen1: own 6 - 4.5; others 0 and 0.5
    assert family_excess(judges, values) == pytest.approx({"GPT-1": 1.25, "Qwen1": 1.25})
    assert family_excess(judges[:1], {"GPT-1": values["GPT-1"]}) == {}


def test_a_gemma_judge_that_favours_gemini_favours_its_family() -> None:
    """Five Gemini models half a point too high of eight of Google's; the definition in words."""
    google = [*(f"gemini-{k}" for k in range(5)), *(f"gemma-{k}" for k in range(3))]
    others = [f"{name}-{k}" for name in ("gpt", "claude", "llama") for k in range(3)]
    true = {name: 5 + k / 4 for k, name in enumerate([*google, *others])}
    values = {
        "Gemma4-E4B": {name: mean + name.startswith("gemini") / 2 for name, mean in true.items()},
        "DeepSeek-V3.2": {name: mean - 0.25 for name, mean in true.items()},
        "Mixtral-8x7B": true,
        "Command-R": {name: mean + 0.125 for name, mean in true.items()},
    }
    own = values["Gemma4-E4B"]
    deviation = {
        name: own[name] - statistics.median(values[judge][name] for judge in [*values][1:])
        for name in true
    }
    expected = statistics.fmean(deviation[name] for name in google)
    expected -= statistics.fmean(deviation[name] for name in others)
    judges = [Judged("LMArena 100K", name, pd.DataFrame()) for name in values]
    found = family_excess(judges, {name: pd.Series(one) for name, one in values.items()})
    assert found == {"Gemma4-E4B": pytest.approx(expected, abs=1e-12)}
    assert expected == pytest.approx(0.5 * 5 / 8)


def test_position_is_what_the_two_orders_say(pair: Path, tmp_path: Path) -> None:
    """Three judges that add to the first answer; ratings by one order as `rank` makes them."""
    raw = battles_of(sorted(pair.iterdir())[0])
    names = {"model_a": raw["model_a"], "model_b": raw["model_b"], "human_outcome": raw["human"]}
    firsts, flips, favours, gaps, moved = [], [], [], [], []
    for judge, bonus in (("Qwen3-32B", 0.4), ("GPT-OSS-20B", 0.2), ("DeepSeek-V3.2", 0.3)):
        rng = np.random.default_rng(len(judge))
        ab, ba = (raw["score"] + sign * bonus + rng.normal(0, 1, len(raw)) for sign in (1, -1))
        table = pd.DataFrame({**names, "difference_ab": ab, "difference_ba": ba, "judge": judge})
        table.assign(score_difference=(ab + ba) / 2).to_csv(tmp_path / f"{judge}.csv", index=False)
        firsts.append(100 * np.mean([*(ab > 0), *(ba < 0)]))
        flips.append(100 * np.mean(ab * ba < 0))
        favours.append(100 * np.mean(ab - ba > 0))
        settings = judgeline.Settings(n_resamples=0)
        boards = [
            judgeline.rank(pd.DataFrame({**names, "score_difference": score}), settings).heldout
            for score in (ab, ba)
        ]
        hard = [one[one["method"].eq("hard")].set_index("model") for one in boards]
        gaps.append(abs(hard[0]["residual"].abs().mean() - hard[1]["residual"].abs().mean()))
        both = judgeline.rank(tmp_path / f"{judge}.csv", settings).heldout
        both = both[both["method"].eq("hard")].set_index("model")["judge_rating"]
        moved.append(max((one["judge_rating"] - both).abs().max() for one in hard))
    cells = cells_of(tmp_path)
    found = by_name(cells)
    for row, values in (
        ("P(position 1 preferred), 3 judges", firsts),
        ("flip rate on decisive battles, 3 judges", flips),
        ("share of battles whose scores favour position 1", favours),
    ):
        assert found["text", row, "min"] == pytest.approx(min(values))
        assert found["text", row, "max"] == pytest.approx(max(values))
    assert found["text", "position 1 mean score advantage", "mean"] == pytest.approx(0.3, abs=0.05)
    gap = found["text", "|MAE_A - MAE_B| of single-order hard fits", "per judge"]
    assert gap == pytest.approx(np.mean(gaps), abs=1e-6)
    largest = found["text", "largest single-model deflection under one order", "max"]
    assert largest == pytest.approx(max(moved), abs=1e-6)
    compared = cells[cells["within"].notna()]
    assert len(compared) == 9
    assert set(compared["item"]) == {"soft_elo.text"}


def test_coverage_of_random_halves_is_allowed_two_deviations_of_their_difference() -> None:
    """55 scores in random halves, the threshold the 26th of 27; mean coverage of five halves."""
    rng = np.random.default_rng(1)
    order = rng.permuted(np.tile(np.arange(55), (40_000, 1)), axis=1)
    threshold = np.sort(order[:, :27], axis=1)[:, 25]
    covered = 100 * (order[:, 27:] <= threshold[:, None]).mean(axis=1)
    fives = covered.reshape(-1, 2, 5).mean(axis=2)
    allowed = 2 * (fives[:, 0] - fives[:, 1]).std()
    assert soft_elo.ALLOWED["coverage_"] == pytest.approx(allowed, rel=0.03)
    assert len(soft_elo.ALLOWED) == 1


def test_judge_that_contradicts_people_has_hard_numbers_only(tmp_path: Path) -> None:
    [path] = write_release(tmp_path, n_battles=600, judges=JUDGES[:1], corpora=["lmarena-100k"])
    swapped = {"scores_a": "scores_b", "scores_b": "scores_a"}
    pd.read_csv(path).rename(columns=swapped).to_csv(path, index=False)
    cells = cells_of(tmp_path)
    own = cells[cells["item"].eq("soft_elo.table2") & cells["row"].eq(JUDGES[0])]
    assert own.loc[own["value"].notna(), "column"].tolist() == ["elo_mae_hard"]
    absent = own[own["value"].isna()]
    assert set(absent["note"]) == {"no slope: contradicts-humans"}
    assert absent["within"].isna().all()


def test_rows_set_aside_are_said_and_many_are_refused(tmp_path: Path) -> None:
    [path] = write_release(tmp_path, n_battles=200, judges=["Qwen3-32B"], corpora=["comparia"])
    table, said = pd.read_csv(path, dtype=str), []
    for n_bad, message in ((3, ""), (9, r"4\.5% of 200 rows are lost \(9 missing-score\)")):
        bad = table.assign(scores_a=table["scores_a"].where(table.index >= n_bad, '{"clarity": 9}'))
        bad.to_csv(path, index=False)
        if message:
            with pytest.raises(ValueError, match=message):
                read(tmp_path, said.append)
        else:
            read(tmp_path, said.append)
        assert f"set aside {n_bad} missing-score of 200 rows" in said[1 if n_bad == 3 else -1]
    table.assign(len_a="long").to_csv(path, index=False)
    with pytest.raises(ValueError, match="len_a is 'long' in row 0; expected a number"):
        read(tmp_path, print)


def test_files_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    [path] = write_release(tmp_path, n_battles=60, judges=["Qwen3-32B"], corpora=["comparia"])
    (tmp_path / "again.csv").write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match="holds judge Qwen3-32B on ComparIA again; leave one"):
        list(reproduce("soft-elo", tmp_path))
    table = pd.read_csv(path).assign(source_dataset="ours")
    path.unlink()
    (tmp_path / "again.csv").unlink()
    table.to_csv(tmp_path / "comparia.csv", index=False)
    assert [*read(tmp_path, print)] == ["ComparIA"]
    (tmp_path / "comparia.csv").rename(tmp_path / "mine.csv")
    wanted = f"^{tmp_path}/mine.csv: neither source_dataset, ours, .*; write 100k, 140k, comparia"
    with pytest.raises(ValueError, match=wanted):
        read(tmp_path, print)


# ------------------------------------------------------------------ a release of 22 files


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Every cell of 22 files of 25,000 battles."""
    folder = tmp_path_factory.mktemp("release")
    assert len(write_release(folder)) == 22
    return cells_of(folder)


@pytest.mark.slow
def test_every_printed_cell_is_made_from_all_files(release) -> None:
    absent = release[release["value"].isna()]
    assert set(absent["item"]) == {"soft_elo.table6", "soft_elo.text"}
    unspoken = {"Vietnamese", "French", "Japanese", "Spanish", "Korean", "Italian", "Persian"}
    unspoken |= {"Portuguese", "Czech"}
    assert set(absent.loc[absent["item"].eq("soft_elo.table6"), "row"]) == unspoken
    text = absent[absent["item"].eq("soft_elo.text") & ~absent["column"].isin(unspoken)]
    assert text["note"].str.contains("difference_ab").sum() == len(text) == 9


@pytest.mark.slow
def test_intervals_of_all_models_cover_as_many_as_their_rank(release) -> None:
    """The threshold is a rank of the same residuals: 49 of 53, 106 of 116."""
    found = by_name(release)
    assert found["fig8", "LMArena 140K, 52 models", "covered_models"] == math.ceil(54 * 0.9)
    assert found["fig9", "ComparIA, 116 models", "covered_models"] == math.ceil(117 * 0.9)


@pytest.mark.slow
def test_means_over_judges_are_those_of_the_rows(release) -> None:
    found = by_name(release)
    errors = [found["table2", judge, "elo_mae_soft"] for judge in JUDGES]
    assert found["table8", "Mean", "elo_mae_soft"] == pytest.approx(np.mean(errors))
    own, pooled = (found["table6", "Russian", f"elo_mae_{name}"] for name in ("own_slope", "soft"))
    gap = found["text", "per-language minus pooled beta, MAE", "Russian"]
    assert gap == pytest.approx(own - pooled)
    assert gap != 0
    calibration = [found["table7", judge, "LMArena 100K / ece"] for judge in JUDGES]
    assert found["table7", "Mean", "LMArena 100K / ece"] == pytest.approx(np.mean(calibration))
