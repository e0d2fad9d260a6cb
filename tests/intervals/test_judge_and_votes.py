import math

import numpy as np
import pytest
from lanes import sized
from scipy.optimize import minimize_scalar
from scipy.special import expit

from judgeline.elo import (
    ELO_PER_LOGIT,
    RatingSettings,
    code_battles,
    rate,
    rating_to_strength,
    strength_to_rating,
)
from judgeline.elo.strengths import place_models
from judgeline.intervals import rate_by_votes, rate_with_votes
from judgeline.intervals.judge_and_votes import (
    CalibratingModels,
    JudgeVariance,
    QuestionVotes,
    VoteCalibration,
    _drawn_questions,
    calibrate_votes,
    combine_with_votes,
    judge_variance,
    leave_out,
)

ANCHORS = np.array([-1.0, -0.2, 0.3, 0.9])
WINS, VOTES = np.array([7.0, 4.5, 3.0, 1.0]), np.array([8, 6, 6, 4])


def calibration(variance: float, scores: tuple[float, ...] = (1.0,) * 9) -> VoteCalibration:
    names = tuple(f"model-{k}" for k in range(len(scores)))
    return VoteCalibration(JudgeVariance(variance, ""), names, np.array([scores]))


def together(judge_rating: float, variance: float, miscoverage: float = 0.1, **options: float):
    known = calibration(variance)
    return combine_with_votes(
        judge_rating, WINS, VOTES, ANCHORS, known, miscoverage=miscoverage, **options
    )


# ------------------------------------------------------------------ the rating


def test_a_judge_that_knows_nothing_or_all_leaves_the_human_rating_or_its_own() -> None:
    human = place_models([WINS.sum()], VOTES[None], ANCHORS, l2=0)[0]
    assert together(1900, 1e12).rating == pytest.approx(strength_to_rating(human), abs=1e-6)
    found = together(1623, 1e-12)
    assert found.rating == pytest.approx(1623, abs=1e-6)
    assert found.std_error == pytest.approx(ELO_PER_LOGIT * 1e-6, rel=1e-6)
    ratings = [together(1900, variance).rating for variance in (0.001, 0.01, 0.1, 1.0, 10.0)]
    assert ratings == sorted(ratings, reverse=True)
    none = np.zeros(4)
    found = combine_with_votes(1623, none, none, ANCHORS, calibration(0.04), miscoverage=0.1)
    assert found == pytest.approx((1623, 0.2 * ELO_PER_LOGIT, *found[2:]))


def test_votes_alone_are_placed_as_a_model_held_out_is() -> None:
    found, l2 = rate_by_votes(WINS, VOTES, ANCHORS, l2=0.02), 0.02
    strength = place_models([WINS.sum()], VOTES[None], ANCHORS, l2=l2)[0]
    chance = expit(strength - ANCHORS)
    information = (VOTES * chance * (1 - chance)).sum() + 2 * l2
    assert found.rating == pytest.approx(strength_to_rating(strength), abs=1e-6)
    assert found.std_error == pytest.approx(ELO_PER_LOGIT / math.sqrt(information), rel=1e-6)
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    shared = rate_by_votes(WINS, VOTES, ANCHORS, l2=0.02, design_effect=4)
    assert shared == found._replace(std_error=pytest.approx(2 * found.std_error))


@pytest.mark.parametrize("judge_rating", [1200.0, 1500.0, 1850.0])
@pytest.mark.parametrize(("variance", "design"), [(0.003, 1.0), (0.05, 2.5), (2.0, 1.7)])
def test_rating_is_the_mode_of_the_posterior(judge_rating, variance, design) -> None:
    """Oracle: the posterior written out, minimised by scipy, its curvature by differences.

    Votes that share questions count to the power of one over their design effect.
    """
    prior = rating_to_strength(judge_rating)

    def minus_log_posterior(strength: float) -> float:
        gap = strength - ANCHORS
        votes = WINS * np.logaddexp(0, -gap) + (VOTES - WINS) * np.logaddexp(0, gap)
        return float(votes.sum() / design + (strength - prior) ** 2 / (2 * variance))

    mode = minimize_scalar(minus_log_posterior, bounds=(-6, 6), options={"xatol": 1e-9}).x
    step = 1e-3
    ends = minus_log_posterior(mode - step) + minus_log_posterior(mode + step)
    bend = (ends - 2 * minus_log_posterior(mode)) / step**2
    found = together(judge_rating, variance, design_effect=design)
    assert found.rating == pytest.approx(strength_to_rating(mode), abs=2e-4)
    assert found.std_error == pytest.approx(ELO_PER_LOGIT / math.sqrt(bend), rel=1e-5)


# ------------------------------------------------------------------ the judge's variance


def test_variance_is_that_of_residuals_less_the_votes_noise() -> None:
    # mean of 900 - 100 and 1600 - 100, times 2 / 1
    found = judge_variance([30, -40], [10, 10], [5, 5])
    assert (found.variance, found.reason) == (pytest.approx(2300 / ELO_PER_LOGIT**2), "")
    # squares less noise are 800 and 1,500: their mean is known to 350
    assert found.doubt == pytest.approx(350 / ELO_PER_LOGIT**2)
    # a model of 15 Elo by the judge has 225 - 25 more
    assert found.of(15.0) == pytest.approx(2500 / ELO_PER_LOGIT**2)
    assert found.of(2.0) == found.variance
    # below the noise: nine squared Elo points, times 2 / 1
    assert judge_variance([3, -4], [10, 10], [1, 2]).variance == pytest.approx(
        18 / ELO_PER_LOGIT**2
    )
    # nor below the judge's own error: 25 squared Elo points, times 2 / 1
    assert judge_variance([3, -4], [10, 10], [5, 5]).variance == pytest.approx(
        50 / ELO_PER_LOGIT**2
    )


@pytest.mark.parametrize("residual", [[], [25.0]])
def test_variance_of_fewer_than_two_models_is_refused(residual: list[float]) -> None:
    found = judge_variance(residual, [10.0] * len(residual), [1.0] * len(residual))
    assert math.isnan(found.variance)
    assert f"{len(residual)} calibrating models: at least 2" in found.reason
    unknown = VoteCalibration(found, (), np.empty((9, 0)))
    rating = combine_with_votes(1600, WINS, VOTES, ANCHORS, unknown, miscoverage=0.1)
    assert np.isnan(rating).all()


# ------------------------------------------------------------------ the interval


def test_interval_is_the_median_threshold_in_standard_errors() -> None:
    scores = np.array([[0.5] * 8 + [top] for top in (1.0, 3.0, 2.0)])
    calibrated = calibration(0.05)._replace(nonconformity=scores)
    found = combine_with_votes(1600, WINS, VOTES, ANCHORS, calibrated, miscoverage=0.1)
    assert found.upper - found.rating == pytest.approx(2 * found.std_error)
    assert found.rating - found.lower == pytest.approx(2 * found.std_error)


@pytest.mark.parametrize(("miscoverage", "quantile"), [(0.1, 1.644854), (0.2, 1.281552)])
def test_interval_is_never_narrower_than_the_normal_one(
    miscoverage: float, quantile: float
) -> None:
    """Votes on the battles that the judge saw agree with it too well to narrow its error."""
    agreeing = calibration(0.05, (0.3,) * 9)
    found = combine_with_votes(1600, WINS, VOTES, ANCHORS, agreeing, miscoverage=miscoverage)
    assert found.upper - found.rating == pytest.approx(quantile * found.std_error, rel=1e-6)
    assert found.rating - found.lower == pytest.approx(quantile * found.std_error, rel=1e-6)


def world(seed: int, size: int = 20, n_votes: int = 300) -> tuple[CalibratingModels, np.ndarray]:
    """Models whose judge errs by 40 Elo, voted on against anchors of known strength."""
    rng = np.random.default_rng(seed)
    anchors = np.tile(ANCHORS, (size, 1))
    strength = rng.normal(0, 0.5, size)
    met = rng.multinomial(n_votes, [0.25] * 4, size=size)
    won = rng.binomial(met, expit(strength[:, None] - anchors))
    human = place_models(won.sum(axis=1), met, anchors)
    chance = expit(human[:, None] - anchors)
    judge = strength_to_rating(strength) + rng.normal(0, 40, size)
    models = CalibratingModels(
        tuple(f"model-{k}" for k in range(size)),
        judge,
        anchors,
        np.stack([met - won, 0 * met, won], axis=2),
        judge - strength_to_rating(human),
        ELO_PER_LOGIT / np.sqrt((met * chance * (1 - chance)).sum(axis=1)),
        np.zeros(size),
        np.ones(size),
    )
    return models, strength_to_rating(strength)


def chosen(models: CalibratingModels, rows: np.ndarray) -> CalibratingModels:
    names = tuple(np.array(models.model)[rows].tolist())
    return CalibratingModels(names, *(column[rows] for column in models[1:-1]))


@pytest.mark.parametrize("n", [10, 100])
def test_interval_holds_the_true_rating_at_its_rate(n: int) -> None:
    held, size = [], 20  # 19 calibrate one: the exact rate is 18 of 20
    for seed in range(sized(40, 3)):
        models, truth = world(seed)
        for k in range(size):
            calibrated = calibrate_votes(chosen(models, np.arange(size) != k), n, seed=seed)
            rng = np.random.default_rng([seed, k])
            met = rng.multinomial(n, [0.25] * 4)
            won = rng.binomial(met, expit(rating_to_strength(truth[k]) - ANCHORS))
            found = combine_with_votes(
                float(models.judge_rating[k]), won, met, ANCHORS, calibrated, miscoverage=0.1
            )
            held.append(found.lower <= truth[k] <= found.upper)
    # Models of one seed share their residuals: twice the error of independent ones.
    assert np.mean(held) == pytest.approx(0.9, abs=0.02 + 6 * math.sqrt(0.09 / len(held)))


def test_one_calibration_serves_each_of_its_models_in_any_order() -> None:
    models, _ = world(3)
    whole, others = calibrate_votes(models, 20, seed=4), np.arange(20) != 5
    order = np.random.default_rng(0).permutation(20)
    moved = calibrate_votes(chosen(models, order), 20, seed=4)
    assert moved.nonconformity == pytest.approx(whole.nonconformity[:, order], rel=1e-12)
    assert moved.judge.variance == pytest.approx(whole.judge.variance, rel=1e-12)
    assert (calibrate_votes(models, 20, seed=5).nonconformity != whole.nonconformity).any()
    found = leave_out(whole, models, "model-5")
    strict = calibrate_votes(chosen(models, others), 20, seed=4)
    assert (found.judge, found.model) == (strict.judge, strict.model)
    # One residual of twenty in the variance: a few per cent of a score.
    assert np.median(np.abs(found.nonconformity / strict.nonconformity - 1)) < 0.05


# ------------------------------------------------------------------ votes that share questions


@pytest.mark.parametrize("n_votes", [1, 7, 1000])
def test_a_question_is_drawn_with_all_its_votes_or_not_at_all(n_votes: int) -> None:
    """Each question has a kind of vote of its own, so that what is drawn of it can be told."""
    rng = np.random.default_rng(n_votes)
    size = 12
    each = rng.integers(1, 6, size)
    kinds = QuestionVotes(np.arange(size), 2 + 2 * np.arange(size), each)
    drawn = _drawn_questions(kinds, (10, 3), n_votes, rng).reshape(-1, 30)
    assert (drawn[:, np.setdiff1d(np.arange(30), kinds.column)] == 0).all()
    of_questions = drawn[:, kinds.column]
    assert np.isin(of_questions, [0, *each]).all()
    assert ((of_questions == 0) | (of_questions == each)).all()
    assert (of_questions > 0).any(axis=1).all()
    assert (of_questions == 0).any(axis=1).all(), "some votes are left to compare with"
    total = of_questions.sum(axis=1)
    least = min(n_votes, each.sum() / 2)
    assert (total < least + each.max()).all()
    assert (total >= least).all()
    assert len(np.unique(of_questions, axis=0)) > 1


def questions_of_world(models: CalibratingModels, size: int) -> CalibratingModels:
    """The same models, each kind of vote spread over questions of equal size."""
    found = []
    for votes in models.votes:
        kinds = np.repeat(np.arange(votes.size), votes.ravel())
        question = np.arange(kinds.size) % (kinds.size // size)
        rows, count = np.unique(np.stack([question, kinds]), axis=1, return_counts=True)
        found.append(QuestionVotes(rows[0], rows[1], count))
    return models._replace(by_question=tuple(found))


def test_votes_repeated_with_their_questions_change_no_calibration() -> None:
    """Each vote three times makes the design effect three: the same questions are drawn."""
    once = questions_of_world(world(6)[0], 5)
    thrice = once._replace(
        votes=3 * once.votes,
        design_effect=3 * once.design_effect,
        by_question=tuple(q._replace(votes=3 * q.votes) for q in once.by_question),
    )
    plain, repeated = (calibrate_votes(m, 32, seed=2, l2=1e-9) for m in (once, thrice))
    assert repeated.nonconformity == pytest.approx(plain.nonconformity, rel=1e-4)
    one = once._replace(by_question=(QuestionVotes(*np.ones((3, 1), int)), *once.by_question[1:]))
    assert "model-0" not in calibrate_votes(one, 32, seed=2).model, "of one question none is left"


def test_models_with_one_vote_show_nothing_and_few_models_bound_nothing() -> None:
    models, _ = world(3, size=10)
    models.votes[0] = 0
    models.votes[0, 0, 2] = 1
    calibrated = calibrate_votes(models, 50, seed=0)
    assert calibrated.nonconformity.shape == (9, 9)
    found = combine_with_votes(1600, WINS, VOTES, ANCHORS, calibrated, miscoverage=0.1)
    assert math.isfinite(found.upper)
    fewer = calibrate_votes(chosen(models, np.arange(9)), 50, seed=0)
    found = combine_with_votes(1600, WINS, VOTES, ANCHORS, fewer, miscoverage=0.1)
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert math.isfinite(found.rating)
    two = calibrate_votes(chosen(models, np.arange(2)), 50, seed=0)
    assert two.nonconformity.size == 0
    alone = leave_out(two, chosen(models, np.arange(2)), "model-0")
    assert "1 calibrating models" in alone.judge.reason


@pytest.mark.parametrize(
    ("judge_rating", "wins", "anchors", "miscoverage", "message"),
    [
        (math.nan, WINS, ANCHORS, 0.1, "judge_rating nan"),
        (1500, WINS, [math.nan, 0, 0, 0], 0.1, "anchors with votes must be finite"),
        (1500, WINS + 9, ANCHORS, 0.1, "wins must lie between 0 and n_votes"),
        (1500, WINS, ANCHORS, 1.0, "miscoverage must lie strictly between 0 and 1, got 1.0"),
    ],
)
def test_bad_input_names_the_value(judge_rating, wins, anchors, miscoverage, message) -> None:
    with pytest.raises(ValueError, match=message):
        combine_with_votes(
            judge_rating, wins, VOTES, anchors, calibration(0.05), miscoverage=miscoverage
        )


def test_an_anchor_without_votes_need_not_have_a_strength_and_a_model_needs_a_residual() -> None:
    anchors, votes = np.append(ANCHORS, math.nan), np.append(VOTES, 0)
    found = combine_with_votes(
        1600, np.append(WINS, 0), votes, anchors, calibration(0.05), miscoverage=0.1
    )
    assert found == together(1600, 0.05)
    with pytest.raises(ValueError, match=r"residual nan .* in row 1: leave out"):
        judge_variance([30, math.nan, 2], [10, 10, 10], [1, 1, 1])


def test_a_model_whose_error_by_the_judge_is_unknown_has_no_rating_by_both() -> None:
    """An unknown error is not the smallest one."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 12, 2_000)
    b = (a + rng.integers(1, 12, 2_000)) % 12
    gap = (a - b) / 6
    battles = code_battles(
        np.char.add("m", a.astype(str)),
        np.char.add("m", b.astype(str)),
        human_outcome=(rng.random(2_000) < expit(gap)).astype(float),
        judge_outcome=(np.sign(score := gap + rng.normal(0, 1, 2_000)) + 1) / 2,
        score_difference=score,
    )
    heldout = rate(battles, RatingSettings(n_resamples=0, smoothing_levels=()))
    unknown = heldout._replace(
        std_error_analytic=np.where(heldout.model == "m3", np.nan, heldout.std_error_analytic)
    )
    rated, without = (
        set(rate_with_votes(battles, battles, ratings, method="auto").model.tolist())
        for ratings in (heldout, unknown)
    )
    assert rated - without == {"m3"}
