"""Agreement of raters: against kappa of two, and who votes at random."""

import math

import numpy as np
import pytest

from judgeline.reliability import cohen_kappa, rater_agreement


def test_two_raters_have_cohens_kappa() -> None:
    rng = np.random.default_rng(0)
    first = rng.choice([0, 0.5, 1], 200)
    second = np.where(rng.random(200) < 0.6, first, rng.choice([0, 0.5, 1], 200))
    found = rater_agreement([*range(200)] * 2, ["x"] * 200 + ["y"] * 200, [*first, *second])
    assert found.agreement == pytest.approx((first == second).mean())
    assert found.kappa == pytest.approx(cohen_kappa(first, second))
    assert found.n_pairs.tolist() == [200, 200]
    assert not found.at_random.any()  # of two, nobody knows which


def test_who_votes_at_random_is_found_and_nobody_else() -> None:
    hits = {"by chance": 0, "others": 0}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        truth = rng.choice([0.0, 1.0], 80)
        votes = {name: np.where(rng.random(80) < 0.8, truth, 1 - truth) for name in "abc"}
        votes["d"] = rng.choice([0.0, 1.0], 80)
        names = np.repeat([*votes], 80)
        found = rater_agreement(np.tile(np.arange(80), 4), names, np.concatenate([*votes.values()]))
        hits["by chance"] += bool(found.at_random[3])
        hits["others"] += int(found.at_random[:3].sum())
    assert hits["by chance"] >= 90
    assert hits["others"] <= 3


def test_votes_on_nothing_in_common_say_nothing() -> None:
    found = rater_agreement(["p", "q"], ["x", "y"], [1, 1])
    assert math.isnan(found.agreement)
    assert found.n_pairs.tolist() == [0, 0]
    with pytest.raises(ValueError, match="voted twice"):
        rater_agreement(["p", "p"], ["x", "x"], [1, 0])
