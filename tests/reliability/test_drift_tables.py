import numpy as np
import pandas as pd
import pytest

from assets.reliability.tables import DRIFT_DTYPES, PANEL_DTYPES, drift_table, moved_since
from judgeline.io import SCORE_COLUMNS
from judgeline.reliability.drift import UNITS
from resources.judges.epochs import EPOCH_DTYPES, FIRST_REPLICATE, empty_epochs

N_BATTLES = 40


@pytest.fixture
def battles() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "battle_id": [f"b{i}" for i in range(N_BATTLES)],
            "question_id": "q",
            "cluster_id": "c",
            "model_a": "x",
            "model_b": "y",
            "language": "en",
            "human_outcome": rng.choice([0.0, 1.0], N_BATTLES),
            "completion_a": "first",
            "completion_b": "second",
        }
    )


def answers(battles: pd.DataFrame, epoch: int, *, seed: int, level: int = 0, version: str = "v"):
    """Marks of 2 to 6, raised by a level, in both orders."""
    rng = np.random.default_rng(seed)
    rows = pd.concat(
        [battles[["battle_id"]].assign(order=order) for order in ("AB", "BA")], ignore_index=True
    )
    for name in SCORE_COLUMNS:
        rows[name] = rng.integers(2, 7, len(rows)) + float(level)
    rows = rows.assign(
        judge="j",
        epoch=epoch,
        replicate=FIRST_REPLICATE + epoch if epoch else 0,
        status="ok",
        asked_at=f"2026-01-{epoch + 1:02}T05:00:00+00:00",
        judge_version=version,
        selection_order=0,
        recorded_outcome=np.nan,
    )
    return rows.reindex(columns=list(EPOCH_DTYPES)).astype(
        {k: v for k, v in EPOCH_DTYPES.items() if v != "int64"}
    )


def test_every_epoch_is_held_against_the_baseline(battles):
    epochs = [answers(battles, 0, seed=0), answers(battles, 1, seed=1)]
    epochs += [answers(battles, epoch, seed=epoch, level=2) for epoch in (2, 3)]
    table = drift_table(pd.concat(epochs, ignore_index=True), battles)
    assert table.dtypes.astype(str).to_dict() == DRIFT_DTYPES
    assert table["statistic"].tolist() == list(UNITS) * 3
    level = table[table["statistic"].eq("score_level")]
    assert level["moved"].tolist() == [False, True, True]
    assert level["change"].tolist() == pytest.approx([0, 2, 2], abs=0.3)
    assert level["asked_at"].str[:10].tolist() == ["2026-01-02", "2026-01-03", "2026-01-04"]
    assert moved_since(table) == {"score_level": (2, "2026-01-03T05:00:00+00:00")}


def test_a_statistic_that_came_back_has_not_moved_and_one_that_left_again_is_young():
    def series(*moved: bool) -> pd.DataFrame:
        epochs = range(1, len(moved) + 1)
        times = [str(epoch) for epoch in epochs]
        told = {"statistic": "beta", "moved": list(moved), "epoch": epochs, "asked_at": times}
        return pd.DataFrame(told)

    assert moved_since(series(True, True, False)) == {}
    assert moved_since(series(True, False, True, True)) == {"beta": (3, "3")}
    assert moved_since(series(True, True)) == {"beta": (1, "1")}


def test_only_the_latest_version_of_a_judge_is_compared_with_itself(battles):
    old = [answers(battles, epoch, seed=epoch, version="old") for epoch in (0, 1)]
    new = [answers(battles, epoch, seed=9 + epoch, level=2, version="new") for epoch in (0, 2)]
    table = drift_table(pd.concat([*old, *new], ignore_index=True), battles)
    assert table["epoch"].unique().tolist() == [2]
    assert not table["moved"].any()


def test_a_call_that_did_not_reach_the_judge_takes_its_battle_out_and_no_other_failure_does(
    battles,
):
    now = answers(battles, 1, seed=1)
    scores = list(SCORE_COLUMNS)
    now.loc[0, "status"], now.loc[1, "status"] = "transport", "refusal"
    now.loc[[0, 1], scores] = np.nan
    table = drift_table(pd.concat([answers(battles, 0, seed=0), now]), battles)
    n_battles = table.set_index("statistic")["n_battles"]
    assert n_battles["scored_share"] == N_BATTLES - 1
    assert n_battles["score_level"] == N_BATTLES - 2
    assert table.set_index("statistic").loc["scored_share", "now"] == pytest.approx(38 / 39)


def test_runs_of_the_panel_count_where_their_first_is_the_baseline(battles):
    both = pd.concat([answers(battles, 0, seed=0), answers(battles, 1, seed=1)])
    first = both[both["epoch"].eq(0)]
    sides = [first[[c for c in SCORE_COLUMNS if c.endswith(s)]].mean(axis=1) for s in ("_a", "_b")]
    scores = (sides[0] - sides[1]).groupby(first["battle_id"]).mean()
    scores.iloc[:5] += 1.0  # there, the panel is of another version
    once = scores.rename("score_difference").reset_index().assign(replicate=0)
    again = once.assign(replicate=1, score_difference=scores.to_numpy() + 1)
    panel = pd.concat([once, again]).reindex(columns=list(PANEL_DTYPES))
    table = drift_table(both, battles, panel).set_index("statistic")
    assert table.loc["run_distance", "n_battles"] == N_BATTLES - 5
    assert table.loc["run_distance", "baseline"] == pytest.approx(1.0)
    table = drift_table(both, battles, once).set_index("statistic")
    assert "no runs" in table.loc["run_distance", "note"]


def test_without_answers_there_is_no_drift(battles):
    assert drift_table(empty_epochs(), battles).empty
    assert drift_table(answers(battles, 0, seed=0), battles).empty
