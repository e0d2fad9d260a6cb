"""Annotations of AlpacaEval: one preference per pair, with the texts of both sides.

A preference runs from 1, `output_1` wins, to 2; 1.5 is a draw, and so is the 0 of early files
(tatsu-lab/alpaca_eval, `metrics/helpers.py`). Weighted annotators give any number in between.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgeline.io import CorpusRead
from judgeline.verdict import text_hash
from resources.corpora.records import RowError, encodable, name_of, text_of
from resources.corpora.verdict_files import Judged, Told, battle_of, read_verdict_files, unknown

_DRAW = 0
_DIGITS = 16


def read_alpaca_eval(paths: Sequence[Path]) -> CorpusRead:
    """Return battles of ``generator_1`` (A) against ``generator_2`` (B), and a verdict on each.

    The judge sees a pair once, in a random order that the file does not tell, so the verdict's
    order is ``mean``: one for the battle. Its outcome is 2 minus the preference; null, NaN or
    none is a failed verdict. The raw completion, with its log-probabilities, is the answer. A
    battle is known by both models and all three texts, a question by its instruction.
    """
    return read_verdict_files(paths, "alpaca-eval", _convert)


def _convert(record: Mapping[str, Any]) -> Judged:
    instruction = _text(record, "instruction")
    if instruction is None:
        raise RowError("missing-instruction", "instruction is null, expected the question")
    texts = [_text(record, f"output_{side}") for side in (1, 2)]
    models = [name_of(record, f"generator_{side}", "missing-model") for side in (1, 2)]
    content = "\x1f".join(map(repr, (instruction, *models, *texts)))
    battle = battle_of(
        text_hash(content)[: 2 * _DIGITS],
        f"q-{text_hash(instruction)[:_DIGITS]}",
        models,
        instruction=instruction,
        completion_a=texts[0],
        completion_b=texts[1],
        n_turns=1,
    )
    return Judged(battle, name_of(record, "annotator", "missing-judge"), (_told(record),))


def _text(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise RowError("unreadable-text", f"{key} is {type(value).__name__}, expected text")
    return None if value is None else encodable(value)


def _told(record: Mapping[str, Any]) -> Told:
    preference, answer = record.get("preference"), text_of(record.get("raw_completion"))
    if preference is None or preference != preference:  # NaN alone differs from itself
        return Told("mean", None, answer)
    is_number = isinstance(preference, int | float) and not isinstance(preference, bool)
    if is_number and 1 <= preference <= 2:
        return Told("mean", 2.0 - preference, answer)
    if is_number and preference == _DRAW:
        return Told("mean", 0.5, answer)
    return Told("mean", None, answer, f"preference: {unknown(preference, '1 to 2, or null')}")
