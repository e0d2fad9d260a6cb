"""Suggestions for a name that is not configured."""

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, value: str, known: Iterable[str], where: str) -> str:
    """Return the message for an unknown name: close matches, and `where` a person would add it."""
    names = sorted(known)
    close = difflib.get_close_matches(value, names, n=3, cutoff=0.5)
    if close:
        hint = f"did you mean {' or '.join(repr(name) for name in close)}?"
    elif names:
        hint = f"known are {', '.join(names)}."
    else:
        hint = "none is known yet."
    return f"unknown {kind} {value!r}; {hint} Correct the name, or add it to {where}."
