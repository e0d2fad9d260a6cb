"""Writes Arena-Hard judgments: models against one baseline, a label per game."""

import json
from collections.abc import Sequence

from resources.config.corpora import ArenaHardOptions
from resources.corpora.arena_hard import LABELS
from resources.corpora.verdict_files import split_answer
from resources.exchange.games import (
    Account,
    Exported,
    Game,
    JudgedBattle,
    note_repeats,
    per_order,
)

_PLAIN = {1.0: "A>B", 0.5: "A=B", 0.0: "B>A"}
"""Label of the share of the answer shown first; a strength is never made up."""


def write_arena_hard(
    judged: Sequence[JudgedBattle], account: Account, judge: str, options: ArenaHardOptions | None
) -> Exported:
    """Return a JSON line per battle against the baseline, its games in the program's order.

    A label that came from such a file is written as it was, any other without strength.
    """
    if options is None or not isinstance(options.baseline, str):
        raise ValueError(
            "an Arena-Hard file is about one baseline; name the model that all others met: "
            "--baseline NAME"
        )
    rows = []
    for one in judged:
        row = _row(one, account, judge, options.baseline, options.baseline_first_in)
        if row is not None:
            rows.append(row)
    note_repeats(((row["uid"], row["model"]) for row in rows), account)
    lines = [json.dumps(row, allow_nan=False) + "\n" for row in rows]
    return Exported("".join(lines), account)


def _row(
    judged: JudgedBattle, account: Account, judge: str, baseline: str, first_in: int
) -> dict[str, object] | None:
    battle = judged.battle
    if baseline not in (battle["model_a"], battle["model_b"]):
        account.left_out[f"neither model is the baseline {baseline!r}"] += 1
        return None
    pair = per_order(judged, account)
    if pair is None:
        return None
    baseline_is_a = battle["model_a"] == baseline
    a_first, b_first = _game(pair[0], True, account), _game(pair[1], False, account)
    baseline_leads = (a_first, b_first) if baseline_is_a else (b_first, a_first)
    return {
        "uid": battle["question_id"],
        "model": battle["model_b" if baseline_is_a else "model_a"],
        "judge": judge,
        "games": list(baseline_leads if first_in == 1 else baseline_leads[::-1]),
    }


def _game(game: Game, a_is_first: bool, account: Account) -> dict[str, object]:
    label, words = ("", game.answer or "")
    if game.scores is None:
        label, words = split_answer(game.answer, (*LABELS, ""))
    if game.outcome is None or not game.is_ok:
        return {"score": None, "judgment": words}
    share = game.outcome if a_is_first else 1 - game.outcome
    if LABELS.get(label) != share:
        label = _PLAIN[share]
        account.changed["labels without a strength, which the tables do not have"] += 1
    return {"score": label, "judgment": words}


def arena_hard_options(style: str, named: Sequence[str], first_in: int) -> ArenaHardOptions | None:
    """Return the options that an Arena-Hard file needs, None where no baseline is named.

    `named` is one name, or ``CATEGORY=NAME`` for each category.
    """
    if not named:
        return None
    if style != "arena-hard":
        raise ValueError(f"--baseline belongs to the format arena-hard, not {style}; remove it")
    return ArenaHardOptions.model_validate(
        {"baseline": _baseline(named), "baseline_first_in": first_in}
    )


def _baseline(named: Sequence[str]) -> str | dict[str, str]:
    if len(named) == 1 and "=" not in named[0]:
        return named[0]
    pairs = {name: name.partition("=")[::2] for name in named}
    for name, (category, model) in pairs.items():
        if not category or not model:
            raise ValueError(
                f"--baseline {name!r} is one of several and names no category; write "
                "CATEGORY=NAME for each (a name that holds '=' can stand in config/corpora.yaml)"
            )
    return dict(pairs.values())
