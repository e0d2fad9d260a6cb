"""Options, examples and exit codes: what commands of the library and of the lineage share."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any, TypeVar

import typer

from judgeline.rating_options import RatingOptions, meaning

OK, COULD_NOT_RUN, GATE_FAILED, CANNOT_TELL, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_CODES = (
    "[bold]Exit codes[/bold]  0 ok · 1 could not run (the message says what to do) · "
    "2 a quality gate failed · 3 cannot tell (compare, gate) · 130 interrupted"
)

Command = TypeVar("Command", bound=Callable[..., None])
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def option(text: str, *names: str, show_default: bool = False, **more: Any) -> Any:
    """Return an option with its help."""
    return typer.Option(*names, help=text, show_default=show_default, **more)


def with_settings(*names: str) -> Callable[[Command], Command]:
    """Return a decorator: the ``**settings`` of a command are options of these names."""
    return with_options(*map(_parameter, names))


def shared(name: str, annotation: Any, default: object = None) -> inspect.Parameter:
    """Return an option that several commands share, for `with_options`."""
    return inspect.Parameter(name, _KEYWORD, default=default, annotation=annotation)


def with_options(*further: inspect.Parameter) -> Callable[[Command], Command]:
    """Return a decorator: these options reach a command as ``**`` keywords."""

    def decorated(command: Command) -> Command:
        own = inspect.signature(command).parameters.values()
        stated = [each.replace(kind=_KEYWORD) for each in own if each.kind is not each.VAR_KEYWORD]
        parameters = [*further, *stated]
        parameters.sort(key=lambda each: each.default is not each.empty)
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorated


def _parameter(name: str) -> inspect.Parameter:
    """Return the parameter of a declared setting: its type, default, help and least value."""
    declared = {each.name: each for each in fields(RatingOptions)}[name]
    stated = option(meaning(name), show_default=True, min=declared.metadata.get("ge"))
    return inspect.Parameter(
        name, _KEYWORD, default=declared.default, annotation=Annotated[declared.type, stated]
    )


def examples(*commands: str, then: str = EXIT_CODES) -> str:
    """Return the text below the help of a command: examples of it, then its exit codes."""
    head = "Examples" if len(commands) > 1 else "Example"
    return "".join([f"[bold]{head}[/bold]\n\n", *(f"  judgeline {c}\n\n" for c in commands), then])
