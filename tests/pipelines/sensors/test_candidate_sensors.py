"""A new model drops: what the sensors ask for, and that nothing else asks a judge about it."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from newcomers import drop, newcomer

from assets.partitions import corpus_judge_key, register, retire
from assets.run_tags import BUDGET_TAG
from pipelines.commands import run
from pipelines.definitions import build_definitions
from pipelines.instance import workers
from pipelines.instance.workers import HOST_TAG, this_host
from pipelines.jobs import candidate_job, placing_job
from pipelines.sensors import candidate_record
from pipelines.sensors import candidates as candidate_sensors
from pipelines.sensors.activity import active_judges
from pipelines.sensors.automation import SENSORS
from pipelines.sensors.candidate_record import CANDIDATES_TAG, PLACES_TAG, are_placed
from pipelines.sensors.candidates import new_candidates
from pipelines.sensors.placing import place_candidates
from resources.config.catalog import Catalog
from resources.corpora.reading import read_corpus
from resources.store.resource import StoredVerdicts


def store_battles(workshop: Any) -> None:
    """Leave the table that a run of the corpus would leave, without its checks."""
    path = workshop.home / "tables" / "battles" / "tiny.parquet"
    path.parent.mkdir(parents=True)
    read_corpus(workshop.catalog.corpus("tiny")).battles.to_parquet(path)


class Watch:
    """A workshop with a corpus that was read, and sensors that are looked at one tick at a time."""

    def __init__(self, workshop: Any) -> None:
        self.workshop, self.instance = workshop, workshop.instance
        self.folder = workshop.home / "candidates" / "tiny"
        self.cursor: str | None = None
        self.entrant = newcomer(workshop.tiny["arena"])
        register(self.instance, corpora=["tiny"], judges=["careful", "hasty"])
        store_battles(workshop)

    @property
    def definitions(self) -> dg.Definitions:
        return build_definitions(
            catalog=self.workshop.catalog,
            tables=self.workshop.tables,
            verdict_store=StoredVerdicts(uri=str(self.workshop.home / "verdicts")),
        )

    def run(self, job: str, partition: str = "tiny", **options: Any) -> dg.ExecuteInProcessResult:
        self.rest()
        return self.definitions.resolve_job_def(job).execute_in_process(
            partition_key=partition, instance=self.instance, raise_on_error=False, **options
        )

    def have_leaderboards(self, *judges: str) -> None:
        for judge in judges:
            key = str(corpus_judge_key("tiny", judge))
            made = dg.AssetMaterialization("leaderboard", partition=key)
            self.instance.report_runless_asset_event(made)

    def tick(self) -> dg.SensorResult:
        """Look for new candidates; everything in the folder has rested."""
        self.rest()
        return self.tick_now()

    def rest(self) -> None:
        for path in self.folder.glob("*"):
            os.utime(path, (time.time() - 1000,) * 2)

    def tick_now(self) -> dg.SensorResult:
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor) as context:
            result = new_candidates(context, catalog=self.workshop.catalog)
        self.accept(result, "candidate_job")
        self.cursor = result.cursor
        return result

    def read(self) -> list[dg.RunRequest]:
        """Tick, and run what is asked for."""
        requests = self.tick().run_requests
        for request in requests:
            assert self.run("candidate_job", tags=request.tags).success
        return requests

    def chosen(self, **options: Any) -> dg.SensorResult | dg.SkipReason:
        """Run candidate_job, and look at what follows."""
        assert self.run("candidate_job", **options).success
        return self.look()

    def look(self) -> dg.SensorResult | dg.SkipReason:
        """Look for candidates that judges have not placed; requests are such as are accepted."""
        with dg.build_sensor_context(instance=self.instance) as context:
            result = place_candidates(context, catalog=self.workshop.catalog)
        self.accept(result, "placing_job")
        return result

    def accept(self, result: dg.SensorResult | dg.SkipReason, job: str) -> None:
        """Resolve what is requested, as the daemon does: an unknown partition raises."""
        target = self.definitions.resolve_job_def(job)
        for request in getattr(result, "run_requests", None) or ():
            request.with_resolved_tags_and_config(target, [], self.instance)

    def place(self, request: dg.RunRequest) -> dg.DagsterRun:
        """Have a judge judge the candidates as a request says, and no more of the job."""
        tags = {**request.tags, "dagster/run_key": str(request.run_key)}
        result = self.run(
            "placing_job",
            str(request.partition_key),
            tags=tags,
            asset_selection=[dg.AssetKey("candidate_verdicts")],
        )
        assert result.success
        return result.dagster_run

    def begin(self, request: dg.RunRequest, **tags: str) -> dg.DagsterRun:
        """Record a placing run that has begun, as the daemon would."""
        known = {"dagster/partition": str(request.partition_key)}
        return self.instance.create_run_for_job(
            self.definitions.resolve_job_def("placing_job"),
            tags={**request.tags, "dagster/run_key": str(request.run_key), **known, **tags},
            status=dg.DagsterRunStatus.STARTED,
        )

    def fail(self, request: dg.RunRequest) -> dg.DagsterRun:
        """Record a placing run that failed before it asked anybody."""
        run = self.begin(request)
        self.instance.report_run_failed(run)
        return run

    def read_by(self, request: dg.RunRequest, **state: Any) -> dg.DagsterRun:
        """Record a run that was to read what was dropped, and has ended without a table."""
        run = dg.DagsterRun(
            job_name="candidate_job",
            tags={"dagster/partition": "tiny", "dagster/run_key": str(request.run_key)},
            **state,
        )
        self.instance.add_run(run)
        return run

    def judge(self, judge: str, **options: Any) -> dg.ExecuteInProcessResult:
        """Have a judge judge the corpus, as it is configured now."""
        verdicts = [dg.AssetKey("verdicts")]
        key = str(corpus_judge_key("tiny", judge))
        result = self.run("judge_job", key, asset_selection=verdicts, **options)
        assert result.success
        return result

    def fail_after(self, run_id: str) -> None:
        """Have a run that made its tables fail, such as by a check or the end of its process."""
        self.instance.report_run_failed(self.instance.get_run_by_id(run_id))

    def retry(self, run_id: str, status: dg.DagsterRunStatus) -> dg.DagsterRun:
        """Record another attempt, of the rest alone, at a run that failed."""
        first = self.instance.get_run_by_id(run_id)
        family = {"dagster/parent_run_id": run_id, "dagster/root_run_id": run_id}
        run = dg.DagsterRun(
            job_name=first.job_name,
            tags={**first.tags, **family},
            status=status,
            root_run_id=run_id,
            parent_run_id=run_id,
        )
        self.instance.add_run(run)
        return run


@pytest.fixture
def watch(make_workshop: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Watch:
    workshop = make_workshop()
    monkeypatch.setenv("JUDGELINE_HOME", str(workshop.home))
    monkeypatch.delenv("JUDGELINE_CANDIDATES", raising=False)
    watch = Watch(workshop)
    watch.folder.mkdir(parents=True)
    return watch


def test_both_sensors_run_from_the_start() -> None:
    for sensor in (new_candidates, place_candidates):
        assert sensor in SENSORS
        assert sensor.default_status is dg.DefaultSensorStatus.RUNNING


def test_a_dropped_file_is_asked_for_once(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    assert watch.tick().skip_reason.skip_message == "nothing new was dropped"
    drop(watch.folder, watch.entrant)
    [request] = watch.read()
    assert request.partition_key == "tiny"
    assert watch.tick().run_requests == []
    watch.cursor = None  # lost: what was made says the same
    assert watch.tick().run_requests == []


def test_the_request_is_not_repeated_while_it_is_on_its_way(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.tick().run_requests
    assert "has been requested" in watch.tick().skip_reason.skip_message
    watch.cursor = None
    [again] = watch.tick().run_requests
    assert again.run_key == request.run_key  # which the daemon knows


def test_a_run_that_failed_is_repeated_after_an_hour(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.tick().run_requests
    run = dg.DagsterRun(job_name="candidate_job", tags={"dagster/partition": "tiny"})
    watch.instance.add_run(run)
    assert f"run {run.run_id} reads" in watch.tick().skip_reason.skip_message
    watch.instance.report_run_failed(run, "its table could not be written")
    assert "failed; another follows" in watch.tick().skip_reason.skip_message
    monkeypatch.setattr(candidate_sensors, "_AGAIN_AFTER_S", -1.0)
    [again] = watch.tick().run_requests
    assert again.run_key != request.run_key  # the daemon starts no run of a known key
    assert watch.tick().run_requests[0].run_key == again.run_key


def test_candidates_without_their_battles_are_read_again(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    half = [dg.AssetKey("candidates"), dg.AssetKey("quarantined_candidates")]
    assert watch.run("candidate_job", asset_selection=half).success
    assert len(watch.read()) == 1
    assert watch.tick().run_requests == []


def test_a_folder_that_cannot_be_listed_is_told(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(13, "Permission denied", "candidates/tiny")

    monkeypatch.setattr(candidate_sensors, "list_files", refuse)
    assert "tiny: [Errno 13] Permission denied" in watch.tick().skip_reason.skip_message


def test_a_configuration_in_the_middle_of_an_edit_loses_no_run(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    watch.run("candidate_job")
    catalog = watch.workshop.catalog
    half = watch.workshop.home / "half.yaml"
    half.write_text("careful: {kind: [an edit")
    broken = Catalog(corpora_file=catalog.corpora_file, judges_file=str(half))
    with dg.build_sensor_context(instance=watch.instance) as context:
        assert "half.yaml" in place_candidates(context, catalog=broken).skip_message
    assert [one.partition_key for one in watch.look().run_requests] == ["tiny|careful"]


def test_the_same_content_under_another_name_is_nothing_new(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    path = drop(watch.folder, watch.entrant)
    watch.read()
    path.rename(watch.folder / "renamed.jsonl")
    assert watch.tick().run_requests == []
    drop(watch.folder, watch.entrant, "again.jsonl")
    assert watch.tick().run_requests == []


def test_a_withdrawn_file_and_its_return_are_changes(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    path = drop(watch.folder, watch.entrant)
    keys = [request.run_key for request in watch.read()]
    path.unlink()
    keys += [request.run_key for request in watch.read()]
    assert watch.workshop.stored("candidate_battles", "tiny").empty
    drop(watch.folder, watch.entrant)
    keys += [request.run_key for request in watch.read()]
    assert len(set(keys)) == 3
    assert len(watch.workshop.stored("candidate_battles", "tiny")) > 0


def test_a_broken_file_is_one_failed_check_and_stops_nothing(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    (watch.folder / "broken.jsonl").write_text('{"question_id": "q0000"\n')
    assert len(watch.tick().run_requests) == 1
    result = watch.run("candidate_job")
    assert result.success
    failed = [one for one in result.get_asset_check_evaluations() if not one.passed]
    assert [one.check_name for one in failed] == ["candidate_files_are_readable"]
    assert failed[0].severity is dg.AssetCheckSeverity.ERROR
    assert "broken.jsonl (broken-json)" in failed[0].description
    models = watch.workshop.stored("candidate_battles", "tiny")["candidate"].unique()
    assert models.tolist() == [watch.entrant.model]
    assert watch.tick().run_requests == []  # reported once


def test_half_a_file_waits(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant).rename(watch.folder / "model.jsonl.part")
    assert watch.tick().run_requests == []
    (watch.folder / "model.jsonl.part").rename(watch.folder / "model.jsonl")
    (watch.folder / "model.jsonl").touch()
    result = watch.tick_now()
    assert result.run_requests == []
    assert "'model.jsonl' not complete yet" in result.skip_reason.skip_message
    assert len(watch.tick().run_requests) == 1


def test_a_file_that_is_being_replaced_is_not_withdrawn(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    path = drop(watch.folder, watch.entrant)
    watch.read()
    path.write_text(path.read_text() + "\n")
    assert watch.tick_now().run_requests == []
    assert len(watch.tick().run_requests) == 1


def test_a_corpus_without_a_leaderboard_waits_and_says_what_to_run(watch: Watch) -> None:
    drop(watch.folder, watch.entrant)
    assert "judgeline run --corpus tiny" in watch.tick().skip_reason.skip_message
    watch.have_leaderboards("recorded")
    assert watch.tick().run_requests == []
    watch.have_leaderboards("careful")
    assert len(watch.tick().run_requests) == 1


def test_controls_that_are_switched_on_are_candidates_too(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    watch.workshop.tiny["candidates"] = {"controls": ["null-model"]}
    assert len(watch.read()) == 1
    battles = watch.workshop.stored("candidate_battles", "tiny")
    assert battles["control"].unique().tolist() == ["null-model"]
    watch.workshop.tiny["candidates"] = {"controls": {"null-model": {"bound": 10}}}
    assert watch.tick().run_requests == []


def test_active_judges_have_a_leaderboard_and_can_be_asked(watch: Watch) -> None:
    catalog, instance = watch.workshop.catalog, watch.instance
    definition = catalog.corpus("tiny")
    assert active_judges(definition, catalog, instance) == []
    watch.have_leaderboards("hasty", "mumbler")
    assert [judge.slug for judge in active_judges(definition, catalog, instance)] == ["hasty"]


def test_each_active_judge_is_asked_to_place_within_the_budget(watch: Watch) -> None:
    watch.workshop.tiny["candidates"] = {"budget": ["300calls", "2USD"]}
    watch.have_leaderboards("careful", "hasty")
    drop(watch.folder, watch.entrant)
    requests = watch.chosen().run_requests
    assert [str(one.partition_key) for one in requests] == ["tiny|careful", "tiny|hasty"]
    assert {one.tags[BUDGET_TAG] for one in requests} == {"300calls 2USD"}
    assert len({one.tags[CANDIDATES_TAG] for one in requests}) == 1


def test_a_judge_that_becomes_active_later_has_its_turn(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.chosen().run_requests
    watch.place(request)
    assert "judged these battles" in watch.look().skip_message
    watch.have_leaderboards("hasty")
    [request] = watch.look().run_requests
    assert request.partition_key == "tiny|hasty"
    watch.place(request)
    assert "judged these battles" in watch.look().skip_message


def test_a_judge_that_is_placing_is_not_asked_beside_itself(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.chosen().run_requests
    run = watch.begin(request)
    watch.workshop.tiny["candidates"] = {"controls": ["null-model"]}  # one more
    assert f"run {run.run_id} places" in watch.chosen().skip_message
    watch.instance.report_run_failed(run)
    [after] = watch.look().run_requests
    assert after.run_key != request.run_key


def test_what_failed_for_good_spends_its_budget_once(watch: Watch) -> None:
    watch.have_leaderboards("careful", "hasty")
    drop(watch.folder, watch.entrant)
    first, second = watch.chosen().run_requests
    watch.place(first)
    watch.fail(second)
    assert "judgeline run --corpus tiny --judge hasty" in watch.look().skip_message
    [again] = watch.chosen().run_requests  # what was dropped was read again
    assert again.partition_key == second.partition_key


def test_nothing_new_to_judge_starts_no_placing(watch: Watch) -> None:
    watch.have_leaderboards("careful", "hasty")
    drop(watch.folder, watch.entrant)
    for request in watch.chosen().run_requests:
        watch.place(request)
    (watch.folder / "broken.jsonl").write_text("{}\n")
    assert len(watch.tick().run_requests) == 1
    assert "judged these battles" in watch.chosen().skip_message
    (watch.folder / f"{watch.entrant.model}.jsonl").unlink()
    gone = watch.chosen().run_requests
    assert len(gone) == 2  # the leaderboards still show it
    for request in gone:
        watch.place(request)
    assert are_placed(watch.instance, "tiny", "careful", "")
    assert isinstance(watch.chosen(), dg.SkipReason)


def test_without_candidates_nothing_is_placed(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    assert watch.look().skip_message == "no corpus has candidates"
    assert "judged these battles" in watch.chosen().skip_message  # no battles


def test_battles_of_a_run_that_failed_are_not_judged(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    result = watch.run("candidate_job")
    run = watch.instance.get_run_by_id(result.run_id)
    watch.instance.report_run_failed(run)
    assert "has not succeeded" in watch.look().skip_message


def test_a_run_that_places_by_itself_is_left_alone(watch: Watch) -> None:
    watch.have_leaderboards("careful", "hasty")
    drop(watch.folder, watch.entrant)
    requests = watch.chosen(tags={PLACES_TAG: "careful,strict"}).run_requests
    assert [one.partition_key for one in requests] == ["tiny|hasty"]
    watch.place(requests[0])
    assert "careful: the command that started run" in watch.look().skip_message


def test_only_the_sensor_asks_a_judge_about_candidates(watch: Watch) -> None:
    """No condition requests what asks, nor what the sensors request, however much changes."""
    guarded = [
        dg.AssetKey(name)
        for name in (
            "candidate_verdicts",
            "candidates",
            "quarantined_candidates",
            "candidate_battles",
        )
    ]
    watch.have_leaderboards("careful")
    definitions, cursor = watch.definitions, None
    graph = definitions.resolve_asset_graph()
    assert all(graph.has(key) for key in guarded)
    assert [graph.get(key).automation_condition for key in guarded] == [None] * len(guarded)
    for step in range(3):
        if step:
            drop(watch.folder, watch.entrant, note=str(step))
            watch.run("corpus_job")
            watch.run("candidate_job")
        ticked = dg.evaluate_automation_conditions(definitions, watch.instance, cursor=cursor)
        cursor = ticked.cursor
        for key in guarded:
            assert ticked.get_num_requested(key) == 0


def test_the_jobs_are_those_of_the_sensors() -> None:
    assert [target.job_name for target in new_candidates.targets] == [candidate_job.name]
    assert [target.job_name for target in place_candidates.targets] == [placing_job.name]


def test_the_cursor_is_small_and_readable(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    path: Path = drop(watch.folder, watch.entrant)
    watch.tick()
    [seen] = json.loads(watch.cursor)["tiny"]["files"]
    assert seen[0] == path.name


# runs that end before they succeed


def test_battles_count_as_chosen_once_another_attempt_succeeds(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.tick().run_requests
    run = watch.run("candidate_job", tags=request.tags)
    watch.fail_after(run.run_id)
    assert "has not succeeded" in watch.look().skip_message
    again = watch.retry(run.run_id, dg.DagsterRunStatus.STARTED)
    assert f"run {again.run_id} reads" in watch.tick().skip_reason.skip_message
    assert "has not succeeded" in watch.look().skip_message
    watch.instance.report_run_failed(again)
    assert "has not succeeded" in watch.look().skip_message
    watch.retry(run.run_id, dg.DagsterRunStatus.SUCCESS)  # the checks alone: it makes no table
    assert [one.partition_key for one in watch.look().run_requests] == ["tiny|careful"]
    assert watch.tick().skip_reason.skip_message == "nothing new was dropped"


def test_battles_of_a_run_that_failed_for_good_are_chosen_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.tick().run_requests
    run = watch.run("candidate_job", tags=request.tags)
    watch.fail_after(run.run_id)
    assert "failed; another follows" in watch.tick().skip_reason.skip_message
    monkeypatch.setattr(candidate_sensors, "_AGAIN_AFTER_S", -1.0)
    assert len(watch.read()) == 1
    assert len(watch.look().run_requests) == 1


def test_a_check_that_always_fails_is_no_loop_of_runs(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.tick().run_requests
    run = watch.run("candidate_job", tags=request.tags)
    record = watch.retry(run.run_id, dg.DagsterRunStatus.STARTED)
    watch.tick()  # the tables are there, and the run is not over
    watch.fail_after(run.run_id)
    watch.instance.report_run_failed(record)
    assert "failed; another follows" in watch.tick().skip_reason.skip_message


def test_what_a_run_left_out_is_asked_for_again_at_once_but_not_for_ever(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    keys = []
    for _ in range(3):  # such as copied once more, with the same bytes, while the run reads
        [request] = watch.tick().run_requests
        keys.append(request.run_key)
        run = watch.read_by(request, status=dg.DagsterRunStatus.SUCCESS)
    assert len(set(keys)) == 3
    told = watch.tick().skip_reason.skip_message
    assert f"run {run.run_id} left out what was dropped" in told
    assert "judgeline run --corpus tiny" in told
    drop(watch.folder, watch.entrant, note="2")
    assert len(watch.read()) == 1  # other content is a request of its own
    assert watch.tick().skip_reason.skip_message == "nothing new was dropped"


def test_a_file_that_comes_and_goes_is_no_loop_of_runs(watch: Watch) -> None:
    """Between the runs that leave it out the sensor, too, sees it in the middle of a copy."""
    watch.have_leaderboards("careful")
    path = drop(watch.folder, watch.entrant)
    n_runs = 0
    for _ in range(6):
        for request in watch.tick().run_requests:
            watch.read_by(request, status=dg.DagsterRunStatus.SUCCESS)
            n_runs += 1
        path.touch()
        assert watch.tick_now().run_requests == []
    assert n_runs == 3


def test_a_cancelled_run_is_told_with_what_to_do(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.tick().run_requests
    run = watch.read_by(request, status=dg.DagsterRunStatus.CANCELED)
    told = watch.tick().skip_reason.skip_message
    assert f"run {run.run_id} for what was dropped was cancelled" in told
    assert "judgeline run --corpus tiny" in told
    assert watch.run("candidate_job").success
    assert watch.tick().skip_reason.skip_message == "nothing new was dropped"


def test_a_run_whose_record_was_deleted_is_asked_for_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.tick().run_requests
    run = watch.read_by(request, status=dg.DagsterRunStatus.FAILURE)
    watch.instance.delete_run(run.run_id)
    assert "has been requested" in watch.tick().skip_reason.skip_message
    monkeypatch.setattr(candidate_sensors, "_AGAIN_AFTER_S", -1.0)
    assert len(watch.read()) == 1


# whoever places by itself, and no longer


def test_a_starter_on_another_host_is_waited_for_some_hours(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    tags = {PLACES_TAG: "careful", HOST_TAG: "another-host"}
    assert "careful: the command that started run" in watch.chosen(tags=tags).skip_message
    monkeypatch.setattr(candidate_record, "ELSEWHERE_S", -1.0)
    assert len(watch.look().run_requests) == 1


def test_a_command_that_was_killed_places_no_more(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    tags = {PLACES_TAG: "careful", HOST_TAG: this_host()}
    assert "careful: the command that started run" in watch.chosen(tags=tags).skip_message
    monkeypatch.setattr(workers, "_is_alive", lambda worker: worker.pid != os.getpid())
    assert len(watch.look().run_requests) == 1


def test_a_command_of_before_keeps_nobody_from_a_later_drop(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    assert watch.run("corpus_job").success
    watch.judge("careful", tags={PLACES_TAG: "careful", HOST_TAG: "another-host"})
    drop(watch.folder, watch.entrant)
    assert len(watch.chosen().run_requests) == 1


def test_a_placing_that_its_starter_saw_fail_is_told(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    assert "the command that started run" in watch.chosen(tags={PLACES_TAG: "careful"}).skip_message
    own = dg.RunRequest(partition_key=corpus_judge_key("tiny", "careful"))
    run = watch.fail(own)
    told = watch.look().skip_message
    assert f"did not succeed; see {run.run_id}" in told
    assert "judgeline run --corpus tiny --judge careful" in told


# what was judged, not what a run was to judge


def test_a_withdrawn_model_is_taken_off_after_a_placing_that_failed_late(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    path = drop(watch.folder, watch.entrant)
    [request] = watch.chosen().run_requests
    late = watch.place(request)  # with everything on the leaderboard
    watch.fail_after(late.run_id)
    assert "did not succeed" in watch.look().skip_message
    path.unlink()
    [gone] = watch.chosen().run_requests
    assert gone.tags[CANDIDATES_TAG] == "none"
    watch.place(gone)
    assert "judged these battles" in watch.look().skip_message


def test_a_run_that_read_other_battles_than_it_is_tagged_with(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    path = drop(watch.folder, watch.entrant)
    [tagged] = watch.chosen().run_requests
    second = drop(watch.folder, watch.entrant._replace(model="another"))
    assert watch.run("candidate_job").success
    watch.place(tagged)  # which waited in the queue meanwhile
    assert "judged these battles" in watch.look().skip_message
    second.unlink()
    [again] = watch.chosen().run_requests
    assert again.tags[CANDIDATES_TAG] == tagged.tags[CANDIDATES_TAG]
    assert again.run_key != tagged.run_key
    watch.place(again)
    path.unlink()
    assert len(watch.chosen().run_requests) == 1


def test_what_somebody_placed_by_hand_is_placed(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.chosen().run_requests
    watch.fail(request)
    assert "did not succeed" in watch.look().skip_message
    result = watch.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        partition_key=str(request.partition_key),
        instance=watch.instance,
        asset_selection=[dg.AssetKey("candidate_verdicts")],
    )
    assert result.success
    assert "judged these battles" in watch.look().skip_message


def test_verdicts_say_which_battles_they_are_about_and_by_whom(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    [request] = watch.chosen().run_requests
    assert watch.run("corpus_job").success
    watch.judge("careful")
    watch.place(request)
    keys = [("candidate_verdicts", "tiny|careful"), ("verdicts", "tiny|careful")]
    placed, judged = (
        watch.instance.fetch_materializations(
            dg.AssetRecordsFilter(dg.AssetKey(name), asset_partitions=[key]), limit=1
        )
        .records[0]
        .asset_materialization.metadata
        for name, key in keys
    )
    assert placed["fingerprint"].value == request.tags[CANDIDATES_TAG]
    assert placed["judge_identity"].value == judged["judge_identity"].value


# a judge that is another under the same name


def change(judge: str, watch: Watch, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Have a judge judge otherwise, as an edit of its entry does."""
    judges = watch.workshop.judges
    own = judges[judge]
    monkeypatch.setitem(judges, judge, {**own, "builtin": {**own["builtin"], "seed": seed}})


def test_a_judge_that_changed_places_once_more_after_it_judged_the_corpus(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.have_leaderboards("careful")
    assert watch.run("corpus_job").success
    watch.judge("careful")
    drop(watch.folder, watch.entrant)
    watch.place(*watch.chosen().run_requests)
    watch.judge("careful")
    assert "judged these battles" in watch.look().skip_message  # the same judge, again

    change("careful", watch, monkeypatch, 101)
    assert "judged these battles" in watch.look().skip_message  # its anchors are those of before
    second = drop(watch.folder, watch.entrant._replace(model="another"))
    told = watch.chosen().skip_message
    assert "has changed since it judged the corpus" in told
    assert "run: judgeline run --corpus tiny --judge careful" in told
    second.unlink()
    assert "judged these battles" in watch.chosen().skip_message

    anew = watch.judge("careful")
    [request] = watch.look().run_requests
    watch.fail(request)
    assert "did not succeed" in watch.look().skip_message
    watch.judge("careful")
    assert "did not succeed" in watch.look().skip_message  # once per judge and battles
    assert anew.success


def test_a_judge_that_changes_to_and_fro_has_its_turn_each_time(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.have_leaderboards("careful")
    assert watch.run("corpus_job").success
    watch.judge("careful")
    drop(watch.folder, watch.entrant)
    requests = watch.chosen().run_requests
    watch.place(*requests)
    for seed in (101, 1):
        change("careful", watch, monkeypatch, seed)
        result = watch.judge("careful")
        watch.fail_after(result.run_id)
        told = watch.look().skip_message
        assert f"run {result.run_id} judged the corpus anew and has not succeeded" in told
        watch.judge("careful")
        requests += watch.look().run_requests
        watch.place(requests[-1])
        assert "judged these battles" in watch.look().skip_message
    assert len({request.run_key for request in requests}) == 3


def test_the_sensor_leaves_to_a_command_what_it_places(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the sensor looks while `judgeline run` is at work, for a changed judge too."""
    looks: list[tuple[str, dg.SensorResult | dg.SkipReason]] = []
    begin = run.RunReporter.begin

    def looking(self: run.RunReporter, job: str, n_steps: int) -> None:
        looks.append((job, watch.look()))
        begin(self, job, n_steps)

    monkeypatch.setattr(run.RunReporter, "begin", looking)
    drop(watch.folder, watch.entrant)
    watch.rest()
    of_careful = {"judge job tiny|careful", "candidate job tiny", "placing job tiny|careful"}
    of_hasty = {"judge job tiny|hasty", "placing job tiny|hasty"}
    for seed, expected in ((1, {"corpus job tiny"} | of_careful | of_hasty), (101, of_careful)):
        change("careful", watch, monkeypatch, seed)
        looks.clear()
        outcome = watch.workshop.run("careful", "hasty", select=["+leaderboard"])
        assert outcome.errors == ()
        assert {job for job, _ in looks} == expected  # the second time only what has changed
        assert not [one for _, one in looks if not isinstance(one, dg.SkipReason)]
        assert "judged these battles" in watch.look().skip_message
    messages = [one.skip_message for job, one in looks if job == "candidate job tiny"]
    assert "careful: the command that started run" in messages[0]  # the judge is another now


# judges and corpora that are no partitions


def test_a_retired_judge_keeps_no_other_from_its_turn(watch: Watch) -> None:
    watch.have_leaderboards("careful", "hasty")
    retire(watch.instance, judges=["hasty"])
    catalog, instance = watch.workshop.catalog, watch.instance
    assert [j.slug for j in active_judges(catalog.corpus("tiny"), catalog, instance)] == ["careful"]
    drop(watch.folder, watch.entrant)
    assert [one.partition_key for one in watch.chosen().run_requests] == ["tiny|careful"]
    register(watch.instance, judges=["hasty"])
    assert len(watch.look().run_requests) == 2


def test_a_corpus_that_is_no_partition_is_not_asked_for(watch: Watch) -> None:
    watch.have_leaderboards("careful")
    drop(watch.folder, watch.entrant)
    retire(watch.instance, corpora=["tiny"])
    assert "judgeline run --corpus tiny" in watch.tick().skip_reason.skip_message
    register(watch.instance, corpora=["tiny"])
    assert len(watch.tick().run_requests) == 1
