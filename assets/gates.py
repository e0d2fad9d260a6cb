"""How the latest checks of a partition came out, as the instance remembers them."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
import pandas as pd
from dagster._core.event_api import PartitionKeyFilter  # the public way ignores partitions

COLUMNS = ("asset", "name", "status", "blocking", "passed", "observed", "remedy")


def latest_checks(
    instance: dg.DagsterInstance, checks: Sequence[dg.AssetCheckSpec], partition: str
) -> pd.DataFrame:
    """Return how each check last came out on a partition, one row per check that was planned.

    ``status`` is ``"SUCCEEDED"``, ``"FAILED"``, or another word where the run that planned the
    check never came to it, because something before it failed: what its asset holds is then
    older than that run.
    """
    records = instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [check.key for check in checks], PartitionKeyFilter(key=partition)
    )
    rows = [_row(check, records[check.key]) for check in checks if check.key in records]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def is_settled(checks: pd.DataFrame) -> bool:
    """Return whether nothing that blocks failed, or was left undone, when last tried."""
    return bool(checks.loc[checks["blocking"].astype(bool), "status"].eq("SUCCEEDED").all())


def _row(check: dg.AssetCheckSpec, record: Any) -> dict[str, Any]:
    event = record.event and record.event.dagster_event
    found = event.event_specific_data if record.status.value in ("SUCCEEDED", "FAILED") else None
    metadata = found.metadata if found else {}
    told = {name: metadata[name].value for name in ("observed", "remedy") if name in metadata}
    return {
        "asset": check.asset_key.to_user_string(),
        "name": check.name,
        "status": record.status.value,
        "blocking": check.blocking,
        "passed": record.status.value == "SUCCEEDED",
        "observed": told.get("observed", (found and found.description) or "not run"),
        "remedy": told.get("remedy", ""),
    }
