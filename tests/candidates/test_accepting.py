"""Files held against a corpus: which are accepted, which are set aside, and attack controls."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from candidate_worlds import ANCHORS, BATTLES, answers
from catalogs import catalog_of
from upath import UPath

from assets.candidates.accepting import (
    INJECTION,
    NULL_ANSWER,
    Accepted,
    History,
    accept,
    contents,
    keep_carrier,
)
from assets.candidates.assets import candidate_files_are_readable, read_candidates
from assets.candidates.choosing import anchor_answers, rated_models
from resources.candidates.folder import Seen, list_files
from resources.config.options import CandidateOptions
from resources.tables.store import open_store


class Shelf(NamedTuple):
    """A folder of candidates."""

    folder: Path

    def put(self, name: str, *rows: dict[str, Any]) -> None:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def files(self) -> list[Seen]:
        return list_files(UPath(str(self.folder)), now=9e12)

    def accept(self, history=None, battles=BATTLES, shut=(), **options: Any) -> Accepted:
        files = [
            one._replace(state="no-permission") if one.name in shut else one for one in self.files()
        ]
        own = CandidateOptions.model_validate(options)
        return accept(UPath(str(self.folder)), files, battles, own, history=history)

    def contents(self, **options: Any) -> str:
        return contents(self.files(), CandidateOptions.model_validate(options))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def reasons(found: Accepted) -> dict[str, str]:
    return dict(zip(found.refused["file"], found.refused["reason"], strict=True))


def models(found: Accepted) -> list[str]:
    return found.candidates["model"].unique().tolist()


def known(found: Accepted) -> History:
    rows = found.candidates.drop_duplicates("content_hash")
    columns = rows[["content_hash", "model", "file"]].to_numpy().tolist()
    return History({content: (model, file) for content, model, file in columns})


def test_answers_are_matched_by_id_or_by_text(shelf: Shelf) -> None:
    shelf.put("by-id.jsonl", *answers(2), *answers(2))  # the same answer twice is one
    shelf.put("by-text.jsonl", {"instruction": " Question q07\r\n", "completion": "7"})
    shelf.put("gnu.jsonl", *answers(3), {"question_id": "q99", "completion": "?"})
    found = shelf.accept()
    assert found.refused.empty
    # `gnu` has no votes: it is no anchor, and may be placed
    assert found.candidates.groupby("model").size().to_dict() == {
        "by-id": 2,
        "by-text": 1,
        "gnu": 3,
    }
    keyed = found.candidates.set_index(["model", "question_id"])
    assert keyed.loc[("by-id", "q01"), "instruction"] == "Question q01"
    assert keyed.loc[("by-text", "q07"), ["completion", "language"]].tolist() == ["7", "en"]
    (note,) = found.notes
    assert note.startswith("'gnu.jsonl': 1 of 4 answers")
    assert "such as 'q99' in line 4" in note
    assert set(anchor_answers(BATTLES).answers["model"]) == set(ANCHORS)


def voted_on(model: str, n_votes: int) -> pd.DataFrame:
    """The battles, with votes on a model whose texts are another's."""
    more = BATTLES.head(n_votes).assign(
        battle_id=[f"{model}-{k}" for k in range(n_votes)], model_a=model, human_outcome=1.0
    )
    return pd.concat([BATTLES, more], ignore_index=True)


PLACED = History(placed={"new", "ant"})
SILENT = BATTLES.assign(completion_a=pd.Series([None] * len(BATTLES), dtype="str"))
IN_SAMPLE = History(placed={"new"}, rated=rated_models(BATTLES))
FEW, MANY = voted_on("new", 1), voted_on("new", 25)
ODD: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str | None, str]] = {
    "an unknown question": (
        [{"question_id": "q99", "completion": "?"}], {}, "no-known-question", "such as 'q99'"),
    "two answers": (
        [*answers(1), *answers(1, "other")], {}, "two-answers", "'q00' has two, line 1: 'new 0'"),
    "another text": (
        [{**answers(1)[0], "instruction": "What?"}], {}, "other-instruction", "reads 'What?' here"),
    "votes": (answers(2, model="ant"), {}, "has-votes", "'ant' has votes in this corpus"),
    "votes since": (answers(model="ant"), {"history": PLACED}, "has-votes-now", "since it was"),
    "a handful of votes": (answers(model="new"), {"history": PLACED, "battles": FEW}, None, ""),
    "enough votes": (
        answers(model="new"), {"history": PLACED, "battles": MANY}, "has-votes-now", "'new'"),
    "votes that are not in the sample": (
        answers(model="new"), {"history": IN_SAMPLE, "battles": MANY}, None, ""),
    "no texts": (answers(25), {"battles": SILENT}, "no-texts", "publishes them"),
    "no permission": (answers(25), {"shut": ("odd.jsonl",)}, "no-permission", "chmod"),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_a_file_that_does_not_fit_the_corpus_is_set_aside_alone(shelf: Shelf, case: str) -> None:
    rows, given, reason, sentence = ODD[case]
    shelf.put("odd.jsonl", *rows)
    shelf.put("fine.jsonl", *answers())
    found = shelf.accept(**given)
    fine = {"fine.jsonl": "no-texts"} if reason == "no-texts" else {}
    assert reasons(found) == ({"odd.jsonl": reason} if reason else {}) | fine
    assert reason is None or sentence in found.refused["detail"].iloc[-1]
    assert ("fine" in models(found)) is not bool(fine)
    assert reason is not None or "new" in models(found)


def test_of_two_files_of_one_model_only_one_that_was_accepted_before_stays(shelf: Shelf) -> None:
    shelf.put("b.jsonl", *answers(model="new"))
    before = known(shelf.accept())
    shelf.put("a.jsonl", *answers(word="other", model="new"))
    found = shelf.accept()
    assert reasons(found) == {"a.jsonl": "second-file", "b.jsonl": "second-file"}
    assert found.refused["detail"].str.contains("'a.jsonl' and 'b.jsonl'").all()
    assert found.candidates.empty
    found = shelf.accept(before)
    assert reasons(found) == {"a.jsonl": "second-file"}
    assert found.candidates["file"].unique().tolist() == ["b.jsonl"]


def test_the_same_content_under_another_name_changes_nothing(shelf: Shelf) -> None:
    shelf.put("new.jsonl", *answers())
    first, before = shelf.accept(), shelf.contents()
    shelf.put("copy.jsonl", *answers())
    for _ in range(2):
        assert shelf.contents() == before
        pd.testing.assert_frame_equal(shelf.accept(known(first)).candidates, first.candidates)
        (shelf.folder / "new.jsonl").unlink(missing_ok=True)


def test_contents_follow_files_controls_and_settings(shelf: Shelf) -> None:
    assert shelf.contents() == ""
    controls = {"controls": ["null-model"]}
    seen = {"", shelf.contents(**controls)}
    shelf.put("new.jsonl", *answers())
    seen |= {shelf.contents(), shelf.contents(**controls), shelf.contents(half_width=30)}
    assert len(seen) == 5
    assert shelf.contents(budget="1calls") == shelf.contents()
    bound = {"controls": {"null-model": {"bound": 9}}}
    assert shelf.contents(**bound) == shelf.contents(**controls)


# ------------------------------------------------------------------ attack controls

CONTROLS = ["null-model", "injected-instruction"]


def test_controls_answer_as_they_should(shelf: Shelf) -> None:
    rows = shelf.accept(controls=CONTROLS, max_battles=20).candidates
    assert rows.groupby("control").size().to_dict() == dict.fromkeys(CONTROLS, 20)
    by_control = rows.set_index("control")
    assert (by_control["model"] == "control:" + by_control.index).all()
    assert by_control.loc["null-model", "completion"].unique().tolist() == [NULL_ANSWER]
    carried = by_control.loc["injected-instruction"]
    # by shares of votes won: a third against each that comes later, two thirds the other way
    assert json.loads(carried["metadata"].iloc[0]) == {"carrier": "bee"}
    said = "bee says " + carried["question_id"] + INJECTION
    assert carried["completion"].tolist() == said.tolist()


def test_the_null_model_says_the_text_of_a_file(shelf, tmp_path_factory):
    text = tmp_path_factory.mktemp("texts") / "null.txt"
    text.write_text("Output nothing")
    options = {"controls": {"null-model": {"text_file": str(text)}}}
    assert shelf.accept(**options).candidates["completion"].unique().tolist() == ["Output nothing"]
    before = shelf.contents(**options)
    for content, told in ((b"\xff", "is not UTF-8"), (b" ", "holds"), (None, "cannot be read")):
        text.unlink() if content is None else text.write_bytes(content)
        assert shelf.contents(**options) != before
        (fault,) = shelf.accept(**options).refused.to_dict("records")
        assert fault["reason"] == "no-text"
        assert f"null.txt {told}" in fault["detail"]
        assert "correct text_file" in fault["detail"]


def test_a_carrier_is_kept_while_it_is_an_anchor(shelf: Shelf) -> None:
    """Votes that come later would choose another, and have the same attack judged anew."""
    first = shelf.accept(controls=["injected-instruction"]).candidates
    later = BATTLES.assign(human_outcome=BATTLES["human_outcome"].mul(-1).add(1))
    options = CandidateOptions(controls=["injected-instruction"])
    anew = shelf.accept(battles=later, controls=options.controls).candidates
    assert json.loads(anew["metadata"].iloc[0]) == {"carrier": "eel"}
    kept = keep_carrier(options, first, later)
    again = shelf.accept(battles=later, controls=kept.controls).candidates
    pd.testing.assert_frame_equal(again, first)  # the content hash too
    without = later[~later[["model_a", "model_b"]].eq("bee").any(axis=1)]
    for before, battles in ((first, without), (first.head(0), later), (None, later)):
        assert keep_carrier(options, before, battles) == options
    named = CandidateOptions(controls={"injected-instruction": {"carrier": "cat"}})
    assert keep_carrier(named, first, later) == named
    misspelt = shelf.accept(controls={"injected-instruction": {"carrier": "beee"}})
    assert "did you mean 'bee'" in misspelt.refused["detail"].iloc[0]


def test_controls_of_a_corpus_without_texts_or_votes_are_set_aside(shelf: Shelf) -> None:
    unvoted = BATTLES.assign(human_outcome=np.nan)
    for battles, expected in ((SILENT, "no-texts"), (unvoted, "no-carrier")):
        found = shelf.accept(battles=battles, controls=["injected-instruction"])
        assert found.refused["reason"].tolist() == [expected]


def test_more_votes_change_no_injected_instruction(home: Path, raw_battles: pd.DataFrame) -> None:
    """The carrier is the one that the table was made with, so that nothing is judged anew."""
    home.mkdir()
    entry = "{reader: battles, location: x, candidates: {controls: [injected-instruction]}}"
    corpus = catalog_of(home, corpora=f"c: {entry}").corpus("c")
    tables = open_store(str(home / "tables"))
    first = read_candidates(corpus, raw_battles, tables)[1].candidates
    (home / "tables" / "candidates").mkdir(parents=True)
    first.to_parquet(home / "tables" / "candidates" / "c.parquet", index=False)
    turned = raw_battles.assign(human_outcome=1 - raw_battles["human_outcome"])
    again = read_candidates(corpus, turned, tables)[1].candidates
    for column in ("metadata", "content_hash"):
        assert again[column].unique().tolist() == first[column].unique().tolist()
    anew = read_candidates(corpus, turned, open_store(str(home / "elsewhere")))[1].candidates
    assert anew["content_hash"].iloc[0] != first["content_hash"].iloc[0]


# ------------------------------------------------------------------ the check


@pytest.mark.parametrize(
    ("rows", "passed", "description"),
    [
        ([], True, "Every complete file could be read."),
        ([("a.jsonl", "broken-json", "line 2; fix it"), ("", "no-text", "no file")], False,
         "2 files were set aside. a.jsonl (broken-json): line 2; fix it. attack control (no-text): "
         "no file."),
        ([("a.jsonl", "has-votes-now", "people voted")], True,
         "Every complete file could be read. a.jsonl (has-votes-now): people voted."),
    ],
)  # fmt: skip
def test_every_file_set_aside_is_named_once(rows, passed: bool, description: str) -> None:
    table = pd.DataFrame(rows, columns=["file", "reason", "detail"], dtype="str")
    found = candidate_files_are_readable(table)
    assert (found.passed, found.description) == (passed, description)
    assert found.severity.value == "ERROR"
