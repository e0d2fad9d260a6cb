"""Files that appear whole or not at all, and never in the place of another unasked."""

import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path


def require_free(paths: Mapping[str, Path], *, force: bool) -> None:
    """Raise unless files can be written: to a folder, and over nothing unless forced."""
    for path in paths.values():
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name another place with --out")
        if path.exists() and not force:
            raise ValueError(f"{path} is there already; add --force to replace it")


def write_together(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write files under passing names first, so that a failure changes nothing."""
    parts = {path: path.with_name(f".{path.name}.{uuid.uuid4().hex}.part") for path in writers}
    try:
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write(parts[path])
            with parts[path].open("rb") as written:
                os.fsync(written.fileno())
        for path, part in parts.items():
            part.replace(path)
    except OSError as error:
        raise ValueError(
            f"cannot write {', '.join(map(str, writers))} ({error.strerror or error}); name "
            "another place with --out"
        ) from error
    finally:
        for part in parts.values():
            if part.exists():
                part.unlink()
