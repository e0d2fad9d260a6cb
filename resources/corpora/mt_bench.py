"""Pairwise judgments of MT-bench, as FastChat's `llm_judge` writes them.

Game 1 shows `model_1` first, game 2 `model_2`; winners are named by model, not by position
(lm-sys/FastChat, `fastchat/llm_judge/common.py`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgeline.io import CorpusRead
from resources.corpora.records import RowError, id_of, name_of, text_of
from resources.corpora.verdict_files import (
    Judged,
    Told,
    battle_of,
    joined,
    labelled,
    read_verdict_files,
    unknown,
)

WINNERS: dict[str, float] = {"model_1": 1.0, "model_2": 0.0, "tie": 0.5}
"""Share of the win of `model_1`, which is A."""

ERROR = "error"
"""What stands in the place of a winner where the judge's answer could not be read."""

_EXPECTED = "model_1, model_2, tie or error"


def read_mt_bench(paths: Sequence[Path]) -> CorpusRead:
    """Return battles and a verdict per game; winner ``error`` is a failed verdict, never a tie.

    A turn is a question of its own and shares its cluster with the others; ``n_turns`` is the
    turn. A judge is known by its model; the name of its prompt, the second part of ``judge``, is
    not kept, since it varies with the question. The published winner is the first line of a
    verdict's answer, and the judge's words follow where the file has them. ``tstamp``, the time
    of judging, has no place here, and prompts are not taken apart into texts.
    """
    return read_verdict_files(paths, "mt-bench", _convert)


def _convert(record: Mapping[str, Any]) -> Judged:
    question, turn = id_of(record, "question_id"), _turn(record)
    models = [name_of(record, key, "missing-model") for key in ("model_1", "model_2")]
    battle = battle_of(joined(question, turn or "", *models), question, models, n_turns=turn)
    battle["question_id"] = turn_id(question, turn)
    told = (_told(record, "g1", "AB"), _told(record, "g2", "BA"))
    return Judged(battle, _judge(record), told)


def turn_id(question: str, turn: int | None) -> str:
    """Return the id of one turn of a question: of the first, that of the question."""
    return question if turn in (None, 1) else f"{question}:turn-{turn}"


def _turn(record: Mapping[str, Any]) -> int | None:
    turn = record.get("turn")
    if turn is None:
        return None
    if not isinstance(turn, int) or isinstance(turn, bool) or not 1 <= turn < 1_000_000:
        raise RowError("unreadable-turn", f"turn is {turn!r}, expected 1, 2 and so on")
    return turn


def _judge(record: Mapping[str, Any]) -> str:
    judge = record.get("judge")
    first = judge[0] if isinstance(judge, list) and judge else judge
    return name_of({"judge": first}, "judge", "missing-judge")


def _told(record: Mapping[str, Any], game: str, order: str) -> Told:
    winner = record.get(f"{game}_winner")
    answer = labelled(winner, text_of(record.get(f"{game}_judgment")))
    if winner == ERROR:
        return Told(order, None, answer)
    if not isinstance(winner, str) or winner not in WINNERS:
        return Told(order, None, answer, f"{game}_winner: {unknown(winner, _EXPECTED)}")
    return Told(order, WINNERS[winner], answer)
