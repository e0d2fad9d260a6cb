"""How cells are held to printed values, what an item's line says, and the command around it."""

from importlib import import_module
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from judgeline.cli import main
from papers.command import PaperName
from papers.files import NAME, NUMBER, Column, read_table, require_once, word
from papers.reproduce import NAMES, reproduce
from papers.tables import (
    COLUMNS,
    Cell,
    Made,
    Paper,
    in_print,
    make_tables,
    printed_cells,
    write_table,
)


def only(name: str, *cells: Cell, allowed: float = 0.0) -> Made:
    """One item of the Soft-Elo paper made of given cells."""
    makers = {name: ("a title", "some file", lambda _: cells)}
    return next(make_tables(Paper("soft_elo", makers, lambda *_: None, {"rho": allowed}), None))


def row(made: Made, row_name: str, column: str) -> pd.Series:
    cells = made.cells
    return cells[cells["row"].eq(row_name) & cells["column"].eq(column)].iloc[0]


@pytest.mark.parametrize(
    ("value", "allowed", "within"),
    [  # printed: 0.943
        (0.9434, 0.0, True),
        (0.9436, 0.0, False),
        (0.9426, 0.0, True),
        (0.9526, 0.01, True),
        (0.9536, 0.01, False),
    ],
)
def test_tolerance_is_half_a_printed_digit_and_the_allowance(value, allowed, within) -> None:
    made = only("table1", Cell("DeepSeek-V3.2", "spearman_rho", value), allowed=allowed)
    found = row(made, "DeepSeek-V3.2", "spearman_rho")
    assert (found["printed"], bool(found["within"])) == (0.943, within)
    assert found["difference"] == pytest.approx(value - 0.943)
    assert found["tolerance"] == pytest.approx(0.0005 + allowed)


@pytest.mark.parametrize(
    ("name", "inside", "expected"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", False, "Llama-3.1-70B"),
        ("llama 3.1 70b", False, "Llama-3.1-70B"),
        ("Llama-3.1-70B-FP8", False, "Llama-3.1-70B-FP8"),
        ("Llama-3.1-70B-FP8", True, "Llama-3.1-70B"),
        ("gemma-3-it", False, "Gemma 3"),
        ("gpt-4", True, "gpt-4"),
    ],
)
def test_names_in_print_by_any_spelling(name: str, inside: bool, expected: str) -> None:
    known = ("Llama-3.1", "Llama-3.1-70B", "Gemma 3", "GPT-4o")
    assert in_print(name, known, inside=inside) == expected


def test_folders_without_a_table_are_refused(tmp_path: Path) -> None:
    for name in ("correct-reporting", "trustjudge", "quantitative", "reference-anchored"):
        with pytest.raises(ValueError, match=f"^{tmp_path} holds no "):
            list(reproduce(name, tmp_path))


def test_declared_columns_are_read_alike(tmp_path: Path) -> None:
    columns = {
        "name": NAME,
        "share": Column("0 to 1", lambda _, values: values.between(0, 1), "number"),
        "kind": word("plain", "plain", "odd"),
        "spare": NUMBER._replace(needed=False),
    }
    path = tmp_path / "some.csv"
    path.write_text("name,share,kind\n7,0.5,\n8,1,odd\n")
    table = read_table(path, columns)
    assert table["name"].tolist() == ["7", "8"]
    assert table["kind"].tolist() == ["plain", "odd"]
    assert table["spare"].isna().all()
    assert table["row"].tolist() == [0, 1]
    for text, message in (
        (
            "name,share\na,0\nb,2\nc,3\n",
            "share is 2.0 in row 1 .2 such rows.; expected 0 to 1: corr",
        ),
        ("name,share\na,\n", "share is nan in row 0 "),
        ("name,share\na,inf\n", "share is inf in row 0 "),
        ("name,share\n,1\n", "name is nan in row 0 .*; expected a name"),
        ("name,share,kind\na,1,new\n", "kind is 'new' in row 0 .*; expected plain or odd"),
        ("share\n1\n", "lacks name and has share; add"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"^{path}.*{message}"):
            read_table(path, columns)
    path.write_text("name,share\na,0\nb,0\na,1\n")
    with pytest.raises(ValueError, match=f"^{path}: row 2 .1 such rows. is there already: name a;"):
        require_once(read_table(path, columns), ["name"])


def test_out_that_cannot_be_a_folder_is_refused_first(tmp_path: Path, capsys) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "tables" / "of"):
        assert main(["paper", "soft-elo", "--out", str(out)]) == 1
        said = capsys.readouterr()
        assert f"--out is {out}, but {file} is no folder; name another" in said.err
        assert said.out == ""
    assert main(["paper", "soft-elo", "--out", str(tmp_path / "new" / "tables")]) == 0


def test_upper_bounds_doubtful_values_and_other_sources() -> None:
    bound = ("per-judge mean beta within this distance of its b=200 value", "from b=50")  # 0.05
    for value, within in ((0.01, True), (0.054, True), (0.056, False)):
        found = row(only("fig6", Cell(*bound, value, rule="at most")), *bound)
        assert bool(found["within"]) is within
    doubtful = only("table8", Cell("Mean", "elo_mae_c0.75", 26.9))
    assert row(doubtful, "Mean", "elo_mae_c0.75")["within"] is pd.NA
    assert "doubtful" in row(doubtful, "Mean", "elo_mae_c0.75")["note"]
    apart = only("table8", Cell("Mean", "elo_mae_soft", 17.9, "one judge", "apart"))
    assert row(apart, "Mean", "elo_mae_soft")["within"] is pd.NA
    assert "within tolerance" not in doubtful.line + apart.line
    ours = only("table8", Cell("Mean", "ours", 1.0))
    assert np.isnan(row(ours, "Mean", "ours")["printed"])


def test_line_says_what_is_there_and_what_is_not() -> None:
    made = only(
        "table1", Cell("DeepSeek-V3.2", "kappa", 0.182), Cell("DeepSeek-V3.2", "mean_abs_s", 2.58)
    )
    assert made.line == (
        "soft_elo.table1  a title: from some file; 2 made, 1 of 2 within tolerance, largest "
        "difference +0.5 where 0.005 is allowed (DeepSeek-V3.2, mean_abs_s), "
        "30 printed cells without data"
    )
    assert only("table1").line == "soft_elo.table1  a title: needs some file"
    assert set(only("table1").cells["note"]) == {"needs some file"}
    few = [Cell("DeepSeek-V3.2", f"c{k}", np.nan, f"reason {k % 4}") for k in range(8)]
    assert only("table1", *few).line == (
        "soft_elo.table1  a title: needs some file; no cell made: "
        "reason 0; reason 1; reason 2 and 1 more"
    )


def test_level_of_smoothing_is_never_an_oracle() -> None:
    cells = printed_cells("soft_elo")
    levels = cells["column"].str.contains("_c0.", regex=False)
    assert levels.sum() == 45
    assert cells.loc[levels, "doubtful"].all()


def test_every_printed_item_is_listed_and_every_made_cell_has_its_place() -> None:
    for name in NAMES:
        paper = import_module(f"papers.{name.replace('-', '_')}").PAPER
        cells = printed_cells(paper.file)
        assert {*cells["item"]} <= {item.name for item in paper.items}
        assert not cells.duplicated(["item", "row", "column"]).any()


def test_earlier_table_of_an_item_without_data_is_removed(tmp_path: Path) -> None:
    write_table(only("table1", Cell("DeepSeek-V3.2", "kappa", 0.2)), tmp_path)
    table = pd.read_csv(tmp_path / "soft_elo.table1.csv")
    assert table.columns.tolist() == list(COLUMNS)
    assert len(table) == 32
    write_table(only("table1"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_command_without_data_and_with_a_wrong_folder(tmp_path: Path, capsys) -> None:
    assert get_args(PaperName) == NAMES
    assert main(["paper", "soft-elo"]) == 0
    out, err = capsys.readouterr()
    assert all(": needs annotations" in line for line in out.splitlines())
    assert "items that need files are not made: see docs/papers.md" in err
    assert "judges:" not in err
    for name in NAMES:
        assert main(["paper", name, "--data", str(tmp_path / "none")]) == 1
        assert "is no folder; name the one" in capsys.readouterr().err
    assert main(["paper", "hard-elo"]) == 1
    with pytest.raises(ValueError, match="no paper 'hard-elo'; there are soft-elo, "):
        reproduce("hard-elo")
