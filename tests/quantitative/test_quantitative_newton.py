import numpy as np
import pytest
from quantitative_twin import logistic_weights, spreads

from judgeline.quantitative.newton import coordinates, fit_many


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "n_features"), [(40, 384), (40, 39), (40, 38), (60, 5)])
@pytest.mark.parametrize("penalty", [0.1, 10.0])
def test_a_fit_is_that_of_its_own_with_more_features_than_rows_too(
    n_rows: int, n_features: int, penalty: float
) -> None:
    rng = np.random.default_rng(4)
    base = rng.normal(size=n_rows)
    embeddings = rng.normal(size=(n_rows, n_features)) + base[:, None] * rng.normal(size=n_features)
    outcome = (rng.random(n_rows) < 1 / (1 + np.exp(-2 * base))).astype(float)
    weights = rng.choice([0.5, 1.0], n_rows)
    where = coordinates(embeddings, base, weights)
    found = fit_many(
        where, weights[:, None], outcome, np.array([penalty]), base_penalty=0.01, tolerance=1e-10
    )[:, 0]
    own = logistic_weights(
        embeddings,
        base,
        outcome,
        weights,
        penalty=penalty,
        base_penalty=0.01,
        scales=spreads(embeddings, base),
    )
    expected = embeddings @ own[:-2] + own[-2] * base + own[-1]
    assert found == pytest.approx(expected, abs=1e-7)


def test_a_score_that_explains_nothing_leaves_no_axis_to_add() -> None:
    rng = np.random.default_rng(0)
    where = coordinates(rng.normal(size=(8, 20)), np.ones(8), np.ones(8))
    assert np.isfinite(where.columns).all()
    assert np.isfinite(where.mixing).all()
