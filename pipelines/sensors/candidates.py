"""A new model drops: the sensor that sees it, and starts the job that reads files.

It asks nobody anything: that job chooses battles, and `placing_sensor` has judges judge them.
"""

import json
import time
from typing import Any, NamedTuple

import dagster as dg

from pipelines.jobs import candidate_job
from pipelines.sensors.activity import active_among, rated_by, why_none_is_active
from pipelines.sensors.candidate_record import NO_CANDIDATES, contents_made, last_read
from pipelines.sensors.durations import sensor_seconds
from resources.candidates.accepting import contents
from resources.candidates.folder import Seen, folder_of, list_files
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.tables.store import ParquetStore

_AGAIN_AFTER_S = 3600.0
"""Seconds after which what was dropped is read once more, if the run for it failed or is lost."""
_MOST_REPEATS = 2
"""How often what was dropped is requested again at once, if the run for it left it out."""


class _Memory(NamedTuple):
    """Cursor of the sensor by corpus: its files, and the contents it requested a run for.

    `after` is the newest run as of the request, which was made at `asked_at` (seconds since the
    epoch), and `n_repeats` how many requests for the same contents preceded it.
    """

    files: dict[str, Seen]
    requested: str = ""
    after: str = ""
    asked_at: float = 0.0
    n_repeats: int = 0

    @classmethod
    def read(cls, known: dict[str, Any]) -> "_Memory":
        """Return the memory that `written` wrote; an empty one if there is none."""
        files = (Seen(*values) for values in known.get("files", ()))
        asked = {name: known[name] for name in cls._fields[1:] if name in known}
        return cls({seen.name: seen for seen in files}, **asked)

    def written(self) -> dict[str, Any]:
        """Return the memory as JSON can hold it."""
        return {**self._asdict(), "files": [list(seen) for seen in self.files.values()]}


@dg.sensor(
    job=candidate_job,
    minimum_interval_seconds=sensor_seconds(),
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
    last, is_waiting = last_read(instance, corpus.slug), any(seen.is_waiting for seen in files)
    if last is not None and not last.dagster_run.is_finished:
        return None, f"run {last.dagster_run.run_id} reads the candidates", memory
    if now == contents_made(instance, corpus.slug):
        return None, _waiting(files), memory if is_waiting else _Memory(memory.files)
    if any(seen.content_hash for seen in files if seen.is_waiting):
        return None, _waiting(files), memory  # it is being replaced, not withdrawn
    wanted = now or NO_CANDIDATES
    is_known = wanted == before.requested
    if reason := (is_known and _hindered(last, before, corpus.slug)) or _not_ready(
        instance, catalog, corpus
    ):
        return None, reason, memory
    after = last.dagster_run.run_id if last else "first"
    request = dg.RunRequest(
        partition_key=corpus.slug, run_key=f"candidates:{corpus.slug}:{after}:{wanted}"
    )
    n_repeats = before.n_repeats + 1 if is_known else 0
    return request, "", _Memory(memory.files, wanted, after, time.time(), n_repeats)


def _hindered(last: dg.RunRecord | None, before: _Memory, corpus: str) -> str:
    """Return why what was requested is not requested again now; empty if it is."""
    if last is None or last.dagster_run.run_id == before.after:  # or its record was deleted
        is_due = time.time() - before.asked_at > _AGAIN_AFTER_S
        return "" if is_due else "the run for what was dropped has been requested"
    run = last.dagster_run
    by_hand = f"start {candidate_job.name} of {corpus}, or run: judgeline run --corpus {corpus}"
    if run.status == dg.DagsterRunStatus.CANCELED:
        return f"run {run.run_id} for what was dropped was cancelled; to have it read, {by_hand}"
    if run.status == dg.DagsterRunStatus.SUCCESS and before.n_repeats >= _MOST_REPEATS:
        return (
            f"run {run.run_id} left out what was dropped, as did those before it: see in its log "
            f"what it found there and who may read it; then {by_hand}"
        )
    ended = last.end_time or 0.0
    if run.status == dg.DagsterRunStatus.FAILURE and time.time() - ended < _AGAIN_AFTER_S:
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
        rated = rated_by(corpus, instance)
        if active_among(corpus, catalog, rated):
            return None
        return why_none_is_active(corpus, catalog, rated)
    except ValueError as error:
        return str(error)


def has_candidates(corpus: CorpusDefinition, tables: ParquetStore) -> bool:
    """Return whether a corpus has dropped files or controls, or candidates of before."""
    if corpus.candidates.controls or list_files(folder_of(corpus.slug)):
        return True
    before = tables.stored("candidates", corpus.slug)
    return before is not None and len(before) > 0
