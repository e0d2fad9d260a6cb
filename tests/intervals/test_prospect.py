"""Half-widths after further votes: the fewest votes for one, against looking at each number."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from judgeline.intervals.planning import Prospect, prospect_by_votes

MOST = 400


@st.composite
def prospects(draw: st.DrawFn) -> Prospect:
    gaps = draw(st.lists(st.floats(0.3, 60), min_size=0, max_size=4))
    start = np.cumsum([draw(st.sampled_from([0.0, 2.5, 20.0])), *gaps])
    reach = draw(st.lists(st.floats(1, 4), min_size=start.size, max_size=start.size))
    precision = draw(st.sampled_from([0.0, 1e-4, 3e-3]))
    return Prospect(start, np.array(reach), precision, draw(st.floats(1, 4)))


def width_at(prospect: Prospect, n: float, vote_variance: float) -> float:
    """The half-width with exactly so many further votes, by the calibration that holds then."""
    precision = prospect.precision + n / (vote_variance * prospect.design_effect)
    if n < prospect.start[0] or not precision:
        return math.inf
    return float(prospect.reach[prospect.start <= n][-1] / math.sqrt(precision))


@given(prospects(), st.floats(20, 200), st.floats(5e3, 1e5))
def test_the_votes_for_a_width_are_the_fewest_that_hold_it(prospect, wanted, vote_variance) -> None:
    found = prospect.votes_for(wanted, vote_variance)
    looked = np.arange(MOST)
    wide = [width_at(prospect, n, vote_variance) > wanted * (1 + 1e-6) for n in looked]
    assert not any(wide[int(min(found, MOST)) :])
    if 0 < found <= MOST:
        assert width_at(prospect, found - 1, vote_variance) > wanted * (1 - 1e-6)


@given(prospects(), st.floats(0, 300), st.floats(5e3, 1e5))
def test_a_half_width_is_the_widest_from_there_on(prospect, n_more, vote_variance) -> None:
    later = np.r_[n_more, np.linspace(n_more, 2 * MOST, 999), prospect.start]
    widths = [width_at(prospect, n, vote_variance) for n in later[later >= n_more]]
    assert math.isclose(prospect.half_width(n_more, vote_variance), max(widths), rel_tol=1e-9)


def test_votes_alone_count_from_twenty_on() -> None:
    prospect = prospect_by_votes(0, math.nan, 2.0, miscoverage=0.1)
    assert math.isinf(prospect.half_width(19, 1e4))
    assert math.isclose(prospect.half_width(20, 1e4), 1.6448536 * math.sqrt(2e4 / 20), rel_tol=1e-6)
    assert prospect.votes_for(1e4, 1e4) == 20
