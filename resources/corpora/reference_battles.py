"""Published preferences for models over one reference model: a row per model and question.

Such a table says who was compared on which question and how probable the judge held it that
the model won. It has no texts. Tokens behind a preference, where a file has them, are not read:
which side a token stood for was drawn anew for every row and is not told, the preference has it
undone already.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgeline.io import CorpusRead, read_layout
from resources.corpora.records import Record, id_of, name_of
from resources.corpora.verdict_files import (
    Judged,
    Told,
    battle_of,
    joined,
    read_verdict_files,
    unknown,
)

READER = "reference-battles"


def read_reference_battles(paths: Sequence[Path]) -> CorpusRead:
    """Return battles of ``model`` (A) against ``reference_model`` (B), and a verdict on each.

    The verdict's order is ``mean``: one for the battle. Its outcome is the preference, the
    probability in [0, 1] that the model wins; null or NaN is a failed verdict, and so is one
    outside, whose row is quarantined as well. A reference against itself is quarantined.
    """
    return read_verdict_files(paths, READER, _convert, _records)


def _records(path: Path) -> Iterator[Record]:
    rows = read_layout(path, READER).to_dict("records")
    return ((row, {str(k): v for k, v in record.items()}, "") for row, record in enumerate(rows))


def _convert(record: Mapping[str, Any]) -> Judged:
    question = id_of(record, "question_id")
    models = [name_of(record, key, "missing-model") for key in ("model", "reference_model")]
    battle = battle_of(joined(question, *models), question, models, n_turns=1)
    return Judged(battle, name_of(record, "judge", "missing-judge"), (_told(record),))


def _told(record: Mapping[str, Any]) -> Told:
    preference = _number(record.get("preference"))
    if preference is None or preference != preference:  # NaN alone differs from itself
        return Told("mean", None, None)
    if isinstance(preference, float) and 0 <= preference <= 1:
        return Told("mean", preference, None)
    return Told("mean", None, None, f"preference: {unknown(preference, '0 to 1, or null')}")


def _number(value: Any) -> Any:
    """Return numbers, as text in a CSV file too, as floats, and anything else as it is."""
    try:
        return value if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value
