"""The schedule of the drift watch, where its configuration cannot be read just then."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from assets.partitions import corpus_judge_key, register
from pipelines.sensors.activity import UnreadableError
from pipelines.sensors.drift import drift_watch
from resources.config.catalog import Catalog

WEDNESDAY = datetime(2031, 1, 8, 5, tzinfo=UTC)
FILES = {
    "corpora": "c: {reader: arena, judges: [one], drift: {battles: 30}}",
    "judges": 'one: {display_name: J, family: f, kind: openai, model: m, base_url: "http://h"}',
}


@pytest.mark.parametrize("broken", FILES)
def test_half_a_file_fails_the_tick_and_the_next_one_asks(tmp_path, broken):
    def write(**changes):
        for name, text in {**FILES, **changes}.items():
            (tmp_path / f"{name}.yaml").write_text(text)

    def tick():
        catalog = Catalog(**{f"{name}_file": str(tmp_path / f"{name}.yaml") for name in FILES})
        with dg.build_schedule_context(
            instance=instance, scheduled_execution_time=WEDNESDAY
        ) as context:
            return list(drift_watch(context, catalog=catalog))

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        register(instance, corpora=["c"], judges=["one"])
        partition = corpus_judge_key("c", "one")
        instance.report_runless_asset_event(
            dg.AssetMaterialization("leaderboard", partition=partition)
        )
        write(**{broken: "c: ["})
        with pytest.raises(UnreadableError, match=rf"nobody is watched .*{broken}.yaml"):
            tick()
        write()
        (request,) = tick()
    assert request.partition_key == partition
