"""Entries of one's own, in `config/local`: added from the examples or from settings, removed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock

from judgeline.atomic import make_durable_folder, write_whole
from judgeline.suggest import unknown_name
from resources.config.entries import EntryKind, read_entries

_OWN = "# Entries of one's own; they stand beside those of ../{name}.\n"
_NONE = "# No {plural} yet; `judgeline {plural} add NAME` writes one into local/{name}.\n"


def add_entry(kind: EntryKind[Any], slug: str, settings: Sequence[str] = ()) -> Path:
    """Check an example with its settings, or settings alone, and write it into `config/local`."""
    file, examples = kind.own_file, kind.examples()
    if slug in kind.load(file):
        remedy = f"edit it there, or take it out first (judgeline {kind.plural} remove {slug})"
        raise ValueError(f"{kind.what} {slug!r} stands in {file} already; {remedy}")
    if kind.shared_file.is_file() and slug in kind.load(None):
        raise ValueError(f"{kind.what} {slug!r} comes with judgeline; take another name")
    if slug not in examples and not settings:
        where = f"config/local with --set KEY=VALUE ({kind.expected})"
        raise ValueError(unknown_name(f"example of a {kind.what}", slug, examples, where))
    text = examples.get(slug, "")
    fields = yaml.safe_load(text)[slug] if text else {}
    for setting in settings:
        _set(fields, setting)
    if settings:
        fields = {**fields, **kind.usual(fields), **fields}
        text = yaml.safe_dump({slug: fields}, sort_keys=False, allow_unicode=True)
    try:
        # first: what is wrong stands in no line of a file yet
        kind.verify(kind.entry(slug, fields))
        make_durable_folder(file.parent)
        with FileLock(file.with_suffix(".lock")):
            before = file.read_text("utf-8") if file.is_file() else _OWN.format(name=file.name)
            whole = f"{before.rstrip()}\n\n{text.strip()}\n"
            kind.load(file, whole)
            write_whole(file, whole.encode())
        _begin(kind.shared_file.parent)
    except ValueError as error:
        raise ValueError(f"{error}.\nNothing was written.") from None
    except OSError as error:
        raise ValueError(
            f"cannot write {file} ({error.strerror}); set JUDGELINE_CONFIG to a copy of config/ "
            "that can be written"
        ) from None
    return file


def _begin(folder: Path) -> None:
    """Make the files of a configuration that a folder lacks, without an entry."""
    for name in ("judges.yaml", "corpora.yaml"):
        if not (folder / name).exists():
            write_whole(folder / name, _NONE.format(name=name, plural=name[:-5]).encode())


def remove_entry(kind: EntryKind[Any], slug: str) -> Path:
    """Remove an entry and the comment above it from its file in `config/local`; return the file."""
    file = kind.own_file
    if slug not in kind.load(file):
        if slug in kind.load(None):
            raise ValueError(f"{kind.what} {slug!r} comes with judgeline; it cannot be removed")
        where = f"{file}, the file of entries of your own"
        raise ValueError(unknown_name(kind.what, slug, kind.load(file), where))
    with FileLock(file.with_suffix(".lock")):
        own = read_entries(file, kind.plural)
        left = {name: value for name, value in own.values.items() if name != slug}
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        starts = sorted(own.line(name) - 1 for name in own.values)
        after = [start for start in starts if start >= own.line(slug)]
        first = _with_comment(lines, own.line(slug) - 1)
        last = _with_comment(lines, after[0]) if after else len(lines)
        text = "".join(lines[:first] + lines[last:])
        if (yaml.safe_load(text) or {}) != left:
            raise ValueError(f"{file}: {slug!r} cannot be cut out alone; edit the file")
        write_whole(file, text.encode())
    return file


def _with_comment(lines: list[str], line: int) -> int:
    """Return the number of the first comment line above a line, or of the line itself."""
    while line and lines[line - 1].startswith("#"):
        line -= 1
    return line


def _set(fields: dict[str, Any], setting: str) -> None:
    key, sign, value = setting.partition("=")
    if not (key.strip() and sign):
        raise ValueError("--set takes KEY=VALUE, such as model=gpt-4o-mini-2024-07-18")
    *above, last = key.strip().split(".")
    place = fields
    for name in above:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise ValueError(f"--set {key}: {name!r} is a value here and has no keys under it")
    try:
        place[last] = yaml.safe_load(value)
    except (yaml.YAMLError, ValueError):
        raise ValueError(f"--set {key}: what follows '=' is not valid YAML; quote it") from None
    if " #" in value and isinstance(place[last], str) and " #" not in place[last]:
        raise ValueError(f"--set {key}: what follows ' #' is a comment in YAML; quote the value")
