"""Drift of a judge: alarms as rare as promised, changes found, tables by epoch, and the check."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from assets.reliability.drift import (
    FIRST_REPLICATE,
    _fresh,
    choose_watched,
    drift_table,
    judge_has_not_drifted,
    moved_since,
)
from judgeline.reliability import UNITS, Drift, Fresh, Judgement, detect_drift
from judgeline.reliability.evidence import GUARD, STAKES
from judgeline.tables.corpus import SCORE_COLUMNS
from judgeline.tables.reliability import DRIFT_ANSWERS, JUDGE_DRIFT
from resources.config.corpora import CorpusDefinition

N_BATTLES = 100
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
        return Judgement(first, second, marks, np.ones(self.n, dtype=bool))

    def drift(self, n_before: int = 3, n_after: int = 2, **changed: float) -> pd.DataFrame:
        epochs = [self.marks() for _ in range(n_before)]
        epochs += [self.marks(**changed) for _ in range(n_after)]
        return frame(detect_drift(panel_of(*epochs), self.votes))


def panel_of(*epochs: Judgement) -> Judgement:
    return Judgement(*(np.array(column) for column in zip(*epochs, strict=True)))


def frame(drift: Drift) -> pd.DataFrame:
    return pd.DataFrame(drift._asdict())


def last(drift: pd.DataFrame) -> pd.DataFrame:
    return drift[drift["epoch"].eq(drift["epoch"].max())].set_index("statistic")


def turned(judged: Judgement) -> Judgement:
    return judged._replace(difference_ab=-judged.difference_ab, difference_ba=-judged.difference_ba)


@pytest.mark.parametrize(
    ("change", "statistic"),
    [
        ({"spread": 0.5}, "mean_absolute_score"),
        ({"lead": 0.8}, "position_effect"),
        ({"level": 6.3}, "score_level"),
        ({"noise": 2.5}, "distance"),
        ({"lead": 2.0}, "flip_rate"),
        ({"failing": 0.4}, "scored_share"),
    ],
)
def test_a_change_of_this_size_is_found_nearly_always(change, statistic):
    rng, n_trials = np.random.default_rng(4), 20
    found = [last(Judge(rng).drift(**change)).loc[statistic, "moved"] for _ in range(n_trials)]
    # of a test with power 0.95, one of 20 trials in ten thousand finds fewer than this
    assert np.mean(found) >= 0.95 - 3.7 * math.sqrt(0.95 * 0.05 / n_trials)


@pytest.mark.parametrize("n", [50, 100])
@pytest.mark.parametrize("unrelated", [False, True])
def test_scores_reversed_or_of_other_battles_raise_an_alarm_without_votes(n, unrelated):
    rng, n_trials, found = np.random.default_rng(n), 20, 0
    for _ in range(n_trials):
        judge = Judge(rng, n)
        before = [judge.marks() for _ in range(3)]
        if unrelated:
            judge.seen = rng.permutation(judge.seen)
        now = [judge.marks() if unrelated else turned(judge.marks()) for _ in range(3)]
        drift = detect_drift(panel_of(*before, *now), np.full(n, NAN))
        found += drift.verdict[-1] == "judge"
    assert found >= n_trials * (0.95 - 3.7 * math.sqrt(0.95 * 0.05 / n_trials))


def test_figures_of_one_epoch_by_hand():
    first = np.tile([2.0, -1.0, 1.0, 0.5], 8)
    reached = np.ones(32, dtype=bool)
    before = Judgement(first, np.tile([1.0, -1.0, -1.0, 0.5], 8), np.full(32, 5.0), reached)
    after = Judgement(first, np.tile([1.0, 1.0, -1.0, 0.5], 8), np.full(32, 5.5), reached)
    drift = frame(detect_drift(panel_of(before, after), np.tile([1.0, 0.0, 0.5, 0.0], 8)))
    expected = {
        "margin": (2 / 3, 1 / 3),  # of battles that somebody won: 1.5, 1 or 0, -0.5
        "flip_rate": (0.25, 0.5),
        "agreement": (0.75, 0.5),  # a tie that people call a tie is an agreement
        "mean_absolute_score": (0.75, 0.5),
        "score_level": (5.0, 5.5),
        "position_effect": (0.375, 0.125),
        "scored_share": (1.0, 1.0),
    }
    found = last(drift)
    for name, means in expected.items():
        assert tuple(found.loc[name, ["baseline", "now"]]) == pytest.approx(means)
    assert found.loc["scored_share", "note"] == "nothing differs from the baseline"
    assert math.isnan(found.loc["score_level", "z"])  # the same change has no standard error
    begin = (1 / 2 + 1 / 104) / 2
    capital = np.mean([(1 + s) ** 32 for s in (*STAKES, *(-s for s in STAKES))])
    assert found.loc["score_level", "e_value"] == pytest.approx(begin * capital + 1 - begin)
    assert found["moved"].sum() == found.loc["score_level", "moved"] == 1
    assert found["verdict"].eq("judge").all()


def test_names_of_sides_do_not_count():
    judge = Judge(np.random.default_rng(8))
    panel = panel_of(judge.marks(), judge.marks(), judge.marks(spread=0.8))
    sides = judge.rng.random(100) < 0.5
    mirrored = panel._replace(
        difference_ab=np.where(sides, -panel.difference_ba, panel.difference_ab),
        difference_ba=np.where(sides, -panel.difference_ab, panel.difference_ba),
    )
    there = frame(detect_drift(panel, judge.votes))
    again = frame(detect_drift(mirrored, np.where(sides, 1 - judge.votes, judge.votes)))
    pd.testing.assert_frame_equal(again, there)


def test_a_corpus_without_votes_and_a_judge_without_answers_are_watched_all_the_same():
    judge = Judge(np.random.default_rng(1))
    panel = panel_of(judge.marks(), judge.marks(level=9.0))
    found = last(frame(detect_drift(panel, np.full(100, NAN))))
    for name in ("margin", "agreement"):
        assert "0 battles were judged both times" in found.loc[name, "note"]
        assert not found.loc[name, "moved"]
    assert found.loc["score_level", "moved"]
    silent = panel_of(judge.marks(), judge.marks(failing=1.0))
    found = last(frame(detect_drift(silent, judge.votes)))
    assert found.index[found["moved"]].tolist() == ["scored_share"]


def fresh_of(epochs: int, shift_from: int, rng: np.random.Generator, n: int = 200) -> Fresh:
    epoch = np.repeat(np.arange(epochs), n)
    judge = Judge(rng, epoch.size)
    marks = judge.marks()
    risen = marks.level + 0.3 * (epoch >= shift_from)
    return Fresh(marks._replace(level=risen), judge.votes, epoch, np.arange(epoch.size).astype(str))


def test_fresh_battles_alone_wait_for_the_panel_and_then_tell_of_the_system():
    rng, n = np.random.default_rng(12), 9
    judge = Judge(rng)
    same = panel_of(*(judge.marks() for _ in range(n)))
    verdicts = detect_drift(same, judge.votes, fresh_of(n, 2, rng)).verdict[:: len(UNITS)]
    assert verdicts.tolist() == ["none"] + ["cannot tell"] * GUARD + ["system"] * (n - 2 - GUARD)
    moved = panel_of(*(judge.marks(level=6.0 + 0.3 * (epoch >= 3)) for epoch in range(n)))
    verdicts = detect_drift(moved, judge.votes, fresh_of(n, 2, rng)).verdict[:: len(UNITS)]
    assert verdicts.tolist() == ["none", "cannot tell"] + ["judge"] * (n - 3)
    verdicts = detect_drift(same, judge.votes, fresh_of(n, n, rng)).verdict
    assert set(verdicts) == {"none"}


def test_what_has_moved_stays_so_and_past_evidence_is_not_drawn_again():
    judge = Judge(np.random.default_rng(5))
    epochs = [judge.marks(level=level) for level in (6, 6, 6.5, 6.5, 6, 6, 6)]
    whole = frame(detect_drift(panel_of(*epochs), judge.votes))
    level = whole[whole["statistic"].eq("score_level")]
    assert level["moved"].tolist() == [False] + [True] * 5
    part = frame(detect_drift(panel_of(*epochs[:4]), judge.votes))
    pd.testing.assert_frame_equal(whole[whole["epoch"].le(3)], part)


def test_bad_input_names_the_value():
    judge = Judge(np.random.default_rng(1))
    panel = panel_of(judge.marks(), judge.marks())
    with pytest.raises(ValueError, match=r"human_outcome \(99,\)"):
        detect_drift(panel, judge.votes[:99])
    with pytest.raises(ValueError, match=r"level \(1, 100\)"):
        detect_drift(panel._replace(level=panel.level[:1]), judge.votes)


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


def table_of(*epochs: pd.DataFrame) -> pd.DataFrame:
    return drift_table(pd.concat(epochs, ignore_index=True), BATTLES)


def test_a_battle_that_leaves_the_sample_draws_no_tie_of_the_others_again():
    epochs = [answers(0, seed=0), *(answers(e, seed=e, level=1) for e in (1, 2, 3))]
    for epoch in epochs:  # a battle without any answer tells nothing, there or not
        epoch.loc[epoch["battle_id"].eq("b0"), "status"] = "transport"
    panel = pd.concat(epochs, ignore_index=True)
    whole = drift_table(panel, BATTLES)["e_value"].to_numpy()
    assert whole.max() > 10
    np.testing.assert_allclose(drift_table(panel, BATTLES[1:])["e_value"], whole)
    np.testing.assert_allclose(drift_table(panel, BATTLES[::-1])["e_value"], whole)


def test_a_battle_that_leaves_the_sample_leaves_past_evidence_as_it_was():
    panel = pd.concat([answers(0, seed=0), *(answers(e, seed=e, level=1) for e in (1, 2, 3))])
    panel = panel.reset_index(drop=True)
    before = drift_table(panel, BATTLES)
    whole = before.set_index(["epoch", "statistic"])["e_value"]
    left = panel[panel["epoch"].lt(3) | panel["battle_id"].ne("b3")]  # asked no longer
    after = drift_table(left, BATTLES[BATTLES["battle_id"].ne("b3")])
    after = after.set_index(["epoch", "statistic"])["e_value"]
    of_votes = ["margin", "agreement"]  # whose votes left with the battle
    past = [key for key in whole.index if key[0] < 3 and key[1] not in of_votes]
    np.testing.assert_allclose(after[past], whole[past])
    assert whole[past].max() > 10


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


def test_fresh_battles_count_in_the_epoch_after_they_were_judged_once_for_each_prompt():
    fresh = BATTLES.assign(
        battle_id=[f"n{i}" for i in range(N_WATCHED)],
        cluster_id=[f"c{i // 2}" for i in range(N_WATCHED)],
    )
    verdicts = answers(0, seed=7)
    verdicts["battle_id"] = verdicts["battle_id"].str.replace("b", "n")
    verdicts["identity"] = verdicts["battle_id"] + verdicts["order"]
    day = verdicts["battle_id"].str[1:].astype(int) // 10  # 0 to 3
    stamps = pd.Timestamp("2026-01-02T04:00", tz="UTC") + pd.to_timedelta(day, "D")
    times = pd.DataFrame({"identity": verdicts["identity"], "answered_at": stamps})
    starts = pd.Series([f"2026-01-{day:02}T05:00:00+00:00" for day in (2, 3, 4)])
    stream = _fresh(fresh, verdicts, times, starts)
    # judged before an epoch began: the first ten are compared with, the others count in the next
    assert stream.epoch.tolist() == [0] * 5 + [2] * 5 + [3] * 5
    assert np.isfinite(stream.judged.level).all()
    panel = pd.concat([answers(0, seed=0), *(answers(e, seed=e) for e in (1, 2, 3))])
    both = pd.concat([BATTLES, fresh], ignore_index=True)
    table = drift_table(panel, both, verdicts, times)
    assert table["fresh_e_value"].notna().sum() == 3 * (len(UNITS) - 1)
    assert table_of(panel)["fresh_e_value"].isna().all()


# ------------------------------------------------------------------ the check


def drift(*changes: dict) -> pd.DataFrame:
    row = {
        **{"statistic": "margin", "unit": "rubric points", "note": "", "moved": False},
        **{"baseline": 0.8, "now": 0.4, "change": -0.4, "std_error": 0.1, "z": -4.0},
        **{"n_battles": 63, "epoch": 1, "asked_at": "2026-03-02T05:00:09+00:00", "e_value": 1.0},
        **{"fresh_moved": False, "fresh_e_value": 1.0, "verdict": "none"},
    }
    table = pd.DataFrame([row | change for change in changes], columns=JUDGE_DRIFT.columns)
    return JUDGE_DRIFT.typed(table)


JUDGED = {"moved": True, "verdict": "judge"}
SECOND = {"epoch": 2, "asked_at": "2026-03-09T05:00:00+00:00", **JUDGED}
FLIPS = {"statistic": "flip_rate", "unit": "share", "baseline": 0.1, "now": 0.35, "z": 5.04}
NOTHING = dict.fromkeys(("baseline", "now", "change", "std_error", "z"), NAN)
FEW = "3 battles were judged both times; 20 are needed"


@pytest.mark.parametrize(
    ("changes", "severity", "verdict", "sentences"),
    [
        (
            [JUDGED, SECOND, {**SECOND, **FLIPS}],
            "ERROR",
            "judge",
            [
                "margin from 0.8 to 0.4 rubric points (-4.0 standard errors, 63 battles, since "
                "epoch 1 of 2026-03-02)",
                "flip_rate from 10.0% to 35.0% (+5.0 standard errors, 63 battles, since epoch 2 of "
                "2026-03-09)",
                "pin a dated model or revision",
            ],
        ),
        ([{"z": -1.2}], None, "none", ["in 1 statistics of the panel"]),
        ([], None, "", ["No epoch has been asked"]),
        ([{**NOTHING, "note": FEW}], "WARN", "cannot tell", [FEW, "Raise drift.battles"]),
        (
            [{"fresh_moved": True, "verdict": "cannot tell"}],
            "WARN",
            "cannot tell",
            ["fresh battles has moved (margin)", "known 4 epochs later"],
        ),
        (
            [{"fresh_moved": True, "verdict": "system"}],
            "WARN",
            "system",
            ["says the same of its panel", "by margin of fresh battles", "Ratings by this judge"],
        ),
    ],
)
def test_the_check_says_what_moved_how_far_and_since_when(changes, severity, verdict, sentences):
    result = judge_has_not_drifted(drift(*changes))
    assert result.passed is (severity is None)
    assert severity in (None, result.severity.value)
    assert not verdict or result.metadata["verdict"].value == verdict
    for sentence in sentences:
        assert sentence in result.description
    moved = {change.get("statistic", "margin") for change in changes if change.get("moved")}
    if severity == "ERROR":
        assert set(result.metadata["moved"].value.split(", ")) == moved


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
