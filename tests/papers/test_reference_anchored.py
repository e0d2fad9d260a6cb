"""Tables of the reference-anchored paper: by hand, other libraries, and its own printed numbers."""

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy.stats import beta, kendalltau, kurtosis, pearsonr
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.meta_analysis import combine_effects

from papers import reference_anchored
from papers.reference_anchored_data import JUDGES, read
from papers.reproduce import reproduce

POINTS = 400 / math.log(10)
PREFERENCES = ["question_id", "model", "reference_model", "judge", "run", "preference"]
SCORES = ["question_id", "model", "judge", "run", "score"]


def made(
    folder: Path | None, say: Callable[[str], None] = lambda _: None
) -> dict[str, pd.DataFrame]:
    """Cells by item, indexed by row and column."""
    return {
        one.item.name.removeprefix("reference_anchored."): one.cells.set_index(["row", "column"])
        for one in reproduce("reference-anchored", folder, say=say)
    }


def write(folder: Path, name: str, rows: list[tuple], columns: list[str], **more: object) -> None:
    pd.DataFrame(rows, columns=columns).assign(**more).to_csv(folder / name, index=False)


def judged(rng: np.random.Generator, judges: list[str], models: str = "xyz") -> list[tuple]:
    """Three runs of 30 prompts against two references, all with their own chance of a win."""
    chance = {pair: rng.beta(2, 2, 30) for pair in product(models, "xr")}
    cells = product(range(30), models, "xr", judges, range(3))
    return [(q, m, r, j, run, float(rng.random() < chance[m, r][q])) for q, m, r, j, run in cells]


# ------------------------------------------------------------------ comparisons


def test_shares_and_errors_are_those_of_beta_posteriors(tmp_path: Path) -> None:
    rows = judged(np.random.default_rng(1), ["a", "b"])
    write(tmp_path, "mine.csv", rows, PREFERENCES)
    found, table = made(tmp_path), pd.DataFrame(rows, columns=PREFERENCES)
    posterior, gaps = {}, {}
    for (judge, m, r), own in table.groupby(["judge", "model", "reference_model"]):
        wins = own.groupby("question_id")["preference"].mean().sum().round(9)
        posterior[judge, m, r] = beta(wins + 0.5, 30 - wins + 0.5)
        gaps[judge, m, r] = POINTS * math.log((wins + 0.5) / (30 - wins + 0.5))
    ours = [posterior[judge, "y", "r"] for judge in "ab"]
    means = np.array([one.mean() for one in ours])
    expected = {
        "mean_p": means.mean(),
        "se_p": np.mean([one.std() for one in ours]),
        "mean_elo_gap": np.mean([gaps[judge, "y", "r"] for judge in "ab"]),
        "se_elo_gap": np.mean([POINTS * p.std() / (p.mean() * (1 - p.mean())) for p in ours]),
        "cv_p": means.std(ddof=1) / means.mean(),
    }
    got = found["table3"].loc["y / r", "value"]
    assert got[list(expected)].to_dict() == pytest.approx(expected, rel=1e-9)
    assert got[["strong_se_p", "strong_se_elo_gap"]].isna().all()
    note = "over 2 judges, 0 of the paper's 20, and 30 prompts"
    assert found["table3"].loc[("y / r", "mean_p"), "note"] == note
    sides = [[[gaps[judge, m, r] for m in "xyz"] for r in "rx"] for judge in "ab"]
    tau = np.mean([kendalltau(*side).statistic for side in sides])
    centred = [np.diff(np.array(side) - np.mean(side, axis=1)[:, None], axis=0) for side in sides]
    anchors = found["table5"].loc["r <-> x", "value"]
    assert anchors["kendall_tau"] == pytest.approx(tau)
    assert anchors["mean_abs_centred_elo_shift"] == pytest.approx(np.abs(centred).mean())
    away = table[table["model"].ne(table["reference_model"])]
    (tmp_path / "away").mkdir()
    away.to_csv(tmp_path / "away" / "preferences.csv", index=False)
    at_zero = [[[0 if m == r else gaps[j, m, r] for m in "xyz"] for r in "rx"] for j in "ab"]
    tau = np.mean([kendalltau(*side).statistic for side in at_zero])
    anchors = made(tmp_path / "away")["table5"].loc["r <-> x", "value"]
    assert anchors["kendall_tau"] == pytest.approx(tau)
    share = away.groupby(["judge", "model", "reference_model", "question_id"])["preference"].mean()
    kappa = cohen_kappa_score(share["a"] > 0.5, share["b"] > 0.5)  # of three runs, no tie
    sizes = found["table9"].loc["n=16", "value"]
    assert sizes["kappa_adjusted_se"] == pytest.approx(math.sqrt(kappa) * sizes["fpc_se"])
    spread = [np.std([gaps["a", m, "r"], gaps["b", m, "r"]], ddof=1) for m in "xyz"]
    by_system = found["table7"].xs("std / ref r", level="column")["value"]
    assert by_system["RAEE"] == pytest.approx(np.mean(spread))
    assert by_system[["Bradley-Terry", "Glicko2", "TrueSkill"]].gt(0).all()
    assert found["table7"].loc[("Bradley-Terry", "corr_with_raee"), "value"] > 0.999
    ranks = found["table15"].loc["RAEE vs Bradley-Terry, 3 models against r", "value"]
    assert ranks["kendall_tau"] == pytest.approx(1)
    assert ranks["top10_jaccard"] == 1


def test_errors_by_size_of_wins_and_losses_have_closed_forms(tmp_path: Path) -> None:
    """One run of two judges who agree: a subset's error is the theory's with the factor, nearly."""
    outcome = (np.arange(100) < 30).astype(float)
    rows = [(q, "m", "r", j, 0, outcome[q]) for q in range(100) for j in "ab"]
    write(tmp_path, "mine.csv", rows, PREFERENCES, domain="talk")
    found = made(tmp_path)
    p, n = 30.5 / 101, 40
    theory = math.sqrt(p * (1 - p) / (n + 2))
    fpc = theory * math.sqrt(60 / 99)
    seen = n / (n + 1) * math.sqrt(0.3 * 0.7 * 100 / 99 * (1 / n - 1 / 100))
    got = found["table9"].loc["n=40", "value"]
    assert got["empirical_se"] == pytest.approx(seen)
    assert got[["theoretical_se", "fpc_se", "kappa_adjusted_se"]].tolist() == pytest.approx(
        [theory, fpc, fpc]
    )
    assert got["empirical_over_kappa"] == pytest.approx(seen / fpc)
    assert 0.99 < seen / fpc < 1.01
    assert found["table14"].loc[("talk", "analytic_se"), "value"] == pytest.approx(theory)
    assert math.isnan(found["table9"].loc[("n=120", "empirical_se"), "value"])
    jeffreys, laplace = (POINTS * math.log((30 + k) / (70 + k)) for k in (0.5, 1))
    moved = found["table13"].loc[("talk", "mae_elo"), "value"]
    assert moved == pytest.approx(abs(jeffreys - laplace))


def test_each_row_is_its_own_population(tmp_path: Path) -> None:
    """Judges with 50 prompts each, of which none is the other's: not the 100 of both together."""
    rows = [(q, "m", "r", "ab"[q % 2], 0, float(q % 4 < 2)) for q in range(100)]
    write(tmp_path, "mine.csv", rows, PREFERENCES)
    got = made(tmp_path)["table9"].loc["n=40", "value"]
    assert got["fpc_se"] / got["theoretical_se"] == pytest.approx(math.sqrt(10 / 49))
    assert got["empirical_over_fpc"] == pytest.approx(1, abs=0.02)


def test_prompts_on_which_runs_differ_are_left_out(tmp_path: Path) -> None:
    """Of five runs 4 to 1 has a spread of 0.447 and counts, 3 to 2 has 0.548 and does not."""
    wins = [5, 4, 3, 2, 1, 0, 5, 5]
    rows = [(q, "m", "r", "a", run, float(run < wins[q])) for q in range(8) for run in range(5)]
    cells = product(range(8), "mr", range(5))
    scores = [(q, m, "a", run, 7 + (m == "m") * (q < 2) * (run % 2)) for q, m, run in cells]
    once = [(q, "m", "r", "once", 0, 1.0) for q in range(8)]
    short = [(8, "m", "r", "a", run, 1.0) for run in range(2)]
    write(tmp_path, "comparisons.csv", rows + once + short, PREFERENCES)
    write(tmp_path, "comparisons_scores.csv", scores, SCORES, domain="comparisons")
    found = made(tmp_path)
    got = found["table12"].loc["r / m", "value"]
    every, left = (sum(wins) / 5 + 0.5) / 9, ((5 + 4 + 1 + 0 + 5 + 5) / 5 + 0.5) / 7
    assert got[["coverage", "p_all", "p_trust"]].tolist() == pytest.approx([6 / 8, every, left])
    moved = POINTS * math.log(left / (1 - left) / (every / (1 - every)))
    assert got["delta_elo"] == pytest.approx(moved)
    coverage = found["table6"].xs("coverage", level="column")["value"].dropna()
    assert coverage["RAEE / trust / m"] == 6 / 8
    assert coverage["Direct / trust / m"] == 6 / 8  # five scores of 7, 8, 7, 8, 7: 0.548
    assert coverage["Direct / none / m"] == 1
    wins_by_score = 2 * 0.7 + 6 * 0.5  # of q1 and q2 two runs of five are won, all others tied
    by_score = read(tmp_path, print).by_score
    assert by_score["preference"].sum() / 5 == pytest.approx(wins_by_score)
    error = found["table6"].loc[("Direct / none / m", "se"), "value"]
    assert error == pytest.approx(beta(wins_by_score + 0.5, 8.5 - wins_by_score).std())
    assert found["table2"].loc[("SE(p)", "direct"), "value"] == pytest.approx(error)
    assert math.isnan(found["table2"].loc[("CV (judges)", "direct"), "value"])


def test_strong_judges_repeat_themselves_and_are_pooled(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    cells = [*product(range(40), range(2))]
    steady = [(q, "m", "r", "a", run, float(q < 20)) for q, run in cells]
    steady += [(q, "m", "r", "b", run, float(q < 30)) for q, run in cells]
    loose = [(q, "m", "r", "c", run, float(rng.random() < 0.5)) for q, run in cells]
    once = [(q, "m", "r", "d", 0, 1.0) for q in range(40)]
    write(tmp_path, "mine.csv", [*steady, *loose, *once], PREFERENCES)
    found = made(tmp_path)
    assert found["table16"].loc["judges", "value"].tolist() == [2, 1, 1]
    errors = [beta(n + 0.5, 40.5 - n).std() for n in (20, 30)]
    assert found["table3"].loc[("m / r", "strong_se_p"), "value"] == pytest.approx(np.mean(errors))
    shares = np.array([20.5, 30.5]) / 41
    variance = np.mean((POINTS * np.array(errors) / (shares * (1 - shares))) ** 2)
    pooled = found["table16"].loc["strong judges", "value"]
    assert pooled[["mean_icc", "elo_variance"]].tolist() == pytest.approx([1, variance])
    assert pooled["pooled_elo_variance"] == pytest.approx(variance)  # judges who agree are as one


def test_gaps_between_models_are_no_reliability(tmp_path: Path) -> None:
    """Two models of levels 3 and 9 and nothing but noise; of all prompts at once the ICC is .98."""
    rng, cells = np.random.default_rng(2), [*product(range(80), "xy", range(3))]
    rows = [(q, m, "a", run, (3 if m == "x" else 9) + rng.uniform(-1, 1)) for q, m, run in cells]
    write(tmp_path, "scores.csv", rows, SCORES)
    found = made(tmp_path)["table16"]
    assert found.loc["judges", "value"].tolist() == [0, 1, 0]
    assert abs(found.loc[("a", "icc"), "value"]) < 0.3


@pytest.mark.parametrize(("value", "n_models"), [("score", 3), ("preference", 2)])
def test_reliability_is_the_mean_over_models_of_another_library(value, n_models, tmp_path) -> None:
    import pingouin

    rng, columns = np.random.default_rng(4), SCORES if value == "score" else PREFERENCES
    rows = [
        (q, m, *(["r"] if value == "preference" else []), "a", run, noise)
        for m in "xyz"[:n_models]
        for q, level in enumerate(rng.uniform(0.3, 0.7, 30))
        for run, noise in enumerate(level + rng.uniform(-0.2, 0.2, 4))
    ]
    rows += [(q, "r", "r", "a", run, rng.random()) for q, run in product(range(30), range(4))
             if value == "preference"]  # fmt: skip
    table = pd.DataFrame(rows, columns=columns)
    table[value] = 1 + 9 * table[value] if value == "score" else table[value]
    table.to_csv(tmp_path / "mine.csv", index=False)
    peers = [
        pingouin.intraclass_corr(own, targets="question_id", raters="run", ratings=value)
        .set_index("Type")
        .loc["ICC(C,k)", "ICC"]
        for name, own in table.groupby("model")
        if name != "r"
    ]
    assert len(peers) == n_models
    got = made(tmp_path)["table16"].loc[("a", "icc"), "value"]
    assert got == pytest.approx(np.mean(peers), abs=1e-6)


def test_domains_and_categories_have_their_own_rows(tmp_path: Path) -> None:
    parts = {"MT-Bench": ["w"], "FloRES": ["zh", "es"], "TL;DR": ["TIFU"], "code": ["sql"]}
    for domain, kinds in parts.items():
        rows = judged(np.random.default_rng(len(domain)), ["gpt4o"], "x")
        category = [kinds[row[0] % len(kinds)] for row in rows]
        write(tmp_path, f"{len(domain)}.csv", rows, PREFERENCES, domain=domain, category=category)
    found = made(tmp_path)
    rows = {name: {row for row, _ in found[name].dropna(subset="value").index} for name in found}
    assert rows["table4"] == {"FloRES / x", "TL;DR / x", "code / x"}
    one = found["table4"].loc["TL;DR / x", "value"]
    alone = found["table11"].loc["x / TIFU", "value"]
    assert one[["mean_p", "se_p_all"]].tolist() == alone[["mean_p", "se_p"]].tolist()
    assert one["elo_gap"] == pytest.approx(POINTS * math.log(one["mean_p"] / (1 - one["mean_p"])))
    assert rows["table10"] == {"x / zh", "x / es", "code / x / sql", "MT-Bench / x / w"}
    assert rows["table11"] == {"x / TIFU"}
    assert rows["table13"] == {*parts}


# ------------------------------------------------------------------ direct scores


def test_moments_and_agreement_are_those_of_other_libraries(tmp_path: Path) -> None:
    import pingouin

    rng, n = np.random.default_rng(3), 40
    level = rng.normal(8, 1.5, n)
    score = {
        (judge, run): np.clip(np.round(level + rng.normal(0, noise, n)), 1, 10)
        for (judge, noise), run in product((("o3", 0.3), ("own", 2)), range(3))
    }
    rows = [(q, "m", j, run, values[q]) for (j, run), values in score.items() for q in range(n)]
    write(tmp_path, "scores.csv", rows, SCORES, turn=1)
    found = made(tmp_path)
    one, other = (np.concatenate([score[j, run] for run in range(3)]) for j in ("o3", "own"))
    got = found["table8"].loc["o3", "value"]
    assert got["kurtosis / m"] == pytest.approx(kurtosis(one, bias=False))
    assert got["sd / m"] == pytest.approx(one.std(ddof=1))
    assert got["ceiling / m"] == (one == 10).mean()
    agreement = found["table1"].loc["m", "value"]
    assert agreement["direct_score_mean"] == pytest.approx((one.mean() + other.mean()) / 2)
    expected = (pearsonr(one, other)[0], kendalltau(one, other)[0], cohen_kappa_score(one, other))
    names = [f"{name}_between_judges" for name in ("pearson", "kendall", "kappa")]
    assert agreement[names].tolist() == pytest.approx(expected)
    long = pd.DataFrame([row for row in rows if row[2] == "own"], columns=SCORES)
    icc = pingouin.intraclass_corr(long, targets="question_id", raters="run", ratings="score")
    peer = icc.set_index("Type")["ICC"]
    got = found["table16"].loc["own", "value"]
    assert got["icc"] == pytest.approx(peer["ICC(C,k)"], abs=1e-6)
    assert got["icc_single_run"] == pytest.approx(peer["ICC(C,1)"], abs=1e-6)
    counts = found["table16"].loc["judges", "value"]
    assert counts[["strong", "other", "unmeasured"]].tolist() == [1, 1, 0]


# ------------------------------------------------------------------ real data, and what is compared


def test_thirty_real_models_against_one_reference(data_dir: Path, tmp_path: Path) -> None:
    name = "alpacaeval_reference_battles.parquet"
    (tmp_path / name).symlink_to(data_dir / name)
    found = made(tmp_path)
    shares = found["table3"].xs("mean_p", level="column")["value"].dropna()
    for model, share in (("NullModel", 0.769), ("claude", 0.170), ("oasst-sft-pythia-12b", 0.018)):
        assert shares[f"{model} / gpt4_1106_preview"] == pytest.approx(share, abs=5e-4)
    ranks = found["table15"]["value"].unstack().filter(like="29 models", axis=0)  # noqa: PD010
    assert ranks["kendall_tau"].gt(0.94).all()
    assert ranks.filter(like="Bradley", axis=0)["kendall_tau"].item() == pytest.approx(1)
    errors = found["table9"]["value"].unstack()  # noqa: PD010
    assert errors["empirical_over_fpc"].dropna().between(0.85, 0.86).all()
    assert found["table3"]["within"].isna().all()


@pytest.mark.parametrize(("n_judges", "compared"), [(20, True), (19, False)])
def test_only_the_papers_judges_and_prompts_are_compared(n_judges, compared, tmp_path) -> None:
    judges = JUDGES[:n_judges]
    cells = product(range(80), (1, 2), judges)
    rows = [(q, t, "GPT-4o", "o4 mini", j, float(q % 3 == t)) for q, t, j in cells]
    columns = ["question_id", "turn", *PREFERENCES[1:4], "preference"]
    pd.DataFrame(rows, columns=columns).to_parquet(tmp_path / "MT-Bench.parquet")
    cell = made(tmp_path)["table3"].loc[("gpt-4o / o4-mini", "mean_p")]
    assert cell["printed"] == 0.2086
    assert pd.notna(cell["within"]) is compared


def test_systems_without_their_libraries_are_left_out_and_said(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(reference_anchored, "find_spec", lambda _: None)
    write(tmp_path, "mine.csv", judged(np.random.default_rng(1), ["a"]), PREFERENCES)
    lines: list[str] = []
    ranks = made(tmp_path, lines.append)["table15"].dropna(subset="value")
    assert {row for row, _ in ranks.index} == {"RAEE vs Bradley-Terry, 3 models against r"}
    (told,) = [line for line in lines if "pip install -e '.[papers]'" in line]
    assert told.startswith("Glicko2 and TrueSkill are left out of tables 7 and 15")


GOOD = ("q1", "m", "r", "a", 0, 0.5)


NUMBER = "expected a number from 0 to 1"


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        ([], ["answer"], "holds no comparisons or scores: no table in it has preference, or"),
        ([("q1", "m", "r", 1)], [*PREFERENCES[:3], "preference"], "mine.csv lacks judge .*; add"),
        ([GOOD, ("q2", "m", "r", "a", 0, 1.5)], PREFERENCES, f"is 1.5 in row 1 .*; {NUMBER}"),
        ([("q1", "m", "r", "a", 0, "win")], PREFERENCES, "preference is 'win' in row 0"),
        ([("q1", "m", "a", 0, 11)], SCORES, "score is 11.0 in row 0 .* a number from 1 to 10"),
        ([("q1", "m", "r", None, 0, 1)], PREFERENCES, "judge is nan in row 0 .*; expected a name"),
        ([], PREFERENCES, "holds no judgment: of 0 rows none.*; add some"),
        ([(*GOOD[:5], None)], PREFERENCES, "holds no judgment: of 1 rows"),
        ([("q1", "m", "m", "a", 0, 0.5)], PREFERENCES, "holds no judgment: of 1 rows"),
        ([GOOD, GOOD], PREFERENCES, "mine.csv: row 1 .* is there already: .* in a column run"),
    ],
)  # fmt: skip
def test_wrong_files_are_named_with_the_remedy(rows, columns, message, tmp_path: Path) -> None:
    write(tmp_path, "mine.csv", rows, columns)
    with pytest.raises(ValueError, match=message):
        made(tmp_path)


# ------------------------------------------------------------------ thresholds, pools and tasks


def test_judges_by_threshold_and_pools_of_them(tmp_path: Path) -> None:
    """Judges of three noises; ICC(3,k) by pingouin, one of prompts and runs for each model."""
    rng, rows, noises = np.random.default_rng(4), [], {"calm": 0.4, "mild": 1.0, "wild": 3.0}
    for judge, noise in noises.items():
        for model, shift in (("x", 0.5), ("y", -0.5), ("r", 0.0)):
            for q in range(40):
                true = 5.5 + shift + 1.5 * math.sin(q + len(model))
                runs = np.clip(true + rng.normal(0, noise, 3), 1, 10)
                rows += [(q, model, judge, run, score) for run, score in enumerate(runs)]
    table = pd.DataFrame(rows, columns=SCORES)
    table.assign(domain="one").to_csv(tmp_path / "scores.csv", index=False)
    mine = judged(rng, [*noises], models="xy")
    own = [row for row in mine if row[2] == "r"]
    write(tmp_path, "mine.csv", own, PREFERENCES, domain="one")
    icc = {
        judge: np.mean([
            pingouin.intraclass_corr(one, "question_id", "run", "score")
            .set_index("Type").loc["ICC(C,k)", "ICC"]
            for _, one in own.groupby("model")
        ])
        for judge, own in table.groupby("judge")
    }  # fmt: skip
    strong = [judge for judge, value in icc.items() if value >= 0.9]
    assert 0 < len(strong) < 3
    found = made(tmp_path)
    counts = found["fig3"]["value"].xs("n_judges", level="column")
    for least in (0.0, 0.5, 0.9, 0.99):
        assert counts[f"ICC >= {least:g}"] == sum(value >= least for value in icc.values())
    errors = []
    for (judge, _), own in (
        pd.DataFrame(mine, columns=PREFERENCES)
        .query("reference_model == 'r' and judge in @strong")
        .groupby(["judge", "model"])
    ):
        wins = own.groupby("question_id")["preference"].mean().sum()
        errors.append(beta(wins + 0.5, 30 - wins + 0.5).std())
        assert judge in strong
    cell = found["fig3"].loc[("ICC >= 0.9", "se_p"), "value"]
    assert cell == pytest.approx(np.mean(errors), rel=1e-9)
    rho = np.mean([icc[judge] for judge in strong])
    for n in (1, 2, 20):
        cell = found["fig5"].loc[("strong judges", f"variance at J={n}"), "value"]
        assert cell == pytest.approx(rho + (1 - rho) / n, abs=1e-9)


def test_gains_of_pooling_need_no_data() -> None:
    cells = made(None)["text"]
    row = "variance reduction by pooling at reliability 0.90"
    assert cells.loc[(row, "J=2"), "value"] == pytest.approx(5)
    assert cells.loc[(row, "J infinite"), "value"] == pytest.approx(10, abs=1e-6)
    assert cells.loc[row, "within"].all()


def test_spread_between_tasks_is_that_of_statsmodels(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    expected = []
    for domain, chance in (("flores", 0.4), ("tldr", 0.8), ("other", 0.55)):
        rows = [(q, "x", "r", j, 0, float(rng.random() < chance)) for q in range(60) for j in "ab"]
        write(tmp_path, f"{domain}.csv", rows, PREFERENCES, domain=domain)
        table = pd.DataFrame(rows, columns=PREFERENCES)
        wins = table.groupby("judge")["preference"].sum()
        each = [beta(one + 0.5, 60 - one + 0.5) for one in wins]
        expected.append((np.mean([p.mean() for p in each]), np.mean([p.std() for p in each])))
    shares, errors = np.array(expected).T
    tau = combine_effects(shares, errors**2, method_re="dl").tau2
    cells = made(tmp_path)["text"]
    cell = cells.loc[("between-task heterogeneity tau^2", "estimate")]
    assert cell["value"] == pytest.approx(tau, rel=1e-6)
    assert tau > 0
    assert pd.isna(cell["within"])
