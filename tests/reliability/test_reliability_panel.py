"""The panel's table: what each run made of each battle, from verdicts by hand."""

import numpy as np
import pandas as pd
import pytest

from assets.reliability.tables import PANEL_DTYPES, by_run, panel_table, repeated
from judgeline.verdict.outcomes import CRITERIA


@pytest.fixture
def battles() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "battle_id": ["y", "x"],
            "question_id": ["q", "q"],
            "cluster_id": ["q", "q"],
            "model_a": ["ant", "bee"],
            "model_b": ["bee", "cat"],
            "language": "en",
            "human_outcome": [1.0, np.nan],
            "completion_a": "a",
            "completion_b": "b",
            "selection_order": [0, 1],
        }
    )


def _verdicts(*rows: tuple[str, int, str, float | str]) -> pd.DataFrame:
    """Battle, run, order, and A's lead in points or the failure."""
    table = pd.DataFrame(rows, columns=["battle_id", "replicate", "order", "lead"])
    failed = table["lead"].map(lambda lead: isinstance(lead, str))
    lead = table["lead"].mask(failed).astype(float)
    scores = {f"{name}_a": 5 + lead for name in CRITERIA}
    scores |= {f"{name}_b": lead * 0 + 5 for name in CRITERIA}
    status = table["lead"].where(failed, "ok")
    return table.assign(judge="j", status=status, recorded_outcome=np.nan, **scores)


VERDICTS = _verdicts(
    ("x", 0, "AB", 2), ("x", 0, "BA", 1), ("x", 1, "AB", -2), ("x", 1, "BA", "refusal"),
    ("y", 0, "AB", 1), ("y", 0, "BA", -3), ("y", 1, "AB", 0), ("y", 1, "BA", 0),
    ("elsewhere", 0, "AB", 4), ("elsewhere", 0, "BA", 4),
)  # fmt: skip


def test_a_row_is_a_run_on_a_battle(battles: pd.DataFrame) -> None:
    table = panel_table(battles, VERDICTS)
    assert table.dtypes.astype(str).to_dict() == PANEL_DTYPES
    keys = table[["battle_id", "replicate", "selection_order"]].to_numpy().tolist()
    assert keys == [["y", 0, 0], ["y", 1, 0], ["x", 0, 1], ["x", 1, 1]]
    assert table["status"].tolist() == ["ok", "ok", "ok", "refusal"]
    np.testing.assert_array_equal(table["score_difference"], [-1, 0, 1.5, np.nan])
    # opposite signs in the two orders are a tie
    np.testing.assert_array_equal(table["judge_outcome"], [0.5, 0.5, 1, np.nan])
    np.testing.assert_array_equal(table["difference_ab"], [1, 0, 2, np.nan])


def test_a_run_that_never_saw_a_battle_says_so(battles: pd.DataFrame) -> None:
    some = VERDICTS[~(VERDICTS["battle_id"].eq("y") & VERDICTS["replicate"].eq(1))]
    table = panel_table(battles, some).set_index(["battle_id", "replicate"])
    assert table.loc[("y", 1), "status"] == "missing"
    assert np.isnan(table.loc[("y", 1), "score_difference"])


def test_runs_stand_beside_one_another_and_gaps_stay_gaps(battles: pd.DataFrame) -> None:
    wide = by_run(panel_table(battles, VERDICTS), "score_difference")
    assert wide.index.tolist() == ["x", "y"]
    np.testing.assert_array_equal(wide, [[1.5, np.nan], [-1, 0]])
    silent = VERDICTS.assign(status=VERDICTS["status"].mask(VERDICTS["replicate"].eq(1), "refusal"))
    wide = by_run(panel_table(battles, silent), "score_difference")
    np.testing.assert_array_equal(wide, [[1.5, np.nan], [-1, np.nan]])


@pytest.mark.parametrize("verdicts", [VERDICTS.head(0), VERDICTS.tail(2)])
def test_without_verdicts_the_panel_is_empty_and_has_its_columns(
    battles: pd.DataFrame, verdicts: pd.DataFrame
) -> None:
    table = panel_table(battles, verdicts)
    assert table.empty
    assert table.dtypes.astype(str).to_dict() == PANEL_DTYPES
    assert panel_table(battles.head(0), VERDICTS).empty


def test_battles_with_several_runs_are_told() -> None:
    assert set(repeated(VERDICTS)) == {"x", "y"}
    assert repeated(VERDICTS[VERDICTS["replicate"].eq(0)]).empty
