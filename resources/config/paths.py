"""Paths: the checkout, this installation's home, its configuration and its tables."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: the folder that holds ``pyproject.toml``."""


def home() -> Path:
    """Return the folder of all that is written here: ``JUDGELINE_HOME``, or ``.judgeline``."""
    return _folder("JUDGELINE_HOME", ROOT / ".judgeline")


def config_dir() -> Path:
    """Return the folder of what a user edits: ``JUDGELINE_CONFIG``, or ``config`` here."""
    return _folder("JUDGELINE_CONFIG", ROOT / "config")


def tables_uri() -> str:
    """Return the path or URI of the tables: ``JUDGELINE_TABLES``, or ``tables`` at home."""
    return os.environ.get("JUDGELINE_TABLES") or str(home() / "tables")


def verdicts_uri() -> str:
    """Return the path or URI of bought verdicts: ``JUDGELINE_VERDICTS``, or those at home."""
    return os.environ.get("JUDGELINE_VERDICTS") or str(home() / "verdicts")


def embeddings_uri() -> str:
    """Return the path or URI of bought vectors: ``JUDGELINE_EMBEDDINGS``, or those at home."""
    return os.environ.get("JUDGELINE_EMBEDDINGS") or str(home() / "embeddings")


def candidates_uri() -> str:
    """Return the path or URI of dropped candidates: ``JUDGELINE_CANDIDATES``, or those at home."""
    return os.environ.get("JUDGELINE_CANDIDATES") or str(home() / "candidates")


def _folder(variable: str, default: Path) -> Path:
    chosen = os.environ.get(variable)
    return Path(chosen).expanduser().resolve() if chosen else default
