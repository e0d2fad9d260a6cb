"""Disk space that is held back for answers that are paid for, and given up when the disk is full.

What belongs here: the file that holds the space, and what is said when there is none. What does
not: which answers are written where (`writing`).
"""

import errno
import os
from pathlib import Path

from upath import UPath

from resources.store.shards import is_local

ROOM_BYTES = 16 << 20
"""More than all answers take that can be on their way when the disk fills up."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a disk, a quota or a limit on files that is used up."""

_NAME = ".room"


class Room:
    """A file in a local folder that takes up space; object storage is never full.

    Attributes
    ----------
    is_held : bool
        Whether the space is taken up.
    """

    def __init__(self, folder: UPath, what: str, variable: str) -> None:
        self._folder, self._what, self._variable = folder, what, variable
        self._file = Path(folder.path) / _NAME if is_local(folder) else None
        self.is_held = False

    def hold(self) -> None:
        """Take up the space."""
        if self._file is None or not hasattr(os, "posix_fallocate"):
            return
        descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, ROOM_BYTES)
            self.is_held = True
        except OSError as error:
            self._file.unlink(missing_ok=True)
            if error.errno in FULL:
                needed = f"it takes {ROOM_BYTES >> 20} MiB to begin, and nothing was asked"
                raise self.error(needed) from error
        finally:
            os.close(descriptor)

    def give_up(self) -> bool:
        """Free the space; return whether any was held."""
        was_held, self.is_held = self.is_held, False
        if was_held and self._file is not None:
            self._file.unlink(missing_ok=True)
        return was_held

    def error(self, consequence: str) -> OSError:
        """Return the error that names the folder, the consequence and the remedy."""
        return OSError(
            errno.ENOSPC,
            f"No space left for {self._what}: {consequence}. Free space there, or move all "
            f"{self._what} to a larger disk and set {self._variable} to their new place; then run "
            "again: nothing that is stored is asked for again",
            str(self._folder),
        )
