"""Files that are written whole or not at all, and survive a power cut once written."""

import errno
import os
from functools import partial
from pathlib import Path

from judgeline.paths import home


def write_whole(
    file: Path, content: bytes | memoryview, suffix: str = ".part", mode: int = 0o666
) -> None:
    """Write a file under a hidden name beside it, and rename it when it is on the disk."""
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    make_durable_folder(file.parent)
    part = file.with_name(f".{file.name}.{os.getpid()}{suffix}")
    try:
        with open(part, "wb", opener=partial(os.open, mode=mode)) as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def make_durable_folder(folder: Path) -> None:
    """Make a folder and its parents so that they survive a power cut.

    The home holds texts, answers and votes: other users of the machine cannot enter it.
    """
    if folder.is_dir():
        return
    make_durable_folder(folder.parent)
    folder.mkdir(0o700 if folder.absolute() == home() else 0o777, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
