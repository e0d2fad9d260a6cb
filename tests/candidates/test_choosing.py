"""Battles of candidates: how many, which, in what order, and the checks that guard them."""

import hashlib
import json

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from candidate_worlds import ANCHORS, BATTLES, N_QUESTIONS, answers

from assets.candidates.accepting import make_control
from assets.candidates.assets import (
    candidate_battles_are_sound,
    candidates_have_enough_battles,
    candidates_meet_all_strengths,
    candidates_speak_all_languages,
)
from assets.candidates.choosing import (
    anchor_answers,
    anchor_strengths,
    battles_per_question,
    choose_for_all,
    fingerprint,
    needs_of,
    questions_to_answer,
)
from assets.partitions import corpus_judge_key
from judgeline.io import typed
from judgeline.rating_options import RatingOptions
from judgeline.tables.candidates import CANDIDATES
from resources.config.catalog import Catalog
from resources.config.options import CandidateOptions

KNOWN = anchor_answers(BATTLES)
STRENGTHS = pd.Series([-200.0, -100, 0, 50, 100, 300], index=ANCHORS)
CONTROLS = CandidateOptions(controls=["null-model", "injected-instruction"])


def dropped(model: str, n: int) -> pd.DataFrame:
    rows = answers(n, model)
    content = "".join(json.dumps(row) + "\n" for row in rows)
    asked = KNOWN.answers.drop_duplicates("question_id").set_index("question_id")
    table = pd.DataFrame(rows).join(asked[["instruction", "language"]], "question_id")
    hashed = hashlib.sha256(content.encode()).hexdigest()
    return typed(table.assign(model=model, content_hash=hashed, metadata="{}"), CANDIDATES.dtypes)


ALL = pd.concat(
    [
        dropped("new", N_QUESTIONS),
        dropped("other", 10),
        *(make_control(name, CONTROLS, KNOWN, BATTLES, seed=0) for name in CONTROLS.controls),
    ],
    ignore_index=True,
)


def choose(n, before=None, candidates=ALL, known=KNOWN.answers, strengths=STRENGTHS, **options):
    how = {"n_battles": n, "seed": 0, "before": before, **options}
    return choose_for_all(candidates, known, strengths, **how)


@pytest.fixture(scope="module")
def twenty() -> pd.DataFrame:
    """Twenty battles of each candidate."""
    return choose(20)


# ------------------------------------------------------------------ which


def test_anchors_are_asked_single_questions_in_the_mix_of_languages() -> None:
    longer = BATTLES.assign(n_turns=BATTLES["question_id"].eq("q03").astype("Int64") + 1)
    assert "q03" not in set(anchor_answers(longer).answers["question_id"])
    asked = questions_to_answer(KNOWN.answers, 9, seed=0)
    assert asked["language"].value_counts().to_dict() == {"en": 6, "fr": 3}
    assert asked["n_anchors"].eq(len(ANCHORS)).all()
    more = questions_to_answer(KNOWN.answers, 20, seed=0)
    pd.testing.assert_frame_equal(more.head(9), asked)


def test_battles_are_of_the_right_texts() -> None:
    battles = choose(25)
    a_is_new = battles["model_a"].eq(battles["candidate"])
    theirs = battles["completion_b"].where(a_is_new, battles["completion_a"])
    own = battles["completion_a"].where(a_is_new, battles["completion_b"])
    assert (theirs == battles["opponent"] + " says " + battles["question_id"]).all()
    new = battles["candidate"].eq("new")
    number = battles.loc[new, "question_id"].str[1:].astype(int).astype(str)
    assert (own[new] == "new " + number).all()
    injected = battles["control"].eq("injected-instruction")
    assert not battles.loc[injected, "opponent"].eq("bee").any()  # its carrier
    assert battles["human_outcome"].isna().all()
    assert battles["battle_id"].is_unique
    assert 0.3 < a_is_new.mean() < 0.7


def test_opponents_are_of_all_strengths_and_the_first_battles_of_all_come_first() -> None:
    battles = choose(60)
    own = battles.query("candidate == 'new'")
    assert len(own) == 60
    # six anchors in five bands: two of them share the weakest
    counts = own["opponent"].value_counts()
    assert counts[list(ANCHORS)].tolist() == [6, 6, 12, 12, 12, 12]
    assert own["language"].value_counts().to_dict() == {"en": 40, "fr": 20}
    assert own["question_id"].value_counts().max() == 2
    assert battles["selection_order"].tolist() == list(range(len(battles)))
    assert battles["candidate"].head(4).nunique() == 4
    most = choose(100)["candidate"].value_counts()
    assert (most["new"], most["other"]) == (100, 60)  # of other ten questions, six anchors


def test_chosen_battles_stay_when_candidates_and_needs_grow() -> None:
    some = ALL[ALL["model"].isin(["new", "control:null-model"])]
    before = choose(20, candidates=some)
    after = choose(30, before)
    pd.testing.assert_frame_equal(after.head(len(before)), before)
    assert after["candidate"].value_counts().eq(30).all()
    again = choose(30, after)
    pd.testing.assert_frame_equal(again, after)
    assert fingerprint(again) == fingerprint(after) != fingerprint(before)
    fewer = choose(5, after)
    assert fingerprint(fewer) == fingerprint(after)  # what was judged once is not thrown away


def test_a_chosen_battle_keeps_the_answers_that_judges_saw(twenty: pd.DataFrame) -> None:
    """An anchor that answers a question again changes no text under a verdict that there is."""
    texts = BATTLES[["completion_a", "completion_b"]] + " (again)"
    again = BATTLES.assign(battle_id="again-" + BATTLES["battle_id"], **texts)
    said = anchor_answers(pd.concat([BATTLES, again], ignore_index=True)).answers
    assert said["completion"].str.contains("again").any()
    pd.testing.assert_frame_equal(choose(20, twenty, known=said), twenty)


def test_new_content_is_judged_anew_and_a_withdrawn_model_leaves(twenty: pd.DataFrame) -> None:
    changed = ALL["content_hash"].mask(ALL["model"].eq("new"), "f" * 64)
    after = choose(20, twenty, ALL.assign(content_hash=changed))
    moved = set(after["battle_id"]) ^ set(twenty["battle_id"])
    assert {battle.split(":")[1] for battle in moved} == {"new"}
    gone = choose(20, twenty, ALL[ALL["model"].ne("new")])
    assert "new" not in set(gone["candidate"])
    assert fingerprint(choose(20, twenty, ALL.head(0))) == ""


def test_paid_battles_stay_without_a_rating_or_an_answer_and_go_without_votes(twenty):
    """Whatever ratings and answers are gone: the battles that judges saw are kept."""
    others = STRENGTHS.drop("ant")
    unanswered = KNOWN.answers[KNOWN.answers["question_id"].ne("q03")]
    of_ant = twenty["opponent"].eq("ant")
    assert of_ant.any()
    assert twenty["question_id"].eq("q03").any()
    given = {"known": unanswered, "strengths": others, "voted": KNOWN.voted}
    for n in (20, 30):
        after = choose(n, twenty, **given)
        pd.testing.assert_frame_equal(after.head(len(twenty)), twenty)
        assert not after.iloc[len(twenty) :]["opponent"].eq("ant").any()
        places = after[after["opponent"].isin(others.index)]  # the others count for nothing
        assert n == 30 or set(places["candidate"].value_counts()) == {20}
    gone = choose(20, twenty, strengths=others)
    assert not gone["opponent"].eq("ant").any()
    lost = set(twenty["battle_id"]) - set(gone["battle_id"])
    assert lost == set(twenty.loc[of_ant, "battle_id"])


def test_few_questions_give_few_battles() -> None:
    """Ten answers against six anchors are sixty battles, and no more than ten told apart."""
    for n in (1, 2):
        battles = choose(40, per_question=n)
        own = battles[battles["candidate"].eq("other")]["question_id"].value_counts()
        assert own.tolist() == [n] * 10
        assert battles["candidate"].value_counts()["new"] == min(40, n * N_QUESTIONS)
    free = choose(40)
    pd.testing.assert_frame_equal(choose(40, free, per_question=1), free)  # they were paid for


@pytest.mark.parametrize(
    ("repeats", "expected"),
    [([1, 1, 1, 1], 1.0), ([1, 1, 2, 1], 2.0), ([3, 3, 3, 3], 3.0), ([], np.inf)],
)
def test_a_question_has_as_many_battles_as_rated_models_have_on_it(repeats, expected):
    """Ant and bee meet; `gnu` meets hen a thousand times, and has no votes."""
    rows = [(f"q{q}", "ant", "bee") for q, n in enumerate(repeats) for _ in range(n)]
    rows += [("q9", "gnu", "hen")] * 1000
    table = pd.DataFrame(rows, columns=["question_id", "model_a", "model_b"])
    assert battles_per_question(table, frozenset({"ant", "bee"})) == expected


# ------------------------------------------------------------------ how many


def pool(noise: float, threshold: float, n_battles: int = 900) -> tuple[pd.DataFrame, pd.DataFrame]:
    heldout = pd.DataFrame(
        {
            "model": ANCHORS, "method": "auto", "human_rating": 1500.0, "residual": 3.0,
            "std_error": 0.6 * noise / np.sqrt(n_battles), "std_error_analytic": np.nan,
            "vote_std_error": 0.4 * noise / np.sqrt(n_battles), "n_battles": n_battles,
            "design_effect": 4.0,  # shared questions: 0.8 together
        }
    )  # fmt: skip
    calibration = {"method": ["hard", "auto"], "threshold": [9.0, threshold], "excess_sd": 0.0}
    return heldout, pd.DataFrame(calibration)


def needs(pools: dict[str, tuple[pd.DataFrame, pd.DataFrame]], **options: float):
    heldout, calibration = ({judge: pair[k] for judge, pair in pools.items()} for k in (0, 1))
    calibration.pop("fresh", None)
    wanted = CandidateOptions(**{"half_width": 50, "max_battles": 500, **options})
    return needs_of(heldout, calibration, wanted, RatingOptions())


def test_the_judge_that_needs_most_decides() -> None:
    wild = pool(300.0, 2.0)
    found = needs({"calm": pool(200.0, 2.0), "wild": wild, "fresh": wild})
    by_judge = {judge: need.n_battles for judge, need in found.by_judge.items()}
    assert by_judge == {"calm": 64, "wild": 144}
    assert (found.n_battles, found.unbounded) == (144, [])
    assert found.half_width(36) == pytest.approx(100.0)  # a quarter, twice as wide
    endless = needs({"wild": pool(300.0, np.inf)}, max_battles=70)
    assert (endless.n_battles, endless.unbounded) == (70, ["wild"])
    unknown = needs({}, max_battles=70)
    assert (unknown.n_battles, unknown.half_width(70)) == (70, np.inf)


def test_no_candidate_has_more_battles_than_the_models_that_calibrate() -> None:
    """Beyond that the standard error shrinks, and the errors in the threshold do not."""
    none = tuple(table.head(0) if k == 0 else table for k, table in enumerate(pool(300.0, 2.0)))
    pools = {"well": pool(300.0, 2.0, 400), "less": pool(300.0, 2.0, 100), "none": none}
    found = needs(pools)
    assert found.n_battles == 100  # 144 would do, if the pool of `less` had as many
    assert found.by_judge["less"].wanted == pytest.approx(144.0)
    assert found.by_judge["less"].half_width(100) == pytest.approx(60.0)
    pools["less"] = pools["less"][0].assign(n_battles=7), pools["less"][1]
    assert needs(pools).n_battles == 20


def test_anchors_are_those_that_some_judge_placed() -> None:
    one, _ = pool(200.0, 2.0)
    other = one.assign(human_rating=[np.nan, 1700, 1500, 1500, 1500, 1500])
    found = anchor_strengths({"a": one, "b": other}, frozenset(ANCHORS) - {"fox"})
    expected = {"ant": 1500.0, "bee": 1600.0, "cat": 1500.0, "dog": 1500.0, "eel": 1500.0}
    assert found.to_dict() == expected
    assert anchor_strengths({}, frozenset({"b", "a"})).to_dict() == {"a": 0.0, "b": 0.0}
    # a judge without a rating of an anchor changes no battle
    lacking = {"a": one, "b": one[one["model"].ne("ant")]}
    both = [anchor_strengths(tables, KNOWN.voted) for tables in ({"a": one}, lacking)]
    pd.testing.assert_series_equal(*both)


# ------------------------------------------------------------------ the checks

FOUR = pd.Series({"ant": -100.0, "bee": 0.0, "cat": 50.0, "dog": 100.0})
HELDOUT = pd.DataFrame({"model": FOUR.index, "human_rating": FOUR.to_numpy() + 1500})
NEW = pd.DataFrame({"model": ["new", "new"]})


def rated(heldout: pd.DataFrame, *judges: str) -> dict[dg.MultiPartitionKey, pd.DataFrame]:
    return {corpus_judge_key("tiny", judge): heldout for judge in judges}


RATED = rated(HELDOUT, "careful")


def forty(battles: pd.DataFrame, n: int = 40) -> pd.DataFrame:
    """A new model's battles, over twenty questions."""
    known = anchor_answers(battles).answers
    own = known.drop_duplicates("question_id").assign(
        model="new", completion="New.", content_hash="c" * 64, metadata="{}"
    )
    return choose_for_all(typed(own, CANDIDATES.dtypes), known, FOUR, n_battles=n, seed=0)


@pytest.fixture
def chosen(raw_battles: pd.DataFrame) -> pd.DataFrame:
    return forty(raw_battles)


def meet(chosen: pd.DataFrame, battles: pd.DataFrame, heldout=RATED) -> dg.AssetCheckResult:
    return candidates_meet_all_strengths(chosen, battles, heldout, Catalog())


def test_chosen_battles_pass_every_check_and_so_do_none(chosen, raw_battles) -> None:
    for battles, models, heldout in ((chosen, NEW, RATED), (chosen.head(0), NEW.head(0), {})):
        assert candidate_battles_are_sound(battles, raw_battles).passed
        assert candidates_have_enough_battles(battles, models).passed
        assert meet(battles, raw_battles, heldout).passed
        assert candidates_speak_all_languages(battles, raw_battles).passed


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("battle_id", "same", "battle_id is unique"),
        ("completion_a", None, "completion_a is known"),
        ("opponent", "emu", "the opponent has votes"),
        ("candidate", "emu", "its models are the candidate and the opponent"),
        ("human_outcome", 1.0, "nobody voted on it"),
    ],
)
def test_unsound_battles_stop_placing(chosen, raw_battles, column, value, sentence) -> None:
    found = candidate_battles_are_sound(chosen.assign(**{column: value}), raw_battles)
    assert (found.passed, found.severity.value) == (False, "ERROR")
    assert sentence in found.description


SEVEN = "question-0" + (pd.Series(range(40)) % 7).astype(str)
MORE, NONE = "Answer more of the questions", "no model that a judge has rated"


@pytest.mark.parametrize(
    ("change", "models", "sentence", "remedy"),
    [
        (lambda t: t.head(19), ["new"], "new (n_battles=19", MORE),
        (lambda t: t.assign(question_id=SEVEN), ["new"], "new (n_questions=7)", MORE),
        (lambda t: t, ["new", "unmet"], "unmet (n_battles=0)", NONE),
        (lambda t: t.head(0), ["new"], "new (n_battles=0", NONE),
    ],
)
def test_few_battles_or_questions_warn(chosen, change, models, sentence, remedy) -> None:
    found = candidates_have_enough_battles(change(chosen), pd.DataFrame({"model": models}))
    assert (found.passed, found.severity.value) == (False, "WARN")
    assert sentence in found.description
    assert remedy in found.metadata["remedy"].value


def test_strengths_are_those_that_battles_are_chosen_by(chosen, raw_battles) -> None:
    """What a recorded or a retired judge says of the anchors is no reason to warn, or to pass."""
    of_ant = chosen[chosen["opponent"].eq("ant")]
    of_two = chosen[chosen["opponent"].isin(["ant", "bee"])]
    three_to_one = pd.concat([of_ant, of_two.head(4)])
    mostly = of_two.assign(opponent=["ant"] * (len(of_two) - 2) + ["bee"] * 2)
    two = HELDOUT[HELDOUT["model"].isin(["ant", "cat"])]  # by whom ant stands alone in its band
    others = rated(two, "recorded", "retired")
    dog = rated(HELDOUT[HELDOUT["model"].eq("dog")], "careful")
    cases = [
        (of_ant, RATED, False),
        (of_two, RATED, True),  # half and half, of four bands
        (of_two, RATED | others, True),
        (of_two, others, True),  # nobody to ask has ratings: all are equals
        (three_to_one, RATED | others, False),
        (of_two, dog, False),
        (of_two, dog | rated(HELDOUT, "retired"), False),
        (mostly, rated(HELDOUT[HELDOUT["model"].ne("ant")], "careful"), False),
    ]
    for number, (battles, heldout, passed) in enumerate(cases):
        found = meet(battles, raw_battles, heldout)
        assert (found.passed, found.severity.value) == (passed, "WARN"), number
    assert "strength of some opponent" in meet(of_two, raw_battles, dog).description


def test_a_missing_language_warns_and_unknown_ones_are_a_language(chosen, raw_battles) -> None:
    english = chosen[chosen["language"].eq("en")]
    found = candidates_speak_all_languages(english, raw_battles)
    assert (found.passed, found.severity.value) == (False, "WARN")
    assert "new" in found.description
    silent = raw_battles.assign(language=pd.Series([None] * len(raw_battles), dtype="str"))
    assert anchor_answers(silent).answers["language"].unique().tolist() == [""]
    eight = forty(silent, 8)
    assert (len(eight), eight["language"].isna().all()) == (8, True)
    assert candidates_speak_all_languages(eight, silent).passed
