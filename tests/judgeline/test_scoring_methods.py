"""Any scoring method goes through the leave-one-out fit that the slow twins describe."""

import numpy as np
import pytest
from arenas import code, name, play, random_pairs
from likeness import assert_rating, by_model_and_method, rate
from scipy.special import expit
from twins import Battle, all_models, held_out, human_placement, voted_models

from judgeline.beta import fit_beta_folds
from judgeline.rating_settings import RatingSettings
from judgeline.scoring_methods import ScoringMethod, fit_score_slopes, rate_by_methods

PLAIN = RatingSettings(n_resamples=0)
NEW = (3, 6)


@pytest.fixture(scope="module")
def battles() -> list[Battle]:
    rng = np.random.default_rng(77)
    pairs = random_pairs(rng, 10, 500)
    return play(rng, pairs, rng.normal(0, 1, 10), unvoted=NEW, vote_share=0.8)


def learnt_outcomes(battles: list[Battle], seed: int = 5) -> np.ndarray:
    """Outcomes that differ from fold to fold, and not between the models without votes."""
    rng = np.random.default_rng(seed)
    learnt = rng.random((len(all_models(battles)), len(battles)))
    for model in NEW[1:]:
        learnt[model] = learnt[NEW[0]]
    return learnt


def test_outcomes_of_every_fold_rate_like_the_slow_twin(battles: list[Battle]) -> None:
    learnt = learnt_outcomes(battles)
    row_of = {id(battle): row for row, battle in enumerate(battles)}
    rated = rate_by_methods(code(battles), {"learnt": ScoringMethod(outcome=learnt)}, PLAIN)
    rows = by_model_and_method(rated)
    for fold, model in enumerate(all_models(battles)):
        share = learnt[fold]
        expected = held_out(battles, model, lambda b, p=share: float(p[row_of[id(b)]]), 0.01)
        assert_rating(rows[model, "learnt"], expected)
        if model in voted_models(battles):
            assert_rating(rows[model, "human"], human_placement(battles, model, 0.01))


def test_the_judge_as_a_scoring_method_is_hard_and_soft(battles: list[Battle]) -> None:
    coded = code(battles)
    beta = fit_beta_folds(coded).beta
    points = coded.rubric_points()
    methods = {
        "as-outcome": ScoringMethod(outcome=coded.judge_outcome / 4),
        "as-score": ScoringMethod(score_difference=points),
        "as-folds": ScoringMethod(outcome=expit(beta[:, None] * points)),
    }
    rows = by_model_and_method(rate_by_methods(coded, methods, PLAIN))
    usual = by_model_and_method(rate(battles, PLAIN))
    pairs = {"as-outcome": "hard", "as-score": "soft", "as-folds": "soft", "hard": "hard"}
    for model in all_models(battles):
        for method, known in pairs.items():
            for suffix in ("", "-recalibrated"):
                found, wanted = rows[model, method + suffix], usual[model, known + suffix]
                assert found["rating"] == pytest.approx(wanted["rating"], abs=1e-4)
                assert found["std_error_analytic"] == pytest.approx(
                    wanted["std_error_analytic"], rel=1e-6
                )
        assert rows[model, "as-score"]["beta"] == pytest.approx(usual[model, "soft"]["beta"])


def test_the_scale_of_a_score_does_not_matter(battles: list[Battle]) -> None:
    coded = code(battles)
    points = coded.rubric_points()
    one, other = (
        rate_by_methods(coded, {"score": ScoringMethod(score_difference=scale * points)}, PLAIN)
        for scale in (1.0, 0.013)
    )
    np.testing.assert_allclose(one.rating, other.rating, atol=1e-5)
    slopes = fit_score_slopes(coded, 0.013 * points).beta
    np.testing.assert_allclose(0.013 * slopes, fit_beta_folds(coded).beta, rtol=1e-6)


def test_a_fold_without_outcomes_costs_that_model_only(battles: list[Battle]) -> None:
    learnt = learnt_outcomes(battles)
    learnt[0] = np.nan
    coded = code(battles)
    rows = by_model_and_method(
        rate_by_methods(coded, {"learnt": ScoringMethod(outcome=learnt)}, PLAIN)
    )
    whole = by_model_and_method(
        rate_by_methods(coded, {"learnt": ScoringMethod(outcome=learnt_outcomes(battles))}, PLAIN)
    )
    assert np.isnan(rows[name(0), "learnt"]["rating"])
    for model in all_models(battles)[1:]:
        known = whole[model, "learnt"]["rating"]
        assert rows[model, "learnt"]["rating"] == pytest.approx(known, abs=1e-6)


def test_swapping_every_battle_changes_no_rating(battles: list[Battle]) -> None:
    learnt = learnt_outcomes(battles)
    one = rate_by_methods(code(battles), {"learnt": ScoringMethod(outcome=learnt)}, PLAIN)
    turned = code([battle.swapped() for battle in battles])
    other = rate_by_methods(turned, {"learnt": ScoringMethod(outcome=1 - learnt)}, PLAIN)
    np.testing.assert_allclose(one.rating, other.rating, atol=1e-6)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_bootstrap_agrees_with_the_closed_form(
    battles: list[Battle], *, clustered: bool
) -> None:
    """400 resamples know a standard error to 1/sqrt(800), 3.5 %: four times that, and linearity."""
    coded = code(battles)
    cluster = np.arange(len(battles)) // 2 if clustered else None
    rated = rate_by_methods(
        coded,
        {"learnt": ScoringMethod(outcome=learnt_outcomes(battles))},
        RatingSettings(n_resamples=400, stream=("test",)),
        cluster=cluster,
    )
    learnt = rated.method == "learnt"
    ratio = rated.std_error[learnt] / rated.std_error_analytic[learnt]
    assert np.all(np.abs(ratio - 1) < 0.15), ratio
    assert np.all(np.isfinite(rated.std_error[learnt]))


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        (ScoringMethod(outcome=np.full(500, 1.2)), r"is 1\.2; expected A's share"),
        (ScoringMethod(outcome=np.zeros((2, 500))), r"shape \(2, 500\); expected"),
        (ScoringMethod(score_difference=np.zeros(3)), r"shape \(3,\); expected"),
        (ScoringMethod(score_difference=np.full(500, np.nan)), "battle 0 by 'odd' is nan"),
    ],
)
def test_impossible_scores_are_refused(
    battles: list[Battle], method: ScoringMethod, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        rate_by_methods(code(battles), {"odd": method}, PLAIN)


def test_a_method_is_one_thing_under_a_name_of_its_own(battles: list[Battle]) -> None:
    with pytest.raises(ValueError, match="either outcomes or score differences"):
        ScoringMethod()
    with pytest.raises(ValueError, match="'hard', which is made from the battles"):
        rate_by_methods(code(battles), {"hard": ScoringMethod(outcome=np.zeros(500))}, PLAIN)


def test_a_score_that_contradicts_votes_has_no_rating(battles: list[Battle]) -> None:
    coded = code(battles)
    method = ScoringMethod(score_difference=-coded.rubric_points())
    rated = rate_by_methods(coded, {"against": method}, PLAIN)
    assert np.isnan(rated.rating[rated.method == "against"]).all()
    assert np.isfinite(rated.rating[rated.method == "hard"]).all()


def test_folds_without_outcomes_for_new_models_leave_the_others_theirs(
    battles: list[Battle],
) -> None:
    learnt = learnt_outcomes(battles)
    learnt[list(NEW)] = np.nan
    coded = code(battles)
    rows = by_model_and_method(
        rate_by_methods(coded, {"learnt": ScoringMethod(outcome=learnt)}, PLAIN)
    )
    whole = by_model_and_method(
        rate_by_methods(coded, {"learnt": ScoringMethod(outcome=learnt_outcomes(battles))}, PLAIN)
    )
    for model in all_models(battles):
        found, known = rows[model, "learnt"]["rating"], whole[model, "learnt"]["rating"]
        if model in voted_models(battles):
            assert found == pytest.approx(known, abs=1e-6)
        else:
            assert np.isnan(found)
