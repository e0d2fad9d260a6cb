"""Sensors for dropped files of candidates and of votes: runs that read them and place the models.

`read_due` and `place_due` say from what is on record what is due. A run's key is made of what it is
about, and Dagster starts no second one of a key: nothing is read or bought twice.
"""

import json
import time
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple

import dagster as dg

from assets.candidates.accepting import contents
from assets.candidates.assets import FINGERPRINT
from assets.partitions import corpus_judge_key
from assets.provenance import latest, metadata_of
from assets.settings import BUDGET_TAG, CONTENTS
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.opening import missing_variable
from pipelines.instance.homes import ENDED, UNFINISHED, is_gone, is_here
from pipelines.jobs import candidate_job, placing_job, votes_job
from pipelines.sensors.activity import active_or_why, identity_now, rated_by
from pipelines.sensors.durations import RUNNING
from resources.candidates.folder import Seen, folder_of, hash_of, list_files, list_votes
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.tables.store import ParquetStore

CANDIDATES_TAG = "judgeline/candidates"
"""Tag of a placing run: the fingerprint of the candidate battles that it is about."""
JUDGE_TAG = "judgeline/judge-identity"
"""Tag of a placing run: the identity of the judge by whose verdicts the anchors stand."""
PLACES_TAG = "judgeline/places"
"""Tag of a run with the judges, comma between, that the command that started it has place them."""
ELSEWHERE_S = 6 * 3600.0
"""Seconds for which a command on another host is taken to be still at it after its last run."""
AGAIN_AFTER_S = 3600.0
"""Seconds after which what was dropped is read once more, if the run for it failed."""
MOST_READS = 3
"""How many runs in a row may leave out what was dropped before a person has to look."""

State = Literal["succeeded", "unfinished", "failed"]

_ASKED = dg.AssetKey("candidate_verdicts")
_NONE = "none"  # for no candidate at all, in tags and keys
_PARTITION, _ROOT, _KEY = "dagster/partition", "dagster/root_run_id", "dagster/run_key"
_N_RUNS = 50


class Run(NamedTuple):
    """A run on record; times in seconds since the epoch, `identity` a judge's tag."""

    run_id: str
    status: dg.DagsterRunStatus
    began: float = 0.0
    ended: float = 0.0
    key: str = ""
    identity: str | None = None

    @classmethod
    def of(cls, record: dg.RunRecord) -> "Run":
        """Return the run of a record."""
        run = record.dagster_run
        began = record.start_time or record.create_timestamp.timestamp()
        key, identity = run.tags.get(_KEY, ""), run.tags.get(JUDGE_TAG)
        return cls(run.run_id, run.status, began, record.end_time or 0.0, key, identity)


# ---------------------------------------------------------------- reading what was dropped


class Folder(NamedTuple):
    """State of a corpus' folder of a kind: its files, and the contents that runs have read.

    `contents` is that of complete files, `made` that of tables: empty for none ever, None for half
    or by a run that failed for good. `runs` are the latest; `hindrance` says why none is taken.
    """

    corpus: str
    contents: str
    files: Sequence[Seen] = ()
    made: str | None = ""
    runs: Sequence[Run] = ()
    hindrance: str = ""
    kind: Literal["candidates", "votes"] = "candidates"

    @property
    def job(self) -> str:
        """Name of the job that reads the folder."""
        return (candidate_job if self.kind == "candidates" else votes_job).name


def read_due(folder: Folder, now: float) -> tuple[str, str]:
    """Return the key of the run to ask for, or empty text and why none is due."""
    last = next(iter(folder.runs), None)
    if last is not None and last.status not in ENDED:
        return "", f"run {last.run_id} reads the {folder.kind}"
    waiting = [seen for seen in folder.files if seen.is_waiting]
    why = f"{', '.join(repr(seen.name) for seen in waiting)} not complete yet" if waiting else ""
    if folder.contents == folder.made:
        return "", why
    if any(seen.content_hash for seen in waiting):  # it is being replaced, not withdrawn
        return "", why
    # a file exchanged for another under a new name is no repetition: the contents made differ
    wanted = f":{folder.made or _NONE}:{folder.contents or _NONE}"
    if why := _why_not_again(folder, wanted, now) or folder.hindrance:
        return "", why
    return f"{folder.kind}:{folder.corpus}:{last.run_id if last else 'first'}{wanted}", ""


def _why_not_again(folder: Folder, wanted: str, now: float) -> str:
    """Return the reason why a folder's contents are not read again now; empty if they are."""
    contents = f":{folder.contents or _NONE}"
    repeated = list(takewhile(lambda run: run.key.endswith(contents), folder.runs))
    if not repeated:
        return ""
    last = repeated[0]
    run = f"run {last.run_id} for what was dropped"
    by_hand = (
        f"start {folder.job} of {folder.corpus}, or run: judgeline run --corpus {folder.corpus}"
    )
    if last.status == dg.DagsterRunStatus.CANCELED:
        return f"{run} was cancelled; to have it read, {by_hand}"
    alike = sum(run.key.endswith(wanted) for run in repeated)
    if last.status == dg.DagsterRunStatus.SUCCESS and alike >= MOST_READS:
        return (
            f"run {last.run_id} left out what was dropped, as did those before it: see in its log "
            f"what it found there and who may read it; then {by_hand}"
        )
    if last.status == dg.DagsterRunStatus.FAILURE and now - last.ended < AGAIN_AFTER_S:
        return f"{run} failed; another follows after an hour"
    return ""


@dg.sensor(
    job=candidate_job,
    **RUNNING,
    description="Sees what is dropped into the candidates folder, and has it read and given "
    "battles; asks no judge.",
)
def new_candidates(
    context: dg.SensorEvaluationContext, catalog: Catalog
) -> dg.SensorResult | dg.SkipReason:
    """Request `candidate_job` for each corpus whose files, as in the cursor, have changed."""
    return _watch(context, catalog, _folder)


@dg.sensor(
    job=votes_job,
    **RUNNING,
    description="Sees what is dropped into the folder of votes, and has it read; asks no judge.",
)
def new_votes(
    context: dg.SensorEvaluationContext, catalog: Catalog
) -> dg.SensorResult | dg.SkipReason:
    """Request `votes_job` for each corpus whose files, as in the cursor, have changed."""
    return _watch(context, catalog, _votes_folder)


_Look = Callable[[dg.DagsterInstance, Catalog, CorpusDefinition, dict[str, Seen]], Folder]


def _watch(context: dg.SensorEvaluationContext, catalog: Catalog, look: _Look) -> dg.SensorResult:
    before, seen = json.loads(context.cursor or "{}"), {}
    requests, reasons = [], []
    for slug, corpus in catalog.corpora().items():
        seen[slug] = before.get(slug, {})
        known = {values[0]: Seen(*values) for values in seen[slug].get("files", ())}
        try:
            folder = look(context.instance, catalog, corpus, known)
            key, why = read_due(folder, time.time())
            seen[slug] = {"files": [list(one) for one in folder.files]}
        except OSError as error:  # a folder that we may not list keeps no other corpus waiting
            key, why = "", str(error)
            context.log.error(f"{slug}: {error}")
        requests += [dg.RunRequest(partition_key=slug, run_key=key)] if key else []
        reasons += [f"{slug}: {why}"] if why else []
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else "; ".join(reasons) or "nothing new was dropped",
        cursor=json.dumps(seen),
    )


def _folder(
    instance: dg.DagsterInstance, catalog: Catalog, corpus: CorpusDefinition, known: dict[str, Seen]
) -> Folder:
    files = list_files(folder_of(corpus.slug), known)
    folder = Folder(
        corpus.slug,
        contents(files, corpus.candidates),
        files,
        _contents_made(instance, corpus.slug),
        _runs_of(instance, candidate_job.name, corpus.slug),
    )
    if folder.contents == folder.made:
        return folder
    return folder._replace(hindrance=active_or_why(corpus, catalog, rated_by(corpus, instance))[1])


def _votes_folder(
    instance: dg.DagsterInstance, _: Catalog, corpus: CorpusDefinition, known: dict[str, Seen]
) -> Folder:
    files = list_votes(corpus.slug, known)
    made = str(metadata_of(latest(instance, "votes", corpus.slug)).get(CONTENTS, ""))
    folder = Folder(corpus.slug, hash_of(files), files, made, kind="votes")
    if folder.contents == made:
        return folder
    is_read = latest(instance, "battles", corpus.slug) is not None
    hindrance = "" if is_read else f"nobody ran it: judgeline run --corpus {corpus.slug}"
    runs = _runs_of(instance, folder.job, corpus.slug)
    return folder._replace(runs=runs, hindrance=hindrance)


def _runs_of(instance: dg.DagsterInstance, job: str, corpus: str) -> list[Run]:
    """Return the latest runs of a job of a corpus, an unfinished one first."""
    wanted: dict[str, Any] = {"job_name": job, "tags": {_PARTITION: corpus}}
    unfinished = instance.get_run_records(dg.RunsFilter(**wanted, statuses=UNFINISHED), limit=1)
    latest = instance.get_run_records(dg.RunsFilter(**wanted), limit=MOST_READS)
    return [Run.of(record) for record in (*unfinished, *latest)]


def _contents_made(instance: dg.DagsterInstance, corpus: str) -> str | None:
    candidates, battles = (
        latest(instance, name, corpus) for name in ("candidates", "candidate_battles")
    )
    if candidates is None:
        return ""
    if battles is None or battles.storage_id < candidates.storage_id:
        return None
    if state_of(instance, battles.run_id) == "failed":
        return None
    return str(metadata_of(candidates).get(CONTENTS, ""))


def has_candidates(corpus: CorpusDefinition, tables: ParquetStore) -> bool:
    """Return whether a corpus has dropped files or controls, or candidates of before."""
    if corpus.candidates.controls or list_files(folder_of(corpus.slug)):
        return True
    before = tables.stored("candidates", corpus.slug)
    return before is not None and len(before) > 0


def has_votes(corpus: str, tables: ParquetStore) -> bool:
    """Return whether a corpus has dropped files of votes, or votes of before."""
    before = tables.stored("votes", corpus)
    return before is not None or bool(list_votes(corpus))


# ---------------------------------------------------------------- placing them


class Table(NamedTuple):
    """The newest materialisation of a table: its battles, judge, time and run.

    `battles` is a fingerprint, empty for none; `judge` an identity, empty where it is not known.
    """

    battles: str
    judge: str = ""
    made_at: float = 0.0
    run_id: str = ""
    state: State = "succeeded"


class Placing(NamedTuple):
    """State of a judge and the candidates of a corpus, as recorded.

    `anchors` are the judge's verdicts on the corpus, `judged` those on the `chosen` battles, `last`
    the newest run that was to ask for those, `starter` that of a command which has it place.
    `lacks` is a variable that the judge needs, `identity` the judge's as configured now.
    """

    corpus: str
    judge: str
    chosen: Table
    anchors: Table | None = None
    judged: Table | None = None
    last: Run | None = None
    starter: str = ""
    lacks: str = ""
    identity: str = ""

    @property
    def is_done(self) -> bool:
        """Return whether the anchors' judge has placed these battles, in full."""
        chosen, judged = self.chosen, self.judged
        if judged is None:
            return not chosen.battles
        same = self.anchors is None or self.anchors.judge in ("", judged.judge)
        is_of_these = judged.state == "succeeded" and judged.battles == chosen.battles
        return is_of_these and (same or not chosen.battles)

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags of a placing run: a fingerprint of battles, and the anchors' judge."""
        judge = self.anchors.judge if self.anchors else ""
        return {CANDIDATES_TAG: self.chosen.battles or _NONE, JUDGE_TAG: judge}


def place_due(placing: Placing) -> tuple[str, str]:
    """Return the key of the run to ask for of a judge that is behind, or empty text and why not.

    What failed for good is a person's to repeat, since that would spend a budget again.
    """
    chosen, anchors, last = placing.chosen, placing.anchors, placing.last
    by_hand = f"judgeline run --corpus {placing.corpus} --judge {placing.judge}"
    if last is not None and last.status not in ENDED:
        return "", f"run {last.run_id} places"
    if last is not None and _is_about(last, chosen, anchors):
        if last.status == dg.DagsterRunStatus.SUCCESS:
            why = "succeeded and placed other battles, or by another judge than the one that"
            return "", f"run {last.run_id} {why} judged the corpus; run: {by_hand}"
        why = f"see {last.run_id}, raise candidates.budget if that was spent, and run: {by_hand}"
        return "", f"the run for these battles did not succeed; {why}"
    if placing.starter:
        return "", f"the command that started run {placing.starter} places the new models"
    if chosen.battles and placing.lacks:
        return "", placing.lacks
    if chosen.battles and (why := _why_another(placing)):
        return "", f"{why}, run: {by_hand}"
    partition = corpus_judge_key(placing.corpus, placing.judge)
    return f"placing:{partition}:{chosen.run_id}:{anchors.run_id if anchors else ''}", ""


def _why_another(placing: Placing) -> str:
    """Return the reason why a judge differs from the one that judged the anchors; empty if not."""
    anchors, judged = placing.anchors, placing.judged
    if anchors is None or not anchors.judge:
        return ""
    has_changed = judged is not None and judged.judge not in ("", anchors.judge)
    if has_changed and anchors.state != "succeeded":
        why = f"run {anchors.run_id} judged the corpus anew and has not succeeded"
        return f"{why}; unless it is still at work"
    if placing.identity not in ("", anchors.judge):
        return "it has changed since it judged the corpus; to judge that anew"
    return ""


def _is_about(run: Run, chosen: Table, anchors: Table | None) -> bool:
    """Return whether a placing run is of these battles, and of the judge as of these verdicts."""
    if run.began < chosen.made_at or anchors is None:
        return run.began >= chosen.made_at
    if run.identity is None:
        return run.began >= anchors.made_at
    return run.identity == anchors.judge


@dg.sensor(
    job=placing_job,
    **RUNNING,
    description="Has each active judge place the candidates of a corpus, within its budget, "
    "when their battles are others than those that it placed last.",
)
def place_candidates(
    context: dg.SensorEvaluationContext, catalog: Catalog
) -> dg.SensorResult | dg.SkipReason:
    """Request `placing_job` for each active judge that is behind the candidates of its corpus."""
    requests, reasons = [], []
    for slug, corpus in catalog.corpora().items():
        wanted, why = _behind(context.instance, catalog, corpus)
        requests += wanted
        reasons += [f"{slug}: {why}"] if why else []
    if requests:
        return dg.SensorResult(run_requests=requests)
    return dg.SkipReason("; ".join(reasons) or "no corpus has candidates")


def _behind(
    instance: dg.DagsterInstance, catalog: Catalog, corpus: CorpusDefinition
) -> tuple[list[dg.RunRequest], str]:
    """Return the placing runs that a corpus lacks, and why there are not more."""
    chosen = _table(instance, "candidate_battles", corpus.slug)
    if chosen is None:
        return [], ""
    if chosen.state != "succeeded":
        return [], f"run {chosen.run_id} chose the battles and has not succeeded"
    judges, why = active_or_why(corpus, catalog, rated_by(corpus, instance))
    if why:
        return [], why
    found = [(judge, placing_of(instance, corpus.slug, judge.slug, chosen)) for judge in judges]
    behind = [(judge, placing) for judge, placing in found if not placing.is_done]
    if not behind:
        return [], "every active judge has judged these battles already"
    requests, reasons = [], []
    for judge, placing in behind:
        key, why = place_due(_in_full(instance, corpus, judge, placing))
        if why:
            reasons.append(f"{judge.slug}: {why}")
            continue
        budget = {BUDGET_TAG: " ".join(corpus.candidates.budget), "judge": judge.slug}
        partition = corpus_judge_key(corpus.slug, judge.slug)
        tags = {**placing.tags, **budget}
        requests.append(dg.RunRequest(run_key=key, partition_key=partition, tags=tags))
    return requests, "; ".join(reasons)


def placing_of(
    instance: dg.DagsterInstance, corpus: str, judge: str, chosen: Table | str
) -> Placing:
    """Return the state of a judge and its candidates' battles, by the tables alone."""
    partition = corpus_judge_key(corpus, judge)
    chosen = Table(chosen) if isinstance(chosen, str) else chosen
    anchors, judged = (
        _table(instance, name, partition) for name in ("verdicts", "candidate_verdicts")
    )
    return Placing(corpus, judge, chosen, anchors, judged)


def _in_full(
    instance: dg.DagsterInstance, corpus: CorpusDefinition, judge: JudgeDefinition, placing: Placing
) -> Placing:
    """Return the state completed from runs, processes and the configuration, which is slower."""
    chosen, anchors = placing.chosen, placing.anchors
    newest = anchors if anchors and anchors.made_at > chosen.made_at else chosen
    runs = placing_runs(instance, corpus.slug, judge.slug)
    is_left = is_placed_by_starter(instance, newest.run_id, judge.slug)
    return placing._replace(
        last=Run.of(runs[0]) if runs else None,
        starter=newest.run_id if is_left else "",
        lacks=missing_variable(judge),
        identity=identity_now(judge, corpus) if anchors and anchors.judge else "",
    )


def placing_runs(instance: dg.DagsterInstance, corpus: str, judge: str) -> list[dg.RunRecord]:
    """Return the latest runs that ask a judge about candidates, the job's last among them."""
    tags = {_PARTITION: str(corpus_judge_key(corpus, judge))}
    of_job = dg.RunsFilter(job_name=placing_job.name, tags=tags)
    recent = instance.get_run_records(dg.RunsFilter(tags=tags), limit=_N_RUNS)
    found = {}
    for record in (*recent, *instance.get_run_records(of_job, limit=1)):
        run = record.dagster_run
        if _ASKED in (
            run.asset_selection or ({_ASKED} if run.job_name == placing_job.name else ())
        ):
            found[record.storage_id] = record
    return [found[place] for place in sorted(found, reverse=True)]


def is_placed_by_starter(instance: dg.DagsterInstance, run_id: str, judge: str) -> bool:
    """Return whether the command that started a run is there, and has this judge place."""
    record = instance.get_run_record_by_id(run_id)
    if record is None or judge not in record.dagster_run.tags.get(PLACES_TAG, "").split(","):
        return False
    if is_here(instance, record.dagster_run):
        return not is_gone(instance, run_id)
    return record.end_time is None or time.time() - record.end_time < ELSEWHERE_S


def state_of(instance: dg.DagsterInstance, run_id: str) -> State:
    """Return the state of a run and its retries; a deleted run counts as succeeded."""
    run = instance.get_run_by_id(run_id)
    if run is None:
        return "succeeded"
    group = instance.get_runs(dg.RunsFilter(tags={_ROOT: run.root_run_id or run_id}))
    later = takewhile(lambda one: one.run_id != run_id, group)  # newest first
    # an attempt from where a run failed makes only the rest: what that run made keeps its id
    statuses = {run.status, *(one.status for one in later)}
    if dg.DagsterRunStatus.SUCCESS in statuses:
        return "succeeded"
    return "unfinished" if statuses - ENDED else "failed"


def _table(instance: dg.DagsterInstance, asset: str, partition: str) -> Table | None:
    record = latest(instance, asset, partition)
    if record is None:
        return None
    said = {FINGERPRINT: "unknown", "judge_identity": "", **metadata_of(record)}
    made = (record.timestamp, record.run_id, state_of(instance, record.run_id))
    return Table(str(said[FINGERPRINT]), str(said["judge_identity"]), *made)
