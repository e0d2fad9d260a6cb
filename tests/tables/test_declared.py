"""Every declared table: its words, its types, its empty form, and that each rule can be broken."""

import math
import re
from collections import Counter

import pandas as pd
import pytest

from judgeline.tables.words import WORDS
from resources.tables.declared import TABLES
from resources.tables.expectations import result_of, results_of

N_RULES = """
raw_battles 2 battles 10 verdicts 18 choice_verdicts 15 score_verdicts 10 scored_battles 14
beta_folds 5 scoring_methods 6 leaderboard 14 adjusted_win_rates 7 judge_diagnostics 3
soft_outcomes 6 consistency 3
reference_ratings 3 rationale_embeddings 2 quantitative_outcomes 3 quantitative_judges 1
learnt_ratings 2
candidate_verdicts 1 candidate_ratings 2 judge_comparison 9
"""
"""Rules by table: one that is deleted breaks no other test."""
SCALES = """
0..1: coverage coverage human_win_rate naive_win_rate outcome pl ratio soft_outcome win_rate
  win_rate_lower win_rate_upper
-1..1: kappa kendall kendall spearman spearman
-9..9: difference_ab difference_ba score_difference score_difference
1..10: expected_score highest_score
0..: mae mae
1..: lowest_score n_turns
"""
"""Columns by the limits that a sentence states."""
RULES = [
    (table, check, rule)
    for table in TABLES.values()
    for check in table.checks
    for rule in check.rules
]


CELLS = {"str": "x", "bool": True, "object": "x"}
LEAST, FEW = -1e9, 3
SOUND = {
    "choice_verdicts": {"p_a": 1.0, "p_tie": 0.0, "p_b": 0.0, "covered": 1.0},
    "score_verdicts": {"covered": 1.0},
    "scored_battles": {"model_a": ["elk", "elk", "fox"], "model_b": ["fox", "hen", "hen"]},
    "scoring_methods": {"method": ["hard", "soft", "choice"]},
    "consistency": {"circular": 0.2, "equality": 0.2},
}
"""Cells of rows that keep rules between columns."""


def cells(**values):
    """A function that changes cells of the first row."""
    return lambda table: table.assign(
        **{name: [it, *table[name].iloc[1:]] for name, it in values.items()}
    )


BREAKS = {
    "parsed": lambda t: t.assign(status="parse_error"),
    "surplus_scores": cells(status="refusal"),
    "lowest_score": cells(clarity_a=0.5),
    "highest_score": cells(fluency_b=11.0),
    "complete": cells(order="AB"),
    "judged": cells(battle_id="another"),
    "n_unknown": cells(identity=None),
    "matches_status": cells(status="refusal"),
    "total": cells(p_tie=None),
    "on_scale": cells(score=1e6),
    "agree": lambda t: pd.concat(
        [t.assign(order="AB", choice=1.0), t.assign(order="BA", choice=0.0)]
    ),
    "component": cells(model_a="ant", model_b="bee"),
    "holds_others_together": lambda t: t.assign(model_b="hub"),
    "share_of_wins": lambda t: t.assign(judge_outcome=t["model_a"].eq("elk") * 1.0),
    "std_errors_from_zero": lambda t: t.assign(std_error=t["beta"]),
    "in_order": lambda t: t.assign(rank=[1, 2, 3], rating=[1.0, 2.0, 3.0]),
    "well_founded": cells(flags="few-battles"),
    "among_people": cells(flags="no-votes;beyond-anchors"),
    "candidate_ratings among_people": cells(flags="no-votes;beyond-anchors", control=None),
    "bounded": cells(upper=math.inf),
    "finite": cells(std_error=math.nan),
    "inside": cells(gap=1e6),
    "is_single": lambda t: t.assign(key="k", source="s", order="AB"),
    "has_the_length": cells(embedding=[1.0, 2.0]),
    "quantitative_outcomes complete": lambda t: t.assign(
        battle_id="b", method="m", held_out_model="h"
    ),
    "quantitative_judges ratio": lambda t: t.assign(metric="mse", value=9.0),
    "is_part": cells(circular=0.9),
    "founded": cells(n=0),
    "leaderboard explained": cells(rating=math.nan, flags=""),
    "adjusted_win_rates explained": cells(win_rate=None),
    "adjusted_win_rates inside": cells(win_rate_lower=0.9),
}
"""By its derived column, after the table's name where two have it: what breaks a rule."""


def limits(rule):
    """The limits of a rule on numbers; of a limit that depends on the table one of its own."""
    low, high = (rule.settings[end] for end in ("min_value", "max_value"))
    least = LEAST if low is None or callable(low) else low
    return least, least + 4 if high is None or callable(high) else high


def sound(table):
    """Rows that keep every rule of a table."""
    known = {name: CELLS.get(kind, 1) for name, kind in table.dtypes.items()}
    known |= {"status": "ok"} if "status" in known else {}
    for rule in (rule for check in table.checks for rule in check.rules):
        column = rule.settings.get("column")
        if rule.of is not None or column not in known:
            continue
        if "min_value" in rule.settings:
            least, most = limits(rule)
            known[column] = most - 1 if least == LEAST else (least + most) / 2
        elif "value_set" in rule.settings:
            known[column] = rule.settings["value_set"][0]
    known |= SOUND.get(table.name, {})
    lists = {name: it for name, it in known.items() if isinstance(it, list)}
    texts = [name for name, it in known.items() if it == "x" and table.dtypes[name] == "str"]
    varied = {name: [f"{name}-{row}" for row in range(FEW)] for name in texts}
    return pd.DataFrame([known] * FEW).assign(**lists, **varied)


def broken(table, rule):
    """Rows that break one rule of a table, and perhaps others."""
    rows, settings = sound(table), rule.settings
    column = settings.get("column")
    if column is not None and (rule.of or column not in rows):
        return BREAKS.get(f"{table.name} {column}", BREAKS.get(column))(rows)
    if rule.expectation == "ExpectColumnValuesToBeBetween":
        value = limits(rule)[0] - 1 if settings["max_value"] is None else 1e12
        return cells(**{column: value})(rows)
    if rule.expectation == "ExpectColumnValuesToBeInSet":
        return cells(**{column: "?" if isinstance(rows[column][0], str) else -7.0})(rows)
    return broken_by_kind(rule.expectation, rows, **settings)


def broken_by_kind(expectation, rows, column=None, column_B=None, column_list=(), **settings):  # noqa: N803
    match expectation.removeprefix("Expect"):
        case "ColumnValuesToNotBeNull":
            return cells(**{column: None})(rows)
        case "ColumnValuesToBeUnique" | "CompoundColumnsToBeUnique":
            return pd.concat([rows, rows.head(1)])
        case "ColumnPairValuesAToBeGreaterThanB":
            return cells(**{column_B: 1e9})(rows)
        case "SelectColumnValuesToBeUniqueWithinRecord":
            return rows.assign(**{column_list[1]: rows[column_list[0]]})
        case "TableRowCountToBeBetween":
            return rows.head(settings["min_value"] - 1)
    return rows.drop(columns=settings["column_set"][-1])


def beside(table):
    """Sound rows of the tables that a table's checks read beside it."""
    return {name: sound(TABLES[name]) for name in table.beside}


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_a_table_has_words_a_key_and_an_empty_form(table):
    assert set(table.columns) <= set(WORDS)
    assert len(set(table.columns)) == len(table.columns)
    assert set(table.key) <= set(table.columns)
    empty = table.empty()
    assert {name: str(kind) for name, kind in empty.dtypes.items()} == table.dtypes
    assert len(empty) == 0
    pd.testing.assert_frame_equal(table.typed(empty[table.columns[::-1]]), empty)


@pytest.mark.parametrize(
    "table", [table for table in TABLES.values() if table.checks], ids=lambda table: table.name
)
def test_sound_rows_pass_every_check_and_no_rows_break_no_value(table):
    others = beside(table)
    results = results_of(table, sound(table), **others)
    assert [one.description for one in results if not one.passed] == []
    none = {name: other.head(0) for name, other in others.items()}
    failed = [one.description for one in results_of(table, table.empty(), **none) if not one.passed]
    assert all("observed: 0 " in said or "no verdicts" in said for said in failed)


def test_no_rule_is_lost_and_none_became_loose():
    found = Counter(table.name for table, _, _ in RULES)
    assert found == {name: int(n) for name, n in re.findall(r"(\w+) (\d+)", N_RULES)}
    scales = {}
    for _, _, rule in RULES:
        if re.search(r"lies in \[|is at least \d+$", rule.note):
            low, high = rule.settings["min_value"], rule.settings["max_value"]
            scale = scales.setdefault(f"{low}..{'' if high is None else high}", [])
            scale.append(rule.settings["column"])
    stated = re.split(r"\n(?=\S)", SCALES.strip())
    assert scales.keys() == {line.split(":")[0] for line in stated}
    for line in stated:
        scale, columns = line.split(":")
        assert sorted(scales[scale]) == columns.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "check", "rule"), RULES, ids=[f"{check.name}-{rule.note}" for _, check, rule in RULES]
)
def test_a_row_that_breaks_a_rule_fails_its_check(table, check, rule):
    rows = broken(table, rule)
    result = result_of(table, check.name, rows, **beside(table))
    assert not result.passed
    assert result.severity.value == ("WARN" if check.warns else "ERROR")
    assert f"expected: {rule.note}".lower() in result.description.lower()
    remedy = check.remedy if isinstance(check.remedy, str) else check.remedy(rows)
    assert remedy in result.description
