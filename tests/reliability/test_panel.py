"""The reliability panel: which battles are in it, its rows by run, and its check."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from catalogs import catalog_of

from assets.partitions import corpus_judge_key, register
from assets.reliability import gate
from assets.reliability.gate import panel_table, repeated
from judgeline.judges.budget import Budget
from judgeline.steps.reliability import by_run
from judgeline.tables.reliability import RELIABILITY_PANEL
from judgeline.verdict.outcomes import CRITERIA
from resources.config.corpora import CorpusDefinition
from resources.stores import StoredVerdicts
from resources.tables.store import open_store

NAN = np.nan
BATTLES = pd.DataFrame(
    {
        "battle_id": ["y", "x"],
        "question_id": ["q", "q"],
        "cluster_id": ["q", "q"],
        "model_a": ["ant", "bee"],
        "model_b": ["bee", "cat"],
        "language": "en",
        "human_outcome": [1.0, NAN],
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
    return table.assign(judge="j", status=status, recorded_outcome=NAN, **scores)


VERDICTS = _verdicts(
    ("x", 0, "AB", 2), ("x", 0, "BA", 1), ("x", 1, "AB", -2), ("x", 1, "BA", "refusal"),
    ("y", 0, "AB", 1), ("y", 0, "BA", -3), ("y", 1, "AB", 0), ("y", 1, "BA", 0),
    ("elsewhere", 0, "AB", 4), ("elsewhere", 0, "BA", 4),
)  # fmt: skip


def test_a_row_is_a_run_on_a_battle() -> None:
    table = panel_table(BATTLES, VERDICTS)
    assert table.dtypes.astype(str).to_dict() == RELIABILITY_PANEL.dtypes
    keys = table[["battle_id", "replicate", "selection_order"]].to_numpy().tolist()
    assert keys == [["y", 0, 0], ["y", 1, 0], ["x", 0, 1], ["x", 1, 1]]
    assert table["status"].tolist() == ["ok", "ok", "ok", "refusal"]
    np.testing.assert_array_equal(table["score_difference"], [-1, 0, 1.5, NAN])
    # opposite signs in the two orders are a tie
    np.testing.assert_array_equal(table["judge_outcome"], [0.5, 0.5, 1, NAN])
    np.testing.assert_array_equal(table["difference_ab"], [1, 0, 2, NAN])
    unseen = VERDICTS[~(VERDICTS["battle_id"].eq("y") & VERDICTS["replicate"].eq(1))]
    row = panel_table(BATTLES, unseen).set_index(["battle_id", "replicate"]).loc[("y", 1)]
    assert (row["status"], np.isnan(row["score_difference"])) == ("missing", True)


def test_runs_stand_beside_one_another_and_gaps_stay_gaps() -> None:
    wide = by_run(panel_table(BATTLES, VERDICTS), "score_difference")
    assert wide.index.tolist() == ["x", "y"]
    np.testing.assert_array_equal(wide, [[1.5, NAN], [-1, 0]])
    silent = VERDICTS.assign(status=VERDICTS["status"].mask(VERDICTS["replicate"].eq(1), "refusal"))
    wide = by_run(panel_table(BATTLES, silent), "score_difference")
    np.testing.assert_array_equal(wide, [[1.5, NAN], [-1, NAN]])
    assert set(repeated(VERDICTS)) == {"x", "y"}
    assert repeated(VERDICTS[VERDICTS["replicate"].eq(0)]).empty


@pytest.mark.parametrize(
    ("battles", "verdicts"),
    [(BATTLES, VERDICTS.head(0)), (BATTLES, VERDICTS.tail(2)), (BATTLES.head(0), VERDICTS)],
)
def test_without_verdicts_the_panel_is_empty_and_has_its_columns(battles, verdicts) -> None:
    table = panel_table(battles, verdicts)
    assert table.empty
    assert table.dtypes.astype(str).to_dict() == RELIABILITY_PANEL.dtypes


# ------------------------------------------------------------------ the asset


def chosen(battles, size: int | None, before=None) -> list[str]:
    options = {} if size is None else {"panel": {"battles": size}}
    corpus = CorpusDefinition(slug="c", reader="battles", **options)
    return gate.choose_panel(battles, corpus, before)["battle_id"].tolist()


def test_battles_of_a_panel_stay_while_they_exist(sampled_battles) -> None:
    ids = sampled_battles["battle_id"].tolist()
    assert chosen(sampled_battles, None) == []
    five = chosen(sampled_battles, 5)
    assert (len(five), set(five) < set(ids)) == (5, True)
    assert chosen(sampled_battles, 8)[:5] == five
    assert len(chosen(sampled_battles, 500)) == len(ids)
    last = ids[-3:]
    before = pd.DataFrame(
        {"battle_id": last * 2, "replicate": [0] * 3 + [1] * 3, "selection_order": [0, 1, 2] * 2}
    )
    four = chosen(sampled_battles, 4, before)
    assert (four[:3], len(four)) == (last, 4)
    fewer = sampled_battles[sampled_battles["battle_id"].ne(last[1])].reset_index(drop=True)
    assert chosen(fewer, 4, before)[:2] == [last[0], last[2]]
    assert chosen(sampled_battles, 2, before) == last[:2]


@pytest.fixture
def made(tmp_path, sampled_battles):
    """Return the panel of the verdicts of a judge that came with the corpus."""

    def make(verdicts: pd.DataFrame, options: str) -> dg.MaterializeResult[pd.DataFrame]:
        corpora = f"c: {{reader: battles, location: x{options}}}"
        judges = "stub: {display_name: S, family: none, kind: recorded}"
        with dg.DagsterInstance.ephemeral() as instance:
            register(instance, corpora=["c"], judges=["stub"])
            key = corpus_judge_key("c", "stub")
            return gate.reliability_panel(
                dg.build_asset_context(partition_key=key, instance=instance),
                sampled_battles=sampled_battles,
                recorded_verdicts=verdicts,
                verdicts=verdicts,
                catalog=catalog_of(tmp_path, corpora=corpora, judges=judges),
                verdict_store=StoredVerdicts(uri=str(tmp_path / "verdicts")),
                budget=Budget(0),  # nobody is asked
                io_manager=open_store(str(tmp_path / "tables")),
            )

    return make


def test_recorded_verdicts_are_a_panel_where_they_came_several_times(made, verdicts) -> None:
    twice = verdicts[verdicts["battle_id"].lt("battle-10")]
    again = pd.concat([verdicts, *(twice.assign(replicate=run) for run in (1, 2, 3))])
    result = made(again, ", panel: {battles: 6, runs: 3}")
    assert result.value["battle_id"].nunique() == 6
    assert result.value["battle_id"].lt("battle-10").all()
    assert set(result.value["replicate"]) == {0, 1, 2}
    assert result.value["score_difference"].eq(1).all()
    for given, options, note in (
        (again, "", "add 'panel"),
        (verdicts, ", panel: {}", "once per battle"),
    ):
        none = made(given, options)
        assert none.value.empty
        assert none.value.columns.tolist() == RELIABILITY_PANEL.columns
        assert none.metadata["n_battles"] == 0
        assert note in none.metadata["note"]


def test_runs_that_scored_too_few_battles_warn() -> None:
    check = gate.every_run_scored_the_panel
    runs = panel_table(BATTLES, VERDICTS.replace({"status": {"refusal": "ok"}}).fillna(5))
    assert check(runs).passed
    assert check(runs.head(0)).passed
    result = check(panel_table(BATTLES, VERDICTS))
    assert (result.passed, result.severity.value) == (False, "WARN")
    assert "such as x" in result.description
