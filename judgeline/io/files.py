"""Files written all together or not."""

import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path


def write_together(
    writers: Mapping[Path, Callable[[Path], object]], *, new: Path | None = None
) -> None:
    """Write all files or none, under temporary names first; FileExistsError if `new` is there."""
    parts = {path: path.with_name(f".{path.name}.{uuid.uuid4().hex}.part") for path in writers}
    is_ours = False
    try:
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write(parts[path])
            with parts[path].open("rb") as written:
                os.fsync(written.fileno())
        if new is not None:
            new.open("x").close()  # of two programs that come here at once, one goes on
            is_ours = True
        for path, part in parts.items():
            part.replace(path)
    finally:
        for part in parts.values():
            if part.exists():
                part.unlink()
        if new is not None and is_ours and not new.stat().st_size:
            new.unlink()
