import math

import numpy as np
import pytest
from scipy.special import expit

from judgeline.reliability.drift import UNITS, Drift, Judgement, detect_drift

N_BATTLES, N_REPEATED = 100, 50


class Judge:
    """Marks with noise what it sees of each battle, in sixths of a point."""

    def __init__(self, rng: np.random.Generator, n: int = N_BATTLES) -> None:
        self.rng, self.n = rng, n
        merit = rng.normal(0, 1.5, n)
        self.seen = merit + rng.normal(0, 0.7, n)  # its own taste stays what it is
        self.votes = (rng.random(n) < expit(merit)).astype(float)
        self.votes[rng.random(n) < 0.15] = 0.5
        self.votes[rng.random(n) < 0.1] = np.nan

    def marks(
        self,
        *,
        noise: float = 0.8,
        spread: float = 1.0,
        lead: float = 0.1,
        level: float = 6.0,
        failing: float = 0.03,
    ) -> Judgement:
        noises = self.rng.normal(0, noise, (2, self.n))
        first, second = np.round(6 * spread * (self.seen + noises)) / 6
        first, second = first + lead, second - lead
        fails = self.rng.random(self.n) < failing
        first[fails] = np.nan
        marks = np.where(fails, np.nan, level + self.rng.normal(0, 0.2, self.n))
        return Judgement(first, second, marks)

    def drift(self, *, false_alarm: float = 0.01, **changed: float) -> Drift:
        baseline = self.marks()
        runs = np.column_stack([middle(one) for one in (baseline, self.marks(), self.marks())])
        runs[N_REPEATED:, 1:] = np.nan
        now = self.marks(**changed)
        return detect_drift(baseline, now, self.votes, runs=runs, false_alarm=false_alarm)


def middle(judged: Judgement) -> np.ndarray:
    return (judged.difference_ab + judged.difference_ba) / 2


def rows(drift: Drift) -> dict[str, dict[str, object]]:
    names = drift.statistic.tolist()
    return {
        name: {field: column[i] for field, column in drift._asdict().items()}
        for i, name in enumerate(names)
    }


@pytest.mark.slow
def test_without_a_change_alarms_are_no_more_frequent_than_promised():
    rng, n_trials, level = np.random.default_rng(11), 1000, 0.05
    family = level * len(UNITS)
    moved = np.array([Judge(rng).drift(false_alarm=family).moved for _ in range(n_trials)])
    error = math.sqrt(level * (1 - level) / n_trials)
    rates = dict(zip(UNITS, moved.mean(axis=0), strict=True))
    assert max(rates.values()) <= level + 4 * error
    for name in ("mean_absolute_score", "score_level", "position_effect"):  # no discrete counts
        assert rates[name] == pytest.approx(level, abs=4 * error)
    assert moved.any(axis=1).mean() <= family + 4 * math.sqrt(family * (1 - family) / n_trials)


@pytest.mark.parametrize(
    ("change", "statistic"),
    [
        ({"spread": 0.5}, "mean_absolute_score"),
        ({"spread": 0.5}, "call_distance"),
        ({"lead": 0.8}, "position_effect"),
        ({"level": 6.3}, "score_level"),
        ({"noise": 2.5}, "run_distance"),
        ({"lead": 1.5}, "flip_rate"),
        ({"failing": 0.35}, "scored_share"),
    ],
)
def test_a_change_of_this_size_is_found_nearly_always(change, statistic):
    rng, n_trials = np.random.default_rng(4), 40
    place = list(UNITS).index(statistic)
    found = np.mean([Judge(rng).drift(**change).moved[place] for _ in range(n_trials)])
    # of a test with power 0.95, one of 40 trials in ten thousand finds fewer than this
    assert found >= 0.95 - 3.7 * math.sqrt(0.95 * 0.05 / n_trials)


def turned(judged: Judgement) -> Judgement:
    return judged._replace(difference_ab=-judged.difference_ab, difference_ba=-judged.difference_ba)


def test_a_judge_that_turns_against_people_has_a_slope_below_zero_that_moved():
    judge = Judge(np.random.default_rng(2), 200)
    before = judge.marks(failing=0, noise=0.3)
    told = rows(detect_drift(before, turned(before), judge.votes))
    assert told["agreement"]["moved"]
    assert told["agreement"]["change"] < -0.2
    assert told["beta"]["moved"]
    assert told["beta"]["note"] == ""
    assert told["beta"]["now"] == pytest.approx(-told["beta"]["baseline"])


@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize("unrelated", [False, True])
def test_scores_reversed_or_of_other_battles_raise_an_alarm_without_a_panel(n, unrelated):
    rng, n_trials, found = np.random.default_rng(n), 40, 0
    for _ in range(n_trials):
        judge = Judge(rng, n)
        before, now = judge.marks(), judge.marks()
        if unrelated:
            judge.seen = rng.permutation(judge.seen)
            now = judge.marks()
        else:
            now = turned(now)
        found += detect_drift(before, now, judge.votes).moved.any()
    assert found / n_trials >= 0.95 - 3.7 * math.sqrt(0.95 * 0.05 / n_trials)


def test_figures_of_one_epoch_by_hand():
    first = np.tile([2.0, -1.0, 1.0, 0.5], 6)
    before = Judgement(first, np.tile([1.0, -1.0, -1.0, 0.5], 6), np.full(24, 5.0))
    after = Judgement(first, np.tile([1.0, 1.0, -1.0, 0.5], 6), np.full(24, 5.5))
    told = rows(detect_drift(before, after, np.tile([1.0, 0.0, 0.5, 0.0], 6)))
    found = {name: (row["baseline"], row["now"]) for name, row in told.items()}
    assert found["flip_rate"] == (0.25, 0.5)
    assert found["agreement"] == (0.75, 0.5)  # a tie that people call a tie is an agreement
    assert found["mean_absolute_score"] == (0.75, 0.5)
    assert found["score_level"] == (5.0, 5.5)
    assert found["position_effect"] == (0.375, 0.125)
    assert found["scored_share"] == (1.0, 1.0)
    assert found["call_distance"] == (1.0, 1.0)
    assert told["flip_rate"]["p_value"] == pytest.approx(2 / 2**6)
    assert told["scored_share"]["note"] == "nothing differs from the baseline"


def test_which_model_is_called_a_changes_nothing():
    judge = Judge(np.random.default_rng(8))
    before, after, turned = judge.marks(), judge.marks(spread=0.8), judge.rng.random(100) < 0.5

    def mirrored(judged: Judgement) -> Judgement:
        return judged._replace(
            difference_ab=np.where(turned, -judged.difference_ba, judged.difference_ab),
            difference_ba=np.where(turned, -judged.difference_ab, judged.difference_ba),
        )

    told = detect_drift(before, after, judge.votes)
    votes = np.where(turned, 1 - judge.votes, judge.votes)
    again = detect_drift(mirrored(before), mirrored(after), votes)
    for field in ("baseline", "now", "change", "std_error", "z", "p_value"):
        np.testing.assert_allclose(getattr(again, field), getattr(told, field), rtol=1e-9)


def test_going_back_is_the_same_change_in_the_other_direction():
    judge = Judge(np.random.default_rng(9))
    before, after = judge.marks(), judge.marks(spread=0.7)
    there, back = (detect_drift(*both, judge.votes) for both in ((before, after), (after, before)))
    directed = there.statistic != "call_distance"  # a distance has no direction
    np.testing.assert_allclose(back.z, np.where(directed, -there.z, there.z))
    np.testing.assert_allclose(back.p_value, there.p_value)


def test_a_corpus_without_votes_is_watched_without_them():
    judge = Judge(np.random.default_rng(1))
    told = rows(detect_drift(judge.marks(), judge.marks(level=9.0), np.full(100, np.nan)))
    for name in ("beta", "agreement"):
        assert told[name]["note"] == "no battle has a vote"
        assert math.isnan(told[name]["change"])
        assert not told[name]["moved"]
    assert told["score_level"]["moved"]
    assert "no runs of a reliability panel" in told["run_distance"]["note"]


def test_a_judge_that_says_nothing_any_more_has_moved():
    judge = Judge(np.random.default_rng(1))
    told = rows(detect_drift(judge.marks(), judge.marks(failing=1.0), judge.votes))
    assert {name for name, row in told.items() if row["moved"]} == {"scored_share"}
    assert "0 battles" in told["score_level"]["note"]


def test_bad_input_names_the_value():
    judge = Judge(np.random.default_rng(1))
    marks = judge.marks()
    with pytest.raises(ValueError, match=r"false_alarm .* got 1"):
        detect_drift(marks, marks, judge.votes, false_alarm=1)
    with pytest.raises(ValueError, match=r"level of now has shape \(99,\), votes have \(100,\)"):
        detect_drift(marks, marks._replace(level=marks.level[:99]), judge.votes)
