"""Preferences of a judge for models over one reference model, a row each."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from judgeline.io import records
from judgeline.io.layout import REFERENCE, Layout, read_layout


def _records(path: Path) -> list[records.Record]:
    """Return the rows of a table of preferences for models over one reference model."""
    rows = read_layout(path, REFERENCE_BATTLES).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def _judged(record: Mapping[str, Any]) -> records.Judged:
    """Return a battle of ``model`` (A) against ``reference_model`` (B), with one verdict on it."""
    models = records.models_of(record, "model", "reference_model")
    battle = records.battle_of(records.id_of(record, "question_id"), *models, n_turns=1)
    published, expected = record.get("preference"), "0 to 1, or null"
    verdict = records.verdict_of("mean", published, _probability, expected, None, "preference: ")
    return records.Judged(battle, records.name_of(record, "judge", "missing-judge"), (verdict,))


def _probability(published: Any) -> float | None:
    """Return a number, as text in a CSV file too; None where there is none."""
    if published is None:
        return None
    share = float(published)
    if isinstance(published, bool) or share < 0 or share > 1:
        raise ValueError
    return None if np.isnan(share) else share


REFERENCE_BATTLES = Layout(
    "reference-battles",
    ("question_id model reference_model judge preference",),
    advice=REFERENCE,
    is_rated=True,
    corpus=records.of_records(_judged, _records),
)
