"""Revision of a corpus: identifies its present content without reading all of it again."""

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resources.config.corpora import CorpusDefinition
from resources.config.paths import home
from resources.corpora.hub import HubAddress, corpus_files, hub_address, is_offline

_COMMIT = re.compile(r"[0-9a-f]{40}")
_CHUNK = 1 << 20
_HUB_SECONDS = 10.0
"""What the hub may take to answer: a tick of all corpora has a minute."""


def content_revision(definition: CorpusDefinition) -> str:
    """Return a text that changes exactly when a corpus, or how it is read, does.

    Of a hub dataset it names the commit that its revision resolves to; of files here a hash of
    their content, remembered by size and time of change; of the built-in arena one of its options.
    """
    read_as: dict[str, Any] = {
        "reader": definition.reader,
        "arena_hard": definition.arena_hard.model_dump() if definition.arena_hard else None,
    }
    if definition.outcomes:
        read_as["outcomes"] = definition.outcomes
    if definition.allow_quarantine:
        read_as["allow_quarantine"] = True
    if definition.reader == "arena":
        own = {"options": definition.arena, "seed": definition.seed, "slug": definition.slug}
        return f"options {_hash({**read_as, **own})}"
    address = hub_address(definition)
    if address is None:
        return f"content {_hash({**read_as, 'files': _file_hashes(corpus_files(definition))})}"
    where = {"repo": address.repo, "pattern": address.pattern}
    return f"commit {_commit(address, definition)} {_hash({**read_as, **where})}"


def _commit(address: HubAddress, definition: CorpusDefinition) -> str:
    """Return the commit of a hub address; a revision that is one needs no network."""
    revision = str(address.revision)
    if _COMMIT.fullmatch(revision):
        return revision
    if is_offline():
        parts = corpus_files(definition)[0].parts
        return parts[len(parts) - 1 - parts[::-1].index("snapshots") + 1]
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        found = HfApi().dataset_info(address.repo, revision=revision, timeout=_HUB_SECONDS)
        return str(found.sha)
    except HfHubHTTPError.__bases__ as error:
        raise ConnectionError(
            f"corpus {definition.slug!r}: the hub does not say which commit {revision!r} of "
            f"{address.repo} is: {error}. Check the network, or pin a commit as revision"
        ) from error


def _file_hashes(files: Sequence[Path]) -> dict[str, str]:
    """Return the content hash of each file by name; one that did not change is not read again.

    Each is remembered as soon as it is known: who has no time for all of them goes on from there.
    """
    cache = home() / "revisions.json"
    known = _remembered(cache)
    found: dict[str, str] = {}
    for file in files:
        stat = file.stat()
        stamp = f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ino}"
        before = known.get(str(file), {})
        if before.get("stamp") != stamp or "hash" not in before:
            before = {"stamp": stamp, "hash": _file_hash(file)}
            _remember(cache, {**_remembered(cache), str(file): before})
        found[file.name] = before["hash"]
    return found


def _remembered(cache: Path) -> dict[str, Any]:
    try:
        known = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a cache that is missing or torn is made anew
        return {}
    return known if isinstance(known, dict) else {}


def _remember(cache: Path, entries: Mapping[str, Any]) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    part = cache.with_suffix(f".{uuid.uuid4().hex}.part")
    part.write_text(json.dumps(entries), encoding="utf-8")
    part.replace(cache)


def _file_hash(file: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _hash(parts: Mapping[str, Any]) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
