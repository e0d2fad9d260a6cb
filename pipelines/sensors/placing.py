"""The sensor that has judges place candidates: it starts the runs that cost money.

Within the budget of the corpus, and only for other battles than those that a judge placed last, or
for a judge that has changed since.
"""

import dagster as dg

from assets.partitions import corpus_judge_key
from assets.run_tags import BUDGET_TAG
from pipelines.jobs import placing_job
from pipelines.sensors.activity import active_among, identity_now, rated_by, why_none_is_active
from pipelines.sensors.candidate_record import (
    JUDGE_TAG,
    Table,
    are_placed,
    chosen_battles,
    corpus_verdicts,
    is_placed_by_starter,
    judged_candidates,
    placing_runs,
    placing_tags,
)
from pipelines.sensors.durations import sensor_seconds
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.config.judges import JudgeDefinition
from resources.judges.catalog import missing_variable


@dg.sensor(
    job=placing_job,
    minimum_interval_seconds=sensor_seconds(),
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Has each active judge place the candidates of a corpus, within its budget, "
    "when their battles are others than those that it placed last.",
)
def place_candidates(
    context: dg.SensorEvaluationContext, catalog: Catalog
) -> dg.SensorResult | dg.SkipReason:
    """Request `placing_job` for each active judge that is behind the candidates of its corpus.

    A judge that becomes active later is behind too, and one that has judged the corpus anew as
    another: its models of before and the candidates would stand by two judges. Each is asked for
    once per table of battles: what failed for good is a person's to repeat, since repeating it
    would spend a budget again.
    """
    requests, told = [], []
    for slug, corpus in catalog.corpora().items():
        wanted, why = _behind(context.instance, catalog, corpus)
        requests += wanted
        told += [f"{slug}: {why}"] if why else []
    if requests:
        return dg.SensorResult(run_requests=requests)
    return dg.SkipReason("; ".join(told) or "no corpus has candidates")


def _behind(
    instance: dg.DagsterInstance, catalog: Catalog, corpus: CorpusDefinition
) -> tuple[list[dg.RunRequest], str]:
    """Return the placing runs that a corpus lacks, and why there are not more."""
    chosen = chosen_battles(instance, corpus.slug)
    if chosen is None:
        return [], ""
    if chosen.state != "succeeded":
        return [], f"run {chosen.run_id} chose the battles and has not succeeded"
    try:
        rated = rated_by(corpus, instance)
        judges = active_among(corpus, catalog, rated)
        if not judges:
            return [], why_none_is_active(corpus, catalog, rated)
    except (ValueError, OSError) as error:  # such as in the middle of an edit
        return [], str(error)
    found = [
        (judge.slug, *_place(instance, corpus, judge, chosen))
        for judge in judges
        if not are_placed(instance, corpus.slug, judge.slug, chosen.battles)
    ]
    if not found:
        return [], "every active judge has judged these battles already"
    told = [f"{judge}: {why}" for judge, _, why in found if why]
    return [request for _, request, _ in found if request], "; ".join(told)


def _place(
    instance: dg.DagsterInstance, corpus: CorpusDefinition, judge: JudgeDefinition, chosen: Table
) -> tuple[dg.RunRequest | None, str]:
    """Return the placing run that a judge lacks, else why it cannot be now."""
    anchors = corpus_verdicts(instance, corpus.slug, judge.slug)
    if why := _why_not_now(instance, corpus, judge, chosen, anchors):
        return None, why
    partition = corpus_judge_key(corpus.slug, judge.slug)
    request = dg.RunRequest(
        run_key=f"placing:{partition}:{chosen.run_id}:{anchors.run_id if anchors else ''}",
        partition_key=partition,
        tags={
            **placing_tags(chosen.battles, anchors),
            BUDGET_TAG: " ".join(corpus.candidates.budget),
            "judge": judge.slug,
        },
    )
    return request, ""


def _why_not_now(
    instance: dg.DagsterInstance,
    corpus: CorpusDefinition,
    judge: JudgeDefinition,
    chosen: Table,
    anchors: Table | None,
) -> str:
    """Return why no run is requested for a judge that is behind; empty if one is."""
    last = next(iter(placing_runs(instance, corpus.slug, judge.slug)), None)
    by_hand = f"judgeline run --corpus {corpus.slug} --judge {judge.slug}"
    if last is not None and not last.dagster_run.is_finished:
        return f"run {last.dagster_run.run_id} places"
    if last is not None and _is_about(last, chosen, anchors):
        return _told_of(last.dagster_run, by_hand)
    newest = anchors if anchors and anchors.made_at > chosen.made_at else chosen
    if is_placed_by_starter(instance, newest.run_id, judge.slug):
        return f"the command that started run {newest.run_id} places the new models"
    if chosen.battles and (why := missing_variable(judge)):
        return why
    if anchors is None or not (anchors.judge and chosen.battles):
        return ""
    if why := _is_another(instance, corpus, judge, anchors):
        return f"{why}, run: {by_hand}"
    return ""


def _is_another(
    instance: dg.DagsterInstance, corpus: CorpusDefinition, judge: JudgeDefinition, anchors: Table
) -> str:
    """Return why a judge would judge candidates as another than its anchors; empty if it does not.

    A run that judges the corpus anew, as another judge, has to succeed before candidates follow.
    """
    before = judged_candidates(instance, corpus.slug, judge.slug)
    has_changed = before is not None and before.judge not in ("", anchors.judge)
    if has_changed and anchors.state != "succeeded":
        told = f"run {anchors.run_id} judged the corpus anew and has not succeeded"
        return f"{told}; unless it is still at work"
    if identity_now(judge, corpus) not in ("", anchors.judge):
        return "it has changed since it judged the corpus; to judge that anew"
    return ""


def _is_about(run: dg.RunRecord, chosen: Table, anchors: Table | None) -> bool:
    """Return whether a placing run is of these battles, and of the judge as of these verdicts."""
    began = run.start_time or run.create_timestamp.timestamp()
    if began < chosen.made_at or anchors is None:
        return began >= chosen.made_at
    identity = run.dagster_run.tags.get(JUDGE_TAG)
    return began >= anchors.made_at if identity is None else identity == anchors.judge


def _told_of(run: dg.DagsterRun, by_hand: str) -> str:
    if run.status == dg.DagsterRunStatus.SUCCESS:
        return (
            f"run {run.run_id} succeeded and placed other battles, or by another judge than the "
            f"one that judged the corpus; run: {by_hand}"
        )
    return (
        f"the run for these battles did not succeed; see {run.run_id}, raise candidates.budget if "
        f"that was spent, and run: {by_hand}"
    )
