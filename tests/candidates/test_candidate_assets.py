"""Candidates as tables, and the checks that guard them, on tables made by hand."""

from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.candidates.assets import (
    candidate_battles_are_sound,
    candidate_files_are_readable,
    candidates_have_enough_battles,
    candidates_meet_all_strengths,
    candidates_speak_all_languages,
    of_asked_judges,
    read_candidates,
)
from assets.partitions import corpus_judge_key
from judgeline.io import empty, typed
from resources.candidates.choosing import anchor_answers, choose_for_all
from resources.candidates.schema import CANDIDATE_DTYPES, REFUSED_DTYPES
from resources.config.catalog import Catalog
from resources.tables.store import open_store

STRENGTHS = pd.Series({"ant": -100.0, "bee": 0.0, "cat": 50.0, "dog": 100.0})
HELDOUT = pd.DataFrame({"model": STRENGTHS.index, "human_rating": STRENGTHS.to_numpy() + 1500})
RATED = {corpus_judge_key("tiny", "careful"): HELDOUT}

NEW = pd.DataFrame({"model": ["new", "new"]})


def meet(chosen: pd.DataFrame, battles: pd.DataFrame, rated=RATED) -> dg.AssetCheckResult:
    return candidates_meet_all_strengths(chosen, battles, rated, Catalog())


@pytest.fixture
def candidate_battles(raw_battles: pd.DataFrame) -> pd.DataFrame:
    """A new model's battles: forty, over twenty questions."""
    answers = anchor_answers(raw_battles).answers
    own = answers.drop_duplicates("question_id").assign(
        model="new", completion="New.", content_hash="c" * 64, metadata="{}"
    )
    rows = typed(own, CANDIDATE_DTYPES)
    return choose_for_all(rows, answers, STRENGTHS, n_battles=40, seed=0)


def refused(*rows: tuple[str | None, str, str]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["file", "reason", "detail"])
    return typed(table, REFUSED_DTYPES)


def test_no_file_set_aside_is_no_failure() -> None:
    assert candidate_files_are_readable(refused()).passed


def test_every_file_set_aside_is_named_once() -> None:
    found = candidate_files_are_readable(
        refused(
            ("a.jsonl", "broken-json", "line 2 is broken; fix it"), (None, "no-text", "no file")
        )
    )
    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.ERROR
    assert found.description == (
        "2 files were set aside. a.jsonl (broken-json): line 2 is broken; fix it. attack control "
        "(no-text): no file."
    )


def test_votes_after_placing_are_told_and_pass() -> None:
    found = candidate_files_are_readable(refused(("a.jsonl", "has-votes-now", "people voted")))
    assert found.passed
    assert "a.jsonl (has-votes-now): people voted" in found.description


def test_chosen_battles_are_sound(
    candidate_battles: pd.DataFrame, raw_battles: pd.DataFrame
) -> None:
    assert candidate_battles_are_sound(candidate_battles, raw_battles).passed
    assert candidates_have_enough_battles(candidate_battles, NEW).passed
    assert meet(candidate_battles, raw_battles).passed
    assert candidates_speak_all_languages(candidate_battles, raw_battles).passed


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("battle_id", "same", "battle_id is unique"),
        ("completion_a", None, "completion_a is known"),
        ("opponent", "emu", "the opponent has votes"),
        ("candidate", "emu", "its models are the candidate and the opponent"),
        ("human_outcome", 1.0, "nobody voted on it"),
    ],
)
def test_unsound_battles_stop_placing(
    candidate_battles: pd.DataFrame,
    raw_battles: pd.DataFrame,
    column: str,
    value: object,
    told: str,
) -> None:
    found = candidate_battles_are_sound(candidate_battles.assign(**{column: value}), raw_battles)
    assert not found.passed
    assert told in found.description


def test_few_battles_warn(candidate_battles: pd.DataFrame) -> None:
    found = candidates_have_enough_battles(candidate_battles.head(19), NEW)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_many_battles_on_few_questions_warn(candidate_battles: pd.DataFrame) -> None:
    """Seven answers against four anchors are 28 battles, and seven draws of what it can do."""
    question = "question-0" + (pd.Series(range(40)) % 7).astype(str)
    found = candidates_have_enough_battles(candidate_battles.assign(question_id=question), NEW)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "at least 20 different questions" in found.description
    assert "new (n_questions=7)" in found.description
    assert "Answer more of the questions" in found.metadata["remedy"].value


def test_a_candidate_without_any_battle_warns(candidate_battles: pd.DataFrame) -> None:
    two = pd.DataFrame({"model": ["new", "unmet"]})
    found = candidates_have_enough_battles(candidate_battles, two)
    assert not found.passed
    assert "unmet (n_battles=0)" in found.description
    assert "no model that a judge has rated answered" in found.metadata["remedy"].value
    assert not candidates_have_enough_battles(candidate_battles.head(0), NEW).passed


def test_opponents_of_one_strength_warn(
    candidate_battles: pd.DataFrame, raw_battles: pd.DataFrame
) -> None:
    of_one = candidate_battles[candidate_battles["opponent"].eq("ant")]
    found = meet(of_one, raw_battles)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_strengths_are_those_that_battles_are_chosen_by(
    candidate_battles: pd.DataFrame, raw_battles: pd.DataFrame
) -> None:
    """What a recorded or a retired judge says of the anchors is no reason to warn, or to pass."""
    of_two = candidate_battles[candidate_battles["opponent"].isin(["ant", "bee"])]
    assert meet(of_two, raw_battles).passed  # half and half, of four bands
    two = HELDOUT[HELDOUT["model"].isin(["ant", "cat"])]  # by whom ant stands alone in its band
    others = {corpus_judge_key("tiny", name): two for name in ("recorded", "retired")}
    assert meet(of_two, raw_battles, {**RATED, **others}).passed
    assert meet(of_two, raw_battles, others).passed  # nobody to ask has ratings: all are equals
    three_to_one = pd.concat([of_two[of_two["opponent"].eq("ant")], of_two.head(4)])
    assert not meet(three_to_one, raw_battles, {**RATED, **others}).passed


def test_opponents_of_unknown_strength_warn(
    candidate_battles: pd.DataFrame, raw_battles: pd.DataFrame
) -> None:
    known = {corpus_judge_key("tiny", "careful"): HELDOUT[HELDOUT["model"].eq("dog")]}
    of_two = candidate_battles[candidate_battles["opponent"].isin(["ant", "bee"])]
    found = meet(of_two, raw_battles, known)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "strength of some opponent" in found.description
    retired = corpus_judge_key("tiny", "retired")  # what it says chooses no battle, and counts not
    assert not meet(of_two, raw_battles, {**known, retired: HELDOUT}).passed
    three = HELDOUT[HELDOUT["model"].ne("ant")]
    mostly = candidate_battles[candidate_battles["opponent"].isin(["ant", "bee"])].copy()
    mostly.loc[mostly.index[:-2], "opponent"] = "ant"
    assert not meet(mostly, raw_battles, {corpus_judge_key("tiny", "careful"): three}).passed


def test_a_missing_language_warns(
    candidate_battles: pd.DataFrame, raw_battles: pd.DataFrame
) -> None:
    found = candidates_speak_all_languages(
        candidate_battles[candidate_battles["language"].eq("en")], raw_battles
    )
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "new" in found.description


def test_no_candidates_pass_every_check(
    candidate_battles: pd.DataFrame, raw_battles: pd.DataFrame
) -> None:
    none = candidate_battles.head(0)
    assert candidate_battles_are_sound(none, raw_battles).passed
    assert candidates_have_enough_battles(none, NEW.head(0)).passed
    assert meet(none, raw_battles, {}).passed
    assert candidates_speak_all_languages(none, raw_battles).passed
    assert empty(CANDIDATE_DTYPES).empty


def test_unknown_languages_are_a_group_of_their_own(raw_battles: pd.DataFrame) -> None:
    silent = raw_battles.assign(language=pd.Series([None] * len(raw_battles), dtype="str"))
    answers = anchor_answers(silent).answers
    assert answers["language"].unique().tolist() == [""]
    own = answers.drop_duplicates("question_id").assign(
        model="new", completion="New.", content_hash="c" * 64, metadata="{}"
    )
    chosen = choose_for_all(typed(own, CANDIDATE_DTYPES), answers, STRENGTHS, n_battles=8, seed=0)
    assert len(chosen) == 8
    assert chosen["language"].isna().all()
    assert candidates_speak_all_languages(chosen, silent).passed


def test_recorded_and_unknown_judges_need_no_battles() -> None:
    tables = dict.fromkeys(["careful", "recorded", "retired"], pd.DataFrame({"n": [np.nan]}))
    assert list(of_asked_judges(tables, Catalog())) == ["careful"]


def test_more_votes_change_no_injected_instruction(home: Path, raw_battles: pd.DataFrame) -> None:
    """The carrier is the one that the table was made with, so that nothing is judged anew."""
    home.mkdir()
    config = home / "corpora.yaml"
    config.write_text(
        "c: {reader: battles, location: x, candidates: {controls: [injected-instruction]}}"
    )
    corpus = Catalog(corpora_file=str(config)).corpus("c")
    tables = open_store(str(home / "tables"))
    first = read_candidates(corpus, raw_battles, tables)[1].candidates
    (home / "tables" / "candidates").mkdir(parents=True)
    first.to_parquet(home / "tables" / "candidates" / "c.parquet", index=False)
    turned = raw_battles.assign(human_outcome=1 - raw_battles["human_outcome"])
    again = read_candidates(corpus, turned, tables)[1].candidates
    assert again["metadata"].unique().tolist() == first["metadata"].unique().tolist()
    assert again["content_hash"].unique().tolist() == first["content_hash"].unique().tolist()
    anew = read_candidates(corpus, turned, open_store(str(home / "elsewhere")))[1].candidates
    assert anew["content_hash"].iloc[0] != first["content_hash"].iloc[0]
