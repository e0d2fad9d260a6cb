"""`judgeline backfill`: states what judges would be asked, has it confirmed, and has it done."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from judgeline.cli import COULD_NOT_RUN, OK
from judgeline.terminal import open_console, plain

if TYPE_CHECKING:
    import dagster as dg
    from rich.console import Console

    from pipelines.commands.backfill import Pair
    from resources.config.catalog import Catalog
    from resources.judges.judge_plan import JudgePlan
    from resources.tables.store import ParquetStore

_HELP = (
    "[bold]Examples[/bold]\n\n"
    "  judgeline backfill --judge gpt-4o-mini --budget 20USD\n\n"
    "  judgeline backfill --judge strict --corpus arena --yes --here\n\n"
    "[bold]Exit codes[/bold]  0 ok · 1 could not run · 2 a quality gate failed · "
    "130 interrupted"
)


def register_backfill(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog=_HELP)(backfill)


def backfill(
    judge: Annotated[
        list[str] | None,
        typer.Option(help="Slug of a judge; repeat for more.", show_default=False),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            help="Slug of a corpus; repeat for more. By default all that were read and that the "
            "judge can judge.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CAP",
            help="Hard cap on the whole backfill: 5000calls, 2Mtokens or 12.50USD; repeat to cap "
            "several. Starts nothing if more is expected.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="State what would be asked and its price; ask nobody.")
    ] = False,
    here: Annotated[
        bool, typer.Option("--here", help="Do the work in this process; needs no daemon.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Follow it to its end, or leave it running.")
    ] = True,
    cancel: Annotated[
        str | None,
        typer.Option(metavar="ID", help="End a backfill that runs.", show_default=False),
    ] = None,
) -> None:
    """Have judges judge corpora that were read before; other judges' tables stay untouched.

    States calls, tokens and price first, and asks. The work is done by the daemon that
    `judgeline ui` starts: this command only follows it, and can be left with Ctrl-C. New models
    are not part of it: a sensor places them afterwards.
    """
    from pipelines.commands.backfill import choose_pairs
    from pipelines.commands.plan import require_covered
    from resources.config.catalog import Catalog
    from resources.judges.budget import Budget
    from resources.tables.store import open_store

    console = open_console()
    if cancel is not None:
        _cancel(cancel, console)
        raise typer.Exit(OK)
    if not judge:
        raise ValueError("name a judge: judgeline backfill --judge SLUG; `judgeline judges` lists")
    cap = Budget.parse(budget) if budget else None
    catalog, store = Catalog(), open_store()
    pairs = choose_pairs(catalog, store, judge, corpus or ())
    plan = _stated(pairs, store, console)
    if cap is not None:
        require_covered(plan, cap)
    if dry_run:
        raise typer.Exit(OK)
    if here:
        _confirm(plan, yes=yes)
        raise typer.Exit(_run_here(catalog, pairs, cap, console))
    raise typer.Exit(_submit(store, pairs, plan, budget or (), console, yes=yes, wait=wait))


def _cancel(backfill_id: str, console: "Console") -> None:
    from pipelines.commands.backfill import cancel
    from pipelines.instance.homes import open_instance

    with open_instance() as instance:
        cancel(instance, backfill_id)
    console.print("The daemon ends it and its runs. What was bought is kept.")


def _stated(
    pairs: "Sequence[Pair]", store: "ParquetStore", console: "Console"
) -> "tuple[JudgePlan, ...]":
    """Print what each judge would be asked, and all of them together, and return it."""
    from pipelines.commands.backfill import left_to_sensor, plan_backfill
    from resources.judges.buying import Buyer
    from resources.judges.judge_plan import told
    from resources.store.resource import StoredVerdicts

    plan = plan_backfill(pairs, store, Buyer(StoredVerdicts().open()))
    for step in plan:
        calls, *details = told(step)
        console.print(f"  {plain(calls)}", highlight=False, soft_wrap=True)
        for detail in details:
            console.print(f"    {plain(detail)}", highlight=False, soft_wrap=True)
    console.print(f"Together: {_together(plan)}", highlight=False, soft_wrap=True)
    for told_of_corpus in left_to_sensor(pairs, store):
        console.print(plain(told_of_corpus), highlight=False, soft_wrap=True)
    return plan


def _together(plan: "Sequence[JudgePlan]") -> str:
    n_calls = sum(step.n_calls for step in plan)
    told = [f"{n_calls:,} calls"]
    if n_tokens := sum(step.n_tokens for step in plan):
        told.append(f"about {n_tokens:,} tokens")
    for currency in sorted({step.currency for step in plan if step.money is not None}):
        money = sum(step.money or 0.0 for step in plan if step.currency == currency)
        told.append(f"about {money:,.2f} {currency}")
    unpriced = {step.judge for step in plan if step.n_calls and step.tokens and step.money is None}
    if unpriced:
        told.append(f"price unknown of {', '.join(sorted(unpriced))}")
    return ", ".join(told)


def _confirm(plan: "Sequence[JudgePlan]", *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ValueError(
            f"nobody is there to confirm ({_together(plan)}), since the input is no terminal; add "
            "--yes to go on without"
        )
    typer.confirm(f"Go on ({_together(plan)})?", abort=True, err=True)


def _run_here(catalog: "Catalog", pairs: "Sequence[Pair]", cap: object, console: "Console") -> int:
    """Do the work corpus by corpus in this process, and return the worst exit code."""
    from pipelines.commands.backfill import WITHOUT_CORPUS
    from pipelines.commands.run import run_lineage

    codes = []
    for slug in dict.fromkeys(pair.corpus.slug for pair in pairs):
        outcome = run_lineage(
            corpus=slug,
            judges=[pair.judge.slug for pair in pairs if pair.corpus.slug == slug],
            select=[WITHOUT_CORPUS],
            catalog=catalog,
            budget=cap,  # type: ignore[arg-type]
            console=console,
        )
        codes.append(outcome.exit_code)
    return COULD_NOT_RUN if COULD_NOT_RUN in codes else max(codes)


def _submit(
    store: "ParquetStore",
    pairs: "Sequence[Pair]",
    plan: "Sequence[JudgePlan]",
    budget: Sequence[str],
    console: "Console",
    *,
    yes: bool,
    wait: bool,
) -> int:
    from pipelines.commands.backfill import require_daemon, submit
    from pipelines.definitions import defs
    from pipelines.instance.homes import open_instance

    with open_instance() as instance:
        require_daemon(instance)
        _note_unreachable(pairs, plan, console)
        _confirm(plan, yes=yes)
        backfill_id = submit(instance, defs, store, pairs, budget)
        console.print(f"Backfill {backfill_id} is with the daemon.", highlight=False)
        if not wait:
            return OK
        n_runs = len(pairs) + len({pair.corpus.slug for pair in pairs})
        return _watch(instance, backfill_id, n_runs, console)


def _note_unreachable(
    pairs: "Sequence[Pair]", plan: "Sequence[JudgePlan]", console: "Console"
) -> None:
    """Say which judges cannot be asked from here; the daemon has an environment of its own."""
    from pipelines.commands.able import require_reachable

    asked = [
        pair.judge
        for pair, step in zip(pairs, plan, strict=True)
        if step.n_calls and pair.judge.kind == "openai"
    ]
    try:
        require_reachable(asked)
    except ValueError as error:
        told = f"Not from here: {error}. The daemon has an environment of its own."
        console.print(plain(told), highlight=False, soft_wrap=True)


def _watch(
    instance: "dg.DagsterInstance", backfill_id: str, n_runs: int, console: "Console"
) -> int:
    """Follow a backfill to its end, or until a person has seen enough."""
    from dagster._core.execution.backfill import BulkActionStatus

    from pipelines.commands.backfill_watch import Watcher
    from pipelines.commands.outcome import RunOutcome, exit_code, print_outcome

    watcher = Watcher(instance, backfill_id, console, n_runs)
    try:
        status = watcher.follow()
    except KeyboardInterrupt:
        console.print(
            f"No longer watching; backfill {backfill_id} goes on. To end it: "
            f"judgeline backfill --cancel {backfill_id}",
            highlight=False,
            soft_wrap=True,
        )
        return OK
    checks, errors = watcher.failures()
    if status == BulkActionStatus.CANCELED:
        errors.append(f"backfill {backfill_id} was cancelled; what was bought is kept")
    code = exit_code(checks, errors)
    if code == OK and status not in (
        BulkActionStatus.COMPLETED_SUCCESS,
        BulkActionStatus.COMPLETED,
    ):
        errors.append(f"backfill {backfill_id} ended as {status.value.lower()}; the UI has its log")
        code = COULD_NOT_RUN
    print_outcome(RunOutcome(code, "", failed_checks=tuple(checks), errors=tuple(errors)), console)
    return code
