"""Materialisations behind a rating: run, code version and metadata of each table between.

What belongs here: reading the instance's record. What does not: what any of it means (`why`).
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import dagster as dg

from assets.partitions import corpus_and_judge, corpus_judge_key
from resources.judges.judge import ORIGIN

OF_CORPUS = ("raw_battles", "battles", "sampled_battles", "candidates", "candidate_battles")
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

SAID = ("content_revision", "sample_seed", "score_basis", "rating_settings", *ORIGIN)
"""Metadata of theirs that say what a rating was made of."""

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
    return {**said_of(made), "inputs": dg.MetadataValue.json(runs)}


def said_of(made: Iterable[Made]) -> dict[str, Any]:
    """Return the metadata of materialisations on the origin of a rating, by the names of `SAID`."""
    return {name: one.said[name] for one in made for name in SAID if name in one.said}
