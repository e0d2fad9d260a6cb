"""A new model drops: the sensors that see it, and have each active judge place it.

The first asks nobody anything: it starts a job that reads files and chooses battles. The second
starts the runs that cost money, within the budget of the corpus, and only for other battles than
those that were judged last.
"""

import json
import time
from typing import Any, NamedTuple

import dagster as dg

from assets.candidates import CONTENTS, FINGERPRINT
from assets.partitions import corpus_judge_key
from pipelines.activity import active_judges, require_readable
from pipelines.jobs import candidate_job, placing_job
from resources.candidates.accepting import contents
from resources.candidates.folder import Seen, folder_of, list_files
from resources.catalog import Catalog
from resources.corpora.definitions import CorpusDefinition
from resources.tables import ParquetStore

CANDIDATES_TAG = "judgeline/candidates"
"""Tag of a placing run: the fingerprint of the candidate battles that it is about."""
BUDGET_TAG = "judgeline/budget"
NO_CANDIDATES = "none"
"""What stands in a tag for no candidate at all."""
PLACES_TAG = "judgeline/places"
"""Tag of a candidate run that is followed by its own placing runs: `judgeline run` does that."""
_SETTLED = (dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
_AGAIN_AFTER_S = 3600.0
"""Seconds after which what was dropped is read once more, if the run for it failed."""


class _Memory(NamedTuple):
    """What the sensor remembers of a corpus: its files, and which contents it asked a run for."""

    files: dict[str, Seen]
    requested: str

    @classmethod
    def read(cls, known: dict[str, Any]) -> "_Memory":
        """Return the memory that `written` wrote; an empty one if there is none."""
        files = (Seen(*values) for values in known.get("files", ()))
        return cls({seen.name: seen for seen in files}, known.get("requested", ""))

    def written(self) -> dict[str, Any]:
        """Return the memory as JSON can hold it."""
        return {"files": [list(seen) for seen in self.files.values()], "requested": self.requested}


@dg.sensor(
    job=candidate_job,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sees what is dropped into the candidates folder, and has it read and given "
    "battles; asks no judge.",
)
def new_candidates(
    context: dg.SensorEvaluationContext, catalog: Catalog
) -> dg.SensorResult | dg.SkipReason:
    """Request `candidate_job` for each corpus whose complete candidate files have changed."""
    remembered = json.loads(context.cursor or "{}")
    requests, told = [], []
    memory: dict[str, Any] = {}
    for slug, corpus in catalog.corpora().items():
        before = _Memory.read(remembered.get(slug, {}))
        try:
            request, why, after = _look(context.instance, catalog, corpus, before)
        except OSError as error:  # a folder that we may not list keeps no other corpus waiting
            request, why, after = None, str(error), before
            context.log.error(f"{slug}: {error}")
        requests += [request] if request else []
        told += [f"{slug}: {why}"] if why else []
        memory[slug] = after.written()
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else "; ".join(told) or "nothing new was dropped",
        cursor=json.dumps(memory),
    )


def _look(
    instance: dg.DagsterInstance, catalog: Catalog, corpus: CorpusDefinition, before: _Memory
) -> tuple[dg.RunRequest | None, str, _Memory]:
    """Return what to run for a corpus, else why nothing (or nothing to say), and the memory."""
    files = list_files(folder_of(corpus.slug), before.files)
    memory = before._replace(files={seen.name: seen for seen in files})
    now = contents(files, corpus.candidates)
    if now == _made(instance, corpus.slug):
        return None, _waiting(files), memory._replace(requested="")
    if any(seen.content_hash for seen in files if seen.is_waiting):
        return None, _waiting(files), memory  # it is being replaced, not withdrawn
    last = _last_run(instance, corpus.slug)
    if reason := (
        _hindered(last, is_requested=(now or NO_CANDIDATES) == before.requested)
        or _not_ready(instance, catalog, corpus)
    ):
        return None, reason, memory
    after = last.dagster_run.run_id if last else "first"
    request = dg.RunRequest(
        partition_key=corpus.slug,
        run_key=f"candidates:{corpus.slug}:{after}:{now or NO_CANDIDATES}",
    )
    return request, "", memory._replace(requested=now or NO_CANDIDATES)


def _made(instance: dg.DagsterInstance, corpus: str) -> str | None:
    """Return the contents that candidates and their battles were made of; None for half of it."""
    record = _latest(instance, "candidates", corpus)
    if record is None:
        return ""
    battles = _latest(instance, "candidate_battles", corpus)
    is_whole = battles is not None and battles.storage_id > record.storage_id
    return _text(record, CONTENTS) if is_whole else None


def _last_run(instance: dg.DagsterInstance, corpus: str) -> dg.RunRecord | None:
    """Return the newest run that read the candidates of a corpus."""
    wanted = dg.RunsFilter(job_name=candidate_job.name, tags={"dagster/partition": corpus})
    return next(iter(instance.get_run_records(wanted, limit=1)), None)


def _hindered(last: dg.RunRecord | None, *, is_requested: bool) -> str:
    """Return why no run is to be requested now, by the last one; empty if one may be."""
    run = last.dagster_run if last else None
    if run is not None and not run.is_finished:
        return f"run {run.run_id} reads the candidates"
    if not is_requested:
        return ""
    if last is None or run is None or run.status != dg.DagsterRunStatus.FAILURE:
        return "the run for what was dropped has been requested"
    if time.time() - (last.end_time or 0.0) < _AGAIN_AFTER_S:
        return f"run {run.run_id} for what was dropped failed; another follows after an hour"
    return ""


def _waiting(files: list[Seen]) -> str:
    names = [repr(seen.name) for seen in files if seen.is_waiting]
    return f"{', '.join(names)} not complete yet" if names else ""


def _not_ready(
    instance: dg.DagsterInstance, catalog: Catalog, corpus: CorpusDefinition
) -> str | None:
    """Return why a corpus cannot take candidates now, with what to run; None if it can."""
    try:
        judges = active_judges(corpus, catalog, instance)
    except ValueError as error:
        return str(error)
    if judges:
        return None
    return (
        "candidates wait for a leaderboard by a judge that can be asked; run: "
        f"judgeline run --corpus {corpus.slug}"
    )


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    monitored_jobs=[candidate_job],
    request_job=placing_job,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Has each active judge place the candidates of a corpus, within its budget, "
    "when their battles are others than those placed last.",
)
def place_candidates(
    context: dg.RunStatusSensorContext, catalog: Catalog
) -> dg.SensorResult | dg.SkipReason:
    """Request `placing_job` for each active judge of the corpus whose candidates were read."""
    corpus = context.dagster_run.tags.get("dagster/partition", "")
    if PLACES_TAG in context.dagster_run.tags:
        return dg.SkipReason(f"{corpus}: whoever started that run places them")
    require_readable(catalog)
    record = _latest(context.instance, "candidate_battles", corpus)
    if record is None:
        return dg.SkipReason(f"{corpus!r} has no candidate battles; run candidate_job for it")
    definition = catalog.corpus(corpus)
    battles = _text(record, FINGERPRINT)
    judges = [judge.slug for judge in active_judges(definition, catalog, context.instance)]
    behind = [judge for judge in judges if last_placed(context.instance, corpus, judge) != battles]
    if not behind:
        why = "judged these battles already" if judges else "has a leaderboard and can be asked"
        who = "every active judge has" if judges else "no judge"
        return dg.SkipReason(f"{corpus}: {who} {why}")
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=f"placing:{corpus}:{judge}:{context.dagster_run.run_id}",
                partition_key=corpus_judge_key(corpus, judge),
                tags=placing_tags(definition, battles) | {"judge": judge},
            )
            for judge in behind
        ]
    )


def has_candidates(corpus: CorpusDefinition, tables: ParquetStore) -> bool:
    """Return whether a corpus has dropped files or controls, or candidates of before."""
    if corpus.candidates.controls or list_files(folder_of(corpus.slug)):
        return True
    before = tables.stored("candidates", corpus.slug)
    return before is not None and len(before) > 0


def placing_tags(corpus: CorpusDefinition, battles: str) -> dict[str, str]:
    """Return the tags of a placing run that nobody types: what it is about, and its budget."""
    return {
        CANDIDATES_TAG: battles or NO_CANDIDATES,
        BUDGET_TAG: " ".join(corpus.candidates.budget),
    }


def last_placed(instance: dg.DagsterInstance, corpus: str, judge: str) -> str:
    """Return the fingerprint of the battles that a judge placed last; empty if there are none."""
    key = corpus_judge_key(corpus, judge)
    there = [status for status in dg.DagsterRunStatus if status not in _SETTLED]
    runs = instance.get_runs(
        dg.RunsFilter(
            job_name=placing_job.name, tags={"dagster/partition": str(key)}, statuses=there
        ),
        limit=1,
    )
    found = runs[0].tags.get(CANDIDATES_TAG, "unknown") if runs else ""
    return "" if found == NO_CANDIDATES else found


def _latest(instance: dg.DagsterInstance, asset: str, partition: str) -> Any:
    """Return the newest materialisation of a partition, or None."""
    found = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey(asset), asset_partitions=[partition]), limit=1
    )
    return found.records[0] if found.records else None


def _text(record: Any, name: str) -> str:
    value = record.asset_materialization.metadata.get(name)
    return str(value.value) if value is not None else ""
