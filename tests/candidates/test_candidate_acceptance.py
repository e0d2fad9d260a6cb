"""Files held against a corpus: what is accepted, what is set aside, and battles of what was."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from upath import UPath

from judgeline.io import BATTLE_DTYPES, typed
from resources.candidates.accepting import Accepted, History, accept, contents
from resources.candidates.choosing import (
    anchor_answers,
    anchor_strengths,
    battles_per_question,
    choose_for_all,
    fingerprint,
    needs_of,
    questions_to_answer,
    rated_models,
)
from resources.candidates.controls import INJECTION, NULL_ANSWER, keep_carrier
from resources.candidates.folder import list_files
from resources.config.corpora import RatingOptions
from resources.config.options import CandidateOptions

ANCHORS = ("ant", "bee", "cat", "dog", "eel", "fox")
N_QUESTIONS = 30


def corpus_battles() -> pd.DataFrame:
    """Every pair of six anchors on every question, ant the weakest; gnu met some without votes."""
    rows = []
    for q in range(N_QUESTIONS):
        for i, a in enumerate(ANCHORS):
            rows += [(q, a, b, [0.0, 0.0, 1.0][q % 3]) for b in ANCHORS[i + 1 :]]
        rows.append((q, "gnu", "ant", np.nan))
    table = pd.DataFrame(rows, columns=["q", "model_a", "model_b", "human_outcome"])
    question = table["q"].map("q{:02d}".format)
    return typed(
        table.assign(
            battle_id=question + ":" + table["model_a"] + ":" + table["model_b"],
            question_id=question,
            cluster_id=question,
            instruction="Question " + question,
            completion_a=table["model_a"] + " says " + question,
            completion_b=table["model_b"] + " says " + question,
            language=table["q"].map(lambda q: ["en", "en", "fr"][q % 3]),
            n_turns=1,
        ),
        BATTLE_DTYPES,
    )


BATTLES = corpus_battles()


@dataclass
class Shelf:
    """A folder of candidates."""

    folder: Path

    def put(self, name: str, *rows: dict[str, Any]) -> None:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    def accept(
        self,
        history: History | None = None,
        battles: pd.DataFrame = BATTLES,
        **options: Any,
    ) -> Accepted:
        folder = UPath(str(self.folder))
        own = CandidateOptions.model_validate(options)
        return accept(folder, list_files(folder, now=9e12), battles, own, history=history)

    def contents(self, **options: Any) -> str:
        files = list_files(UPath(str(self.folder)), now=9e12)
        return contents(files, CandidateOptions.model_validate(options))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def answers(n: int = N_QUESTIONS, word: str = "new", **columns: Any) -> list[dict[str, Any]]:
    return [{"question_id": f"q{q:02d}", "completion": f"{word} {q}", **columns} for q in range(n)]


def reasons(found: Accepted) -> dict[str, str]:
    return dict(zip(found.refused["file"], found.refused["reason"], strict=True))


def test_answers_are_matched_by_id_or_by_text(shelf: Shelf) -> None:
    shelf.put("by-id.jsonl", *answers(2))
    shelf.put("by-text.jsonl", {"instruction": " Question q07\r\n", "completion": "7"})
    found = shelf.accept()
    assert found.refused.empty
    keyed = found.candidates.set_index(["model", "question_id"])
    assert keyed.loc[("by-id", "q01"), "instruction"] == "Question q01"
    assert keyed.loc[("by-text", "q07"), ["completion", "language"]].tolist() == ["7", "en"]


def test_answers_to_unknown_questions_are_counted_and_said(shelf: Shelf) -> None:
    shelf.put("some.jsonl", *answers(3), {"question_id": "q99", "completion": "?"})
    found = shelf.accept()
    assert len(found.candidates) == 3
    assert found.notes == [
        "'some.jsonl': 1 of 4 answers are to questions that no anchor answered, such as 'q99' in "
        "line 4; they are left out"
    ]


@pytest.mark.parametrize(
    ("rows", "reason", "sentence"),
    [
        ([{"question_id": "q99", "completion": "?"}], "no-known-question", "the first is 'q99'"),
        ([*answers(1), *answers(1, "other")], "two-answers", "line 1 answers question 'q00'"),
        ([{**answers(1)[0], "instruction": "What?"}], "other-instruction", "reads 'What?' here"),
        (answers(2, model="ant"), "has-votes", "which has votes in this corpus"),
    ],
)
def test_what_does_not_fit_the_corpus_is_set_aside(
    shelf: Shelf, rows: list[dict[str, Any]], reason: str, sentence: str
) -> None:
    shelf.put("odd.jsonl", *rows)
    shelf.put("fine.jsonl", *answers())
    found = shelf.accept()
    assert reasons(found) == {"odd.jsonl": reason}
    assert sentence in found.refused["detail"].iloc[0]
    assert found.candidates["model"].unique().tolist() == ["fine"]


def test_the_same_answer_twice_is_one(shelf: Shelf) -> None:
    shelf.put("twice.jsonl", *answers(2), *answers(2))
    assert len(shelf.accept().candidates) == 2


def test_a_model_without_votes_is_no_anchor_and_may_be_placed(shelf: Shelf) -> None:
    shelf.put("gnu.jsonl", *answers(2))
    assert shelf.accept().candidates["model"].unique().tolist() == ["gnu"]
    assert set(anchor_answers(BATTLES).answers["model"]) == set(ANCHORS)


def test_two_files_of_one_model_are_both_named(shelf: Shelf) -> None:
    shelf.put("a.jsonl", *answers(model="new"))
    shelf.put("b.jsonl", *answers(word="other", model="new"))
    found = shelf.accept()
    assert reasons(found) == {"a.jsonl": "second-file", "b.jsonl": "second-file"}
    assert found.refused["detail"].str.contains("'a.jsonl' and 'b.jsonl'").all()
    assert found.candidates.empty


def _known(found: Accepted) -> History:
    rows = found.candidates.drop_duplicates("content_hash")
    columns = (rows[c] for c in ("content_hash", "model", "file"))
    return History({h: (m, f) for h, m, f in zip(*columns, strict=True)})


def test_the_file_that_was_accepted_before_stays(shelf: Shelf) -> None:
    shelf.put("b.jsonl", *answers(model="new"))
    before = _known(shelf.accept())
    shelf.put("a.jsonl", *answers(word="other", model="new"))
    found = shelf.accept(before)
    assert reasons(found) == {"a.jsonl": "second-file"}
    assert found.candidates["file"].unique().tolist() == ["b.jsonl"]


def test_the_same_content_under_another_name_changes_nothing(shelf: Shelf) -> None:
    shelf.put("new.jsonl", *answers())
    first, before = shelf.accept(), shelf.contents()
    shelf.put("copy.jsonl", *answers())
    assert shelf.contents() == before
    pd.testing.assert_frame_equal(shelf.accept(_known(first)).candidates, first.candidates)
    (shelf.folder / "new.jsonl").unlink()
    assert shelf.contents() == before
    pd.testing.assert_frame_equal(shelf.accept(_known(first)).candidates, first.candidates)


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


def test_votes_that_came_after_placing_are_no_failure(shelf: Shelf) -> None:
    shelf.put("ant.jsonl", *answers())
    assert reasons(shelf.accept(History(placed={"ant"}))) == {"ant.jsonl": "has-votes-now"}


def voted_on(model: str, n_votes: int) -> pd.DataFrame:
    """The battles, with votes on a model whose texts are another's."""
    more = BATTLES.head(n_votes).assign(
        battle_id=[f"{model}-{k}" for k in range(n_votes)], model_a=model, human_outcome=1.0
    )
    return pd.concat([BATTLES, more], ignore_index=True)


@pytest.mark.parametrize(("n_votes", "refused"), [(1, {}), (25, {"new.jsonl": "has-votes-now"})])
def test_a_handful_of_votes_ends_no_candidacy(
    shelf: Shelf, n_votes: int, refused: dict[str, str]
) -> None:
    shelf.put("new.jsonl", *answers(model="new"))
    found = shelf.accept(History(placed={"new"}), battles=voted_on("new", n_votes))
    assert reasons(found) == refused


def test_votes_that_the_sample_does_not_hold_end_no_candidacy(shelf: Shelf) -> None:
    shelf.put("new.jsonl", *answers(model="new"))
    history = History(placed={"new"}, rated=rated_models(BATTLES))
    found = shelf.accept(history, battles=voted_on("new", 25))
    assert reasons(found) == {}
    assert found.candidates["model"].unique().tolist() == ["new"]


def test_a_corpus_without_texts_takes_no_candidates(shelf: Shelf) -> None:
    silent = BATTLES.assign(completion_a=pd.Series([None] * len(BATTLES), dtype="str"))
    shelf.put("new.jsonl", *answers())
    found = shelf.accept(battles=silent, controls=["null-model"])
    assert found.refused["reason"].tolist() == ["no-texts", "no-texts"]


def test_conversations_are_no_questions() -> None:
    longer = BATTLES.assign(n_turns=BATTLES["question_id"].eq("q03").astype("Int64") + 1)
    assert "q03" not in set(anchor_answers(longer).answers["question_id"])


def test_controls_answer_as_they_should(shelf: Shelf) -> None:
    names = ["null-model", "injected-instruction", "copy-of-opponent"]
    rows = shelf.accept(controls=names, max_battles=20).candidates
    assert rows.groupby("control").size().to_dict() == dict.fromkeys(names, 20)
    by_control = rows.set_index("control")
    assert (by_control["model"] == "control:" + by_control.index).all()
    assert by_control.loc["null-model", "completion"].unique().tolist() == [NULL_ANSWER]
    carried = by_control.loc["injected-instruction"]
    # by shares of votes won: a third against each that comes later, two thirds the other way
    assert json.loads(carried["metadata"].iloc[0]) == {"carrier": "bee"}
    said = "bee says " + carried["question_id"] + INJECTION
    assert carried["completion"].tolist() == said.tolist()
    assert by_control.loc["copy-of-opponent", "completion"].isna().all()


def test_the_null_model_says_what_a_file_says(
    shelf: Shelf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = tmp_path_factory.mktemp("texts") / "null.txt"
    text.write_text("Output nothing")
    options = {"controls": {"null-model": {"text_file": str(text)}}}
    assert shelf.accept(**options).candidates["completion"].unique().tolist() == ["Output nothing"]
    before = shelf.contents(**options)
    text.write_bytes(b"\xff")
    assert shelf.contents(**options) != before
    found = shelf.accept(**options)
    assert found.refused["reason"].tolist() == ["no-text"]
    assert "null.txt is not UTF-8; correct text_file" in found.refused["detail"].iloc[0]


def test_an_unknown_carrier_is_named(shelf: Shelf) -> None:
    found = shelf.accept(controls={"injected-instruction": {"carrier": "beee"}})
    assert "did you mean 'bee'" in found.refused["detail"].iloc[0]


def test_a_carrier_is_kept_while_it_is_an_anchor(shelf: Shelf) -> None:
    """Votes that come later would choose another, and have the same attack judged anew."""
    first = shelf.accept(controls=["injected-instruction"]).candidates
    assert json.loads(first["metadata"].iloc[0]) == {"carrier": "bee"}
    later = BATTLES.assign(human_outcome=BATTLES["human_outcome"].mul(-1).add(1))
    options = CandidateOptions(controls=["injected-instruction"])
    anew = shelf.accept(battles=later, controls=options.controls).candidates
    assert json.loads(anew["metadata"].iloc[0]) == {"carrier": "eel"}
    kept = keep_carrier(options, first, later)
    again = shelf.accept(battles=later, controls=kept.controls).candidates
    pd.testing.assert_frame_equal(again, first)  # the content hash too
    without = later[~later[["model_a", "model_b"]].eq("bee").any(axis=1)]
    for untouched in (
        keep_carrier(options, first, without),
        keep_carrier(options, first.head(0), later),
        keep_carrier(options, None, later),
    ):
        assert untouched == options
    named = CandidateOptions(controls={"injected-instruction": {"carrier": "cat"}})
    assert keep_carrier(named, first, later) == named


def test_questions_to_answer_keep_the_mix_of_languages() -> None:
    asked = questions_to_answer(anchor_answers(BATTLES).answers, 9, seed=0)
    assert asked["language"].value_counts().to_dict() == {"en": 6, "fr": 3}
    assert asked["n_anchors"].eq(len(ANCHORS)).all()
    more = questions_to_answer(anchor_answers(BATTLES).answers, 20, seed=0)
    pd.testing.assert_frame_equal(more.head(9), asked)


STRENGTHS = pd.Series([-200.0, -100, 0, 50, 100, 300], index=ANCHORS)


def choose(candidates: pd.DataFrame, n: int, before: pd.DataFrame | None = None) -> pd.DataFrame:
    known = anchor_answers(BATTLES).answers
    return choose_for_all(candidates, known, STRENGTHS, n_battles=n, seed=0, before=before)


@pytest.fixture
def candidates(shelf: Shelf) -> pd.DataFrame:
    shelf.put("new.jsonl", *answers())
    shelf.put("other.jsonl", *answers(10, "other"))
    names = ["null-model", "injected-instruction", "copy-of-opponent"]
    return shelf.accept(controls=names).candidates


def test_battles_are_of_the_right_texts(candidates: pd.DataFrame) -> None:
    battles = choose(candidates, 25)
    a_is_new = battles["model_a"].eq(battles["candidate"])
    theirs = battles["completion_b"].where(a_is_new, battles["completion_a"])
    own = battles["completion_a"].where(a_is_new, battles["completion_b"])
    assert (theirs == battles["opponent"] + " says " + battles["question_id"]).all()
    new = battles["candidate"].eq("new")
    assert (
        own[new] == "new " + battles.loc[new, "question_id"].str[1:].astype(int).astype(str)
    ).all()
    copies = battles["control"].eq("copy-of-opponent")
    assert (own[copies] == theirs[copies]).all()
    assert (
        not battles.loc[battles["control"].eq("injected-instruction"), "opponent"].eq("bee").any()
    )
    assert battles["human_outcome"].isna().all()
    assert battles["battle_id"].is_unique
    assert 0.3 < a_is_new.mean() < 0.7


def test_opponents_are_of_all_strengths(candidates: pd.DataFrame) -> None:
    own = choose(candidates, 60).query("candidate == 'new'")
    assert len(own) == 60
    # six anchors in five bands: two of them share the weakest
    counts = own["opponent"].value_counts()
    assert counts[["cat", "dog", "eel", "fox"]].tolist() == [12] * 4
    assert counts[["ant", "bee"]].tolist() == [6, 6]
    assert own["language"].value_counts().to_dict() == {"en": 40, "fr": 20}
    assert own["question_id"].value_counts().max() == 2


def test_never_more_than_there_are_or_are_needed(candidates: pd.DataFrame) -> None:
    counts = choose(candidates, 100)["candidate"].value_counts()
    assert counts["new"] == 100
    assert counts["other"] == 60  # ten questions, six anchors


def test_the_first_battles_of_all_come_first(candidates: pd.DataFrame) -> None:
    battles = choose(candidates, 20)
    assert battles["selection_order"].tolist() == list(range(len(battles)))
    assert battles["candidate"].head(5).nunique() == 5


def test_chosen_battles_stay_when_candidates_and_needs_grow(candidates: pd.DataFrame) -> None:
    some = candidates[candidates["model"].isin(["new", "control:null-model"])]
    before = choose(some, 20)
    after = choose(candidates, 30, before)
    pd.testing.assert_frame_equal(after.head(len(before)), before)
    assert after["candidate"].value_counts().eq(30).all()
    again = choose(candidates, 30, after)
    pd.testing.assert_frame_equal(again, after)
    assert fingerprint(again) == fingerprint(after) != fingerprint(before)
    fewer = choose(candidates, 5, after)
    assert fingerprint(fewer) == fingerprint(after)  # what was judged once is not thrown away


def test_a_chosen_battle_keeps_the_answers_that_judges_saw(candidates: pd.DataFrame) -> None:
    """An anchor that answers a question again changes no text under a verdict that there is."""
    before = choose(candidates, 20)
    again = BATTLES.assign(
        battle_id="again-" + BATTLES["battle_id"],
        completion_a=BATTLES["completion_a"] + " (again)",
        completion_b=BATTLES["completion_b"] + " (again)",
    )
    said = anchor_answers(pd.concat([BATTLES, again], ignore_index=True)).answers
    assert said["completion"].str.contains("again").any()
    after = choose_for_all(candidates, said, STRENGTHS, n_battles=20, seed=0, before=before)
    pd.testing.assert_frame_equal(after, before)


def test_new_content_is_judged_anew_and_a_withdrawn_model_leaves(candidates: pd.DataFrame) -> None:
    before = choose(candidates, 20)
    changed = candidates["content_hash"].mask(candidates["model"].eq("new"), "f" * 64)
    after = choose(candidates.assign(content_hash=changed), 20, before)
    moved = set(after["battle_id"]) ^ set(before["battle_id"])
    assert {battle.split(":")[1] for battle in moved} == {"new"}
    gone = choose(candidates[candidates["model"].ne("new")], 20, before)
    assert "new" not in set(gone["candidate"])
    assert fingerprint(choose(candidates.head(0), 20, before)) == ""


def pool(noise: float, threshold: float, n_battles: int = 900) -> tuple[pd.DataFrame, pd.DataFrame]:
    heldout = pd.DataFrame(
        {
            "model": ANCHORS,
            "method": "auto",
            "human_rating": 1500.0,
            "residual": 3.0,
            "std_error": np.nan,
            "std_error_analytic": 0.6 * noise / np.sqrt(n_battles),
            "vote_std_error": 0.8 * noise / np.sqrt(n_battles),
            "n_battles": n_battles,
        }
    )
    calibration = {"method": ["hard", "auto"], "threshold": [9.0, threshold], "excess_sd": 0.0}
    return heldout, pd.DataFrame(calibration)


def test_the_judge_that_needs_most_decides() -> None:
    heldout, calibration = {}, {}
    for judge, noise in (("calm", 200.0), ("wild", 300.0), ("fresh", 300.0)):
        heldout[judge], calibration[judge] = pool(noise, 2.0)
    del calibration["fresh"]
    options = CandidateOptions(half_width=50, max_battles=500)
    needs = needs_of(heldout, calibration, options, RatingOptions())
    assert {judge: need.n_battles for judge, need in needs.by_judge.items()} == {
        "calm": 64,
        "wild": 144,
    }
    assert (needs.n_battles, needs.unbounded) == (144, [])
    assert needs.half_width(36) == pytest.approx(100.0)  # a quarter of the battles, twice as wide


def test_nobody_has_more_battles_than_the_models_that_calibrate() -> None:
    """Beyond that the standard error shrinks, and the errors in the threshold do not."""
    options = CandidateOptions(half_width=50, max_battles=500)
    heldout, calibration = {}, {}
    for judge, n_battles in (("well", 400), ("less", 100), ("none", 0)):
        heldout[judge], calibration[judge] = pool(300.0, 2.0, max(n_battles, 1))
    heldout["none"] = heldout["none"].head(0)
    needs = needs_of(heldout, calibration, options, RatingOptions())
    assert needs.n_battles == 100  # 144 would do, if the pool of `less` had as many
    assert needs.by_judge["less"].wanted == pytest.approx(144.0)
    assert needs.by_judge["less"].half_width(needs.n_battles) == pytest.approx(60.0)
    heldout["less"] = heldout["less"].assign(n_battles=7)
    assert needs_of(heldout, calibration, options, RatingOptions()).n_battles == 20


def test_an_infinite_threshold_takes_all_and_is_said() -> None:
    heldout, calibration = pool(300.0, np.inf)
    options = CandidateOptions(max_battles=70)
    needs = needs_of({"wild": heldout}, {"wild": calibration}, options, RatingOptions())
    assert (needs.n_battles, needs.unbounded) == (70, ["wild"])
    assert needs_of({}, {}, options, RatingOptions()).n_battles == 70


def test_anchors_are_those_that_some_judge_placed() -> None:
    one, _ = pool(200.0, 2.0)
    other = one.assign(human_rating=[np.nan, 1700, 1500, 1500, 1500, 1500])
    found = anchor_strengths({"a": one, "b": other}, frozenset(ANCHORS) - {"fox"})
    assert found.to_dict() == {
        "ant": 1500.0, "bee": 1600.0, "cat": 1500.0, "dog": 1500.0, "eel": 1500.0,
    }  # fmt: skip
    assert anchor_strengths({}, frozenset({"b", "a"})).to_dict() == {"a": 0.0, "b": 0.0}


def test_battles_against_an_anchor_stay_when_a_judge_has_no_rating_of_it(
    candidates: pd.DataFrame,
) -> None:
    known = anchor_answers(BATTLES)
    heldout, _ = pool(200.0, 2.0)
    of_one = anchor_strengths({"a": heldout}, known.voted)
    lacking = heldout[heldout["model"].ne("ant")]
    of_two = anchor_strengths({"a": heldout, "b": lacking}, known.voted)
    settings: dict[str, Any] = {"n_battles": 20, "seed": 0, "voted": known.voted}
    before = choose_for_all(candidates, known.answers, of_one, **settings)
    assert before["opponent"].eq("ant").any()
    after = choose_for_all(candidates, known.answers, of_two, **settings, before=before)
    pd.testing.assert_frame_equal(after, before)


def test_paid_battles_stay_without_a_rating_or_an_answer_and_go_without_votes(
    candidates: pd.DataFrame,
) -> None:
    """Whoever rates nobody any more, and whatever was taken out: what judges saw is kept."""
    known = anchor_answers(BATTLES)
    before = choose(candidates, 20)
    others = STRENGTHS.drop("ant")
    unanswered = known.answers[known.answers["question_id"].ne("q03")]
    assert before["question_id"].eq("q03").any()
    settings: dict[str, Any] = {"n_battles": 20, "seed": 0, "before": before}
    after = choose_for_all(candidates, unanswered, others, **settings, voted=known.voted)
    pd.testing.assert_frame_equal(after.head(len(before)), before)
    assert not after.iloc[len(before) :]["opponent"].eq("ant").any()
    places = after[after["opponent"].isin(others.index)]  # who places nobody counts for nothing
    assert set(places["candidate"].value_counts()) == {20}
    more = choose_for_all(
        candidates, unanswered, others, **{**settings, "n_battles": 30}, voted=known.voted
    )
    pd.testing.assert_frame_equal(more.head(len(before)), before)
    assert not more.iloc[len(before) :]["opponent"].eq("ant").any()
    gone = choose_for_all(candidates, known.answers, others, **settings)
    assert not gone["opponent"].eq("ant").any()
    assert set(before["battle_id"]) - set(gone["battle_id"]) == set(
        before.loc[before["opponent"].eq("ant"), "battle_id"]
    )


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [([1, 1, 1, 1], 1.0), ([1, 1, 2, 1], 2.0), ([3, 3, 3, 3], 3.0), ([], np.inf)],
)
def test_a_question_has_as_many_battles_as_rated_models_have_on_it(
    repeats: list[int], expected: float
) -> None:
    """Ant and bee meet; `gnu` meets ant a thousand times, and has no votes."""
    rows = [(f"q{q}", "ant", "bee") for q, n in enumerate(repeats) for _ in range(n)]
    table = pd.DataFrame(rows, columns=["question_id", "model_a", "model_b"])
    unvoted = pd.DataFrame([("q9", "gnu", "hen")] * 1000, columns=table.columns)
    found = battles_per_question(pd.concat([table, unvoted]), frozenset({"ant", "bee"}))
    assert found == expected


def test_few_questions_give_few_battles(candidates: pd.DataFrame) -> None:
    """Ten answers against six anchors are sixty battles, and no more than ten told apart."""
    known = anchor_answers(BATTLES).answers
    settings: dict[str, Any] = {"n_battles": 40, "seed": 0}
    once = choose_for_all(candidates, known, STRENGTHS, **settings, per_question=1)
    own = once[once["candidate"].eq("other")]
    assert (len(own), own["question_id"].nunique()) == (10, 10)
    assert once["candidate"].value_counts()["new"] == N_QUESTIONS
    twice = choose_for_all(candidates, known, STRENGTHS, **settings, per_question=2)
    own = twice[twice["candidate"].eq("other")]
    assert own["question_id"].value_counts().tolist() == [2] * 10
    free = choose_for_all(candidates, known, STRENGTHS, **settings)
    kept = choose_for_all(candidates, known, STRENGTHS, **settings, per_question=1, before=free)
    pd.testing.assert_frame_equal(kept, free)  # they were paid for


def test_a_file_that_may_not_be_read_is_set_aside(shelf: Shelf) -> None:
    shelf.put("shut.jsonl", *answers(25))
    shelf.put("open.jsonl", *answers(25, word="other"))
    folder = UPath(str(shelf.folder))
    files = [
        one._replace(state="no-permission") if one.name == "shut.jsonl" else one
        for one in list_files(folder, now=9e12)
    ]
    found = accept(folder, files, BATTLES, CandidateOptions())
    assert reasons(found) == {"shut.jsonl": "no-permission"}
    assert set(found.candidates["model"]) == {"open"}
