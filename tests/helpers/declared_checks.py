"""Checks of tables as functions."""

from functools import partial
from types import SimpleNamespace

import dagster as dg
import pandas as pd

from assets.partitions import corpus_judge_key
from judgeline.rating_options import RatingOptions
from judgeline.tables.schema import Table
from resources.tables.expectations import result_of


def checks_in(*tables: Table) -> SimpleNamespace:
    """Return an object whose attributes are the tables' checks, called with a table."""
    return SimpleNamespace(
        **{
            check.name: partial(result_of, table, check.name)
            for table in tables
            for check in table.checks
        }
    )


def checked(
    check: dg.AssetChecksDefinition, *tables: pd.DataFrame, rating: RatingOptions
) -> dg.AssetCheckResult:
    """Return the result of a check of a judge's tables, by the options of the ratings."""
    context = dg.build_op_context(partition_key=corpus_judge_key("tiny", "careful"))
    catalog = SimpleNamespace(corpus=lambda _slug: SimpleNamespace(rating=rating))
    return check(context, *tables, catalog)
