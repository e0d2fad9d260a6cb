"""Cheap tables follow their inputs by themselves; nothing that asks or reads outside ever does."""

from contextlib import contextmanager

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationPlanned,
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.definitions.partitions.subset.default import DefaultPartitionsSubset
from dagster._core.events import (
    AssetMaterializationPlannedData,
    DagsterEvent,
    StepMaterializationData,
)
from dagster._core.test_utils import create_run_for_test
from dagster._core.utils import make_new_run_id

from assets.partitions import CORPUS, corpus_judge_key, register
from pipelines.definitions import defs

ASKING = {
    "verdicts", "score_verdicts", "choice_verdicts", "reliability_panel", "rationale_embeddings",
    "candidate_verdicts", "drift_answers", "learnt_ratings",
}  # fmt: skip
"""Made by asking judges, or an endpoint for vectors: somebody has to say so."""
BY_HAND = {
    "candidates",  # read from the folder of candidates, by its sensor
    "candidate_battles",
    "votes",  # read from the folder of votes, by its sensor
    "raw_battles",  # read outside: by a person or the weekly schedule
    "quarantined_battles",
    "recorded_verdicts",
}
pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")


def named(keys):
    return {key.to_user_string() for key in keys}


@pytest.fixture(scope="module")
def graph():
    return defs.resolve_asset_graph()


class World:
    """An instance on which tables are said to be made, and what conditions then ask for."""

    def __init__(self, instance, graph):
        self.instance, self.graph = instance, graph
        self.cursor, self.ever, self.version = None, set(), 0

    def partition(self, key, judge):
        of_corpus = self.graph.get(key).partitions_def == CORPUS
        return "c" if of_corpus else corpus_judge_key("c", judge)

    @contextmanager
    def run(self, keys, judge="old"):
        """A run that is about to make tables of a corpus or judge, and has ended afterwards."""
        run = create_run_for_test(
            self.instance, asset_selection=frozenset(keys), status=dg.DagsterRunStatus.STARTED
        )
        for key in keys:
            planned = AssetMaterializationPlannedData(key, self.partition(key, judge))
            self.instance.report_dagster_event(
                DagsterEvent(
                    dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value,
                    "a run",
                    event_specific_data=planned,
                ),
                run.run_id,
            )
        yield run
        ended = DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, "a run")
        self.instance.report_dagster_event(ended, run.run_id)

    def make(self, keys, judge="old", *, changed=True, version=None, run_id=None):
        """Say that tables of a corpus and a judge were made and passed their checks."""
        self.version += changed
        ordered = [key for level in self.graph.toposorted_asset_keys_by_level for key in level]
        for key in (key for key in ordered if key in keys):
            partition = self.partition(key, judge)
            made = dg.AssetMaterialization(
                key, partition=partition, tags={DATA_VERSION_TAG: str(version or self.version)}
            )
            if run_id is None:
                self.instance.report_runless_asset_event(made)
            else:
                event = DagsterEvent(
                    dg.DagsterEventType.ASSET_MATERIALIZATION.value,
                    "a run",
                    event_specific_data=StepMaterializationData(made),
                )
                self.instance.report_dagster_event(event, run_id)
            for check in self.graph.get_check_keys_for_assets({key}):
                self._pass(check, partition)

    def _pass(self, check, partition):
        """Say that a check passed, as a run would: it plans it and then evaluates it."""
        run_id = make_new_run_id()
        planned = AssetCheckEvaluationPlanned(
            asset_key=check.asset_key,
            check_name=check.name,
            partitions_subset=DefaultPartitionsSubset({partition}),
        )
        made = dg.AssetRecordsFilter(asset_key=check.asset_key, asset_partitions=[partition])
        (record,) = self.instance.fetch_materializations(made, limit=1).records
        passed = dg.AssetCheckEvaluation(
            asset_key=check.asset_key,
            check_name=check.name,
            passed=True,
            partition=partition,
            target_materialization_data=AssetCheckEvaluationTargetMaterializationData(
                storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp
            ),
        )
        for kind, said in (
            (dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED, planned),
            (dg.DagsterEventType.ASSET_CHECK_EVALUATION, passed),
        ):
            event = DagsterEvent(kind.value, "a run", event_specific_data=said)
            self.instance.report_dagster_event(event, run_id)

    def tick(self):
        """What the conditions ask for now: partitions by asset."""
        result = dg.evaluate_automation_conditions(
            defs=defs, instance=self.instance, cursor=self.cursor
        )
        self.cursor = result.cursor
        found = {
            key: set(result.get_requested_partitions(key))
            for key in self.graph.executable_asset_keys
            if result.get_num_requested(key)
        }
        self.ever |= named(found)
        return found

    def follow(self, version=None):
        """Make whatever is asked for until nothing more is; return all that was."""
        followed = set()
        for _ in range(20):
            asked = self.tick()
            if not asked:
                return named(followed)
            followed |= set(asked)
            for of_corpus in (True, False):
                keys = {
                    k for k in asked if (self.graph.get(k).partitions_def == CORPUS) == of_corpus
                }
                with self.run(keys) as run:
                    self.make(keys, version=version, run_id=run.run_id)
        raise AssertionError(f"conditions never come to rest: {named(asked)}")


@pytest.fixture
def world(graph):
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["c"], judges=["old"])
        yield World(instance, graph)


def cheap_after(graph, start):
    """Descendants that are reached without passing through a table that somebody must ask for."""
    found, waiting = set(), [start]
    while waiting:
        for child in named(graph.get(dg.AssetKey(waiting.pop())).child_keys):
            if child not in found | ASKING | BY_HAND:
                found.add(child)
                waiting.append(child)
    return found


def test_every_table_follows_or_is_known_not_to(graph):
    without = named(
        key for key in graph.executable_asset_keys if graph.get(key).automation_condition is None
    )
    assert without == ASKING | BY_HAND


def test_cheap_tables_follow_to_the_end_and_nothing_asks(world, graph):
    world.make(graph.executable_asset_keys)
    world.tick()
    for changed in ({"raw_battles"}, ASKING):
        world.make(set(map(dg.AssetKey, changed)))
        assert world.follow() == set.union(*(cheap_after(graph, one) for one in changed))
    assert world.ever & (ASKING | BY_HAND) == set()


def test_content_that_did_not_change_moves_nothing(world, graph):
    """As where a run reads a corpus again, finds it as it was, and fails at the judge."""
    world.make(graph.executable_asset_keys)
    world.tick()
    world.make({dg.AssetKey("raw_battles"), dg.AssetKey("verdicts")}, changed=False)
    assert world.follow() == set()
    world.make({dg.AssetKey("raw_battles")})
    assert "leaderboard" in world.follow()


def test_a_judge_that_was_just_added_is_asked_nothing(world, graph):
    world.make(graph.executable_asset_keys)
    world.tick()
    register(world.instance, judges=["new"])
    assert world.tick() == {}
    world.make({dg.AssetKey("raw_battles")})
    for _ in range(6):
        asked = world.tick()
        assert all("new" not in str(partition) for found in asked.values() for partition in found)
        world.make(set(asked))
    assert world.ever & (ASKING | BY_HAND) == set()


def test_what_was_not_made_is_not_compared(world, graph):
    """Half of a lineage, as a backfill up to the leaderboard leaves it."""
    upstream = dg.AssetSelection.assets("leaderboard").upstream()
    world.tick()
    world.make(upstream.resolve(graph))
    followed = world.follow()
    assert "scoring_methods" not in followed
    assert {"judge_comparison", "report"} <= followed


def test_gate_and_board_wait_for_no_panel_and_follow_one(world, graph):
    """Somebody has to ask for a panel; what the gate withholds follows it."""
    panel = dg.AssetKey("reliability_panel")
    world.make(graph.executable_asset_keys - {panel})
    world.tick()
    world.make({dg.AssetKey("verdicts")})
    assert {"judge_gate", "leaderboard"} <= world.follow()
    world.make({panel})
    assert {"judge_gate", "leaderboard", "predictions", "candidate_ratings"} <= world.follow()


def test_votes_that_are_withdrawn_leave_the_board(world, graph):
    """Contents of before are made again: those that lie between were on the board."""
    world.make(graph.executable_asset_keys)
    world.tick()
    for version in ("without", "with", "without", "with"):
        world.make({dg.AssetKey("votes")}, version=version)
        assert "leaderboard" in world.follow(version), version


@pytest.mark.parametrize("n_ticks", [0, 1])
def test_votes_that_are_withdrawn_while_boards_are_made_leave_them(world, graph, n_ticks):
    """A run that read the votes ends after the tables before the board were made without them."""
    votes, scored, board = map(dg.AssetKey, ("votes", "scored_battles", "leaderboard"))
    world.make(graph.executable_asset_keys, version="without")
    world.tick()
    world.make({votes}, version="with")
    asked = {key for key in world.tick() if graph.get(key).partitions_def != CORPUS}
    assert {scored, board} <= asked
    with world.run(asked) as run:
        world.make({scored}, version="with", run_id=run.run_id)
        world.make({votes}, version="without")
        again = set(world.tick())
        assert scored in again
        assert board not in again
        world.make(again, version="without")
        for _ in range(n_ticks):
            world.tick()
        world.make(asked - {scored}, version="with", run_id=run.run_id)
    assert "leaderboard" in world.follow("without")
