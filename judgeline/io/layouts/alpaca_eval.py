"""AlpacaEval's annotations: tatsu-lab/alpaca_eval, `metrics/helpers.py`."""

from collections.abc import Mapping
from typing import Any

from judgeline.io import records
from judgeline.io.layout import VERDICTS, Layout
from judgeline.verdict import text_hash

_DIGITS = 16


def _judged(record: Mapping[str, Any]) -> records.Judged:
    """Return a battle of ``generator_1`` (A) against ``generator_2`` (B), and a verdict on it.

    The judge sees a pair once, in a random order that the file does not tell, so the verdict's
    order is ``mean``: one for the battle. The raw completion, with its log-probabilities, is the
    answer. A battle is known by both models and all three texts, a question by its instruction.
    """
    texts = {key: record.get(key) for key in ("instruction", "output_1", "output_2")}
    for key, text in texts.items():
        if text is not None and not isinstance(text, str):
            detail = f"{key} is {type(text).__name__}, expected text"
            raise records.RowError("unreadable-text", detail)
    instruction, *outputs = map(records.text_of, texts.values())
    if instruction is None:
        raise records.RowError("missing-instruction", "instruction is null, expected the question")
    models = records.models_of(record, "generator_1", "generator_2")
    content = "\x1f".join(map(repr, (instruction, *models, *outputs)))
    own: dict[str, Any] = {"battle_id": text_hash(content)[: 2 * _DIGITS], "n_turns": 1}
    own |= {"instruction": instruction, "completion_a": outputs[0], "completion_b": outputs[1]}
    battle = records.battle_of(f"q-{text_hash(instruction)[:_DIGITS]}", *models, **own)
    answer = records.text_of(record.get("raw_completion"))
    published, expected = record.get("preference"), "1 to 2, or null"
    verdict = records.verdict_of("mean", published, _share, expected, answer, "preference: ")
    return records.Judged(battle, records.name_of(record, "annotator", "missing-judge"), (verdict,))


def _share(preference: Any) -> float | None:
    """Return A's share: preferences run from 1, a win, to 2; a draw is 1.5, or 0 of early files."""
    if preference is None or preference != preference:  # NaN alone differs from itself
        return None
    if isinstance(preference, bool) or not (preference == 0 or 1 <= preference <= 2):
        raise ValueError
    return 2.0 - preference if preference else 0.5


ALPACA_EVAL = Layout(
    "alpaca-eval",
    ("instruction output_1 output_2 generator_1 generator_2 annotator preference",),
    advice=VERDICTS,
    is_rated=True,
    corpus=records.of_records(_judged),
)
