"""Partitions of the lineage: corpora, judges, and each judge on each corpus.

Partition what costs money or fails alone; loop over mathematics. A judged asset has one
partition per corpus and judge, so that a new judge is a new partition and nothing else moves.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg
import pandas as pd
from sqlalchemy.exc import IntegrityError

from resources.tables.store import require_slug


@contextmanager
def previews_silenced() -> Iterator[None]:
    """Silence Dagster's notices on the preview features in use, where they are used.

    They are partitioned asset checks, the mapping from two dimensions to one, and selections
    by group in a string; tests fail if an upgrade changes any of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        yield


CORPUS = dg.DynamicPartitionsDefinition(name="corpus")
JUDGE = dg.DynamicPartitionsDefinition(name="judge")
CORPUS_JUDGE = dg.MultiPartitionsDefinition({"corpus": CORPUS, "judge": JUDGE})
with previews_silenced():
    BY_CORPUS = dg.MultiToSingleDimensionPartitionMapping("corpus")


def of_corpus(key: str | None = None, *columns: str) -> dg.AssetIn:
    """Return how a judged asset reads a table, or columns, of its corpus."""
    some = {"columns": list(columns)} if columns else {}
    return dg.AssetIn(key, partition_mapping=BY_CORPUS, metadata=some)


def _if_there(columns: tuple[str, ...], **settings: bool) -> dict[str, object]:
    """Return the metadata of an input that may be missing, of which only some columns are read."""
    some = {"columns": list(columns)} if columns else {}
    return {"allow_missing_partitions": True, **settings, **some}


def of_every_judge(*columns: str) -> dg.AssetIn:
    """Return how a corpus asset reads the tables, or columns, of those judges that have one."""
    return dg.AssetIn(partition_mapping=BY_CORPUS, metadata=_if_there(columns, fans_in=True))


def if_there(*columns: str) -> dg.AssetIn:
    """Return how an asset reads a table, or columns, of its partition; None if it is missing."""
    return dg.AssetIn(metadata=_if_there(columns))


def of_corpus_if_there(*columns: str) -> dg.AssetIn:
    """Return how a judged asset reads a table, or columns, of its corpus; None if it is missing."""
    return dg.AssetIn(partition_mapping=BY_CORPUS, metadata=_if_there(columns))


def corpus_judge_key(corpus: str, judge: str) -> dg.MultiPartitionKey:
    """Return the partition key of a judge on a corpus; its text form is ``corpus|judge``."""
    return dg.MultiPartitionKey({"corpus": corpus, "judge": judge})


def corpus_and_judge(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
) -> tuple[str, str]:
    """Return the corpus and the judge that a judged asset is being made, or checked, for."""
    key = context.partition_key
    if not isinstance(key, dg.MultiPartitionKey):
        raise TypeError(f"partition {key!r} names no judge; expected 'corpus|judge'")
    return key.keys_by_dimension["corpus"], key.keys_by_dimension["judge"]


def by_judge(tables: Mapping[Any, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return fanned-in tables by judge, in the order of the judges' names."""
    named = {key.keys_by_dimension["judge"]: table for key, table in tables.items()}
    return dict(sorted(named.items()))


def register(
    instance: dg.DagsterInstance, *, corpora: Iterable[str] = (), judges: Iterable[str] = ()
) -> None:
    """Make corpora and judges known to the instance; names already known stay as they are.

    ValueError if a name is not a slug; nothing is registered then.
    """
    wanted = {"corpus": list(corpora), "judge": list(judges)}
    for keys in wanted.values():
        for key in keys:
            require_slug(key)
    for dimension, keys in wanted.items():
        for key in sorted(set(keys) - set(instance.get_dynamic_partitions(dimension))):
            _add(instance, dimension, key)


def _add(instance: dg.DagsterInstance, dimension: str, key: str) -> None:
    """Add one partition; another process that adds it at the same moment is no failure."""
    try:
        instance.add_dynamic_partitions(dimension, [key])
    except IntegrityError:
        if key not in instance.get_dynamic_partitions(dimension):
            raise
