"""Months in minutes: new judges and new models come to an installation whose servers run."""

import dialogs
import pandas as pd
import pytest
from living import Living, Timestamps

from assets.partitions import CORPUS
from pipelines.definitions import build_definitions
from resources.config.judges import load_judges

pytestmark = [pytest.mark.slow, pytest.mark.browser]

FROM_UI, FROM_COMMAND_LINE = ("steady", "strict"), "brisk"
TRAITS = {
    "steady": {"seed": 11, "noise": 0.8},
    "strict": {"seed": 12, "noise": 1.0, "verbosity_bias": -0.2},
    "brisk": {"seed": 13, "noise": 1.3, "position_bias": 0.4},
}
EXAMPLE = "careful"
BACKFILL_SECONDS, PATIENCE_SECONDS = 1200, 300
MATRIX = "/assets/leaderboard?view=partitions"
ASKING = ("verdicts", "score_verdicts", "choice_verdicts", "reliability_panel")


@pytest.fixture(scope="module")
def alive(judged: Living) -> Living:
    """The shipped judges' work on the arena is done, and the servers run with nothing to do."""
    judged.start()
    judged.settle()
    return judged


def configure(place: Living, *slugs: str) -> None:
    """Write judges into judges.yaml, and wait until they are partitions."""
    traits = load_judges()["careful"].builtin.model_dump()
    entries = {
        slug: {
            "display_name": f"{slug.capitalize()} (simulated)",
            "family": "oak",
            "kind": "builtin",
            "asks": ["rubric", "score", "choice"],
            "builtin": traits | TRAITS[slug],
        }
        for slug in slugs
    }
    place.edit("judges", lambda known: known.update(entries))
    place.wait("the judges to be partitions", lambda: set(slugs) <= set(place.keys("judge")), 90)


def moved(before: Timestamps, after: Timestamps) -> list[str]:
    """What was remade of what there was before, apart from what reads all judges."""
    return [
        f"{asset} {partition}"
        for asset, made in before.items()
        if asset not in following()
        for partition, timestamp in made.items()
        if after[asset].get(partition) != timestamp
    ]


def following() -> set[str]:
    """Return the tables of a corpus that read all of its judges: they may follow a new one."""
    graph = build_definitions().resolve_asset_graph()
    return {
        node.key.to_user_string()
        for node in graph.asset_nodes
        if node.partitions_def == CORPUS and node.group_name != "corpus"
    }


LAUNCH = """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
    __typename ... on LaunchBackfillSuccess { backfillId } } }"""


def test_without_servers_a_backfill_says_how_to_start_them(judged: Living) -> None:
    told = judged.command("backfill", "--judge", EXAMPLE, "--yes", code=1)
    assert "never seen). Start one and leave it running: judgeline ui" in " ".join(told.split())


def test_a_judge_added_while_it_runs_is_backfilled_from_the_browser(alive, browser, tmp_path):
    before = alive.timestamps()
    configure(alive, *FROM_UI)
    chosen = {"corpus": ["arena"], "judge": list(FROM_UI)}
    told = dialogs.backfill(browser, alive.url, chosen, folder=tmp_path, button="Launch backfill")
    assert "2 partitions" in told
    alive.wait("the backfill to be known", alive.backfills, 30)
    alive.wait("the backfill to end", lambda: ended(alive), BACKFILL_SECONDS)
    alive.settle()

    after = alive.timestamps()
    assert moved(before, after) == []
    for slug in FROM_UI:
        assert complete(after, slug)
        assert alive.metadata("verdicts", f"arena|{slug}")["n_asked"] > 0
    browser.open(alive.url + MATRIX, "Failed (0)", *FROM_UI)
    browser.photograph("partitions", tmp_path)
    browser.open(alive.url + dialogs.JUDGE_JOB + "/partitions", "Show per-asset status")
    browser.press("Show per-asset status")
    browser.shows("leaderboard", "verdicts")
    browser.photograph("partition-matrix", tmp_path)


@pytest.mark.full
def test_a_further_judge_is_backfilled_from_the_command_line_and_again_for_nothing(alive):
    before = alive.timestamps()
    configure(alive, FROM_COMMAND_LINE)
    chosen = ("--judge", FROM_COMMAND_LINE, "--corpus", "arena", "--budget", "9000calls", "--yes")
    printed = alive.command("backfill", *chosen)
    own = f"arena|{FROM_COMMAND_LINE}"
    assert f"done {own}" in printed
    alive.settle()

    after = alive.timestamps()
    assert moved(before, after) == []
    assert complete(after, FROM_COMMAND_LINE)
    asked = sum(alive.metadata(asset, own).get("n_asked", 0) for asset in ASKING)
    assert f"Together: {asked:,} calls" in printed

    again = {
        "assetSelection": [{"path": ["verdicts"]}, {"path": ["scored_battles"]}],
        "partitionNames": [own],
        "tags": [{"key": "judgeline/budget", "value": "1calls"}],  # all of it is stored
    }
    launched = alive.ask(LAUNCH, p=again)["launchPartitionBackfill"]["__typename"]
    assert launched == "LaunchBackfillSuccess"
    alive.wait("the interface's backfill", lambda: ended(alive), PATIENCE_SECONDS)
    last = alive.timestamps()
    assert last["verdicts"][own] > after["verdicts"][own]
    assert last["verdicts"][f"arena|{EXAMPLE}"] == before["verdicts"][f"arena|{EXAMPLE}"]


def test_a_judge_that_leaves_the_configuration_leaves_the_comparison_and_keeps_its_verdicts(alive):
    def table(*place: str) -> pd.DataFrame:
        path = alive.home.joinpath("tables", *place).with_suffix(".parquet")
        with path.open("rb") as whole:  # opened once: the table may be replaced meanwhile
            return pd.read_parquet(whole)

    leaving = FROM_UI[1]
    judges = set(alive.keys("judge"))
    left = judges - {leaving}
    n_verdicts = len(table("verdicts", "arena", leaving))
    alive.edit("judges", lambda known: known.pop(leaving))
    alive.wait("its retirement", lambda: set(alive.keys("judge")) == left, PATIENCE_SECONDS)
    alive.wait(
        "the comparison without it",
        lambda: leaving not in set(table("judge_comparison", "arena")["judge"]),
        PATIENCE_SECONDS,
    )
    assert len(table("verdicts", "arena", leaving)) == n_verdicts > 0


def ended(place: Living) -> bool:
    """Whether the latest backfill is over; one that failed fails the test."""
    latest = place.backfills()[0]
    assert "FAILED" not in latest["status"], latest
    return str(latest["status"]) == "COMPLETED_SUCCESS"


def complete(made: Timestamps, slug: str) -> bool:
    """Whether a judge has every table that the judge before it has."""
    example, own = f"arena|{EXAMPLE}", f"arena|{slug}"
    lacking = [asset for asset, when in made.items() if example in when and own not in when]
    assert lacking == []
    return True
