"""Suggestions for a name that is not configured."""

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, value: str, known: Iterable[str], where: str) -> str:
    """Return the message for an unknown name: close matches, and where to add it.

    Parameters
    ----------
    kind : str
        What is named, such as ``"corpus"``.
    value : str
        The name that is not known.
    known : iterable of str
        The names that are.
    where : str
        The file or place where a person would add the name.
    """
    names = sorted(known)
    close = difflib.get_close_matches(value, names, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(repr(name) for name in close)}?"
    elif names:
        hint = f"known are {', '.join(names)}."
    else:
        hint = "none is known yet."
    return f"unknown {kind} {value!r}; {hint} Correct the name, or add it to {where}."
