"""Partitions that are taken off an instance, as the sensor does by its requests."""

from collections.abc import Iterable

import dagster as dg


def retire(
    instance: dg.DagsterInstance, *, corpora: Iterable[str] = (), judges: Iterable[str] = ()
) -> None:
    """Take corpora and judges off the instance; names that it does not know are left out."""
    for dimension, keys in {"corpus": corpora, "judge": judges}.items():
        for key in sorted(set(keys) & set(instance.get_dynamic_partitions(dimension))):
            instance.delete_dynamic_partition(dimension, key)
