"""Reads a configuration file: entries by name, and the line of every key.

What a file holds may be a key that somebody pasted into the wrong place. No error quotes it, and
none is raised while another one that does is being handled: both would end up in a log.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple

import yaml

from judgeline.judges.options import M, checked
from judgeline.paths import ROOT, config_dir

Lines = dict[tuple[str, ...], int]


class Entries(NamedTuple):
    """Entries of a YAML file by name, and the line of each key by its path."""

    values: dict[Any, Any]
    lines: Lines

    def line(self, *path: object) -> int:
        """Return the line of a key, or of the nearest key above it that stands in the file."""
        names = tuple(str(name) for name in path)
        above = (names[:n] for n in range(len(names), 0, -1))
        return next((self.lines[known] for known in above if known in self.lines), 1)


def read_entries(file: Path, what: str, text: str | None = None) -> Entries:
    """Return the entries of a YAML file, or of a text for it: by slug, with each key's line."""
    if text is None and not file.is_file():
        raise FileNotFoundError(
            f"no {what} file at {file}; create it, or set JUDGELINE_CONFIG to the folder it is in"
        )
    try:
        text = file.read_text(encoding="utf-8") if text is None else text
        values = _values(text, file)
        lines = dict(_lines(yaml.compose(text, Loader=yaml.SafeLoader), (), file))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        fault = getattr(error, "problem", None) or type(error).__name__
        told = "" if "'" in fault or '"' in fault else f" ({fault})"  # it may quote the file
        problem = f"{file}{where}: this is not valid YAML{told}; correct that line"
    except UnicodeDecodeError as error:
        problem = f"{file} is not UTF-8 at byte {error.start}; save it in that encoding"
    except RecursionError:
        problem = f"{file} is nested too deeply; correct it"
    else:
        if isinstance(values, dict) and values:
            return Entries(values, lines)
        problem = f"{file} holds no {what}; expected a mapping from slugs to {what}"
    raise ValueError(problem)


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # of a module without types
    """A safe loader that knows the line of the value it came to last."""

    reached: int | None = None

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        self.reached = node.start_mark.line + 1
        return super().construct_object(node, deep)


def _values(text: str, file: Path) -> Any:
    """Return the values of a YAML text; a bad date, number or escape is named by its line."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    except (ValueError, AttributeError, LookupError, ArithmeticError):
        line = loader.reached or loader.get_mark().line + 1
    finally:
        loader.dispose()
    raise ValueError(
        f"{file}, line {line}: a value here is not the date, number or text that it is written "
        "as; correct it, or put it in quotes"
    )


def _lines(node: Any, path: tuple[str, ...], file: Path) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the line of each key; a key that occurs twice would silently lose its first value."""
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        line, name = key.start_mark.line + 1, str(key.value)
        if name in seen:
            raise ValueError(
                f"{file}, line {line}: the key {'.'.join((*path, name))!r} is there already, in "
                f"line {seen[name]}; keep one of the two"
            )
        seen[name] = line
        yield (*path, name), line
        yield from _lines(value, (*path, name), file)


@dataclass(frozen=True)
class EntryKind(Generic[M]):
    """The entries of one file: `what` they are, their `model`, and keys whose values are secret.

    `usual` returns what a new entry has besides the keys that were given; `verify` raises
    ValueError where a checked entry names a file that does not serve it.
    """

    what: str
    plural: str
    expected: str
    model: type[M]
    never_shown: Collection[str] = ()
    usual: Callable[[dict[str, Any]], dict[str, Any]] = lambda _: {}
    verify: Callable[[M], None] = lambda _: None

    @property
    def shared_file(self) -> Path:
        """The file of the folder of the configuration, beside which one's own entries stand."""
        return config_dir() / f"{self.plural}.yaml"

    @property
    def own_file(self) -> Path:
        """The file of one's own entries, which no update of judgeline touches."""
        return config_dir() / "local" / f"{self.plural}.yaml"

    def examples(self) -> dict[str, str]:
        """Return the text of each entry to copy from; a blank line stands between two."""
        file = ROOT / "config" / "examples" / f"{self.plural}.yaml"
        parts = re.split(r"\n\s*\n", file.read_text(encoding="utf-8")) if file.is_file() else []
        heads = [re.search(r"^([a-z0-9][a-z0-9._-]*):", part, re.MULTILINE) for part in parts]
        return {head[1]: part for head, part in zip(heads, parts, strict=True) if head}

    def load(self, path: Path | None = None, text: str | None = None) -> dict[str, M]:
        """Return the checked entries of a file, or of a text for it; by default all there are."""
        if path is None:
            return {**self.load(self.shared_file), **self.load(self.own_file)}
        own = (self.own_file, self.shared_file)  # may be of comments alone, or the first missing
        if text is None and (path == own[0] or (path == own[1] and path.is_file())):
            lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
            if not any(line.split("#")[0].strip() for line in lines):
                return {}
        entries = read_entries(path, self.plural, text)

        def place(*key: object) -> str:
            return f"{path}, line {entries.line(*key)}: "

        return {slug: self.entry(slug, own, place) for slug, own in entries.values.items()}

    def entry(self, slug: Any, fields: Any, place: Callable[..., str] = lambda *_: "") -> M:
        """Return a checked entry; `place` gives the words before a mistake in one of its keys."""
        here = f"{place(slug)}{self.what} {slug!r}"
        if not isinstance(fields, dict):
            raise ValueError(f"{here} is {fields!r}; expected {self.expected}")
        if "slug" in fields:
            raise ValueError(f"{here} has a key 'slug'; its key above is the slug: remove it")
        return checked(
            self.model,
            {**fields, "slug": slug},
            named=f"{self.what} {slug!r}",
            never_shown=self.never_shown,
            place=partial(place, slug),
        )
