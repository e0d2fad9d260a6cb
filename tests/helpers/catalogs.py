"""A configuration of a test's own."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from resources.config.catalog import Catalog


def catalog_of(folder: Path, **entries: str | Mapping[str, object]) -> Catalog:
    """Write `corpora`, `judges` or `embeddings`, as text or entries, and return their catalog."""
    for name, given in entries.items():
        text = given if isinstance(given, str) else yaml.safe_dump(given)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Catalog(**{f"{name}_file": str(folder / f"{name}.yaml") for name in entries})
