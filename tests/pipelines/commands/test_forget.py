"""`judgeline forget`: what it deletes, what it leaves, and what it refuses."""

import shutil
from pathlib import Path

import dagster as dg
import pandas as pd
import pytest
from conftest import Workshop
from upath import UPath

from judgeline.cli import main
from judgeline.judges.store.verdicts import VerdictStore

pytestmark = pytest.mark.slow


@pytest.fixture
def installed(finished_workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    return finished_workshop.install(monkeypatch)


def answers(home: Path) -> pd.DataFrame:
    """Return the judge and the battle or answer of everything in the store."""
    store = VerdictStore(UPath(home / "verdicts"))
    columns = ["judge", "battle_id", "identity"]
    return pd.concat([store.scan(key, columns).table.to_pandas() for key in store.judge_keys()])


def holding(home: Path, word: str) -> list[str]:
    """Return the tables that a search for a name finds, wherever it stands in them."""
    paths = sorted((home / "tables").rglob("*.parquet"))
    return [path.name for path in paths if word in pd.read_parquet(path).to_csv()]


def test_a_judge_goes_and_the_other_stays(installed: Workshop, capsys) -> None:
    before, files = answers(installed.home), installed.files()
    assert main(["forget", "--judge", "hasty", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert f"{before['judge'].eq('hasty').sum():,} answers" in told
    assert "leaderboard 1" in told
    assert installed.files() == files
    assert main(["forget", "--judge", "hasty"]) == 1
    assert "add --yes" in capsys.readouterr().err
    assert main(["forget", "--judge", "hasty", "--yes"]) == 0
    left = answers(installed.home)
    others = before[before["judge"].eq("careful")].sort_values("identity", ignore_index=True)
    pd.testing.assert_frame_equal(left.sort_values("identity", ignore_index=True), others)
    assert not holding(installed.home, "hasty")
    assert {name: files[name] for name in installed.files()} == installed.files()
    assert {name for name in files if "careful" in name} <= {*installed.files()}
    assert not (installed.home / "reports" / "tiny.html").exists()
    assert installed.instance.get_dynamic_partitions("judge") == ["careful"]
    # nothing of the other is bought again, and what is missing is made
    assert installed.run("careful").exit_code == 0
    assert len(answers(installed.home)) == len(left)


def test_a_model_and_then_its_corpus_go(installed: Workshop, capsys) -> None:
    board = installed.stored("leaderboard", "tiny", "careful")
    model = str(board["model"].iloc[0])
    assert main(["forget", "--model", model, "--yes"]) == 0
    assert {name.split(".")[0] for name in holding(installed.home, model)} <= {"careful", "hasty"}
    predictions = installed.stored("predictions", "tiny", "careful")
    assert len(predictions)  # of others, which name it among what they were placed against
    assert model not in predictions["model"].tolist()
    assert not answers(installed.home)["battle_id"].str.contains(model).any()
    assert len(answers(installed.home))
    assert installed.run().exit_code == 0  # its source still has it
    assert main(["forget", "--corpus", "tiny", "--yes"]) == 0
    assert installed.files() == {}
    assert answers(installed.home).empty
    assert installed.instance.get_dynamic_partitions("corpus") == []
    assert not installed.instance.get_runs(dg.RunsFilter(tags={"dagster/partition": "tiny"}))
    capsys.readouterr()
    assert main(["forget", "--corpus", "tiny"]) == 1
    assert "nothing is stored of corpus 'tiny'" in capsys.readouterr().err


def test_what_another_judge_stands_on_stays_and_records_lose_a_models_rows(
    installed: Workshop, capsys
) -> None:
    """Answers are stored under the slug that asked first, and serve every judge with that key."""
    folder = installed.home / "tables" / "verdicts" / "tiny"
    shutil.copy(folder / "hasty.parquet", folder / "twin.parquet")
    stands = set(pd.read_parquet(folder / "twin.parquet")["identity"].dropna())
    assert main(["forget", "--judge", "hasty", "--yes"]) == 0
    assert stands <= set(answers(installed.home)["identity"])
    predicted = installed.home / "tables" / "predictions" / "tiny" / "careful.parquet"
    before = pd.read_parquet(predicted)
    model = before["model"].iloc[0]
    assert main(["forget", "--model", model[:-2], "--yes"]) == 1  # only the beginning of a name
    assert "did you mean" in capsys.readouterr().err
    assert main(["forget", "--model", model, "--dry-run"]) == 0
    assert "rows of predictions, tiny careful: " in capsys.readouterr().out
    assert main(["forget", "--model", model, "--yes"]) == 0
    left = pd.read_parquet(predicted)
    pd.testing.assert_frame_equal(
        left.reset_index(drop=True), before[before["model"].ne(model)].reset_index(drop=True)
    )


def test_nothing_is_deleted_beside_a_run_or_without_a_name(installed: Workshop, capsys) -> None:
    files = installed.files()
    installed.instance.add_run(dg.DagsterRun("one", status=dg.DagsterRunStatus.STARTED))
    assert main(["forget", "--judge", "careful", "--yes"]) == 1
    assert "has not ended" in capsys.readouterr().err
    assert main(["forget", "--judge", "careful", "--corpus", "tiny"]) == 1
    assert "name one thing to forget" in capsys.readouterr().err
    assert installed.files() == files
