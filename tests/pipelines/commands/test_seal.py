"""Seals: recomputed from their inputs, every changed byte found, scored once by later votes."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from test_rank import simulated_battles

from judgeline.cli import main
from judgeline.intervals import evidence_against
from judgeline.sealing import (
    _releases,
    _text,
    changed_inputs,
    digest_of,
    input_digests,
    read_seal,
    verify,
)
from judgeline.suggest import QualityGateError

NEW = ["model-03", "model-08"]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with battles, their votes, and a seal made before two models had votes."""
    folder = tmp_path_factory.mktemp("sealed")
    battles = simulated_battles()
    battles.to_csv(folder / "votes.csv", index=False)
    hidden = battles["model_a"].isin(NEW) | battles["model_b"].isin(NEW)
    before = battles.assign(human_outcome=battles["human_outcome"].mask(hidden))
    before.to_csv(folder / "battles.csv", index=False)
    out = ["--out", str(folder / "a.seal.json"), "--n-resamples", "0"]
    assert main(["seal", str(folder / "battles.csv"), *out]) == 0
    return folder


@pytest.fixture
def folder(sealed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed, tmp_path / "copy"))


def test_a_seal_holds_rounded_numbers_and_what_made_them(sealed) -> None:
    document = read_seal(sealed / "a.seal.json")
    assert [row["model"] for row in document["predictions"]] == NEW
    numbers = [v for row in document["board"] for v in row.values() if isinstance(v, float)]
    assert all(number == round(number, 1) for number in numbers)
    assert document["inputs"] == input_digests(sealed / "battles.csv")
    assert document["source"] == "battles.csv"
    assert str(sealed) not in json.dumps(document)
    assert (document["settings"]["n_resamples"], document["settings"]["miscoverage"]) == (0, 0.1)


def test_a_seal_is_recomputed_and_never_replaced(folder, capsys) -> None:
    path = folder / "a.seal.json"
    digest = read_seal(path)["digest"]
    assert main(["verify", str(path), "--expect", digest]) == 0
    shown = capsys.readouterr().out
    assert "Verified: the board: 12 models, recomputed to 0.1 Elo." in shown
    assert "Not verified: who voted and what the judge was" in shown
    assert "--expect" not in shown
    assert main(["verify", str(path), "--expect", "0" * 64]) == 2
    assert f"Differs: its digest is {digest}, and 000" in capsys.readouterr().out
    assert main(["seal", str(folder / "battles.csv"), "--out", str(path)]) == 1
    assert "a seal is never replaced" in capsys.readouterr().err


def test_every_changed_byte_of_the_inputs_is_found(folder) -> None:
    document, rng = read_seal(folder / "a.seal.json"), np.random.default_rng(8)
    file = folder / "battles.csv"
    whole = np.frombuffer(file.read_bytes(), np.uint8)
    places = rng.integers(whole.size, size=1000)
    changed = (whole[places] + rng.integers(1, 256, size=1000)) % 256
    found = 0
    for place, byte in zip(places, changed, strict=True):
        mutant = whole.copy()
        mutant[place] = byte
        file.write_bytes(mutant.tobytes())
        found += bool(changed_inputs(document["inputs"], file))
    assert found == 1000
    file.write_bytes(whole.tobytes())
    assert changed_inputs(document["inputs"], file) == []


def test_every_changed_byte_of_a_seal_is_found(folder) -> None:
    path, rng = folder / "a.seal.json", np.random.default_rng(9)
    whole = path.read_bytes()
    for place in rng.integers(len(whole), size=200):
        other = (whole[place] + int(rng.integers(1, 256))) % 256
        path.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
        with pytest.raises(QualityGateError, match="was changed since it was sealed"):
            read_seal(path)


@pytest.mark.slow
def test_a_seal_that_is_forged_whole_differs_from_its_board_or_its_published_digest(folder) -> None:
    path = folder / "a.seal.json"
    document = read_seal(path)
    published = document["digest"]
    document["board"][4]["rating"] += 0.2
    document["digest"] = digest_of(document)
    path.write_text(_text(document))
    found = verify(path, expect=published)
    assert found.problems[0].endswith(f"and {published} was expected")
    assert found.problems[1].startswith("model-04: rating is sealed as ")
    shutil.copy(folder / "votes.csv", folder / "battles.csv")
    assert "input battles.csv is not what was sealed" in verify(path).problems


def errors(capsys) -> str:
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("command", [["verify"], ["score", "--votes", "votes.csv"]])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.seal.jsn", "no file at a.seal.jsn; did you mean a.seal.json?"),
        ("gone/a.seal.json", "no folder at gone; make it, or name another"),
        ("folder", "folder is a folder; name a file"),
        ("a.seal.json/b", "lies below a file"),
    ],
)
def test_a_seal_that_is_not_there_is_named_with_the_remedy(
    folder, monkeypatch, capsys, command, name, told
) -> None:
    monkeypatch.chdir(folder)
    Path("folder").mkdir()
    assert main([*command, name]) == 1
    said = errors(capsys)
    assert told in said
    assert "Errno" not in said


@pytest.mark.parametrize(
    "change", [lambda text: text.replace(b"\n", b"\r\n"), lambda text: b"\xef\xbb\xbf" + text]
)
def test_other_ends_of_lines_are_told_from_other_contents(folder, capsys, change) -> None:
    path = folder / "a.seal.json"
    path.write_bytes(change(path.read_bytes()))
    assert main(["verify", str(path)]) == 2
    assert "other ends of lines or a byte order mark" in errors(capsys)
    path.write_bytes(path.read_bytes().replace(b"model-01", b"model-99"))
    assert main(["verify", str(path)]) == 2
    assert "was changed since it was sealed" in errors(capsys)


def test_battles_that_were_moved_are_named_by_an_option(folder, capsys) -> None:
    path = folder / "a.seal.json"
    (folder / "battles.csv").rename(folder / "moved.csv")
    assert main(["verify", str(path)]) == 1
    assert "battles.csv, where they lay beside the seal: name them with --file" in errors(capsys)
    assert main(["verify", str(path), "--file", str(folder / "moved.csv")]) == 0


def test_a_seal_named_twice_is_read_and_counts_once_and_other_models_are_refused(
    folder, monkeypatch, capsys
) -> None:
    path, votes, read = str(folder / "a.seal.json"), folder / "votes.csv", []
    monkeypatch.setattr(
        "judgeline.sealing.read_seal", lambda one: read.append(one) or read_seal(one)
    )
    assert main(["score", path, "--votes", str(folder / "battles.csv")]) == 0
    assert len(read) == 1
    assert main(["score", path, path, "--votes", str(folder / "battles.csv")]) == 0
    assert capsys.readouterr().out.count("2 predictions of these seals wait") == 2
    votes.write_text(votes.read_text("utf-8").replace("model-", "other-"), "utf-8")
    assert main(["score", path, "--votes", str(votes)]) == 1
    assert "no model of the seal, such as model-" in errors(capsys)


@pytest.mark.slow
def test_predictions_are_scored_once(folder, capsys) -> None:
    path, record = folder / "a.seal.json", folder / "predictions.jsonl"
    assert main(["score", str(path), "--votes", str(folder / "battles.csv")]) == 0
    shown = capsys.readouterr().out
    assert "No prediction was scored yet." in shown
    assert "2 predictions of these seals wait for votes, about as many as nine in" in shown
    assert "Complete releases in evidence: 0;" in shown
    assert main(["score", str(path), "--votes", str(folder / "votes.csv")]) == 0
    shown = capsys.readouterr().out
    entries = [json.loads(line) for line in record.read_text().splitlines()]
    assert [entry["model"] for entry in entries] == NEW
    held = [entry["covered"] for entry in entries]
    evidence = evidence_against([1 - np.mean(held)], [0.1])[-1]
    assert f"{sum(held)} of 2 held; evidence against 90 %: {evidence:.2g}." in shown
    stated = {row["model"]: row for row in read_seal(path)["predictions"]}
    for entry in entries:
        row = stated[entry["model"]]
        as_then = entry["human_rating"] + entry["origin_shift"]
        assert entry["covered"] == (row["lower"] <= as_then <= row["upper"])
    assert main(["score", str(path), "--votes", str(folder / "votes.csv")]) == 0
    assert len(record.read_text().splitlines()) == 2
    assert main(["score", str(path), "--votes", str(folder / "gone.csv")]) == 1
    assert "gone.csv; did you mean" in " ".join(capsys.readouterr().err.split())
    record.write_text(record.read_text().replace("0.1", '"0.1"', 1))
    assert main(["score", str(path), "--votes", str(folder / "votes.csv")]) == 1
    assert "line 1: " in capsys.readouterr().err
    record.write_text(record.read_text()[:-9])
    assert main(["score", str(path), "--votes", str(folder / "votes.csv")]) == 1


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"format": 2}, "format"),
        ({"format": 2, "settings": None}, "format, settings"),
        ({"code": "2.0", "board": None}, "code, board"),
        ({"settings": {"new_setting": 1}}, "new_setting"),
        ({"reading": {"new_reading": 1}}, "new_reading"),
        ({"reading": None, "inputs": None}, "reading, inputs"),
    ],
)
def test_a_seal_of_another_version_is_told(folder, capsys, changed, named) -> None:
    path = folder / "a.seal.json"
    document = {**json.loads(path.read_text()), **changed}
    document["digest"] = digest_of(document)
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    for command in (["verify"], ["score", "--votes", str(folder / "votes.csv")]):
        assert main([command[0], str(path), *command[1:]]) == 1
        told = " ".join(capsys.readouterr().err.split())
        assert f"in another form ({named}): read it by that version" in told


def test_what_is_no_seal_is_told(folder, capsys) -> None:
    nested = folder / "nested.seal.json"
    nested.write_text("[" * 100_000)
    for one in (nested, folder / "battles.csv"):
        assert main(["verify", str(one)]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "restore it byte by byte" in told


def test_a_seal_stays_out_of_the_folder_that_it_seals(folder, capsys) -> None:
    out = folder / "inside" / "b.seal.json"
    assert main(["seal", str(folder), "--out", str(out)]) == 1
    assert "name a place outside of it with --out" in " ".join(capsys.readouterr().err.split())
    assert not out.exists()


def entry(seal: str, sealed: str, scored: str, covered: bool, n: int = 1) -> dict:
    return {
        "seal": seal, "sealed_at": sealed, "scored_at": scored, "covered": covered,
        "n_sealed": n, "miscoverage": 0.1, "model": "m",
    }  # fmt: skip


def test_seals_made_before_any_was_scored_are_one_release() -> None:
    one, two = entry("a", "01", "05", False), entry("b", "03", "05", True)
    assert _releases([one, two]) == ([0.5], [0.1])
    assert _releases([one, two, entry("c", "07", "09", True)])[0] == [0.5, 0.0]
    late = {**two, "scored_at": "06"}  # its release was complete, and its evidence read
    assert _releases([one, late]) == ([1.0], [0.1])
    assert _releases([one, late, entry("c", "07", "09", True)])[0] == [1.0, 0.0]
    assert _releases([one, {**late, "sealed_at": "06"}])[0] == [1.0, 0.0]
    waits = entry("b", "03", "05", True, n=2)
    assert _releases([one, waits, entry("c", "07", "09", True)])[0] == [0.0]
