"""Battles of a new model: their number against a closed form and a simulation, the choice against
a slow twin."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from judgeline.elo import ELO_PER_LOGIT, FEW_BATTLES
from judgeline.elo.strengths import analytic_std_error, place_models
from judgeline.intervals import conformal_quantile
from judgeline.sampling import N_BANDS, choose_battles, needed_battles, strength_bands

AIM = {"threshold": 2.0, "half_width": 50.0, "max_battles": 1000}


@pytest.mark.parametrize(
    ("errors", "counts", "changes", "n", "wanted"),
    [
        # 30 Elo after 100 battles is 300 over the root; 2 * 300 / sqrt(n) = 50 at n = 144
        ([30.0, 30.0], [100, 100], {}, 144, 144.0),
        ([30.0, 60.0, 15.0], [100, 25, 400], {}, 144, 144.0),  # models of other sizes say the same
        # 25^2 - 15^2 = 20^2: 300 / sqrt(n) = 20 at n = 225
        ([30.0], [100], {"excess_sd": 15.0}, 225, 225.0),
        ([30.0], [100], {"excess_sd": 25.0}, 1000, math.inf),  # no number averages that out
        ([30.0], [100], {"threshold": math.inf}, 1000, math.inf),  # too few models calibrate
        ([math.nan, 0.0], [100, 100], {}, 1000, math.inf),  # nothing is known of the noise
        ([], [], {}, 1000, math.inf),
        ([1.0], [100], {}, FEW_BATTLES, 0.16),  # a handful would do, but not to know the error
        ([300.0], [100], {}, 1000, 14_400.0),
    ],
)
def test_the_number_follows_from_the_noise(errors, counts, changes, n, wanted) -> None:
    needed = needed_battles(errors, counts, **{**AIM, **changes})
    assert needed.n_battles == n
    assert needed.wanted == pytest.approx(wanted)
    if n == wanted:
        assert needed.half_width(n) == pytest.approx(50.0)
    else:
        assert needed.half_width(n) > 50 or n == FEW_BATTLES


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"threshold": -1.0}, "threshold is -1"),
        ({"threshold": math.nan}, "threshold is nan"),
        ({"half_width": 0.0}, "half_width is 0"),
        ({"max_battles": 0}, "max_battles is 0"),
        ({"n_battles": [100, 100]}, r"std_error \(1,\), n_battles \(2,\)"),
    ],
)
def test_a_bad_setting_is_named(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        needed_battles([30.0], **{"n_battles": [100], **AIM, **setting})


def _placed(strengths: np.ndarray, anchors: np.ndarray, n: int, rng: np.random.Generator):
    """Place models of known strengths by n decisive battles each; ratings and errors in Elo."""
    met = rng.integers(0, anchors.size, (strengths.size, n))
    chance = expit(strengths[:, None] - anchors[met])
    won = rng.random(chance.shape) < chance
    counts = np.array([np.bincount(row, minlength=anchors.size) for row in met])
    found = place_models(won.sum(axis=1), counts, anchors)
    expected = expit(found[:, None] - anchors[met])
    off = won - expected
    information = (expected * (1 - expected)).sum(axis=1) + 0.02
    errors = analytic_std_error(
        off.sum(axis=1), (off**2).sum(axis=1), information, np.full(strengths.size, n)
    )
    return ELO_PER_LOGIT * found, ELO_PER_LOGIT * errors


def test_the_half_width_aimed_at_is_reached_and_covers() -> None:
    """The pool has 150 battles a model; a fresh model gets the number that 60 Elo takes."""
    rng = np.random.default_rng(5)
    anchors = 0.6 * rng.standard_normal(25)
    pool = 0.6 * rng.standard_normal(40)
    rating, error = _placed(pool, anchors, 150, rng)
    threshold = conformal_quantile(np.abs(rating - ELO_PER_LOGIT * pool) / error, miscoverage=0.1)
    needed = needed_battles(
        error, np.full(40, 150), threshold=threshold, half_width=60.0, max_battles=5000
    )
    assert 60 < needed.n_battles < 600
    fresh = 0.6 * rng.standard_normal(600)
    found, own = _placed(fresh, anchors, needed.n_battles, rng)
    half_widths = threshold * own
    # one standard error varies by 2 % or so from model to model, by where it stands
    assert np.median(half_widths) == pytest.approx(60.0, rel=0.05)
    assert needed.half_width(needed.n_battles) == pytest.approx(60.0, rel=0.01)
    covered = np.abs(found - ELO_PER_LOGIT * fresh) <= half_widths
    # 40 scores: coverage given the pool has a Beta(37, 4) spread of 0.046, and 600 draws 0.012
    assert covered.mean() == pytest.approx(37 / 41, abs=4 * math.hypot(0.046, 0.012))


@given(st.lists(st.floats(-5, 5), max_size=30), st.integers(1, 8))
@settings(max_examples=40)
def test_bands_rise_with_strength_and_are_even(strengths: list[float], n_bands: int) -> None:
    bands = strength_bands(strengths, n_bands=n_bands)
    order = np.argsort(strengths, kind="stable")
    assert (np.diff(bands[order]) >= 0).all()
    counts = np.bincount(bands) if len(bands) else np.array([0])
    assert counts.max() - counts.min() <= 1
    assert len(set(bands.tolist())) == min(n_bands, len(strengths))
    assert strength_bands(np.arange(20.0)[::-1])[0] == N_BANDS - 1  # the strongest


def test_a_strength_must_be_known() -> None:
    with pytest.raises(ValueError, match="finite"):
        strength_bands([1.0, math.nan])
    with pytest.raises(ValueError, match="n_bands is 0"):
        strength_bands([1.0], n_bands=0)


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, np.ndarray]:
    n = draw(st.integers(0, 40))
    groups = {
        name: np.array(draw(st.lists(st.integers(0, top), min_size=n, max_size=n)), dtype=int)
        for name, top in (("band", 3), ("language", 2), ("question", 6), ("opponent", 5))
    }
    shares = np.array([0.6, 0.3, 0.1])[groups["language"]]
    return {
        **groups,
        "tiebreak": np.array(draw(st.permutations(range(n))), dtype=int),
        "share": shares,
    }


def _choose(
    world: dict[str, np.ndarray], n: int, chosen: tuple[int, ...] = (), most: float = math.inf
) -> list[int]:
    return choose_battles(**world, n_battles=n, chosen=chosen, most_per_question=most).tolist()


def _twin(world: dict[str, np.ndarray], n: int, chosen: tuple[int, ...], most: float) -> list[int]:
    """The rule as it is told, with nothing kept from one step to the next."""
    taken = list(chosen)
    size = len(world["tiebreak"])

    def met(name: str, row: int) -> int:
        return sum(world[name][other] == world[name][row] for other in taken)

    while len(taken) < n:
        left = [row for row in range(size) if row not in taken and met("question", row) < most]
        if not left:
            break
        taken.append(
            min(
                left,
                key=lambda row: (
                    met("band", row),
                    met("question", row),
                    (2 * met("language", row) + 1) / world["share"][row],
                    met("opponent", row),
                    world["tiebreak"][row],
                ),
            )
        )
    return taken


@settings(deadline=None)
@given(worlds(), st.integers(0, 45), st.integers(0, 10), st.sampled_from([1, 2, math.inf]))
def test_the_choice_is_that_of_the_slow_twin(world: dict, n: int, kept: int, most: float) -> None:
    """So a choice goes on as if it had never stopped, and the order of the table is nothing."""
    chosen = tuple(np.argsort(world["band"] - world["tiebreak"], kind="stable")[:kept].tolist())
    assert _choose(world, n, chosen, most) == _twin(world, n, chosen, most)


def test_a_question_is_not_repeated_for_the_sake_of_a_language() -> None:
    """Two thirds are English; the third battle is on the other French question all the same."""
    world = {
        "band": np.zeros(6, dtype=int),
        "language": np.array([0, 0, 0, 0, 1, 1]),
        "question": np.array([0, 0, 0, 0, 1, 2]),
        "opponent": np.arange(6),
        "tiebreak": np.arange(6),
        "share": np.array([2 / 3] * 4 + [1 / 3] * 2),
    }
    assert world["question"][_choose(world, 3)].tolist() == [0, 1, 2]


def test_bands_are_met_evenly_and_languages_in_their_shares() -> None:
    rng = np.random.default_rng(2)
    n = 4000
    language = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    world = {
        "band": rng.choice(5, n, p=[0.6, 0.1, 0.1, 0.1, 0.1]),
        "language": language,
        "question": rng.integers(0, 400, n),
        "opponent": rng.integers(0, 20, n),
        "tiebreak": rng.permutation(n),
        "share": np.array([0.5, 0.3, 0.2])[language],
    }
    rows = _choose(world, 100)
    assert np.bincount(world["band"][rows]).tolist() == [20] * 5
    assert np.bincount(language[rows]).tolist() == [50, 30, 20]
    assert np.bincount(world["question"][rows]).max() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"share": [1.0, 0.0]}, "above 0"),
        ({"band": [0]}, r"band \(1,\), question \(2,\).*expected a value for each row"),
        ({"n_battles": -1}, "n_battles is -1"),
        ({"most_per_question": 0.5}, "most_per_question is 0.5"),
        ({"chosen": [2]}, "position is 2 in row 0"),
        ({"chosen": [1, 1]}, "chosen twice"),
    ],
)
def test_bad_input_is_named(change: dict, message: str) -> None:
    world = {name: [0, 1] for name in ("band", "language", "question", "opponent", "tiebreak")}
    with pytest.raises(ValueError, match=message):
        choose_battles(**{**world, "share": [0.5, 0.5], "n_battles": 1, **change})
