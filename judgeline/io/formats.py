"""Tables in files: format and packing by name, encoding and separators by content.

CSV with commas, semicolons, tabs or bars, JSON, JSON lines, Parquet and Feather, the text formats
also in gzip, bzip2, xz or zip.
"""

import bz2
import codecs
import csv
import glob
import gzip
import io
import json
import lzma
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd

from judgeline.suggest import missing_file
from judgeline.verdict import unique_members

SUFFIXES: dict[str, str] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
}
GATE_LEDGER = ".gate.jsonl"
"""End of the name of a gate's ledger, which lies beside its battles."""
LOG = ".eval"
"""Evaluation logs of Inspect AI."""
TEXTS = ("csv", "json", "jsonl")
"""Formats that are text, in some encoding."""
_PACKED: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": lambda path: zipfile.Path(path, _member(path)).open("rb"),
}
_BINARY = partial(Path.open, mode="rb")
_SEPARATORS = ",;\t|"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WESTERN = "cp1252"  # which a few accents do not tell from its neighbours
_UNNAMED = re.compile(r"__index_level_\d+__")  # names of rows that pandas keeps in a file
_ABOVE = re.compile(r"sep=.?\r?$|# ")
_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_CHUNK = 1 << 20
_EXACT = 1 << 53  # a float holds every whole number up to here
_LONGEST_ROW = 1 << 26  # bytes
_SAMPLE_ROWS = 1000
_MISSING = ("", "nan", "NaN", "NA", "null", "None")


def files_of(path: Path) -> list[Path]:
    """Return the file at a path, or those of a folder or a pattern, by name.

    ValueError if there is none; in a folder, files of other formats and hidden ones are passed
    over, and folders in it are looked into if it holds none itself.
    """
    if path.is_file():
        return [path]
    inside = [*map(Path, glob.glob(str(path)))]
    if path.is_dir():
        inside = [one for one in path.iterdir() if not one.name.startswith(".")]
    if found := _known_files(inside) or (_known_files(_shown_below(path)) if path.is_dir() else []):
        return found
    if path.is_dir():
        raise ValueError(
            f"{path} holds no file that ends in one of {', '.join([*SUFFIXES, LOG])}; name a file, "
            "or a folder of them"
        )
    if path.exists():
        raise ValueError(f"{path} is no file on a disk; write its content into one and name that")
    raise ValueError(missing_file(path))


def _shown_below(folder: Path) -> Iterator[Path]:
    """Yield what lies below a folder, without hidden files and what hidden folders hold."""
    for one in folder.rglob("*"):
        if not any(part.startswith(".") for part in one.relative_to(folder).parts):
            yield one


def _known_files(paths: Iterable[Path]) -> list[Path]:
    known = (*SUFFIXES, LOG)
    return sorted(
        one
        for one in paths
        if (one.suffix == ".zip" or unpacked(one).suffix.lower() in known)
        and not one.name.endswith(GATE_LEDGER)
        and one.is_file()
    )


def kind_of(path: Path) -> str:
    """Return the format of a file; ValueError if its name tells none, or it is empty."""
    if not path.exists():
        files_of(path)
    if path.exists() and path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes); download or write it again")
    is_packed = path.suffix.lower() in _PACKED
    name = Path(_member(path)) if path.suffix.lower() == ".zip" else unpacked(path)
    kind = SUFFIXES.get(name.suffix.lower())
    if kind is None or (is_packed and kind in ("parquet", "feather")):
        packed = " within the packing" if is_packed else ""
        raise ValueError(
            f"{path} ends in {name.suffix or 'nothing'!r}{packed}; expected one of "
            f"{', '.join(SUFFIXES)}, text also in {', '.join(_PACKED)}: convert it, or rename it "
            "if it is one of these already"
        )
    return kind


def unpacked(path: Path) -> Path:
    """Return the path without the suffix of a packing."""
    return path.with_suffix("") if path.suffix.lower() in _PACKED else path


def file_columns(path: Path) -> list[str]:
    """Return the names of a file's columns without reading its rows, where its format can."""
    kind = kind_of(path)
    with _errors_named(path, kind):
        if kind == "parquet":
            import pyarrow.parquet as pq

            return [one for one in pq.read_schema(path).names if not _UNNAMED.fullmatch(one)]
        if kind == "feather":
            with _arrow(path) as content:
                return [one for one in content.schema.names if not _UNNAMED.fullmatch(one)]
        if kind == "csv":
            layout: dict[str, Any] = {"sep": _separator(path), "encoding": encoding_of(path)}
            layout["skiprows"] = _preamble(path)
            return list(map(str, pd.read_csv(_readable(path), nrows=0, **layout).columns))
    return list(dict.fromkeys(name for record in _records(path, kind) for name in record))


def read_columns(path: Path, columns: Sequence[str], texts: Sequence[str] = ()) -> pd.DataFrame:
    """Return columns of a file, those of `texts` as text, the others as numbers where they are.

    CSV cells that are empty, or say so in a column of numbers, are null. ``a.b`` is the value under
    ``b`` in the objects of column ``a``, where no column has that name.
    """
    own = file_columns(path) if any("." in name for name in columns) else columns
    if any(name not in own for name in columns):
        heads = list(dict.fromkeys(head_of(name, own) for name in columns))
        table = read_columns(path, heads, [name for name in texts if name in heads])
        return at_paths(table, columns)
    kind = kind_of(path)
    with _errors_named(path, kind):
        if kind == "parquet":
            return _with_index(pd.read_parquet(path, columns=list(columns)), columns)
        if kind == "feather":
            with _arrow(path) as content:
                table = content.read_all().select(list(columns))
            return _with_index(table.to_pandas(), columns)
        if kind == "csv":
            separator = _require_rectangular(path)
            return pd.read_csv(
                _readable(path),
                sep=separator,
                decimal=_decimal(path, separator),
                encoding=encoding_of(path),
                skiprows=_preamble(path),
                usecols=list(columns),
                dtype=dict.fromkeys(texts, str),
                keep_default_na=False,
                na_values={n: [""] if n in texts else list(_MISSING) for n in columns},
            )
    rows = [[record.get(name) for name in columns] for record in _records(path, kind)]
    return _inferred(pd.DataFrame(rows, columns=list(columns), dtype=object))


def _with_index(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of a table of pandas, also those that it keeps as names of rows."""
    return (table if {*columns} <= {*table} else table.reset_index())[list(columns)]


@contextmanager
def _arrow(path: Path) -> Iterator[Any]:
    """Open an Arrow file, as Feather writes it, or a stream, as saved data sets of a hub are."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as content:
        try:
            opened = pa.ipc.open_file(content)
        except pa.ArrowInvalid:
            content.seek(0)
            opened = pa.ipc.open_stream(content)
        with opened:
            yield opened


def _inferred(table: pd.DataFrame) -> pd.DataFrame:
    """Return columns of objects in their own types; whole numbers beyond 2^53 stay as they are."""

    def column(values: pd.Series) -> pd.Series:
        """Return one column in its own type."""
        if any(type(one) is int and abs(one) > _EXACT for one in values):
            return values
        return pd.Series(values.tolist(), index=values.index, name=values.name)

    return pd.DataFrame({name: column(table[name]) for name in table}, index=table.index)


def head_of(name: str, own: Collection[str]) -> str:
    """Return the column that a name is, or that the first part of a dotted name is."""
    return name if name in own else name.partition(".")[0]


def with_paths(found: list[str], stated: Mapping[str, str]) -> list[str]:
    """Return names of columns with the dotted ones that are stated, of objects in one of them."""
    return [
        *found,
        *(own for own in stated.values() if own not in found and head_of(own, found) in found),
    ]


def at_paths(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of a table, and the values at dotted names in columns of objects."""

    def value(cell: Any, parts: Sequence[str]) -> Any:
        """Return the value at a path in a cell; None where there is none."""
        for part in parts:
            if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "["):
                with suppress(ValueError):
                    cell = json.loads(cell)
            if isinstance(cell, list | np.ndarray) and part.isdigit():
                cell = cell[int(part)] if int(part) < len(cell) else None
            else:
                cell = cell.get(part) if isinstance(cell, Mapping) else None
        return cell

    found = {}
    for name in columns:
        head, *parts = [name] if name in table else name.split(".")
        column = table[head]
        found[name] = column.map(lambda cell, parts=parts: value(cell, parts)) if parts else column
        if parts and found[name].isna().all() and len(table):
            keys = dict.fromkeys(
                key for cell in column if isinstance(cell, Mapping) for key in cell
            )
            raise ValueError(
                f"nothing stands at {name!r}: {head!r} has {', '.join(keys) or 'no keys'}"
            )
    return pd.DataFrame(found, index=table.index)


def encoding_of(path: Path) -> str:
    """Return the encoding of a text file: by its mark, else UTF-8 if it is valid, else a guess.

    ValueError if none fits, or if some of the text is UTF-8 and some is not.
    """
    state = path.stat()
    return _encoding(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=8)
def _encoding(path: Path, _changed: int, _size: int) -> str:
    with _unpacked(path) as content:
        start = content.read(4)
        for mark, name in _MARKS:
            if start.startswith(mark):
                return name
        decoder = codecs.getincrementaldecoder("utf-8")()
        read = chunk = start
        is_plain = True
        try:
            while chunk:
                is_plain &= decoder.decode(chunk).isascii()
                chunk = content.read(_CHUNK)
                read = chunk or read
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            import charset_normalizer  # takes longer than a small file

            fitting = [one.encoding for one in charset_normalizer.from_bytes(read)]
            if not fitting or not is_plain or _UTF8.search(read):
                raise ValueError(
                    f"byte {error.object[error.start]:#04x} is not UTF-8, and no other encoding "
                    "fits the whole; save it as UTF-8"
                ) from error
            return _WESTERN if _WESTERN in fitting else fitting[0]
    return "utf-8"


@contextmanager
def _errors_named(path: Path, kind: str) -> Iterator[None]:
    """Turn errors of pandas and pyarrow into a ValueError that names the file and the remedy."""
    try:
        yield
    except (ValueError, OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile) as error:
        if str(error).startswith(str(path)):
            raise
        remedy = "" if "save it as" in str(error) else "; download or write it again"
        raise ValueError(f"{path} cannot be read as {kind}: {error}{remedy}") from error


def _unpacked(path: Path) -> io.BufferedIOBase:
    opened: io.BufferedIOBase = _PACKED.get(path.suffix.lower(), _BINARY)(path)
    return opened


def _readable(path: Path) -> Any:
    """Return the input of pandas: the path, or the one file in a zip archive."""
    return _unpacked(path) if path.suffix.lower() == ".zip" else path


def _member(path: Path) -> str:
    """Return the name of the one file in a zip archive."""
    with _errors_named(path, "zip"), zipfile.ZipFile(path) as archive:
        names = [one.filename for one in archive.infolist() if not one.is_dir()]
    if len(names) != 1:
        raise ValueError(f"{path} holds {len(names)} files; unpack it and name one of them")
    return names[0]


def _text(path: Path) -> IO[str]:
    return io.TextIOWrapper(cast(IO[bytes], _unpacked(path)), encoding_of(path), newline="")


def _preamble(path: Path) -> int:
    """Return how many lines of a CSV file stand above its header: ``sep=;`` and ``# ...``."""
    with _text(path) as lines:
        return sum(1 for _ in takewhile(_ABOVE.match, lines))


def _separator(path: Path) -> str:
    """Return the separator that gives the header of a CSV file the most fields; commas first."""
    above = _preamble(path)
    with _text(path) as lines:
        header = next(islice(iter(lambda: lines.readline(_CHUNK), ""), above, None), "")
    return max(_SEPARATORS, key=lambda one: len(next(csv.reader([header], delimiter=one), [])))


def _require_rectangular(path: Path) -> str:
    """Return the separator of a CSV file; raise unless rows have as many fields as the header."""
    import pyarrow as pa
    import pyarrow.csv as pc

    wrong: list[pc.InvalidRow] = []

    def set_aside(row: pc.InvalidRow) -> str:
        """Keep a row that does not fit, and leave it out of the table."""
        wrong.append(row)
        return "skip"

    separator, names = _separator(path), {"autogenerate_column_names": True, "use_threads": False}
    options = (
        pc.ReadOptions(
            **names, skip_rows=_preamble(path), block_size=_LONGEST_ROW, encoding=encoding_of(path)
        ),
        pc.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            invalid_row_handler=set_aside,
        ),
        pc.ConvertOptions(include_columns=["f0"], column_types={"f0": pa.binary()}),
    )
    try:
        rows = pc.open_csv(_unpacked(path), *options)
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):  # who reads the file says so
            return separator
        raise
    with rows:
        while not wrong and next(rows, None) is not None:
            pass
    if wrong:
        raise ValueError(
            f"{path}, row {wrong[0].number - 2}: {wrong[0].actual_columns} fields where the header "
            f"has {wrong[0].expected_columns}; put quotes around fields that hold commas, and "
            "write decimals with a point"
        )
    return separator


def _decimal(path: Path, separator: str) -> str:
    """Return the decimal sign of a CSV file: a comma where only it stands between digits.

    A comma with three digits behind it wherever it stands may separate thousands.
    """
    if separator == ",":
        return "."
    with _text(path) as lines:
        csv.field_size_limit(_LONGEST_ROW)
        rows = islice(csv.reader(lines, delimiter=separator), _SAMPLE_ROWS)
        cells = {cell for row in rows for cell in row}
    found = [one.groups() for cell in cells if (one := re.fullmatch(r"-?\d+([.,])(\d+)", cell))]
    is_thousands = all(len(digits) == 3 for _, digits in found)
    return "," if {sign for sign, _ in found} == {","} and not is_thousands else "."


def _records(path: Path, kind: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a JSON file: a list of them, one a line, or one under a single name."""
    with _errors_named(path, kind), _text(path) as lines:
        if kind == "jsonl":
            yield from _json_lines(path, lines)
            return
        text = lines.read()
    try:
        found = json.loads(text, object_pairs_hook=unique_members)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            place = f"{path}, line {error.lineno}"
            raise ValueError(f"{place}: not JSON ({error}); fix it") from error
        yield from _json_lines(path, io.StringIO(text))
        return
    if isinstance(found, dict):
        found = _unfolded(found)
    for number, record in enumerate(found if isinstance(found, list) else [found], start=1):
        yield _object(record, f"{path}, entry {number}")


def _unfolded(found: dict[str, Any]) -> Any:
    """Return the records that an object holds, in the layouts of pandas or under one name; or it.

    The longest of several lists of records counts if it is twice as long as the others. Texts and
    objects beside a list, such as the model of a run, are columns of its records.
    """
    values = list(found.values())
    if {"columns", "data"} <= found.keys() and all(isinstance(one, list) for one in found["data"]):
        return [dict(zip(found["columns"], row, strict=True)) for row in found["data"]]
    lists = {key: one for key, one in found.items() if one and _are(one, dict)}
    longest = max(lists, key=lambda key: len(lists[key]), default=None)
    if longest and all(
        2 * len(one) <= len(lists[longest]) for k, one in lists.items() if k != longest
    ):
        beside = {key: one for key, one in found.items() if one and isinstance(one, str | dict)}
        return [{**beside, **row} for row in lists[longest]]
    if values and all(isinstance(one, dict) for one in values):
        inner = dict.fromkeys(key for one in values for key in one)
        by_row = not all(map(str.isdigit, inner)) and len(values) > max(1, len(inner))
        return values if by_row or all(map(str.isdigit, found)) else _by_column(found)
    if values and all(isinstance(one, list) for one in values) and len({*map(len, values)}) == 1:
        return _by_column(found)
    return [found]


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(one, kind) for one in values)


def _by_column(found: dict[str, Any]) -> Any:
    return pd.DataFrame(found, dtype=object).to_dict("records")


def _json_lines(path: Path, lines: Iterator[str] | Sequence[str]) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=unique_members)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: not JSON ({error}); fix it") from error
        yield _object(record, f"{path}, line {number}")


def _object(record: Any, place: str) -> Mapping[str, Any]:
    if isinstance(record, dict):
        return record
    raise ValueError(f"{place}: {type(record).__name__}, expected one object of columns")
