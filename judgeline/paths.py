"""Paths: the checkout, this installation's home, its configuration and its tables."""

import os
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout: the folder that holds ``pyproject.toml``."""


REPORT_PAGES = "/reports"
"""Where the interface shows reports, a page for each corpus."""
BOARD_PLACE = "j1-board"
"""Where in a report the board of the judge nearest to people stands, after ``#``."""
GROUPS_PAGE = "/groups"
"""Where the interface shows the groups of tables on the way to a board."""


def home() -> Path:
    """Return this installation's home: ``JUDGELINE_HOME``, or ``.judgeline`` of the checkout.

    Where judgeline is installed without a checkout it is that of the user.
    """
    is_checkout = (ROOT / "pyproject.toml").is_file()
    return _folder("JUDGELINE_HOME", (ROOT if is_checkout else Path.home()) / ".judgeline")


def readable_home_message() -> str:
    """Return how to close a home that every user of this machine can read; empty if none can."""
    folder = home()
    if not folder.is_dir() or not folder.stat().st_mode & 0o007:
        return ""
    return f"every user of this machine can read {folder}; close it: chmod 700 {folder}"


def in_home(folder: str) -> str:
    """Return a folder that an instance file names, under the home if it is in ``.judgeline``."""
    inside = folder.removeprefix(".judgeline/")
    return folder if inside == folder else str(home().absolute() / inside)


def config_dir() -> Path:
    """Return the folder of the configuration: ``JUDGELINE_CONFIG``, or the checkout's."""
    return _folder("JUDGELINE_CONFIG", ROOT / "config")


def _folder(variable: str, default: Path) -> Path:
    chosen = os.environ.get(variable)
    return Path(chosen).expanduser().resolve() if chosen else default


def _uri(kind: str) -> str:
    """Return the path or URI of some files: ``JUDGELINE_KIND``, or their folder at home."""
    return os.environ.get(f"JUDGELINE_{kind.upper()}") or str(home() / kind)


tables_uri = partial(_uri, "tables")
verdicts_uri = partial(_uri, "verdicts")
embeddings_uri = partial(_uri, "embeddings")
candidates_uri = partial(_uri, "candidates")
votes_uri = partial(_uri, "votes")
"""Where tables, bought verdicts, bought vectors, dropped candidates and dropped votes are."""
