"""Webhook messages about the findings of runs that a person should see.

A message holds slugs, names of checks, verdicts and numbers; nothing that somebody else wrote.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from judgeline.judges.buying import BudgetError
from pipelines.sensors.durations import RUNNING
from resources.webhook import VARIABLE, UndeliveredError, Webhook

TOLD_TAG = "judgeline/told"
"""Tag of a run with the ids of the messages about it that were delivered."""
NOT_SET = f"nobody is told: {VARIABLE} is not set"

_KINDS = {"judge_passed_the_gate": "gate", "judge_has_not_drifted": "drift"}
_PLACED = dg.AssetKey("candidate_ratings")
_ROWS, _VERSION = "dagster/row_count", "dagster/data_version"
_VERDICTS = ("none", "judge", "system", "cannot tell")
_EVENTS = {
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.STEP_FAILURE,
}

_SLUG = re.compile(r"[A-Za-z0-9_.-]{1,100}")

Message = dict[str, Any]


class UntoldError(dg.DagsterError):
    """Messages of a run are still to be delivered; the sensor comes back to it at its next tick."""


def messages_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, Message]:
    """Return the messages about a run by their ids, which depend on what happened alone."""
    found = {}
    for entry in instance.all_logs(run.run_id, of_type=_EVENTS):
        for told in _told(instance, entry):
            corpus, judge = _slugs(told.pop("partition"))
            what = {"kind": told["kind"], "corpus": corpus, "judge": judge, "run": run.run_id}
            text = f"judgeline: {told['kind']}, {' '.join(filter(None, [corpus, judge]))}"
            at = datetime.fromtimestamp(entry.timestamp, UTC).isoformat(timespec="seconds")
            named = f"{text}: {told['about']}"
            identity = _identity(run.run_id, *map(str, told.values()), corpus, judge)
            found[identity] = {"text": named, "at": at, **what, **told}
    return found


def _slugs(partition: str) -> list[str]:
    """Return corpus and judge of a partition; empty for none, and for what is no slug."""
    slugs = [*partition.split("|"), ""][:2]
    return [slug if _SLUG.fullmatch(slug) else "" for slug in slugs]


def _identity(*parts: str) -> str:
    return f"judgeline_{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]}"


def _told(instance: dg.DagsterInstance, entry: dg.EventLogEntry) -> Iterator[Message]:
    """Yield what is to be told of an event: the kind, partition, what it is about, and numbers."""
    event = entry.get_dagster_event()
    if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        yield from _of_check(event.asset_check_evaluation_data)
    elif event.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
        yield from _of_placing(instance, event, entry.timestamp)
    elif _is_spent(event.step_failure_data.error):
        run = instance.get_run_by_id(entry.run_id)
        partition = run.tags.get("dagster/partition", "") if run else ""
        about = event.node_handle.name if event.node_handle else ""
        yield {"kind": "budget", "partition": partition, "about": about}


def _of_check(check: Any) -> Iterator[Message]:
    """Yield a gate or drift that did not pass, and what any other check calls an error."""
    is_error = check.severity == dg.AssetCheckSeverity.ERROR
    if check.passed or not (is_error or check.check_name in _KINDS):
        return
    said = {name: value.value for name, value in check.metadata.items()}
    verdict = {"verdict": said["verdict"]} if said.get("verdict") in _VERDICTS else {}
    epoch = {"epoch": said["epoch"]} if isinstance(said.get("epoch"), int) else {}
    yield {
        "kind": _KINDS.get(check.check_name, "check"),
        "partition": str(check.partition or ""),
        "about": check.check_name,
        "asset": check.asset_key.to_user_string(),
        "severity": check.severity.value,
        **verdict,
        **epoch,
    }


def _of_placing(
    instance: dg.DagsterInstance, event: dg.DagsterEvent, when: float
) -> Iterator[Message]:
    """Yield how many candidates a table places, unless the one before it was the same."""
    made = event.step_materialization_data.materialization
    n_placed = made.metadata.get(_ROWS)
    if made.asset_key != _PLACED or n_placed is None or not n_placed.value:
        return
    earlier = instance.fetch_materializations(
        dg.AssetRecordsFilter(
            _PLACED,
            asset_partitions=[made.partition] if made.partition else None,
            before_timestamp=when,
        ),
        limit=1,
    ).records
    before = earlier[0].asset_materialization if earlier else None
    if before and (before.tags or {}).get(_VERSION) == (made.tags or {}).get(_VERSION):
        return
    n = int(str(n_placed.value))
    partition = str(made.partition or "")
    yield {"kind": "placed", "partition": partition, "about": "candidate_ratings", "n_placed": n}


def _is_spent(error: Any) -> bool:
    """Return whether an error, or one behind it, is that of a spent budget."""
    while error is not None:
        if error.cls_name == BudgetError.__name__:
            return True
        error = error.cause
    return False


def tell(instance: dg.DagsterInstance, run: dg.DagsterRun, webhook: Webhook) -> int:
    """Deliver the messages about a run that were not delivered yet; return how many.

    A message that has arrived is noted in a tag of the run. If the process ends before that, the
    message is sent again with the same id, by which the receiver recognises it.
    """
    told = set(filter(None, run.tags.get(TOLD_TAG, "").split(",")))
    due = {one: said for one, said in messages_of(instance, run).items() if one not in told}
    for identity, message in due.items():
        webhook.post(identity, message)
        told.add(identity)
        instance.add_run_tags(run.run_id, {TOLD_TAG: ",".join(sorted(told))})
    return len(due)


def _tell_of(context: dg.RunStatusSensorContext) -> dg.SkipReason:
    """Tell of a run, or say why nobody was told; what could not be delivered stays due."""
    try:
        webhook = Webhook.of_environment()
        if webhook is None:
            return dg.SkipReason(NOT_SET)
        n_told = tell(context.instance, context.dagster_run, webhook)
    except (UndeliveredError, ValueError) as error:
        raise UntoldError(f"{error}; it is tried again at the next tick") from None
    return dg.SkipReason(f"delivered {n_told} messages about run {context.dagster_run.run_id}")


def _sensor(name: str, status: dg.DagsterRunStatus, runs: str) -> dg.RunStatusSensorDefinition:
    return dg.RunStatusSensorDefinition(
        name,
        status,
        _tell_of,
        monitor_all_code_locations=True,  # those of terminals are of no location
        **RUNNING,
        description=f"Posts to {VARIABLE}, if set, what {runs} found: a failed gate or check, "
        "drift, placed candidates, a spent budget.",
    )


tell_of_successes = _sensor("tell_of_successes", dg.DagsterRunStatus.SUCCESS, "runs that succeeded")
tell_of_failures = _sensor("tell_of_failures", dg.DagsterRunStatus.FAILURE, "runs that failed")
