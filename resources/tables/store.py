"""The table store: one Parquet file per asset and partition, local or in object storage."""

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, cast, get_origin

import dagster as dg
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field
from upath import UPath

from judgeline.atomic import write_whole
from judgeline.judges.options import SLUG
from judgeline.paths import tables_uri
from judgeline.report import in_markdown
from judgeline.tables.schema import Table
from judgeline.tables.words import WORDS
from resources.tables.rounding import differ_by_rounding_alone

_SLUG = re.compile(SLUG)
PREVIEW_ROWS = 5
PREVIEW_COLUMNS = 12
CELL_WIDTH = 60
_BEFORE = "_before"  # ends the folder of tables that newer ones replaced
_CACHE_BYTES = 128 << 20  # of tables that stay in memory once read

# Dagster keeps the local variables of the function that makes the first of such a record: no table.
dg.MaterializeResult(metadata={"columns": dg.TableSchema([dg.TableColumn("battle_id")])})
dg.DataVersion("")


def require_slug(key: str) -> str:
    """Return a partition key that is safe as a file name, in a page's address and in a range."""
    if not _SLUG.fullmatch(key) or ".." in key:
        raise ValueError(
            f"unsafe partition key {key!r}; use up to 100 lower-case letters, digits, "
            "'.', '-' and '_', the first a letter or digit (put the display name beside the slug)"
        )
    return key


class ParquetStore(dg.UPathIOManager):
    """Stores DataFrames, and nothing else, as ``base/asset/corpus[/judge].parquet``."""

    extension = ".parquet"

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Store a table with the types of its declaration; a Failure if it has other columns."""
        declared = _declared(context.asset_key.path[-1]) if context.has_asset_key else None
        if declared is not None and isinstance(obj, pd.DataFrame):
            if differing := sorted({*obj.columns} ^ {*declared.columns}):
                raise dg.Failure(
                    f"the table {declared.name!r} and its declaration in resources/tables differ "
                    f"in {', '.join(map(repr, differing))}; correct the one that is wrong",
                    allow_retries=False,
                )
            obj = declared.typed(obj)
        super().handle_output(context, obj)

    def dump_to_path(self, context: dg.OutputContext, obj: Any, path: UPath) -> None:
        """Write the table at once; the hash of its file is the version of its data.

        A table that differs from the stored one by rounding alone stays as it is stored, so that a
        home on another processor is not made again.
        """
        if not isinstance(obj, pd.DataFrame):
            raise dg.Failure(
                f"{context.asset_key.to_user_string()} returned {type(obj).__name__}; the table "
                "store takes DataFrames only (annotate '-> None' for an asset that stores nothing)",
                allow_retries=False,
            )
        table = pa.Table.from_pandas(obj, preserve_index=False)
        written = _stored_alike(path, table) or _in_parquet(table)
        self._remember(path, memoryview(written))
        _write(path, memoryview(written))
        with suppress(dg.DagsterInvariantViolationError):  # called outside of a step
            version = dg.DataVersion(hashlib.blake2b(written, digest_size=16).hexdigest())
            context.step_context.set_data_version(context.asset_key, version)
            # `execute_in_process` would keep every table of the run in memory to its end
            cast("dict[Any, Any]", context.step_context.output_capture or {}).clear()

    # Synchronous on purpose: the asynchronous form of the base class pairs tables with keys by
    # position and mislabels them as soon as one partition is missing.
    def load_from_path(self, context: dg.InputContext | None, path: UPath) -> pd.DataFrame:
        """Read a table, or ``columns`` that an input names; FileNotFoundError if it is missing."""
        columns = ((context and context.definition_metadata) or {}).get("columns")
        try:
            if path.protocol in ("", "file"):
                return _CACHE.read(path.path, columns).to_pandas()
            with path.open("rb") as source:
                return pq.read_table(source, columns=columns).to_pandas()
        except FileNotFoundError as error:
            asset = path.relative_to(self._base_path).parts[0]
            raise FileNotFoundError(
                f"no table at {path}; materialise {asset!r} first (a plus before a name, such as "
                "--select +verdicts, makes what it needs as well)"
            ) from error

    def load_input(self, context: dg.InputContext) -> Any:
        """Load a table; an input of several partitions is a dict of tables by partition key."""
        loaded = super().load_input(context)
        fans_in = (context.definition_metadata or {}).get("fans_in", False)
        wants_dict = fans_in or get_origin(context.dagster_type.typing_type) is dict
        if not context.has_asset_partitions or not wants_dict:
            return loaded
        keys = list(context.asset_partition_keys)
        if len(keys) == 1 and loaded is not None:
            return {keys[0]: loaded}
        return loaded or {}

    def make_safe_partition_path(self, base_path: UPath, partition: str) -> UPath:
        """Join a partition key, or its dimensions, onto the folder of an asset."""
        for key in re.split(r"[/|]", partition):
            require_slug(key)
        return base_path / partition

    def get_metadata(self, context: dg.OutputContext, obj: pd.DataFrame) -> dict[str, Any]:
        """Return the row count, the column types and a preview for the catalogue."""
        schema = pa.Schema.from_pandas(obj, preserve_index=False)
        columns = []
        for field in schema:
            kind = str(field.type).removeprefix("large_")
            columns.append(dg.TableColumn(field.name, kind, WORDS.get(field.name, ("", None))[1]))
        scope = "partition_row_count" if context.has_asset_partitions else "row_count"
        return {
            f"dagster/{scope}": len(obj),
            "dagster/table_name": context.asset_key.to_user_string(),
            "dagster/column_schema": dg.TableSchema(columns),
            "preview": dg.MetadataValue.md(preview(obj)),
        }

    def _remember(self, path: UPath, written: memoryview) -> None:
        """Keep a table of a remembered kind that is replaced; the same again replaces none."""
        asset, *keys = path.relative_to(self._base_path).parts
        declared = _declared(asset)
        if declared is not None and declared.remembered and path.exists():
            stored = path.read_bytes()
            if stored != bytes(written):  # views of signed bytes equal none
                kept = self._base_path.joinpath(f"{asset}{_BEFORE}", *keys)
                _write(kept, memoryview(stored))

    def before(self, asset: str, *keys: str) -> pd.DataFrame | None:
        """Return the table that the newest one of an asset's partition replaced, or None."""
        return self.stored(f"{asset}{_BEFORE}", *keys)

    def _path_of(self, asset: str, *keys: str) -> UPath:
        path = self.make_safe_partition_path(self._base_path / asset, "/".join(keys))
        return self._with_extension(path)

    def stored(self, asset: str, *keys: str) -> pd.DataFrame | None:
        """Return the stored table of an asset's partition, or None where there is none."""
        path = self._path_of(asset, *keys)
        return self.load_from_path(None, path) if path.exists() else None

    def picked(self, asset: str, *keys: str, columns: Sequence[str]) -> pd.DataFrame | None:
        """Return the named columns that a stored table has; None without a table."""
        if not self.has(asset, *keys):
            return None
        with self._path_of(asset, *keys).open("rb") as source:
            stored = pq.ParquetFile(source)
            there = [name for name in columns if name in stored.schema_arrow.names]
            return stored.read(there).to_pandas()

    def matching(
        self, asset: str, *keys: str, column: str, among: Collection[str]
    ) -> pd.DataFrame | None:
        """Return the rows of a stored table by values of `column`; None without a table."""
        if not self.has(asset, *keys):
            return None
        with self._path_of(asset, *keys).open("rb") as source:
            wanted = pc.field(column).isin(pa.array(list(among), pa.string()))
            return pq.read_table(source, filters=wanted).to_pandas()

    def has(self, asset: str, *keys: str) -> bool:
        """Return whether the table of an asset's partition is stored."""
        return self._path_of(asset, *keys).exists()

    def partitions(self, asset: str, corpus: str) -> list[str]:
        """Return the judges with a stored table of an asset and corpus."""
        folder = self.make_safe_partition_path(self._base_path / asset, corpus)
        return sorted(path.stem for path in folder.glob("*.parquet")) if folder.exists() else []


def _declared(name: str) -> Table | None:
    from resources.tables.declared import TABLES  # whose forms judges have

    return TABLES.get(name)


def _write(path: UPath, content: memoryview) -> None:
    if path.protocol in ("", "file"):
        write_whole(Path(path.path), content)
    else:  # one PUT is atomic; a rename would be a copy and a delete
        with path.open("wb") as sink:
            sink.write(content)


def _in_parquet(table: pa.Table) -> pa.Buffer:
    content = pa.BufferOutputStream()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def _stored_alike(path: UPath, table: pa.Table) -> pa.Buffer | None:
    """Return the file at a path if its table differs by rounding alone."""
    try:
        content = pa.py_buffer(path.read_bytes())
        stored = pq.read_table(pa.BufferReader(content))
    except (OSError, pa.ArrowException):  # none yet, or damaged
        return None
    return content if differ_by_rounding_alone(table, stored) else None


class _TableCache:
    """A cache of tables in local files: a limit in bytes, and each table until its file changes."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._lock = most_bytes, Lock()
        self._held: dict[tuple[Any, ...], tuple[pa.Table, int]] = {}  # the latest used comes last

    def read(self, path: str, columns: Sequence[str] | None) -> pa.Table:
        """Return the table in a file, or some of its columns."""
        with open(path, "rb") as source:
            file = os.fstat(source.fileno())
            named = None if columns is None else tuple(columns)
            key = path, named, file.st_mtime_ns, file.st_size, file.st_ino
            with self._lock:
                table, n_bytes = self._held.pop(key, (None, 0))
            if table is None:
                table = pq.read_table(source, columns=columns)
                n_bytes = table.nbytes
        with self._lock:
            self._held[key] = table, n_bytes
            while sum(size for _, size in self._held.values()) > self._most_bytes:
                del self._held[next(iter(self._held))]
        return table


_CACHE = _TableCache(_CACHE_BYTES)


class ParquetTables(dg.ConfigurableIOManagerFactory):  # type: ignore[type-arg]
    """Table store: the local tables folder, or a URI such as ``s3://bucket/tables``."""

    base_uri: str = ""
    storage_options: dict[str, Any] = Field(default={})

    def create_io_manager(self, context: Any) -> ParquetStore:  # noqa: ARG002
        """Return the store that assets are written to and read from."""
        return open_store(self.base_uri, **self.storage_options)


def open_store(base_uri: str = "", **storage_options: Any) -> ParquetStore:
    """Return the store at a URI or folder, by default the one of this installation."""
    return ParquetStore(UPath(base_uri or tables_uri(), **storage_options))


def empty_result(declared: Table, note: str) -> dg.MaterializeResult[pd.DataFrame]:
    """Return a table without rows as the result of an asset, with the reason."""
    return dg.MaterializeResult(value=declared.empty(), metadata={"note": note})


def preview(table: pd.DataFrame, rows: int = PREVIEW_ROWS) -> str:
    """Return the first rows as a Markdown table whose cells can neither format nor fetch."""
    shown = table.iloc[:rows, :PREVIEW_COLUMNS]
    cells = [list(shown.columns), *shown.to_numpy(dtype=object).tolist()]
    lines = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in cells]
    lines.insert(1, "|" + " --- |" * shown.shape[1])
    hidden = table.shape[1] - shown.shape[1]
    return "\n".join(lines) + (f"\n\nand {hidden} more columns" if hidden else "")


def _cell(value: Any) -> str:
    """Return untrusted text as inert Markdown, shortened."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    return in_markdown(text if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…")
