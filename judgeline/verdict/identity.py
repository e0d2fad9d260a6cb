"""Content hashes that say what an answer was asked for: equal content, equal identity."""

import hashlib
import json
from collections.abc import Mapping


def text_hash(text: str) -> str:
    """Return the sha256 of a text in UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def identity_hash(content: Mapping[str, str]) -> str:
    """Return one hash of named texts, whatever their order.

    Parameters
    ----------
    content : mapping of str to str
        Everything that determines an answer, each part under its name; numbers as text.

    Returns
    -------
    str
        64 hexadecimal digits; another name, text or division into parts gives another hash.

    Raises
    ------
    ValueError
        If there is no content, or a part is no text: its written form would be a guess.
    """
    if not content:
        raise ValueError("no content to identify")
    for name, value in content.items():
        if not isinstance(value, str):
            raise ValueError(
                f"identity part {name!r} is {value!r} of type {type(value).__name__}; "
                "write it as text"
            )
    return text_hash(json.dumps(dict(content), sort_keys=True, separators=(",", ":")))
