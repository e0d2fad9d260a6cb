"""Writes verdicts as released Soft-Elo annotations: 23 columns, 0 where A wins."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from judgeline.verdict import CRITERIA, text_hash
from resources.exchange.games import Account, JudgedBattle, one_outcome

_COLUMNS = (
    "battle_id source_dataset judge row_index instruction_id_hash original_question_id_hash "
    "instruction_index model_a model_b human_pref human_label judge_pref judge_label scores_a "
    "scores_b len_a len_b language source metadata_model_a metadata_model_b parse_error agree"
)
COLUMNS = _COLUMNS.split()
_EMPTY = "instruction_index human_label judge_label source metadata_model_a metadata_model_b agree"
UNKNOWN = _EMPTY.split()
"""Columns that are left empty: what they hold is not in the tables."""

NO_QUARTER = "an outcome that is no multiple of a quarter"
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


def write_soft_elo(
    judged: Sequence[JudgedBattle], account: Account, judge: str, corpus: str
) -> str:
    """Return a CSV row per battle: preferences 0 where A wins, scores averaged over both orders.

    A battle of which an order failed is marked with ``parse_error`` and has no scores. Lengths
    are in characters; ``original_question_id_hash`` is the question's id in the tables, by
    which the same battle is found under another judge.
    """
    rows = _counted([_soft_row(one, account) for one in judged], account)
    sink = io.StringIO(newline="")
    sheet = csv.DictWriter(sink, COLUMNS, restval="", lineterminator="\n")
    sheet.writeheader()
    for number, row in enumerate(rows):
        sheet.writerow({**row, "source_dataset": corpus, "judge": judge, "row_index": number})
    return sink.getvalue()


def _counted(rows: Sequence[dict[str, Any] | None], account: Account) -> list[dict[str, Any]]:
    """Return the rows that there are; readers of the format join on question and models."""
    written = [row for row in rows if row is not None]
    keys = ("original_question_id_hash", "model_a", "model_b")
    n_different = len({tuple(row[key] for key in keys) for row in written})
    repeats = "rows that share question and models with an earlier one"
    account.changed[repeats] += len(written) - n_different
    return written


def _soft_row(judged: JudgedBattle, account: Account) -> dict[str, Any] | None:
    games = [judged.games["mean"]] if "mean" in judged.games else list(judged.pair)
    if any(game.outcome not in (*_QUARTERS, None) for game in games):
        account.left_out[NO_QUARTER] += 1
        return None
    battle = judged.battle
    outcome = one_outcome(judged, account)
    failed = not all(game.is_ok for game in games)
    if failed and len(games) == 1:
        outcome = games[0].outcome  # as published beside the failure
    sides = ["{}", "{}"]
    points = [game.scores for game in games if game.scores is not None]
    if not failed and len(points) == len(games):
        means = [sum(each) / len(each) for each in zip(*points, strict=True)]
        own = (zip(CRITERIA, means[at:], strict=False) for at in (0, len(CRITERIA)))
        sides = [json.dumps(dict(each), separators=(",", ":")) for each in own]
    elif not failed:
        account.changed["verdicts without rubric scores, written as {}"] += 1
    return {
        "battle_id": battle["battle_id"],
        "instruction_id_hash": _given(battle["instruction"], text_hash),
        "original_question_id_hash": battle["question_id"],
        "model_a": battle["model_a"],
        "model_b": battle["model_b"],
        "human_pref": _given(battle["human_outcome"], lambda share: 1.0 - share),
        "judge_pref": _given(outcome, lambda share: 1.0 - share),
        "scores_a": sides[0],
        "scores_b": sides[1],
        "len_a": _given(battle["completion_a"], len),
        "len_b": _given(battle["completion_b"], len),
        "language": battle["language"] or "",
        "parse_error": failed,
    }


def _given(value: Any, of: Callable[[Any], Any]) -> Any:
    return "" if value is None else of(value)
