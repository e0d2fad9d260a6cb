"""New models where a served judge is to place them: it does, or each line says what is lacking."""

import dagster as dg
import pandas as pd
import pytest
from newcomers import drop, newcomer

from assets.partitions import corpus_judge_key, register
from judgeline.cli import OK, main
from pipelines.sensors.activity import active_judges, rated_by
from pipelines.sensors.candidates import new_candidates, place_candidates
from resources.corpora.reading import read_corpus

SECRET = "sk-not-to-be-shown"  # noqa: S105 - of no account
STRICT = {
    "family": "f", "kind": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1",
    "api_key_env": "STRICT_KEY",
}  # fmt: skip


class Own:
    """A corpus without `judges:` that was read, a served judge, and a dropped candidate."""

    def __init__(self, workshop, capsys):
        self.workshop, self.instance, self.capsys = workshop, workshop.instance, capsys
        del workshop.tiny["judges"]
        register(self.instance, corpora=["tiny"], judges=["strict"])
        self.store("battles/tiny", read_corpus(workshop.catalog.corpus("tiny")).battles)
        folder = workshop.home / "candidates" / "tiny"
        self.answers = drop(folder, newcomer(workshop.tiny["arena"]))
        workshop.rest()

    def store(self, place, table):
        file = self.workshop.home / "tables" / f"{place}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        table.to_parquet(file)

    def rate(self, judge):
        """Leave a judge's leaderboard, and the record of it, as a run would."""
        partition = str(corpus_judge_key("tiny", judge))
        self.instance.report_runless_asset_event(
            dg.AssetMaterialization("leaderboard", partition=partition)
        )
        self.store(f"leaderboard/tiny/{judge}", pd.DataFrame({"model": ["m"], "flags": [""]}))

    def look(self, sensor):
        with dg.build_sensor_context(instance=self.instance) as context:
            return sensor(context, catalog=self.workshop.catalog)

    def lines(self):
        """What commands about candidates print, and the sensor that reads them, each on a line."""
        found = [str(self.look(new_candidates).skip_reason)]
        for command in (["check", str(self.answers)], ["list"]):
            self.capsys.readouterr()
            assert main(["candidates", *command, "--corpus", "tiny"]) == OK
            found.append(" ".join(self.capsys.readouterr().out.split()))
        return found


@pytest.fixture
def own(workshop, monkeypatch, capsys):
    monkeypatch.setitem(workshop.judges, "strict", STRICT)
    monkeypatch.delenv("STRICT_KEY", raising=False)
    found = Own(workshop, capsys)
    workshop.install(monkeypatch)
    return found


def test_a_judge_with_a_leaderboard_places_candidates_once_its_key_is_there(own, monkeypatch):
    assert own.look(new_candidates).run_requests == []
    own.rate("strict")
    catalog = own.workshop.catalog
    tiny = catalog.corpus("tiny")
    [active] = active_judges(tiny, catalog, rated_by(tiny, own.instance))
    assert active.slug == "strict"
    assert [one.partition_key for one in own.look(new_candidates).run_requests] == ["tiny"]
    assert own.workshop.run_job("candidate_job").success
    for line in (own.look(place_candidates).skip_message, *own.lines()[1:]):
        assert "judge 'strict'" in line
        assert "STRICT_KEY, which is not set" in line
    monkeypatch.setenv("STRICT_KEY", SECRET)
    [request] = own.look(place_candidates).run_requests
    assert str(request.partition_key) == "tiny|strict"
    assert not [line for line in own.lines() if "STRICT_KEY" in line or SECRET in line]


def test_without_a_leaderboard_every_line_names_a_run_that_makes_one(own):
    own.rate("recorded")  # which cannot be asked about anything new
    assert all("judgeline run --corpus tiny --judge SLUG" in line for line in own.lines())
    own.workshop.tiny["judges"] = ["strict"]
    for line in own.lines()[:1]:
        assert "judgeline run --corpus tiny --judge strict" in line
        assert "STRICT_KEY" in line


def test_a_judge_that_the_corpus_does_not_list_is_not_asked_and_the_key_to_change_is_named(own):
    own.workshop.tiny["judges"] = ["careful"]
    own.rate("strict")
    assert own.workshop.catalog.corpus("tiny").judges == ["careful"]
    change = "add strict to 'judges' of corpus 'tiny' in corpora.yaml"
    assert all(change in line for line in own.lines())
