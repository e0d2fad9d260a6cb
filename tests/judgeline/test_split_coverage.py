"""Coverage over splits against splits made battle by battle, and label plans of models."""

import math

import numpy as np
import pytest

from judgeline.judge_counts import count_outcomes, is_better_than_chance
from judgeline.label_plans import plan_labels
from judgeline.outcome_tables import tabulate_outcomes
from judgeline.split_coverage import COMPARED, SplitCoverage, split_coverage
from judgeline.win_rate_peers import compare_estimators

from win_rate_worlds import coded, world  # isort: skip


def of(found: SplitCoverage, level: str) -> SplitCoverage:
    kept = found.level == level
    return SplitCoverage(*(column[kept] for column in found))


def test_draws_of_counts_are_splits_of_battles() -> None:
    battles, question, _ = world(1, n_battles=900)
    n_splits, rng = 3000, np.random.default_rng(5)
    ours = of(
        split_coverage(tabulate_outcomes(battles, question), miscoverage=0.1, n_splits=n_splits),
        "m06",
    )
    mine = (battles.model_a == 6) | (battles.model_b == 6)
    turn = battles.model_b[mine] == 6
    judge, human = (
        np.where(turn, 1 - column[mine] / scale, column[mine] / scale)
        for column, scale in ((battles.judge_outcome, 4), (battles.human_outcome, 2))
    )
    n, n_labelled = human.size, round(0.1 * human.size)
    errors = []
    for _ in range(n_splits):
        test = np.ones(n, bool)
        test[rng.permutation(n)[:n_labelled]] = False
        counts = count_outcomes(judge, np.where(test, np.nan, human))
        if is_better_than_chance(counts):
            errors.append(compare_estimators(counts).win_rate - human[test].mean())
    theirs = np.array(errors)
    assert (ours.n_battles[0], ours.n_labelled[0]) == (n - n_labelled, n_labelled)
    error = theirs.std(axis=0) * math.sqrt(2 / len(theirs))
    assert (abs(ours.bias[2:] - theirs.mean(axis=0)) < 4 * error + 1e-12).all()
    assert ours.bias[0] == pytest.approx(ours.bias[-1], abs=4 * error[-1])  # there are no ties
    kept = ours.n_kept[2] / n_splits
    share = len(theirs) / n_splits
    assert kept == pytest.approx(
        share, abs=4 * math.sqrt(2 * share * (1 - share) / n_splits) + 0.001
    )


def test_the_adjusted_interval_covers_and_the_naive_one_does_not() -> None:
    battles, question, _ = world(2, n_battles=24_000)
    whole = of(split_coverage(tabulate_outcomes(battles, question), miscoverage=0.1), "")
    covered = dict(zip(whole.estimator.tolist(), whole.win_rate_coverage, strict=True))
    monte_carlo_error = math.sqrt(0.9 * 0.1 / 800)  # 8 models, 100 independent splits each
    assert covered["misclassification_adjusted"] > 0.9 - 4 * monte_carlo_error
    assert covered["naive"] < 0.5
    assert covered["mean_outcome"] == covered["misclassification_adjusted"]  # there are no ties
    assert whole.rmse[-1] < whole.rmse[2]


@pytest.mark.parametrize("ties", [0.15, 0.3])
def test_hidden_ties_of_people_stay_in_and_spoil_the_binary_estimate_alone(ties: float) -> None:
    battles, question, _ = world(2, n_battles=24_000, ties=ties, judge_ties=0.0, torn=True)
    found = split_coverage(tabulate_outcomes(battles, question), miscoverage=0.1)
    of_strongest = of(found, "m07")
    assert of_strongest.truth.tolist() == ["ties half"] * 2 + ["without ties"] * 5
    bias = dict(zip(of_strongest.estimator.tolist(), of_strongest.bias, strict=True))
    error = of_strongest.rmse[0] / math.sqrt(100)
    assert abs(bias["mean_outcome"]) < 4 * error
    assert bias["misclassification_adjusted"] == pytest.approx(-0.27 * ties, abs=0.025)
    covered = dict(
        zip(of(found, "").estimator.tolist(), of(found, "").win_rate_coverage, strict=True)
    )
    monte_carlo_error = math.sqrt(0.9 * 0.1 / 800)
    assert covered["mean_outcome"] > 0.9 - 4 * monte_carlo_error
    votes = (found.n_battles + found.n_labelled)[found.grouping == "model"]
    assert votes.sum() == 7 * 2 * 24_000  # every battle is on two models' sides, ties too


def test_the_row_of_all_is_the_mean_over_the_models_splits() -> None:
    battles, question, _ = world(3, n_battles=500)
    found = split_coverage(tabulate_outcomes(battles, question), miscoverage=0.1)
    whole, models = found.grouping == "all", found.grouping == "model"
    for at, estimator in enumerate(COMPARED):
        rows = models & (found.estimator == estimator)
        kept = found.n_kept[rows]
        assert found.n_kept[whole][at] == kept.sum()
        assert (kept + found.n_dropped[rows] == 100).all()
        assert found.n_dropped[rows].sum() > 0  # six labels are sometimes of one class
        assert found.bias[whole][at] == pytest.approx(np.average(found.bias[rows], weights=kept))


def test_a_seed_and_a_stream_determine_every_number() -> None:
    tables = tabulate_outcomes(*world(4, n_battles=600)[:2])
    first, again, other = (
        split_coverage(tables, miscoverage=0.1, seed=seed, stream=("c", "j")) for seed in (7, 7, 8)
    )
    for ours, theirs in zip(first, again, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (first.bias != other.bias).any()


def test_models_without_votes_have_no_rows_and_no_votes_no_table() -> None:
    battles, question, human = world(5, n_new=2)
    found = split_coverage(tabulate_outcomes(battles, question), miscoverage=0.1)
    assert "m07" not in found.level
    unvoted = coded(battles.model_a, battles.model_b, np.full(human.size, np.nan), human)
    assert split_coverage(tabulate_outcomes(unvoted, question), miscoverage=0.1).level.size == 0


def test_a_judge_at_chance_keeps_no_split() -> None:
    battles, question, human = world(6)
    wrong = coded(battles.model_a, battles.model_b, human, 1 - human)
    found = split_coverage(tabulate_outcomes(wrong, question), miscoverage=0.1)
    assert (found.n_kept == 0).all()
    assert np.isnan(found.win_rate_coverage).all()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n_splits": 0}, "n_splits must be at least 1, got 0"),
        ({"calibration_share": 1.0}, "calibration_share"),
        ({"miscoverage": 0.0}, "miscoverage"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_refused(change: dict, told: str) -> None:
    tables = tabulate_outcomes(*world(4, n_battles=600)[:2])
    with pytest.raises(ValueError, match=told):
        split_coverage(tables, **{"miscoverage": 0.1, **change})


# ------------------------------------------------------------------ label plans


def test_plans_of_models_and_of_the_corpus() -> None:
    battles, question, _ = world(7, n_battles=16_000, share_voted=0.2)
    tables = tabulate_outcomes(battles, question)
    found = plan_labels(tables, half_width=0.05, miscoverage=0.1)
    assert found.grouping.tolist() == ["all"] * 2 + ["model"] * 16
    assert found.chosen_by.tolist() == ["human outcome", "verdict"] * 9
    assert set(found.status) == {"ok"}
    needy = (found.win_rate_half_width > 0.05) & (found.status == "ok")
    assert needy.any()
    assert (found.planned_half_width <= 0.05).all()
    more = found.n_more_won + found.n_more_lost
    assert ((more > 0) == needy).all()
    for row in np.flatnonzero(needy):
        said = "humans" if found.chosen_by[row] == "human outcome" else "the judge"
        assert found.plan[row].startswith(f"Label {more[row]:.0f} more battles, ")
        assert f"{found.n_more_won[row]:.0f} where {said} said that it won" in found.plan[row]


@pytest.mark.parametrize(
    ("options", "half_width", "status"),
    [
        ({"share_voted": 1.0}, 0.05, "all-voted"),
        ({"share_voted": 0.2}, 0.001, "out-of-reach"),
    ],
)
def test_where_there_is_no_plan_it_says_why(options: dict, half_width: float, status: str) -> None:
    tables = tabulate_outcomes(*world(8, **options)[:2])
    found = plan_labels(tables, half_width=half_width, miscoverage=0.1)
    assert set(found.status) == {status}
    assert np.isnan(found.planned_half_width).all()
    assert np.isnan(found.n_more_won).all()
    assert all(words.startswith("No plan: ") for words in found.plan)


def test_a_judge_at_chance_has_no_plan() -> None:
    battles, question, human = world(8, share_voted=0.2)
    voted = np.where(battles.human_outcome < 0, np.nan, human)
    wrong = coded(battles.model_a, battles.model_b, voted, 1 - human)
    found = plan_labels(tabulate_outcomes(wrong, question), half_width=0.05, miscoverage=0.1)
    assert set(found.status) == {"chance"}


@pytest.mark.parametrize("half_width", [0.0, -1.0, math.inf, math.nan])
def test_a_bad_half_width_is_refused(half_width: float) -> None:
    with pytest.raises(ValueError, match="half_width must be a positive share"):
        plan_labels(tabulate_outcomes(*world(8)[:2]), half_width=half_width, miscoverage=0.1)
