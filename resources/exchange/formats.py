"""Writes verdicts in the formats of other programs, which `resources.corpora` reads."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from judgeline.verdict import CRITERIA, text_hash
from resources.config.corpora import ArenaHardOptions
from resources.corpora.judgments import ERROR, LABELS, WINNERS, split_answer, turn_id
from resources.exchange.games import (
    Account,
    Game,
    JudgedBattle,
    note_scores,
    one_outcome,
    per_order,
)

# Arena-Hard: models against one baseline, a label per game

_PLAIN_LABEL = {1.0: "A>B", 0.5: "A=B", 0.0: "B>A"}
"""Label of the share of the answer shown first; a strength is never made up."""


def write_arena_hard(
    judged: Sequence[JudgedBattle], account: Account, judge: str, options: ArenaHardOptions | None
) -> str:
    """Return a JSON line per battle against the baseline; labels are as published, or plain."""
    if options is None or not isinstance(options.baseline, str):
        raise ValueError(
            "an Arena-Hard file is about one baseline; name the model that all others met: "
            "--baseline NAME"
        )
    order = (options.baseline, options.baseline_first_in)
    rows = [_hard_row(one, account, judge, *order) for one in judged]
    return _json_lines(_counted(rows, ("uid", "model"), account))


def _counted(
    rows: Iterable[dict[str, Any] | None], keys: Sequence[str], account: Account
) -> list[dict[str, Any]]:
    """Return the rows that there are; readers of the format join on the keys."""
    written = [row for row in rows if row is not None]
    n_different = len({tuple(row[key] for key in keys) for row in written})
    repeats = "rows that share question and models with an earlier one"
    account.changed[repeats] += len(written) - n_different
    return written


def _json_lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def _hard_row(
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
    label, words = _label_and_words(game, LABELS)
    if game.outcome is None or not game.is_ok:
        return {"score": None, "judgment": words}
    share = game.outcome if a_is_first else 1 - game.outcome
    if LABELS.get(label) != share:
        label = _PLAIN_LABEL[share]
        account.changed["labels without a strength, which the tables do not have"] += 1
    return {"score": label, "judgment": words}


def _label_and_words(game: Game, labels: Iterable[str]) -> tuple[str, str]:
    """Return the label that an answer without rubric scores begins with, and its other words."""
    if game.scores is not None:
        return "", game.answer or ""
    return split_answer(game.answer, (*labels, ""))


def arena_hard_options(style: str, named: Sequence[str], first_in: int) -> ArenaHardOptions | None:
    """Return Arena-Hard options from one name, or CATEGORY=NAME each; None without a name."""
    if not named:
        return None
    if style != "arena-hard":
        raise ValueError(f"--baseline belongs to the format arena-hard, not {style}; remove it")
    baseline: Any = named[0]
    if len(named) > 1 or "=" in baseline:
        pairs = {name: name.partition("=")[::2] for name in named}
        for name, pair in pairs.items():
            if not all(pair):
                raise ValueError(
                    f"--baseline {name!r} is one of several and names no category; write "
                    "CATEGORY=NAME for each (a name that holds '=' can stand in corpora.yaml)"
                )
        baseline = dict(pairs.values())
    return ArenaHardOptions.model_validate({"baseline": baseline, "baseline_first_in": first_in})


# MT-bench: the winner of both games, by model

_WINNER_OF = {share: winner for winner, share in WINNERS.items()}
PROMPT = "judgeline"
"""Second part of ``judge``, where FastChat names the prompt."""


def write_mt_bench(judged: Sequence[JudgedBattle], account: Account, judge: str) -> str:
    """Return a JSON line per battle with a winner per order, ``error`` for a failed game."""
    rows = [_bench_row(one, account, judge) for one in judged]
    return _json_lines(_counted(rows, ("question_id", "turn", "model_1", "model_2"), account))


def _bench_row(judged: JudgedBattle, account: Account, judge: str) -> dict[str, Any] | None:
    battle, pair = judged.battle, per_order(judged, account)
    if pair is None:
        return None
    turn = None if battle["n_turns"] is None else int(battle["n_turns"])
    outcomes = [game.outcome if game.is_ok else None for game in pair]
    winners = [ERROR if outcome is None else _WINNER_OF[outcome] for outcome in outcomes]
    words = [_label_and_words(game, (*WINNERS, ERROR))[1] for game in pair]
    return {
        "question_id": _question(battle["question_id"], turn),
        "model_1": battle["model_a"],
        "model_2": battle["model_b"],
        "g1_winner": winners[0],
        "g2_winner": winners[1],
        "judge": [judge, PROMPT],
        "g1_judgment": words[0],
        "g2_judgment": words[1],
        "turn": turn,
        "tstamp": None,
    }


def _question(question: str, turn: int | None) -> str | int:
    """Return the question without its turn; a number where it is one, as in the benchmark."""
    suffix = turn_id("", turn)
    bare = question.removesuffix(suffix) if suffix else question
    number = bare.isascii() and bare.isdecimal() and str(int(bare[:18])) == bare
    return int(bare) if number else bare


# AlpacaEval: one preference per pair, with its texts

NO_TEXT = "without texts, by which such rows are matched"


def write_alpaca_eval(judged: Sequence[JudgedBattle], account: Account, judge: str) -> str:
    """Return a JSON list of battles; a preference is 2 minus A's share of the win.

    Null where an order failed. The raw completion is written where one verdict stands for the
    battle; two answers have no place.
    """
    keys = ("instruction", "output_1", "output_2", "generator_1", "generator_2", "annotator")
    rows = _counted((_eval_row(one, account, judge) for one in judged), keys, account)
    return json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _eval_row(judged: JudgedBattle, account: Account, judge: str) -> dict[str, Any] | None:
    battle = judged.battle
    texts = [battle[name] for name in ("instruction", "completion_a", "completion_b")]
    if None in texts:
        account.left_out[NO_TEXT] += 1
        return None
    outcome = one_outcome(judged, account)
    note_scores(judged.games.values(), account)
    mean, words = judged.games.get("mean"), [game.answer for game in judged.games.values()]
    if mean is None:
        account.changed["the judge's words, not written"] += len(words) - words.count(None)
    return {
        "instruction": texts[0],
        "output_1": texts[1],
        "output_2": texts[2],
        "generator_1": battle["model_a"],
        "generator_2": battle["model_b"],
        "annotator": judge,
        "preference": None if outcome is None else 2 - outcome,
        "raw_completion": mean and _as_published(mean.answer),
    }


def _as_published(answer: str | None) -> Any:
    """Return the object that an answer is the compact JSON of, else the answer."""
    try:
        value = json.loads(answer or "")
    except (ValueError, RecursionError):
        return answer
    again = isinstance(value, dict | list) and json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), allow_nan=True
    )
    return value if again == answer and "NaN" not in answer and "Infinity" not in answer else answer


# Released Soft-Elo annotations: 23 columns, 0 where A wins

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
    keys = ("original_question_id_hash", "model_a", "model_b")
    rows = _counted((_soft_row(one, account) for one in judged), keys, account)
    sink = io.StringIO(newline="")
    sheet = csv.DictWriter(sink, COLUMNS, restval="", lineterminator="\n")
    sheet.writeheader()
    for number, row in enumerate(rows):
        sheet.writerow({**row, "source_dataset": corpus, "judge": judge, "row_index": number})
    return sink.getvalue()


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
