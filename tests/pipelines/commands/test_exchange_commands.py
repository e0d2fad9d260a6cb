"""`judgeline verdicts import` and `export`, and what a run makes of verdicts without scores."""

import csv
import json
import shlex
from pathlib import Path

import pandas as pd
import pytest
import yaml

from judgeline import cli
from pipelines.commands.verdicts import arena_hard_options, export_verdicts
from resources.config.catalog import Catalog
from resources.config.corpora import ArenaHardOptions

BENCH = {"judge": ["Some Judge", "pair-v2"], "turn": 1, "g1_winner": "model_1"}


@pytest.fixture
def config(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration of one served judge, for which every call would cost."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "prompts").mkdir()
    (folder / "prompts" / "rubric.txt").write_text("Compare {first}, {second}.", encoding="utf-8")
    served = {"display_name": "P", "family": "f", "kind": "openai", "model": "p"}
    (folder / "judges.yaml").write_text(yaml.safe_dump({"paid": served}), encoding="utf-8")
    (folder / "corpora.yaml").write_text("{none: {reader: arena}}", encoding="utf-8")
    monkeypatch.setenv("JUDGELINE_CONFIG", str(folder))
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """40 MT-bench rows among four models; one game failed, one row has no model."""
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    winners = ["model_1", "model_2", "tie", "model_2"]
    rows = [
        {**BENCH, "question_id": n, "model_1": one, "model_2": two, "g2_winner": winners[n % 4]}
        for n, (one, two) in enumerate(pairs * 10)
    ]
    rows[0]["g1_winner"] = "error"
    rows.append({**rows[0], "model_1": None})
    path = tmp_path / "bench.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def run_import(*arguments: object) -> int:
    return cli.main(["verdicts", "import", *map(str, arguments)])


def test_import_says_what_came_in_and_what_to_add(config, bench, tmp_path, capsys) -> None:
    out = tmp_path / "My bench"
    assert run_import(bench, "--format", "mt-bench", "--out", out) == 0
    printed = capsys.readouterr().out
    assert "40 battles, 80 verdicts" in printed
    assert "parse_error" in printed
    assert "missing-model" in printed
    assert "outcomes without rubric scores" in printed
    catalog = _catalog(printed)
    corpus = catalog.corpus("my-bench")
    assert (corpus.reader, corpus.location) == ("battles", str(out / "battles.parquet"))
    assert corpus.judges == ["some-judge"]
    assert catalog.judge("some-judge").kind == "recorded"
    assert pd.read_csv(out / "quarantine.csv")["reason"].tolist() == ["missing-model"]
    assert pd.read_parquet(out / "verdicts.parquet")["status"].value_counts().to_dict() == {
        "ok": 79,
        "parse_error": 1,
    }


def test_what_is_there_is_replaced_on_request_only(config, bench, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert run_import(bench, "--format", "mt-bench", "--out", out) == 0
    before = (out / "verdicts.parquet").read_bytes()
    assert run_import(bench, "--format", "mt-bench", "--out", out) == 1
    assert "add --force" in capsys.readouterr().err
    assert (out / "verdicts.parquet").read_bytes() == before
    assert run_import(bench, "--format", "mt-bench", "--out", out, "--force") == 0


def test_recorded_verdicts_take_no_name_of_a_judge_that_costs(config, bench, tmp_path, capsys):
    bench.write_text(
        bench.read_text(encoding="utf-8").replace("Some Judge", "Paid"), encoding="utf-8"
    )
    assert run_import(bench, "--format", "mt-bench", "--out", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert "judge paid is called paid-recorded here" in printed
    assert set(pd.read_parquet(tmp_path / "out" / "verdicts.parquet")["judge"]) == {"paid-recorded"}


def test_an_import_takes_nothing_of_an_example_of_its_name(config, bench, tmp_path, capsys) -> None:
    """The example's filters and sample size would leave out battles that nobody meant to."""
    text = bench.read_text(encoding="utf-8").replace("Some Judge", "gpt-4o-mini")
    bench.write_text(text, encoding="utf-8")
    out = tmp_path / "lmarena-100k"
    assert run_import(bench, "--format", "mt-bench", "--out", out) == 0
    catalog = _catalog(capsys.readouterr().out)
    corpus = catalog.corpus("lmarena-100k-recorded")
    assert (corpus.sample_size, corpus.filters.single_turn) == (None, False)
    assert catalog.judge("gpt-4o-mini-recorded").kind == "recorded"
    assert run_import(bench, "--format", "mt-bench", "--out", out, "--force") == 0
    again = capsys.readouterr().out.split("ratings against a reference):")[1].split()
    assert again == ["judgeline", "run", "--corpus", "lmarena-100k-recorded"]


def test_a_new_name_is_not_that_of_another_judge_of_the_file(config, bench, tmp_path, capsys):
    text = bench.read_text(encoding="utf-8").replace("Some Judge", "Paid")
    others = [
        text.replace("Paid", name) for name in ("Paid recorded", "paid-recorded-2", "Another")
    ]
    bench.write_text("\n".join([text, *others]), encoding="utf-8")
    assert run_import(bench, "--format", "mt-bench", "--out", tmp_path / "out") == 0
    assert "judge paid is called paid-recorded-3 here" in capsys.readouterr().out
    kept = pd.read_parquet(tmp_path / "out" / "verdicts.parquet")["judge"].value_counts()
    assert kept.to_dict() == dict.fromkeys(
        ["paid-recorded-3", "paid-recorded", "paid-recorded-2", "another"], 80
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.jsonl", "--format", "mt-bench"], "no file at nowhere.jsonl"),
        (["BENCH", "--format", "arena-hard", "--baseline", "x"], "Reader mt-bench might fit"),
        (["BENCH", "--format", "arena-hard"], "does not name the model it compares with"),
        (["BENCH", "--format", "mt-bench", "--baseline", "x"], "belongs to the format arena-hard"),
        (["EMPTY", "--format", "mt-bench"], "is empty"),
        (["NOBODY", "--format", "mt-bench"], "no row could be read (1 missing-model)"),
    ],
)
def test_files_that_cannot_be_read_leave_nothing(config, bench, tmp_path, capsys, arguments, told):
    (tmp_path / "empty").touch()
    nobody = bench.read_text(encoding="utf-8").splitlines()[-1]
    (tmp_path / "nobody").write_text(nobody, encoding="utf-8")
    places = {"BENCH": bench, "EMPTY": tmp_path / "empty", "NOBODY": tmp_path / "nobody"}
    named = [places.get(one, one) for one in arguments]
    assert run_import(*named, "--out", tmp_path / "out") == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_baselines_are_named_once_or_by_category() -> None:
    assert arena_hard_options("mt-bench", [], 1) is None
    one = ArenaHardOptions(baseline="a", baseline_first_in=2)
    assert arena_hard_options("arena-hard", ["a"], 2) == one
    by_category = arena_hard_options("arena-hard", ["x=a", "y=b=c"], 1)
    assert by_category == ArenaHardOptions(baseline={"x": "a", "y": "b=c"})
    with pytest.raises(ValueError, match="belongs to the format arena-hard"):
        arena_hard_options("mt-bench", ["a"], 1)
    with pytest.raises(ValueError, match="'b' is one of several"):
        arena_hard_options("arena-hard", ["x=a", "b"], 1)


def _catalog(printed: str) -> Catalog:
    """Type what the import prints, but for the run."""
    *adding, run = printed.split("ratings against a reference):")[1].strip().split(" && \\\n")
    assert run.startswith("judgeline run --corpus ")
    for command in adding:
        faster = ["--set", "rating.n_resamples=0"] * ("corpora add" in command)
        assert cli.main([*shlex.split(command)[1:], *faster]) == 0
    return Catalog()


def test_imported_verdicts_without_scores_are_run_as_far_as_they_go_and_come_out_as_they_came(
    config, bench, tmp_path, capsys, workshop, monkeypatch
) -> None:
    run_import(bench, "--format", "mt-bench", "--out", tmp_path / "out")
    catalog = _catalog(capsys.readouterr().out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(workshop), "catalog", property(lambda _: catalog))
        outcome = workshop.run(corpus="out")
    assert outcome.exit_code == 0
    assert outcome.errors == []
    assert "recorded preferences without rubric scores" in workshop.printed
    assert not any(check.is_gate for check in outcome.failed_checks)
    assert len(workshop.stored("verdicts", "out", "some-judge")) == 80
    assert len(workshop.stored("choice_verdicts", "out", "some-judge")) == 80
    assert workshop.stored("scored_battles", "out", "some-judge") is None
    assert workshop.stored("leaderboard", "out", "some-judge") is None
    monkeypatch.setenv("JUDGELINE_TABLES", workshop.tables.base_uri)
    for command in ("leaderboard", "why a", "plan"):  # the run that was is not told again
        asked = [*command.split(), "--corpus", "out", "--judge", "some-judge"]
        assert cli.main(asked) == 1
        told = capsys.readouterr().err
        assert f"the column human_outcome of {tmp_path / 'out' / 'battles.parquet'}" in told
        assert "run: judgeline" not in told

    out = tmp_path / "again.csv"
    account = export_verdicts("out", "some-judge", out)
    assert (account.n_battles, account.n_written) == (40, 40)
    shares = {"model_1": 0.0, "tie": 0.5, "model_2": 1.0}  # 0 is a win of A
    with out.open(encoding="utf-8", newline="") as lines:
        told = {
            row["original_question_id_hash"]: row["judge_pref"] for row in csv.DictReader(lines)
        }
    for line in bench.read_text(encoding="utf-8").splitlines()[1:-1]:
        row = json.loads(line)
        both = (shares[row["g1_winner"]] + shares[row["g2_winner"]]) / 2
        assert float(told[str(row["question_id"])]) == both
    assert told["0"] == ""  # of which an order failed


# Export from a run of a judge with scores


def run_export(*arguments: object) -> int:
    return cli.main(["verdicts", "export", *map(str, arguments)])


def test_a_judged_corpus_comes_back(finished, config, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("JUDGELINE_HOME", str(finished.home))
    out = tmp_path / "file.csv"
    asked = ["--corpus", "tiny", "--judge", "careful", "--out", out]
    assert run_export(*asked) == 0
    printed = capsys.readouterr().out
    assert "300 of 300 judged battles written" in printed
    assert run_export(*asked) == 1
    assert "add --force" in capsys.readouterr().err
    assert run_export(*asked, "--force") == 0
    again = tmp_path / "again"
    assert run_import(out, "--format", "soft-elo", "--out", again) == 0
    back = pd.read_parquet(again / "battles.parquet")
    quarantined = pd.read_csv(again / "quarantine.csv")["reason"].tolist()
    assert set(quarantined) <= {"duplicate-battle"}
    assert len(back) + len(quarantined) == 300
    if quarantined:
        assert f"{len(quarantined)} rows that share question and models" in printed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--corpus", "tyni", "--judge", "paid"], "unknown corpus 'tyni'"),
        (["--corpus", "none", "--judge", "pad"], "did you mean 'paid'"),
        (["--corpus", "none", "--judge", "paid"], "make them first"),
        (["--corpus", "../x", "--judge", "paid"], "unsafe partition key"),
    ],
)
def test_an_export_of_nothing_says_what_to_do(config, tmp_path, capsys, arguments, told) -> None:
    assert run_export(*arguments, "--out", tmp_path / "file") == 1
    assert told in capsys.readouterr().err
    assert list(tmp_path.glob("file*")) == []
