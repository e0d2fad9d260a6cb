"""The main job: the whole lineage of a corpus, in this process, over the shared instance.

A corpus job, a job per judge and a comparison job, because one run cannot mix partitions of
different kinds; where new models were dropped, a job that reads them and one per judge that places
them before the comparison. Needs no server; every run is in the UI afterwards, with its full log.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from rich.console import Console

from assets.budgets import require_environment
from assets.partitions import corpus_judge_key, previews_silenced, register
from assets.planning import ASKED
from pipelines.able import judges_of
from pipelines.candidate_record import PLACES_TAG, are_placed, corpus_verdicts, placing_tags
from pipelines.candidate_sensors import has_candidates
from pipelines.console import RunReporter, blocked, cause, interrupted
from pipelines.definitions import build_definitions
from pipelines.instance import open_instance, recover
from pipelines.outcome import (
    COULD_NOT_RUN,
    OK,
    FailedCheck,
    RunOutcome,
    exit_code,
    print_outcome,
)
from pipelines.plan import plan_run
from pipelines.supported import WHOLE, Part, common_part, methods_part, supported_part
from pipelines.workers import HOST_TAG, this_host
from resources.candidates.choosing import fingerprint
from resources.catalog import Catalog
from resources.corpora.definitions import CorpusDefinition
from resources.judges.budget import Budget
from resources.judges.buying import RETRIED, Buyer
from resources.judges.definitions import JudgeDefinition
from resources.suggest import unknown_name
from resources.tables import ParquetStore, ParquetTables
from resources.verdict_store.resource import StoredVerdicts


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
) -> RunOutcome:
    """Materialise the lineage of a corpus; print a line per step and check, and the outcome.

    Parameters
    ----------
    corpus : str
        Slug of a configured corpus.
    judges : sequence of str, optional
        Slugs of judges; by default those that the corpus names, or else all that can judge it.
    select : sequence of str, optional
        Asset names, or selections such as ``"scored_battles+"``; by default everything.
    dry_run : bool
        Say what would run, and run nothing.
    instance : DagsterInstance, optional
        Where runs are recorded; by default the one that the UI of this installation shows.
    catalog, tables, verdict_store : resources, optional
        Corpora and judges, and where tables and bought verdicts lie; by default those of this
        installation.
    budget : Budget, optional
        Cap on what all judges together are asked; the run stops before it asks more.
    console : rich Console, optional
        Where to print; standard output by default.

    Returns
    -------
    RunOutcome
        With the exit code, every failed check and the cause of every failure. Wrong names and
        failed steps are outcomes, not exceptions.
    """
    console = console or Console()
    catalog, tables = catalog or Catalog(), tables or ParquetTables()
    verdict_store = verdict_store or StoredVerdicts()
    try:
        require_environment()
        definition = catalog.corpus(corpus)
        chosen = judges_of(definition, catalog, judges)
        if definition.embeddings is not None:
            catalog.embedder(definition.embeddings)  # a wrong name costs no call
        store = tables.create_io_manager(None)
        if dry_run:
            buyer = Buyer(verdict_store.open(), retried=RETRIED.union(verdict_store.retry_also))
            chosen_assets = _selected(build_definitions(tables=tables), select)
            asks = [name for name in ASKED if dg.AssetKey(name) in chosen_assets]
            n_battles, plan = plan_run(definition, chosen, store, buyer, asks=asks)
            names = tuple(judge.slug for judge in chosen)
            outcome = RunOutcome(OK, corpus, names, n_battles=n_battles, plan=plan)
        else:
            with _opened(instance) as recorded, RunReporter(console) as reporter:
                defs = build_definitions(
                    catalog=catalog,
                    tables=tables,
                    verdict_store=verdict_store,
                    budget=budget,
                    loggers={"console": reporter.logger()},
                )
                lineage = _Lineage(recorded, reporter, defs, store, select)
                outcome = lineage.run(definition, chosen)
    except dg.DagsterExecutionInterruptedError:
        raise KeyboardInterrupt from None
    except (ValueError, OSError) as error:
        outcome = RunOutcome(COULD_NOT_RUN, corpus, tuple(judges or ()), errors=(str(error),))
    print_outcome(outcome, console)
    return outcome


class _Lineage:
    """The jobs of one corpus, and what has come of them so far."""

    def __init__(
        self,
        instance: dg.DagsterInstance,
        reporter: RunReporter,
        defs: dg.Definitions,
        store: ParquetStore,
        select: Sequence[str] | None,
    ) -> None:
        self._instance = instance
        self._store = store
        self._reporter = reporter
        self._defs = defs
        self._graph = self._defs.resolve_asset_graph()
        self._selected = _selected(self._defs, select)
        self._failed_checks: list[FailedCheck] = []
        self._errors: list[str] = []
        self._report: Path | None = None
        self._made: set[dg.AssetKey] = set()

    def run(self, definition: CorpusDefinition, chosen: Sequence[JudgeDefinition]) -> RunOutcome:
        """Run the corpus, each judge, the candidates, and the comparison of what got through."""
        corpus, judges = definition.slug, tuple(judge.slug for judge in chosen)
        register(self._instance, corpora=[corpus], judges=judges)
        if self._job("corpus_job", corpus):
            parts = {j: supported_part(self._graph, self._store, corpus, j) for j in judges}
            placing = self._placing(chosen)
            done = {
                judge: self._job(
                    "judge_job", corpus_judge_key(corpus, judge), part, _tags_of(placing)
                )
                for judge, part in parts.items()
            }
            self._place_candidates(definition, [judge for judge in placing if done[judge]])
            part = common_part(parts, done)
            if part is None and not self._errors:
                part = methods_part(self._graph, self._made)
            if part is not None:
                self._job("comparison_job", corpus, part)
        return RunOutcome(
            exit_code(self._failed_checks, self._errors),
            corpus,
            judges,
            tuple(self._failed_checks),
            tuple(self._errors),
            self._report,
        )

    def _placing(self, chosen: Sequence[JudgeDefinition]) -> tuple[str, ...]:
        """Return the judges that are to place new models, if any are there by then."""
        if dg.AssetKey("candidate_verdicts") not in self._selected:
            return ()
        return tuple(judge.slug for judge in chosen if judge.kind != "recorded")

    def _place_candidates(self, definition: CorpusDefinition, judges: Sequence[str]) -> None:
        """Read what was dropped for new models, and have each judge place it; often, nothing."""
        corpus = definition.slug
        if not has_candidates(definition, self._store):
            return
        if not self._job("candidate_job", corpus, tags=_tags_of(judges)):
            return
        battles = self._store.stored("candidate_battles", corpus)
        if battles is None:
            return
        about = fingerprint(battles)
        for judge in judges:
            if about or not are_placed(self._instance, corpus, judge, about):
                anchors = corpus_verdicts(self._instance, corpus, judge)
                key = corpus_judge_key(corpus, judge)
                self._job("placing_job", key, tags=placing_tags(about, anchors))

    def _job(
        self,
        name: str,
        partition: str,
        part: Part = WHOLE,
        tags: Mapping[str, str] | None = None,
    ) -> bool:
        job = self._defs.resolve_job_def(name)
        asked = job.asset_layer.executable_asset_keys & self._selected
        keys = asked - part.left_out
        if not asked:
            return True
        if not keys:
            self._errors.append(
                f"{partition}: nothing that --select names can be made ({part.told}); name "
                "reference_ratings or what precedes it, or leave --select out"
            )
            return False
        n_steps = len(keys) + len(self._graph.get_check_keys_for_assets(keys))
        self._reporter.begin(f"{name.replace('_', ' ')} {partition}", n_steps)
        if part.told:
            self._reporter.line("warn", part.told)
        result = job.execute_in_process(
            asset_selection=sorted(keys),
            partition_key=partition,
            instance=self._instance,
            raise_on_error=False,
            tags={HOST_TAG: this_host(), **(tags or {})},
            run_config={"loggers": {"console": {"config": {}}}},
        )
        self._take(result, partition)
        return result.success

    def _take(self, result: dg.ExecuteInProcessResult, partition: str) -> None:
        self._failed_checks += [
            FailedCheck(
                evaluation.asset_key.to_user_string(),
                evaluation.check_name,
                partition,
                evaluation.severity == dg.AssetCheckSeverity.ERROR,
                evaluation.description or "",
            )
            for evaluation in result.get_asset_check_evaluations()
            if not evaluation.passed
        ]
        failures = [event for event in result.all_events if event.is_step_failure]
        if any(interrupted(event) for event in failures):
            raise KeyboardInterrupt
        self._errors += [
            f"{event.step_key} of {partition}: {cause(event)}"
            for event in failures
            if not blocked(event)
        ]
        if not result.success and not failures:
            self._errors.append(f"{partition}: {result.get_run_failure_event().message}")
        for event in result.get_asset_materialization_events():
            self._made.add(event.asset_key)
            if event.asset_key == dg.AssetKey("report"):
                self._report = Path(event.materialization.metadata["path"].value)


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
    text = " or ".join(f"({bare.sub(_as_key, expression)})" for expression in select)
    try:
        with previews_silenced():
            chosen = dg.AssetSelection.from_string(text)
        return chosen.required_multi_asset_neighbors().resolve(graph)
    except dg.DagsterError as error:
        raise ValueError(
            f"cannot select {', '.join(map(repr, select))}: {error}; write asset names, or such "
            "as 'verdicts+' (and what follows), '+report' (and what precedes), 'group:judging'"
        ) from error


def _as_key(name: re.Match[str]) -> str:
    return f'key:"{name[0]}"'


@contextmanager
def _opened(instance: dg.DagsterInstance | None) -> Iterator[dg.DagsterInstance]:
    """Give the instance to record in; one that is opened here is cleared up and closed here."""
    if instance is not None:
        yield instance
        return
    with open_instance() as own:
        recover(own)
        yield own
