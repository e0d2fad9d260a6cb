"""A new model drops: what is due by what is on record, and what real runs make of it."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from catalogs import catalog_of
from newcomers import drop, newcomer
from retiring import retire

from assets.partitions import corpus_judge_key, register
from assets.settings import BUDGET_TAG
from pipelines.commands import run as run_module
from pipelines.definitions import build_definitions
from pipelines.instance import homes
from pipelines.instance.homes import HOST_TAG
from pipelines.instance.processes import this_host
from pipelines.sensors import candidates as candidate_sensors
from pipelines.sensors.activity import active_judges, active_or_why, rated_by
from pipelines.sensors.candidates import (
    AGAIN_AFTER_S,
    CANDIDATES_TAG,
    PLACES_TAG,
    Folder,
    Placing,
    Run,
    Table,
    is_placed_by_starter,
    new_candidates,
    place_candidates,
    place_due,
    placing_runs,
    read_due,
    state_of,
)
from resources.candidates.folder import Seen
from resources.config.catalog import Catalog
from resources.stores import StoredVerdicts

SUCCESS, FAILURE, CANCELED, STARTED, QUEUED = (
    dg.DagsterRunStatus[name] for name in ("SUCCESS", "FAILURE", "CANCELED", "STARTED", "QUEUED")
)
NOW = 1e6
COMPLETE = Seen("model.jsonl", 9, 1.0, "hash", "complete")
GROWING = COMPLETE._replace(content_hash="", state="settling")
REPLACED = COMPLETE._replace(state="no-end")

# ---------------------------------------------------------------- what was dropped


def read(
    *runs: tuple[dg.DagsterRunStatus, str], contents: str = "A", ago: float = 60, **found: Any
) -> Folder:
    """A folder, and runs to read contents, newest first; the newest ended so many seconds ago."""
    made = found.get("made") or "none"
    keys = [of and f"candidates:c:x:{of if ':' in of else f'{made}:{of}'}" for _, of in runs]
    records = [
        Run(f"r{len(runs) - place}", status, ended=NOW - ago, key=keys[place])
        for place, (status, _) in enumerate(runs)
    ]
    return Folder("c", contents, **{"files": [COMPLETE], "runs": records, **found})


READ_DUE = {
    "dropped": (read(), "first:A"),
    "changed": (read((SUCCESS, "A"), contents="B", made="A"), "r1:B"),
    "withdrawn": (read((SUCCESS, "A"), contents="", files=[], made="A"), "r1:none"),
    "back again": (read((SUCCESS, "none"), (SUCCESS, "A")), "r2:A"),
    "half was made, or its run failed": (read((SUCCESS, ""), made=None), "r1:A"),
    "a person's run failed": (read((FAILURE, "")), "r1:A"),
    "failed an hour ago": (read((FAILURE, "A"), ago=AGAIN_AFTER_S + 1), "r1:A"),
    "other contents than those that failed": (read((FAILURE, "A"), contents="B"), "r1:B"),
    "left out twice": (read((SUCCESS, "A"), (SUCCESS, "A")), "r2:A"),
    "left out thrice, not in a row": (read(*[(SUCCESS, "A"), (SUCCESS, "")] * 3), "r6:A"),
    "read by hand after it was cancelled": (read((SUCCESS, ""), (CANCELED, "A")), "r2:A"),
    "withdrawn after it was exchanged under new names": (
        read(*[(SUCCESS, f"{one}:none") for one in "ABA"], contents="", files=[], made="B"),
        "r3:none",
    ),
    "another file grows": (read(files=[COMPLETE, GROWING]), "first:A"),
}
READ_NOT_DUE = {
    "nothing there": (read(contents="", files=[]), ""),
    "read already": (read((SUCCESS, "A"), made="A"), ""),
    "the record of its run was deleted": (read(made="A"), ""),
    "half a file": (read(contents="", files=[GROWING]), "'model.jsonl' not complete yet"),
    "being replaced": (read(contents="", files=[REPLACED], made="A"), "not complete yet"),
    "being read": (read((STARTED, "A")), "run r1 reads the candidates"),
    "in the queue": (read((QUEUED, "A"), contents="B"), "run r1 reads the candidates"),
    "just failed": (read((FAILURE, "A")), "run r1 for what was dropped failed; another follows"),
    "cancelled": (
        read((CANCELED, "A")),
        "cancelled; to have it read, start candidate_job of c, or",
    ),
    "cancelled when half was made": (read((CANCELED, "B:A"), made=None), "was cancelled; to have"),
    "failed when half was made": (read((FAILURE, "B:A"), made=None), "failed; another follows"),
    "left out thrice": (read(*[(SUCCESS, "A")] * 3), "run r3 left out what was dropped"),
    "nobody to place it": (read(hindrance="run a judge"), "run a judge"),
}


@pytest.mark.parametrize("case", READ_DUE)
def test_what_is_to_be_read(case: str) -> None:
    folder, key = READ_DUE[case]
    run, contents = key.split(":")
    expected = f"candidates:c:{run}:{folder.made or 'none'}:{contents}"
    assert read_due(folder, NOW) == (expected, "")


@pytest.mark.parametrize("case", READ_NOT_DUE)
def test_what_is_not_read_says_why_and_what_to_do(case: str) -> None:
    folder, why = READ_NOT_DUE[case]
    key, reason = read_due(folder, NOW)
    assert key == ""
    assert why in reason
    assert bool(why) == bool(reason)
    if "cancelled" in why or "left out" in why:
        assert "judgeline run --corpus c" in reason


def test_each_request_has_a_key_of_its_own() -> None:
    """Dagster starts no run of a key that it knows: the same look asks for the same key."""
    states = [read(), read((FAILURE, "A"), ago=9e3), *(one for one, _ in READ_DUE.values())]
    keys = [read_due(state, NOW)[0] for state in states]
    assert keys[0] == read_due(read(), NOW + 9)[0]
    assert keys[0] != keys[1]


# ---------------------------------------------------------------- placing

CHOSEN = Table("f", made_at=100, run_id="chosen")
ANCHORS = Table("", "one", 50, "anchors")
JUDGED = Table("f", "one", 150, "judged")


def placing(**found: Any) -> Placing:
    return Placing("c", "j", **{"chosen": CHOSEN, "anchors": ANCHORS, "identity": "one", **found})


def ran(status: dg.DagsterRunStatus, began: float = 120, identity: str | None = "one") -> Run:
    return Run("last", status, began, identity=identity)


@pytest.mark.parametrize(
    ("found", "is_done"),
    [
        ({}, False),
        ({"judged": JUDGED}, True),
        ({"judged": JUDGED._replace(state="failed")}, False),
        ({"judged": JUDGED._replace(state="unfinished")}, False),
        ({"judged": JUDGED._replace(battles="other")}, False),
        ({"judged": JUDGED._replace(judge="another")}, False),
        ({"judged": JUDGED, "anchors": None}, True),
        ({"judged": JUDGED, "anchors": ANCHORS._replace(judge="")}, True),
        ({"chosen": CHOSEN._replace(battles="")}, True),  # no candidates, and none were placed
        ({"chosen": CHOSEN._replace(battles=""), "judged": JUDGED}, False),  # still on the board
        (
            {
                "chosen": CHOSEN._replace(battles=""),
                "judged": JUDGED._replace(battles="", judge="another"),
            },
            True,
        ),
    ],
)
def test_battles_are_placed_that_a_judge_placed_last_as_it_judges_now(found, is_done):
    assert placing(**found).is_done is is_done


ANEW = ANCHORS._replace(judge="two", made_at=200, run_id="anew")
PLACE_DUE = {
    "never placed": {},
    "without anchors": {"anchors": None},
    "another's run": {"last": ran(SUCCESS, began=90)},
    "an older run failed": {"last": ran(FAILURE, began=90)},
    "judged anew, then a run before that": {
        "anchors": ANEW, "judged": JUDGED, "last": ran(SUCCESS), "identity": "two",
    },
    "judged anew, and the tag is not there": {"anchors": ANEW, "last": ran(SUCCESS, identity=None),
     "identity": "two"},
    "an endpoint that was never asked": {"identity": ""},
    "anchors by nobody knows whom": {"anchors": ANCHORS._replace(judge="")},
    "the same judge's run over the corpus failed": {"anchors": ANCHORS._replace(state="failed")},
    "withdrawn, without the judge's key": {"chosen": CHOSEN._replace(battles=""), "judged": JUDGED,
     "lacks": "set KEY"},
    "withdrawn, by a judge that changed": {"chosen": CHOSEN._replace(battles=""), "judged": JUDGED,
     "identity": "two"},
}  # fmt: skip
BY_HAND = "run: judgeline run --corpus c --judge j"
PLACE_NOT_DUE = {
    "at work": ({"last": ran(STARTED)}, "run last places"),
    "at work on others": ({"last": ran(QUEUED, began=9)}, "run last places"),
    "failed": ({"last": ran(FAILURE)}, f"did not succeed; see last, raise .*, and {BY_HAND}"),
    "cancelled": ({"last": ran(CANCELED)}, f"did not succeed; see last, .*{BY_HAND}"),
    "failed, without anchors": ({"last": ran(FAILURE), "anchors": None}, "did not succeed"),
    "failed, then the same judge judged again": (
        {"last": ran(FAILURE), "anchors": ANCHORS._replace(made_at=200)},
        "did not succeed",
    ),
    "placed other battles": ({"last": ran(SUCCESS)}, f"run last succeeded and .*{BY_HAND}"),
    "a command": ({"starter": "run"}, "the command that started run run places the new models"),
    "no key": ({"lacks": "set KEY"}, "set KEY"),
    "changed": ({"identity": "two"}, f"it has changed since it judged .*{BY_HAND}"),
    "judged anew in part": (
        {"anchors": ANEW._replace(state="failed"), "judged": JUDGED, "identity": "two"},
        f"run anew judged the corpus anew and has not succeeded; unless .*{BY_HAND}",
    ),
}


@pytest.mark.parametrize("case", PLACE_DUE)
def test_a_judge_that_is_behind_places(case: str) -> None:
    state = placing(**PLACE_DUE[case])
    assert not state.is_done
    anchors = state.anchors.run_id if state.anchors else ""
    assert place_due(state) == (f"placing:c|j:chosen:{anchors}", "")


@pytest.mark.parametrize("case", PLACE_NOT_DUE)
def test_a_judge_that_waits_says_why_and_what_to_do(case: str) -> None:
    found, why = PLACE_NOT_DUE[case]
    state = placing(**found)
    assert not state.is_done
    key, reason = place_due(state)
    assert key == ""
    assert re.search(why, reason)


# ---------------------------------------------------------------- what is on record


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as one:
        yield one


def record(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, **given: Any) -> str:
    tags = {"dagster/partition": "c|j", **given.pop("tags", {})}
    run = dg.DagsterRun(given.pop("job_name", "placing_job"), tags=tags, status=status, **given)
    instance.add_run(run)
    return run.run_id


@pytest.mark.parametrize(
    ("statuses", "state"),
    [
        ([FAILURE], "failed"),
        ([CANCELED], "failed"),
        ([STARTED], "unfinished"),
        ([FAILURE, STARTED], "unfinished"),
        ([FAILURE, FAILURE], "failed"),
        ([FAILURE, FAILURE, SUCCESS], "succeeded"),  # the checks alone: it makes no table
    ],
)
def test_a_run_has_succeeded_once_another_attempt_does(instance, statuses, state):
    first = record(instance, statuses[0])
    family = {"dagster/parent_run_id": first, "dagster/root_run_id": first}
    for status in statuses[1:]:
        record(instance, status, tags=family, root_run_id=first, parent_run_id=first)
    assert state_of(instance, first) == state
    instance.delete_run(first)
    assert state_of(instance, first) == "succeeded"


def test_runs_that_ask_are_those_of_the_job_and_those_a_person_put_together(instance):
    asking, board = {dg.AssetKey("candidate_verdicts")}, {dg.AssetKey("leaderboard")}
    of_job = record(instance, SUCCESS)
    record(instance, SUCCESS, asset_selection=board)
    by_hand = record(instance, SUCCESS, job_name="__ASSET_JOB", asset_selection=asking)
    record(instance, SUCCESS, job_name="judge_job")
    found = placing_runs(instance, "c", "j")
    assert [one.dagster_run.run_id for one in found] == [by_hand, of_job]
    assert placing_runs(instance, "c", "another") == []


def test_a_command_places_while_it_lives_and_elsewhere_for_some_hours(instance, monkeypatch):
    own = {PLACES_TAG: "j,other", HOST_TAG: this_host()}
    here = record(instance, SUCCESS, tags=own)
    there = record(instance, SUCCESS, tags={**own, HOST_TAG: "another-host"})
    monkeypatch.setattr(candidate_sensors, "is_gone", lambda *_: False)
    assert is_placed_by_starter(instance, here, "other")
    assert is_placed_by_starter(instance, there, "j")
    assert not is_placed_by_starter(instance, here, "oth")
    assert not is_placed_by_starter(instance, "no such run", "j")
    monkeypatch.setattr(candidate_sensors, "is_gone", lambda *_: True)
    assert not is_placed_by_starter(instance, here, "j")
    assert is_placed_by_starter(instance, there, "j")
    ended = dg.DagsterEvent(dg.DagsterEventType.PIPELINE_SUCCESS.value, "placing_job")
    instance.report_dagster_event(ended, there)
    assert is_placed_by_starter(instance, there, "j")
    monkeypatch.setattr(candidate_sensors, "ELSEWHERE_S", -1.0)
    assert not is_placed_by_starter(instance, there, "j")


# ---------------------------------------------------------------- over a real instance


class Watch:
    """A workshop, and its sensors, looked at one tick at a time; all in the folder has rested."""

    def __init__(self, workshop: Any) -> None:
        self.workshop, self.instance = workshop, workshop.instance
        self.folder = workshop.home / "candidates" / "tiny"
        self.cursor: str | None = None
        self.entrant = newcomer(workshop.tiny["arena"])
        register(self.instance, corpora=["tiny"], judges=["careful", "hasty"])

    @property
    def definitions(self) -> dg.Definitions:
        return build_definitions(
            catalog=self.workshop.catalog,
            tables=self.workshop.tables,
            verdict_store=StoredVerdicts(uri=str(self.workshop.home / "verdicts")),
        )

    def run(self, job: str, partition: str = "tiny", **options: Any) -> dg.ExecuteInProcessResult:
        self.workshop.rest()
        return self.definitions.resolve_job_def(job).execute_in_process(
            partition_key=partition, instance=self.instance, raise_on_error=False, **options
        )

    def have_leaderboards(self, *judges: str) -> None:
        for judge in judges:
            made = dg.AssetMaterialization(
                "leaderboard", partition=str(corpus_judge_key("tiny", judge))
            )
            self.instance.report_runless_asset_event(made)

    def tick(self, *, rested: bool = True) -> dg.SensorResult:
        """Look for new candidates."""
        if rested:
            self.workshop.rest()
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor) as context:
            result = new_candidates(context, catalog=self.workshop.catalog)
        self.cursor = result.cursor
        return self.accepted(result, "candidate_job")

    def look(self, catalog: Catalog | None = None) -> dg.SensorResult | dg.SkipReason:
        """Look for candidates that judges have not placed."""
        with dg.build_sensor_context(instance=self.instance) as context:
            result = place_candidates(context, catalog=catalog or self.workshop.catalog)
        return self.accepted(result, "placing_job")

    def accepted(self, result: Any, job: str) -> Any:
        """Resolve what is requested, as the daemon does: an unknown partition raises."""
        target = self.definitions.resolve_job_def(job)
        for request in getattr(result, "run_requests", None) or ():
            request.with_resolved_tags_and_config(target, [], self.instance)
        return result

    def obey(self, request: dg.RunRequest, job: str = "candidate_job", **options: Any) -> Any:
        """Run what is requested, as the daemon does."""
        tags = {**request.tags, "dagster/run_key": str(request.run_key)}
        result = self.run(job, str(request.partition_key), tags=tags, **options)
        assert result.success
        return result

    def place(self, request: dg.RunRequest) -> Any:
        """Have a judge judge the candidates as a request says, and no more of the job."""
        asked = [dg.AssetKey("candidate_verdicts")]
        return self.obey(request, "placing_job", asset_selection=asked)

    def metadata(self, name: str, key: str) -> dict[str, Any]:
        wanted = dg.AssetRecordsFilter(dg.AssetKey(name), asset_partitions=[key])
        (found,) = self.instance.fetch_materializations(wanted, limit=1).records
        return {n: one.value for n, one in found.asset_materialization.metadata.items()}


@pytest.fixture
def watch(make_workshop: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Watch:
    workshop = make_workshop()
    monkeypatch.setenv("JUDGELINE_HOME", str(workshop.home))
    monkeypatch.delenv("JUDGELINE_CANDIDATES", raising=False)
    found = Watch(workshop)
    found.folder.mkdir(parents=True)
    return found


def test_candidates_are_read_once_and_placed_once_by_each_active_judge(watch: Watch) -> None:
    watch.workshop.tiny["candidates"] = {"budget": ["300calls", "2USD"], "max_battles": 20}
    assert watch.run("corpus_job").success
    assert watch.tick().skip_reason.skip_message == "nothing new was dropped"
    assert watch.look().skip_message == "no corpus has candidates"
    drop(watch.folder, watch.entrant).rename(watch.folder / "model.jsonl")
    (watch.folder / "broken.jsonl").write_text('{"question_id": "q0000"\n')
    assert "judgeline run --corpus tiny" in watch.tick().skip_reason.skip_message
    watch.have_leaderboards("careful", "recorded")
    (watch.folder / "broken.jsonl").touch()
    assert "not complete yet" in watch.tick(rested=False).skip_reason.skip_message
    [request] = watch.tick().run_requests
    watch.cursor = None
    [again] = watch.tick().run_requests
    assert again.run_key == request.run_key  # which the daemon knows
    failed = [one for one in watch.obey(request).get_asset_check_evaluations() if not one.passed]
    assert [one.check_name for one in failed] == ["candidate_files_are_readable"]
    assert "broken.jsonl (broken-json)" in failed[0].description
    battles = watch.workshop.stored("candidate_battles", "tiny")
    assert set(battles["candidate"]) == {watch.entrant.model}
    (watch.folder / "model.jsonl").rename(watch.folder / "renamed.jsonl")
    drop(watch.folder, watch.entrant, "copy.jsonl")
    watch.cursor = None  # lost: what was made says the same
    assert watch.tick().skip_reason.skip_message == "nothing new was dropped"

    key = str(corpus_judge_key("tiny", "careful"))
    judge = {"job": "judge_job", "partition": key, "asset_selection": [dg.AssetKey("verdicts")]}
    assert watch.run(**judge).success
    [request] = watch.look().run_requests
    assert request.tags[BUDGET_TAG] == "300calls 2USD"
    assert watch.look().run_requests[0].run_key == request.run_key
    watch.place(request)
    placed = watch.metadata("candidate_verdicts", key)
    assert placed["fingerprint"] == request.tags[CANDIDATES_TAG]
    assert placed["judge_identity"] == watch.metadata("verdicts", key)["judge_identity"]
    assert "judged these battles" in watch.look().skip_message
    watch.have_leaderboards("hasty")  # active from now on
    [request] = watch.look().run_requests
    assert str(request.partition_key) == "tiny|hasty"
    half = watch.workshop.home / "half.yaml"
    half.write_text("careful: {kind: [an edit")
    broken = Catalog(corpora_file=watch.workshop.catalog.corpora_file, judges_file=str(half))
    assert "half.yaml" in watch.look(broken).skip_message

    for path in watch.folder.iterdir():
        path.unlink()
    [request] = watch.tick().run_requests
    watch.obey(request)
    assert watch.workshop.stored("candidate_battles", "tiny").empty
    [gone] = watch.look().run_requests  # the leaderboard of one still shows it
    assert (str(gone.partition_key), gone.tags[CANDIDATES_TAG]) == ("tiny|careful", "none")


def test_a_folder_that_cannot_be_listed_is_told_and_keeps_what_was_seen(watch, monkeypatch):
    def refuse(*args: object) -> None:
        raise PermissionError(13, "Permission denied", "candidates/tiny")

    drop(watch.folder, watch.entrant)
    watch.tick()
    seen = watch.cursor
    assert json.loads(str(seen))["tiny"]["files"][0][0] == f"{watch.entrant.model}.jsonl"
    monkeypatch.setattr(candidate_sensors, "list_files", refuse)
    assert "tiny: [Errno 13] Permission denied" in watch.tick().skip_reason.skip_message
    assert watch.cursor == seen


def test_a_judge_or_corpus_that_is_no_partition_is_not_asked_for(watch: Watch) -> None:
    instance, catalog = watch.instance, watch.workshop.catalog
    tiny = catalog.corpus("tiny")

    def active():
        return [one.slug for one in active_judges(tiny, catalog, rated_by(tiny, instance))]

    assert active() == []
    watch.have_leaderboards("careful", "hasty", "mumbler")  # the last is not the corpus' judge
    assert active() == [
        "careful",
        "hasty",
    ]
    retire(instance, judges=["hasty"])
    assert active() == ["careful"]
    retire(instance, corpora=["tiny"])
    assert active() == []
    judges, why = active_or_why(tiny, catalog, [])
    assert judges == []
    assert "judgeline run --corpus tiny --judge careful --judge hasty" in why


def test_a_corpus_of_recorded_judges_is_told_what_gives_it_another(tmp_path: Path) -> None:
    """A run of a judge that the corpus does not list would leave it as it is."""
    corpora = {"c": {"reader": "battles", "location": "x.csv", "judges": ["r"]}}
    recorded = {"display_name": "R", "family": "f", "kind": "recorded"}
    catalog = catalog_of(tmp_path, corpora=corpora, judges={"r": recorded})
    judges, why = active_or_why(catalog.corpus("c"), catalog, ["r"])
    assert judges == []
    assert "name one under 'judges' of corpus 'c' in corpora.yaml, then run: judgeline" in why
    assert "--judge" not in why


def test_the_sensor_leaves_to_a_command_what_it_places(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the sensor looks while `judgeline run` is at work, for a changed judge too."""
    looks: list[tuple[str, dg.SensorResult | dg.SkipReason]] = []
    begin = run_module.RunReporter.begin

    def looking(self: run_module.RunReporter, job: str, n_steps: int, *shown: Any) -> None:
        looks.append((job, watch.look()))
        begin(self, job, n_steps, *shown)

    monkeypatch.setattr(run_module.RunReporter, "begin", looking)
    drop(watch.folder, watch.entrant)
    watch.workshop.rest()
    of_careful = {"judge job tiny|careful", "candidate job tiny", "placing job tiny|careful"}
    of_hasty = {"judge job tiny|hasty", "placing job tiny|hasty"}
    judges = watch.workshop.judges
    own = judges["careful"]
    for seed, expected in ((1, {"corpus job tiny"} | of_careful | of_hasty), (101, of_careful)):
        changed = {**own, "builtin": {**own["builtin"], "seed": seed}}
        monkeypatch.setitem(judges, "careful", changed)
        looks.clear()
        outcome = watch.workshop.run("careful", "hasty", select=["+leaderboard"])
        assert outcome.errors == []
        assert {job for job, _ in looks} == expected  # the second time only what has changed
        assert not [one for _, one in looks if not isinstance(one, dg.SkipReason)]
        assert "judged these battles" in watch.look().skip_message
    messages = [one.skip_message for job, one in looks if job == "candidate job tiny"]
    assert "careful: the command that started run" in messages[0]  # the judge is another now
    # while the process lives: once it is gone, its judges are the sensor's again
    monkeypatch.setattr(homes, "is_alive", lambda pid, _at: pid != os.getpid())
    second: Path = drop(watch.folder, watch.entrant._replace(model="another"))
    assert watch.run("candidate_job", tags={PLACES_TAG: "careful"}).success
    assert second.exists()
    assert len(watch.look().run_requests) == 2
