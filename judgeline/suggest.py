"""Words of messages: a wrong value or argument, and suggestions for an unknown name."""

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path


def near_names(value: str, known: Iterable[str]) -> str:
    """Return the close matches of an unknown name, in any case of letters, or all names."""
    names = sorted(known)
    small = [name.casefold() for name in names]
    close = difflib.get_close_matches(value.casefold(), list(dict.fromkeys(small)), n=3, cutoff=0.5)
    near = [names[at] for one in close for at, other in enumerate(small) if other == one]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"known are {', '.join(names)}." if names else "none is known yet."


def missing_file(path: Path) -> str:
    """Return the message that there is no file at a path, with the nearest name beside it."""
    neighbours = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, neighbours, n=1)
    hint = f"did you mean {path.with_name(near[0])}?" if near else "check the path"
    return f"no file at {path}; {hint}"


def _of_system(error: OSError) -> str:
    """Return the message of an error of the file system, with the file and the remedy."""
    name = error.filename2 or error.filename
    if not isinstance(name, str | os.PathLike):
        return str(error)
    path = Path(name)
    if isinstance(error, FileNotFoundError):
        if path.parent.is_dir():
            return missing_file(path)
        return f"no folder at {path.parent}; make it, or name another"
    if isinstance(error, IsADirectoryError):
        return f"{path} is a folder; name a file"
    if isinstance(error, FileExistsError):
        return f"{path} is a file, where a folder is needed; name another path"
    if isinstance(error, NotADirectoryError):
        return f"{path} lies below a file, as below a folder; name another"
    if isinstance(error, PermissionError):
        return f"{path} may not be read or written by this user; change its rights, or name another"
    return str(error)


def unknown_name(kind: str, value: str, known: Iterable[str], where: str) -> str:
    """Return the message for an unknown name: close matches, and `where` a person would add it."""
    hint = near_names(value, known)
    return f"unknown {kind} {value!r}; {hint} Correct the name, or add it to {where}."


def quoted(value: object, width: int = 80) -> str:
    """Return a value for a message: quoted on one line, shortened, and never markup."""
    text = repr(value)
    text = text if len(text) <= width else f"{text[: width - 1]}…"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class ArgumentError(ValueError):
    """An error that another value of an argument mends; its message names the argument as Python.

    ``outcomes=1/-1/0``, ``allow_quarantine=True`` or ``'judge'`` stand in the message.
    """

    def __init__(self, message: str, argument: str) -> None:
        super().__init__(message)
        self.argument = argument

    def as_option(self) -> str:
        """Return the message with the command line's options: ``--outcomes 1/-1/0``."""
        if not self.argument:
            return str(self)
        option = f"--{self.argument.replace('_', '-')}"
        message, *code = str(self).partition("python -c ")  # which stays as it is
        text = message.replace(f"'{self.argument}'", option)
        text = re.sub(rf"^{self.argument} is ", f"{option} is ", text)
        text = re.sub(  # a mapping of Python, ={'a': 'b', 'c': 'd'}, as ='a=b,c=d'
            r"=\{('[^{}]*')\}",
            lambda pairs: "=" + pairs[1].replace("': '", "=").replace("', '", ","),
            text,
        )
        for name in {self.argument, "missing", "allow_quarantine"}:
            option = f"--{name.replace('_', '-')}"
            text = re.sub(rf"\b{name}=", f"{option} ", text).replace(f"{option} True", option)
        return text + "".join(code)


class QualityGateError(Exception):
    """Battles, or their judge, fail a quality gate, so that no model is rated by them."""


def message_of(error: Exception) -> str:
    """Return what the command line prints of an error: options by their names, files, remedies."""
    if isinstance(error, ArgumentError):
        return error.as_option()
    message = _of_system(error) if isinstance(error, OSError) else str(error)
    return message or type(error).__name__
