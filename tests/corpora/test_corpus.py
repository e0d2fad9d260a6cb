from functools import partial

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets.corpus import assets as corpus
from resources.config.corpora import CorpusDefinition
from resources.tables.corpus import BATTLES, RAW_BATTLES


def definition(**changes) -> CorpusDefinition:
    return CorpusDefinition(
        **{"slug": "tiny", "display_name": "Tiny", "reader": "battles", **changes}
    )


def test_sample_covers_the_models_and_is_in_order(raw_battles):
    chosen = corpus.choose(raw_battles, definition(sample_size=12), None)
    counts = pd.concat([chosen["model_a"], chosen["model_b"]]).value_counts()
    assert counts.min() >= 5
    assert counts.sum() == 24
    assert chosen["selection_order"].tolist() == list(range(12))


def test_chosen_battles_stay_chosen_when_corpus_and_sample_grow(raw_battles):
    before = corpus.choose(raw_battles.head(30), definition(sample_size=10), None)
    shuffled = raw_battles.sample(frac=1, random_state=1)
    after = corpus.choose(shuffled, definition(sample_size=20, seed=5), before)
    assert after["battle_id"].tolist()[:10] == before["battle_id"].tolist()
    assert after["battle_id"].is_unique
    assert len(after) == 20


def test_a_battle_that_left_the_corpus_leaves_the_sample(raw_battles):
    before = corpus.choose(raw_battles, definition(sample_size=10), None)
    gone = before["battle_id"].iloc[3]
    after = corpus.choose(
        raw_battles[raw_battles["battle_id"].ne(gone)], definition(sample_size=10), before
    )
    assert gone not in set(after["battle_id"])
    assert set(before["battle_id"]) - {gone} <= set(after["battle_id"])


def test_choice_does_not_depend_on_the_order_of_the_file(raw_battles):
    one = corpus.choose(raw_battles, definition(sample_size=17), None)
    other = corpus.choose(raw_battles.iloc[::-1], definition(sample_size=17), None)
    assert one["battle_id"].tolist() == other["battle_id"].tolist()


def test_seed_changes_the_choice(raw_battles):
    samples = {
        tuple(corpus.choose(raw_battles, definition(sample_size=7, seed=seed), None)["battle_id"])
        for seed in range(4)
    }
    assert len(samples) > 1


def test_without_a_sample_size_every_battle_is_chosen(raw_battles):
    assert len(corpus.choose(raw_battles, definition(), None)) == len(raw_battles)


# Each check: good tables pass, and each way of breaking one fails.


@pytest.mark.parametrize(
    "breakage",
    [
        lambda t: t.drop(columns="cluster_id"),
        lambda t: t.assign(winner="a"),
        lambda t: t.head(0),
    ],
)
def test_agreed_columns(raw_battles, breakage):
    check = partial(RAW_BATTLES.check, "battles_have_the_agreed_columns")
    assert check(raw_battles).passed
    assert not check(breakage(raw_battles)).passed


def _first(column, value):
    def breakage(table):
        table = table.copy()
        table[column] = table[column].astype(object)
        table.loc[table.index[0], column] = value
        return table

    return breakage


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (_first("battle_id", None), "battle_id is known"),
        (_first("question_id", None), "question_id is known"),
        (_first("cluster_id", None), "cluster_id is known"),
        (_first("model_a", None), "model_a is known"),
        (_first("model_b", None), "model_b is known"),
        (_first("battle_id", "battle-01"), "battle_id is unique"),
        (_first("model_b", "ant"), "between two models"),
        (_first("human_outcome", 0.3), "human_outcome is 1, 0.5, 0 or null"),
        (_first("n_turns", 0), "n_turns is at least 1"),
        (lambda t: t.head(0), "passes the filters"),
    ],
)
def test_clean_battles(raw_battles, breakage, told):
    assert BATTLES.check("battles_are_clean", raw_battles).passed
    result = BATTLES.check("battles_are_clean", breakage(raw_battles))
    assert not result.passed
    assert told in result.description


def test_clean_battles_may_lack_votes_and_text(raw_battles):
    bare = raw_battles.assign(
        human_outcome=np.nan, completion_a=None, completion_b=None, n_turns=pd.NA
    )
    assert BATTLES.check("battles_are_clean", bare).passed


def test_failing_rows_are_named(raw_battles):
    result = BATTLES.check("battles_are_clean", _first("human_outcome", 0.3)(raw_battles))
    assert "battle-00 (human_outcome=0.3)" in result.description


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


@pytest.mark.parametrize(
    ("breakage", "told"),
    [
        (_first("battle_id", "battle-01"), "battle_id is unique"),
        (_first("battle_id", "from-elsewhere"), "one of the corpus"),
        (_first("selection_order", 1), "selection_order is unique"),
        (_first("selection_order", 99), "counts from 0"),
        (_first("selection_order", -1), "counts from 0"),
        (lambda t: t.head(0), "at least one battle"),
    ],
)
def test_sample_is_a_sample(raw_battles, sampled_battles, breakage, told):
    check = corpus.sample_is_a_sample
    assert check(sampled_battles, raw_battles).passed
    result = check(breakage(sampled_battles), raw_battles)
    assert not result.passed
    assert told in result.description


def test_sample_covers_the_models(raw_battles, sampled_battles):
    check = corpus.sample_covers_the_models
    assert check(sampled_battles, raw_battles).passed
    without = sampled_battles[
        sampled_battles["model_a"].ne("dog") & sampled_battles["model_b"].ne("dog")
    ]
    result = check(without, raw_battles)
    assert not result.passed
    assert "dog" in result.description
    assert result.severity == dg.AssetCheckSeverity.WARN


def test_a_rare_model_is_covered_once_all_its_battles_are_chosen(raw_battles, sampled_battles):
    rare = raw_battles.head(1).assign(battle_id="rare", model_b="eel")
    everything = pd.concat([raw_battles, rare], ignore_index=True)
    chosen = pd.concat([sampled_battles, rare], ignore_index=True)
    assert corpus.sample_covers_the_models(chosen, everything).passed
    assert not corpus.sample_covers_the_models(sampled_battles, everything).passed
