import math

import numpy as np
import pytest
from arenas import code, play, random_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from twins import Battle, all_models, beta, beta_without

from judgeline.elo import code_battles, fit_beta, fit_beta_folds


def votes(seed: int, n: int = 400, slope: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    score = rng.integers(-60, 61, n) / 12
    return score, (rng.random(n) < expit(slope * score)).astype(float)


def as_battles(score: np.ndarray, outcome: np.ndarray) -> list[Battle]:
    return [Battle("a", "b", float(y), 0.5, float(s)) for s, y in zip(score, outcome, strict=True)]


@given(seed=st.integers(0, 10_000), n=st.integers(1, 60), slope=st.floats(-1, 3))
@settings(max_examples=60)
def test_matches_the_slow_twin(seed: int, n: int, slope: float) -> None:
    score, outcome = votes(seed, n, slope)
    expected, status = beta(as_battles(score, outcome))
    fit = fit_beta(score, outcome)
    assert (fit.status, fit.n_battles) == (status, n)
    known = math.nan if expected is None else expected
    assert fit.beta == pytest.approx(known, rel=1e-9, nan_ok=True)
    assert math.isnan(fit.std_error) is (expected is None)


@pytest.mark.parametrize(
    ("score", "n_agree", "n_against", "rel"),
    [
        (2.0, 30, 10, 1e-12),
        (1.0, 10_000, 1, 1e-9),  # nearly separable
        (1.0, 50_001, 50_000, 1e-6),  # nearly useless
    ],
)
def test_one_score_has_a_closed_form(score, n_agree, n_against, rel) -> None:
    """The slope times the score is the log-odds of agreement."""
    outcome = np.repeat([1.0, 0.0], [n_agree, n_against])
    fit, share = fit_beta(np.full(outcome.size, score), outcome), n_agree / outcome.size
    assert fit.beta == pytest.approx(math.log(n_agree / n_against) / score, rel=rel)
    information = outcome.size * score**2 * share * (1 - share)
    assert fit.std_error == pytest.approx(1 / math.sqrt(information), rel=1e-9)


@pytest.mark.parametrize(
    ("score", "outcome", "status"),
    [
        ([2.0, 1.0, -3.0] * 2, [0.0, 0.0, 1.0] * 2, "contradicts-humans"),  # by chance, 1 in 64
        ([2.0, 1.0, -3.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0], "votes-cannot-tell"),  # 1 in 32
        ([2.0] * 40, [1.0] * 10 + [0.0] * 30, "contradicts-humans"),  # -log(3) is 3.0 errors
        ([2.0, 2.0, 1.0], [1.0, 0.0, 0.0], "votes-cannot-tell"),
        ([2.0, 2.0], [1.0, 0.0], "votes-cannot-tell"),  # the optimum is exactly zero
        ([2.0, -1.0], [1.0, 0.0], "separable"),
        ([2.0, 0.0], [1.0, 0.0], "separable"),  # an equal score speaks neither way
        ([2.0, 1.0], [0.5, math.nan], "no-decisive-votes"),
        ([0.0, 0.0], [1.0, 0.0], "no-decisive-votes"),
        ([], [], "no-decisive-votes"),
    ],
)
def test_a_judge_without_a_temperature_says_why(score, outcome, status: str) -> None:
    fit = fit_beta(np.array(score, dtype=float), np.array(outcome, dtype=float))
    assert fit.status == status
    assert math.isnan(fit.beta)
    assert math.isnan(fit.std_error)


@pytest.mark.parametrize(
    ("n_agree", "n_against", "status", "needed"),
    [
        (39, 61, "contradicts-humans", 85),  # log(39/61) = -0.4473, error 0.2050: 100 x 0.8403
        (41, 59, "votes-cannot-tell", 125),  # log(41/59) = -0.3640, error 0.2033: 100 x 1.2483
        (10, 10, "votes-cannot-tell", 0),
        (0, 5, "votes-cannot-tell", 6),
        (0, 6, "contradicts-humans", 6),
    ],
)
def test_a_slope_below_zero_is_known_with_its_error(n_agree, n_against, status, needed) -> None:
    """One score of 2 points: the slope is half the log-odds of agreement."""
    n = n_agree + n_against
    fit = fit_beta(np.full(n, 2.0), np.repeat([1.0, 0.0], [n_agree, n_against]))
    assert (fit.status, fit.votes_that_tell) == (status, needed)
    assert math.isnan(fit.beta)
    assert math.isnan(fit.std_error)
    if not n_agree:
        assert fit.slope == -math.inf
        return
    assert fit.slope == pytest.approx(math.log(n_agree / n_against) / 2, abs=1e-12)
    assert fit.slope_std_error == pytest.approx(math.sqrt(n / n_agree / n_against) / 2)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_turned_votes_turn_the_slope(seed: int) -> None:
    score, outcome = votes(seed, 60, 0.1)
    ours, turned = fit_beta(score, outcome), fit_beta(score, 1 - outcome)
    assert ours.slope == pytest.approx(-turned.slope, rel=1e-9)
    assert ours.slope_std_error == pytest.approx(turned.slope_std_error, rel=1e-9)
    assert "ok" in {ours.status, turned.status}


def test_a_judge_of_chance_is_seldom_accused() -> None:
    """Its slope is below 0 by two standard errors as often as a normal number: 2.3 %."""
    accused = [
        fit_beta(*votes(seed, 200, 0.0)).status == "contradicts-humans" for seed in range(2000)
    ]
    monte_carlo_error = math.sqrt(0.0228 * 0.9772 / len(accused))
    assert np.mean(accused) == pytest.approx(0.0228, abs=4 * monte_carlo_error)


@pytest.mark.parametrize(
    ("score", "outcome", "complaint"),
    [
        ([1.0, 2.0], [1.0], r"difference \(2,\), human_outcome \(1,\)"),
        ([1.0, math.nan], [1.0, 0.0], "score_difference is nan in row 1"),
        ([1.0, 2.0], [1.0, 2.0], "human_outcome is 2 in row 1"),
        ([1.0, 2.0], [-1.0, 1.0], "human_outcome is -1 in row 0"),
        ([1.0, 2.0], [1.0, 0.7], "0.7 in row 1"),
    ],
)
def test_bad_votes_are_refused_not_dropped(score, outcome, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        fit_beta(score, outcome)


@given(
    seed=st.integers(0, 10_000),
    n_models=st.integers(2, 9),
    continuous=st.booleans(),
    vote_share=st.sampled_from([0.3, 1.0]),
)
@settings(max_examples=60)
def test_every_fold_is_the_fit_without_that_model(seed, n_models, continuous, vote_share):
    rng = np.random.default_rng(seed)
    battles = play(
        rng,
        random_pairs(rng, n_models, 6 * n_models),
        rng.normal(0, 1, n_models),
        continuous=continuous,
        vote_share=vote_share,
        unvoted=[0] if n_models > 3 else [],  # its fold has the slope of all votes
    )
    folds = fit_beta_folds(code(battles))
    assert folds.held_out_model.tolist() == all_models(battles)
    for model, slope, std_error, n_battles, status in zip(*folds, strict=True):
        expected, expected_status = beta_without(battles, model)
        decisive = [b for b in battles if b.human in (0, 1) and model not in b.models()]
        assert (status, n_battles) == (expected_status, len(decisive))
        single = fit_beta([b.score for b in decisive], [b.human for b in decisive])
        assert std_error == pytest.approx(single.std_error, rel=1e-9, nan_ok=True)
        known = math.nan if expected is None else expected
        assert slope == pytest.approx(known, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("score", [0.0, 1.0, 0.1])
@pytest.mark.parametrize("a_wins", [0.3, 0.7])
def test_a_judge_whose_scores_never_differ_is_called_constant(score: float, a_wins: float) -> None:
    rng = np.random.default_rng(13)
    first = rng.integers(0, 6, 200)
    names = np.array([f"m{k}" for k in range(6)])
    columns = {
        "human_outcome": (rng.random(200) < a_wins).astype(float),
        "judge_outcome": np.full(200, 0.5),
    }
    pairs = names[first], names[(first + rng.integers(1, 6, 200)) % 6]
    folds = fit_beta_folds(code_battles(*pairs, **columns, score_difference=np.full(200, score)))
    assert set(folds.status.tolist()) == {"constant-scores"}
    assert np.isnan(folds.beta).all()
    assert np.isnan(folds.std_error).all()
    varied = np.where(np.arange(200) == 0, score + 1, score)
    folds = fit_beta_folds(code_battles(*pairs, **columns, score_difference=varied))
    assert "constant-scores" not in folds.status


@pytest.mark.parametrize("continuous", [False, True])
def test_many_battles_give_the_same_folds_as_few(continuous: bool) -> None:
    """Large inputs take another road (sums at nodes); it must lead to the same place."""
    rng = np.random.default_rng(10)
    n, size = 120_000, 40
    first = rng.integers(0, size, n)
    second = (first + rng.integers(1, size, n)) % size
    score = rng.normal(0, 2, n)
    score = score if continuous else np.round(12 * score) / 12
    outcome = (rng.random(n) < expit(0.5 * score)).astype(float)
    names = np.array([f"m{k:02d}" for k in range(size)])
    battles = code_battles(
        names[first], names[second], human_outcome=outcome, judge_outcome=np.full(n, 0.5),
        score_difference=score,
    )  # fmt: skip
    folds = fit_beta_folds(battles)
    for model in (0, 7, 39):
        rest = (first != model) & (second != model)
        single = fit_beta(score[rest], outcome[rest])
        assert folds.beta[model] == pytest.approx(single.beta, rel=1e-9)
        assert folds.std_error[model] == pytest.approx(single.std_error, rel=1e-6)
        assert folds.n_battles[model] == single.n_battles


def test_a_fold_that_loses_every_battle_has_no_slope() -> None:
    """One model is in every battle, of so many that folds are fitted together."""
    rng, n = np.random.default_rng(0), 80_000
    score = rng.normal(0, 1, n)
    found = fit_beta_folds(
        code_battles(
            np.full(n, "hub"),
            rng.integers(0, 59, n).astype(str),
            human_outcome=(rng.random(n) < expit(score)).astype(float),
            judge_outcome=(np.sign(score) + 1) / 2,
            score_difference=score,
        )
    )
    hub = found.held_out_model.tolist().index("hub")
    assert (found.n_battles[hub], math.isnan(found.beta[hub])) == (0, True)
    assert found.status[hub] != "ok"
    assert (np.delete(found.status, hub) == "ok").all()
