"""Partitions are what is configured and in use: added, retired, never lost to a broken file."""

from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy.exc import IntegrityError

from assets.partitions import corpus_judge_key, register
from pipelines.definitions import build_definitions
from pipelines.sensors.partitions import configured_partitions
from resources.config.catalog import Catalog

RATINGS = (
    "verdicts", "scored_battles", "heldout_ratings", "judge_diagnostics", "conformal_calibration",
    "leaderboard",
)  # fmt: skip
TRAITS = (
    "noise: 1, mood: 0, taste: 0, style_taste: 0, position_bias: 0, verbosity_bias: 0, "
    "family_bias: 0, malformed_rate: 0, refusal_rate: 0, truncated_rate: 0, seed: 1"
)
JUDGE = f"{{display_name: J, family: f, kind: builtin, builtin: {{{TRAITS}}}}}"
PAID = "{display_name: J, family: f, kind: openai, model: m, base_url: http://127.0.0.1:9/v1}"


class Office:
    """A configuration that changes, and an instance that a sensor looks after; `c` was read."""

    def __init__(self, folder, instance):
        self.folder, self.instance = folder, instance
        self.cursor = None
        self.configure(corpora=["c"], judges=["one", "two"])
        instance.report_runless_asset_event(dg.AssetMaterialization("raw_battles", partition="c"))

    def configure(self, *, corpora=None, judges=None, paid=()):
        if corpora is not None:
            text = "\n".join(f"{slug}: {{reader: arena}}" for slug in corpora)
            (self.folder / "corpora.yaml").write_text(text)
        if judges is not None:
            entries = {**dict.fromkeys(judges, JUDGE), **dict.fromkeys(paid, PAID)}
            text = "\n".join(f"{slug}: {entry}" for slug, entry in entries.items())
            (self.folder / "judges.yaml").write_text(text)

    @property
    def catalog(self):
        return Catalog(
            corpora_file=str(self.folder / "corpora.yaml"),
            judges_file=str(self.folder / "judges.yaml"),
        )

    def look(self):
        """Evaluate the sensor, do to the partitions what it asks for, and return its result."""
        names = {"repository_name": "__repository__", "sensor_name": "configured_partitions"}
        given = {"instance": self.instance, "cursor": self.cursor, **names}
        if not self.instance.is_ephemeral:
            given["instance_ref"] = self.instance.get_ref()
        with dg.build_sensor_context(**given) as context:
            result = configured_partitions(context, catalog=self.catalog)
        self.cursor = getattr(result, "cursor", self.cursor)
        for request in getattr(result, "dynamic_partitions_requests", None) or []:
            change = (
                self.instance.add_dynamic_partitions
                if isinstance(request, dg.AddDynamicPartitionsRequest)
                else lambda name, keys: [
                    self.instance.delete_dynamic_partition(name, key) for key in keys
                ]
            )
            change(request.partitions_def_name, request.partition_keys)
        return result

    def rated(self, judge, *further):
        """Report the tables behind ratings as made by a judge, and further ones."""
        for table in (*RATINGS, *further):
            self.instance.report_runless_asset_event(
                dg.AssetMaterialization(table, partition=corpus_judge_key("c", judge))
            )

    @property
    def judges(self):
        return sorted(self.instance.get_dynamic_partitions("judge"))


@pytest.fixture
def office(tmp_path):
    with dg.DagsterInstance.ephemeral() as instance:
        yield Office(tmp_path, instance)


def test_configured_names_become_partitions_once(office):
    office.look()
    assert office.judges == ["one", "two"]
    assert office.instance.get_dynamic_partitions("corpus") == ["c"]
    second = office.look()
    assert not second.dynamic_partitions_requests
    assert "1 corpora and 2 judges, all known" in second.skip_reason.skip_message


def test_only_what_is_in_use_is_a_partition(office):
    office.configure(corpora=["c", "never-read"], judges=["one"], paid=["asked", "never-asked"])
    office.rated("asked")
    office.look()
    assert office.judges == ["asked", "one"]
    assert office.instance.get_dynamic_partitions("corpus") == ["c"]


def test_a_judge_added_before_the_first_look_is_a_partition(office, monkeypatch):
    """As by `judgeline judges add` and then `judgeline ui` for the first time."""
    monkeypatch.setenv("JUDGELINE_CONFIG", str(office.folder))
    monkeypatch.setattr(Office, "catalog", property(lambda _: Catalog()))
    office.configure(judges=["one"], paid=["never-asked"])
    (office.folder / "local").mkdir()
    (office.folder / "local" / "judges.yaml").write_text(f"added: {PAID}")
    office.look()
    assert office.judges == ["added", "one"]
    office.look()
    assert office.judges == ["added", "one"]


def test_a_recorded_judge_is_a_partition_where_its_verdicts_came(office):
    recorded = "{display_name: R, family: f, kind: recorded}"
    (office.folder / "judges.yaml").write_text(f"came: {recorded}\nelsewhere: {recorded}")
    (office.folder / "corpora.yaml").write_text("c: {reader: battles, location: x.csv}")
    office.instance.report_runless_asset_event(
        dg.AssetMaterialization("recorded_verdicts", partition="c", metadata={"judges": ["came"]})
    )
    office.look()
    assert office.judges == ["came"]


def test_what_is_named_or_new_in_the_configuration_is_a_partition_and_stays(office):
    office.configure(judges=["one"], paid=["named", "never-asked"])
    register(office.instance, judges=["named"])
    office.cursor = '{"configured": {"corpus": ["c"], "judge": ["one", "named", "never-asked"]}}'
    office.look()
    assert office.judges == ["named", "one"]
    office.configure(judges=["one"], paid=["named", "never-asked", "new"])
    for _ in range(3):
        office.look()
    assert office.judges == ["named", "new", "one"]


def test_what_an_older_version_registered_unused_is_retired_once(office):
    office.configure(corpora=["c", "never-read"], judges=["one"], paid=["asked", "never-asked"])
    office.rated("asked")
    register(office.instance, corpora=["c", "never-read"], judges=["one", "asked", "never-asked"])
    office.cursor = '{"corpus": [], "judge": []}'
    for _ in range(3):
        office.look()
    assert office.judges == ["asked", "one"]
    assert office.instance.get_dynamic_partitions("corpus") == ["c"]
    register(office.instance, judges=["never-asked"])  # by hand, from now on
    for _ in range(3):
        office.look()
    assert office.judges == ["asked", "never-asked", "one"]


def test_a_judge_that_is_gone_is_retired_and_comes_back_as_it_was(office):
    office.look()
    office.rated("one")
    office.rated("two")
    office.configure(judges=["one"])
    assert "retired at the next look: two" in office.look().skip_reason.skip_message
    assert office.judges == ["one", "two"]
    result = office.look()
    assert office.judges == ["one"]
    assert [(r.job_name, r.partition_key) for r in result.run_requests] == [("comparison_job", "c")]
    office.configure(judges=["one", "two"])
    again = office.look()
    assert [r.partition_key for r in again.run_requests] == ["c"]
    made = office.instance.get_materialized_partitions(dg.AssetKey("leaderboard"))
    assert made == {"c|one", "c|two"}


def test_nothing_is_compared_where_nobody_is_left_or_nothing_was_rated(office):
    office.look()
    office.configure(judges=["one", "two", "three"])
    assert office.look().run_requests == []
    office.rated("three")
    office.configure(judges=["one", "two"])
    assert office.look().run_requests == []
    assert office.look().run_requests == []  # the others have no ratings to compare
    assert office.judges == ["one", "two"]


def selected(result):
    (request,) = result.run_requests
    return {key.to_user_string() for key in request.asset_selection}


def test_only_what_the_tables_of_other_judges_are_enough_for_is_compared(office):
    office.look()
    office.rated("one", "scoring_methods")
    office.rated("two")
    office.configure(judges=["two"])
    office.look()
    compared = {"judge_comparison", "pooled_leaderboard", "report"}
    assert selected(office.look()) == compared
    office.rated("two", "scoring_methods", "reference_ratings")
    office.configure(judges=["one", "two"])
    assert selected(office.look()) == compared


def test_half_a_file_that_is_whole_yaml_retires_nobody(office):
    office.look()
    for judges in (["one"], ["one", "two"], ["one"]):  # an editor, writing
        office.configure(judges=judges)
        office.look()
        assert office.judges == ["one", "two"]


def test_two_looks_at_half_a_file_with_broken_ones_between_retire_nobody(office):
    office.look()
    office.configure(judges=["one"])
    office.look()
    (office.folder / "judges.yaml").write_text("one: [unclosed")
    for _ in range(5):
        office.look()
    office.configure(judges=["one"])
    assert "retired at the next look: two" in office.look().skip_reason.skip_message
    assert office.judges == ["one", "two"]
    office.look()
    assert office.judges == ["one"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("judges.yaml", "one: {display_name: J, family: f, kind: nonsense}"),
        ("judges.yaml", "one: [unclosed"),
        ("judges.yaml", ""),
        ("corpora.yaml", "c: {reader: arena, colour: red}"),
    ],
)
def test_a_broken_file_is_told_once_and_retires_nobody(office, file, text):
    office.look()
    (office.folder / file).write_text(text)
    result = office.look()
    told = result.skip_reason.skip_message
    assert file in told
    assert "partitions stay as they are" in told
    assert result.run_requests == []
    assert office.judges == ["one", "two"]


def test_a_key_in_the_wrong_place_is_not_repeated(office):
    office.look()
    (office.folder / "judges.yaml").write_text(
        "one: {display_name: J, family: f, kind: openai, model: m, api_key_env: sk-secret-123}"
    )
    assert "sk-secret" not in office.look().skip_reason.skip_message


def test_nobody_is_retired_under_a_run(office):
    office.look()
    run = office.instance.create_run_for_job(build_definitions().resolve_job_def("corpus_job"))
    office.instance.report_engine_event("on its way", run)
    office.configure(judges=["one", "new"])
    for _ in range(3):
        told = office.look()
    assert "nobody is retired before run" in told.skip_reason.skip_message
    assert office.judges == ["new", "one", "two"]
    office.instance.report_run_failed(run)
    office.look()
    assert office.judges == ["new", "one"]


def test_a_name_that_another_process_adds_first_is_no_failure(tmp_path, monkeypatch):
    """Two runs on a new home both see no partition; the second to add one finds it there."""
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        register(instance, judges=["a"])
        seen = iter([[], [], ["a"]])  # of corpora, of judges, and of judges once more
        monkeypatch.setattr(instance, "get_dynamic_partitions", lambda _: next(seen))
        monkeypatch.setattr(instance, "add_dynamic_partitions", _already_there)
        register(instance, judges=["a"])


def _already_there(_dimension, _keys):
    raise IntegrityError("INSERT", {}, ValueError("UNIQUE constraint failed"))


def test_the_comparison_of_judges_that_were_run_in_part_succeeds(workshop):
    """Judges as far as a leaderboard; the one that is left has ratings and no scoring methods."""
    workshop.run("careful", "hasty", select=["group:corpus", "+leaderboard"])
    office = Office(workshop.home, workshop.instance)
    entry = "reader: arena, sample_size: 300, arena: {n_prompts: 40, n_voted: 12, n_new: 2}"
    (workshop.home / "corpora.yaml").write_text(f"tiny: {{{entry}}}")
    office.configure(judges=["careful"])
    office.look()
    (request,) = office.look().run_requests
    assert office.judges == ["careful"]
    defs = build_definitions(catalog=office.catalog, tables=workshop.tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELINE_HOME", str(workshop.home))
        result = defs.resolve_job_def(request.job_name).execute_in_process(
            asset_selection=request.asset_selection,
            partition_key=request.partition_key,
            instance=workshop.instance,
            raise_on_error=False,
        )
    assert result.success
    assert (workshop.home / "reports" / "tiny.html").exists()


def test_looks_without_news_leave_no_files(tmp_path):
    (tmp_path / "instance").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "instance")) as instance:
        office = Office(tmp_path, instance)
        logs = Path(instance.compute_log_manager._base_dir)
        office.look()
        n_files = len([*logs.rglob("*.err")])
        for _ in range(3):
            office.look()
        assert n_files == len([*logs.rglob("*.err")]) <= 1
