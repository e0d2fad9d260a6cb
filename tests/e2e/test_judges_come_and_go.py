"""A judge that is added while the interface runs, backfilled, and retired: by the real daemon."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from living import Living

from pipelines.definitions import defs

pytestmark = pytest.mark.slow

PATIENCE = 300.0


class House(Living):
    """A small arena with two judges, one of which comes later."""

    def __init__(self, folder: Path) -> None:
        arena = {"n_prompts": 60, "n_battles": 600, "n_voted": 12, "n_new": 2}
        super().__init__(folder, arena)
        self.known: dict[str, Any] = {}
        self.edit("corpora", self._alone)
        self.edit("judges", self.known.update)
        careful = {**self.known["careful"], "asks": ["rubric"]}
        traits = {**careful["builtin"], "seed": 7}  # it fails nowhere: all is stored
        newcomer = {**careful, "display_name": "Newcomer", "builtin": traits}
        self.known = {"careful": careful, "newcomer": newcomer}
        self.judges("careful")

    def _alone(self, known: dict[str, Any]) -> None:
        arena = known["arena"]
        del arena["panel"]
        known.clear()
        few = {"judges": ["careful"], "sample_size": 300, "rating": {"n_resamples": 20}}
        known["arena"] = arena | few

    def judges(self, *slugs: str) -> None:
        """Have these judges in the configuration, and no others."""

        def replace(known: dict[str, Any]) -> None:
            known.clear()
            known.update({slug: self.known[slug] for slug in slugs})

        self.edit("judges", replace)

    def table(self, *place: str) -> pd.DataFrame:
        return pd.read_parquet(self.home.joinpath("tables", *place).with_suffix(".parquet"))

    def made(self) -> dict[tuple[str, str], float]:
        """When each partition of each table was last made."""
        found: dict[tuple[str, str], float] = {}
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            for key in defs.resolve_asset_graph().executable_asset_keys:
                for record in instance.fetch_materializations(key, limit=1000).records:
                    found.setdefault((key.to_user_string(), record.partition_key), record.timestamp)
        return found

    def partitions(self) -> set[str]:
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            return set(instance.get_dynamic_partitions("judge"))


LAUNCH = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
    __typename ... on LaunchBackfillSuccess { backfillId } } }"""
STATUS = """query($b: String!) { partitionBackfillOrError(backfillId: $b) {
    ... on PartitionBackfill { status } } }"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("house"))
    house.command("run", "--corpus", "arena")
    yield house
    house.left()


def test_a_judge_is_added_backfilled_from_both_sides_and_retired(house: House) -> None:
    before = house.made()
    told = house.command("backfill", "--judge", "careful", "--yes", code=1)
    assert "never seen). Start one and leave it running: judgeline ui" in " ".join(told.split())
    house.start()
    house.wait("the daemon", lambda: house.partitions() == {"careful"}, PATIENCE)
    house.judges("careful", "newcomer")
    house.wait("the partition", lambda: "newcomer" in house.partitions(), PATIENCE)
    chosen = ("--judge", "newcomer", "--corpus", "arena", "--budget", "700calls", "--yes")
    told = house.command("backfill", *chosen)
    assert "arena|newcomer: 600 calls" in told
    assert "done arena|newcomer" in told
    assert len(house.table("verdicts", "arena", "newcomer")) == 600
    after = house.made()
    moved = {name for name, when in before.items() if after[name] != when}
    assert {partition for _, partition in moved} == {"arena"}  # its comparison, no judge's
    assert {partition for _, partition in after.keys() - before.keys()} == {"arena|newcomer"}

    asked = {
        "assetSelection": [{"path": ["verdicts"]}, {"path": ["scored_battles"]}],
        "partitionNames": ["arena|newcomer"],
        "tags": [{"key": "judgeline/budget", "value": "1calls"}],  # all of it is stored
    }
    launched = house.ask(LAUNCH, p=asked)["launchPartitionBackfill"]["backfillId"]

    def ended() -> bool:
        status = house.ask(STATUS, b=launched)["partitionBackfillOrError"]["status"]
        assert status not in ("FAILED", "COMPLETED_FAILED", "CANCELED"), status
        return str(status).startswith("COMPLETED")

    house.wait("the interface's backfill", ended, PATIENCE)
    last = house.made()
    assert last["verdicts", "arena|newcomer"] > after["verdicts", "arena|newcomer"]
    assert last["verdicts", "arena|careful"] == before["verdicts", "arena|careful"]

    house.judges("careful")
    house.wait("the judge to be retired", lambda: house.partitions() == {"careful"}, PATIENCE)

    def compared() -> bool:
        return set(house.table("judge_comparison", "arena")["judge"]) == {"careful"}

    house.wait("the comparison without it", compared, PATIENCE)
    assert len(house.table("verdicts", "arena", "newcomer")) == 600
