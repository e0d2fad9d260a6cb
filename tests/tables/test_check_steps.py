"""The declared checks of a table are one step, of which each check can be executed by itself."""

import dagster as dg
import pandas as pd
import pytest

from assets.checks import Checks, _tried, declared, step_of
from assets.partitions import CORPUS_JUDGE, register
from judgeline.tables.rules import holds, known, within
from judgeline.tables.schema import Check, Table
from resources.tables.store import ParquetTables

BOARD = Table(
    "board",
    "model rating",
    key=["model"],
    checks=[
        Check("known", "Models have names.", known("model"), remedy="Name it.", blocking=True),
        Check("rated", "Ratings are high.", [within("rating", 9, note="9 or more")], "Rate."),
        Check("voted", "Each model has votes.", [holds("has_votes", None, "a model has votes")],
         remedy=lambda board: f"Vote on {len(board)} models.", rows=lambda board,
         ballots: board.assign(has_votes=board["model"].isin(ballots["model"])), beside="ballots"),
    ],
)  # fmt: skip


@dg.asset(partitions_def=CORPUS_JUDGE)
def board() -> pd.DataFrame:
    return pd.DataFrame({"model": ["ant", "bee"], "rating": [9.5, 1.0]})


@dg.asset(partitions_def=CORPUS_JUDGE)
def ballots() -> pd.DataFrame:
    return pd.DataFrame({"model": ["ant"]})


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Evaluations of the selected checks by name, of tables that were made before."""
    folder, step = tmp_path_factory.mktemp("tables"), step_of("board", [declared(BOARD)])
    alone = (dg.AssetCheckKey(dg.AssetKey("board"), check.name) for check in BOARD.checks)
    selections = {
        "tables": dg.AssetSelection.assets("board", "ballots").without_checks(),
        "all_checks": dg.AssetSelection.checks(step),
        **{key.name: dg.AssetSelection.checks(key) for key in alone},
    }
    defs = dg.Definitions(
        [board, ballots],
        asset_checks=[step],
        resources={"io_manager": ParquetTables(base_uri=str(folder))},
        jobs=[dg.define_asset_job(name, selection) for name, selection in selections.items()],
    )
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["tiny"], judges=["careful"])

        def run(job: str) -> dict[str, dg.AssetCheckEvaluation]:
            # a tag, as the interface does: a job of checks alone takes no partition key
            done = defs.resolve_job_def(job).execute_in_process(
                instance=instance, tags={"dagster/partition": "tiny|careful"}
            )
            return {one.check_name: one for one in done.get_asset_check_evaluations()}

        assert run("tables") == {}
        yield run


def test_all_checks_are_one_step_that_may_read_other_tables(evaluated):
    found = evaluated("all_checks")
    passed = {name: one.passed for name, one in found.items()}
    assert passed == {"known": True, "rated": False, "voted": False}
    assert "such as bee" in found["voted"].description
    assert "Vote on 2 models." in found["voted"].description
    assert [name for name, one in found.items() if one.blocking] == ["known"]
    assert [set(evaluated(name)) for name in passed] == [{name} for name in passed]


def test_a_check_that_dies_has_failed_and_hides_no_other():
    def dies(board):
        raise RuntimeError("no memory of it")

    def passes(board):
        return dg.AssetCheckResult(passed=True)

    groups = [
        Checks("board", [("dies", "", False)], dies, {}),
        Checks("board", [("passes", "", True)], passes, {}),
    ]
    found = [*_tried(groups, {"dies", "passes"}, {"board": None})]
    assert [(one.check_name, one.passed) for one in found] == [("dies", False), ("passes", True)]
    assert "RuntimeError: no memory of it" in found[0].description
    blocking = [groups[1], Checks("board", [("dies", "", True)], dies, {})]
    tried = _tried(blocking, {"dies", "passes"}, {"board": None})
    assert next(tried).check_name == "passes"
    with pytest.raises(RuntimeError, match="no memory"):
        next(tried)
