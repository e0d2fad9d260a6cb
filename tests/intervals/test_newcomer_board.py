"""Newcomers on the board against one ranking of everything, and rules worked out by hand."""

import math
from functools import partial

import numpy as np
import pytest
from ratings_by_hand import Rated, heldout_of

from judgeline.intervals import Leaderboard, join_newcomers, rank_models

rank = partial(rank_models, method="soft")
join = partial(join_newcomers, miscoverage=0.1)


def voted() -> list[Rated]:
    rng = np.random.default_rng(0)
    return [
        Rated(f"voted{k:02d}", 1500 + 40 * k + 9 * rng.normal(), 1500.0 + 40 * k, 10.0 + k)
        for k in range(-6, 6)
    ]


def fresh() -> list[Rated]:
    return [
        Rated("new-a", 1512.0, None, 20.0, flags="no-votes"),
        Rated("new-b", 1290.0, None, 8.0, flags="no-votes"),
        Rated("new-c", math.nan, None, math.nan, flags="no-votes;too-few-battles"),
        Rated("new-a", 1600.0, None, 25.0, method="hard", flags="no-votes"),
    ]


def board_of(newcomers: list[Rated], others: list[Rated], **options) -> Leaderboard:
    calibrating = heldout_of(others)
    ranked = rank(heldout_of(newcomers), calibration=calibrating, **options)
    return join(rank(calibrating, **options), ranked, **options)


@pytest.mark.parametrize("miscoverage", [0.1, 0.3])
def test_a_joined_board_is_the_board_of_all(miscoverage):
    whole = rank(heldout_of([*voted(), *fresh()]), miscoverage=miscoverage)
    joined = board_of(fresh(), voted(), miscoverage=miscoverage)
    for name, ours, theirs in zip(Leaderboard._fields, joined, whole, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


def test_a_newcomer_with_votes_by_now_is_on_the_board_once_as_people_rated_it():
    joined = board_of([Rated("voted03", 1900.0, None, 5.0), *fresh()], voted())
    assert joined.model.tolist().count("voted03") == 1
    assert math.isfinite(joined.human_rating[joined.model == "voted03"][0])
    assert joined.model[0] == "voted05"


@pytest.mark.parametrize(
    ("corpus", "newcomer", "expected"),
    [(1400.0, 1450.0, 1450.0), (1400.0, math.nan, 1400.0), (math.nan, 1450.0, 1450.0)],
)
def test_of_a_model_without_votes_the_newcomer_stands_if_it_is_rated(corpus, newcomer, expected):
    others = [*voted(), Rated("both", corpus, None, 9.0)]
    joined = board_of([Rated("both", newcomer, None, 5.0)], others)
    assert joined.rating[joined.model == "both"].tolist() == [expected]


@pytest.mark.parametrize(("in_corpus", "own", "expected"), [(286, 200, 1400.0), (3, 200, 1450.0)])
def test_of_two_rated_ones_that_with_more_battles_stands(in_corpus, own, expected):
    calibrating = heldout_of([*voted(), Rated("both", 1400.0, None, 9.0)])
    met = np.where(calibrating.model == "both", in_corpus, calibrating.n_battles)
    newcomer = heldout_of([Rated("both", 1450.0, None, 5.0)])._replace(n_battles=np.array([own]))
    board = rank(calibrating._replace(n_battles=met))
    joined = join(board, rank(newcomer, calibration=calibrating))
    assert joined.rating[joined.model == "both"].tolist() == [expected]


def test_where_neither_is_rated_one_row_says_why():
    others = [*voted(), Rated("both", math.nan, None, math.nan, flags="no-votes")]
    joined = board_of([Rated("both", math.nan, None, math.nan, flags="not-judged")], others)
    assert joined.flags[joined.model == "both"].tolist() == ["not-judged"]


def test_too_few_models_that_calibrate_give_newcomers_the_whole_line():
    joined = board_of([Rated("new", 1500.0, None, 5.0)], voted()[:5], miscoverage=0.1)
    row = joined.model.tolist().index("new")
    assert (joined.lower[row], joined.upper[row]) == (-math.inf, math.inf)


def test_names_and_methods_that_cannot_be_are_refused():
    heldout = heldout_of(voted())
    new = Rated("new", 1.0, None, 5.0)
    with pytest.raises(ValueError, match="'new' is there twice"):
        join(rank(heldout), rank(heldout_of([new] * 2), calibration=heldout))
    hard = [row._replace(method="hard") for row in voted()]
    other = rank_models(
        heldout_of([new._replace(method="hard")]), calibration=heldout_of(hard), method="hard"
    )
    with pytest.raises(ValueError, match="by 'hard', the board by 'soft'"):
        join(rank(heldout), other)
