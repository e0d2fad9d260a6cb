"""Column lineage of tables, as the catalogue shows it."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

Sources = Mapping[str, Mapping[str, Sequence[str]]]


def columns_from(sources: Sources) -> dict[str, Any]:
    """Return metadata that says which columns of which assets each column was made from."""
    lineage = {
        column: [
            dg.TableColumnDep(asset_key=dg.AssetKey(asset), column_name=name)
            for asset, names in read.items()
            for name in names
        ]
        for column, read in sources.items()
    }
    return {"dagster/column_lineage": dg.TableColumnLineage(deps_by_column=lineage)}
