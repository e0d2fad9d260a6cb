import math

import numpy as np
import pytest
from scipy.special import polygamma

from judgeline.elo.scale import ELO_PER_LOGIT
from judgeline.reference.gaps import bootstrap_gap_std_error


def spread(preference, n_resamples: int = 4000, seed: int = 3) -> float:
    rng = np.random.default_rng(seed)
    return bootstrap_gap_std_error(preference, n_resamples=n_resamples, rng=rng)


def test_wins_and_losses_spread_as_the_beta_posterior_does() -> None:
    """Oracle: log-odds of a Beta(a, b) have variance trigamma(a) + trigamma(b)."""
    won, lost = 25, 15
    exact = ELO_PER_LOGIT * math.sqrt(polygamma(1, won + 0.5) + polygamma(1, lost + 0.5))
    found = spread([1.0] * won + [0.0] * lost)
    assert found == pytest.approx(exact, rel=4 / math.sqrt(2 * 4000))


def test_swapping_sides_and_silent_prompts_change_nothing() -> None:
    values = np.random.default_rng(0).uniform(size=30)
    assert spread(1 - values) == pytest.approx(spread(values), rel=4 / math.sqrt(4000))
    assert spread(np.append(values, [np.nan, np.nan])) == spread(values)


@pytest.mark.parametrize("value", [0.0, 0.3, 0.5, 1.0])
def test_equal_preferences_show_no_spread(value: float) -> None:
    assert spread([value] * 7) == 0.0


@pytest.mark.parametrize(
    ("preference", "n_resamples", "message"),
    [
        ([[0.1, 0.2]], 10, r"shape \(prompts,\), got \(1, 2\)"),
        ([0.1, 0.2], 1, "got 1"),
        ([math.nan], 10, "no prompt has a verdict"),
        ([0.5, 1.5], 10, "holds 1.5"),
    ],
)
def test_bad_input_names_the_value(preference, n_resamples: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        spread(preference, n_resamples)
