"""Writes annotations of AlpacaEval: one preference per pair, with its texts."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from resources.exchange.games import (
    Account,
    Exported,
    JudgedBattle,
    note_repeats,
    note_scores,
    one_outcome,
)

NO_TEXT = "without texts, by which such rows are matched"


def write_alpaca_eval(judged: Sequence[JudgedBattle], account: Account, judge: str) -> Exported:
    """Return a JSON list of battles; a preference is 2 minus A's share of the win.

    Null where an order failed. The raw completion is written where one verdict stands for the
    battle; two answers have no place.
    """
    rows = []
    for one in judged:
        texts = _texts(one.battle)
        if None in texts.values():
            account.left_out[NO_TEXT] += 1
            continue
        outcome = one_outcome(one, account)
        note_scores(one.games.values(), account)
        rows.append(
            {
                **texts,
                "generator_1": one.battle["model_a"],
                "generator_2": one.battle["model_b"],
                "annotator": judge,
                "preference": None if outcome is None else 2 - outcome,
                "raw_completion": _completion(one, account),
            }
        )
    note_repeats(map(_content, rows), account)
    text = json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return Exported(text, account)


def _texts(battle: Mapping[str, Any]) -> dict[str, str | None]:
    return {
        "instruction": battle["instruction"],
        "output_1": battle["completion_a"],
        "output_2": battle["completion_b"],
    }


def _content(row: Mapping[str, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in row if name not in ("preference", "raw_completion"))


def _completion(judged: JudgedBattle, account: Account) -> Any:
    if "mean" not in judged.games:
        n_answers = sum(game.answer is not None for game in judged.games.values())
        account.changed["the judge's words, not written"] += n_answers
        return None
    answer = judged.games["mean"].answer
    return None if answer is None else _as_published(answer)


def _as_published(answer: str) -> Any:
    """Return the object that an answer is the compact JSON of, else the answer."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return answer
    again = isinstance(value, dict | list) and json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), allow_nan=True
    )
    return value if again == answer and "NaN" not in answer and "Infinity" not in answer else answer
