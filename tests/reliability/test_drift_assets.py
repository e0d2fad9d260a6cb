import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.reliability.drift import choose_watched, judge_has_not_drifted
from assets.reliability.tables import DRIFT_DTYPES
from judgeline.reliability.drift import Judgement, detect_drift
from resources.config.corpora import CorpusDefinition
from resources.judges.epochs import empty_epochs

CORPUS = CorpusDefinition(slug="c", reader="battles", drift={"battles": 20})


def drift(*rows: dict) -> pd.DataFrame:
    blank = {"statistic": "beta", "unit": "logits per rubric point", "note": "", "moved": False}
    numbers = {"baseline": 0.8, "now": 0.4, "change": -0.4, "std_error": 0.1, "z": -4.0}
    place = {"n_battles": 63, "epoch": 1, "asked_at": "2026-03-02T05:00:09+00:00", "p_value": 0.0}
    made = [{**blank, **numbers, **place, **row} for row in rows]
    return pd.DataFrame(made, columns=list(DRIFT_DTYPES)).astype(DRIFT_DTYPES)


def test_a_judge_that_moved_fails_with_what_from_to_how_far_and_since_when():
    flips = {"statistic": "flip_rate", "unit": "share", "baseline": 0.1, "now": 0.35, "z": 5.04}
    table = drift(
        {"moved": True},
        {"epoch": 2, "asked_at": "2026-03-09T05:00:00+00:00", "moved": True},
        {"epoch": 2, "asked_at": "2026-03-09T05:00:00+00:00", "moved": True, **flips},
    )
    result = judge_has_not_drifted(table)
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.ERROR
    assert (
        "beta from 0.8 to 0.4 logits per rubric point (-4.0 standard errors, 63 battles, since "
        "epoch 1 of 2026-03-02); flip_rate from 10.0% to 35.0% (+5.0 standard errors, 63 battles, "
        "since epoch 2 of 2026-03-09)"
    ) in result.description
    assert "pin a dated model or revision" in result.description
    assert result.metadata["moved"].value == "beta, flip_rate"


def test_a_slope_that_was_lost_is_told_with_its_reason():
    lost = dict.fromkeys(("now", "change", "std_error"), np.nan)
    note = "there is no slope now: scores contradict every vote, so that it has no end"
    result = judge_has_not_drifted(drift({"moved": True, "z": -9.61, "note": note, **lost}))
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.ERROR
    assert (
        "beta from 0.8 to no finite value (-9.6 standard errors, 63 "
        f"battles, since epoch 1 of 2026-03-02, {note})"
    ) in result.description
    unmoved = judge_has_not_drifted(drift({"z": -1.2, "p_value": 0.2, "note": note, **lost}))
    assert unmoved.passed  # compared, and not found to move
    assert "None of 1 statistics" in unmoved.description


def judged_epochs(rng: np.random.Generator, turn: float, n: int = 100) -> pd.DataFrame:
    """The drift of a judge whose scores follow votes at first, and now with another sign."""
    seen = rng.normal(0, 2, n)
    votes = (rng.random(n) < 1 / (1 + np.exp(-seen))).astype(float)
    level = np.full(n, 6.0)
    first, now = (
        Judgement(*(sign * seen + rng.normal(0, 0.5, (2, n))), level) for sign in (1.0, turn)
    )
    table = pd.DataFrame(detect_drift(first, now, votes)._asdict())
    return table.assign(epoch=1, asked_at="2026-03-02T05:00:09+00:00")


def test_a_judge_whose_scores_turned_fails_and_one_that_is_as_it_was_passes():
    rng = np.random.default_rng(0)
    turned = judge_has_not_drifted(judged_epochs(rng, -1.0))
    assert not turned.passed
    assert "beta from " in turned.description
    assert {"beta", "call_distance"} <= set(turned.metadata["moved"].value.split(", "))
    assert judge_has_not_drifted(judged_epochs(rng, 1.0)).passed


def test_a_judge_that_came_back_passes():
    assert judge_has_not_drifted(drift({"moved": True}, {"epoch": 2})).passed


def test_before_any_epoch_there_is_nothing_to_say():
    result = judge_has_not_drifted(drift())
    assert result.passed
    assert "No epoch has been asked" in result.description


def test_an_epoch_in_which_nothing_can_be_compared_is_a_warning():
    nothing = dict.fromkeys(("baseline", "now", "change", "std_error", "z", "p_value"), np.nan)
    table = drift({**nothing, "note": "3 battles were judged both times; 20 are needed"})
    result = judge_has_not_drifted(table)
    assert not result.passed
    assert result.severity == dg.AssetCheckSeverity.WARN
    assert "3 battles were judged both times" in result.description


@pytest.fixture
def judged(raw_battles: pd.DataFrame) -> pd.DataFrame:
    """Sixty battles, of which every third has no vote."""
    votes = raw_battles["human_outcome"].mask(np.arange(60) % 3 == 0)
    return raw_battles.assign(human_outcome=votes, selection_order=np.arange(60))


def chosen(battles, *, verdicts=None, before=None, panel=None, corpus=CORPUS) -> list[str]:
    before = empty_epochs() if before is None else before
    verdicts = battles if verdicts is None else verdicts
    return choose_watched(battles, verdicts, corpus, before, panel)["battle_id"].tolist()


def test_voted_battles_with_verdicts_are_watched(judged):
    found = judged[judged["battle_id"].isin(chosen(judged))]
    assert len(found) == 20
    assert found["human_outcome"].notna().all()
    assert set(chosen(judged, verdicts=judged.head(36))) < set(judged["battle_id"].head(36))
    silent = judged.assign(human_outcome=np.nan)
    assert len(chosen(silent)) == 20


def test_what_was_watched_stays_watched_while_it_is_there(judged):
    first = chosen(judged.head(40))
    before = pd.DataFrame({"battle_id": first, "selection_order": range(20)})
    assert chosen(judged, before=before) == first
    gone = judged[~judged["battle_id"].isin(first[:2])]
    assert chosen(gone, before=before)[:18] == first[2:]
    assert len(chosen(gone, before=before)) == 20
    fewer = CORPUS.model_copy(update={"drift": CORPUS.drift.model_copy(update={"battles": 10})})
    assert chosen(judged, before=before, corpus=fewer) == first[:10]


def test_battles_of_the_reliability_panel_come_first(judged):
    ids = judged.loc[judged["human_outcome"].notna(), "battle_id"].tail(8).tolist()
    panel = pd.DataFrame({"battle_id": ids * 2, "selection_order": [*range(8)] * 2})
    assert chosen(judged, panel=panel)[:8] == ids


@pytest.mark.parametrize(
    ("given", "message"),
    [({"battles": 5}, "greater than or equal to 20"), ({"budget": "5 apples"}, "apples")],
)
def test_what_a_drift_block_may_say(given, message):
    with pytest.raises(ValueError, match=message):
        CorpusDefinition(slug="c", reader="battles", drift=given)
