"""Every declared table: its words, its types, its empty form, and that each rule can be broken."""

import re
from collections import Counter

import pandas as pd
import pytest

from judgeline.elo import HeldOutRatings
from judgeline.elo.beta import BetaFolds
from judgeline.winrate.models import ModelWinRates
from resources.tables.declared import TABLES
from resources.tables.words import WORDS

MADE_BY = {
    "adjusted_win_rates": ModelWinRates._fields,
    "beta_folds": BetaFolds._fields,
    "heldout_ratings": HeldOutRatings._fields,
}
"""Columns of what is computed, where a table takes them as they are."""
N_RULES = """
raw_battles 2 battles 10 verdicts 18 choice_verdicts 13 score_verdicts 10 scored_battles 14
beta_folds 5 scoring_methods 6 leaderboard 11 adjusted_win_rates 8 judge_diagnostics 3
soft_outcomes 6 consistency 3
reference_ratings 3 rationale_embeddings 2 quantitative_outcomes 3 quantitative_judges 1
candidate_verdicts 1 candidate_ratings 1 judge_comparison 9 rating_systems 3
"""
"""Rules by table: one that is deleted breaks no other test."""
RULES = [
    (table, check, rule)
    for table in TABLES.values()
    for check in table.checks
    for rule in check.rules
]


def beside(table):
    """Sound rows of the tables that a table's checks read beside it."""
    return {name: TABLES[name].sound() for name in table.beside}


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_a_table_has_words_a_key_and_an_empty_form(table):
    assert set(table.columns) <= set(WORDS)
    assert len(set(table.columns)) == len(table.columns)
    assert set(table.key) <= set(table.columns)
    empty = table.empty()
    assert {name: str(kind) for name, kind in empty.dtypes.items()} == table.dtypes
    assert len(empty) == 0
    pd.testing.assert_frame_equal(table.typed(empty[table.columns[::-1]]), empty)


@pytest.mark.parametrize("name", MADE_BY)
def test_a_table_has_the_columns_of_what_is_computed(name):
    assert tuple(TABLES[name].columns) == tuple(MADE_BY[name])


@pytest.mark.parametrize(
    "table", [table for table in TABLES.values() if table.checks], ids=lambda table: table.name
)
def test_sound_rows_pass_every_check_and_no_rows_break_no_value(table):
    results = table.results(table.sound(), **beside(table))
    assert [one.description for one in results if not one.passed] == []
    results = table.results(
        table.empty(), **{name: beside(table)[name].head(0) for name in table.beside}
    )
    failed = [one.description for one in results if not one.passed]
    assert all("observed: 0 " in said or "no verdicts" in said for said in failed)


def test_a_sentence_has_the_limits_of_its_rule():
    """A rule that became loose would have to say so."""
    loose = []
    for _, _, rule in RULES:
        values = rule.settings.get("value_set") or [None]
        ends = {"min_value": min(values), "max_value": max(values)}
        limits = [rule.settings.get(end, known) for end, known in ends.items()]
        told = re.findall(r"\[(.+), (.+)\]", rule.note.replace("is a share", "[0, 1]"))
        loose += [rule.note for both in told if [float(end) for end in both] != limits]
        least = re.findall(
            r"(?:is at least|is below) (\d+)", rule.note.replace("is positive", "is below 0")
        )
        loose += [rule.note for end in least if float(end) != limits[0]]
        if re.search(r"is 1, 0\.5(,| or) 0", rule.note) and sorted(values) != [0.0, 0.5, 1.0]:
            loose.append(rule.note)
    assert loose == []


def test_no_rule_is_lost():
    found = Counter(table.name for table, _, _ in RULES)
    assert found == {name: int(n) for name, n in re.findall(r"(\w+) (\d+)", N_RULES)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "check", "rule"), RULES, ids=[f"{check.name}-{rule.note}" for _, check, rule in RULES]
)
def test_a_row_that_breaks_a_rule_fails_its_check(table, check, rule):
    assert rule.breaks is not None
    broken = rule.breaks(table.sound())
    result = table.check(check.name, broken, **beside(table))
    assert not result.passed
    assert result.severity == check.severity
    assert f"expected: {rule.note}".lower() in result.description.lower()
    assert check.advice(broken) in result.description
