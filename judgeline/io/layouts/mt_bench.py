"""MT-bench's judgments of pairs: lm-sys/FastChat, `fastchat/llm_judge/common.py`."""

from collections.abc import Mapping
from typing import Any

from judgeline.io.layout import VERDICTS, Layout
from judgeline.io.records import (
    Judged,
    RowError,
    Told,
    battle_of,
    id_of,
    joined,
    labelled,
    models_of,
    name_of,
    of_records,
    text_of,
    verdict_of,
)

_WINNERS: dict[str, float | None] = {"model_1": 1.0, "model_2": 0.0, "tie": 0.5, "error": None}
"""Share of the win of `model_1`, which is A; None of an answer that could not be read."""


def _judged(record: Mapping[str, Any]) -> Judged:
    """Return a battle, and a verdict per game, the first of which shows `model_1` first.

    A turn is a question of its own and shares its cluster with the others. The name of the prompt,
    the second part of ``judge``, is not kept, since it varies with the question; ``tstamp``, the
    time of judging, has no place here, and prompts are not taken apart into texts.
    """
    question, turn = id_of(record, "question_id"), record.get("turn")
    is_number = isinstance(turn, int) and not isinstance(turn, bool)
    if turn is not None and not (is_number and 1 <= turn < 1_000_000):
        raise RowError("unreadable-turn", f"turn is {turn!r}, expected 1, 2 and so on")
    models = models_of(record, "model_1", "model_2")
    battle = battle_of(joined(question, turn or "", *models), question, *models, n_turns=turn)
    battle["question_id"] = _turn_id(question, turn)
    judge = record.get("judge")
    first = judge[0] if isinstance(judge, list) and judge else judge
    verdicts = (_bench_game(record, "g1", "AB"), _bench_game(record, "g2", "BA"))
    return Judged(battle, name_of({"judge": first}, "judge", "missing-judge"), verdicts)


def _turn_id(question: str, turn: int | None) -> str:
    """Return the id of one turn of a question: of the first, that of the question."""
    return question if turn in (None, 1) else f"{question}:turn-{turn}"


def _bench_game(record: Mapping[str, Any], game: str, order: str) -> Told:
    key = f"{game}_winner"
    answer = labelled(record.get(key), text_of(record.get(f"{game}_judgment")))
    expected = "model_1, model_2, tie or error"
    return verdict_of(order, record.get(key), _WINNERS.__getitem__, expected, answer, f"{key}: ")


MT_BENCH = Layout(
    "mt-bench",
    ("question_id model_1 model_2 g1_winner g2_winner judge",),
    half=VERDICTS,
    corpus=of_records(_judged),
)
