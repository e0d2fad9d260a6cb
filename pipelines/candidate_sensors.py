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
from assets.run_tags import BUDGET_TAG
from pipelines.activity import active_judges
from pipelines.jobs import candidate_job, placing_job
from resources.candidates.accepting import contents
from resources.candidates.folder import Seen, folder_of, list_files
from resources.catalog import Catalog
from resources.corpora.definitions import CorpusDefinition
from resources.tables import ParquetStore

CANDIDATES_TAG = "judgeline/candidates"
"""Tag of a placing run: the fingerprint of the candidate battles that it is about."""
NO_CANDIDATES = "none"
"""What stands in a tag for no candidate at all."""
PLACES_TAG = "judgeline/places"
"""Tag of a candidate run with the judges, comma between, that whoever started it has place."""
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


@dg.sensor(
    job=placing_job,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Has each active judge place the candidates of a corpus, within its budget, "
    "when their battles are others than those that it placed last.",
)
def place_candidates(
    context: dg.SensorEvaluationContext, catalog: Catalog
) -> dg.SensorResult | dg.SkipReason:
    """Request `placing_job` for each active judge that is behind the candidates of its corpus.

    A judge that becomes active later is behind too. Each is asked for once per table of battles:
    what failed for good is a person's to repeat, since repeating it would spend a budget again.
    """
    requests, told = [], []
    for slug, corpus in catalog.corpora().items():
        wanted, why = _behind(context.instance, catalog, corpus)
        requests += wanted
        told += [f"{slug}: {why}"] if why else []
    if requests:
        return dg.SensorResult(run_requests=requests)
    return dg.SkipReason("; ".join(told) or "no corpus has candidates")


class _Chosen(NamedTuple):
    """Battles that were chosen for the candidates of a corpus, and the run that chose them.

    `status` is of that run, and `placed_by_itself` the judges that whoever started it has place.
    """

    battles: str
    run_id: str
    status: dg.DagsterRunStatus
    placed_by_itself: tuple[str, ...]


def _chosen(instance: dg.DagsterInstance, corpus: str) -> _Chosen | None:
    """Return what was chosen last; None if nothing ever was."""
    record = _latest(instance, "candidate_battles", corpus)
    if record is None:
        return None
    run, battles = instance.get_run_by_id(record.run_id), _text(record, FINGERPRINT)
    if run is None:  # its record was deleted since
        return _Chosen(battles, record.run_id, dg.DagsterRunStatus.SUCCESS, ())
    placed = tuple(run.tags.get(PLACES_TAG, "").split(","))
    return _Chosen(battles, run.run_id, run.status, placed)


def _behind(
    instance: dg.DagsterInstance, catalog: Catalog, corpus: CorpusDefinition
) -> tuple[list[dg.RunRequest], str]:
    """Return the placing runs that a corpus lacks, and why there are not more."""
    chosen = _chosen(instance, corpus.slug)
    if chosen is None:
        return [], ""
    if chosen.status != dg.DagsterRunStatus.SUCCESS:
        return [], f"run {chosen.run_id} chose the battles and has not succeeded"
    try:
        judges = [judge.slug for judge in active_judges(corpus, catalog, instance)]
    except (ValueError, OSError) as error:  # such as in the middle of an edit
        return [], str(error)
    if not judges:
        return [], "no judge has a leaderboard and can be asked"
    requests, told = [], []
    for judge in judges:
        request, why = _place(instance, corpus, judge, chosen)
        requests += [request] if request else []
        told += [f"{judge}: {why}"] if why else []
    if not requests and not told:
        return [], "every active judge has judged these battles already"
    return requests, "; ".join(told)


def _place(
    instance: dg.DagsterInstance, corpus: CorpusDefinition, judge: str, chosen: _Chosen
) -> tuple[dg.RunRequest | None, str]:
    """Return the placing run that a judge lacks, else why it cannot be now; or nothing at all."""
    if last_placed(instance, corpus.slug, judge) == chosen.battles:
        return None, ""
    if judge in chosen.placed_by_itself:
        return None, f"whoever started run {chosen.run_id} places them"
    partition = corpus_judge_key(corpus.slug, judge)
    of_partition = {"dagster/partition": str(partition)}
    wanted = dg.RunsFilter(job_name=placing_job.name, tags=of_partition)
    last = next(iter(instance.get_runs(wanted, limit=1)), None)
    if last is not None and not last.is_finished:
        return None, f"run {last.run_id} places"
    run_key = f"placing:{partition}:{chosen.run_id}"
    if instance.get_runs_count(dg.RunsFilter(tags={"dagster/run_key": run_key})):
        return None, (
            "the run for these battles did not succeed; see it, and run: "
            f"judgeline run --corpus {corpus.slug} --judge {judge}"
        )
    tags = placing_tags(corpus, chosen.battles) | {"judge": judge}
    return dg.RunRequest(run_key=run_key, partition_key=partition, tags=tags), ""


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
