"""Battles in every format, encoding and naming that people have: read alike, or refused by name."""

import contextlib
import csv
import gzip
import io
import json
import lzma
import math
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import judgeline
from judgeline.cli import main
from judgeline.io import ArgumentError, formats, read_files, read_judged_battles
from judgeline.io.layouts.lmarena import LMARENA_55K

BATTLES = pd.DataFrame(
    {
        "battle_id": ["b1", "b2", "b3", "b4"],
        "model_a": ["modèle été", "bee", "naïve café", "bee"],
        "model_b": ["bee", "naïve café", "modèle été", "naïve café"],
        "score_difference": [1.5, -0.25, 2.0, 0.5],
        "human_outcome": [1.0, 0.0, None, 0.5],
    }
)
NAMES = {1.0: "model_a", 0.0: "model_b", 0.5: "tie"}
LONG = pd.concat([BATTLES.assign(battle_id=BATTLES["battle_id"] + f"-{i}") for i in range(50)])


def text(encoding: str, **options: str) -> Callable[[pd.DataFrame, Path], object]:
    return lambda table, path: table.to_csv(path, index=False, encoding=encoding, **options)


def zipped(table: pd.DataFrame, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/some.csv", table.to_csv(index=False))


def lines(table: pd.DataFrame) -> str:
    return table.to_json(orient="records", lines=True)


FORMATS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "commas.csv": text("utf-8"),
    "marked.csv": text("utf-8-sig"),
    "tabs.tsv": text("utf-8", sep="\t"),
    "tabs.csv": text("utf-8", sep="\t"),
    "bars.csv": text("utf-8", sep="|"),
    "semicolons.csv": text("utf-8", sep=";"),
    "decimal commas.csv": text("utf-8", sep=";", decimal=","),
    "utf16.csv": text("utf-16"),
    "utf32.csv": text("utf-32", sep=";", decimal=","),
    "western.csv": text("cp1252"),
    "gzip.csv.gz": text("utf-8"),
    "bzip2.csv.bz2": text("utf-8"),
    "xz.tsv.xz": text("utf-8", sep="\t"),
    "archive.zip": zipped,
    "records.json": lambda table, path: table.to_json(path, orient="records"),
    "named.json": lambda table, path: path.write_text(
        json.dumps({"version": 2, "rows": json.loads(table.to_json(orient="records"))})
    ),
    "lines.json": lambda table, path: path.write_text(lines(table)),
    "lines.jsonl": lambda table, path: path.write_text(lines(table)),
    "lines16.jsonl": lambda table, path: path.write_text(lines(table), encoding="utf-16"),
    "lines.ndjson.gz": lambda table, path: path.write_bytes(gzip.compress(lines(table).encode())),
    "lines.jsonl.xz": lambda table, path: path.write_bytes(lzma.compress(lines(table).encode())),
    "table.parquet": lambda table, path: table.to_parquet(path),
    "table.feather": lambda table, path: table.reset_index(drop=True).to_feather(path),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_table_is_the_same_in_every_format(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    FORMATS[name](LONG, path)
    read, given = read_judged_battles(path), read_judged_battles(LONG)
    pd.testing.assert_frame_equal(read.scored, given.scored, check_dtype=False, check_like=True)
    assert read.quarantine.empty
    assert read.judge == f"the judge of {name}"
    note = "western.csv is not UTF-8 and was read as cp1252: look at its names"
    assert read.notes == ((note, *given.notes) if name == "western.csv" else given.notes)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_a_table_of_nullable_types_is_read_as_a_plain_one(backend: Any) -> None:
    ids = {"battle_id": range(len(LONG)), "question_id": [1.5, None, 2.0, None] * (len(LONG) // 4)}
    table = LONG.assign(**ids, judge_score_a=LONG["score_difference"] + 2.0, judge_score_b=2.0)
    expected = read_judged_battles(table)
    read = read_judged_battles(table.convert_dtypes(dtype_backend=backend))
    pd.testing.assert_frame_equal(read.scored, expected.scored)
    assert read.scored["question_id"].tolist()[::2] == ["1.5", "2"] * (len(LONG) // 4)
    assert read.notes == expected.notes


ODD = (
    *(None, math.nan, math.inf, "", " ", "nan", "tie", "A", "1", "1,5", "=1+1", "\x1b[2J", 10**30),
    *(-5, 0, 0.25, True, [], ["math"], {"a": 1}, [[1]], b"x", pd.NA, pd.Timestamp(0), 1e308),
)
ODD_COLUMNS = (
    *("model_a", "model_b", "human_outcome", "winner", "score_difference", "judge_score_a"),
    *("judge_score_b", "judge_outcome", "judge", "battle_id", "question_id", "language"),
    *("category", "length_a", "difference_ab", "difference_ba", "recorded_outcome"),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(ODD_COLUMNS), st.integers(0, 7), st.sampled_from(ODD)),
        max_size=5,
    )
)
def test_odd_cells_are_read_set_aside_or_refused(cells: list[tuple[str, int, Any]]) -> None:
    table = {name: column.tolist() for name, column in LONG.head(8).items()}
    for name, row, value in cells:
        table.setdefault(name, [None] * 8)[row] = value
    try:
        read = read_judged_battles(pd.DataFrame({n: pd.Series(c) for n, c in table.items()}))
    except ValueError:
        return
    assert len(read.scored) + len(read.quarantine) == 8


def test_ids_of_any_type_are_texts() -> None:
    large = 10**17
    for ids in ([large, large + 1, 2, 3], [[1], [2], {"a": 1}, None], ["v1.0", 0.1, [2], None]):
        read = read_judged_battles(BATTLES.assign(battle_id=ids, question_id=ids))
        assert read.quarantine.empty
        expected = [None if one is None else str(one) for one in ids]
        found = read.scored["question_id"].astype(object)
        assert found.where(found.notna(), None).tolist() == expected
    assert read_judged_battles(BATTLES.assign(question_id=[["a"]] * 4)).n_battles == 4


def test_an_encoding_that_is_not_western_is_told_by_its_letters(tmp_path: Path) -> None:
    path = tmp_path / "cyrillic.csv"
    table = BATTLES.replace({"modèle été": "модель-один", "naïve café": "модель-два"})
    table.to_csv(path, index=False, encoding="cp1251")
    read = read_judged_battles(path)
    pd.testing.assert_frame_equal(read.scored, read_judged_battles(table).scored, check_like=True)
    assert read.notes == ("cyrillic.csv is not UTF-8 and was read as cp1251: look at its names",)


HEADERS: dict[str, pd.DataFrame] = {
    "capitals": BATTLES.rename(columns=str.upper),
    "words": BATTLES.rename(columns=lambda name: f" {name.replace('_', ' ').title()}"),
    "hyphens": BATTLES.rename(columns=lambda name: name.replace("_", "-")),
    "winner": BATTLES.assign(winner=BATTLES["human_outcome"].map(NAMES)).drop(
        columns="human_outcome"
    ),
    "winner's name": BATTLES.assign(winner=["modèle été", "naïve café", None, "tie"]).drop(
        columns="human_outcome"
    ),
    "scores": BATTLES.assign(judge_score_a=[9, 4, 7, 5.5], judge_score_b=[7.5, 4.25, 5, 5]).drop(
        columns="score_difference"
    ),
    "scores in short": BATTLES.assign(score_a=[9, 4, 7, 5.5], score_b=[7.5, 4.25, 5, 5]).drop(
        columns="score_difference"
    ),
}


@pytest.mark.parametrize("name", HEADERS)
def test_columns_are_known_under_other_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    HEADERS[name].to_csv(path, index=False)
    expected = read_judged_battles(BATTLES).scored
    for source in (path, HEADERS[name]):
        pd.testing.assert_frame_equal(read_judged_battles(source).scored, expected, check_like=True)


def test_plain_verdicts_may_name_the_winner() -> None:
    table = BATTLES.drop(columns="score_difference")
    read = read_judged_battles(table.assign(judge_winner=["model_a", "MODEL_B", "tie", "both_bad"]))
    assert read.scored["score_difference"].tolist() == [1, -1, 0, 0]
    assert read.plain.startswith("the file holds plain verdicts")
    named = read_judged_battles(table.assign(judge_winner=[*BATTLES["model_a"][:2], "tie", "tie"]))
    assert named.scored["score_difference"].tolist() == [1, 1, 0, 0]


def test_stated_columns_are_read_and_a_wrong_one_is_named(tmp_path: Path, capsys) -> None:
    path = tmp_path / "odd.csv"
    odd = {"model_a": "left", "human_outcome": "label", "score_difference": "delta"}
    BATTLES.rename(columns=odd).to_csv(path, index=False)
    pd.testing.assert_frame_equal(
        read_judged_battles(path, columns=odd).scored,
        read_judged_battles(BATTLES).scored,
        check_like=True,
    )
    stated = ",".join(f"{ours}={own}" for ours, own in odd.items())
    assert main(["doctor", str(path)]) == 2
    guessed = " ".join(capsys.readouterr().out.split())
    assert f"plain {path} --columns model_a=left,score_difference=delta" in guessed
    assert "label may be votes: if people decided, state human_outcome=label as well" in guessed
    assert main(["doctor", str(path), "--columns", stated]) == 2  # too few votes for a scale
    assert f"plain {path} --columns {stated}" in " ".join(capsys.readouterr().out.split())
    for wrong, word in (("model_a=right", "'right'"), ("votes=label", "'votes'")):
        with pytest.raises(ArgumentError, match=f"no column {word}; it is one of"):
            read_judged_battles(path, columns=dict([wrong.split("=")]))
    assert main(["doctor", str(path), "--columns", "label"]) == 1
    assert "--columns is 'label'; write our name of a column" in told(capsys)


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_what_no_rule_reads_is_refused_or_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "x")
        archive.writestr("b.csv", "x")
    with pytest.raises(ValueError, match=r"two\.zip holds 2 files; unpack it and name one"):
        read_judged_battles(path)
    path = tmp_path / "mixed.csv"  # a comma may stand for thousands where points are decimals
    table = BATTLES.assign(score_difference=["1,500", "0.25", "2.0", "0.5"])
    table.to_csv(path, index=False, sep=";")
    read = read_judged_battles(path)
    assert read.quarantine["detail"].tolist() == ["score_difference is '1,500', expected a number"]
    path.write_text("model_a;model_b;winner;judge_winner\na;b;a\n")
    with pytest.raises(ValueError, match="row 0: 3 fields where the header has 4"):
        read_judged_battles(path)
    path.write_text("model_a,model_b,winner,judge_winner")
    with pytest.raises(ValueError, match=r"mixed\.csv holds a header and no rows"):
        read_judged_battles(path)
    for judge, first in (["j", None, "j", "j"], 1), ([None] * 4, 0):
        with pytest.raises(
            ValueError, match=f"judge is empty in . of 4 rows, the first is row {first}"
        ):
            read_judged_battles(BATTLES.assign(judge=judge))
    numbered = BATTLES.assign(model_a=[*BATTLES["model_a"][:3], 7])
    assert read_judged_battles(numbered).quarantine["detail"].tolist() == [
        "model_a is 7, expected a name"
    ]
    nested = BATTLES.assign(model_a=[*BATTLES["model_a"][:3], {"name": "bee"}])
    with pytest.raises(
        ValueError, match=r"model_a is \{'name': 'bee'\} in row 3; expected the name"
    ):
        read_judged_battles(nested)
    sides = BATTLES.assign(score_a=["9", "four", "7", "5"], score_b=5).drop(
        columns="score_difference"
    )
    assert read_judged_battles(sides).quarantine["detail"].tolist() == [
        "score_a is 'four', score_b is 5, expected a number"
    ]


@given(text=st.text(alphabet='a,;"\r\n', min_size=1, max_size=24))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(text="a,a\ra,a\na")
@example(text='a,a\n"a\na",a,a\n')
def test_rows_are_of_one_length_where_a_reader_of_csv_finds_them_so(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{uuid.uuid4()}.csv"  # an encoding is remembered by name, size and time
    path.write_bytes(text.encode())
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=formats._separator(path)))
    with contextlib.suppress(ValueError):
        formats._require_rectangular(path)
        assert len({len(row) for row in rows if row}) <= 1


def test_text_that_is_utf8_in_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_bytes(LONG.to_csv(index=False).encode() + "b,é,b,1,1\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"mixed\.csv.*byte 0xe9 is not UTF-8.*save it as UTF-8"):
        read_judged_battles(path)
    path = tmp_path / "corpus.csv"  # a corpus has texts that judges read
    path.write_bytes("model_a,model_b,winner\né,b,tie\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"corpus\.csv is not UTF-8, and looks like cp125"):
        read_files("battles", [path])


def test_a_comma_before_three_digits_is_no_decimal_sign(tmp_path: Path) -> None:
    path = tmp_path / "lengths.tsv"
    BATTLES.assign(length_a=["1,234", "12,345", "987", "1,000"], length_b="900").to_csv(
        path, index=False, sep="\t"
    )
    details = read_judged_battles(path).quarantine["detail"].tolist()
    assert [text.split(", expected")[0] for text in details] == [
        f"length_a is '{length}'" for length in ("1,234", "12,345", "1,000")
    ]


def test_models_may_be_called_as_sides_are() -> None:
    table = BATTLES.replace({"bee": "A", "modèle été": "B"}).drop(columns="human_outcome")
    named = table.assign(winner=["A", "A", "B", None])
    assert read_judged_battles(named).scored["human_outcome"].fillna(-1).tolist() == [0, 1, 0, -1]
    with pytest.raises(ValueError, match="unknown are 'b'"):
        read_judged_battles(table.assign(winner=["A", "A", "b", "b"]))


@pytest.mark.parametrize(
    ("table", "columns", "told"),
    [
        (BATTLES.rename(columns={"human_outcome": "winner"}), {"judge_winner": "winner"}, "lacks"),
        (BATTLES, {"model_a": "model_b"}, "expected also model_b"),
        (BATTLES, {"model_a": "model_b", "judge": "model_b"}, "two columns share a name"),
        (BATTLES.set_axis([*"abcd", "a"], axis=1), {}, "two columns share a name"),
        (BATTLES.set_axis(range(5), axis=1), {"model_a": "1"}, "expected also model_b"),
    ],
)
def test_one_column_is_not_read_as_two(table, columns, told):
    told = "expected also human_outcome" if told == "lacks" else told
    with pytest.raises(ArgumentError, match=told):
        read_judged_battles(table, columns=columns)


def test_json_of_other_programs_is_read(tmp_path: Path) -> None:
    expected = read_judged_battles(LONG).scored
    rows = LONG.reset_index(drop=True)
    by_column = {name: column.tolist() for name, column in rows.astype(object).items()}
    separated = lines(rows.replace({"bee": "bee\u2028"})).replace("\\u2028", "\u2028")
    for name, text in (
        ("columns.json", rows.to_json()),
        ("lists.json", json.dumps(by_column).replace("NaN", "null")),
        ("separators.json", separated),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        read = read_judged_battles(tmp_path / name).scored
        pd.testing.assert_frame_equal(read, expected, check_dtype=False, check_like=True)
    judged = tmp_path / "numbers.jsonl"
    judged.write_text(lines(rows.assign(judge=[1, 2] * 100)))
    assert len(read_judged_battles(judged, judge="2").scored) == 100
    packed = tmp_path / "folder.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.mkdir("data")
        archive.writestr("data/some.csv", rows.to_csv(index=False))
    assert len(read_judged_battles(packed).scored) == 200


def test_names_that_differ_in_little_are_told() -> None:
    table = BATTLES.replace({"model_a": {"bee": "Bee "}})
    assert read_judged_battles(table).notes == (
        "models whose names differ only in case, blanks, hyphens, quotes, invisible characters or "
        "the provider's prefix are rated apart: 'Bee' and 'bee'; --same-names joins them",
    )


@pytest.mark.parametrize(
    ("table", "layout", "missing"),
    [
        (
            BATTLES.drop(columns="human_outcome"),
            "battles with scores of a judge",
            "Human scale: votes",
        ),
        (BATTLES.drop(columns="score_difference"), "votes of people without", "Verdicts of a"),
        (pd.DataFrame(columns=LMARENA_55K.columns[0].split(), index=[0]),
         "votes of people without", "Verdicts of a"),
    ],
)  # fmt: skip
def test_half_a_file_is_told_what_it_lacks(table, layout, missing, tmp_path):
    path = tmp_path / "half.csv"
    table.to_csv(path, index=False)
    found = judgeline.doctor(path)
    assert found.layout.startswith(layout)
    assert found.missing[0].startswith(missing)
    assert found.gate
    assert main(["rank", str(path), "--out", str(tmp_path / "out")]) == 1


def test_ledgers_and_hidden_files_beside_battles_are_no_battles(tmp_path: Path) -> None:
    for name in ("battles.csv", "battles.csv.gate.jsonl", "._battles.csv"):
        (tmp_path / name).write_text("{}", "utf-8")
    assert formats.files_of(tmp_path) == [tmp_path / "battles.csv"]
    assert formats.files_of(tmp_path / "battles.csv.gate.jsonl") == [
        tmp_path / "battles.csv.gate.jsonl"
    ]
