"""Words of messages: a value that is wrong, and suggestions for a name that is not configured."""

import difflib
from collections.abc import Iterable


def near_names(value: str, known: Iterable[str]) -> str:
    """Return the close matches of an unknown name, in any case of letters, or all names."""
    names = sorted(known)
    small = [name.casefold() for name in names]
    close = difflib.get_close_matches(value.casefold(), list(dict.fromkeys(small)), n=3, cutoff=0.5)
    near = [names[at] for one in close for at, other in enumerate(small) if other == one]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"known are {', '.join(names)}." if names else "none is known yet."


def unknown_name(kind: str, value: str, known: Iterable[str], where: str) -> str:
    """Return the message for an unknown name: close matches, and `where` a person would add it."""
    hint = near_names(value, known)
    return f"unknown {kind} {value!r}; {hint} Correct the name, or add it to {where}."


def quoted(value: object, width: int = 80) -> str:
    """Return a value for a message: quoted on one line, shortened, and never markup."""
    text = repr(value)
    text = text if len(text) <= width else f"{text[: width - 1]}…"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
