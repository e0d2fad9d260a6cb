"""Columns as they are published: names, languages, categories, outcomes and truth values."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io.outcome_codes import by_value
from judgeline.verdict import slug

_LANGUAGES = Path(__file__).with_name("languages.txt").read_text(encoding="utf-8")
CODES: dict[str, str] = {
    name.strip().lower(): code
    for code, names in (entry.strip().split(" ", 1) for entry in _LANGUAGES.split(";"))
    for name in names.split(",")
}
"""ISO 639-1 code by lower-case English name."""

_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]+)*", re.IGNORECASE)
_UNKNOWN = {"un", "und", "xx", "mul", "zxx", "mis", "nan"}
_RETIRED = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro"}


def language_code(published: object) -> str | None:
    """Return the code of a language given by English name or tag; None where it is unknown.

    A tag loses its script and region (``zh-Hant`` is ``zh``). Languages without a code of two
    letters keep their tag of three. Names of no known language, and what detectors write when
    they found none (``unknown``, ``un``, ``und``), are unknown.
    """
    if not isinstance(published, str):
        return None
    text = published.strip().lower()
    if (name := text.replace("_", " ")) in CODES:
        return CODES[name]
    tag = _TAG.fullmatch(text)
    if tag is None or tag[1] in _UNKNOWN:
        return None
    return _RETIRED.get(tag[1], tag[1])


def names(published: pd.Series) -> pd.Series:
    """Return names without surrounding blanks; null for empty ones."""
    texts = published.astype("str").str.strip()
    return texts.mask(texts.eq("") | published.isna().to_numpy())


def judge_slugs(published: pd.Series) -> pd.Series:
    """Return the slugs of judges' names, null where a name is.

    Raises
    ------
    ValueError
        If two names share a slug, or one has none.
    """
    slugs = {name: slug(name) for name in published.dropna().unique()}
    first: dict[str, str] = {}
    for name, short in slugs.items():
        if first.setdefault(short, name) != name:
            raise ValueError(
                f"judges {first[short]!r} and {name!r} share the slug {short!r}; rename one in "
                "its file"
            )
    return published.map(slugs)


def languages(published: pd.Series) -> pd.Series:
    """Return ISO codes of languages given by name or tag, null where unknown."""
    return by_value(published, language_code).astype("str")


def outcomes(published: pd.Series, codes: Mapping[Any, float]) -> pd.Series:
    """Return A's share of the win by its published code, null for any other code."""
    return by_value(published, codes.get).astype("float64")


def truths(published: pd.Series) -> pd.Series:
    """Return True where a boolean, or the text or number of one, says so."""
    return published.astype("str").str.lower().isin(["true", "1", "1.0"])


def categories(published: pd.Series) -> pd.Series:
    """Return the categories of each battle as text, ``math;code`` for a list of two."""

    def text(cell: Any) -> Any:
        return ";".join(map(str, cell)) if isinstance(cell, list | tuple | np.ndarray) else cell

    return names(published.astype(object).map(text))


def each_category(published: pd.Series) -> pd.Series:
    """Return the categories, one a row, by the place of their battle; ``math;code`` are two."""
    listed = published.astype("str").reset_index(drop=True).dropna().str.split(";").explode()
    each = names(listed).dropna()
    return each[~pd.MultiIndex.from_arrays([each.index, each]).duplicated()]
