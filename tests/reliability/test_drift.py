"""Drift of a judge: alarms as rare as promised, changes found, tables by epoch, and the check."""

import math

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from assets.reliability.drift import (
    FIRST_REPLICATE,
    choose_watched,
    drift_table,
    judge_has_not_drifted,
    moved_since,
)
from judgeline.reliability import UNITS, Drift, Judgement, detect_drift
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.tables.reliability import DRIFT_ANSWERS, JUDGE_DRIFT, RELIABILITY_PANEL
from resources.config.corpora import CorpusDefinition

N_BATTLES, N_REPEATED = 100, 50
NAN = math.nan


class Judge:
    """Marks with noise what it sees of each battle, in sixths of a point."""

    def __init__(self, rng: np.random.Generator, n: int = N_BATTLES) -> None:
        self.rng, self.n = rng, n
        merit = rng.normal(0, 1.5, n)
        self.seen = merit + rng.normal(0, 0.7, n)  # its own taste stays what it is
        self.votes = (rng.random(n) < expit(merit)).astype(float)
        self.votes[rng.random(n) < 0.15] = 0.5
        self.votes[rng.random(n) < 0.1] = NAN

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
        first[fails] = NAN
        marks = np.where(fails, NAN, level + self.rng.normal(0, 0.2, self.n))
        return Judgement(first, second, marks)

    def drift(self, *, false_alarm: float = 0.01, **changed: float) -> Drift:
        baseline = self.marks()
        both = [baseline, self.marks(), self.marks()]
        runs = np.column_stack([(one.difference_ab + one.difference_ba) / 2 for one in both])
        runs[N_REPEATED:, 1:] = NAN
        now = self.marks(**changed)
        return detect_drift(baseline, now, self.votes, runs=runs, false_alarm=false_alarm)


def rows(drift: Drift) -> dict[str, dict[str, object]]:
    return pd.DataFrame(drift._asdict()).set_index("statistic").to_dict("index")


def turned(judged: Judgement) -> Judgement:
    return judged._replace(difference_ab=-judged.difference_ab, difference_ba=-judged.difference_ba)


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


@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize("unrelated", [False, True])
def test_scores_reversed_or_of_other_battles_raise_an_alarm_without_a_panel(n, unrelated):
    rng, n_trials, found = np.random.default_rng(n), 40, 0
    for _ in range(n_trials):
        judge = Judge(rng, n)
        before, now = judge.marks(), turned(judge.marks())
        if unrelated:
            judge.seen = rng.permutation(judge.seen)
            now = judge.marks()
        found += detect_drift(before, now, judge.votes).moved.any()
    assert found >= n_trials * (0.95 - 3.7 * math.sqrt(0.95 * 0.05 / n_trials))


def test_figures_of_one_epoch_by_hand():
    first = np.tile([2.0, -1.0, 1.0, 0.5], 6)
    before = Judgement(first, np.tile([1.0, -1.0, -1.0, 0.5], 6), np.full(24, 5.0))
    after = Judgement(first, np.tile([1.0, 1.0, -1.0, 0.5], 6), np.full(24, 5.5))
    found = rows(detect_drift(before, after, np.tile([1.0, 0.0, 0.5, 0.0], 6)))
    expected = {
        "flip_rate": (0.25, 0.5),
        "agreement": (0.75, 0.5),  # a tie that people call a tie is an agreement
        "mean_absolute_score": (0.75, 0.5),
        "score_level": (5.0, 5.5),
        "position_effect": (0.375, 0.125),
        "scored_share": (1.0, 1.0),
        "call_distance": (1.0, 1.0),
    }
    assert {name: (found[name]["baseline"], found[name]["now"]) for name in expected} == expected
    assert found["flip_rate"]["p_value"] == pytest.approx(2 / 2**6)
    assert found["scored_share"]["note"] == "nothing differs from the baseline"


def test_a_judge_that_turns_against_people_has_a_slope_below_zero_that_moved():
    judge = Judge(np.random.default_rng(2), 200)
    before = judge.marks(failing=0, noise=0.3)
    found = rows(detect_drift(before, turned(before), judge.votes))
    assert found["agreement"]["moved"]
    assert found["agreement"]["change"] < -0.2
    assert (found["beta"]["moved"], found["beta"]["note"]) == (True, "")
    assert found["beta"]["now"] == pytest.approx(-found["beta"]["baseline"])


def test_names_of_sides_do_not_count_and_going_back_is_the_opposite_change():
    judge = Judge(np.random.default_rng(8))
    before, after, sides = judge.marks(), judge.marks(spread=0.8), judge.rng.random(100) < 0.5

    def mirrored(judged: Judgement) -> Judgement:
        return judged._replace(
            difference_ab=np.where(sides, -judged.difference_ba, judged.difference_ab),
            difference_ba=np.where(sides, -judged.difference_ab, judged.difference_ba),
        )

    there = detect_drift(before, after, judge.votes)
    votes = np.where(sides, 1 - judge.votes, judge.votes)
    again = detect_drift(mirrored(before), mirrored(after), votes)
    for field in ("baseline", "now", "change", "std_error", "z", "p_value"):
        np.testing.assert_allclose(getattr(again, field), getattr(there, field), rtol=1e-9)
    back = detect_drift(after, before, judge.votes)
    directed = there.statistic != "call_distance"  # a distance has no direction
    np.testing.assert_allclose(back.z, np.where(directed, -there.z, there.z))
    np.testing.assert_allclose(back.p_value, there.p_value)


def test_a_corpus_without_votes_and_a_judge_without_answers_are_watched_all_the_same():
    judge = Judge(np.random.default_rng(1))
    found = rows(detect_drift(judge.marks(), judge.marks(level=9.0), np.full(100, NAN)))
    for name in ("beta", "agreement"):
        assert found[name]["note"] == "no battle has a vote"
        assert math.isnan(found[name]["change"])
        assert not found[name]["moved"]
    assert found["score_level"]["moved"]
    assert "no runs of a reliability panel" in found["run_distance"]["note"]
    silent = rows(detect_drift(judge.marks(), judge.marks(failing=1.0), judge.votes))
    assert {name for name, row in silent.items() if row["moved"]} == {"scored_share"}
    assert "0 battles" in silent["score_level"]["note"]


def test_bad_input_names_the_value():
    judge = Judge(np.random.default_rng(1))
    marks = judge.marks()
    with pytest.raises(ValueError, match=r"false_alarm is 1"):
        detect_drift(marks, marks, judge.votes, false_alarm=1)
    with pytest.raises(ValueError, match=r"human_outcome \(100,\), .* level of now \(99,\)"):
        detect_drift(marks, marks._replace(level=marks.level[:99]), judge.votes)


# ------------------------------------------------------------------ tables of epochs

N_WATCHED = 40
BATTLES = pd.DataFrame(
    {
        "battle_id": [f"b{i}" for i in range(N_WATCHED)],
        "question_id": "q",
        "cluster_id": "c",
        "model_a": "x",
        "model_b": "y",
        "language": "en",
        "human_outcome": np.random.default_rng(0).choice([0.0, 1.0], N_WATCHED),
        "completion_a": "first",
        "completion_b": "second",
    }
)


def answers(epoch: int, *, seed: int, level: int = 0, version: str = "v") -> pd.DataFrame:
    """Marks of 2 to 6, raised by a level, in both orders."""
    rng = np.random.default_rng(seed)
    sides = [BATTLES[["battle_id"]].assign(order=order) for order in ("AB", "BA")]
    table = pd.concat(sides, ignore_index=True)
    for name in SCORE_COLUMNS:
        table[name] = rng.integers(2, 7, len(table)) + float(level)
    table = table.assign(
        judge="j",
        epoch=epoch,
        replicate=FIRST_REPLICATE + epoch if epoch else 0,
        status="ok",
        asked_at=f"2026-01-{epoch + 1:02}T05:00:00+00:00",
        judge_version=version,
        selection_order=0,
        recorded_outcome=np.nan,
    ).reindex(columns=DRIFT_ANSWERS.columns)
    return table.astype(
        {name: kind for name, kind in DRIFT_ANSWERS.dtypes.items() if kind != "int64"}
    )


def table_of(*epochs: pd.DataFrame, panel: pd.DataFrame | None = None) -> pd.DataFrame:
    return drift_table(pd.concat(epochs, ignore_index=True), BATTLES, panel)


def test_every_epoch_is_held_against_the_baseline():
    later = [answers(epoch, seed=epoch, level=2) for epoch in (2, 3)]
    table = table_of(answers(0, seed=0), answers(1, seed=1), *later)
    assert table.dtypes.astype(str).to_dict() == JUDGE_DRIFT.dtypes
    assert table["statistic"].tolist() == list(UNITS) * 3
    level = table[table["statistic"].eq("score_level")]
    assert level["moved"].tolist() == [False, True, True]
    assert level["change"].tolist() == pytest.approx([0, 2, 2], abs=0.3)
    assert level["asked_at"].str[:10].tolist() == ["2026-01-02", "2026-01-03", "2026-01-04"]
    assert moved_since(table) == {"score_level": (2, "2026-01-03T05:00:00+00:00")}
    assert table_of(DRIFT_ANSWERS.empty()).empty
    assert table_of(answers(0, seed=0)).empty


@pytest.mark.parametrize(
    ("moved", "since"),
    [([1, 1, 0], {}), ([1, 0, 1, 1], {"beta": (3, "3")}), ([1, 1], {"beta": (1, "1")})],
)
def test_a_statistic_that_came_back_has_not_moved(moved, since):
    """One that left again is young."""
    epochs = pd.Series(range(1, len(moved) + 1))
    series = {"statistic": "beta", "moved": np.array(moved, bool), "epoch": epochs}
    assert moved_since(pd.DataFrame({**series, "asked_at": epochs.astype(str)})) == since


def test_only_the_latest_version_of_a_judge_is_compared_with_itself():
    old = [answers(epoch, seed=epoch, version="old") for epoch in (0, 1)]
    new = [answers(epoch, seed=9 + epoch, level=2, version="new") for epoch in (0, 2)]
    table = table_of(*old, *new)
    assert table["epoch"].unique().tolist() == [2]
    assert not table["moved"].any()


def test_a_call_that_did_not_reach_the_judge_takes_its_battle_out_and_no_other_failure_does():
    now = answers(1, seed=1)
    now.loc[0, "status"], now.loc[1, "status"] = "transport", "refusal"
    now.loc[[0, 1], list(SCORE_COLUMNS)] = np.nan
    table = table_of(answers(0, seed=0), now).set_index("statistic")
    assert table.loc["scored_share", ["n_battles", "now"]].tolist() == [39, pytest.approx(38 / 39)]
    assert table.loc["score_level", "n_battles"] == 38


def test_runs_of_the_panel_count_where_their_first_is_the_baseline():
    both = answers(0, seed=0), answers(1, seed=1)
    sides = [
        both[0][[c for c in SCORE_COLUMNS if c.endswith(s)]].mean(axis=1) for s in ("_a", "_b")
    ]
    scores = (sides[0] - sides[1]).groupby(both[0]["battle_id"]).mean()
    scores.iloc[:5] += 1.0  # there, the panel is of another version
    once = scores.rename("score_difference").reset_index().assign(replicate=0)
    again = once.assign(replicate=1, score_difference=scores.to_numpy() + 1)
    panel = pd.concat([once, again]).reindex(columns=RELIABILITY_PANEL.columns)
    row = table_of(*both, panel=panel).set_index("statistic").loc["run_distance"]
    assert (row["n_battles"], row["baseline"]) == (N_WATCHED - 5, pytest.approx(1.0))
    alone = table_of(*both, panel=once).set_index("statistic")
    assert "no runs" in alone.loc["run_distance", "note"]


# ------------------------------------------------------------------ the check


def drift(*changes: dict) -> pd.DataFrame:
    row = {
        **{"statistic": "beta", "unit": "logits per rubric point", "note": "", "moved": False},
        **{"baseline": 0.8, "now": 0.4, "change": -0.4, "std_error": 0.1, "z": -4.0},
        **{"n_battles": 63, "epoch": 1, "asked_at": "2026-03-02T05:00:09+00:00", "p_value": 0.0},
    }
    table = pd.DataFrame([row | change for change in changes], columns=JUDGE_DRIFT.columns)
    return JUDGE_DRIFT.typed(table)


SECOND = {"epoch": 2, "asked_at": "2026-03-09T05:00:00+00:00", "moved": True}
FLIPS = {"statistic": "flip_rate", "unit": "share", "baseline": 0.1, "now": 0.35, "z": 5.04}
LOST = {**dict.fromkeys(("now", "change", "std_error"), NAN), "note": "there is no slope now: why"}
NOTHING = dict.fromkeys(("baseline", "now", "change", "std_error", "z", "p_value"), NAN)
FEW = "3 battles were judged both times; 20 are needed"


@pytest.mark.parametrize(
    ("changes", "severity", "sentences"),
    [
        (
            [{"moved": True}, SECOND, {**SECOND, **FLIPS}],
            "ERROR",
            [
                "beta from 0.8 to 0.4 logits per rubric point (-4.0 standard errors, 63 battles, "
                "since epoch 1 of 2026-03-02)",
                "flip_rate from 10.0% to 35.0% (+5.0 standard errors, 63 battles, since epoch 2 of "
                "2026-03-09)",
                "pin a dated model or revision",
            ],
        ),
        (
            [{"moved": True, "z": -9.61, **LOST}],
            "ERROR",
            [
                "beta from 0.8 to no finite value (-9.6 standard errors, 63 battles, since epoch 1 "
                "of 2026-03-02, there is no slope now: why)"
            ],
        ),
        ([{"z": -1.2, "p_value": 0.2, **LOST}], None, ["None of 1 statistics"]),  # compared
        ([{"moved": True}, {"epoch": 2}], None, ["None of 1 statistics"]),  # it came back
        ([], None, ["No epoch has been asked"]),
        ([{**NOTHING, "note": FEW}], "WARN", [FEW, "Raise drift.battles"]),
    ],
)
def test_the_check_says_how_far_a_judge_moved_and_since_when(changes, severity, sentences):
    result = judge_has_not_drifted(drift(*changes))
    assert result.passed is (severity is None)
    assert severity in (None, result.severity.value)
    for sentence in sentences:
        assert sentence in result.description
    moved = {change.get("statistic", "beta") for change in changes if change.get("moved")}
    if severity == "ERROR":
        assert set(result.metadata["moved"].value.split(", ")) == moved


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_judge_whose_scores_turned_fails_and_one_that_is_as_it_was_passes(sign):
    rng = np.random.default_rng(0)
    seen = rng.normal(0, 2, 100)
    votes = (rng.random(100) < expit(seen)).astype(float)
    noise = rng.normal(0, 0.5, (2, 2, 100))
    first, now = (
        Judgement(*(turn * seen + noises), np.full(100, 6.0))
        for turn, noises in zip((1.0, sign), noise, strict=True)
    )
    table = pd.DataFrame(detect_drift(first, now, votes)._asdict())
    result = judge_has_not_drifted(table.assign(epoch=1, asked_at="2026-03-02T05:00:09+00:00"))
    assert result.passed is (sign > 0)
    assert result.severity is dg.AssetCheckSeverity.ERROR
    moved = set(result.metadata["moved"].value.split(", "))
    assert result.passed or {"beta", "call_distance"} <= moved


# ------------------------------------------------------------------ which battles


@pytest.fixture
def judged(raw_battles: pd.DataFrame) -> pd.DataFrame:
    """Sixty battles, of which every third has no vote."""
    votes = raw_battles["human_outcome"].mask(np.arange(60) % 3 == 0)
    return raw_battles.assign(human_outcome=votes, selection_order=np.arange(60))


def chosen(battles, *, verdicts=None, before=None, panel=None, size=20) -> list[str]:
    corpus = CorpusDefinition(slug="c", reader="battles", drift={"battles": 20})
    watch = corpus.drift.model_copy(update={"battles": size})
    before = DRIFT_ANSWERS.empty() if before is None else before
    verdicts = battles if verdicts is None else verdicts
    corpus = corpus.model_copy(update={"drift": watch})
    return choose_watched(battles, verdicts, corpus, before, panel)["battle_id"].tolist()


def test_voted_battles_with_verdicts_are_watched_and_stay(judged):
    found = judged[judged["battle_id"].isin(chosen(judged))]
    assert len(found) == 20
    assert found["human_outcome"].notna().all()
    assert set(chosen(judged, verdicts=judged.head(36))) < set(judged["battle_id"].head(36))
    assert len(chosen(judged.assign(human_outcome=np.nan))) == 20
    first = chosen(judged.head(40))
    before = pd.DataFrame({"battle_id": first, "selection_order": range(20)})
    assert chosen(judged, before=before) == first
    gone = chosen(judged[~judged["battle_id"].isin(first[:2])], before=before)
    assert (gone[:18], len(gone)) == (first[2:], 20)
    assert chosen(judged, before=before, size=10) == first[:10]
    ids = judged.loc[judged["human_outcome"].notna(), "battle_id"].tail(8).tolist()
    panel = pd.DataFrame({"battle_id": ids * 2, "selection_order": [*range(8)] * 2})
    assert chosen(judged, panel=panel)[:8] == ids
