"""Processor time and memory of `judgeline rank` on large Parquet files, beside reading them alone.

Files are made up, in a folder that is deleted; README.md beside this file says how to read the
table.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ratings import MIB, ONE_THREAD, make_battles

SIZES = ("1000000x200", "10000000x200", "100000000x200")
QUICK = SIZES[:2]
MOST_IN_MEMORY = 10_000_000  # battles: 2.6 GiB
GROUP = 1 << 20  # rows
COLUMNS = ("model_a", "model_b", "human_outcome", "score_difference")

READ = """
import sys
import pyarrow.parquet as pq
with pq.ParquetFile(sys.argv[1], read_dictionary=["model_a", "model_b"]) as file:
    for group in range(file.num_row_groups):
        for batch in file.iter_batches(1 << 18, [group], sys.argv[2:], use_threads=False):
            pass
"""
RANK = """
import sys
from judgeline.cli import main
from judgeline.io import counting
counting.COUNTED_FROM = int(sys.argv[3])
sys.exit(main(["rank", sys.argv[1], "--out", sys.argv[2], "--force", "--n-resamples", "0"]))
"""


def write(path: Path, n: int, size: int) -> None:
    """Write made-up battles to one file, a group of rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    strengths = np.random.default_rng(size).normal(0, 0.8, size).astype(np.float32)
    writer = None
    for seed, first in enumerate(range(0, n, GROUP)):
        made = make_battles(min(GROUP, n - first), size, seed, strengths)
        names = pa.array(made.names)
        sides = (
            pa.DictionaryArray.from_arrays(pa.array(side, pa.int32()), names).cast(pa.string())
            for side in (made.model_a, made.model_b)
        )
        numbers = made.human.astype(float), made.score / 12
        table = pa.table(dict(zip(COLUMNS, (*sides, *numbers), strict=True)))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def cost(script: str, *arguments: str) -> dict[str, float]:
    """Return the processor seconds and the peak of memory of a script in a process of its own."""
    environment = os.environ | ONE_THREAD
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            env=environment, stdout=said, stderr=said,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        if status:
            said.seek(0)
            raise RuntimeError(f"ended with status {status}: {said.read().decode()[-2000:]}")
    return {"seconds": used.ru_utime + used.ru_stime, "bytes": 1024 * used.ru_maxrss}


def rows(size: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Measure a file of battles: reading alone, ranking by counts, and ranking row by row."""
    n, models = (int(part) for part in size.split("x"))
    path, out = folder / f"{size}.parquet", str(folder / "out")
    write(path, n, models)
    found = {"size": path.stat().st_size, "n": n, "models": models}
    yield found | {"what": "reading the columns"} | cost(READ, str(path), *COLUMNS)
    yield found | {"what": "rank, counted"} | cost(RANK, str(path), out, "1")
    if n <= MOST_IN_MEMORY:
        yield found | {"what": "rank, row by row"} | cost(RANK, str(path), out, str(n + 1))
    path.unlink()


def show(row: dict[str, Any]) -> None:
    """Print seconds and memory of one file of battles."""
    per_battle = f"{row['seconds'] / row['n'] * 1e9:,.0f} ns a battle"
    what = f"{row['n']:>11,} x {row['models']}  {row['what']:20}"
    print(f"{what} {row['seconds']:7.2f} s {per_battle:>18} {row['bytes'] / MIB:7,.0f} MiB")


def main() -> None:
    """Measure files of battles one after another, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=None, metavar="BATTLESxMODELS")
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    chosen = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for size in chosen.sizes or (QUICK if chosen.quick else SIZES):
            for row in rows(size, Path(folder)):
                results.append(row)
                if not chosen.json:
                    show(row)
    if chosen.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
