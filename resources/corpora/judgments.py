"""Records of other programs' judgments, as battles and verdicts of ours.

Arena-Hard: lmarena/arena-hard-auto, `gen_judgment.py` and `show_result.py`. MT-bench:
lm-sys/FastChat, `fastchat/llm_judge/common.py`. AlpacaEval: tatsu-lab/alpaca_eval,
`metrics/helpers.py`. Each function turns one record into a battle and its verdicts.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from judgeline.io import VERDICT_LEVELS, read_layout
from judgeline.verdict import text_hash
from resources.config.corpora import ArenaHardOptions
from resources.corpora.records import Record, RowError, brief, encodable, id_of, name_of, text_of
from resources.corpora.verdict_files import Judged, Told, battle_of, joined, labelled

LABELS: dict[str, float] = {
    label: 0.5 if level == 0 else float(level > 0) for label, level in VERDICT_LEVELS.items()
}
"""Arena-Hard: share of the win of the answer shown first, by label."""

WINNERS: dict[str, float] = {"model_1": 1.0, "model_2": 0.0, "tie": 0.5}
"""MT-bench: share of the win of `model_1`, which is A, by winner."""

ERROR = "error"
"""MT-bench: stands in the place of a winner where the judge's answer could not be read."""

_DIGITS = 16


def _verdict(
    order: str,
    published: Any,
    share_of: Callable[[Any], float | None],
    expected: str,
    answer: str | None,
    key: str = "",
) -> Told:
    """Return a verdict; `share_of` has A's share, None of a failure, or raises of no outcome."""
    try:
        return Told(order, share_of(published), answer)
    except (KeyError, TypeError, ValueError):
        return Told(order, None, answer, key + _unknown(published, expected))


def _unknown(published: Any, expected: str) -> str:
    return f"{brief(published)} is no outcome; expected {expected}"


def _names(record: Mapping[str, Any], *keys: str) -> list[str]:
    return [name_of(record, key, "missing-model") for key in keys]


def arena_hard(record: Mapping[str, Any], options: ArenaHardOptions) -> Judged:
    """Return a battle of a model (A) against the baseline (B), and a verdict per game.

    Game 1 shows the baseline first unless the options say otherwise. The published label is the
    first line of a verdict's answer, with its strength, which an outcome does not know; the judge's
    words follow. A game that is null or has a null label is a failed verdict.
    """
    question = id_of(record, "uid", "question_id")
    models = (*_names(record, "model"), _baseline(record, options))
    games = record.get("games")
    if not isinstance(games, list) or len(games) != 2:
        raise RowError("unreadable-games", "games is no list of two games, one per order")
    orders = ("BA", "AB") if options.baseline_first_in == 1 else ("AB", "BA")
    verdicts = tuple(_game(game, order) for game, order in zip(games, orders, strict=True))
    battle = battle_of(joined(question, *models), question, *models)
    return Judged(battle, name_of(record, "judge", "missing-judge"), verdicts)


def _baseline(record: Mapping[str, Any], options: ArenaHardOptions) -> str:
    if isinstance(options.baseline, str):
        return options.baseline
    category = record.get("category")
    if not isinstance(category, str) or category not in options.baseline:
        known = ", ".join(options.baseline)
        raise RowError(
            "unknown-baseline", f"category is {category!r}; baselines are known of {known}"
        )
    return options.baseline[category]


def _game(game: Any, order: str) -> Told:
    if game is None:
        return Told(order, None, None)
    if not isinstance(game, dict):
        return Told(order, None, text_of(game), _unknown(game, "a game with a score"))
    label, words = game.get("score"), game.get("judgment")
    if isinstance(words, dict) and isinstance(words.get("answer"), str):
        words = words["answer"]  # the second release wraps the text
    shares: dict[str | None, float | None] = {None: None}
    shares |= {name: share if order == "AB" else 1 - share for name, share in LABELS.items()}
    expected = "A>>B, A>B, A=B, B>A, B>>A or null"
    return _verdict(order, label, shares.__getitem__, expected, labelled(label, text_of(words)))


def mt_bench(record: Mapping[str, Any]) -> Judged:
    """Return a battle, and a verdict per game, the first of which shows `model_1` first.

    A turn is a question of its own and shares its cluster with the others. The name of the prompt,
    the second part of ``judge``, is not kept, since it varies with the question; ``tstamp``, the
    time of judging, has no place here, and prompts are not taken apart into texts.
    """
    question, turn = id_of(record, "question_id"), record.get("turn")
    is_number = isinstance(turn, int) and not isinstance(turn, bool)
    if turn is not None and not (is_number and 1 <= turn < 1_000_000):
        raise RowError("unreadable-turn", f"turn is {turn!r}, expected 1, 2 and so on")
    models = _names(record, "model_1", "model_2")
    battle = battle_of(joined(question, turn or "", *models), question, *models, n_turns=turn)
    battle["question_id"] = turn_id(question, turn)
    judge = record.get("judge")
    first = judge[0] if isinstance(judge, list) and judge else judge
    verdicts = (_bench_game(record, "g1", "AB"), _bench_game(record, "g2", "BA"))
    return Judged(battle, name_of({"judge": first}, "judge", "missing-judge"), verdicts)


def turn_id(question: str, turn: int | None) -> str:
    """Return the id of one turn of a question: of the first, that of the question."""
    return question if turn in (None, 1) else f"{question}:turn-{turn}"


def _bench_game(record: Mapping[str, Any], game: str, order: str) -> Told:
    key, shares = f"{game}_winner", {**WINNERS, ERROR: None}
    answer = labelled(record.get(key), text_of(record.get(f"{game}_judgment")))
    expected = "model_1, model_2, tie or error"
    return _verdict(order, record.get(key), shares.__getitem__, expected, answer, f"{key}: ")


def alpaca_eval(record: Mapping[str, Any]) -> Judged:
    """Return a battle of ``generator_1`` (A) against ``generator_2`` (B), and a verdict on it.

    The judge sees a pair once, in a random order that the file does not tell, so the verdict's
    order is ``mean``: one for the battle. The raw completion, with its log-probabilities, is the
    answer. A battle is known by both models and all three texts, a question by its instruction.
    """
    instruction, *texts = (_text(record, key) for key in ("instruction", "output_1", "output_2"))
    if instruction is None:
        raise RowError("missing-instruction", "instruction is null, expected the question")
    models = _names(record, "generator_1", "generator_2")
    content = "\x1f".join(map(repr, (instruction, *models, *texts)))
    battle = battle_of(
        text_hash(content)[: 2 * _DIGITS],
        f"q-{text_hash(instruction)[:_DIGITS]}",
        *models,
        instruction=instruction,
        completion_a=texts[0],
        completion_b=texts[1],
        n_turns=1,
    )
    answer = text_of(record.get("raw_completion"))
    verdict = _preference(record, _alpaca_share, "1 to 2, or null", answer)
    return Judged(battle, name_of(record, "annotator", "missing-judge"), (verdict,))


def _preference(
    record: Mapping[str, Any],
    share_of: Callable[[Any], float | None],
    expected: str,
    answer: str | None = None,
) -> Told:
    published = record.get("preference")
    return _verdict("mean", published, share_of, expected, answer, "preference: ")


def _text(record: Mapping[str, Any], key: str) -> str | None:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise RowError("unreadable-text", f"{key} is {type(value).__name__}, expected text")
    return None if value is None else encodable(value)


def _alpaca_share(preference: Any) -> float | None:
    """Return A's share: preferences run from 1, a win, to 2; a draw is 1.5, or 0 of early files."""
    if preference is None or preference != preference:  # NaN alone differs from itself
        return None
    if isinstance(preference, bool) or not (preference == 0 or 1 <= preference <= 2):
        raise ValueError
    return 2.0 - preference if preference else 0.5


def reference_records(path: Path) -> Iterator[Record]:
    """Return the rows of a table of preferences for models over one reference model."""
    rows = read_layout(path, "reference-battles").to_dict("records")
    return ((row, {str(k): v for k, v in record.items()}, "") for row, record in enumerate(rows))


def reference_battle(record: Mapping[str, Any]) -> Judged:
    """Return a battle of ``model`` (A) against ``reference_model`` (B), with one verdict on it."""
    question, models = id_of(record, "question_id"), _names(record, "model", "reference_model")
    battle = battle_of(joined(question, *models), question, *models, n_turns=1)
    verdict = _preference(record, _probability, "0 to 1, or null")
    return Judged(battle, name_of(record, "judge", "missing-judge"), (verdict,))


def _probability(published: Any) -> float | None:
    """Return a number, as text in a CSV file too; None where there is none."""
    if published is None:
        return None
    share = float(published)
    if isinstance(published, bool) or share < 0 or share > 1:
        raise ValueError
    return None if np.isnan(share) else share
