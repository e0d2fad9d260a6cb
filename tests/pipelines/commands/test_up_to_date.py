"""What has not changed is not made again; what has is, with exactly what depends on it."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from assets.partitions import CORPUS_JUDGE, corpus_judge_key, register
from assets.provenance import MADE_FROM, check_records, latest, settled_judges
from pipelines.commands import run as run_module
from pipelines.commands.up_to_date import LineageRecord, _left_out
from pipelines.definitions import build_definitions
from resources.stores import StoredVerdicts
from resources.tables.store import ParquetStore, ParquetTables

TO_THE_BOARD = ["group:corpus", "+leaderboard"]
CALL = {
    "failure": None, "log_probabilities": None, "prompt_tokens": 3, "completion_tokens": 2,
    "judge": "careful", "battle_id": "b", "order": "AB", "replicate": 0, "parts": "{}",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(go_on):
    """The tiny arena, rated; each test leaves one judge up to date as far as its leaderboard."""
    workshop = go_on()
    workshop.tiny["judges"] = ["careful"]
    return workshop


def data_versions(workshop):
    """The data version of each table that has one, by its name and place."""
    instance, judge = workshop.instance, corpus_judge_key("tiny", "careful")
    records = {
        (key.to_user_string(), place): latest(instance, key.to_user_string(), place)
        for key in instance.all_asset_keys()
        for place in ("tiny", judge)
    }
    return {
        place: record.asset_materialization.tags[DATA_VERSION_TAG]
        for place, record in records.items()
        if record
    }


def made(workshop, *judges, **options):
    """Run again; return the tables that this made, in their order."""
    outcome = workshop.run(*judges, **{"select": TO_THE_BOARD, **options})
    assert outcome.errors == []
    names = [line.split()[1] for line in workshop.printed.splitlines() if "  done " in line]
    assert len(outcome.made) == len(names)
    return names


def test_a_second_run_makes_nothing_and_says_so(finished):
    before = finished.instance.get_runs_count()
    outcome = finished.run(select=TO_THE_BOARD)
    assert (outcome.exit_code, len(outcome.made), len(outcome.up_to_date)) == (0, 0, 19)
    assert "19 tables are up to date" in finished.printed
    assert "--force" in finished.printed
    assert finished.instance.get_runs_count() == before


def test_one_setting_makes_exactly_what_depends_on_it(finished):
    finished.tiny["rating"] = {"n_resamples": 20, "miscoverage": 0.2}
    changed = ["candidate_ratings", "conformal_calibration", "judge_gate", "leaderboard"]
    assert sorted(made(finished)) == changed  # the gate reads the interval of skill
    event = finished.instance.get_latest_materialization_event(dg.AssetKey("leaderboard"))
    settings = event.asset_materialization.metadata[MADE_FROM].value["rating_settings"]
    assert settings["miscoverage"] == 0.2  # though the ratings are of before
    widths = dg.AssetCheckKey(dg.AssetKey("conformal_calibration"), "missing_battles_matter_little")
    place = corpus_judge_key("tiny", "careful")
    (record,) = check_records(finished.instance, [widths], place).values()
    of_careful = dg.AssetRecordsFilter(asset_key=widths.asset_key, asset_partitions=[place])
    (latest,) = finished.instance.fetch_materializations(of_careful, limit=1).records
    assert record.run_id == latest.run_id  # bounds beside half-widths of the new miscoverage
    assert made(finished) == []


def test_a_table_that_comes_out_the_same_moves_nothing(finished):
    finished.tiny["filters"] = {"single_turn": True}  # as all battles of the arena are
    assert made(finished) == ["battles"]
    assert made(finished) == []


def test_what_is_between_two_tables_that_are_due_is_asked_once_and_last_comes_once(finished):
    """A seed of the sample that changes it: each table that follows is made once."""
    finished.tiny["seed"] = 1
    names = made(finished)
    assert names[0] == "raw_battles"
    assert {"sampled_battles", "verdicts", "leaderboard"} < {*names}
    assert len(names) == len({*names})
    assert made(finished) == []


def test_a_table_whose_file_is_gone_is_made_again(finished):
    (finished.home / "tables" / "beta_folds" / "tiny" / "careful.parquet").unlink()
    assert made(finished) == ["beta_folds"]


def newer_code(patch, name):
    """Raise the code version of a table."""

    def newer(spec):
        is_it = spec.key == dg.AssetKey(name)
        return spec.replace_attributes(code_version="newer") if is_it else spec

    patch.setattr(
        run_module,
        "build_definitions",
        lambda **given: build_definitions(**given).map_asset_specs(func=newer),
    )


def as_made_elsewhere(patch, altered):
    """Alter the floats of all tables before they are stored, and count them."""
    store, n_altered = ParquetStore.handle_output, []

    def handle_output(self, context, obj):
        floats = obj.select_dtypes("float")
        n_altered.append(int(floats.notna().sum().sum()))
        store(self, context, obj.assign(**{name: altered(floats[name]) for name in floats}))

    patch.setattr(ParquetStore, "handle_output", handle_output)
    return n_altered


def test_a_home_on_another_processor_stays_as_it_is(finished, shown, monkeypatch):
    """Each table is made again there, and each of its floats is its neighbour."""
    files, versions = finished.files(), data_versions(finished)
    with monkeypatch.context() as patch:
        n_altered = as_made_elsewhere(patch, lambda floats: np.nextafter(floats, np.inf))
        names = made(finished, force=True)
    assert {"verdicts", "beta_folds", "heldout_ratings", "leaderboard"} <= {*names}
    assert sum(n_altered) > 1000
    assert (finished.files(), data_versions(finished)) == (files, versions)
    assert made(finished) == []
    assert shown == []


@pytest.mark.filterwarnings("ignore::dagster.PreviewWarning")
@pytest.mark.parametrize(
    ("altered", "due"),
    [
        (lambda slope: np.nextafter(slope, np.inf), ["beta_folds"]),
        (lambda slope: slope * (1 + 1e-6), ["beta_folds", "heldout_ratings", "leaderboard"]),
    ],
)
def test_only_another_number_makes_what_follows_again(finished, monkeypatch, altered, due):
    files = finished.files()
    with monkeypatch.context() as patch:
        newer_code(patch, "beta_folds")
        with patch.context() as elsewhere:
            as_made_elsewhere(elsewhere, altered)
            names = made(finished)
    assert {*due} <= {*names}
    assert (names == ["beta_folds"]) is (due == ["beta_folds"])
    assert (finished.files() == files) is (due == ["beta_folds"])
    made(finished)


@pytest.mark.filterwarnings("ignore::dagster.PreviewWarning")
def test_a_table_whose_code_changed_is_made_again(finished, monkeypatch):
    with monkeypatch.context() as patch:
        newer_code(patch, "judge_gate")
        assert made(finished) == ["judge_gate"]
        assert made(finished) == []
    assert made(finished) == ["judge_gate"]  # by the code of before


def test_a_table_whose_check_was_cut_off_is_made_again(finished):
    """As after kill -9 between a table and its checks: the check was planned, and never ended."""
    job = build_definitions().resolve_job_def("judge_job")
    finished.instance.create_run_for_job(
        job, tags={"dagster/partition": "tiny|careful"}, asset_selection={dg.AssetKey("beta_folds")}
    )
    assert made(finished) == ["beta_folds"]


def test_a_table_with_a_new_check_is_made_again(finished, monkeypatch):
    @dg.asset_check(asset="beta_folds", partitions_def=CORPUS_JUDGE)
    def is_new():
        return dg.AssetCheckResult(passed=True)

    def built(**given):
        more = dg.Definitions(asset_checks=[is_new])
        return dg.Definitions.merge(build_definitions(**given), more)

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "build_definitions", built)
        assert made(finished) == ["beta_folds"]
        assert made(finished) == []
    assert made(finished) == []


def test_a_run_cut_short_at_a_table_without_gates_leaves_its_judge_out(make_workshop):
    """The panel has no gate, and the leaderboard that follows it is older than the ratings."""
    workshop = make_workshop()
    instance, job = workshop.instance, build_definitions().resolve_job_def("judge_job")
    register(instance, corpora=["tiny"], judges=["careful"])
    run = instance.create_run_for_job(
        job,
        tags={"dagster/partition": "tiny|careful"},
        asset_selection={dg.AssetKey("reliability_panel")},
    )
    judged = (["careful"], [])
    assert settled_judges(instance, "tiny", ["careful"]) == judged  # it is at work
    instance.report_run_failed(run)
    assert settled_judges(instance, "tiny", ["careful"]) == judged[::-1]


def test_a_judge_at_work_anew_stands_by_its_last_run(finished):
    """A comparison made meanwhile would leave it out, and nothing would make that one again."""
    instance, job = finished.instance, build_definitions().resolve_job_def("judge_job")

    def begin():
        return instance.create_run_for_job(
            job,
            tags={"dagster/partition": "tiny|careful"},
            asset_selection={dg.AssetKey("beta_folds")},
        )

    judged = (["careful"], [])
    stopped = begin()
    assert settled_judges(instance, "tiny", ["careful"]) == judged
    instance.report_run_failed(stopped)
    begin()
    assert settled_judges(instance, "tiny", ["careful"]) == judged[::-1]
    assert made(finished) == ["beta_folds"]
    begin()
    assert settled_judges(instance, "tiny", ["careful"]) == judged


@pytest.mark.parametrize(
    ("later", "is_due"),
    [((), False), ((("a", "ok", "one"),), True), ((("a", "transport", None),), True)],
)
def test_answers_later_than_the_table_do_not_wait(make_workshop, tmp_path, later, is_due):
    """As after kill -9 between the last answer and its table."""
    workshop, bought = make_workshop(), StoredVerdicts(uri=str(tmp_path / "verdicts"))
    place, rows = ("tiny", "careful"), [("a", "refusal", "no"), ("b", "ok", "two")]
    table = pd.DataFrame(rows, columns=["identity", "status", "answer"])
    file = tmp_path / "tables" / "verdicts" / "tiny" / "careful.parquet"
    file.parent.mkdir(parents=True)
    table.to_parquet(file)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    for minute, (identity, status, answer) in enumerate((*rows, *later)):
        at, told = noon + timedelta(minutes=minute), {"status": status, "answer": answer}
        bought.open().append("key", [{**CALL, "identity": identity, "answered_at": at, **told}])
    store = ParquetTables(base_uri=str(tmp_path / "tables")).create_io_manager(None)
    record = LineageRecord(workshop.instance, None, store, workshop.catalog, bought)
    assert record._has_other_answers("verdicts", place, "key") is is_due


def test_a_comparison_that_left_a_judge_out_is_made_again_unless_it_was_withheld():
    key, place = dg.AssetKey("judge_comparison"), ("tiny",)
    assert "hasty" in _left_out(key, place, {"left_out": ["hasty"]})
    assert not _left_out(key, place, {"left_out": ["hasty"], "withheld hasty": "its kappa"})
    assert not _left_out(key, place, {"left_out": []})
    ratings = {"left_out": {"embeddings": "no explanation"}}
    assert not _left_out(dg.AssetKey("scoring_methods"), ("tiny", "hasty"), ratings)


def test_force_makes_all_again(finished):
    assert len(made(finished, force=True, select=["beta_folds", "judge_gate"])) == 2


FILE = "battle_id,model_a,model_b,winner,instruction,completion_a,completion_b\n"


def test_a_corpus_file_that_changed_is_read_again_and_warnings_are_told_until_then(workshop):
    file = workshop.home / "mine.csv"
    rows = [f"{i},m{i % 3},m{3 + i % 2},model_a,q{i},one,two\n" for i in range(12)]
    file.write_text(FILE + "".join(rows))
    workshop.tiny |= {"reader": "battles", "location": str(file), "judges": ["recorded"]}
    del workshop.tiny["arena"]
    corpus = {"select": ["group:corpus"]}
    first, again = workshop.run(**corpus), workshop.run(**corpus)
    assert (len(first.made), len(again.made)) == (5, 0)
    assert "humans_voted" in [check.check for check in first.failed_checks]
    assert {*again.failed_checks} == {*first.failed_checks}
    file.write_text(FILE + "".join(rows[:-1]))
    assert {"raw_battles", "battles", "sampled_battles"} <= {*made(workshop, **corpus)}
    assert made(workshop, **corpus) == []
