"""Weekly schedules: what is new, whom they have asked about it, and what they leave alone."""

import json
from datetime import UTC, datetime

import dagster as dg
import pytest
from catalogs import catalog_of

from assets.partitions import corpus_judge_key, register
from assets.settings import BUDGET_TAG, REFRESH_TAG, SAMPLE_TAG
from pipelines.definitions import build_definitions
from pipelines.sensors.activity import UnreadableError
from pipelines.sensors.weekly import Content, drift_watch, due, refreshed_corpora, weekly_refresh
from resources.corpora.locations import content_revision
from resources.tables.store import ParquetTables

MONDAY = datetime(2031, 1, 6, 5, tzinfo=UTC)
JUDGE = {"display_name": "J", "family": "f", "kind": "openai", "model": "m", "base_url": "http://h"}


class Archive:
    """A corpus of one file that grows, kept up to date, with two judges and an instance."""

    def __init__(self, folder, instance):
        self.folder, self.instance = folder, instance
        self.corpus = {
            "reader": "battles",
            "location": str(folder / "battles.jsonl"),
            "sample_size": 4,
            "judges": ["one", "two"],
            "refresh": {"extend_by": 2, "budget": "50calls 1USD"},
        }
        self.judges = dict.fromkeys(("one", "two"), JUDGE)
        self.grow(6)
        register(instance, corpora=["c"], judges=["one", "two"])

    def grow(self, n_battles):
        names = [(f"m{i % 3}", f"m{(i + 1) % 3}") for i in range(n_battles)]
        rows = [
            {"battle_id": f"b{i}", "model_a": a, "model_b": b, "human_outcome": float(i % 2)}
            for i, (a, b) in enumerate(names)
        ]
        (self.folder / "battles.jsonl").write_text("\n".join(map(json.dumps, rows)))

    @property
    def catalog(self):
        return catalog_of(self.folder, corpora={"c": self.corpus}, judges=self.judges)

    def tick(self, catalog=None, schedule=weekly_refresh):
        """What a schedule asks for: run requests, or a reason for none."""
        with dg.build_schedule_context(
            instance=self.instance, scheduled_execution_time=MONDAY
        ) as context:  # which opens an instance of its own
            return list(schedule(context, catalog=catalog or self.catalog))

    def obey(self, request):
        """Do what a request asks for, in this process."""
        tables = ParquetTables(base_uri=str(self.folder / "tables"))
        defs = build_definitions(catalog=self.catalog, tables=tables)
        job = defs.resolve_job_def("corpus_job")
        return job.execute_in_process(
            partition_key=request.partition_key, asset_selection=request.asset_selection,
            tags=dict(request.tags), instance=self.instance, raise_on_error=False,
        )  # fmt: skip

    def after(self, **tags):
        """What the sensor asks for after a run of the corpus with some tags."""
        run = dg.DagsterRun("corpus_job", tags={"dagster/partition": "c", **tags})
        event = dg.DagsterEvent(dg.DagsterEventType.PIPELINE_SUCCESS.value, "corpus_job")
        with dg.build_run_status_sensor_context(
            "refreshed_corpora", event, self.instance, run
        ) as context:
            return list(refreshed_corpora(context, catalog=self.catalog))

    def sampled(self):
        store = ParquetTables(base_uri=str(self.folder / "tables")).create_io_manager(None)
        return store.stored("sampled_battles", "c")["battle_id"].tolist()

    def rated(self, judge):
        self.instance.report_runless_asset_event(
            dg.AssetMaterialization("leaderboard", partition=corpus_judge_key("c", judge))
        )


@pytest.fixture
def archive(home, tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield Archive(folder, instance)


def reason(answers):
    (only,) = answers
    assert isinstance(only, dg.SkipReason)
    return only.skip_message


@pytest.mark.parametrize(
    ("schedule", "days", "job"),
    [(weekly_refresh, "0 5 * * 1", "corpus_job"), (drift_watch, "0 5 * * 3", "drift_job")],
)
def test_they_run_by_themselves(schedule, days, job):
    assert (schedule.cron_schedule, schedule.job_name) == (days, job)
    assert schedule.execution_timezone in ("UTC", None)
    assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING


def test_weeks_of_a_corpus_that_grows(archive):
    (first,) = archive.tick()
    assert first.asset_selection is None
    assert archive.obey(first).success
    week_one = archive.sampled()
    assert len(week_one) == 4
    event = archive.instance.get_latest_materialization_event(dg.AssetKey("raw_battles"))
    stored = event.asset_materialization.metadata["content_revision"].value
    assert stored == content_revision(archive.catalog.corpus("c"))

    (second,) = archive.tick()  # the same file: it is not read again, but two battles are left
    assert second.asset_selection == [dg.AssetKey("sampled_battles")]
    assert second.tags[SAMPLE_TAG] == "6"
    for _ in range(2):  # as a retry of a run that was killed would
        assert archive.obey(second).success
    week_two = archive.sampled()
    assert week_two[:4] == week_one
    assert sorted(week_two) == [f"b{i}" for i in range(6)]

    assert "nothing new: c" in reason(archive.tick())

    archive.grow(12)
    (fourth,) = archive.tick()
    assert fourth.asset_selection is None
    assert archive.obey(fourth).success
    assert archive.sampled()[:6] == week_two
    assert len(archive.sampled()) == 8


READ = Content("1", "1", n_sampled=4, n_battles=6, extend_by=2)


@pytest.mark.parametrize(
    ("content", "refresh"),
    [
        (Content("", "1"), (True, None)),
        (Content("", "1", extend_by=2), (True, 2)),
        (READ._replace(now="2"), (True, 6)),
        (READ._replace(now="", error="no file"), (True, 6)),
        (READ, (False, 6)),
        (READ._replace(n_battles=5, behind=["j"]), (False, 5)),
        (READ._replace(extend_by=0), None),
        (READ._replace(extend_by=0, behind=["j"]), (False, None)),
        (READ._replace(n_sampled=6, behind=["j"]), (False, None)),
        (READ._replace(n_sampled=6), None),
    ],
)
def test_what_a_corpus_needs(content, refresh):
    found = due(content)
    assert bool(found.why) == (refresh is not None)
    assert found[1:] == (refresh or (False, None))


def test_a_corpus_without_the_block_is_left_alone(archive):
    del archive.corpus["refresh"]
    assert "no corpus has a 'refresh' block" in reason(archive.tick())


def test_a_corpus_that_cannot_be_found_gets_a_run_that_says_so(archive):
    (archive.folder / "battles.jsonl").unlink()
    (request,) = archive.tick()
    assert not archive.obey(request).success


@pytest.mark.parametrize("file", ["corpora.yaml", "judges.yaml"])
@pytest.mark.parametrize(
    ("schedule", "lost"),
    [(weekly_refresh, "nothing is refreshed"), (drift_watch, "nobody is watched")],
)
def test_a_broken_file_fails_the_tick_which_is_tried_again(archive, file, schedule, lost):
    """A tick that skips has had its turn: the next one is a week away."""
    archive.corpus["drift"] = {"battles": 30}
    archive.rated("one")
    catalog = archive.catalog
    (archive.folder / file).write_text("c: [")
    with pytest.raises(UnreadableError, match=rf"{lost} before .*{file}"):
        archive.tick(catalog, schedule)
    (request,) = archive.tick(schedule=schedule)
    assert request.partition_key == ("c" if schedule is weekly_refresh else "c|one")


def test_judges_follow_that_somebody_ran_before_and_nobody_after_a_persons_run(archive):
    day = {REFRESH_TAG: MONDAY.date().isoformat()}
    assert "no judge of corpus 'c' has a leaderboard" in reason(archive.after(**day))
    archive.rated("two")
    assert "a person's run" in reason(archive.after())
    (request,) = archive.after(**day)
    assert request.job_name == "judge_job"
    assert request.partition_key == "c|two"
    assert request.tags[BUDGET_TAG] == "50calls 1USD"
    assert request.tags[REFRESH_TAG] == day[REFRESH_TAG]


def test_a_judge_whose_budget_ran_out_has_its_turn_a_week_later(archive):
    archive.corpus["refresh"] = {"extend_by": 0}
    archive.rated("two")
    revision = {"content_revision": content_revision(archive.catalog.corpus("c"))}
    for name, metadata in (("raw_battles", revision), ("sampled_battles", {})):
        made = dg.AssetMaterialization(name, partition="c", metadata=metadata)
        archive.instance.report_runless_asset_event(made)
    (request,) = archive.tick()
    assert request.asset_selection == [dg.AssetKey("sampled_battles")]
    assert SAMPLE_TAG not in request.tags
    made = dg.AssetMaterialization("verdicts", partition=corpus_judge_key("c", "two"))
    archive.instance.report_runless_asset_event(made)
    assert "nothing new" in reason(archive.tick())
