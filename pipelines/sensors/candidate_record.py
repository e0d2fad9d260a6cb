"""Records of candidates in the instance: battles chosen and judged, and the runs that did.

What belongs here: reading that record. What does not: what is to be run by it, which is the
sensors' (`candidate_sensors`) and the main job's (`run`).
"""

import time
from itertools import takewhile
from typing import Any, Literal, NamedTuple

import dagster as dg

from assets.candidates.assets import CONTENTS, FINGERPRINT
from assets.partitions import corpus_judge_key
from pipelines.instance.workers import is_gone, is_here
from pipelines.jobs import candidate_job, placing_job

CANDIDATES_TAG = "judgeline/candidates"
"""Tag of a placing run: the fingerprint of the candidate battles that it is about."""
NO_CANDIDATES = "none"
"""What stands in a tag for no candidate at all."""
JUDGE_TAG = "judgeline/judge-identity"
"""Tag of a placing run: the identity of the judge by whose verdicts the anchors stand."""
PLACES_TAG = "judgeline/places"
"""Tag of a run with the judges, comma between, that whoever started it has place candidates."""
ELSEWHERE_S = 6 * 3600.0
"""Seconds for which whoever started a run on another host is taken to be still at it."""

State = Literal["succeeded", "unfinished", "failed"]

_IDENTITY = "judge_identity"
_ASKED = dg.AssetKey("candidate_verdicts")
_PARTITION, _ROOT = "dagster/partition", "dagster/root_run_id"
_FINISHED = (
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
)
_UNFINISHED = [status for status in dg.DagsterRunStatus if status not in _FINISHED]
_N_RUNS = 50


class Table(NamedTuple):
    """The newest materialisation of a table: of which battles, by which judge, and its run.

    `battles` is a fingerprint, empty for no battle; `judge` an identity, empty where nobody was
    asked or it is not known. `made_at` is in seconds since the epoch, and `state` that of the run
    with the runs that tried it again.
    """

    battles: str
    judge: str
    made_at: float
    run_id: str
    state: State


def chosen_battles(instance: dg.DagsterInstance, corpus: str) -> Table | None:
    """Return what was chosen for the candidates of a corpus last; None if nothing ever was."""
    return _table(instance, "candidate_battles", corpus)


def corpus_verdicts(instance: dg.DagsterInstance, corpus: str, judge: str) -> Table | None:
    """Return what a judge said of the battles of a corpus last, the anchors of what it places."""
    return _table(instance, "verdicts", corpus_judge_key(corpus, judge))


def judged_candidates(instance: dg.DagsterInstance, corpus: str, judge: str) -> Table | None:
    """Return what a judge said of candidates last; None if it never was to say anything."""
    return _table(instance, _ASKED.to_user_string(), corpus_judge_key(corpus, judge))


def are_placed(instance: dg.DagsterInstance, corpus: str, judge: str, battles: str) -> bool:
    """Return whether battles of this fingerprint are what a judge placed last, as it judges now.

    Without a table of verdicts on candidates no candidates are placed. What a failed run left
    counts for nothing, nor does what another judge of the same name said.
    """
    judged = judged_candidates(instance, corpus, judge)
    if judged is None:
        return not battles
    if judged.state != "succeeded" or judged.battles != battles:
        return False
    anchors = corpus_verdicts(instance, corpus, judge)
    return not battles or anchors is None or anchors.judge in ("", judged.judge)


def contents_made(instance: dg.DagsterInstance, corpus: str) -> str | None:
    """Return the contents that candidates and their battles were made of.

    Empty text where none ever were; None for half of it, or if what made it failed for good.
    """
    record = _latest(instance, "candidates", corpus)
    if record is None:
        return ""
    battles = _latest(instance, "candidate_battles", corpus)
    if battles is None or battles.storage_id < record.storage_id:
        return None
    is_made = state_of(instance, battles.run_id) != "failed"
    return _text(record, CONTENTS) if is_made else None


def last_read(instance: dg.DagsterInstance, corpus: str) -> dg.RunRecord | None:
    """Return the newest run of the job that reads candidates; one that is unfinished first."""
    wanted = {"job_name": candidate_job.name, "tags": {_PARTITION: corpus}}
    unfinished = dg.RunsFilter(**wanted, statuses=_UNFINISHED)
    found = instance.get_run_records(unfinished, limit=1)
    return next(iter(found or instance.get_run_records(dg.RunsFilter(**wanted), limit=1)), None)


def placing_runs(instance: dg.DagsterInstance, corpus: str, judge: str) -> list[dg.RunRecord]:
    """Return the latest runs that ask a judge about candidates, by whom ever; newest first.

    The last of its job is among them, however long ago; of those that a person put together in
    the interface, the ones among the last runs of the partition.
    """
    tags = {_PARTITION: str(corpus_judge_key(corpus, judge))}
    of_job = dg.RunsFilter(job_name=placing_job.name, tags=tags)
    recent = instance.get_run_records(dg.RunsFilter(tags=tags), limit=_N_RUNS)
    found = {
        record.storage_id: record
        for record in (*recent, *instance.get_run_records(of_job, limit=1))
        if _asks(record.dagster_run)
    }
    return [found[place] for place in sorted(found, reverse=True)]


def _asks(run: dg.DagsterRun) -> bool:
    if run.asset_selection:
        return _ASKED in run.asset_selection
    return run.job_name == placing_job.name


def is_placed_by_starter(instance: dg.DagsterInstance, run_id: str, judge: str) -> bool:
    """Return whether whoever started a run is there, and has this judge place candidates.

    On this host, while that process lives; on another, for `ELSEWHERE_S` after the run.
    """
    record = instance.get_run_record_by_id(run_id)
    if record is None or judge not in record.dagster_run.tags.get(PLACES_TAG, "").split(","):
        return False
    if is_here(instance, record.dagster_run):
        return not is_gone(instance, run_id)
    return record.end_time is None or time.time() - record.end_time < ELSEWHERE_S


def placing_tags(battles: str, anchors: Table | None) -> dict[str, str]:
    """Return what a placing run is about: a fingerprint of battles, and the anchors' judge."""
    return {
        CANDIDATES_TAG: battles or NO_CANDIDATES,
        JUDGE_TAG: anchors.judge if anchors else "",
    }


def state_of(instance: dg.DagsterInstance, run_id: str) -> State:
    """Return what came of a run and of those that tried it again.

    An attempt from where a run failed makes only the rest: what that run made keeps its id. A run
    whose record was deleted since counts as succeeded.
    """
    run = instance.get_run_by_id(run_id)
    if run is None:
        return "succeeded"
    group = instance.get_runs(dg.RunsFilter(tags={_ROOT: run.root_run_id or run_id}))
    later = takewhile(lambda one: one.run_id != run_id, group)  # newest first
    statuses = {run.status, *(one.status for one in later)}
    if dg.DagsterRunStatus.SUCCESS in statuses:
        return "succeeded"
    return "unfinished" if statuses & {*_UNFINISHED} else "failed"


def _table(instance: dg.DagsterInstance, asset: str, partition: str) -> Table | None:
    record = _latest(instance, asset, partition)
    if record is None:
        return None
    battles, judge = _text(record, FINGERPRINT, "unknown"), _text(record, _IDENTITY)
    state = state_of(instance, record.run_id)
    return Table(battles, judge, record.timestamp, record.run_id, state)


def _latest(instance: dg.DagsterInstance, asset: str, partition: str) -> Any:
    """Return the newest materialisation of a partition, or None."""
    found = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey(asset), asset_partitions=[partition]), limit=1
    )
    return found.records[0] if found.records else None


def _text(record: Any, name: str, otherwise: str = "") -> str:
    value = record.asset_materialization.metadata.get(name)
    return otherwise if value is None else str(value.value)
