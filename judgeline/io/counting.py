"""Large Parquet files as counts: rows that are alike become one, in batches of bounded memory.

Every different value of a column is looked at once a batch. The kind of a row is all that is read
of it but its score; a table says how many rows have which kind and score.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.io.formats import kind_of
from judgeline.io.outcome_codes import COUNT
from judgeline.io.scoring import turned
from judgeline.verdict import hard_outcome, sign_outcome

COUNTED_FROM = 5_000_000
"""Rows of Parquet files from which on alike ones are read as one with their number."""
MOST_UNCOUNTED = 20_000_000
"""Rows up to which a file whose rows are hardly alike is read row by row all the same."""

_BATCH = 1 << 18  # rows
_MOST_VALUES = 1 << 16  # different ones in a column
_MOST_CELLS = 1 << 27  # kinds times scores; 512 MiB where all are met
_BLOCK = 4096  # kinds handled at a time
_ORDERS = ("difference_ab", "difference_ba")


def is_large(files: Sequence[Path]) -> bool:
    """Return whether files are Parquet and hold so many rows that they are counted."""
    return n_rows_of(files) >= COUNTED_FROM


def n_rows_of(files: Sequence[Path]) -> int:
    """Return how many rows Parquet files say that they hold; 0 where one is of another format."""
    if not files or any(kind_of(path) != "parquet" for path in files):
        return 0
    import pyarrow.parquet as pq

    return sum(pq.read_metadata(path).num_rows for path in files)


def first_rows(path: Path, column: str) -> pd.Series:
    """Return a column of the first rows of a Parquet file."""
    import pyarrow.parquet as pq

    parts = pq.ParquetFile(path).iter_batches(_BATCH, columns=[column])
    return next((part.to_pandas()[column] for part in parts), pd.Series(dtype=float))


@dataclass
class CountedRows:
    """Rows of files by kind and score.

    `kinds` has a row for each kind: its columns, number (``kind``), rows (`COUNT`), and the first
    one's place. A ``score_difference`` there is added to that of the table: 0 for a finite one.
    `scores` (W,) are the different finite scores, each with its negative, which stands at `mirror`;
    `counts` (K, W) says how many rows have which.
    """

    kinds: pd.DataFrame
    scores: NDArray[np.float64]
    mirror: NDArray[np.intp]
    counts: NDArray[Any]

    def spread(self, kept: pd.DataFrame) -> pd.DataFrame:
        """Return battles of some kinds by score, with their numbers; the table is used up.

        The first model by name becomes A: a battle and its mirror image are alike.
        """
        counts, rows = self.counts, kept["kind"].to_numpy()
        table, swap = turned(kept.drop(columns=["kind", COUNT]))
        for part in _blocks(rows[swap.to_numpy()]):
            counts[part] = counts[part[:, None], self.mirror]
        group = table.groupby(list(table), dropna=False, sort=True)
        alike, again = group.ngroup().to_numpy(), group.cumcount().to_numpy()
        first = np.flatnonzero(again == 0)[np.argsort(alike[again == 0])]
        for one in range(1, int(again.max(initial=0)) + 1):
            for part in _blocks(np.flatnonzero(again == one)):
                counts[rows[first[alike[part]]]] += counts[rows[part]]
        blocks = [*_blocks(np.arange(first.size))]
        ends = np.cumsum([0, *(np.count_nonzero(counts[rows[first[part]]]) for part in blocks)])
        kind, column = np.empty((2, ends[-1]), dtype=np.int32)
        number = np.empty(ends[-1], dtype=counts.dtype)
        for part, start, end in zip(blocks, ends, ends[1:], strict=False):
            block = counts[rows[first[part]]]
            place, column[start:end] = np.nonzero(block)
            kind[start:end], number[start:end] = place + part[0], block[block > 0]
        self.counts = counts = np.empty((0, 0), dtype=counts.dtype)
        return _battles(table.iloc[first], self.scores, kind, column, number)


def _blocks(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (rows[first : first + _BLOCK] for first in range(0, rows.size, _BLOCK))


def _battles(
    kinds: pd.DataFrame,
    scores: NDArray[np.float64],
    kind: NDArray[np.int32],
    column: NDArray[np.int32],
    number: NDArray[Any],
) -> pd.DataFrame:
    """Return battles by kind and score with how many they are; all but that as categoricals."""
    nothing = np.full(len(kinds), np.nan)
    recorded = kinds.get("recorded_outcome", kinds.get("judge_outcome", nothing))
    published = kinds[["model_a", "model_b", "human_outcome"]].assign(recorded_outcome=recorded)
    named = {name: _repeated(values, kind) for name, values in published.items()}
    own = kinds["score_difference"].to_numpy(dtype=float)
    points, outcome = _repeated(scores, column), _repeated(sign_outcome(scores), column)
    if own.any():  # plain verdicts, beside which there is one score, 0
        points, outcome = _repeated(own, kind), _repeated(sign_outcome(own), kind)
    if set(_ORDERS) <= set(kinds):
        orders = kinds[list(_ORDERS)].to_numpy(dtype=float)
        both = ~np.isnan(orders).any(axis=1)
        by_both = np.full(len(kinds), np.nan)
        by_both[both] = hard_outcome(orders[both, 0], orders[both, 1])
        outcome = pd.Categorical(np.where(both[kind], by_both[kind], np.asarray(outcome)))
    derived = {"score_difference": points, "judge_outcome": outcome, COUNT: number}
    return pd.DataFrame({**named, **derived}, copy=False)


def _repeated(values: Any, place: NDArray[np.int32]) -> pd.Categorical:
    """Return values at some places."""
    coded = pd.Categorical(values)
    return pd.Categorical.from_codes(coded.codes[place], dtype=coded.dtype, validate=False)


class _Codes:
    """Different values of a column by code, in the order in which they came."""

    def __init__(self) -> None:
        self.place: dict[Any, int] = {}

    def of(self, column: Any) -> NDArray[np.int32]:
        """Return the codes of an Arrow array; OverflowError if it has too many values."""
        values, places = _encoded(column)
        known = [self.place.setdefault(value, len(self.place)) for value in values]
        return np.array(known, dtype=np.int32).take(places)

    def series(self, codes: NDArray[Any]) -> pd.Series:
        """Return the values of some codes."""
        return pd.Series(list(self.place)).take(codes).reset_index(drop=True)


def _encoded(column: Any) -> tuple[list[Any], NDArray[Any]]:
    """Return the different values of an Arrow array, None for null and NaN, and each row's."""
    import pyarrow as pa

    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if len(coded.dictionary) > _MOST_VALUES:
        raise OverflowError
    values = [None if value != value else value for value in coded.dictionary.to_pylist()]
    places = coded.indices
    if places.null_count:
        places, values = places.fill_null(len(values)), [*values, None]
    return values, places.to_numpy(zero_copy_only=False)


class _Kinds:
    """Different combinations of codes by number, and the place of the first row of each."""

    def __init__(self) -> None:
        self.codes = np.empty((0, 0), dtype=np.int32)
        self.first = np.empty((2, 0), dtype=np.int64)
        self.sizes: tuple[int, ...] = ()
        self.lookup = np.empty(0, dtype=np.int32)

    def of(
        self, codes: Sequence[NDArray[np.int32]], sizes: tuple[int, ...], file: int, row: int
    ) -> NDArray[np.int32]:
        """Return the number of each row's kind, by columns of codes and how many codes they have.

        `file` and `row` are the place of the first row. OverflowError beyond `_MOST_CELLS`.
        """
        if math.prod(sizes) > _MOST_CELLS:
            raise OverflowError
        if sizes != self.sizes:
            self.sizes, self.lookup = sizes, np.full(math.prod(sizes), -1, dtype=np.int32)
            if self.codes.size:
                known = np.ravel_multi_index(tuple(self.codes), sizes)
                self.lookup[known] = np.arange(known.size)
        key = codes[0]
        for more, size in zip(codes[1:], sizes[1:], strict=True):
            key = key * np.int32(size) + more
        kind = self.lookup.take(key)
        if (unknown := np.flatnonzero(kind < 0)).size:
            fresh, first = np.unique(key[unknown], return_index=True)
            first = unknown[first]
            order = np.argsort(first)
            fresh, first = fresh[order], first[order]
            self.lookup[fresh] = np.arange(fresh.size) + self.codes.shape[1]
            found = np.array(np.unravel_index(fresh, sizes), dtype=np.int32)
            self.codes = np.hstack([self.codes.reshape(len(found), -1), found])
            place = np.array([np.full(first.size, file), first + row])
            self.first = np.hstack([self.first, place])
            kind = self.lookup.take(key)
        return kind


def count_rows(
    files: Sequence[Path], columns: Mapping[str, str], sides: tuple[str, ...] = ()
) -> CountedRows | None:
    """Return the rows of Parquet files as counts; None if they are hardly alike.

    `columns` has the files' own name of each column; `sides` names two columns of scores, whose
    difference is then ``score_difference``. Of the columns of both orders the signs are kept.
    """
    import pyarrow as pa

    try:
        return _count(files, columns, sides)
    except (OverflowError, pa.ArrowNotImplementedError):
        return None
    finally:
        pa.default_memory_pool().release_unused()


def _count(
    files: Sequence[Path], columns: Mapping[str, str], sides: tuple[str, ...]
) -> CountedRows:
    dtype = np.uint32 if n_rows_of(files) < 2**32 else np.int64
    scores, kinds, counts = _Codes(), _Kinds(), np.zeros((0, 0), dtype=dtype)
    values: dict[str, _Codes] = {}
    for file, row, batch, score in _batches(files, columns, sides):
        values = values or {name: _Codes() for name in batch}
        place = scores.of(score)
        codes = [values[name].of(column) for name, column in batch.items()]
        kind = kinds.of(codes, tuple(len(one.place) for one in values.values()), file, row)
        counts = _roomy(counts, kinds.codes.shape[1], len(scores.place))
        key = kind.astype(np.intp) * counts.shape[1]
        key += place
        np.add.at(counts.reshape(-1), key, counts.dtype.type(1))
    for value in [*scores.place]:
        scores.place.setdefault(-value, len(scores.place))
    counts = _roomy(counts, kinds.codes.shape[1], len(scores.place))
    counts = counts[: kinds.codes.shape[1], : len(scores.place)]
    series = [one.series(codes) for one, codes in zip(values.values(), kinds.codes, strict=True)]
    names = [files[0].name] if len(files) == 1 else [*map(str, files)]
    table = pd.DataFrame(dict(zip(values, series, strict=True))).assign(
        file=pd.Categorical.from_codes(kinds.first[0], names),
        row=kinds.first[1],
        kind=np.arange(len(counts)),
        **{COUNT: counts.sum(axis=1, dtype=np.int64)},
    )
    mirror = np.array([scores.place[-score] for score in scores.place], dtype=np.intp)
    return CountedRows(table, np.array([*scores.place], dtype=float), mirror, counts)


def _roomy(counts: NDArray[Any], n_kinds: int, n_scores: int) -> NDArray[Any]:
    """Return a table of counts that has room for so many kinds and scores.

    It is made as large as it may become: what no row was counted in takes no memory.
    """
    if n_scores > counts.shape[1]:
        width = 1 << (n_scores - 1).bit_length()
        wider = np.zeros((_MOST_CELLS // width, width), dtype=counts.dtype)
        for part in _blocks(np.arange(min(n_kinds, len(counts), len(wider)))):
            wider[part, : counts.shape[1]] = counts[part]
        counts = wider
    if n_kinds > len(counts):
        raise OverflowError
    return counts


def _batches(
    files: Sequence[Path], columns: Mapping[str, str], sides: tuple[str, ...]
) -> Iterator[tuple[int, int, dict[str, Any], Any]]:
    """Yield file and first row of some rows, their columns, and their finite scores.

    Columns are Arrow arrays by our names. Where scores are numbers, their column has 0 for each
    finite one; elsewhere the scores are 0.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schemas = [pq.read_schema(path) for path in files]

    def are(*kinds: Callable[[Any], bool]) -> dict[str, str]:
        """Return the columns of which every file's type is one of some."""
        types = {name: [one.field(own).type for one in schemas] for name, own in columns.items()}
        known = {n for n, all_of in types.items() if all(any(k(t) for k in kinds) for t in all_of)}
        return {name: own for name, own in columns.items() if name in known}

    numbers = are(pa.types.is_integer, pa.types.is_floating).keys()
    are_apart = bool(sides) and numbers >= {*sides}
    texts = [*are(pa.types.is_string, pa.types.is_large_string).values()]
    for number, path in enumerate(files):
        row = 0
        with pq.ParquetFile(path, read_dictionary=texts, buffer_size=1 << 20) as file:
            for batch in _records(file, [*columns.values()]):
                named = {name: batch.column(own) for name, own in columns.items()}
                named |= {name: pc.sign(named[name]) for name in numbers & {*_ORDERS}}
                if are_apart:
                    named["score_difference"] = pc.subtract(*(named.pop(side) for side in sides))
                score = pa.repeat(0.0, len(batch))
                if are_apart or "score_difference" in numbers:
                    given = named["score_difference"].cast(pa.float64())
                    is_finite = pc.is_finite(given).fill_null(False)
                    score = pc.if_else(is_finite, given, 0.0)
                    named["score_difference"] = pc.if_else(is_finite, 0.0, given)
                yield number, row, named, score
                row += len(batch)


def _records(file: Any, columns: list[str]) -> Iterator[Any]:
    """Yield the rows of a Parquet file; a reader of all groups would hold on to each of them."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(_BATCH, [group], columns, use_threads=False)
