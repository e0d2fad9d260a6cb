import contextlib
import io
import logging
import re
import threading
from pathlib import Path

import dagster as dg
import pytest

from assets.judging.asking import _log
from assets.messages import SHOWN
from judgeline.terminal import open_console
from pipelines.commands.console import (
    RunOutcome,
    RunReporter,
    cause,
    failed_check,
    print_outcome,
)

REASON = "[b] 3 of 4 are even"


def _ran(asset) -> tuple[dg.ExecuteInProcessResult, str]:
    out = io.StringIO()
    with RunReporter(open_console(file=out, width=60)) as reporter:
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
        check_name="is_odd", passed=False, severity=dg.AssetCheckSeverity.WARN, description=REASON
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


def test_a_leaderboard_says_how_many_intervals_hold():
    @dg.asset
    def leaderboard() -> dg.MaterializeResult:
        return dg.MaterializeResult(metadata={"kept": "9 of 10 intervals hold"})

    lines = _ran(leaderboard)[1].splitlines()
    place = lines.index("  done leaderboard")
    assert lines[place + 1].strip() == "9 of 10 intervals hold"


def test_a_board_is_printed_where_no_bar_can_move():
    out = io.StringIO()
    with RunReporter(open_console(file=out, width=60), verbose=False) as reporter:
        assert reporter.wants_board
        reporter.show_board("1 model-a", "It stands.")
        assert out.getvalue() == "It stands.\n1 model-a\n"
        assert not reporter.wants_board  # the first is enough


@pytest.mark.parametrize(
    ("error", "outcome", "stays"),
    [
        (None, {"report": Path("r.html"), "made": {"x"}}, False),
        (None, {"report": Path("r.html"), "made": {"x"}, "errors": ["budget spent"]}, True),
        (None, {"made": {"x"}}, True),  # --select leaves the report out
        (KeyboardInterrupt, {}, True),
    ],
)
def test_a_board_below_the_bar_gives_way_to_the_final_one_unless_there_is_none(
    error, outcome, stays
):
    out = io.StringIO()
    ending = pytest.raises(error) if error else contextlib.nullcontext()
    with (
        ending,
        RunReporter(open_console(file=out, force_terminal=True), verbose=False) as reporter,
    ):
        reporter.show_board("model-a", "Still being made: b.")
        if error:
            raise error
        reporter.outcome = RunOutcome("c", **outcome)
    assert "Still being made: b." in out.getvalue()
    assert "model-a" in out.getvalue()
    assert out.getvalue().endswith("model-a\n") is stays
    if stays:
        *_, last = out.getvalue().rpartition("Still being made")
        assert "model-a" in last.split("\x1b[2K")[-1]


def test_a_failed_check_is_named_when_it_fails_and_explained_once_at_the_end():
    result, printed = _ran(checked)
    assert "warn checked: is odd; the reason is at the end" in printed
    (found,) = result.get_asset_check_evaluations()
    out = io.StringIO()
    outcome = RunOutcome("c", failed_checks=[failed_check(found, "c|j")])
    print_outcome(outcome, open_console(file=out, width=60))
    assert (printed + out.getvalue()).count(REASON) == 1


def test_names_are_text_and_never_markup():
    out = io.StringIO()
    with RunReporter(open_console(file=out, width=20)) as reporter:
        reporter.begin("job [red]arena", 3)
        reporter.line("done", "[bold]table[/bold] with a name longer than the line")
        reporter.line("warn", "\x1b]0;title\x07", "\u202e\x9b31m [red]seen")
    assert "job [red]arena" in out.getvalue()
    assert "[red]seen" in out.getvalue()
    assert not {*"\x1b\x07\u202e\x9b"} & {*out.getvalue()}
    assert "[bold]table[/bold] with a name longer than the line" in out.getvalue()


def test_a_terminal_gets_a_bar_that_disappears():
    out = io.StringIO()
    with RunReporter(open_console(file=out, width=80, force_terminal=True)) as reporter:
        reporter.begin("judge job", 3)
        reporter.message("judging: careful answered 500 of 600 presentations")
    assert "\x1b[2K" in out.getvalue()  # the line of the bar is cleared


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_warning_about_a_judge_has_a_line_in_the_terminal_and_in_the_run_log(is_terminal):
    @dg.asset
    def asking(context: dg.AssetExecutionContext) -> None:
        for _ in range(3):
            _log(context, "j: answered 5 of 600")
        said = "HTTP 429, waits 120 s, attempt 2 of 8"
        requests = threading.Thread(target=_log, args=(context, f"j: {said}", logging.WARNING))
        requests.start()  # a thread of its own sends them
        requests.join()

    out = io.StringIO()
    console = open_console(file=out, width=80, force_terminal=is_terminal, no_color=True)
    with dg.DagsterInstance.ephemeral() as instance, RunReporter(console) as reporter:
        definitions = dg.Definitions(
            [asking], jobs=[dg.define_asset_job("job")], loggers={"console": reporter.logger()}
        )
        run = definitions.resolve_job_def("job").execute_in_process(
            instance=instance, run_config={"loggers": {"console": {"config": {}}}}
        )
        logged = [
            entry.user_message
            for entry in instance.all_logs(run.run_id)
            if entry.level == logging.WARNING
        ]
    assert out.getvalue().count("warn j: HTTP 429, waits 120 s, attempt 2 of 8") == 1
    assert logged == ["judging: j: HTTP 429, waits 120 s, attempt 2 of 8"]


@pytest.mark.parametrize("kind", SHOWN)
def test_a_message_of_each_kind_is_shown_without_it_and_any_other_is_not(kind):
    out = io.StringIO()
    with RunReporter(open_console(file=out, width=80)) as reporter:
        reporter.message(f"{kind}model-a moves most", logging.WARNING)
        reporter.message("wrote a file", logging.WARNING)
    assert "  warn model-a moves most" in out.getvalue()
    assert not {kind.strip(), "wrote"} & {*out.getvalue().split()}


def test_a_job_is_one_line_with_counts_unless_more_is_asked_for():
    out = io.StringIO()
    with RunReporter(open_console(file=out, width=120), verbose=False) as reporter:
        reporter.begin("judge job", 3)
        for mark in ("done", "ok", "ok", "warn"):
            reporter.line(mark, "something", "seen")
        reporter.line("FAIL", "verdicts: a gate", "why")
        reporter.end("judge job")
        reporter.begin("comparison job", 1)
        reporter.end("comparison job")
    lines = [
        re.sub(r"\d+ s", "N s", " ".join(line.split())) for line in out.getvalue().splitlines()
    ]
    assert lines == [
        "FAIL verdicts: a gate",
        "why",
        "judge job 1 tables made, 2 checks passed, N s, 1 warned",
        "comparison job 0 tables made, 0 checks passed, N s",
    ]
