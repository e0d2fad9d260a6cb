"""Declared checks of a table, run by Great Expectations, with results as those of asset checks.

Great Expectations takes seconds to import: that happens when the first check runs.
"""

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import dagster as dg
import pandas as pd

from judgeline.tables.rules import Rule
from judgeline.tables.schema import Check, Table

N_EXAMPLES = 5


def results_of(
    declared: Table,
    table: pd.DataFrame,
    names: Collection[str] | None = None,
    **beside: pd.DataFrame,
) -> Iterator[dg.AssetCheckResult]:
    """Yield the results of a table's checks, or of those in `names`; `beside` has other tables."""

    def suite(check: Check) -> Suite:
        remedy = check.remedy if isinstance(check.remedy, str) else check.remedy(table)
        level = dg.AssetCheckSeverity
        return check.rules, remedy, level.WARN if check.warns else level.ERROR

    for checks, shown in grouped(declared, table, names, **beside):
        ids = checks[0].ids or declared.key
        results = evaluate_together(shown, [suite(one) for one in checks], ids=ids)
        for check, result in zip(checks, results, strict=True):
            yield result._replace(check_name=check.name)


def grouped(
    declared: Table,
    table: pd.DataFrame,
    names: Collection[str] | None = None,
    **beside: pd.DataFrame,
) -> Iterator[tuple[list[Check], pd.DataFrame]]:
    """Yield groups of checks, or of those in `names`, that test the same rows, with these rows."""
    groups: dict[Any, list[Check]] = {}
    for check in declared.checks:
        if names is None or check.name in names:
            about = check.rows, check.beside, tuple(check.ids or declared.key)
            groups.setdefault(about, []).append(check)
    for (rows, others, _), checks in groups.items():
        shown = rows(table, *(beside[name] for name in others.split())) if rows else table
        yield checks, shown


def result_of(
    declared: Table, name: str, table: pd.DataFrame, **beside: pd.DataFrame
) -> dg.AssetCheckResult:
    """Return the result of one declared check of a table."""
    (result,) = results_of(declared, table, [name], **beside)
    return result


def check_result(
    observed: str, remedy: str = "", *, passed: bool, warns: bool = True, **metadata: Any
) -> dg.AssetCheckResult:
    """Return the result of a check that is no rule of rows: its observation and its remedy."""
    return dg.AssetCheckResult(
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
        description=observed if passed else f"{observed} {remedy}".strip(),
        metadata={"observed": observed, "remedy": remedy, **metadata},
    )


def evaluate(
    table: pd.DataFrame,
    rules: Sequence[Rule],
    *,
    ids: Sequence[str],
    remedy: str,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
) -> dg.AssetCheckResult:
    """Return the result of some rules of a table, with the failing rows and the remedy."""
    (result,) = evaluate_together(table, [(rules, remedy, severity)], ids=ids)
    return result


Suite = tuple[Sequence[Rule], str, dg.AssetCheckSeverity]
"""The rules of one check, the remedy where one is broken, and how grave that is."""


def evaluate_together(
    table: pd.DataFrame, suites: Sequence[Suite], *, ids: Sequence[str]
) -> list[dg.AssetCheckResult]:
    """Return the results of several checks of one table from one evaluation."""
    made, table = expectations_of([rule for own, _, _ in suites for rule in own], table)
    findings = iter([_finding(one, table, ids) for one in _validate(table, made, ids)])
    return [
        _result([next(findings) for _ in own], len(table), remedy, severity)
        for own, remedy, severity in suites
    ]


def expectations_of(rules: Sequence[Rule], table: pd.DataFrame) -> tuple[list[Any], pd.DataFrame]:
    """Return rules as numbered expectations, and the table with the columns that they test."""
    import great_expectations.expectations as gxe

    made = []
    for number, rule in enumerate(rules):
        if rule.of is not None:
            with suppress(KeyError):  # the expectation will say that it lacks the column
                table = table.assign(**{rule.settings["column"]: rule.of(table)})
        settings = {name: it(table) if callable(it) else it for name, it in rule.settings.items()}
        kind = getattr(gxe, rule.expectation)
        made.append(kind(**settings, notes=rule.note, meta={"index": number}))
    return made, table


def _result(
    findings: Sequence[Mapping[str, Any]], n_rows: int, remedy: str, severity: dg.AssetCheckSeverity
) -> dg.AssetCheckResult:
    failed = [finding for finding in findings if not finding["passed"]]
    counted = f"{n_rows:,} row{'' if n_rows == 1 else 's'}"
    observed = "; ".join(_sentence(finding) for finding in failed)
    if failed:
        description = f"{observed[0].upper()}{observed[1:]} ({counted} in all). {remedy}"
    else:
        seen = "; ".join(f"{f['expectation']} ({f['observed']})" for f in findings if f["observed"])
        held = "Holds" if len(findings) == 1 else f"All {len(findings)} expectations hold"
        description = f"{held} on {counted}{': ' + seen if seen else ''}."
    return dg.AssetCheckResult(
        passed=not failed,
        severity=severity,
        description=description,
        metadata={
            "expectations": dg.MetadataValue.table([dg.TableRecord(one) for one in findings]),
            "observed": observed or description,
            "remedy": remedy,
            "rows": n_rows,
            "failing_rows": max((finding["failing_rows"] for finding in failed), default=0),
        },
    )


@functools.cache
def _batches() -> Any:
    """Return the batch definition for tables; one for the process, since each is costly to add."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_pandas("tables")
    return source.add_dataframe_asset("table").add_batch_definition_whole_dataframe("all")


def _validate(table: pd.DataFrame, expectations: Sequence[Any], ids: Sequence[str]) -> list[Any]:
    """Return the results in order; one that all rows keep has no details, which take long."""
    import great_expectations as gx

    present = [column for column in ids if column in table.columns]
    details = {
        "result_format": "SUMMARY",
        "partial_unexpected_count": N_EXAMPLES,
        **({"unexpected_index_column_names": present} if present else {}),
    }
    of_all_rows = [one for one in expectations if getattr(one, "mostly", None) == 1]
    found = {one.meta["index"]: _held(one) for one in expectations if _has_no_row(table, one)}
    for some, result_format in ((of_all_rows, "BOOLEAN_ONLY"), (expectations, details)):
        if left := [one for one in some if one.meta["index"] not in found]:
            batch = _batches().get_batch({"dataframe": table.reset_index(drop=True)})
            suite = gx.ExpectationSuite(name="suite", expectations=left)
            for result in batch.validate(suite, result_format=result_format).results:
                if result.success or result_format is details:
                    found[result.expectation_config.meta["index"]] = result
    return [found[index] for index in sorted(found)]


def _has_no_row(table: pd.DataFrame, expectation: Any) -> bool:
    """Return whether a table has an expectation's columns, and no row that could break it."""
    single = {getattr(expectation, name, None) for name in ("column", "column_A", "column_B")}
    subjects = (single - {None}).union(getattr(expectation, "column_list", ()))
    is_of_rows = hasattr(expectation, "mostly")
    return is_of_rows and table.empty and subjects <= {*table.columns}


def _held(expectation: Any) -> Any:
    """Return the result of an expectation that no row broke."""
    from great_expectations.core import ExpectationValidationResult

    return ExpectationValidationResult(True, expectation.configuration, result={})


def _finding(result: Any, table: pd.DataFrame, ids: Sequence[str]) -> dict[str, Any]:
    details = result.result
    failing = int(details.get("unexpected_count") or 0)
    observed = details.get("observed_value")
    missing = details.get("details", {}).get("mismatched", {}).get("missing")
    if not result.success and not details:
        observed = f"could not be computed: {_cause(result.exception_info)}"
    elif missing:
        observed = f"missing columns: {', '.join(missing)}"
    elif observed is None and result.success:
        observed = _range(table, result.expectation_config.kwargs)
    rows = details.get("partial_unexpected_index_list") or []
    return {
        "expectation": result.expectation_config.notes,
        "passed": bool(result.success),
        "observed": "" if observed is None else _brief(observed),
        "failing_rows": failing,
        "examples": "; ".join(dict.fromkeys(_row(row, ids) for row in rows)),
    }


def _range(table: pd.DataFrame, settings: Mapping[str, Any]) -> str | None:
    """Return the smallest and largest values of the numeric columns that were looked at."""
    subjects = ("column", "column_A", "column_B")
    said = []
    for column in (settings[name] for name in subjects if name in settings):
        values = table[column].dropna()
        is_number = pd.api.types.is_numeric_dtype(values) and values.dtype not in (bool, "boolean")
        if is_number and len(values):
            low, high = (f"{float(value):.4g}" for value in (values.min(), values.max()))
            said.append(f"{column} {low}" if low == high else f"{column} {low} to {high}")
    return ", ".join(said) or None


def _sentence(finding: Mapping[str, Any]) -> str:
    told = f"expected: {finding['expectation']}"
    if finding["failing_rows"]:
        told += f"; failing rows: {finding['failing_rows']:,}, such as {finding['examples']}"
    return told + (f"; observed: {finding['observed']}" if finding["observed"] != "" else "")


def _row(row: Mapping[str, Any] | int, ids: Sequence[str]) -> str:
    if not isinstance(row, Mapping):  # the table has none of the columns that name its rows
        return f"row {row}"
    name = " ".join(str(row[column]) for column in ids if column in row)
    values = ", ".join(f"{key}={_brief(value)}" for key, value in row.items() if key not in ids)
    return f"{name} ({values})" if values else name


def _brief(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= 80 else text[:79] + "…"


def _cause(exception_info: Any) -> str:
    """Return the message at the bottom of the nested record of an expectation that crashed."""
    if not isinstance(exception_info, Mapping):
        return str(exception_info)
    if message := exception_info.get("exception_message"):
        return _brief(message)
    return next((_cause(nested) for nested in exception_info.values()), "no reason given")
