"""Latest check results of a judge on a corpus, as the instance has them."""

import functools
from collections.abc import Collection, Iterable
from typing import Any

import dagster as dg
import pandas as pd
from dagster._core.event_api import PartitionKeyFilter  # the public query ignores partitions

from assets.partitions import CORPUS_JUDGE, corpus_judge_key
from resources.tables.declared import TABLES

_APART = {
    "candidate_verdicts",
    "candidate_ratings",
    "predictions",
    "drift_answers",
    "judge_drift",
}
"""Tables of a judge that say nothing of its ratings of the corpus' own models."""
UP_TO_LEADERBOARD = (
    "verdicts",
    "scored_battles",
    "beta_folds",
    "heldout_ratings",
    "conformal_calibration",
    "judge_diagnostics",
    "reliability_panel",
    "choice_verdicts",
    "score_verdicts",
    "soft_outcomes",
    "consistency",
    "judge_gate",
    "leaderboard",
)
"""What leads to a judge's leaderboard; its blocking checks settle whether the judge is compared."""
COLUMNS = ("asset", "name", "status", "blocking", "passed", "observed", "remedy", "run_id")
_ENDED = ("SUCCEEDED", "FAILED")


def judge_checks(instance: dg.DagsterInstance, corpus: str, judge: str) -> pd.DataFrame:
    """Return the last result of each check of a judge, one row per check that was ever planned.

    ``status`` is ``"SUCCEEDED"``, ``"FAILED"``, or another word where the run that planned the
    check never came to it because something before it failed: the table that it guards is then
    older than that run.
    """
    specs = _specs()
    records = instance.event_log_storage.get_latest_asset_check_execution_by_key(
        [spec.key for spec in specs], PartitionKeyFilter(key=corpus_judge_key(corpus, judge))
    )
    rows = [_row(spec, records[spec.key]) for spec in specs if spec.key in records]
    return pd.DataFrame(rows, columns=list(COLUMNS))


@functools.cache
def _specs() -> list[dg.AssetCheckSpec]:
    """Return the checks of every table of a judge; found when asked, since some of them ask."""
    specs = [
        spec
        for check in dg.load_asset_checks_from_package_name("assets")
        for spec in check.check_specs
        if spec.partitions_def == CORPUS_JUDGE and spec.asset_key.to_user_string() not in _APART
    ]
    place = {name: i for i, name in enumerate(TABLES)}
    return sorted(specs, key=lambda spec: place[spec.asset_key.to_user_string()])


def is_settled(checks: pd.DataFrame) -> bool:
    """Return whether no blocking check failed, or was left undone, when last tried."""
    return bool(checks.loc[checks["blocking"].astype(bool), "passed"].all())


def settled_judges(
    instance: dg.DagsterInstance,
    corpus: str,
    judges: Iterable[str],
    *,
    assets: Collection[str] | None = None,
) -> tuple[list[str], list[str]]:
    """Return, in order, the judges whose last run passed its gates, and the other judges.

    Gates of the named assets count, or else all of them.
    """
    passed = {}
    for judge in sorted(set(judges)):
        checks = judge_checks(instance, corpus, judge)
        own = checks if assets is None else checks[checks["asset"].isin(assets)]
        passed[judge] = is_settled(own) and not _was_cut_short(instance, own)
    return [j for j, well in passed.items() if well], [j for j, well in passed.items() if not well]


def _was_cut_short(instance: dg.DagsterInstance, checks: pd.DataFrame) -> bool:
    """Return whether a run ended before a check, of any kind: what follows its table is older."""
    undone = checks.loc[~checks["status"].isin(_ENDED), "run_id"].unique()
    runs = (instance.get_run_by_id(run) for run in undone)
    return any(run is not None and run.is_finished for run in runs)


def _row(spec: dg.AssetCheckSpec, record: Any) -> dict[str, Any]:
    status = record.status.value
    found = (
        record.event.dagster_event.asset_check_evaluation_data
        if status in _ENDED and record.event
        else None
    )
    told = {name: value.value for name, value in found.metadata.items()} if found else {}
    return {
        "asset": spec.asset_key.to_user_string(),
        "name": spec.name,
        "status": status,
        "blocking": spec.blocking,
        "passed": status == "SUCCEEDED",
        "observed": told.get("observed") or _seen(found),
        "remedy": told.get("remedy", ""),
        "run_id": record.run_id,
    }


def _seen(found: Any) -> str:
    """Return the description of a check without an observation, or that it did not run."""
    if found is None:
        return "not run: something before it failed"
    return found.description or "nothing to check"
