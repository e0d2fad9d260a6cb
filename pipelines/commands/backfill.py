"""A backfill: judges on corpora that are there already, made by the daemon of the instance.

It is Dagster's own asset backfill, the one that its web interface starts, of exactly what each
judge's verdicts support. The command states what it costs, has it confirmed, and follows it.
"""

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import dagster as dg
import typer
from rich.console import Console

from assets.judging.assets import plan_judge
from assets.judging.budgets import NO_CAP, require_environment
from assets.partitions import corpus_judge_key, register
from assets.settings import BUDGET_TAG
from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.definition import JudgeDefinition
from judgeline.judges.judge_plan import JudgePlan
from judgeline.options import COULD_NOT_RUN, OK
from judgeline.terminal import plain
from pipelines.commands import console as terminal
from pipelines.commands.gpu_hours import with_gpu_hours
from pipelines.commands.plan import (
    WHOLE,
    common_part,
    judges_of,
    require_covered,
    require_reachable,
    supported_part,
)
from pipelines.commands.run import run_lineage
from pipelines.definitions import build_definitions
from pipelines.instance.homes import open_instance
from pipelines.instance.internals import (
    BULK_ACTION_TERMINAL_STATUSES,
    BulkActionStatus,
    launch_backfill,
)
from pipelines.sensors.candidates import has_candidates
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.stores import StoredVerdicts
from resources.tables.store import ParquetStore, open_store

WITHOUT_CORPUS = "not group:corpus and not (candidates or candidate_battles or candidate_verdicts)"
"""What a backfill makes, as a selection of a run: nothing of the corpus, and nothing of new models,
which a sensor places with a budget of theirs."""
_READ = {
    "sampled_battles": "no sampled battles yet; read it first",
    "recorded_verdicts": "no table of recorded verdicts; read it again",
}
_LONGEST_SILENCE_S = 120.0  # a daemon gives a sign of life every 30 s
_STATES = {
    dg.DagsterRunStatus.QUEUED: ("wait", "dim", "waits for its turn"),
    dg.DagsterRunStatus.STARTED: ("run", "cyan", "started"),
    dg.DagsterRunStatus.SUCCESS: ("done", "green", "done"),
    dg.DagsterRunStatus.FAILURE: ("FAIL", "bold red", "failed"),
    dg.DagsterRunStatus.CANCELED: ("stop", "yellow", "cancelled"),
}


class Pair(NamedTuple):
    """A judge on a corpus."""

    corpus: CorpusDefinition
    judge: JudgeDefinition


def run_backfill(
    judges: Sequence[str],
    corpora: Sequence[str],
    budget: Sequence[str],
    console: Console,
    *,
    yes: bool,
    dry_run: bool,
    here: bool,
    wait: bool,
) -> int:
    """State the plan of a backfill, confirm it and run it; return the exit code."""
    cap = Budget.parse(list(budget)) if budget else None
    catalog, store = Catalog(), open_store()
    pairs = choose_pairs(catalog, store, judges, corpora)
    require_environment()
    plan = [*with_gpu_hours(_planned(pairs, store), pairs, catalog, store, open_instance)]
    terminal.print_plan(plan, console)
    for line in (f"Together: {together(plan)}", *_left_to_sensor(pairs, store)):
        terminal.said(console, line)
    if cap is not None:
        require_covered(plan, cap)
    if dry_run:
        return OK
    if here:
        _confirm(plan, yes=yes)
        return _run_here(pairs, catalog=catalog, budget=cap, console=console)
    with open_instance() as instance:
        require_daemon(instance)
        steps = zip(pairs, plan, strict=True)
        try:
            require_reachable(
                pair.judge for pair, step in steps if step.n_calls and pair.judge.kind == "openai"
            )
        except ValueError as error:
            why = f"Not from here: {error}. The daemon has an environment of its own."
            terminal.said(console, why)
        _confirm(plan, yes=yes)
        backfill_id = submit(instance, build_definitions(), store, pairs, budget)
        terminal.said(console, f"Backfill {backfill_id} is with the daemon.")
        n_runs = len(pairs) + len({pair.corpus.slug for pair in pairs})
        return Watcher(instance, backfill_id, console, n_runs).watch() if wait else OK


def _planned(pairs: Iterable[Pair], store: ParquetStore) -> list[JudgePlan]:
    """Return the plan of each judge on its corpus, without GPU hours."""
    plan, buyer = [], Buyer(StoredVerdicts().open())
    for corpus, judge in pairs:
        _require_read(corpus, store)
        sample, came = (store.stored(asset, corpus.slug) for asset in _READ)
        plan.append(plan_judge(judge, corpus, sample, came, store, buyer))
    return plan


def _run_here(pairs: Iterable[Pair], **options: Any) -> int:
    """Run each corpus with its judges in this process; return the exit code of the worst run."""
    judges: dict[str, list[str]] = {}
    for corpus, judge in pairs:
        judges.setdefault(corpus.slug, []).append(judge.slug)
    codes = [
        run_lineage(corpus=slug, judges=own, select=[WITHOUT_CORPUS], **options).exit_code
        for slug, own in judges.items()
    ]
    return COULD_NOT_RUN if COULD_NOT_RUN in codes else max(codes)


def choose_pairs(
    catalog: Catalog, store: ParquetStore, judges: Sequence[str], corpora: Sequence[str] = ()
) -> list[Pair]:
    """Return the judges on the named corpora, or on all that were read and that they can judge."""
    chosen = [catalog.judge(slug) for slug in dict.fromkeys(judges)]
    if corpora:
        named = [catalog.corpus(slug) for slug in dict.fromkeys(corpora)]
        for corpus in named:
            _require_read(corpus, store)
            judges_of(corpus, catalog, [judge.slug for judge in chosen])
        return [Pair(corpus, judge) for corpus in named for judge in chosen]
    known = catalog.corpora()
    there = [slug for slug in known if store.stored("sampled_battles", slug) is not None]
    pairs = [
        Pair(known[slug], judge)
        for slug in there
        for judge in chosen
        if judge.slug in (known[slug].judges or ()) or _can_judge(judge, known[slug], store)
    ]
    for judge in chosen:
        if not any(pair.judge.slug == judge.slug for pair in pairs):
            needed = "its verdicts" if judge.kind == "recorded" else "texts to judge"
            raise ValueError(
                f"there is no corpus that judge {judge.slug!r} can judge (read so far: "
                f"{', '.join(there) or 'none'}); read one with {needed} first: judgeline run "
                "--corpus SLUG --select group:corpus"
            )
    return pairs


def _require_read(corpus: CorpusDefinition, store: ParquetStore) -> None:
    for asset, problem in _READ.items():
        if store.stored(asset, corpus.slug) is None:
            raise ValueError(
                f"corpus {corpus.slug!r} has {problem}: "
                f"judgeline run --corpus {corpus.slug} --select group:corpus"
            )


def _can_judge(judge: JudgeDefinition, corpus: CorpusDefinition, store: ParquetStore) -> bool:
    came = store.stored("recorded_verdicts", corpus.slug)
    if came is not None and came["judge"].eq(judge.slug).any():
        return True
    if judge.kind in ("recorded", "builtin"):
        return judge.kind == "builtin" and corpus.reader == "arena"
    sample = store.stored("sampled_battles", corpus.slug)
    texts = ["instruction", "completion_a", "completion_b"]
    return sample is not None and bool(sample[texts].notna().all(axis=None))


def together(plan: Sequence[JudgePlan]) -> str:
    """Return the calls, tokens and money of several judges, by currency."""
    parts = [f"{sum(step.n_calls for step in plan):,} calls"]
    if n_tokens := sum(step.n_tokens for step in plan):
        parts.append(f"about {n_tokens:,} tokens")
    for currency in sorted({step.currency for step in plan if step.money is not None}):
        money = sum(step.money or 0.0 for step in plan if step.currency == currency)
        parts.append(f"about {money:,.2f} {currency}")
    due = [step for step in plan if step.n_calls and step.tokens and step.money is None]
    parts += [f"{step.partition} {step.gpu_hours}" for step in due if step.is_timed]
    if unpriced := {step.judge for step in due if not step.is_timed}:
        parts.append(f"price unknown of {', '.join(sorted(unpriced))}")
    return ", ".join(parts)


def _left_to_sensor(pairs: Iterable[Pair], store: ParquetStore) -> list[str]:
    """Return a sentence per corpus with candidates on the sensor or command that places them."""
    corpora = {pair.corpus.slug: pair.corpus for pair in pairs if pair.judge.kind != "recorded"}
    return [
        f"{slug} has candidates, which are not part of it: afterwards the sensor place_candidates "
        f"of a daemon, or judgeline run --corpus {slug}, places them, within candidates.budget "
        f"({' '.join(corpus.candidates.budget)} for each judge and run)"
        for slug, corpus in corpora.items()
        if has_candidates(corpus, store)
    ]


def _confirm(plan: Sequence[JudgePlan], *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ValueError(
            f"nobody is there to confirm ({together(plan)}), since the input is no terminal; add "
            "--yes to go on without"
        )
    typer.confirm(f"Go on ({together(plan)})?", abort=True, err=True)


def require_daemon(instance: dg.DagsterInstance) -> None:
    """Check that a daemon of the instance is at work, which a backfill needs."""
    heartbeats = instance.get_daemon_heartbeats()
    for kind in {"BACKFILL", "QUEUED_RUN_COORDINATOR"} & {*instance.get_required_daemon_types()}:
        beat = heartbeats.get(kind)
        silent_for = time.time() - beat.timestamp if beat else float("inf")
        if silent_for > _LONGEST_SILENCE_S:
            seen = f"silent for {silent_for:,.0f} s" if beat else "never seen"
            raise RuntimeError(
                f"no daemon runs backfills of this instance ({kind.lower()}: {seen}). Start one "
                "and leave it running: judgeline ui (docs/judges-and-schedules.md). Or do the "
                "work in this process: add --here"
            )


def submit(
    instance: dg.DagsterInstance,
    defs: dg.Definitions,
    store: ParquetStore,
    pairs: Sequence[Pair],
    budget: Sequence[str] = (),
) -> str:
    """Hand the daemon a backfill of each judge, and of each corpus' comparison; return its id."""
    of_corpus: dict[str, list[str]] = {}
    for pair in sorted(pairs, key=lambda pair: pair.corpus.slug):
        of_corpus.setdefault(pair.corpus.slug, []).append(pair.judge.slug)
    judges = sorted({pair.judge.slug for pair in pairs})
    register(instance, corpora=of_corpus, judges=judges)
    graph = defs.resolve_asset_graph()
    judged, compared = (
        {*defs.resolve_job_def(name).asset_layer.executable_asset_keys}
        for name in ("judge_job", "comparison_job")
    )
    targets: set[tuple[dg.AssetKey, str]] = set()
    for corpus, own in of_corpus.items():
        parts = {judge: supported_part(graph, store, corpus, judge) for judge in own}
        for judge, part in parts.items():
            partition = corpus_judge_key(corpus, judge)
            targets |= {(key, partition) for key in judged - part.left_out}
        common = common_part(parts, dict.fromkeys(parts, True)) or WHOLE
        targets |= {(key, corpus) for key in compared - common.left_out}
    tags = {BUDGET_TAG: " ".join(budget) or NO_CAP}  # a person typed it
    title = f"judgeline backfill of {', '.join(judges)}"
    return launch_backfill(instance, graph, targets, tags, title)


def cancel(instance: dg.DagsterInstance, backfill_id: str) -> None:
    """Ask the daemon to end a backfill and its runs; what was bought is kept."""
    backfill: Any = instance.get_backfill(backfill_id)
    if backfill is None:
        raise ValueError(f"there is no backfill {backfill_id!r}; the UI lists them under Runs")
    if backfill.status != BulkActionStatus.REQUESTED:
        raise ValueError(f"backfill {backfill_id!r} is {backfill.status.value.lower()} already")
    instance.update_backfill(backfill.with_status(BulkActionStatus.CANCELING))


class Watcher:
    """Follows a backfill until it ends; `n_expected` is how many runs it is expected to take."""

    def __init__(
        self, instance: dg.DagsterInstance, backfill_id: str, console: Console, n_expected: int
    ) -> None:
        self._id, self._instance, self._console = backfill_id, instance, console
        self._seen: dict[str, dg.DagsterRunStatus] = {}
        self._progress = terminal.progress_bar(console)
        self._task = self._progress.add_task("waiting for the daemon", total=n_expected)

    def watch(self) -> int:
        """Follow the backfill to its end, or until Ctrl-C; return the exit code."""
        try:
            status = self.follow()
        except KeyboardInterrupt as stop:
            stop.is_answered = True  # type: ignore[attr-defined]
            left = f"No longer watching; backfill {self._id} goes on. To end it: "
            terminal.said(self._console, f"{left}judgeline backfill --cancel {self._id}")
            return OK
        outcome = self._outcome()
        if status == BulkActionStatus.CANCELED:
            outcome.errors.append(f"backfill {self._id} was cancelled; what was bought is kept")
        done = (BulkActionStatus.COMPLETED_SUCCESS, BulkActionStatus.COMPLETED)
        if outcome.exit_code == OK and status not in done:
            end = status.value.lower()
            outcome.errors.append(f"backfill {self._id} ended as {end}; the UI has its log")
        terminal.print_outcome(outcome, self._console)
        return outcome.exit_code

    def follow(self, pause: float = 2.0) -> BulkActionStatus:
        """Print each change of a run's state, polled every `pause` seconds; return the end."""
        with self._progress:
            while True:
                backfill = self._instance.get_backfill(self._id)
                status = backfill.status if backfill else BulkActionStatus.FAILED
                self._look()
                if status in BULK_ACTION_TERMINAL_STATUSES:
                    return status
                time.sleep(pause)

    def _outcome(self) -> terminal.RunOutcome:
        """Return the failed checks and the errors; of retries the last counts."""
        outcome = terminal.RunOutcome("")
        runs = self._runs()
        repeated = {run.parent_run_id for run in runs}
        for run in (run for run in runs if run.run_id not in repeated):
            partition = _partition(run)
            for event in self._events(run, dg.DagsterEventType.ASSET_CHECK_EVALUATION):
                found = event.asset_check_evaluation_data
                if not found.passed:
                    outcome.failed_checks.append(terminal.failed_check(found, partition))
            if run.status != dg.DagsterRunStatus.FAILURE:
                continue
            failures = self._events(run, dg.DagsterEventType.STEP_FAILURE)
            outcome.errors += terminal.errors_of(failures, partition)
            if not failures:
                ends = self._events(run, dg.DagsterEventType.RUN_FAILURE)
                why = ends[-1].message if ends else "its process ended"
                outcome.errors.append(f"{partition}: {why}")
        backfill = self._instance.get_backfill(self._id)
        if backfill is not None and backfill.error is not None:
            error = " ".join(backfill.error.message.split())
            outcome.errors.append(f"the backfill itself: {error}")
        return outcome

    def _runs(self) -> list[dg.DagsterRun]:
        tags = {"dagster/backfill": self._id}
        return [*reversed(self._instance.get_runs(dg.RunsFilter(tags=tags)))]

    def _look(self) -> None:
        runs = self._runs()
        for run in runs:
            if run.status == dg.DagsterRunStatus.STARTED:
                self._progress.update(self._task, description=plain(_partition(run)))
            if self._seen.get(run.run_id) == run.status:
                continue
            self._seen[run.run_id] = run.status
            if run.status in _STATES:
                mark, style, state = _STATES[run.status]
                again = " again" if run.parent_run_id and state == "started" else ""
                made = f"{len(run.asset_selection or ())} tables, run {run.run_id[:8]}"
                text = f"{_partition(run)}: {state}{again} ({made})"
                terminal.marked(self._console, mark, style, text)
        n_ended = sum(run.status == dg.DagsterRunStatus.SUCCESS for run in runs)
        self._progress.update(self._task, completed=n_ended)

    def _events(self, run: dg.DagsterRun, kind: dg.DagsterEventType) -> list[Any]:
        records = self._instance.get_records_for_run(run.run_id, of_type=kind).records
        return [record.event_log_entry.dagster_event for record in records]


def _partition(run: dg.DagsterRun) -> str:
    return run.tags.get("dagster/partition", "no partition")
