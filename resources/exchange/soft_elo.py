"""Writes the layout of the released Soft-Elo annotations: 23 columns, 0 where A wins."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from judgeline.verdict import CRITERIA, text_hash
from resources.exchange.games import (
    Account,
    Exported,
    Game,
    JudgedBattle,
    note_repeats,
    one_outcome,
)

COLUMNS: tuple[str, ...] = (
    "battle_id",
    "source_dataset",
    "judge",
    "row_index",
    "instruction_id_hash",
    "original_question_id_hash",
    "instruction_index",
    "model_a",
    "model_b",
    "human_pref",
    "human_label",
    "judge_pref",
    "judge_label",
    "scores_a",
    "scores_b",
    "len_a",
    "len_b",
    "language",
    "source",
    "metadata_model_a",
    "metadata_model_b",
    "parse_error",
    "agree",
)
UNKNOWN: tuple[str, ...] = (
    "instruction_index",
    "human_label",
    "judge_label",
    "source",
    "metadata_model_a",
    "metadata_model_b",
    "agree",
)
"""Columns that are left empty: what they hold is not in the tables."""

NO_QUARTER = "an outcome that is no multiple of a quarter"
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def write_soft_elo(
    judged: Sequence[JudgedBattle], account: Account, judge: str, corpus: str
) -> Exported:
    """Return a CSV row per battle: preferences 0 where A wins, scores averaged over both orders.

    A battle of which an order failed is marked with ``parse_error`` and has no scores. Lengths
    are in characters; ``original_question_id_hash`` is the question's id in the tables, by
    which the same battle is found under another judge.
    """
    sink = io.StringIO(newline="")
    sheet = csv.DictWriter(sink, COLUMNS, restval="", lineterminator="\n")
    sheet.writeheader()
    keys = []
    for one in judged:
        row = _row(one, account)
        if row is None:
            continue
        row |= {"source_dataset": corpus, "judge": judge, "row_index": len(keys)}
        sheet.writerow(row)
        keys.append((row["original_question_id_hash"], row["model_a"], row["model_b"]))
    note_repeats(keys, account)
    return Exported(sink.getvalue(), account)


def _row(judged: JudgedBattle, account: Account) -> dict[str, Any] | None:
    games = [judged.games["mean"]] if "mean" in judged.games else list(judged.pair)
    if any(game.outcome not in (*_QUARTERS, None) for game in games):
        account.left_out[NO_QUARTER] += 1
        return None
    battle = judged.battle
    outcome = one_outcome(judged, account)
    failed = not all(game.is_ok for game in games)
    if failed and len(games) == 1:
        outcome = games[0].outcome  # as published beside the failure
    scores = None if failed else _scores(games)
    if scores is None and not failed:
        account.changed["verdicts without rubric scores, written as {}"] += 1
    return {
        "battle_id": battle["battle_id"],
        "instruction_id_hash": _hash(battle["instruction"]),
        "original_question_id_hash": battle["question_id"],
        "model_a": battle["model_a"],
        "model_b": battle["model_b"],
        "human_pref": _preference(battle["human_outcome"]),
        "judge_pref": _preference(outcome),
        "scores_a": _json(scores, 0),
        "scores_b": _json(scores, 1),
        **_lengths(battle),
        "language": battle["language"] or "",
        "parse_error": failed,
    }


def _scores(games: Sequence[Game]) -> tuple[float, ...] | None:
    """Return A's six scores and B's six, averaged over the orders; None where any is missing."""
    told = [game.scores for game in games if game.scores is not None]
    if len(told) < len(games):
        return None
    return tuple(sum(points) / len(points) for points in zip(*told, strict=True))


def _json(scores: tuple[float, ...] | None, side: int) -> str:
    if scores is None:
        return "{}"
    own = scores[side * len(CRITERIA) : (side + 1) * len(CRITERIA)]
    return json.dumps(dict(zip(CRITERIA, own, strict=True)), separators=(",", ":"))


def _preference(outcome: float | None) -> float | str:
    return "" if outcome is None else 1.0 - outcome


def _lengths(battle: Mapping[str, Any]) -> dict[str, int | str]:
    texts = {side: battle[f"completion_{side}"] for side in "ab"}
    return {f"len_{side}": "" if text is None else len(text) for side, text in texts.items()}


def _hash(text: str | None) -> str:
    return "" if text is None else text_hash(text)
