"""A backfill says what it costs, wants a yes, and does the work of exactly the named judges."""

import time
from contextlib import nullcontext

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster._daemon.types import DaemonHeartbeat
from newcomers import drop, newcomer

from assets.settings import BUDGET_TAG
from judgeline.cli import main
from judgeline.judges.judge_plan import UNTIMED, JudgePlan, TokenEstimate
from pipelines.commands import backfill
from pipelines.commands.backfill import cancel, choose_pairs, require_daemon, submit
from pipelines.commands.run import _selected
from pipelines.definitions import build_definitions
from pipelines.sensors.activity import identity_now


@pytest.fixture(scope="module")
def read(go_on):
    """The tiny arena as two judges rated it; the others may be asked. Tests only look or add."""
    workshop = go_on()
    workshop.tiny["judges"] = ["careful"]  # the other simulated judges can judge it all the same
    return workshop


@pytest.fixture
def installed(read, monkeypatch):
    """The same as the installation that the command line finds."""
    return read.install(monkeypatch)


def kept(workshop):
    """What opens an instance: the workshop's own, which stays open."""
    return lambda: nullcontext(workshop.instance)


def test_corpora_are_those_that_were_read_and_that_a_judge_can_judge(read):
    catalog, store = read.catalog, read.tables.create_io_manager(None)
    pairs = choose_pairs(catalog, store, ["noise", "sloppy"])
    slugs = [(pair.corpus.slug, pair.judge.slug) for pair in pairs]
    assert slugs == [("tiny", "noise"), ("tiny", "sloppy")]
    lacks = r"no corpus that judge 'recorded' can judge .*tiny\); read one with its verdicts first"
    with pytest.raises(ValueError, match=lacks):
        choose_pairs(catalog, store, ["recorded"])
    with pytest.raises(ValueError, match="knows what came with a corpus, not corpus 'tiny'"):
        choose_pairs(catalog, store, ["recorded"], ["tiny"])
    with pytest.raises(ValueError, match="did you mean"):
        choose_pairs(catalog, store, ["noize"])


def test_a_corpus_that_was_never_read_is_told_with_the_command(make_workshop):
    unread = make_workshop()
    with pytest.raises(ValueError, match="judgeline run --corpus tiny --select group:corpus"):
        choose_pairs(unread.catalog, unread.tables.create_io_manager(None), ["careful"], ["tiny"])


@pytest.mark.parametrize(
    ("beats", "told"),
    [([], "never seen"), ([500.0], "silent for 500 s"), ([5.0], "")],
)
def test_a_daemon_that_is_not_at_work_is_told_with_the_remedy(beats, told):
    with dg.DagsterInstance.ephemeral() as one:
        one.get_required_daemon_types = lambda: ["BACKFILL"]  # without a queue
        for age in beats:
            one.add_daemon_heartbeat(DaemonHeartbeat(time.time() - age, "BACKFILL", "one", []))
        refused = pytest.raises(
            RuntimeError, match=rf"backfill: {told}\). Start one .*judgeline ui.*--here"
        )
        with refused if told else nullcontext():
            require_daemon(one)


def test_the_backfill_is_dagsters_own_of_exactly_these_partitions(installed):
    store, one = installed.tables.create_io_manager(None), installed.instance
    pairs = choose_pairs(installed.catalog, store, ["noise"])
    found = submit(one, build_definitions(tables=installed.tables), store, pairs, ["90calls"])
    stored = one.get_backfill(found)
    assert stored.is_asset_backfill
    assert stored.tags[BUDGET_TAG] == "90calls"
    assert stored.status == BulkActionStatus.REQUESTED
    with dg.partition_loading_context(dynamic_partitions_store=one):
        target = stored.asset_backfill_data.target_subset
        wanted = {
            (key.to_user_string(), partition)
            for key, partition in target.iterate_asset_partitions()
        }
    assert {partition for _, partition in wanted} == {"tiny", "tiny|noise"}
    assert ("verdicts", "tiny|noise") in wanted
    assert ("report", "tiny") in wanted
    assert not {name for name, _ in wanted} & {"raw_battles", "sampled_battles"}
    cancel(one, found)
    assert one.get_backfill(found).status == BulkActionStatus.CANCELING
    with pytest.raises(ValueError, match="is canceling already"):
        cancel(one, found)
    with pytest.raises(ValueError, match="there is no backfill 'nonsense'"):
        cancel(one, "nonsense")


@pytest.fixture
def private(installed, monkeypatch):
    """The command line on the workshop's own instance, without a terminal."""
    monkeypatch.setattr(backfill, "open_instance", kept(installed))
    monkeypatch.setattr("pipelines.instance.homes.open_instance", kept(installed))
    monkeypatch.setattr(backfill, "require_daemon", lambda _: None)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    return installed


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ("", 1, ["tiny|noise: 600 calls", "Together: 600 calls",
                 "nobody is there to confirm (600 calls)", "--yes"]),
        ("--dry-run --judge careful", 0,
         ["tiny|noise: 600 calls", "tiny|careful: no calls (600 answered already)",
          "Together: 600 calls"]),
        ("--budget 599calls --yes", 1, ["about 600 calls would be needed"]),
    ],
)  # fmt: skip
def test_the_price_is_stated_and_nothing_starts(private, capsys, options, code, told):
    """Without a terminal a yes has to be written."""
    before = len(private.instance.get_backfills())
    assert main(["backfill", "--judge", "noise", *options.split()]) == code
    said = " ".join("".join(capsys.readouterr()).split())
    assert [words for words in told if words not in said] == []
    assert len(private.instance.get_backfills()) == before
    assert private.stored("verdicts", "tiny", "noise") is None


def test_it_is_handed_over_and_left_alone(private, capsys):
    assert main(["backfill", "--judge", "noise", "--yes", "--no-wait"]) == 0
    said = capsys.readouterr().out
    backfill_id = said.split("Backfill ")[1].split()[0]
    assert private.instance.get_backfill(backfill_id).status == BulkActionStatus.REQUESTED
    assert main(["backfill", "--cancel", backfill_id]) == 0


def test_leaving_it_says_how_to_end_it(private, monkeypatch, capsys):
    def interrupted(self, pause=2.0):
        raise KeyboardInterrupt

    monkeypatch.setattr(backfill.Watcher, "follow", interrupted)
    assert main(["backfill", "--judge", "noise", "--yes"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "goes on. To end it: judgeline backfill --cancel" in said
    assert main(["backfill"]) == 1
    assert "name a judge" in capsys.readouterr().err


def test_here_it_does_the_same_in_this_process(private, monkeypatch):
    done = {}

    def run_lineage(**asked):
        done.update(asked)
        return type("Outcome", (), {"exit_code": 2})

    monkeypatch.setattr(backfill, "run_lineage", run_lineage)
    assert main(["backfill", "--judge", "noise", "--here", "--yes"]) == 2
    assert (done["corpus"], done["judges"]) == ("tiny", ["noise"])
    defs = build_definitions()

    def assets_of(*jobs):
        keys = [defs.resolve_job_def(job).asset_layer.executable_asset_keys for job in jobs]
        return set().union(*keys)

    a_run = assets_of("corpus_job", "candidate_job", "judge_job", "placing_job", "comparison_job")
    here = a_run & _selected(defs, done["select"])
    assert here == assets_of("judge_job", "comparison_job")
    assert dg.AssetKey("candidate_verdicts") not in here


def test_here_no_new_model_is_judged_that_was_not_stated(finished_workshop, monkeypatch, capsys):
    """The statement says nothing of them, but who places them; so nobody is asked about them."""
    workshop = finished_workshop
    workshop.tiny["judges"] = ["careful"]
    workshop.tiny["candidates"] = {"max_battles": 30, "budget": "44calls"}
    drop(workshop.home / "candidates" / "tiny", newcomer(workshop.tiny["arena"]))
    workshop.rest()
    board = workshop.home / "tables" / "leaderboard" / "tiny" / "careful.parquet"
    board.unlink()  # and so there is something to do
    workshop.install(monkeypatch)
    monkeypatch.setattr("pipelines.commands.run.open_instance", kept(workshop))
    assert main(["backfill", "--judge", "careful", "--here", "--yes"]) in (0, 2)
    said = " ".join(capsys.readouterr().out.split())
    assert "Together: 0 calls tiny has candidates, which are not part of it" in said
    assert "the sensor place_candidates of a daemon, or judgeline run --corpus tiny" in said
    assert "candidates.budget (44calls for each judge and run)" in said
    assert board.exists()
    assert workshop.stored("candidate_battles", "tiny") is None
    assert workshop.stored("candidate_verdicts", "tiny", "careful") is None


def test_prices_of_several_judges_are_added_by_currency():
    tokens = TokenEstimate(10, 5, 20, 10, "")
    priced = JudgePlan("a", "c|a", 2, tokens=tokens, money=1.5, most_money=3, currency="EUR")
    other = JudgePlan("b", "c|b", 1, tokens=tokens, money=0.25, most_money=1, currency="USD")
    unknown = JudgePlan("d", "c|d", 1, tokens=tokens)
    assert backfill.together([priced, priced, other, unknown]) == (
        "6 calls, about 60 tokens, about 3.00 EUR, about 0.25 USD, price unknown of d"
    )
    timed = JudgePlan("v", "c|v", 1, tokens=tokens, gpu_hours="about 2 GPU hours", is_own=True)
    untimed = JudgePlan("w", "c|w", 1, tokens=tokens, gpu_hours=UNTIMED, is_own=True)
    assert backfill.together([timed, untimed]) == (
        "2 calls, about 30 tokens, c|v about 2 GPU hours, price unknown of w"
    )


@pytest.mark.parametrize(
    ("known", "line", "together"),
    [
        (False, "price unknown: a server of your own", "price unknown of own"),
        (True, "about 0.083 GPU hours, at 2.0 calls a second", "tiny|own about 0.083 GPU hours"),
    ],
)
def test_a_server_of_our_own_is_counted_in_gpu_hours(
    known, line, together, private, monkeypatch, capsys
):
    """600 calls at 80 in 40 s are 300 s of one GPU."""
    monkeypatch.setitem(private.judges, "own", {"family": "f", "kind": "vllm", "model": "tiny"})
    private.install(monkeypatch)
    if known:
        key = identity_now(private.catalog.judge("own"), private.catalog.corpus("tiny"), "rubric")
        said = {"n_asked": 80, "seconds_asking": 40.0, "judge_identity": key}
        made = dg.AssetMaterialization("verdicts", partition="elsewhere|own", metadata=said)
        private.instance.report_runless_asset_event(made)
    assert main(["backfill", "--judge", "own", "--corpus", "tiny", "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert line in told
    assert together in told.split("Together: ")[1]
