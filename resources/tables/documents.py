"""Declared checks as Great Expectations keeps them: suites as JSON, data docs as pages."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judgeline.tables.schema import Table
from resources.tables.declared import TABLES
from resources.tables.expectations import expectations_of, grouped
from resources.tables.store import ParquetStore

_COUNTED = {"result_format": "BASIC", "partial_unexpected_count": 0}  # and no cell is shown


class Validated(NamedTuple):
    """A suite that a stored table was held against; `failed` are the sentences that do not hold.

    A suite `is_broken` where one of them does more than warn.
    """

    suite: str
    n_expectations: int
    failed: tuple[str, ...]
    is_broken: bool


def write_documents(out: Path, store: ParquetStore, corpus: str) -> Iterator[Validated]:
    """Write suites and data docs of a corpus's stored tables below ``out/gx``; yield each suite.

    A suite is named by its table and judge, and by its first check where that is about some rows.
    Results have counts and ranges, and no texts of the tables.
    """
    stored = list(_stored(store, corpus))
    if not stored:
        return
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    ours = out / "gx" / ".judgeline"
    if (out / "gx").exists() and not ours.exists():
        raise ValueError(f"{out / 'gx'} is a project of somebody else; name another folder")
    shutil.rmtree(out / "gx", ignore_errors=True)  # suites of tables that are gone
    context = gx.get_context(mode="file", project_root_dir=out)
    ours.touch()
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_or_update_pandas("tables")
    for declared, judge, table in stored:
        beside = {name: store.stored(name, corpus) for name in declared.beside}
        known = {name: other for name, other in beside.items() if other is not None}
        if lacking := sorted(beside.keys() - known.keys()):
            said = f"cannot be tested without {', '.join(lacking)}, which is not stored"
            yield Validated(declared.name, 0, (said,), is_broken=True)
        able = [one.name for one in declared.checks if known.keys() >= {*one.beside.split()}]
        for checks, shown in grouped(declared, table, able, **known):
            part = checks[0].name if checks[0].rows else None
            name = ".".join(filter(None, (declared.name, judge, part)))
            rules = [rule for check in checks for rule in check.rules]
            warns = [check.warns for check in checks for _ in check.rules]
            failed = _validate(context, source, name, *expectations_of(rules, shown))
            notes = tuple(rules[place].note for place in failed)
            yield Validated(name, len(rules), notes, any(not warns[place] for place in failed))
    context.build_data_docs()


def _stored(store: ParquetStore, corpus: str) -> Iterator[tuple[Table, str | None, pd.DataFrame]]:
    """Yield the stored tables of a corpus that have checks, with their judges."""
    for declared in (table for table in TABLES.values() if table.checks):
        for keys in ((), *((judge,) for judge in store.partitions(declared.name, corpus))):
            table = store.stored(declared.name, corpus, *keys)
            if table is not None:
                yield declared, keys[0] if keys else None, table


def _validate(
    context: Any, source: Any, name: str, expectations: list[Any], table: pd.DataFrame
) -> list[int]:
    """Add a suite to the project, hold a table against it, return the places of what fails."""
    import great_expectations as gx

    suite = context.suites.add_or_update(gx.ExpectationSuite(name=name, expectations=expectations))
    asset = source.add_dataframe_asset(name)
    definition = gx.ValidationDefinition(
        name=name, data=asset.add_batch_definition_whole_dataframe("whole"), suite=suite
    )
    found = context.validation_definitions.add_or_update(definition).run(
        batch_parameters={"dataframe": table.reset_index(drop=True)}, result_format=_COUNTED
    )
    failed = [one.expectation_config.meta["index"] for one in found.results if not one.success]
    return sorted(failed)
