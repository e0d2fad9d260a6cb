"""Battles of a new model: their number against a closed form and a simulation, the choice against
a slow twin."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgeline.elo import FEW_BATTLES
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


@given(st.lists(st.floats(-5, 5), max_size=30))
@settings(max_examples=40)
def test_bands_rise_with_strength_and_are_even(strengths: list[float]) -> None:
    bands = strength_bands(strengths)
    order = np.argsort(strengths, kind="stable")
    assert (np.diff(bands[order]) >= 0).all()
    counts = np.bincount(bands) if len(bands) else np.array([0])
    assert counts.max() - counts.min() <= 1
    assert len(set(bands.tolist())) == min(N_BANDS, len(strengths))
    with pytest.raises(ValueError, match="finite"):
        strength_bands([1.0, math.nan])


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
