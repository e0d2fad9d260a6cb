"""Verdicts of a judge beside gold labels, of pairs or of single answers."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgeline.io.failures import NONE_MISSING, Missing
from judgeline.io.formats import with_paths
from judgeline.io.judged import given_of
from judgeline.io.layout import LABELS
from judgeline.io.outcome_codes import (
    by_value,
    code_of,
    looks_failed,
    outcomes_by_code,
    parse_codes,
    require_columns,
    scores_of_verdicts,
)
from judgeline.suggest import ArgumentError

_COLUMNS = ("label", "verdict", "verdict_swapped", "chosen_score", "rejected_score")
_SIDES = {1.0: "A", 0.0: "tie", -1.0: "B"}
_FEW = 3  # different whole numbers that may be codes


class Labelled(NamedTuple):
    """Labels and verdicts as classes, or as numbers if `are_marks`; null where a judge failed.

    A table without verdicts has the label alone.
    """

    table: pd.DataFrame
    are_marks: bool


def read_labelled(
    source: pd.DataFrame | Path,
    *,
    columns: Mapping[str, str],
    outcomes: str | None = None,
    missing: Missing = NONE_MISSING,
) -> Labelled:
    """Return labels and verdicts of a file or table; ValueError if it has no labels.

    Columns are ``label``, ``verdict`` and ``verdict_swapped``, the verdict with the second answer
    shown first, where A is the answer shown first; or ``chosen_score`` and ``rejected_score``.
    """
    table, place = _table(source, columns)
    labels = {one for one in table["label"].dropna().map(code_of) if one and _is_class(one)}
    failed = table.apply(
        lambda one: missing.are(one) | by_value(one, lambda value: _failed(value, labels))
    )
    table = table.mask(failed.astype(bool))
    table = table[table["label"].notna()].reset_index(drop=True)
    if table.empty:
        raise ValueError(f"{place} holds no labels")
    numbers = table.apply(pd.to_numeric, errors="coerce")
    if outcomes is None and numbers.notna().eq(table.notna()).all(axis=None) and _marks(numbers):
        return Labelled(numbers, True)
    return Labelled(_classes(table, outcomes, place), False)


def _table(source: pd.DataFrame | Path, columns: Mapping[str, str]) -> tuple[pd.DataFrame, str]:
    """Return the columns of labels and verdicts, and the name of their source."""
    given, layout = given_of(source)
    named = {**(layout.names if layout else {}), **columns}
    if layout and layout.advice is LABELS and layout.battles:
        return layout.battles(given), str(given.path)
    own = with_paths(given.columns, named)
    require_columns(given.path, own, named, _COLUMNS)
    named = {name: named.get(name, name) for name in _COLUMNS if named.get(name, name) in own}
    read = given.read([*named.values()], [])
    table = pd.DataFrame({name: read[column] for name, column in named.items()})
    if {"chosen_score", "rejected_score"} <= {*table}:
        gap = pd.to_numeric(table["chosen_score"], errors="coerce")
        gap = gap - pd.to_numeric(table["rejected_score"], errors="coerce")
        table["verdict"], table["label"] = np.sign(gap).map(_SIDES), "A"
    if "label" not in table:
        raise ArgumentError(
            f"{given.path} has the columns {', '.join(given.columns[:30])}; none is 'label', what "
            "the right answer is: state its name with columns={'label': 'NAME', 'verdict': 'NAME'}",
            "columns",
        )
    return table[[name for name in _COLUMNS[:3] if name in table]], str(given.path)


def _failed(value: object, labels: Collection[str]) -> bool:
    return isinstance(value, str) and looks_failed(value) and code_of(value) not in labels


def _is_class(label: str) -> bool:
    """Return whether a label is one: fail is, beside pass, and N/A is none."""
    return not looks_failed(label) or label.casefold().startswith("fail")


def _marks(numbers: pd.DataFrame) -> bool:
    """Return whether numbers are marks on a scale, not the codes of two winners and a tie."""
    known = np.unique(numbers.to_numpy(dtype=float))
    known = known[~np.isnan(known)]
    return bool((known % 1 > 0).any() or known.size > _FEW)


def _classes(table: pd.DataFrame, outcomes: str | None, place: str) -> pd.DataFrame:
    """Return classes: A, B and tie where all texts are known, else the codes as they are."""
    if outcomes is not None:
        codes = parse_codes(outcomes)
        scores = table.apply(
            lambda one: (2 * outcomes_by_code(one, codes) - 1).fillna(scores_of_verdicts(one))
        )
    else:
        scores = table.apply(scores_of_verdicts)
    if scores.notna().eq(table.notna()).all(axis=None):
        return np.sign(scores).apply(lambda one: one.map(_SIDES))
    found = table.apply(lambda one: by_value(one, code_of).where(one.notna()))
    known = [{*found[name].dropna()} for name in found]
    if len(known) > 1 and not known[0] & known[1]:
        shown = [", ".join(sorted(one)[:5]) for one in known]
        raise ArgumentError(
            f"{place}: labels are {shown[0]} and verdicts {shown[1]}: state the codes of one with "
            "outcomes=1/2/0 (A's, B's, then any of ties)",
            "outcomes",
        )
    return found
