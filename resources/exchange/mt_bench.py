"""Writes pairwise judgments of MT-bench: the winner of both games, by model."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from resources.corpora.mt_bench import ERROR, WINNERS, turn_id
from resources.corpora.verdict_files import split_answer
from resources.exchange.games import (
    Account,
    Exported,
    Game,
    JudgedBattle,
    note_repeats,
    per_order,
)

_NAMES = {share: winner for winner, share in WINNERS.items()}
PROMPT = "judgeline"
"""Second part of ``judge``, where FastChat names the prompt."""


def write_mt_bench(judged: Sequence[JudgedBattle], account: Account, judge: str) -> Exported:
    """Return a JSON line per battle with a winner per order; a failed game is ``error``.

    ``tstamp`` is null: the tables do not say when a judge answered.
    """
    rows = []
    for one in judged:
        pair = per_order(one, account)
        if pair is not None:
            rows.append(_row(one.battle, pair, judge))
    keys = ((row["question_id"], row["turn"], row["model_1"], row["model_2"]) for row in rows)
    note_repeats(keys, account)
    lines = [json.dumps(row, allow_nan=False) + "\n" for row in rows]
    return Exported("".join(lines), account)


def _row(battle: Mapping[str, Any], pair: tuple[Game, Game], judge: str) -> dict[str, Any]:
    turn = None if battle["n_turns"] is None else int(battle["n_turns"])
    (first, second), words = zip(*map(_told, pair), strict=True)
    return {
        "question_id": _question(battle["question_id"], turn),
        "model_1": battle["model_a"],
        "model_2": battle["model_b"],
        "g1_winner": first,
        "g2_winner": second,
        "judge": [judge, PROMPT],
        "g1_judgment": words[0],
        "g2_judgment": words[1],
        "turn": turn,
        "tstamp": None,
    }


def _told(game: Game) -> tuple[str, str]:
    words = game.answer or ""
    if game.scores is None:
        _, words = split_answer(game.answer, (*WINNERS, ERROR, ""))
    if game.outcome is None or not game.is_ok:
        return ERROR, words
    return _NAMES[game.outcome], words


def _question(question: str, turn: int | None) -> str | int:
    """Return the question without its turn; a number where it is one, as in the benchmark."""
    suffix = turn_id("", turn)
    bare = question.removesuffix(suffix) if suffix else question
    number = bare.isascii() and bare.isdecimal() and str(int(bare[:18])) == bare
    return int(bare) if number else bare
