"""The main job: the whole lineage of a corpus, in this process, over the shared instance.

A corpus job, a job per judge and a comparison job, because one run cannot mix partitions of
different kinds; where new models were dropped, a job that reads them and one per judge that places
them before the comparison. Needs no server; every run is in the UI afterwards, with its full log.
"""

import re
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import dagster as dg
from rich.console import Console

from assets.candidates.choosing import fingerprint
from assets.judging.assets import ASKED
from assets.judging.budgets import require_environment
from assets.partitions import corpus_judge_key, previews_silenced, register
from judgeline.intervals import withheld_reason
from judgeline.io.layouts.ratings import RATINGS, read_ratings
from judgeline.judges.budget import Budget
from judgeline.judges.buying import Buyer
from judgeline.judges.definition import JudgeDefinition
from judgeline.paths import readable_home_message
from judgeline.suggest import unknown_name
from judgeline.tables.intervals import with_judge_columns
from judgeline.terminal import leaderboard_table, open_console, plain
from pipelines.commands.child_processes import beside, n_processes
from pipelines.commands.console import (
    INTERRUPTED,
    FailedCheck,
    RunOutcome,
    RunReporter,
    error_name,
    errors_of,
    failed_check,
    print_outcome,
    said,
)
from pipelines.commands.gpu_hours import with_gpu_hours
from pipelines.commands.leaderboards import print_conclusion
from pipelines.commands.plan import (
    WHOLE,
    LeftOut,
    asked_judges,
    common_part,
    judges_of,
    methods_part,
    plan_run,
    require_reachable,
    supported_part,
)
from pipelines.commands.up_to_date import LineageRecord, first_wave
from pipelines.definitions import build_definitions
from pipelines.instance.homes import HOST_TAG, open_instance, recover
from pipelines.instance.internals import shown_with_jobs
from pipelines.instance.processes import this_host
from pipelines.sensors.candidates import PLACES_TAG, has_candidates, has_votes, placing_of
from resources.config.catalog import Catalog
from resources.config.corpora import CorpusDefinition
from resources.corpora.locations import corpus_files
from resources.opening import require_asked
from resources.stores import StoredVerdicts
from resources.tables.store import ParquetStore, ParquetTables

_BOARD, _REPORT = dg.AssetKey("leaderboard"), dg.AssetKey("report")
_ASKED_ABOUT_THEM = dg.AssetKey("candidate_verdicts")
_LOCAL = ("builtin", "recorded")  # kinds of judges that no endpoint limits, and nobody waits for
_NOT_RETRIED = {"dagster/max_retries": "0"}  # by the daemon: who typed a run types it again
_STOPS = {signal.SIGINT, signal.SIGTERM}  # Dagster handles both alike


def run_lineage(
    *,
    corpus: str,
    judges: Sequence[str] | None = None,
    select: Sequence[str] | None = None,
    dry_run: bool = False,
    instance: dg.DagsterInstance | None = None,
    catalog: Catalog | None = None,
    tables: ParquetTables | None = None,
    verdict_store: StoredVerdicts | None = None,
    budget: Budget | None = None,
    console: Console | None = None,
    force: bool = False,
    verbose: bool = True,
) -> RunOutcome:
    """Make the tables of a corpus that are not up to date; if not `verbose`, end in a board."""
    console, catalog = console or open_console(), catalog or Catalog()
    stores = tables or ParquetTables(), verdict_store or StoredVerdicts()
    asked = _Request(corpus, judges, select, catalog, *stores, instance, force)
    try:
        require_environment()
        outcome = asked.plan() if dry_run else asked.run(budget, console, verbose=verbose)
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    except (ValueError, OSError) as error:
        outcome = RunOutcome(corpus, tuple(judges or ()), errors=[str(error)])
    _print(outcome, catalog, console, verbose=verbose)
    return outcome


@dataclass(frozen=True)
class _Request:
    """A corpus, judges and tables by name, and the stores of a run over them."""

    corpus: str
    judges: Sequence[str] | None
    select: Sequence[str] | None
    catalog: Catalog
    tables: ParquetTables
    verdict_store: StoredVerdicts
    instance: dg.DagsterInstance | None
    force: bool

    @cached_property
    def definition(self) -> CorpusDefinition:
        """Return the corpus; ValueError if it is unknown."""
        return self.catalog.corpus(self.corpus)

    @cached_property
    def store(self) -> ParquetStore:
        """Return the store of tables."""
        return self.tables.create_io_manager(None)

    def choose(self, instance: dg.DagsterInstance | None = None) -> list[JudgeDefinition]:
        """Return the judges to run, as `judges_of`; ValueError for an unknown embedder."""
        chosen = judges_of(self.definition, self.catalog, self.judges, instance)
        if self.definition.embeddings is not None:
            self.catalog.embedder(self.definition.embeddings)  # a wrong name costs no call
        return chosen

    def plan(self) -> RunOutcome:
        """Return the calls of each judge that a run would make; nobody is asked."""
        chosen, defs = self.choose(), build_definitions(tables=self.tables)
        if self.definition.reader == RATINGS.name:
            texts = read_ratings(corpus_files(self.definition))
            return RunOutcome(self.corpus, n_texts=len(texts))
        selected = _selected(defs, self.select)
        asks, buyer = _asking(selected), self._buyer()
        self._require_asked(chosen, asks)
        settled: dict[str, list[str]] = {}
        if not self.force and any(self.store.partitions(name, self.corpus) for name in asks):
            with self._opened() as recorded:
                record = self._record(recorded, defs)
                for judge in chosen:
                    settled[judge.slug] = record.settled(asks, selected, self.corpus, judge.slug)
        known = (self.definition, chosen, self.store, buyer)
        n_battles, plan = plan_run(*known, asks=asks, settled=settled)
        asked = [(self.definition, judge) for judge in chosen]
        plan = with_gpu_hours(plan, asked, self.catalog, self.store, self._opened)
        names = tuple(judge.slug for judge in chosen)
        return RunOutcome(self.corpus, names, n_battles=n_battles, plan=plan)

    def run(self, budget: Budget | None, console: Console, *, verbose: bool) -> RunOutcome:
        """Make the tables, once the endpoint of each judge that is to be asked has answered."""
        self._require_reachable()
        with self._opened() as recorded, RunReporter(console, verbose=verbose) as reporter:
            if self.instance is None:
                recover(recorded)
            defs = build_definitions(
                catalog=self.catalog,
                tables=self.tables,
                verdict_store=self.verdict_store,
                budget=budget,
                loggers={"console": reporter.logger()},
            )
            outcome, record = RunOutcome(self.corpus), self._record(recorded, defs)
            may_fork = budget is None and recorded.is_persistent
            known = (outcome, reporter, defs, record, _selected(defs, self.select))
            lineage = _Lineage(*known, force=self.force, may_fork=may_fork)
            lineage.run(self.definition, self.choose)
            reporter.outcome = lineage.outcome
            return lineage.outcome

    def _require_reachable(self) -> None:
        chosen = self.choose()
        served = [judge for judge in chosen if judge.kind == "openai"]
        if any(judge.kind != "recorded" for judge in chosen):
            asks = _asking(_selected(build_definitions(tables=self.tables), self.select))
            self._require_asked(chosen, asks)
        if served:
            known = (self.definition, served, self.store, self._buyer(), asks)
            require_reachable(asked_judges(*known))

    def _require_asked(self, chosen: Sequence[JudgeDefinition], asks: Sequence[str]) -> None:
        """Refuse, before any other form is bought, judges without the form that a board rests on.

        Verdicts that came with the corpus need nobody who is asked.
        """
        came = self.store.stored("recorded_verdicts", self.corpus)
        known = set() if came is None else {*came["judge"]}
        for judge in chosen if "verdicts" in asks else ():
            if judge.slug not in known:
                require_asked(judge, "rubric")

    def _buyer(self) -> Buyer:
        return Buyer(self.verdict_store.open(), retried=self.verdict_store.retried)

    def _opened(self) -> AbstractContextManager[dg.DagsterInstance]:
        return open_instance() if self.instance is None else nullcontext(self.instance)

    def _record(self, recorded: dg.DagsterInstance, defs: dg.Definitions) -> LineageRecord:
        graph, catalog = defs.resolve_asset_graph(), self.catalog.frozen()
        return LineageRecord(recorded, graph, self.store, catalog, self.verdict_store)


def _asking(selected: Collection[dg.AssetKey]) -> list[str]:
    """Return the names of the selected tables that are made by asking judges."""
    return [name for name in ASKED if dg.AssetKey(name) in selected]


def _print(outcome: RunOutcome, catalog: Catalog, console: Console, *, verbose: bool) -> None:
    """Print a run's outcome; if not `verbose`, warnings of a simulation are counted only."""
    corpus = outcome.corpus
    others = [
        one for one in outcome.failed_checks if verbose or not _is_simulated(one, corpus, catalog)
    ]
    if n_counted := len(outcome.failed_checks) - len(others):
        text = f"{n_counted}, all of this simulation and none of data of yours; -v prints them"
        said(console, f"\nWarnings: {text}")
    print_outcome(replace(outcome, failed_checks=others), console)
    if not verbose and outcome.ends_in_a_board:
        print_conclusion(console, corpus)
    if outcome.made and (told := readable_home_message()):
        said(console, f"Note: {told}")


def _is_simulated(check: FailedCheck, corpus: str, catalog: Catalog) -> bool:
    """Return whether a warning is of the arena alone, or of a simulated judge there."""
    judge = check.partition.partition("|")[2]
    is_warning_of_arena = not check.is_gate and catalog.corpus(corpus).reader == "arena"
    return is_warning_of_arena and (not judge or catalog.judge(judge).kind == "builtin")


@dataclass
class _Lineage:
    """The jobs of one corpus, and their results so far."""

    outcome: RunOutcome
    reporter: RunReporter
    defs: dg.Definitions
    record: LineageRecord
    selected: Set[dg.AssetKey]
    force: bool
    may_fork: bool

    def run(
        self, definition: CorpusDefinition, choose: Callable[..., list[JudgeDefinition]]
    ) -> None:
        """Run the corpus, each judge, the candidates, and the comparison of those that passed."""
        corpus = definition.slug
        register(self.record.instance, corpora=[corpus])
        if definition.reader == RATINGS.name:
            self._job("ratings_job", corpus)
            return
        is_read = self._job("corpus_job", corpus)
        chosen = choose(self.record.instance if is_read else None)
        judges = self.outcome.judges = tuple(judge.slug for judge in chosen)
        register(self.record.instance, judges=judges)
        if is_read:
            self._read_votes(corpus)
            parts = {
                j: supported_part(self.record.graph, self.record.store, corpus, j) for j in judges
            }
            placing = [judge.slug for judge in chosen if judge.kind != "recorded"]
            placing = placing if _ASKED_ABOUT_THEM in self.selected else []

            def work(some: Sequence[str]) -> dict[str, bool]:
                """Run the jobs of judges; return for each whether all of it succeeded."""
                keys = {judge: corpus_judge_key(corpus, judge) for judge in some}
                tags = _tags_of(placing)
                return {j: self._job("judge_job", keys[j], parts[j], tags) for j in some}

            is_local = all(judge.kind in _LOCAL for judge in chosen)
            done = self._shared_out(judges, work) if is_local and self.may_fork else work(judges)
            self._place_candidates(definition, [judge for judge in placing if done[judge]])
            part = common_part(parts, done)
            if part is None and not self.outcome.errors:
                part = methods_part(self.record.graph, self.outcome.there)
            if part is not None:
                self._job("comparison_job", corpus, part)

    def _shared_out(
        self, judges: Sequence[str], work: Callable[[Sequence[str]], dict[str, bool]]
    ) -> dict[str, bool]:
        """Share judges out among as many processes as there are cores; print them in order."""
        size = -(-len(judges) // n_processes())
        own, *others = (judges[first : first + size] for first in range(0, len(judges), size))

        def apart(part: Sequence[str]) -> tuple[dict[str, bool], RunOutcome, str]:
            self.outcome, printed = RunOutcome(self.outcome.corpus), self.reporter.in_memory()
            try:
                return work(part), self.outcome, printed.getvalue()
            finally:
                self.record.instance.dispose()  # else its journals stay, of 4 MB each

        with ExitStack() as stack:
            with self.reporter.still():
                results = stack.enter_context(beside([partial(apart, part) for part in others]))
            done = work(own)
            for part in others:
                try:
                    theirs, came, printed = next(results)
                except (ValueError, OSError, RuntimeError) as error:
                    self.outcome.errors.append(f"{', '.join(part)}: {error}")
                    done |= dict.fromkeys(part, False)
                    continue
                done |= theirs
                self.outcome.add(came)
                self.reporter.repeat(printed)
        return done

    def _place_candidates(self, definition: CorpusDefinition, judges: Sequence[str]) -> None:
        """Read the dropped files of new models, and place each by each judge; often, nothing."""
        corpus = definition.slug
        if not has_candidates(definition, self.record.store):
            return
        is_read = self._job("candidate_job", corpus, tags=_tags_of(judges))
        battles = self.record.store.stored("candidate_battles", corpus) if is_read else None
        if battles is None:
            return
        about = fingerprint(battles)
        for judge in judges:
            placing = placing_of(self.record.instance, corpus, judge, about)
            if about or not placing.is_done:
                key = corpus_judge_key(corpus, judge)
                again = frozenset() if placing.is_done else frozenset({_ASKED_ABOUT_THEM})
                self._job("placing_job", key, tags=placing.tags, again=again)

    def _read_votes(self, corpus: str) -> None:
        """Read the files of votes; a file in the place of their folder leaves the votes as read."""
        try:
            if has_votes(corpus, self.record.store):
                self._job("votes_job", corpus)
        except NotADirectoryError as error:
            self.reporter.line("warn", str(error))

    def _job(
        self,
        name: str,
        partition: str,
        part: LeftOut = WHOLE,
        tags: Mapping[str, str] | None = None,
        again: Set[dg.AssetKey] = frozenset(),
    ) -> bool:
        """Make the tables of a job that are not up to date; return whether all of that succeeded.

        In as many runs as it takes: whether a table follows is known when its inputs are made.
        """
        job = self.defs.resolve_job_def(name)
        whole = {*job.asset_layer.executable_asset_keys}
        asked = whole & self.selected
        keys = asked - part.left_out
        if not asked:
            return True
        if not keys and asked == whole and self.outcome.there:
            return True  # the jobs before have said why these are left out
        if not keys:
            self.outcome.errors.append(
                f"{partition}: nothing that --select names can be made ({part.told}); name "
                "reference_ratings or what precedes it, or leave --select out"
            )
            return False
        if part.told:
            self.reporter.line("warn", part.told)
        left, succeeded = set(keys), True
        due = left if self.force else self.record.stale(left, partition) | (again & left)
        if due and _BOARD in left and not due & self.record.sources_of(_BOARD):
            self._show_board(partition, due)
        while wave := first_wave(self.record.graph, left, due):
            result = self._execute(job, wave, partition, tags or {})
            succeeded &= result.success
            left -= wave | self._stopped(wave, result)
            due = self.record.stale(left, partition) if left else set()
        counted = self.outcome.made | self.outcome.up_to_date  # two jobs share the leaderboard
        new = {key for key in left if (key, partition) not in counted}
        self.outcome.up_to_date |= {(key, partition) for key in new}
        self.outcome.there |= left
        self.outcome.failed_checks += self.record.failed_checks(new, partition)
        if _REPORT in left:
            self.outcome.report = Path(self.record.metadata(_REPORT, partition)["path"])
        return succeeded

    def _execute(
        self, job: dg.JobDefinition, keys: Set[dg.AssetKey], partition: str, tags: Mapping[str, str]
    ) -> dg.ExecuteInProcessResult:
        parts = keys | self.record.graph.get_check_keys_for_assets(keys)
        steps = {
            frozenset(self.record.graph.get_execution_set_asset_and_check_keys(k)) for k in parts
        }
        title = f"{job.name.replace('_', ' ')} {partition}"
        self.reporter.begin(title, len(steps), partial(self._show_board, partition, keys))
        with interrupts_raised(), shown_with_jobs(self.record.instance, job.name):
            result = job.execute_in_process(
                asset_selection=sorted(keys),
                partition_key=partition,
                instance=self.record.instance,
                raise_on_error=False,
                tags={HOST_TAG: this_host(), **_NOT_RETRIED, **tags},
                run_config={"loggers": {"console": {"config": {}}}},
            )
        self.reporter.end(title)
        self.outcome.failed_checks += [
            failed_check(evaluation, partition)
            for evaluation in result.get_asset_check_evaluations()
            if not evaluation.passed
        ]
        failures = [event for event in result.all_events if event.is_step_failure]
        if any(error_name(event) == INTERRUPTED for event in failures):
            raise KeyboardInterrupt
        self.outcome.errors += errors_of(failures, partition)
        if not result.success and not failures:
            self.outcome.errors.append(f"{partition}: {result.get_run_failure_event().message}")
        for event in result.get_asset_materialization_events():
            made = event.materialization
            self.outcome.there.add(made.asset_key)
            self.outcome.made.add((made.asset_key, partition))
            if made.asset_key == _REPORT:
                self.outcome.report = Path(str(made.metadata["path"].value))
        return result

    def _show_board(self, partition: str, due: Set[dg.AssetKey]) -> None:
        """Show the first leaderboard that stands, with what of `due` and of others follows."""
        if not self.reporter.wants_board:
            return
        corpus, judge = partition.split("|")
        board = self.record.store.stored("leaderboard", corpus, judge)
        if board is None or withheld_reason(board["flags"].iloc[0]):
            return
        needed = self.record.sources_of(_BOARD)
        later = sorted(key.to_user_string().replace("_", " ") for key in due - needed)
        judges = self.outcome.judges
        later += [f"judge {other}" for other in judges[judges.index(judge) + 1 :]]
        later += ["comparison", "report"] if _REPORT in self.selected else []
        name = self.record.catalog.corpus(corpus).display_name
        table = leaderboard_table(with_judge_columns(board), plain(f"{name} by {judge}, in Elo"))
        note = f"The first board stands. Still being made: {', '.join(later)}." if later else ""
        self.reporter.show_board(table, note)

    def _stopped(
        self, tried: Set[dg.AssetKey], result: dg.ExecuteInProcessResult
    ) -> set[dg.AssetKey]:
        """Return the assets downstream of a failed table or of a failed blocking check."""
        made = {event.asset_key for event in result.get_asset_materialization_events()}
        gates = {
            evaluation.asset_key
            for evaluation in result.get_asset_check_evaluations()
            if not evaluation.passed
            and evaluation.severity == dg.AssetCheckSeverity.ERROR
            and self.record.graph.get(evaluation.asset_check_key).blocking
        }
        selection = dg.AssetSelection.assets(*(tried - made), *gates).downstream()
        return {*selection.resolve(self.record.graph)}


def _tags_of(placing: Sequence[str]) -> dict[str, str]:
    """Return the tags by which the sensor leaves these judges' candidates to this process."""
    return {PLACES_TAG: ",".join(placing)} if placing else {}


def _selected(defs: dg.Definitions, select: Sequence[str] | None) -> set[dg.AssetKey]:
    """Return the chosen assets, with those that are made in the same step as one of them."""
    graph = defs.resolve_asset_graph()
    if not select:
        return set(graph.executable_asset_keys)
    known = sorted(key.to_user_string() for key in graph.executable_asset_keys)
    for name in select:
        if re.fullmatch(r"\w+", name) and name not in known:
            raise ValueError(unknown_name("asset", name, known, "the lineage"))
    # Dagster wants key:"name" where a person writes the name.
    bare = re.compile(rf'(?<![\w:"])({"|".join(known)})(?!\w)')
    text = " or ".join("(" + bare.sub(r'key:"\1"', expression) + ")" for expression in select)
    try:
        with previews_silenced():
            chosen = dg.AssetSelection.from_string(text)
        return {*chosen.required_multi_asset_neighbors().resolve(graph)}
    except dg.DagsterError as error:
        raise ValueError(
            f"cannot select {', '.join(map(repr, select))}: {error}; write asset names, or such "
            "as 'verdicts+' (and what follows), '+report' (and what precedes), 'group:judging'"
        ) from error


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of a block that was interrupted and went on.

    Dagster drops a signal that arrives after the last step of a job. Signals reach the main
    thread only; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.setblocking(False)
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
        writer.close()
        if _STOPS.intersection(reader.recv(1024)):
            raise KeyboardInterrupt
