import io

import dagster as dg
import pytest
from rich.console import Console

from pipelines.console import RunReporter, cause


def _ran(asset) -> tuple[dg.ExecuteInProcessResult, str]:
    out = io.StringIO()
    with RunReporter(Console(file=out, width=60)) as reporter:
        definitions = dg.Definitions([asset], loggers={"console": reporter.logger()})
        job = definitions.resolve_implicit_global_asset_job_def()
        with dg.DagsterInstance.ephemeral() as instance:
            result = job.execute_in_process(
                instance=instance,
                raise_on_error=False,
                run_config={"loggers": {"console": {"config": {}}}},
            )
    return result, out.getvalue()


@dg.asset
def refuses() -> None:
    try:
        {}["inner"]
    except KeyError as error:
        raise ValueError("battle 7 has\n  no model; add it") from error


@dg.asset
def gives_up() -> None:
    raise dg.Failure("the endpoint is gone\nstart it", allow_retries=False)


@dg.asset
def works() -> dg.MaterializeResult:
    return dg.MaterializeResult(metadata={"dagster/partition_row_count": 1200})


@dg.asset(check_specs=[dg.AssetCheckSpec("is_odd", asset="checked")])
def checked() -> dg.MaterializeResult:
    result = dg.AssetCheckResult(
        check_name="is_odd", passed=False, severity=dg.AssetCheckSeverity.WARN, description="[b]"
    )
    return dg.MaterializeResult(check_results=[result])


@pytest.mark.parametrize(
    ("asset", "told"),
    [(refuses, "battle 7 has no model; add it"), (gives_up, "the endpoint is gone start it")],
)
def test_cause_is_the_authors_error_in_one_line(asset, told):
    result, printed = _ran(asset)
    assert cause(result.get_step_failure_events()[0]) == told
    assert "FAIL" in printed
    assert "Traceback" not in printed


def test_what_was_made_is_told_with_its_rows():
    assert "done works (1,200 rows)" in _ran(works)[1]


def test_a_warning_is_told_as_one():
    assert "warn checked: is odd" in _ran(checked)[1]


def test_names_are_text_and_never_markup():
    out = io.StringIO()
    with RunReporter(Console(file=out, width=20)) as reporter:
        reporter.begin("job [red]arena", 3)
        reporter.line("done", "[bold]table[/bold] with a name longer than the line")
    assert "job [red]arena" in out.getvalue()
    assert "[bold]table[/bold] with a name longer than the line" in out.getvalue()


def test_a_terminal_gets_a_bar_that_disappears():
    out = io.StringIO()
    with RunReporter(Console(file=out, width=80, force_terminal=True)) as reporter:
        reporter.begin("judge job", 3)
        reporter.message("judging: careful answered 500 of 600 presentations")
    assert "\x1b[2K" in out.getvalue()  # the line of the bar is cleared
