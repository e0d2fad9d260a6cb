"""Options, examples and exit codes: what commands of the library and of the lineage share."""

from typing import Any

import typer

OK, COULD_NOT_RUN, GATE_FAILED, CANNOT_TELL, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_CODES = (
    "[bold]Exit codes[/bold]  0 ok · 1 could not run (the message says what to do) · "
    "2 a quality gate failed · 3 cannot tell (compare) · 130 interrupted"
)


def option(text: str, *names: str, show_default: bool = False, **more: Any) -> Any:
    """Return an option with its help."""
    return typer.Option(*names, help=text, show_default=show_default, **more)


def examples(*commands: str, then: str = EXIT_CODES) -> str:
    """Return the text below the help of a command: examples of it, then its exit codes."""
    head = "Examples" if len(commands) > 1 else "Example"
    return "".join([f"[bold]{head}[/bold]\n\n", *(f"  judgeline {c}\n\n" for c in commands), then])
