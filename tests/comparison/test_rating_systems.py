"""Four rating systems: published examples and twins, the order of battles, several judges."""

import math

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of
from scipy.stats import kendalltau, norm

from assets.comparison import assets as module
from assets.comparison.assets import compare_systems, summarise_systems
from assets.partitions import corpus_judge_key
from judgeline.steps.systems import (
    SYSTEMS,
    agreement_of,
    glicko2_ratings,
    rate_by_systems,
    trueskill_ratings,
)
from judgeline.tables.comparison import RATING_SYSTEMS
from judgeline.tables.reference import REFERENCE_RATINGS
from judgeline.tables.trust import SOFT_OUTCOMES
from resources.tables.expectations import result_of

NAMES = np.array(["ant", "bee", "cat", "dog", "emu", "fox"])
STRENGTH = np.linspace(-1.2, 1.2, 6)


def battles(n: int, seed: int = 0, ties: float = 0.1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pairs = np.array([rng.choice(6, 2, replace=False) for _ in range(n)])
    chance = 1 / (1 + np.exp(STRENGTH[pairs[:, 1]] - STRENGTH[pairs[:, 0]]))
    outcome = np.where(rng.uniform(size=n) < ties, 0.5, rng.uniform(size=n) < chance)
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(n)],
            "question_id": [f"q{i}" for i in range(n)],
            "model_a": NAMES[pairs[:, 0]],
            "model_b": NAMES[pairs[:, 1]],
            "outcome": outcome.astype(float),
        }
    )


def rate(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    return rate_by_systems(table, "cat", l2=0.01, seed=seed, stream=("corpus", "judge"))


def test_the_glicko_library_gives_the_published_example() -> None:
    from glicko2.math import mu_to_rating, phi_to_rd, rating_to_mu, rd_to_phi, update_rating

    met = [(1400, 30, 1), (1550, 100, 0), (1700, 300, 0)]
    games = [(rating_to_mu(r), rd_to_phi(d), s) for r, d, s in met]
    after = update_rating(rating_to_mu(1500), rd_to_phi(200), 0.06, games)
    assert mu_to_rating(after.mu) == pytest.approx(1464.06, abs=0.01)
    assert phi_to_rd(after.phi) == pytest.approx(151.52, abs=0.01)
    assert after.sigma == pytest.approx(0.05999, abs=1e-5)


def test_glicko_knows_no_absolute_rating() -> None:
    """A published implementation of another name lets volatility depend on the rating itself."""
    from glicko2.math import update_rating

    low, high = (update_rating(mu, 0.3, 0.06, [(mu, 0.3, 1.0)] * 10) for mu in (0.0, 5.0))
    assert high.mu - 5 == pytest.approx(low.mu, abs=1e-9)
    assert high.sigma == pytest.approx(low.sigma, abs=1e-12)


def trueskill_twin(first, second, outcome) -> np.ndarray:
    """Slow twin: the published two-player update, with exact normal distributions."""
    mu, var, b = np.full(3, 25.0), np.full(3, (25 / 3) ** 2), 25 / 6
    p_draw = ((outcome == 0.5).sum() + 0.5) / (outcome.size + 1)
    margin = norm.ppf((p_draw + 1) / 2) * math.sqrt(2) * b
    for i, j, y in zip(first, second, outcome, strict=True):
        if y < 0.5:
            i, j = j, i
        c = math.sqrt(2 * b**2 + var[i] + var[j])
        t, e = (mu[i] - mu[j]) / c, margin / c
        if y == 0.5:
            mass = norm.cdf(e - t) - norm.cdf(-e - t)
            v = (norm.pdf(-e - t) - norm.pdf(e - t)) / mass
            w = v**2 + ((e - t) * norm.pdf(e - t) - (-e - t) * norm.pdf(-e - t)) / mass
        else:
            v = norm.pdf(t - e) / norm.cdf(t - e)
            w = v * (v + t - e)
        step = var[[i, j]] / c
        mu[[i, j]] += step * np.array([v, -v])
        var[[i, j]] *= 1 - step / c * w
    return 400 / math.log(10) * 4 / math.sqrt(2 * math.pi) / (math.sqrt(2) * b) * mu


def test_trueskill_is_the_published_update() -> None:
    rng = np.random.default_rng(5)
    pairs = np.array([rng.choice(3, 2, replace=False) for _ in range(60)])
    outcome = rng.choice([0.0, 0.5, 1.0], 60)
    ours = trueskill_ratings(pairs[:, 0], pairs[:, 1], outcome, 3)
    twin = trueskill_twin(pairs[:, 0], pairs[:, 1], outcome)
    assert ours == pytest.approx(twin, abs=0.05)  # the library's normal tail has seven digits


@pytest.mark.parametrize("system", [glicko2_ratings, trueskill_ratings])
def test_swapping_sides_changes_nothing(system) -> None:
    table = battles(80)
    first, second = (np.searchsorted(NAMES, table[side]) for side in ("model_a", "model_b"))
    outcome = table["outcome"].to_numpy()
    swapped = system(second, first, 1 - outcome, 6)
    assert system(first, second, outcome, 6) == pytest.approx(swapped, abs=1e-6)


def test_systems_find_the_order_and_nearly_the_ruler_of_true_strengths() -> None:
    found = rate(battles(6000)).pivot_table("rating", index="model", columns="system")
    truth = STRENGTH * 400 / math.log(10)
    for system in SYSTEMS:
        rating = found.loc[NAMES, system].to_numpy()
        assert kendalltau(rating, truth).statistic == pytest.approx(1), system
        ruler = np.polyfit(truth, rating, 1)[0]
        assert 0.75 < ruler < 1.15, system


def test_order_matters_for_two_systems_only_and_seeds_repeat() -> None:
    table = battles(300)
    found = rate(table)
    spread = found.groupby("system")["order_spread"].max()
    assert spread[["glicko-2", "trueskill"]].gt(0).all()
    assert spread[["bradley-terry", "reference-anchored"]].isna().all()
    pd.testing.assert_frame_equal(found, rate(table))
    still = found["system"].isin(["bradley-terry", "reference-anchored"])
    assert not rate(table, seed=1)[~still]["rating"].equals(found[~still]["rating"])
    pd.testing.assert_frame_equal(found[still], rate(table, seed=1)[still])


def test_all_ties_leave_everyone_equal_and_a_model_that_always_wins_stays_finite() -> None:
    tied = rate(battles(60).assign(outcome=0.5))
    assert tied["rating"].to_numpy() == pytest.approx(0, abs=1e-6)
    table = battles(200)
    best = np.where(table["model_a"].eq("fox"), 1.0, table["outcome"])
    table["outcome"] = np.where(table["model_b"].eq("fox"), 0.0, best)
    found = rate(table)
    assert np.isfinite(found["rating"]).all()
    assert found.loc[found.groupby("system")["rating"].idxmax(), "model"].eq("fox").all()


def test_who_cannot_be_compared_is_named_and_not_placed() -> None:
    table = battles(60)
    apart = table[:2].assign(
        battle_id=["x", "y"], question_id=["x", "y"], model_a="gnu", model_b="hen"
    )
    found = rate(pd.concat([table, apart], ignore_index=True))
    alone = found[found["model"].isin(["gnu", "hen"])]
    assert alone["rating"].isna().all()
    assert alone["note"].eq("no chain of battles to the other models").all()
    star = table[~(table["model_a"].eq("fox") & table["model_b"].eq("cat"))]
    star = star[~(star["model_b"].eq("fox") & star["model_a"].eq("cat"))]
    gap = rate(star).query("model == 'fox' and system == 'reference-anchored'")
    assert gap["rating"].isna().all()
    assert gap["note"].item() == "no battle with the reference"


def test_spread_over_judges_is_a_standard_deviation_of_centred_ratings() -> None:
    judges = {name: rate(battles(400, seed)) for seed, name in enumerate(("x", "y", "z"))}
    table = compare_systems(judges)
    assert len(table) == 3 * 4 * 6
    assert table.groupby(["judge", "system"])["rating"].mean().to_numpy() == pytest.approx(1500)
    one = table[table["system"].eq("trueskill") & table["model"].eq("ant")]
    assert one["judge_spread"].to_numpy() == pytest.approx(np.std(one["rating"], ddof=1))
    summary = summarise_systems(table).set_index("system")
    assert summary.loc["bradley-terry", "kendall"] == pytest.approx(1)
    assert summary["judge_spread"].gt(0).all()
    ratio = summary["judge_spread"] / summary["model_spread"]
    assert summary["relative_spread"].to_numpy() == pytest.approx(ratio.to_numpy())


def test_spread_needs_several_judges_that_rate_the_model() -> None:
    table = battles(300)
    rated = rate(table)
    assert compare_systems({"x": rated, "y": rated})["judge_spread"].to_numpy() == pytest.approx(0)
    alone = compare_systems({"x": rated})
    assert alone["judge_spread"].isna().all()
    assert summarise_systems(alone)["judge_spread"].isna().all()
    without = table[~(table[["model_a", "model_b"]] == "fox").any(axis=1)]
    found = compare_systems({"x": rated, "y": rate(without)})
    assert (found["judge_spread"].isna() == found["model"].eq("fox")).all()
    common = found[found["model"].ne("fox")].groupby(["judge", "system"])["rating"].mean()
    assert common.to_numpy() == pytest.approx(1500)


def test_agreement_is_kappa_on_shared_battles() -> None:
    x = pd.Series({"b0": 1.0, "b1": 0.0, "b2": 1.0, "b3": 0.0})
    found = agreement_of({"x": x, "y": pd.concat([x[:3], pd.Series({"b9": 1.0})])})
    assert found == {"n_shared_battles": 3, "mean_kappa": 1, "reliability_factor": 1}
    assert agreement_of({"x": x}) == {"n_shared_battles": 4}
    assert "reliability_factor" not in agreement_of({"x": x, "y": 1 - x})
    assert agreement_of({"x": x * 0, "y": x * 0}) == {"n_shared_battles": 4}  # one class only


# ------------------------------------------------------------------ the asset and its checks


def systems(sign: int = 1) -> pd.DataFrame:
    rows = [
        {"system": s, "judge": "x", "model": m, "rating": 1500.0 + i * sign, "note": ""}
        for s, sign in (("bradley-terry", 1), ("trueskill", sign))
        for i, m in enumerate("abcd")
    ]
    return pd.DataFrame(rows).assign(order_spread=np.nan, judge_spread=np.nan, n_battles=9)


def test_a_note_explains_a_rating_that_is_not_there():
    table = systems()
    lacking = table.assign(rating=table["rating"].where(table["model"].ne("c")))
    note = lacking["note"].mask(lacking["model"].eq("c"), "no battle with the reference")
    check = result_of(RATING_SYSTEMS, "every_system_rates_every_model", lacking.assign(note=note))
    assert check.passed


def test_systems_that_order_differently_warn():
    assert module.systems_agree_on_the_order(systems()).passed
    assert module.systems_agree_on_the_order(RATING_SYSTEMS.empty()).passed
    result = module.systems_agree_on_the_order(systems(sign=-1))
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "trueskill" in result.description


def soft_outcomes(ids: str, outcome: float = 0.5, source: str = "likelihood") -> pd.DataFrame:
    return pd.DataFrame({"battle_id": list(ids), "source": source, "outcome": outcome})


SCORED = pd.DataFrame({"battle_id": ["b"], "judge_outcome": [1.0]})


@pytest.mark.parametrize(
    ("scored", "soft", "expected"),
    [
        (SCORED, soft_outcomes("b", 0.0), {"b": 1.0}),
        (None, soft_outcomes("b", 0.0), {"b": 0.0}),
        (None, soft_outcomes("b", source="choice"), {}),
        (None, None, {}),
        (SCORED.head(0), soft_outcomes("b", 0.0), {"b": 0.0}),
        (SCORED, soft_outcomes("bcd"), dict.fromkeys("bcd", 0.5)),  # a third would tell less
    ],
)
def test_outcomes_are_of_scores_where_there_are_any(scored, soft, expected):
    assert module.outcomes_of(scored, soft).to_dict() == expected


@pytest.mark.parametrize("withheld", [False, True])
def test_withheld_judges_are_not_rated(withheld, sampled_battles, scored_battles, tmp_path):
    entry = "stub: {reader: battles, location: x.csv, reference: {model: ant}}"
    catalog = catalog_of(tmp_path, corpora=entry)
    flags = "withheld: kappa 0.1" if withheld else ""
    board = pd.DataFrame({"model": ["ant"], "flags": [flags]})
    tables = (scored_battles, SOFT_OUTCOMES.empty(), REFERENCE_RATINGS.empty(), board)
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_asset_context(partition_key="stub", instance=instance)
        per_judge = [{corpus_judge_key("stub", "x"): table} for table in tables]
        result = module.rating_systems(context, sampled_battles, *per_judge, catalog)
    if withheld:
        pd.testing.assert_frame_equal(result.value, RATING_SYSTEMS.empty())
        assert result.metadata["left_out"] == ["x"]
        assert "withheld x" in result.metadata
        assert "no judge has outcomes" in result.metadata["note"]
    else:
        assert len(result.value) == 16
        assert result.metadata["judges"] == ["x"]
        assert result.metadata["note"].startswith("one judge")
        assert result.metadata["n_shared_battles"] == 60
        assert "bradley-terry" in result.metadata["summary"].value
