"""Locations of a corpus' files, here or on the hub, and the revision of their content."""

import difflib
import glob
import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote, unquote

from judgeline.io import SUFFIXES
from judgeline.paths import ROOT
from resources.config.corpora import CorpusDefinition, unset_variables

_ADDRESS = re.compile(
    r"(?:hf://)?datasets/(?P<repo>[^/@]+/[^/@]+)"
    r"(?:@(?P<revision>refs/(?:convert|pr)/[^/]+|[^/]+))?/(?P<pattern>.+)"
)
_WILD = re.compile(r"[*?\[]")
_SHARD = re.compile(r"(.*-)(\d{2,5})-of-(\d{2,5})(.*)")
_CONFIG = "corpora.yaml"
_IN_FOLDERS = SUFFIXES.keys() - {".json"}  # which describes a data set more often than holds it


class HubAddress(NamedTuple):
    """A file or glob in a dataset of the hub, and the revision that pins it."""

    repo: str
    pattern: str
    revision: str | None


def corpus_files(definition: CorpusDefinition) -> list[Path]:
    """Return the files of a corpus by path; those of the hub lie in its local cache."""
    address = _hub_address(definition)
    if address is None:
        return _local_files(str(definition.location), definition.slug)
    files = _cached_files if _is_offline() else _downloaded_files
    return files(address, definition.slug)


def _local_files(location: str, slug: str) -> list[Path]:
    path = Path(location).expanduser()
    path = path if path.is_absolute() else ROOT / path
    if path.is_file():
        return [path]
    if path.is_dir():
        found = [file for file in path.rglob("*") if file.suffix.lower() in _IN_FOLDERS]
        kinds = sorted({SUFFIXES[file.suffix.lower()] for file in found})
        if len(kinds) > 1:  # they would be read twice, or mixed
            one = f"name one kind in its location, such as {path}/*.{kinds[0]}"
            raise ValueError(f"{path} holds {' and '.join(kinds)} files; {one}")
    else:
        found = [Path(name) for name in glob.glob(str(path), recursive=True)]
    if files := sorted(file for file in found if file.is_file()):
        return files
    there = [] if _WILD.search(path.name) or not path.parent.is_dir() else path.parent.iterdir()
    close = difflib.get_close_matches(path.name, [one.name for one in there], n=1)
    near = f" (is {close[0]} meant?)" if close else ""
    fault = f"corpus {slug!r}: nothing to read at {path}{near}"
    remedy = "or a variable in it such as JUDGELINE_DATA, or put the file there"
    raise FileNotFoundError(f"{fault}; correct its location in {_CONFIG}, {remedy}")


def _hub_address(definition: CorpusDefinition) -> HubAddress | None:
    """Return where on the hub a corpus lies, None if it lies on this machine."""
    location, here = definition.location, f"corpus {definition.slug!r} in {_CONFIG}"
    if location is None:
        raise ValueError(f"{here} has no location; set it to a file, folder, glob or hf:// address")
    for key in ("location", "revision"):
        for unset in unset_variables(getattr(definition, key) or "")[:1]:
            raise ValueError(
                f"the {key} of {here} needs the environment variable {unset}, which is not set; "
                f"set it, or write the {key}"
            )
    if "://" not in location:
        return None
    found = _ADDRESS.fullmatch(location) if location.startswith("hf://") else None
    if found is None:
        raise ValueError(
            f"the location {location!r} of {here} is no path and no address of the form "
            "hf://datasets/owner/name/path; correct it"
        )
    written = unquote(found["revision"]) if found["revision"] else None
    if written and definition.revision and written != definition.revision:
        both = f"{written!r} in its location and {definition.revision!r} as revision"
        raise ValueError(f"{here} asks for two revisions, {both}; keep one")
    revision = written or definition.revision
    if revision is None:
        raise ValueError(
            f"{here} has no revision, so it could change; copy the commit's hash from "
            f"https://huggingface.co/datasets/{found['repo']}/commits/main, and set it as revision"
        )
    return HubAddress(found["repo"], found["pattern"], revision)


def _is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}


def _downloaded_files(address: HubAddress, slug: str) -> list[Path]:
    from huggingface_hub import HfFileSystem, hf_hub_download

    pinned = f"datasets/{address.repo}@{quote(address.revision or '', safe='')}/{address.pattern}"
    try:
        found = sorted(str(name) for name in HfFileSystem().glob(pinned))
        names = [match["pattern"] for name in found if (match := _ADDRESS.fullmatch(name))]
        if not names:
            raise FileNotFoundError(f"no file of it matches {address.pattern!r}")
        at = partial(hf_hub_download, repo_type="dataset", revision=address.revision)
        return [Path(at(address.repo, name)) for name in names]
    except _hub_errors() as error:
        raise ConnectionError(
            f"corpus {slug!r}: dataset {address.repo} at revision {address.revision} could not be "
            f"downloaded: {error}. Check network, repository, revision and path; for a gated one "
            "accept its terms and set HF_TOKEN; without a network HF_HUB_OFFLINE=1 reads the cache."
        ) from error


def _cached_files(address: HubAddress, slug: str) -> list[Path]:
    from huggingface_hub import snapshot_download

    message = (
        f"corpus {slug!r}: {address.pattern} of dataset {address.repo} at revision "
        f"{address.revision} is not, or not all, in the hub's local cache, and HF_HUB_OFFLINE is "
        f"set; on a machine with a network run: hf download {address.repo} --repo-type dataset "
        f"--revision {address.revision} --include '{address.pattern}'"
    )
    at = partial(snapshot_download, repo_type="dataset", revision=address.revision)
    try:
        folder = Path(at(address.repo, allow_patterns=address.pattern, local_files_only=True))
    except OSError as error:
        raise FileNotFoundError(message) from error
    cached = sorted(path for path in folder.glob(address.pattern) if path.is_file())
    shards = [found for file in cached if (found := _SHARD.fullmatch(file.name))]
    announced = {  # a cache may hold only some of the shards
        f"{shard[1]}{number:0{len(shard[3])}d}-of-{shard[3]}{shard[4]}"
        for shard in shards
        for number in range(int(shard[3]))
    }
    is_partial = announced != {shard[0] for shard in shards}
    if not cached or ("*" in address.pattern and is_partial):
        raise FileNotFoundError(message)
    return cached


# What identifies the present content, without reading all of it again

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_SECONDS = 10.0
"""What the hub may take to answer: a tick of all corpora has a minute."""


def content_revision(definition: CorpusDefinition) -> str:
    """Return a corpus' revision: it changes with its content and with the options of reading."""
    arena_hard = definition.arena_hard.model_dump() if definition.arena_hard else None
    read_as: dict[str, Any] = {"reader": definition.reader, "arena_hard": arena_hard}
    for key in ("outcomes", "columns", "missing", "allow_quarantine"):
        if stated := getattr(definition, key):
            read_as[key] = stated
    if definition.reader == "arena":
        own = {"options": definition.arena, "seed": definition.seed, "slug": definition.slug}
        return f"options {_hash({**read_as, **own})}"
    address = _hub_address(definition)
    if address is None:
        hashes = {}
        for file in corpus_files(definition):
            stat = file.stat()
            hashes[file.name] = _file_hash(file, stat.st_size, stat.st_mtime_ns, stat.st_ino)
        return f"content {_hash({**read_as, 'files': hashes})}"
    where = {"repo": address.repo, "pattern": address.pattern}
    return f"commit {_commit(address, definition)} {_hash({**read_as, **where})}"


def _commit(address: HubAddress, definition: CorpusDefinition) -> str:
    """Return the commit of a hub address; a revision that is one needs no network."""
    revision = str(address.revision)
    if _COMMIT.fullmatch(revision):
        return revision
    if _is_offline():
        parts = corpus_files(definition)[0].parts
        return parts[len(parts) - 1 - parts[::-1].index("snapshots") + 1]
    from huggingface_hub import HfApi

    try:
        return str(HfApi().dataset_info(address.repo, revision=revision, timeout=_HUB_SECONDS).sha)
    except _hub_errors() as error:
        raise ConnectionError(
            f"corpus {definition.slug!r}: the hub does not say which commit {revision!r} of "
            f"{address.repo} is: {error}. Check the network, or pin a commit as revision"
        ) from error


def _hub_errors() -> tuple[type[Exception], ...]:
    """Return OSError, and any error of the HTTP client that the hub's library uses."""
    from huggingface_hub.errors import HfHubHTTPError

    return cast(tuple[type[Exception], ...], HfHubHTTPError.__bases__)


@cache
def _file_hash(file: Path, *_stamp: int) -> str:
    """Return the hash of a file; a process reads it again only after a change of its stamp."""
    with file.open("rb") as source:
        return hashlib.file_digest(source, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _hash(parts: Mapping[str, Any]) -> str:
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
