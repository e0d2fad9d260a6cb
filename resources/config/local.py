"""Entries of one's own, in `config/local`: added from the examples or from settings, removed."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock

from resources.atomic import make_durable_folder, write_whole
from resources.config.entries import EntryKind, read_entries
from resources.suggest import unknown_name

_OWN = "# Entries of one's own; they stand beside those of ../{name}.\n"


def add_entry(kind: EntryKind, slug: str, settings: Sequence[str] = ()) -> Path:
    """Write an entry into the file of one's own, whole and checked or not at all; return the file.

    It is the example of that name, as it is or with settings ``KEY=VALUE`` (``a.b=1`` for a key
    under another) in place of its own; without an example it is the settings alone.
    """
    known = kind.load(None)
    if slug in known:
        raise ValueError(f"{kind.what} {slug!r} is configured already; remove it, or name another")
    examples = kind.examples()
    if slug not in examples and not settings:
        where = f"config/local with --set KEY=VALUE ({kind.expected})"
        raise ValueError(unknown_name(f"example of a {kind.what}", slug, examples, where))
    text = examples.get(slug, "")
    if settings:
        fields = (yaml.safe_load(text) or {}).get(slug, {}) if text else {}
        for setting in settings:
            _set(fields, setting)
        text = yaml.safe_dump({slug: fields}, sort_keys=False, allow_unicode=True)
    file = kind.own_file
    make_durable_folder(file.parent)
    with FileLock(file.with_suffix(".lock")):
        before = file.read_text(encoding="utf-8") if file.is_file() else _OWN.format(name=file.name)
        _replace(kind, file, f"{before.rstrip()}\n\n{text.strip()}\n")
    return file


def remove_entry(kind: EntryKind, slug: str) -> Path:
    """Take an entry out of the file of one's own, with the comment above it; return the file."""
    file = kind.own_file
    own = read_entries(file, kind.plural) if file.is_file() else None
    if own is None or slug not in own.values:
        if slug in kind.load(None):
            raise ValueError(f"{kind.what} {slug!r} comes with judgeline; it cannot be removed")
        where = f"{file}, the file of entries of your own"
        raise ValueError(unknown_name(kind.what, slug, own.values if own else (), where))
    with FileLock(file.with_suffix(".lock")):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        first = last = own.line(slug) - 1
        while first and lines[first - 1].startswith("#"):
            first -= 1
        while last + 1 < len(lines) and not re.match(r"[^\s]", lines[last + 1]):
            last += 1
        if len(own.values) == 1:
            file.unlink()
        else:
            _replace(kind, file, "".join(lines[:first] + lines[last + 1 :]))
    return file


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
    except yaml.YAMLError:
        raise ValueError(f"--set {key}: what follows '=' is not valid YAML; quote it") from None


def _replace(kind: EntryKind, file: Path, text: str) -> None:
    """Write a file of entries if all of it can be read, else raise what is wrong with it."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / file.name
        trial.write_text(text, encoding="utf-8")
        try:
            kind.load(trial)
        except ValueError as error:
            problem = str(error).replace(str(trial), str(file))
        else:
            problem = ""
    if problem:
        raise ValueError(f"{problem}\nNothing was written.")
    write_whole(file, text.encode())
