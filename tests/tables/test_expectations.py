"""Rules run on a table: what the result of a check says."""

import subprocess
import sys

import dagster as dg
import pandas as pd
import pytest

from judgeline.tables.rules import (
    among,
    at_least,
    different,
    has_columns,
    known,
    median_within,
    n_rows,
    none_of,
    unique,
    within,
)
from resources.tables import expectations
from resources.tables.expectations import evaluate

TABLE = pd.DataFrame({"battle_id": ["b1", "b2", "b3"], "share": [0.2, 0.4, 7.0]})
MANY = pd.DataFrame({"battle_id": [f"b{i}" for i in range(500)], "share": 2.0})
IN_RANGE = within("share", 0, 1)


def judged(table=TABLE, *rules, **options):
    return evaluate(
        table, rules or [IN_RANGE], ids=["battle_id"], remedy="Mend the reader.", **options
    )


def test_a_failure_names_the_rule_the_rows_the_values_and_the_remedy():
    result = judged()
    assert not result.passed
    assert result.description == (
        "Expected: share lies in [0, 1]; failing rows: 1, such as b3 (share=7) "
        "(3 rows in all). Mend the reader."
    )
    assert result.metadata["remedy"].value == "Mend the reader."
    assert result.metadata["failing_rows"].value == 1
    assert result.severity == dg.AssetCheckSeverity.ERROR
    assert judged(severity=dg.AssetCheckSeverity.WARN).severity == dg.AssetCheckSeverity.WARN
    records = judged(TABLE, IN_RANGE, unique("battle_id")).metadata["expectations"].records
    passed = {record.data["expectation"]: record.data["passed"] for record in records}
    assert passed == {"share lies in [0, 1]": False, "battle_id is unique": True}


@pytest.mark.parametrize(
    ("table", "rule", "said"),
    [
        (TABLE, n_rows(9, "nine rows"), "observed: 3"),
        (TABLE, has_columns(["share", "weight"], "whole", exact=False), "columns: weight"),
        (TABLE, has_columns(["share"], "whole"), "observed: ['battle_id', 'share']"),
        (TABLE, unique("weight"), "weight"),
        (TABLE, median_within("share", 1, 2, "median"), "observed: 0.4"),
        (TABLE, at_least("weight", "share", "heavier"), "could not be computed"),
        (TABLE[["share"]], IN_RANGE, "such as row 2"),  # no column names the rows
        (MANY, IN_RANGE, "failing rows: 500"),
        (TABLE.head(0), n_rows(1, "a row"), "observed: 0"),
    ],
)
def test_what_was_found_is_said_of_every_kind_of_rule(table, rule, said):
    result = judged(table, rule)
    assert not result.passed
    assert said in result.description
    assert result.description.count("share=2") in (0, 5)  # a few examples of many


def test_a_success_says_on_how_much():
    result = judged(TABLE.iloc[:2])
    assert result.passed
    assert result.description == "Holds on 2 rows: share lies in [0, 1] (share 0.2 to 0.4)."
    assert judged(TABLE.head(0)).passed


@pytest.mark.parametrize(
    "rule",
    [
        IN_RANGE,
        within("share", 0, mostly=0.9),
        among("battle_id", ["b1"]),
        none_of("battle_id", ["b1"], "not b1"),
        *known("share"),
        unique("battle_id"),
        unique("battle_id", "share"),
        at_least("weight", "share", "heavier"),
        different("battle_id", "name", "another name"),
        n_rows(1, "a row"),
        median_within("share", 0, 1, "median"),
        within("nowhere", 0, 1),
        unique("battle_id", "nowhere"),
    ],
)
def test_no_rows_keep_what_great_expectations_says_they_keep(monkeypatch, rule):
    empty = TABLE.assign(weight=1.0, name="n").head(0)
    found = judged(empty, rule)
    monkeypatch.setattr(expectations, "_has_no_row", lambda *_: False)
    assert judged(empty, rule) == found


@pytest.mark.slow
@pytest.mark.parametrize("module", ["resources.tables.expectations", "resources.tables.declared"])
def test_great_expectations_is_imported_only_when_a_check_runs(module):
    code = f"import sys, {module}; sys.exit('great_expectations' in sys.modules and 'too early')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_checks_of_a_process_share_one_data_source(monkeypatch):
    from great_expectations.datasource.fluent import PandasDatasource

    added, add = [], PandasDatasource.add_dataframe_asset
    monkeypatch.setattr(
        PandasDatasource,
        "add_dataframe_asset",
        lambda source, name: added.append(name) or add(source, name),
    )
    for share, passed in ((0.5, True), (2, False), (0.5, True)):
        assert judged(pd.DataFrame({"battle_id": ["b"], "share": [share]})).passed is passed
    assert len(added) <= 1
