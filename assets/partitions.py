"""Partitions of the lineage: corpora, judges, and each judge on each corpus.

Partition what costs money or fails alone; loop over mathematics. A judged asset has one
partition per corpus and judge, so that a new judge is a new partition and nothing else moves.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any, get_args, get_origin

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


_OF_CORPUS = (
    "raw_battles quarantined_battles recorded_verdicts battles sampled_battles candidates "
    "candidate_battles pooled_leaderboard judge_comparison report learnt_ratings votes"
)
OF_CORPUS = frozenset(_OF_CORPUS.split())
"""Assets with a partition for each corpus; all others have one for each judge on each corpus."""


def partitions_of(asset: str) -> dg.PartitionsDefinition:
    """Return the partitions of an asset."""
    return CORPUS if asset in OF_CORPUS else CORPUS_JUDGE


def read_as(
    *columns: str, of_corpus: bool = False, may_lack: bool = False, fans_in: bool = False
) -> dg.AssetIn:
    """Return how an asset reads a table, or columns of it.

    A judged asset reads one `of_corpus`; one that `may_lack` is None where it is missing; one that
    `fans_in` is of all judges that have one.
    """
    metadata: dict[str, Any] = {"columns": list(columns)} if columns else {}
    metadata |= {"allow_missing_partitions": True} if may_lack or fans_in else {}
    metadata |= {"fans_in": True} if fans_in else {}
    return dg.AssetIn(
        partition_mapping=BY_CORPUS if of_corpus or fans_in else None, metadata=metadata
    )


def inputs_of(
    function: Callable[..., Any],
    columns: Mapping[str, Sequence[str]],
    asset: str,
) -> dict[str, dg.AssetIn]:
    """Return how a function of an asset reads the other tables that it takes, by their types.

    A ``DataFrame`` has to be there, a ``DataFrame | None`` may be missing, and a ``dict`` has the
    tables of all judges. `columns` names those that are read of a table, by default all.
    """
    taken = [one for one in signature(function).parameters.values() if one.kind != one.VAR_KEYWORD]
    kinds = {one.name: (one.annotation, *get_args(one.annotation)) for one in taken}
    return {
        name: read_as(
            *columns.get(name, ()),
            of_corpus=asset not in OF_CORPUS and name in OF_CORPUS,
            may_lack=type(None) in kind,
            fans_in=get_origin(kind[0]) is dict,
        )
        for name, kind in kinds.items()
        if pd.DataFrame in kind and name != asset
    }


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
