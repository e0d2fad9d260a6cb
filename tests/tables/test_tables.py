import gc
import os
import weakref

import dagster as dg
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from assets.partitions import CORPUS, CORPUS_JUDGE, corpus_judge_key, read_as, register
from judgeline.tables.intervals import LEADERBOARD
from resources.tables.store import ParquetTables, _TableCache, open_store, preview, require_slug

FRAME = pd.DataFrame(
    {
        "battle_id": ["b1", "b2"],
        "language": pd.Series(["en", None], dtype="str"),
        "n_turns": pd.Series([1, None], dtype="Int64"),
        "human_outcome": [1.0, float("nan")],
        "timestamp": pd.to_datetime(["2024-01-01", None], utc=True).as_unit("us"),
    }
)


@dg.asset(partitions_def=CORPUS_JUDGE)
def judged(context: dg.AssetExecutionContext) -> pd.DataFrame:
    judge = context.partition_key.keys_by_dimension["judge"]
    return pd.DataFrame({"said_by": [judge], "other": [1]})


@dg.asset(partitions_def=CORPUS, ins={"judged": read_as("said_by", fans_in=True)})
def fanned_in(judged: dict[str, pd.DataFrame]) -> pd.DataFrame:
    said = {str(key): table["said_by"].iloc[0] for key, table in judged.items()}
    columns = ["+".join(table.columns) for table in judged.values()]
    return pd.DataFrame({"key": said.keys(), "said_by": said.values(), "columns": columns})


@dg.asset(partitions_def=CORPUS)
def stored() -> pd.DataFrame:
    return FRAME


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["tiny"], judges=["j1", "j2", "j3"])
        yield instance


def _make(asset, instance, folder, key, everything=()):
    return dg.materialize(
        [asset, *everything],
        selection=[asset],
        partition_key=key,
        instance=instance,
        resources={"io_manager": ParquetTables(base_uri=str(folder))},
        raise_on_error=False,
    )


@pytest.mark.parametrize("uri", [None, "memory://judgeline-tables"])
def test_types_and_nulls_come_back_as_they_went(instance, tmp_path, uri):
    place = uri or str(tmp_path)
    assert _make(stored, instance, place, "tiny").success
    pd.testing.assert_frame_equal(open_store(place).stored("stored", "tiny"), FRAME)
    assert open_store(place).stored("stored", "other") is None


FOLDS = pd.DataFrame({"std_error": [1], "held_out_model": ["ant"], "n_battles": [40.0]})
FOLDS = FOLDS.assign(beta=2, status="ok")


@pytest.mark.parametrize(
    ("folds", "told"),
    [
        (FOLDS, None),
        (FOLDS[["beta"]], "'held_out_model'"),
        (FOLDS.assign(more=1), "'more'"),
        ({"a": 1}, "DataFrames only"),
        ("text", "DataFrames only"),
        ([FRAME], "DataFrames only"),
    ],
)
def test_a_declared_table_is_stored_with_its_types_and_no_other_columns(
    instance, tmp_path, folds, told
):
    @dg.asset(partitions_def=CORPUS)
    def beta_folds():
        return folds

    done = _make(beta_folds, instance, tmp_path, "tiny")
    back = open_store(str(tmp_path)).stored("beta_folds", "tiny")
    if told is None:
        kinds = [str(kind) for kind in back.dtypes]
        assert kinds == ["str", "float64", "float64", "int64", "str"]
    else:
        assert told in str(done.get_step_failure_events()[0].step_failure_data)
        assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("known", [["j1"], ["j1", "j2", "j3"]])
@pytest.mark.parametrize("present", [[], ["j1"], ["j3"], ["j1", "j3"], ["j1", "j2", "j3"]])
def test_fan_in_is_a_dict_by_the_right_key_whatever_is_missing(tmp_path, known, present):
    present = [judge for judge in present if judge in known]
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, corpora=["tiny"], judges=known)
        for judge in present:
            _make(judged, instance, tmp_path, corpus_judge_key("tiny", judge))
        assert _make(fanned_in, instance, tmp_path, "tiny", [judged]).success
    assert all((tmp_path / "judged" / "tiny" / f"{judge}.parquet").is_file() for judge in present)
    table = open_store(str(tmp_path)).stored("fanned_in", "tiny")
    keys = [key.removeprefix("tiny|") for key in table["key"]]
    assert (sorted(keys), keys) == (present, table["said_by"].tolist())
    assert set(table["columns"]) <= {"said_by"}  # only the named columns are read


def test_a_missing_table_says_what_to_make_first(instance, tmp_path):
    @dg.asset(partitions_def=CORPUS)
    def needs(stored: pd.DataFrame) -> None: ...

    result = _make(needs, instance, tmp_path, "tiny", [stored])
    told = str(result.get_step_failure_events()[0].step_failure_data)
    assert "materialise 'stored' first" in told


def test_a_failed_write_leaves_the_old_table_and_no_scrap(instance, tmp_path, monkeypatch):
    _make(stored, instance, tmp_path, "tiny")

    def full(_):
        raise OSError("disk full")

    monkeypatch.setattr("judgeline.atomic.os.fsync", full)
    assert not _make(stored, instance, tmp_path, "tiny").success
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["tiny.parquet"]
    pd.testing.assert_frame_equal(open_store(str(tmp_path)).stored("stored", "tiny"), FRAME)


@pytest.mark.parametrize("uri", [None, "memory://judgeline-remembered"])
def test_the_leaderboard_before_is_kept_and_no_other_table(instance, tmp_path, uri):
    place, boards = uri or str(tmp_path), []
    key = corpus_judge_key("tiny", "j1")
    known = pd.DataFrame({"model": ["a"], "n_battles": [1], "n_votes": [0]})
    columns = LEADERBOARD.filled(known)

    @dg.asset(partitions_def=CORPUS_JUDGE)
    def leaderboard():
        return boards[-1]

    for rating, last in (
        (1500.0, None),
        (1520.0, [1500.0]),
        (1520.0, [1500.0]),
        (1510.0, [1520.0]),
    ):
        boards.append(columns.assign(rating=rating))
        assert _make(leaderboard, instance, place, key).success
        assert _make(judged, instance, place, key).success
        before = open_store(place).before("leaderboard", "tiny", "j1")
        kept = None if before is None else before["rating"].tolist()
        assert kept == last  # the same board again replaces none
    assert open_store(place).before("judged", "tiny", "j1") is None


@pytest.mark.parametrize("uri", [None, "memory://judgeline-rounding"])
def test_a_table_that_differs_by_rounding_alone_stays_as_stored(instance, tmp_path, uri):
    place = uri or str(tmp_path)

    def version(factor):
        @dg.asset(partitions_def=CORPUS, name="stored")
        def varied():
            return FRAME.assign(human_outcome=FRAME["human_outcome"] * factor)

        (event,) = _make(varied, instance, place, "tiny").get_asset_materialization_events()
        return event.materialization.tags[DATA_VERSION_TAG]

    def outcome():
        return open_store(place).stored("stored", "tiny")["human_outcome"].iloc[0]

    first = version(1.0)
    assert (version(1 + 2**-52), outcome()) == (first, 1.0)
    assert version(1 + 1e-6) != first
    assert outcome() == 1 + 1e-6
    assert (version(1.0), outcome()) == (first, 1.0)


def test_a_damaged_table_is_written_anew(instance, tmp_path):
    _make(stored, instance, tmp_path, "tiny")
    (file,) = tmp_path.rglob("*.parquet")
    whole = file.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:40] + bytes(40) + whole[80:]):
        file.write_bytes(damaged)
        assert _make(stored, instance, tmp_path, "tiny").success
        assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "key", ["../up", "a/b", "a|b", "a,b", "Upper", "", ".hidden", "a..b", "a b", "é", "a\n"]
)
def test_unsafe_keys_are_refused_everywhere(tmp_path, key):
    with pytest.raises(ValueError, match="unsafe partition key"):
        require_slug(key)
    with (
        dg.DagsterInstance.ephemeral() as instance,
        pytest.raises(ValueError, match="unsafe partition key"),
    ):
        register(instance, corpora=["fine"], judges=[key])
    if "/" not in key and "|" not in key:
        with pytest.raises(ValueError, match="unsafe partition key"):
            open_store(str(tmp_path)).stored("leaderboard", "tiny", key)


def test_a_key_that_got_past_registration_cannot_leave_its_folder(tmp_path):
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("corpus", ["../../up"])

        assert not _make(stored, instance, tmp_path / "base", "../../up").success
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_all_names_are_registered_once_or_none_is(instance):
    register(instance, corpora=["tiny", "tiny"], judges=["j1", "j4"])
    assert sorted(instance.get_dynamic_partitions("judge")) == ["j1", "j2", "j3", "j4"]
    with pytest.raises(ValueError, match="'NO'"):
        register(instance, corpora=["fresh"], judges=["NO"])
    assert instance.get_dynamic_partitions("corpus") == ["tiny"]


def test_catalogue_gets_rows_columns_and_a_preview(instance, tmp_path):
    event = _make(stored, instance, tmp_path, "tiny").get_asset_materialization_events()[0]
    metadata = event.materialization.metadata
    assert metadata["dagster/partition_row_count"].value == 2
    columns = {c.name: c.type for c in metadata["dagster/column_schema"].value.columns}
    assert columns["battle_id"] == "string"
    assert columns["n_turns"] == "int64"
    assert "b1" in metadata["preview"].value


def test_preview_of_hostile_text_cannot_format_or_fetch():
    hostile = "![x](http://evil/p.png) <img src=x onerror=1> a|b\n# head\n| c |" + "y" * 500
    lines = preview(pd.DataFrame({"te|xt": [hostile], "n": [None]})).splitlines()
    assert len(lines) == 3  # header, rule, one row: newlines are gone
    row = lines[2]
    assert row.count("|") == 3  # only the table's own borders
    assert not set("<>[]()!`*_:#/").difference("#").intersection(row)
    assert row.count("#") == row.count("&#")
    assert len(row) < 500
    assert lines[0].count("|") == 3
    text = preview(pd.DataFrame({f"c{i}": range(9) for i in range(20)}))
    assert "8 more columns" in text
    assert len(text.splitlines()) == 2 + 5 + 2


# Tables stay in memory


@pytest.fixture
def reads(monkeypatch):
    """Every Parquet file that is read from here on, with its columns."""
    read, read_table = [], pq.read_table

    def counted(source, columns=None):
        read.append(columns)
        return read_table(source, columns=columns)

    monkeypatch.setattr(pq, "read_table", counted)
    return read


def _write(folder, frame):
    path = folder / "written" / "tiny.parquet"
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    frame.to_parquet(part)
    part.replace(path)
    return path


def test_a_table_is_read_once_and_every_reader_gets_a_frame_of_its_own(tmp_path, reads):
    _write(tmp_path, FRAME)
    first = open_store(str(tmp_path)).stored("written", "tiny")
    first.loc[:, "battle_id"] = "changed"
    first.loc[0, "human_outcome"] = 7.0
    del first["language"]
    pd.testing.assert_frame_equal(open_store(str(tmp_path)).stored("written", "tiny"), FRAME)
    assert len(reads) == 1


def test_a_table_written_anew_is_read_anew(tmp_path, reads):
    """By another inode, where size and time are those of the file before."""
    path = _write(tmp_path, pd.DataFrame({"n": [1]}))
    before = path.stat()
    assert open_store(str(tmp_path)).stored("written", "tiny")["n"].tolist() == [1]
    _write(tmp_path, pd.DataFrame({"n": [2]}))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert open_store(str(tmp_path)).stored("written", "tiny")["n"].tolist() == [2]
    path.unlink()
    assert open_store(str(tmp_path)).stored("written", "tiny") is None
    assert len(reads) == 2


def test_tables_in_memory_are_bounded(tmp_path, reads):
    cache = _TableCache(4 * pa.table({"n": range(100)}).nbytes - 1)
    paths = [str(tmp_path / f"{number}.parquet") for number in range(5)]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"n": [number] * 100}), path)
    for path in [*paths, paths[4], paths[2], paths[0]]:
        assert cache.read(path, None)["n"][0].as_py() == paths.index(path)
    assert len(reads) == 6  # the first was dropped for the fourth
    assert cache.read(paths[0], ["n"]).num_rows == 100
    assert reads == [*[None] * 6, ["n"]]


def test_a_table_that_is_stored_leaves_memory_before_the_run_ends(tmp_path):
    there = []

    @dg.asset
    def made() -> pd.DataFrame:
        frame = pd.DataFrame({"battle_id": ["a"]})
        there.append(weakref.ref(frame))
        return frame

    @dg.asset(deps=[made])
    def later() -> None:
        gc.collect()
        there.append(there[0]())

    resources = {"io_manager": ParquetTables(base_uri=str(tmp_path))}
    definitions = dg.Definitions([made, later], resources=resources)
    job = definitions.resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        job.execute_in_process(instance=instance)
    assert there[1] is None
