"""Names: hashes of calls and texts, and slugs."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping

POOLED = "pooled"
"""Name of the method, and of the judge that all judges of a corpus make together."""


def text_hash(text: str) -> str:
    """Return the sha256 of a text in UTF-8, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def readable(text: str) -> str:
    """Return a text with question marks for halves of characters, which UTF-8 cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def identity_hash(content: Mapping[str, str]) -> str:
    """Return one hash, 64 hexadecimal digits, of named texts that determine an answer.

    The order of the parts does not count; another name, text or division into parts gives another
    hash. No content, or a part that is no text, is a `ValueError`: its written form would be a
    guess.
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


def completion_id(question: str, model: str, text: str) -> str:
    """Return the id of a completion; a model that answered a question twice has two."""
    return identity_hash({"question": question, "model": model, "text": text})


def slug(name: str) -> str:
    """Return the slug of a name: ``[a-z0-9][a-z0-9._-]*`` without two dots in a row.

    It is safe as a partition key, a file name and a part of an address. Letters lose case and
    accents; every run of other characters becomes one dash: ``"Qwen/Qwen2.5 72B"`` becomes
    ``"qwen-qwen2.5-72b"``. Different names can share a slug. A slug is its own slug. A name without
    a Latin letter or digit is a `ValueError`.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    dashed = re.sub(r"[^a-z0-9._-]+", "-", plain)
    short = re.sub(r"\.{2,}", ".", dashed).strip("._-")
    if not short:
        raise ValueError(f"no slug for name {name!r}: it holds no Latin letter and no digit")
    return short
