"""MT-bench's judgments of pairs: lm-sys/FastChat, `fastchat/llm_judge/common.py`."""

from collections.abc import Mapping
from typing import Any

from judgeline.io import records
from judgeline.io.layout import VERDICTS, Layout

_WINNERS: dict[str, float | None] = {"model_1": 1.0, "model_2": 0.0, "tie": 0.5, "error": None}
"""Share of the win of `model_1`, which is A; None of an answer that could not be read."""


def _judged(record: Mapping[str, Any]) -> records.Judged:
    """Return a battle, and a verdict per game, the first of which shows `model_1` first.

    A turn is a question of its own and shares its cluster with the others. The name of the prompt,
    the second part of ``judge``, is not kept, since it varies with the question; ``tstamp``, the
    time of judging, has no place here, and prompts are not taken apart into texts.
    """
    question, turn = records.id_of(record, "question_id"), record.get("turn")
    is_number = isinstance(turn, int) and not isinstance(turn, bool)
    if turn is not None and not (is_number and 1 <= turn < 1_000_000):
        raise records.RowError("unreadable-turn", f"turn is {turn!r}, expected 1, 2 and so on")
    models = records.models_of(record, "model_1", "model_2")
    ids = {
        "battle_id": records.joined(question, turn or "", *models),
        "question_id": question if turn in (None, 1) else f"{question}:turn-{turn}",
    }
    battle = records.battle_of(question, *models, n_turns=turn, **ids)
    judge = record.get("judge")
    first = judge[0] if isinstance(judge, list) and judge else judge
    verdicts = (_bench_game(record, "g1", "AB"), _bench_game(record, "g2", "BA"))
    judge = records.name_of({"judge": first}, "judge", "missing-judge")
    return records.Judged(battle, judge, verdicts)


def _bench_game(record: Mapping[str, Any], game: str, order: str) -> records.PublishedVerdict:
    key = f"{game}_winner"
    answer = records.labelled(record.get(key), records.text_of(record.get(f"{game}_judgment")))
    told = _WINNERS.__getitem__, "model_1, model_2, tie or error", answer, f"{key}: "
    return records.verdict_of(order, record.get(key), *told)


MT_BENCH = Layout(
    "mt-bench",
    ("question_id model_1 model_2 g1_winner g2_winner judge",),
    advice=VERDICTS,
    is_rated=True,
    corpus=records.of_records(_judged),
)
