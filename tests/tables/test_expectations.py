import subprocess
import sys

import dagster as dg
import great_expectations.expectations as gxe
import pandas as pd
import pytest

from resources.tables.expectations import evaluate

TABLE = pd.DataFrame({"battle_id": ["b1", "b2", "b3"], "share": [0.2, 0.4, 7.0]})
IN_RANGE = gxe.ExpectColumnValuesToBeBetween(
    column="share", min_value=0, max_value=1, notes="share lies in [0, 1]"
)


def judged(table=TABLE, expectations=(IN_RANGE,), **options):
    return evaluate(
        table, list(expectations), ids=["battle_id"], remedy="Mend the reader.", **options
    )


def test_failure_names_the_expectation_the_rows_the_values_and_the_remedy():
    result = judged()
    assert not result.passed
    assert result.description == (
        "Expected: share lies in [0, 1]; failing rows: 1, such as b3 (share=7) "
        "(3 rows in all). Mend the reader."
    )
    assert result.metadata["remedy"].value == "Mend the reader."
    assert result.metadata["failing_rows"].value == 1
    assert result.severity == dg.AssetCheckSeverity.ERROR


def test_success_says_on_how_much():
    result = judged(TABLE.iloc[:2])
    assert result.passed
    assert result.description == ("Holds on 2 rows: share lies in [0, 1] (share 0.2 to 0.4).")


def test_severity_is_the_authors_choice():
    result = judged(severity=dg.AssetCheckSeverity.WARN)
    assert result.severity == dg.AssetCheckSeverity.WARN


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        (gxe.ExpectTableRowCountToBeBetween(min_value=9, notes="nine rows"), "observed: 3"),
        (
            gxe.ExpectTableColumnsToMatchSet(
                column_set=["share", "weight"], exact_match=False, notes="columns"
            ),
            "missing columns: weight",
        ),
        (gxe.ExpectColumnValuesToBeUnique(column="weight"), "weight"),
        (gxe.ExpectColumnMaxToBeBetween(column="share", max_value=1, notes="peak"), "observed: 7"),
        (gxe.ExpectColumnValuesToBeBetween(column="share", max_value=1), "max_value 1"),
    ],
)
def test_what_was_found_is_told_for_every_kind_of_expectation(expectation, told):
    result = judged(expectations=[expectation])
    assert not result.passed
    assert told in result.description


def test_all_results_are_listed_and_each_failure_is_told():
    exact = gxe.ExpectColumnValuesToBeUnique(column="battle_id", notes="battle_id is unique")
    records = judged(expectations=[IN_RANGE, exact]).metadata["expectations"].records
    passed = {record.data["expectation"]: record.data["passed"] for record in records}
    assert passed == {"share lies in [0, 1]": False, "battle_id is unique": True}


def test_rows_are_counted_where_nothing_names_them():
    result = judged(TABLE[["share"]])
    assert "such as row 2" in result.description


def test_many_failing_rows_are_counted_and_a_few_shown():
    table = pd.DataFrame({"battle_id": [f"b{i}" for i in range(500)], "share": 2.0})
    result = judged(table)
    assert "failing rows: 500" in result.description
    assert result.description.count("share=2") == 5


def test_an_empty_table_meets_value_expectations_but_no_row_count():
    empty = TABLE.iloc[:0]
    assert judged(empty).passed
    assert not judged(empty, [gxe.ExpectTableRowCountToBeBetween(min_value=1)]).passed


def test_great_expectations_is_imported_only_when_a_check_runs():
    code = (
        "import sys, resources.tables.expectations; "
        "sys.exit('great_expectations' in sys.modules and 'imported too early' or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_checks_of_a_process_share_one_data_source(monkeypatch):
    from great_expectations.datasource.fluent import PandasDatasource

    added, add = [], PandasDatasource.add_dataframe_asset

    def counted(source, name):
        added.append(name)
        return add(source, name)

    monkeypatch.setattr(PandasDatasource, "add_dataframe_asset", counted)
    for limit, passed in ((9, True), (2, False), (9, True)):
        table = pd.DataFrame({"n": [1, limit - 6]})
        expectation = gxe.ExpectColumnValuesToBeBetween(column="n", min_value=0)
        assert evaluate(table, [expectation], ids=[], remedy="none").passed is passed
    assert len(added) <= 1
