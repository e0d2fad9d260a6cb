"""Materialisations and results of checks behind a rating, as the instance has them.

What belongs here: reading the instance's record. What does not: what any of it means (`why`).
"""

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import dagster as dg
import pandas as pd
from dagster._core.event_api import PartitionKeyFilter  # the public query ignores partitions

from assets.checks import steps_of_checks
from assets.partitions import CORPUS_JUDGE, corpus_and_judge, corpus_judge_key
from judgeline.judges.judge import ORIGIN
from resources.tables.declared import TABLES

OF_CORPUS = (
    "raw_battles",
    "battles",
    "sampled_battles",
    "votes",
    "candidates",
    "candidate_battles",
)
OF_JUDGE = (
    "verdicts",
    "scored_battles",
    "beta_folds",
    "heldout_ratings",
    "conformal_calibration",
    "judge_gate",
    "candidate_verdicts",
    "candidate_ratings",
    "leaderboard",
    "battle_influences",
)
OF_ALL_JUDGES = ("pooled_leaderboard",)
"""Assets between a corpus and a rating, in the order in which they are made."""

SAID = ("content_revision", "sample_seed", "score_basis", "votes", "rating_settings", *ORIGIN)
"""Metadata of these assets that say what a rating was made of."""

BEFORE_RATINGS = ("raw_battles", "sampled_battles", "verdicts", "scored_battles", "beta_folds")
"""Assets between a corpus and its held-out ratings, as these name their sources."""

MADE_FROM = "made_from"
"""Metadata of a leaderboard that holds all of these."""


class Made(NamedTuple):
    """One materialisation: its time (UTC, ISO), run, code version and metadata."""

    asset: str
    made_at: str
    run_id: str
    code_version: str
    said: Mapping[str, Any]


def last_made(
    instance: dg.DagsterInstance, corpus: str, judge: str, assets: Iterable[str]
) -> list[Made]:
    """Return the latest materialisation of each asset's partition, of those that have one."""
    found = []
    for asset in assets:
        of_corpus = asset in (*OF_CORPUS, *OF_ALL_JUDGES)
        record = latest(instance, asset, corpus if of_corpus else corpus_judge_key(corpus, judge))
        found += [_made(asset, record)] if record else []
    return found


def latest(instance: dg.DagsterInstance, asset: str, partition: str) -> dg.EventLogRecord | None:
    """Return the record of the newest materialisation of a partition."""
    wanted = dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[partition])
    return next(iter(instance.fetch_materializations(wanted, limit=1).records), None)


def latest_said(
    instance: dg.DagsterInstance, asset: str, partitions: Sequence[str], most: int
) -> list[dict[str, Any]]:
    """Return the metadata of the newest materialisations of some partitions, the newest first."""
    if not partitions:  # which would stand for all
        return []
    wanted = dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=partitions)
    return [*map(metadata_of, instance.fetch_materializations(wanted, limit=most).records)]


def metadata_of(record: dg.EventLogRecord | None) -> dict[str, Any]:
    """Return the metadata of a materialisation by name; none of none."""
    made = record.asset_materialization if record else None
    return {name: value.value for name, value in made.metadata.items()} if made else {}


def _made(asset: str, record: dg.EventLogRecord) -> Made:
    materialization = record.asset_materialization
    tags = (materialization.tags if materialization else None) or {}
    return Made(
        asset,
        datetime.fromtimestamp(record.timestamp, UTC).isoformat(timespec="seconds"),
        record.run_id,
        tags.get("dagster/code_version", ""),
        {**metadata_of(record), **(metadata_of(record).get(MADE_FROM) or {})},
    )


def sources_of(context: dg.AssetExecutionContext, *assets: str) -> dict[str, Any]:
    """Return the sources of the named inputs and the runs that made them, as metadata."""
    made = last_made(context.instance, *corpus_and_judge(context), assets)
    runs = {
        one.asset: {"run": one.run_id, "made_at": one.made_at, "code_version": one.code_version}
        for one in made
    }
    return {**said_of(made), "inputs": runs}


def said_of(made: Iterable[Made]) -> dict[str, Any]:
    """Return the metadata of materialisations on the origin of a rating, by the names of `SAID`."""
    return {name: one.said[name] for one in made for name in SAID if name in one.said}


_APART = {"candidate_verdicts", "candidate_ratings", "predictions", "drift_answers", "judge_drift"}
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
_N_BEFORE = 10


def check_records(
    instance: dg.DagsterInstance, checks: Iterable[dg.AssetCheckKey], partition: str
) -> dict[dg.AssetCheckKey, Any]:
    """Return the last execution of each check on a partition."""
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(
        sorted(checks), PartitionKeyFilter(key=partition)
    )
    return dict(found)


def judge_checks(instance: dg.DagsterInstance, corpus: str, judge: str) -> pd.DataFrame:
    """Return the last result of each check of a judge, one row per check that was ever planned.

    ``status`` is ``"SUCCEEDED"``, ``"FAILED"``, or another word where the run that planned the
    check never came to it because something before it failed: the table that it guards is then
    older than that run. While a run at work has not come to a check, its last result before that
    run stands; a run that died counts as at work until it is found lost.
    """
    specs = _specs()
    partition = corpus_judge_key(corpus, judge)
    records = check_records(instance, [spec.key for spec in specs], partition)
    rows = [
        _row(spec, _before_work(instance, records[spec.key], partition))
        for spec in specs
        if spec.key in records
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _before_work(instance: dg.DagsterInstance, record: Any, partition: str) -> Any:
    """Return the last execution of a check by a run that is not at work; else this one."""
    if record.status.value in _ENDED or not _is_at_work(instance, record.run_id):
        return record
    history = instance.event_log_storage.get_asset_check_execution_history(
        record.key, limit=_N_BEFORE, partition_filter=PartitionKeyFilter(key=partition)
    )
    ended = (
        one
        for one in history
        if one.status.value in _ENDED or not _is_at_work(instance, one.run_id)
    )
    return next(ended, record)


def _is_at_work(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)
    return run is not None and not run.is_finished


@functools.cache
def _specs() -> list[dg.AssetCheckSpec]:
    """Return the checks of every table of a judge; found when asked, since some of them ask."""
    specs = [
        spec
        for step in steps_of_checks()
        for spec in step.check_specs
        if spec.partitions_def == CORPUS_JUDGE and spec.asset_key.to_user_string() not in _APART
    ]
    order = [*OF_CORPUS, *OF_JUDGE, *TABLES]  # as they are made, then the companions
    return sorted(specs, key=lambda spec: order.index(spec.asset_key.to_user_string()))


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
    seen = "not run: something before it failed"
    if found is not None:
        seen = found.description or "nothing to check"
    return {
        "asset": spec.asset_key.to_user_string(),
        "name": spec.name,
        "status": status,
        "blocking": spec.blocking,
        "passed": status == "SUCCEEDED",
        "observed": told.get("observed") or seen,
        "remedy": told.get("remedy", ""),
        "run_id": record.run_id,
    }
