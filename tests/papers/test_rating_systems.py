"""Four rating systems: published examples and twins, the order of battles, agreement of judges."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, norm

from papers.systems import (
    SYSTEMS,
    agreement_of,
    glicko2_ratings,
    rate_by_systems,
    trueskill_ratings,
)

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


def test_agreement_is_kappa_on_shared_battles() -> None:
    x = pd.Series({"b0": 1.0, "b1": 0.0, "b2": 1.0, "b3": 0.0})
    found = agreement_of({"x": x, "y": pd.concat([x[:3], pd.Series({"b9": 1.0})])})
    assert found == {"n_shared_battles": 3, "mean_kappa": 1, "reliability_factor": 1}
    assert agreement_of({"x": x}) == {"n_shared_battles": 4}
    assert "reliability_factor" not in agreement_of({"x": x, "y": 1 - x})
    assert agreement_of({"x": x * 0, "y": x * 0}) == {"n_shared_battles": 4}  # one class only
