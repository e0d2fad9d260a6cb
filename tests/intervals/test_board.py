"""The board: intervals, ranks and newcomers, by hand and against one ranking of everything."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lanes import sized
from ratings_by_hand import Rated, heldout_of
from scipy.stats import norm, studentized_range

from judgeline.intervals import (
    BEYOND,
    FAR,
    Leaderboard,
    VotedRatings,
    join_newcomers,
    rank_models,
)
from judgeline.intervals.board import range_quantile, rank_intervals

rank = partial(rank_models, method="soft")


def rows_of(board: Leaderboard) -> dict[str, dict[str, Any]]:
    return {
        str(row[3]): dict(zip(board._fields, row, strict=True)) for row in zip(*board, strict=True)
    }


def nine_calibrators() -> list[Rated]:
    """Nonconformity 0.1, 0.2, ... 0.9 at ratings 1400 apart from human by that many errors."""
    return [Rated(f"voted{k}", 1400.0 + k, 1400.0, 10.0) for k in range(1, 10)]


def test_a_new_model_gets_the_threshold_of_all_voted_models() -> None:
    new = Rated("new", 1600.0, None, 20.0, flags="no-votes")
    row = rows_of(rank(heldout_of([*nine_calibrators(), new]), miscoverage=0.1))["new"]
    # nine scores at 90 %: the ninth smallest, 0.9 standard errors of 20 points
    assert (row["lower"], row["upper"]) == pytest.approx((1582.0, 1618.0))
    assert (row["lower"], row["upper"]) == (row["judge_lower"], row["judge_upper"])
    assert row["evidence"] == "judge"
    assert row["flags"] == "no-votes;beyond-anchors"
    assert math.isnan(row["human_rating"])


@pytest.mark.parametrize("miscoverage", [0.1, 0.2, 0.4])
def test_a_voted_models_judge_interval_is_that_of_a_newcomer_like_it(miscoverage: float) -> None:
    """So the model that the judge misjudges most has no narrower interval than the others."""
    twins = [row._replace(model=f"new {row.model}", human=None) for row in nine_calibrators()]
    board = rows_of(rank(heldout_of([*nine_calibrators(), *twins]), miscoverage=miscoverage))
    for row in nine_calibrators():
        ends = [
            (board[name]["judge_lower"], board[name]["judge_upper"])
            for name in (row.model, f"new {row.model}")
        ]
        assert ends[0] == ends[1]
        reach = 10 * math.ceil((1 - miscoverage) * 10) / 10  # that rank of 0.1, 0.2, ... 0.9
        assert ends[0] == pytest.approx((row.rating - reach, row.rating + reach))


def test_too_few_models_bound_no_interval_by_the_judge() -> None:
    board = rank(heldout_of(nine_calibrators()[:8]), miscoverage=0.1)
    assert np.isneginf(board.judge_lower).all()
    assert np.isposinf(board.judge_upper).all()
    assert set(board.best_rank.tolist()) == {1}
    assert set(board.worst_rank.tolist()) == {8}


def test_flags_say_which_ratings_are_far_from_people_or_beyond_them() -> None:
    rows = [
        *nine_calibrators(),
        Rated("above", 1409.5, None, 10.0),
        Rated("within", 1400.0, None, 10.0),
        Rated("below", 1390.0, None, 10.0),
    ]
    rows[0] = rows[0]._replace(rating=1410.0, human=1409.0)
    board = rows_of(rank(heldout_of(rows), miscoverage=0.2))
    raised = {name: row["flags"] for name, row in board.items() if row["flags"]}
    # the threshold is 0.8 standard errors; people's ratings are 1400 and 1409
    assert raised == {"voted9": FAR, "above": BEYOND, "below": BEYOND}


@pytest.mark.parametrize("outward", [25.0, -25.0, 0.0, math.nan])
def test_the_end_away_from_the_anchors_moves_outward(outward: float) -> None:
    new = Rated("new", 1600.0, None, 20.0, outward=outward, bootstrap=20.0)
    rows = [row._replace(bootstrap=10.0) for row in nine_calibrators()]
    calibrated, published = (
        rows_of(rank(heldout_of([*rows, new]), std_error="bootstrap", intervals=kind))["new"]
        for kind in ("calibrated", "published")
    )
    known = 0.0 if math.isnan(outward) else outward
    ends = 1582.0 + min(known, 0), 1618.0 + max(known, 0)
    assert (calibrated["lower"], calibrated["upper"]) == pytest.approx(ends)
    assert (published["lower"], published["upper"]) == pytest.approx((1582.0, 1618.0))
    assert calibrated["rating"] == published["rating"] == 1600.0


def test_a_published_interval_leaves_out_votes_noise_and_excess() -> None:
    rows = [
        row._replace(human_error=2.0, vote_error=30.0, bootstrap=10.0) for row in nine_calibrators()
    ]
    new = Rated("new", 1405.0, None, 1.0, bootstrap=20.0, vote_error=40.0)
    row = rows_of(rank(heldout_of([*rows, new]), std_error="bootstrap", intervals="published"))
    assert row["new"]["judge_upper"] - row["new"]["judge_rating"] == pytest.approx(18.0)


# ------------------------------------------------------------------ the best evidence


def voted_rating(model: str, n_votes: int, *, bounded: bool) -> VotedRatings:
    reach = 15.0 if bounded else math.inf
    columns = ([model], [1450.0], [9.0], [1450 - reach], [1450 + reach], [n_votes])
    return VotedRatings(*map(np.array, columns))


NOBODY = VotedRatings(*np.empty((6, 0)))
_NORMAL = 12 * norm.ppf(0.95)
BY_VOTES = (1430.0, 1430 - _NORMAL, 1430 + _NORMAL, 12.0)
OF_FEW_VOTES = (1430.0, -math.inf, math.inf, 12.0)
BY_BOTH = (1450.0, 1435.0, 1465.0, 9.0)
WITHOUT_ENDS = (1450.0, -math.inf, math.inf, 9.0)
BY_JUDGE_ALONE = (1500.0, 1482.0, 1518.0, 20.0)
NOTHING = (math.nan,) * 4


@pytest.mark.parametrize(
    ("judge", "human", "n_votes", "posterior", "n_others", "expected", "evidence"),
    [
        (1500.0, 1430.0, 40, "bounded", 9, BY_BOTH, "judge and 40 votes"),
        (1500.0, 1430.0, 1, "bounded", 9, BY_BOTH, "judge and 1 vote"),
        (1500.0, 1430.0, 20, "endless", 4, BY_VOTES, "20 votes"),
        (1500.0, 1430.0, 19, "endless", 4, WITHOUT_ENDS, "judge and 19 votes"),
        (1500.0, 1430.0, 40, "", 9, BY_VOTES, "40 votes"),
        (1500.0, 1430.0, 5, "", 9, BY_JUDGE_ALONE, "judge"),
        (1500.0, 1430.0, 5, "", 4, (1500.0, -math.inf, math.inf, 20.0), "judge"),
        (1500.0, None, 0, "", 9, BY_JUDGE_ALONE, "judge"),
        (1500.0, None, 0, "", 4, (1500.0, -math.inf, math.inf, 20.0), "judge"),
        (math.nan, 1430.0, 30, "", 9, BY_VOTES, "30 votes"),
        (math.nan, 1430.0, 7, "", 9, OF_FEW_VOTES, "7 votes"),
        (math.nan, None, 0, "", 9, NOTHING, ""),
    ],
)
def test_a_rating_is_the_best_that_a_models_own_evidence_supports(
    judge, human, n_votes, posterior, n_others, expected, evidence
) -> None:
    error = math.nan if math.isnan(judge) else 20.0
    own = Rated("own", judge, human, error, human_error=12.0, n_votes=n_votes)
    # its residual calibrates too: nine others of its own spread keep the threshold at 0.9
    others = [Rated(f"m{k}", 1400.0 + k, 1400.0, 10.0) for k in range(10 - n_others, 10)]
    together = voted_rating("own", n_votes, bounded=posterior == "bounded") if posterior else NOBODY
    pool = heldout_of([*others, own._replace(model="unlike", human=None)])
    board = rank(heldout_of([own, *others]), together, calibration=pool)
    row = rows_of(board)["own"]
    found = [row[name] for name in ("rating", "lower", "upper", "std_error")]
    assert found == pytest.approx(expected, nan_ok=True)
    assert row["evidence"] == evidence
    np.testing.assert_array_equal(row["judge_rating"], judge)
    np.testing.assert_array_equal(row["human_rating"], math.nan if human is None else human)
    alone = rows_of(rank(heldout_of([own, *others]), calibration=pool))["own"]
    by_judge = alone["evidence"] == "judge"
    assert by_judge is not math.isnan(judge), "without votes beside them the judge comes first"


def test_rows_follow_the_best_rating_and_not_the_judges() -> None:
    rows = [*nine_calibrators(), Rated("new", 1460.0, None, 10.0)]
    board = rank(heldout_of(rows), voted_rating("voted9", 40, bounded=True))
    assert board.model.tolist()[:2] == ["new", "voted9"]
    raised = voted_rating("voted1", 40, bounded=True)._replace(rating=np.array([1461.0]))
    board = rank(heldout_of(rows), raised)
    assert board.model.tolist()[:3] == ["voted1", "new", "voted9"]
    assert board.rank.tolist() == [*range(1, 11)]


def test_rows_are_ranked_by_rating_and_ties_by_name_and_the_unrated_come_last() -> None:
    rated = zip("dbcae", (9, 7, 9, 8, math.nan), strict=True)
    rows = [Rated(name, rating, None, 1.0, flags="why" * (name == "e")) for name, rating in rated]
    board = rank(heldout_of(rows))
    assert board.model.tolist() == ["c", "d", "a", "b", "e"]
    assert board.rank.tolist()[:4] == [1, 2, 3, 4]
    last = rows_of(board)["e"]
    unknown = ("rating", "lower", "upper", "rank", "best_rank", "worst_rank")
    assert all(math.isnan(last[field]) for field in unknown)
    assert last["flags"] == "why"


# ------------------------------------------------------------------ ranks that chance allows


def test_ranks_of_three_models_by_hand() -> None:
    """Standard errors of 10 at 90 %: two of three models are apart from 29.02 points on."""
    half_width = np.full(3, 10 * norm.ppf(0.95))
    apart = 10 * studentized_range.ppf(0.9, 3, np.inf)
    assert apart == pytest.approx(29.02, abs=0.01)  # printed tables: 2.902
    for gap, best, worst in (
        (apart + 1, [1, 2, 3], [1, 2, 3]),
        (apart - 1, [1, 1, 2], [2, 3, 3]),
        (apart / 2 - 1, [1, 1, 1], [3, 3, 3]),
    ):
        ratings = [1500 + gap, 1500.0, 1500 - gap]
        found = rank_intervals(ratings, half_width, miscoverage=0.1)
        assert [side.tolist() for side in found] == [best, worst]


@pytest.mark.parametrize("n_models", [2, 3, 14, 55, 1000])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
def test_the_quantile_of_a_range_is_scipys(n_models: int, share: float) -> None:
    expected = studentized_range.ppf(share, n_models, np.inf)
    assert range_quantile(share, n_models) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 12), st.integers(0, 10_000), st.floats(0.01, 0.5))
@settings(max_examples=40)
def test_rank_intervals_hold_the_rank_and_follow_the_ratings(n_models, seed, miscoverage):
    rng = np.random.default_rng(seed)
    rating = np.sort(rng.normal(1500, 100, n_models))[::-1]
    half_width = rng.exponential(60, n_models)
    best, worst = rank_intervals(rating, half_width, miscoverage=miscoverage)
    ranks = np.arange(1, n_models + 1)
    assert ((best >= 1) & (best <= ranks) & (ranks <= worst) & (worst <= n_models)).all()
    assert (np.diff(best) >= 0).all()
    assert (np.diff(worst) >= 0).all()
    open_ended = rank_intervals(rating, np.full(n_models, math.inf), miscoverage=miscoverage)
    assert [side.tolist() for side in open_ended] == [[1] * n_models, [n_models] * n_models]


@pytest.mark.parametrize("spread", [0.0, 20.0])
def test_all_true_ranks_lie_within_at_once_at_the_stated_rate(spread: float) -> None:
    """Of equal models any order is true: chance alone parts two of them in 10 %, exactly."""
    rng, n_models, n_draws = np.random.default_rng(7), 6, sized(4000, 250)
    half_width = np.full(n_models, 10 * norm.ppf(0.95))
    truth, hits = -spread * np.arange(n_models), []
    for _ in range(n_draws):
        rating = truth + rng.normal(0, 10, n_models)
        order = np.argsort(-rating)
        best, worst = rank_intervals(rating[order], half_width, miscoverage=0.1)
        ranks = 1 + order
        inside = (best <= ranks) & (ranks <= worst) if spread else (best == 1) & (worst == n_models)
        hits.append(inside.all())
    within = 4 * math.sqrt(0.09 / n_draws)
    assert np.mean(hits) >= 0.9 - within
    assert spread or np.mean(hits) == pytest.approx(0.9, abs=within)


# ------------------------------------------------------------------ beside the rating


def test_other_methods_stand_beside_the_ranking_one() -> None:
    rows = [
        *nine_calibrators(),
        Rated("voted1", 1300.0, 1400.0, 7.0, method="hard"),
        Rated("voted1", 1400.0, 1400.0, 3.0, method="human"),
    ]
    rows[0] = rows[0]._replace(beta=0.7)
    row = rows_of(rank(heldout_of(rows)))["voted1"]
    assert (row["rating"], row["soft_rating"], row["hard_rating"]) == (1401.0, 1401.0, 1300.0)
    assert (row["human_rating"], row["beta"], row["judge_std_error"]) == (1400.0, 0.7, 10.0)
    assert row["method"] == "soft"


@pytest.mark.parametrize("std_error", [0.0, math.nan])
def test_a_model_whose_battles_show_no_spread_gets_the_whole_line(std_error: float) -> None:
    new = Rated("new", 1900.0, None, std_error, flags="no-votes")
    row = rows_of(rank(heldout_of([*nine_calibrators(), new]), miscoverage=0.1))["new"]
    assert (row["rank"], row["rating"]) == (1, 1900.0)
    assert (row["lower"], row["upper"]) == (-math.inf, math.inf)
    assert row["flags"] == "no-votes;no-spread;beyond-anchors"


@pytest.mark.parametrize("method", ["human", "Soft", "elo"])
def test_an_unknown_method_is_refused_with_the_known_ones(method: str) -> None:
    rows = [*nine_calibrators(), Rated("voted1", 1400.0, 1400.0, 3.0, method="human")]
    with pytest.raises(ValueError, match=f"'{method}'.* soft"):
        rank_models(heldout_of(rows), method=method)


def test_the_bootstrap_error_can_scale_the_intervals() -> None:
    rows = [row._replace(bootstrap=5.0) for row in nine_calibrators()]
    new = Rated("new", 1600.0, None, 20.0, bootstrap=10.0)
    board = rows_of(rank(heldout_of([*rows, new]), std_error="bootstrap"))
    # residual 9 points of 5: 1.8 standard errors of 10 points
    assert board["new"]["upper"] == pytest.approx(1618.0)
    assert board["new"]["judge_std_error"] == 10.0


# ------------------------------------------------------------------ newcomers

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
    ("corpus", "own", "in_corpus", "newcomer"),
    [
        (1400.0, 1450.0, 50, "new"),  # as many battles
        (1400.0, math.nan, 50, ""),
        (math.nan, 1450.0, 50, "new"),
        (math.nan, math.nan, 50, "new"),
        (1400.0, 1450.0, 286, ""),
        (1400.0, 1450.0, 3, "new"),
    ],
)
def test_without_votes_the_rated_row_or_one_of_more_battles_stands(
    corpus, own, in_corpus, newcomer
):
    calibrating = heldout_of([*voted(), Rated("both", corpus, None, 9.0)])
    met = np.where(calibrating.model == "both", in_corpus, calibrating.n_battles)
    ranked = rank(heldout_of([Rated("both", own, None, 5.0, flags="new")]), calibration=calibrating)
    joined = join(rank(calibrating._replace(n_battles=met)), ranked)
    assert joined.flags[joined.model == "both"].tolist() == [newcomer]


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
