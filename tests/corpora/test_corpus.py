"""A corpus after it was read: cleaned, filtered, sampled, and the checks on each table."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.corpus import assets as corpus
from judgeline.io import language_code, typed
from judgeline.io.assemble import clean_battles
from judgeline.tables.corpus import BATTLE_DTYPES, QUARANTINE_DTYPES
from resources.config.corpora import CorpusDefinition, Filters
from resources.corpora.cleaning import filter_battles


def battles(**columns: list) -> pd.DataFrame:
    n = len(next(iter(columns.values())))
    table = {"battle_id": [f"b{row}" for row in range(n)], "model_a": "ant", "model_b": "bee"}
    return typed(pd.DataFrame({**table, **columns}, index=range(n)), BATTLE_DTYPES)


def test_clean_battles_keep_the_first_sound_one() -> None:
    raw = battles(battle_id=["x", "x", "x", None, "y"], model_b=["ant", "bee", "cat", "bee", "bee"])
    clean, quarantine = clean_battles(raw)
    assert clean[["battle_id", "model_b"]].to_numpy().tolist() == [["x", "bee"], ["y", "bee"]]
    assert dict(zip(quarantine["row"], quarantine["reason"], strict=True)) == {
        0: "self-battle", 2: "duplicate-battle", 3: "missing-battle-id"
    }  # fmt: skip
    assert {name: str(dtype) for name, dtype in quarantine.dtypes.items()} == QUARANTINE_DTYPES
    again, none = clean_battles(clean)
    pd.testing.assert_frame_equal(again, clean)
    assert none.empty


def test_an_id_that_looks_like_that_of_a_further_vote_is_refused() -> None:
    clean, quarantine = clean_battles(battles(battle_id=["x#vote-1", "x"]))
    assert clean["battle_id"].tolist() == ["x"]
    assert quarantine["reason"].tolist() == ["reserved-battle-id"]
    assert "'x#vote-1' has '#vote-'" in quarantine["detail"].item()


@pytest.mark.parametrize(
    ("filters", "kept", "dropped"),
    [
        ({}, [0, 1, 2, 3, 4], {}),
        ({"languages": ["en"]}, [0, 3, 4], {"unknown-language": 1, "other-language": 1}),
        ({"single_turn": True}, [0, 1, 2], {"unknown-turns": 1, "multi-turn": 1}),
        ({"languages": ["en", "de"], "single_turn": True}, [0, 1],
         {"unknown-language": 1, "unknown-turns": 1, "multi-turn": 1}),
    ],
)  # fmt: skip
def test_filters(filters, kept, dropped) -> None:
    table = battles(language=["en", "de", None, "en", "en"], n_turns=[1, 1, 1, 2, None])
    passed, counts = filter_battles(table, Filters(**filters))
    assert passed["battle_id"].tolist() == [f"b{row}" for row in kept]
    assert counts == dropped
    assert passed.index.tolist() == list(range(len(kept)))


@pytest.mark.parametrize(
    ("code", "published"),
    [
        *[("en", "English"), ("nn", "Norwegian Nynorsk"), ("gd", "SCOTS_GAELIC"), ("fa", "Farsi")],
        *[("sco", "scots"), ("de", "de"), ("zh", "zh-Hant"), ("pt", "pt_BR"), ("he", "iw")],
        *[("yue", "yue"), (None, "unknown"), (None, "und"), (None, "un"), (None, "")],
        *[(None, None), (None, float("nan")), (None, "Middle Elvish")],
    ],
)
def test_languages(code, published) -> None:
    assert language_code(published) == code


def definition(**changes) -> CorpusDefinition:
    return CorpusDefinition(slug="tiny", reader="battles", **changes)


def chosen_ids(battles, before=None, **changes):
    return corpus.choose(battles, definition(**changes), before)["battle_id"].tolist()


def test_sample_covers_the_models_and_is_in_order(raw_battles):
    chosen = corpus.choose(raw_battles, definition(sample_size=12), None)
    counts = pd.concat([chosen["model_a"], chosen["model_b"]]).value_counts()
    assert counts.min() >= 5
    assert counts.sum() == 24
    assert chosen["selection_order"].tolist() == list(range(12))
    assert len(chosen_ids(raw_battles)) == len(raw_battles)  # without a size every battle


def test_chosen_battles_stay_chosen_when_corpus_and_sample_grow(raw_battles):
    before = corpus.choose(raw_battles.head(30), definition(sample_size=10), None)
    shuffled = raw_battles.sample(frac=1, random_state=1)
    after = chosen_ids(shuffled, before, sample_size=20, seed=5)
    assert after[:10] == before["battle_id"].tolist()
    assert len(set(after)) == 20


def test_a_battle_that_left_the_corpus_leaves_the_sample(raw_battles):
    before = corpus.choose(raw_battles, definition(sample_size=10), None)
    gone = before["battle_id"].iloc[3]
    left = raw_battles[raw_battles["battle_id"].ne(gone)]
    after = chosen_ids(left, before, sample_size=10)
    assert gone not in after
    assert set(before["battle_id"]) - {gone} <= set(after)


def test_choice_depends_on_the_seed_and_not_on_the_order_of_the_file(raw_battles):
    one = chosen_ids(raw_battles, sample_size=7)
    assert chosen_ids(raw_battles.iloc[::-1], sample_size=7) == one
    assert len({tuple(chosen_ids(raw_battles, sample_size=7, seed=n)) for n in range(4)}) > 1


@pytest.mark.parametrize(
    ("n_bad", "readable", "few"), [(2, True, True), (10, True, False), (70, False, False)]
)
def test_quarantine_share(raw_battles, quarantined_battles, n_bad, readable, few):
    bad = pd.concat([quarantined_battles] * 40).head(n_bad)
    stops = corpus.most_rows_could_be_read(raw_battles, bad)
    warns = corpus.few_rows_are_quarantined(bad, raw_battles)
    assert (stops.passed, warns.passed) == (readable, few)
    assert stops.severity == dg.AssetCheckSeverity.ERROR
    assert warns.severity == dg.AssetCheckSeverity.WARN
    if not few:
        assert "unknown-winner" in warns.description


def test_human_votes(raw_battles):
    assert corpus.humans_voted(raw_battles).passed
    assert not corpus.humans_voted(raw_battles.assign(human_outcome=0.5)).passed
    assert not corpus.humans_voted(raw_battles.assign(human_outcome=np.nan)).passed


def test_sample_is_a_sample(raw_battles, sampled_battles):
    check = corpus.sample_is_a_sample
    assert check(sampled_battles, raw_battles).passed
    first = sampled_battles.index == 0
    for column, value, words in (
        ("battle_id", "battle-01", "battle_id is unique"),
        ("battle_id", "from-elsewhere", "one of the corpus"),
        ("selection_order", 2, "selection_order is unique"),
        ("selection_order", 99, "selection_order lies in [0, 23]"),
        ("selection_order", -1, "selection_order lies in [0, 23]"),
    ):
        faulty = sampled_battles[column].mask(first, value)
        found = check(sampled_battles.assign(**{column: faulty}), raw_battles)
        assert not found.passed
        assert words in found.description
    assert "at least one battle" in check(sampled_battles.head(0), raw_battles).description


def test_sample_covers_the_models(raw_battles, sampled_battles):
    check = corpus.sample_covers_the_models
    assert check(sampled_battles, raw_battles).passed
    result = check(sampled_battles[sampled_battles["model_b"].ne("dog")], raw_battles)
    assert (result.passed, result.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "dog" in result.description
    # a rare model is covered once all its battles are chosen
    rare = raw_battles.head(1).assign(battle_id="rare", model_b="eel")
    everything = pd.concat([raw_battles, rare], ignore_index=True)
    chosen = pd.concat([sampled_battles, rare], ignore_index=True)
    assert check(chosen, everything).passed
    assert not check(sampled_battles, everything).passed
