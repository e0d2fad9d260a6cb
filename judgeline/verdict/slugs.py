"""Slugs: names that are safe as partition keys, file names and parts of an address."""

import re
import unicodedata

POOLED = "pooled"
"""Name of the method, and of the judge that all judges of a corpus make together."""


def slug(name: str) -> str:
    """Return the slug of a name: ``[a-z0-9][a-z0-9._-]*`` without two dots in a row.

    Letters lose case and accents; every run of other characters becomes one dash, so that
    ``"Qwen/Qwen2.5 72B"`` becomes ``"qwen-qwen2.5-72b"``. Different names can share a slug: who
    keys by slugs must check that. A slug is its own slug.

    Parameters
    ----------
    name : str
        Any name with at least one Latin letter or digit.

    Raises
    ------
    ValueError
        If the name holds no Latin letter and no digit.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    dashed = re.sub(r"[^a-z0-9._-]+", "-", plain)
    found = re.sub(r"\.{2,}", ".", dashed).strip("._-")
    if not found:
        raise ValueError(f"no slug for name {name!r}: it holds no Latin letter and no digit")
    return found
