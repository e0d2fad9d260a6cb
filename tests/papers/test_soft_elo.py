"""Tables of the Soft-Elo paper: against the reference program's numbers, scikit-learn and twins."""

import csv
from pathlib import Path

import pandas as pd
import pytest

from judgeline.cli import main
from judgeline.papers import reproduce

Cells = dict[tuple[str, str, str], float]


def cells_of(name: str, data: Path) -> Cells:
    """Every cell that was made, by item, row and column."""
    made = pd.concat([table.cells for table in reproduce(name, data)])
    made = made[made["value"].notna()]
    assert not made.duplicated(["item", "row", "column"]).any()
    return made.set_index(["item", "row", "column"])["value"].to_dict()


@pytest.fixture(scope="module")
def sample_cells(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Cells:
    folder = tmp_path_factory.mktemp("sample")
    (folder / sample.name).symlink_to(sample)
    return cells_of("soft-elo", folder)


def test_errors_of_the_sample_are_those_of_the_reference_program(sample_cells, expected_dir):
    """It penalises half as much, which moves errors by less than 0.05 Elo."""
    with (expected_dir / "softelo_sample_summary.csv").open() as file:
        hard, soft = csv.DictReader(file)
    found = {
        column: value
        for (item, _, column), value in sample_cells.items()
        if item == "soft_elo.table2"
    }
    assert found["elo_mae_hard"] == pytest.approx(float(hard["mae"]), abs=0.05)
    assert found["elo_mae_soft"] == pytest.approx(float(soft["mae"]), abs=0.05)
    assert found["beta_star"] == pytest.approx(float(soft["mean_beta"]), abs=1e-5)
    change = float(soft["spearman_rho"]) - float(hard["spearman_rho"])
    assert found["delta_spearman_soft_minus_hard"] == pytest.approx(change, abs=1e-12)


def test_command_writes_a_csv_per_table(sample: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert main(["paper", "soft-elo", "--data", str(sample.parent), "--out", str(out)]) == 0
    assert "soft_elo.table1" in capsys.readouterr().out
    table = pd.read_csv(out / "soft_elo.table1.csv")
    assert table.columns.tolist() == [
        "item",
        "row",
        "column",
        "value",
        "printed",
        "difference",
        "tolerance",
        "within",
        "note",
    ]
