"""Counted rows of tables and of large Parquet files rate as their single battles do."""

import contextlib
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgeline
from judgeline.api import Board, Settings, doctor, pool, rank, reference_ratings, win_rates
from judgeline.cli import main
from judgeline.io import COUNT, ArgumentError, by_score, counting, read_judged_battles, scoring
from judgeline.io.judged import count_rows

QUICK = Settings(n_resamples=0)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "files.md"


def battles(seed: int = 1, n: int = 3000, size: int = 9) -> pd.DataFrame:
    """Votes, some of them missing, and scores on a grid that is coarse enough for repeats."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.8, size)
    a = rng.integers(size, size=n)
    b = (a + rng.integers(1, size, size=n)) % size
    gap = strength[a] - strength[b]
    vote = (rng.random(n) < 1 / (1 + np.exp(-gap))).astype(float)
    vote[rng.random(n) < 0.2] = 0.5
    vote[rng.random(n) < 0.1] = np.nan
    score = np.rint(3 * (gap + rng.normal(size=n))) / 3
    names = np.array([f"model-{k}" for k in range(size)])
    columns = {"model_a": names[a], "model_b": names[b], "human_outcome": vote}
    return pd.DataFrame({**columns, "score_difference": score})


def by_name(table: pd.DataFrame) -> pd.DataFrame:
    """The same battles, the first model by name being A: who is A moves `gap` by its spread."""
    turned = table["model_a"] > table["model_b"]
    sides = {"model_a": "model_b", "model_b": "model_a"}
    if "judge_score_a" in table:
        sides |= {"judge_score_a": "judge_score_b", "judge_score_b": "judge_score_a"}
    found = table.assign(**{one: table[one].mask(turned, table[two]) for one, two in sides.items()})
    for name, whole in {"score_difference": 0, "human_outcome": 1, "judge_outcome": 1}.items():
        if name in table:
            found[name] = table[name].mask(turned, whole - table[name])
    if "difference_ab" in table:
        ab, ba = table["difference_ab"], table["difference_ba"]
        found = found.assign(difference_ab=ab.mask(turned, -ba), difference_ba=ba.mask(turned, -ab))
    return found


def counted(table: pd.DataFrame) -> pd.DataFrame:
    return table.groupby([*table], dropna=False).size().rename(COUNT).reset_index()


def assert_alike(ours: Board, theirs: Board) -> None:
    """Every table but the diagnostics, which are fewer; numbers within 1e-9."""
    for name in (
        "leaderboard",
        "heldout_ratings",
        "beta_folds",
        "conformal_calibration",
        "summary",
    ):
        one, other = getattr(ours.ranking, name), getattr(theirs.ranking, name)
        pd.testing.assert_frame_equal(one, other, check_exact=False, rtol=1e-9, atol=1e-9)
    assert ours.battles.n_battles == theirs.battles.n_battles
    assert ours.battles.n_rows == theirs.battles.n_rows
    assert ours.battles.n_quarantined == theirs.battles.n_quarantined


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "COUNTED_FROM", 100)
    monkeypatch.setattr(counting, "_BATCH", 1000)
    monkeypatch.setattr(counting, "_BLOCK", 17)


def stream(table: pd.DataFrame, folder: Path, **options: object) -> Path:
    """Write a table as two Parquet files of small groups."""
    folder.mkdir(exist_ok=True)
    for place, part in enumerate((table.iloc[:1300], table.iloc[1300:])):
        part.to_parquet(folder / f"part-{place}.parquet", row_group_size=700, **options)
    return folder


# ------------------------------------------------------------------ counted tables


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000))
def test_a_table_of_counts_rates_as_its_battles(seed: int) -> None:
    table = battles(seed)
    assert_alike(rank(counted(table)), rank(table, QUICK))


VARIANTS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "scores": lambda table: table,
    "winner": lambda table: table.assign(
        winner=table["human_outcome"].map({1.0: "model_a", 0.0: "model_b", 0.5: "tie"})
    ).drop(columns="human_outcome"),
    "winner by name": lambda table: table.assign(
        winner=np.select(
            [table["human_outcome"].eq(1), table["human_outcome"].eq(0)],
            [table["model_a"], table["model_b"]],
            default="both_bad",
        )
    ).drop(columns="human_outcome"),
    "both scores": lambda table: table.assign(
        judge_score_a=5 + table["score_difference"], judge_score_b=5.0
    ).drop(columns="score_difference"),
    "recorded outcome": lambda table: table.assign(
        judge_outcome=(np.sign(np.rint(table["score_difference"] * 3 - 1)) + 1) / 2
    ),
    "plain verdicts": lambda table: table.assign(
        verdict=np.where(table["score_difference"] > 0, "A>B", "B>>A")
    ).drop(columns="score_difference"),
    "plain outcomes": lambda table: table.assign(
        judge_outcome=(np.sign(table["score_difference"]) + 1) / 2
    ).drop(columns="score_difference"),
    "recorded without ties": lambda table: table.assign(
        judge_outcome=table["score_difference"].gt(0).astype(float)
    ),
    "both orders": lambda table: table.assign(
        difference_ab=table["score_difference"] + np.arange(len(table)) % 5 - 2,
        difference_ba=table["score_difference"] - np.arange(len(table)) % 5 + 2,
    ),
    "scores off the grid": lambda table: table.assign(
        score_difference=np.round(table["score_difference"] * 0.7, 1)
    ),
    "ids, texts and amounts beside": lambda table: table.assign(
        **dict.fromkeys(("length_a", "length_b", "markdown_a", "markdown_b"), range(len(table))),
        battle_id=[*map(str, range(len(table)))],
        language=[f"language {row % 3}" for row in range(len(table))],
    ),
    "whole scores": lambda table: table.assign(
        score_difference=np.rint(table["score_difference"]).astype(int)
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_layout_of_counts_rates_as_its_battles(variant: str) -> None:
    table = VARIANTS[variant](battles())
    recorded = Settings(n_resamples=0, hard_outcome="recorded")
    for how in (QUICK, *([recorded] if "judge_outcome" in table else [])):
        assert_alike(rank(counted(table), how), rank(table, how))


def test_a_file_of_counts_is_ranked_from_the_command_line(tmp_path: Path, capsys) -> None:
    path, out = tmp_path / "counts.csv", tmp_path / "out"
    counted(battles()).rename(columns={COUNT: "N Battles"}).to_csv(path, index=False)
    assert main(["rank", "--counts", str(path), "--out", str(out)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "3,000 battles of counts.csv" in said
    assert "alike battles are read as one row with their number" in said
    assert "no resamples are drawn unless" not in said
    heldout = pd.read_csv(out / "heldout.csv")
    assert heldout["std_error"].isna().all()
    assert heldout["std_error_analytic"].notna().all()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<dt>n_resamples</dt><dd><bdi>0</bdi></dd>" in page
    assert "3000 scored" in page


def test_plain_ratings_of_counts_are_refused(tmp_path: Path, capsys) -> None:
    path = tmp_path / "counts.csv"
    counted(battles()).to_csv(path, index=False)
    assert main(["rank", "--plain", "half", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "rank without plain ratings" in " ".join(capsys.readouterr().err.split())


def test_counts_are_asked_for_where_there_are_none(tmp_path: Path, capsys) -> None:
    path = tmp_path / "battles.csv"
    battles().to_csv(path, index=False)
    assert main(["rank", "--counts", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "leave out --counts" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("options", [{"n_resamples": 20}, {"std_error": "bootstrap"}])
def test_resamples_of_counts_are_refused(options: dict) -> None:
    with pytest.raises(ArgumentError, match="resamples draw single ones: leave out '") as refused:
        rank(counted(battles()), Settings(**options))
    assert f"--{next(iter(options)).replace('_', '-')}" in refused.value.as_option()


@pytest.mark.parametrize("estimate", [win_rates, reference_ratings, lambda t: pool([t, t])])
def test_what_needs_single_battles_refuses_counts(estimate: Callable) -> None:
    with pytest.raises(ValueError, match="pass them one a row"):
        estimate(counted(battles()))


@pytest.mark.parametrize("name", ["count", "N", "Num Battles", "weight"])
def test_a_count_of_another_name_is_refused_with_both_remedies(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    table = counted(battles())
    path = tmp_path / "counts.parquet"
    table.rename(columns={COUNT: name}).to_parquet(path)
    for least in (counting.COUNTED_FROM, 10):  # also where rows are counted as they are read
        monkeypatch.setattr(counting, "COUNTED_FROM", least)
        assert main(["rank", str(path), "--out", str(tmp_path / "none")]) == 1
        error = " ".join(capsys.readouterr().err.split())
        assert f"column '{name}' looks like a count of battles (" in error
        assert f"rename it to n_battles, or state --columns 'n_battles={name}'; if it is" in error
    found = rank(path, QUICK, columns={COUNT: name})
    assert found.heldout.equals(rank(table, QUICK).heldout)
    with pytest.raises(ValueError, match="write each in a row of its own; drop it"):
        win_rates(path)


def test_a_count_with_a_nought_or_a_gap_is_refused_too() -> None:
    for last in (0, None):
        table = counted(battles()).rename(columns={COUNT: "cnt"}).astype({"cnt": object})
        table.loc[0, "cnt"] = last
        with pytest.raises(ValueError, match="'cnt' looks like a count of battles"):
            rank(table, QUICK)


@pytest.mark.parametrize("values", [1, range(7, 3007), 0.5, "x", -1, None])
def test_a_column_that_counts_no_battles_is_let_be(values: object) -> None:
    table = battles()
    assert rank(table.assign(n=values), QUICK).heldout.equals(rank(table, QUICK).heldout)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, None, "many"])
def test_a_number_that_counts_nothing_is_named(wrong: object) -> None:
    table = counted(battles()).astype({COUNT: object})
    table.loc[3, COUNT] = wrong
    with pytest.raises(ValueError, match=r"n_battles is \S+ in row 3; expected how many battles"):
        rank(table)


def test_faulty_rows_count_as_many_as_they_are() -> None:
    table = counted(battles())
    table.loc[0, ["model_a", COUNT]] = None, 7
    table.loc[1, "human_outcome"] = 0.3
    table.loc[1, COUNT] = 1
    found = read_judged_battles(table, counted=True)
    assert found.quarantine[["reason", COUNT]].to_numpy().tolist() == [
        ["missing-model", 7],
        ["unknown-outcome", 1],
    ]
    assert found.quarantined_share == 8 / table[COUNT].sum()
    table.loc[1, COUNT] = 500
    with pytest.raises(ArgumentError, match=r"'0.3' \(500 rows\)"):
        rank(table)
    table.loc[0, COUNT] = 10**6
    with pytest.raises(judgeline.api.QualityGateError, match="1000000 missing-model"):
        rank(table.drop(1))


def test_doctor_counts_battles() -> None:
    table = battles()
    ours, theirs = doctor(counted(table)), doctor(table)
    for name in ("n_battles", "n_votes", "n_models", "n_voted_models", "gate", "judge_connected"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert not [line for line in ours.supports if "judgeline." in line]


# ------------------------------------------------------------------ the query


def query() -> str:
    [found] = re.findall(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    return found


def test_the_documented_query_counts_in_sqlite() -> None:
    table = battles()
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        table.to_sql("battles", connection, index=False)
        counts = pd.read_sql_query(query(), connection)
    assert_alike(rank(counts), rank(table, QUICK))


def test_the_documented_query_counts_in_duckdb(tmp_path: Path) -> None:
    table = battles()
    table.to_parquet(tmp_path / "battles.parquet")
    with duckdb.connect() as connection:
        connection.sql(f"CREATE VIEW battles AS SELECT * FROM '{tmp_path}/battles.parquet'")  # noqa: S608
        connection.sql(query()).write_parquet(str(tmp_path / "counts.parquet"))
    assert_alike(rank(tmp_path / "counts.parquet"), rank(table, QUICK))


# ------------------------------------------------------------------ large files


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_large_file_rates_as_its_battles(variant: str, tmp_path: Path) -> None:
    table = VARIANTS[variant](battles())
    folder = stream(table, tmp_path / "large")
    single = rank(table, QUICK)
    ours = rank(folder)
    assert ours.battles.is_counted
    assert not single.battles.is_counted
    ratings, others = (one.ranking.heldout_ratings for one in (ours, single))
    for name in ("rating", "std_error_analytic", "human_rating"):
        plain = ratings["method"].ne("gap") & ratings["method"].ne("auto")
        assert ratings.loc[plain, name].to_numpy() == pytest.approx(
            others.loc[plain, name].to_numpy(), rel=1e-9, abs=1e-9, nan_ok=True
        )
    if "winner" not in table and "verdict" not in table:
        assert_alike(ours, rank(by_name(table), QUICK))


@pytest.mark.usefixtures("small_batches")
def test_a_large_file_of_dictionaries_and_narrow_numbers_is_read_alike(tmp_path: Path) -> None:
    table = battles()
    narrow = table.astype({"model_a": "category", "model_b": "category", "human_outcome": "f4"})
    frames = (rank(stream(one, tmp_path / str(k))) for k, one in enumerate((table, narrow)))
    assert_alike(*frames)


@pytest.mark.usefixtures("small_batches")
def test_faulty_rows_of_a_large_file_stand_in_the_quarantine_once(tmp_path: Path) -> None:
    table = battles().assign(judge="one")
    table["score_difference"] = table["score_difference"].mask(table.index.isin([5, 9]), np.inf)
    table.loc[[7, 8], "score_difference"] = np.nan
    table.loc[[7, 8, 1400], ["model_a", "model_b", "human_outcome"]] = "model-1", "model-2", 1.0
    table.loc[1400, "score_difference"] = np.nan
    table.loc[11, "model_b"] = table.loc[11, "model_a"]
    table.loc[12, "model_b"] = " "
    table.loc[13, "model_a"] = None
    table.loc[2000, "human_outcome"] = 7.0
    found = read_judged_battles(stream(table, tmp_path / "large"), counted=True)
    rows = read_judged_battles(stream(table, tmp_path / "large")).quarantine
    alike = rows.groupby(["reason", "detail"], sort=False)
    # rows with equal details may be of different kinds, such as two votes
    for (reason, detail), own in found.quarantine.groupby(["reason", "detail"]):
        expected = alike.get_group((reason, detail))
        assert own[COUNT].sum() == len(expected)
        assert set(own["row"]) <= set(expected["row"])
        assert own["file"].tolist()[0] == expected["file"].tolist()[0]
    assert found.n_quarantined == len(rows)
    nan = found.quarantine[found.quarantine["row"].eq(7)]
    assert nan[[COUNT, "reason"]].to_numpy().tolist() == [[3, "nan-score"]]


@pytest.mark.usefixtures("small_batches")
def test_a_large_file_of_faults_alone_is_refused_with_their_number(tmp_path: Path) -> None:
    table = battles()
    with pytest.raises(ValueError, match="can be rated: 3000 self-battle"):
        rank(stream(table.assign(model_b=table["model_a"]), tmp_path / "large"))


def test_doctor_sends_counts_without_votes_to_no_estimator_of_single_battles() -> None:
    found = doctor(counted(battles().drop(columns="human_outcome")))
    assert found.gate
    assert found.next == "judgeline.doctor(battles)"


@pytest.mark.usefixtures("small_batches")
def test_a_large_file_of_two_judges_is_read_by_one(tmp_path: Path) -> None:
    table = battles()
    both = pd.concat(
        [table.assign(judge="one"), table.iloc[::-1].assign(judge="two", score_difference=0)]
    )
    both = both.sample(frac=1, random_state=1, ignore_index=True)
    folder = stream(both, tmp_path / "large")
    assert_alike(rank(folder, judge="one"), rank(by_name(table), QUICK))


def test_counts_are_those_of_a_group_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_BATCH", 500)
    table = battles(5)
    path = tmp_path / "large.parquet"
    table.to_parquet(path, row_group_size=900)
    found = count_rows([path], {name: name for name in table})
    slow = table.groupby(["model_a", "model_b", "human_outcome"], dropna=False)
    assert found is not None
    kinds = found.kinds.set_index(["model_a", "model_b", "human_outcome"])
    for key, rows in slow:
        [place] = kinds.index.get_indexer_for([key])
        of_kind = dict(zip(found.scores.tolist(), found.counts[place].tolist(), strict=True))
        assert {s: n for s, n in of_kind.items() if n} == rows[
            "score_difference"
        ].value_counts().to_dict()
        assert kinds["row"].iloc[place] == rows.index[0]
        assert kinds[COUNT].iloc[place] == len(rows)
    assert len(kinds) == slow.ngroups
    assert (found.scores[found.mirror] == -found.scores).all()


@pytest.mark.parametrize("kind", ["category", "float64"])
def test_votes_and_scores_are_counted_as_a_group_by_counts_them(kind, monkeypatch) -> None:
    monkeypatch.setattr(scoring, "_BLOCK", 7)
    rng, keys = np.random.default_rng(2), ["human_outcome", "score_difference"]
    columns = {keys[0]: rng.choice([0, 0.5, 1, np.nan], 60), keys[1]: rng.integers(-3, 3, 60) / 12}
    table = pd.DataFrame(columns).astype(kind).assign(**{COUNT: rng.integers(1, 9, 60)})
    slow = table.astype(float).groupby(keys, dropna=False)[COUNT].sum().reset_index()
    pd.testing.assert_frame_equal(by_score(table), slow, check_dtype=False)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("limit", ["_MOST_VALUES", "_MOST_CELLS"])
def test_rows_that_are_hardly_alike_are_read_one_by_one_or_refused(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = battles()
    folder = stream(table, tmp_path / "large")
    monkeypatch.setattr(counting, limit, 64)
    monkeypatch.setattr(counting, "_MOST_VALUES", 8 if limit == "_MOST_VALUES" else 1000)
    board = rank(folder, QUICK)
    assert not board.battles.is_counted
    monkeypatch.setattr("judgeline.io.judged.MOST_UNCOUNTED", 2000)
    with pytest.raises(ValueError, match="3,000 rows, of which too few are alike"):
        rank(folder)


@pytest.mark.usefixtures("small_batches")
def test_only_what_rates_from_counts_reads_a_large_file_so(tmp_path: Path) -> None:
    folder = stream(battles(), tmp_path / "large")
    assert len(reference_ratings(folder)) == 8
    assert len(win_rates(folder))
    assert doctor(folder).n_battles == 3000
    assert not read_judged_battles(folder).is_counted


@pytest.mark.usefixtures("small_batches")
def test_columns_of_nothing_and_of_arrow_types_are_read(tmp_path: Path) -> None:
    table = battles()
    columns = pa.Table.from_pandas(table.drop(columns="human_outcome"), preserve_index=False)
    columns = columns.append_column("human_outcome", pa.array(table["human_outcome"], pa.float32()))
    columns = columns.append_column("recorded_outcome", pa.nulls(len(table)))
    columns = columns.set_column(0, "model_a", columns["model_a"].cast(pa.large_string()))
    pq.write_table(columns, tmp_path / "large.parquet")
    assert_alike(rank(tmp_path / "large.parquet"), rank(by_name(table), QUICK))


@pytest.mark.parametrize("columns", ["difference", "sides"])
def test_failures_in_large_files_are_named_and_set_aside(columns, tmp_path, small_batches) -> None:
    table = battles()
    if columns == "sides":
        both = {"judge_score_a": 15 + table["score_difference"], "judge_score_b": 15.0}
        table = table.assign(**both).drop(columns="score_difference")
    failed = [*table][-1] if columns == "difference" else "judge_score_a"
    table.loc[::7, failed] = -999.0
    folder = stream(table, tmp_path / "large")
    with pytest.raises(ArgumentError, match=rf"{failed}.* is -999 .*by model: model-") as refused:
        rank(folder, QUICK)
    assert "--missing -999" in refused.value.as_option()
    large = rank(folder, QUICK, missing=-999)
    empty = by_name(table.assign(**{failed: table[failed].replace(-999.0, np.nan)}))
    small = rank(empty, QUICK, allow_quarantine=True)
    assert large.battles.is_counted
    assert {*large.battles.quarantine["reason"]} == {"missing-verdict"}
    assert_alike(large, small)


def test_a_winner_of_a_judge_is_refused_in_large_files(tmp_path, small_batches) -> None:
    table = VARIANTS["winner"](battles()).assign(annotator="gpt-4")
    with pytest.raises(ArgumentError, match="column 'annotator' says 'gpt-4'"):
        rank(stream(table, tmp_path / "large"), QUICK)
