"""Verdict files of other programs: outcomes that a judge gave, as battles and verdicts of ours.

Arena-Hard: lmarena/arena-hard-auto, `gen_judgment.py` and `show_result.py`. MT-bench:
lm-sys/FastChat, `fastchat/llm_judge/common.py`. AlpacaEval: tatsu-lab/alpaca_eval,
`metrics/helpers.py`. Each function of a layout turns one record into a battle and its verdicts.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judgeline.io import VERDICT_LEVELS, CorpusRead, judge_slugs, layout_of, read_layout, typed
from judgeline.judges.forms.form import readable
from judgeline.suggest import quoted
from judgeline.tables.corpus import BATTLE_DTYPES, QUARANTINE_DTYPES, VERDICT_DTYPES
from judgeline.verdict import identity_hash, text_hash
from resources.config.corpora import ArenaHardOptions

Record = Mapping[str, Any] | str
"""A record of a file, or what is wrong with it."""


class RowError(ValueError):
    """A record without a battle; `reason` is the slug under which it is quarantined."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def read_records(path: Path) -> list[Record]:
    """Return the records of JSON lines or of one JSON list."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); download or write it again") from error
    if not text.strip():
        raise ValueError(f"{path} is empty; download or write it again")
    if not text.lstrip().startswith("["):
        return [_record(line, is_line=True) for line in text.split("\n") if line.strip()]
    try:
        return [_record(one) for one in json.loads(text)]
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} begins like a JSON list and is none ({error}); download or write it again"
        ) from error


def _record(value: Any, *, is_line: bool = False) -> Record:
    if is_line:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            return f"not JSON: {error}"
    return value if isinstance(value, dict) else f"{type(value).__name__}, expected an object"


def name_of(record: Mapping[str, Any], key: str, reason: str) -> str:
    """Return the name under a key, without blanks around it."""
    value = record.get(key)
    if isinstance(value, str) and value.strip():
        return readable(value.strip())
    raise RowError(reason, f"{key} is {quoted(value)}, expected a name")


def id_of(record: Mapping[str, Any], *keys: str) -> str:
    """Return the first of some keys that holds a number or text that names a question."""
    for value in map(record.get, keys):
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str) and value.strip():
            return readable(value.strip())
    raise RowError("missing-question", f"{keys[0]} is {quoted(record.get(keys[0]))}, expected one")


def text_of(value: Any) -> str | None:
    """Return a JSON value as text: strings unchanged, null as None, others as compact JSON."""
    if value is None or isinstance(value, str):
        return value and readable(value)
    return readable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


FAILED = "parse_error"
"""Class of a verdict for which its file has no outcome, whatever the reason was."""


class Told(NamedTuple):
    """A published verdict: A's share of the win (None: failed), the words, and what is wrong."""

    order: str
    outcome: float | None
    answer: str | None
    trouble: str = ""


class Judged(NamedTuple):
    """A record: one battle, in the columns of battles, and all that one judge said of it."""

    battle: Mapping[str, Any]
    judge: str
    told: tuple[Told, ...]


def read_verdict_files(
    paths: Sequence[Path],
    reader: str,
    convert: Callable[[Mapping[str, Any]], Judged],
    records_of: Callable[[Path], Sequence[Record]] = read_records,
) -> CorpusRead:
    """Return the battles and verdicts of files of one layout.

    A battle is never lost to a bad verdict: an outcome that fits no rule gives a failed verdict,
    and its record is quarantined with the reason as well. One that its publisher marks as failed is
    a failed verdict and nothing else. Of records of the same battle and judge the first counts.
    """
    judged: dict[tuple[str, str], Judged] = {}
    quarantine: list[dict[str, Any]] = []
    for path in paths:
        records = records_of(path)
        keys = (key for record in records if not isinstance(record, str) for key in record)
        layout_of(path, reader, list(dict.fromkeys(keys)))
        for row, record in enumerate(records):
            try:
                if isinstance(record, str):
                    raise RowError("unreadable-record", record)
                aside = _add(judged, convert(record))
            except RowError as error:
                aside = {"reason": error.reason, "detail": str(error)}
            if aside:
                quarantine.append({"row": row, "file": path.name, **aside})
    battles: dict[str, Mapping[str, Any]] = {}
    for (name, _), one in judged.items():
        battles.setdefault(name, one.battle)
    verdicts = _table([_row(*key, told) for key, one in judged.items() for told in one.told])
    return CorpusRead(
        _table(battles.values(), BATTLE_DTYPES),
        _table(quarantine, QUARANTINE_DTYPES),
        verdicts.assign(judge=judge_slugs(verdicts["judge"])).astype({"judge": "str"}),
    )


def _add(judged: dict[tuple[str, str], Judged], one: Judged) -> dict[str, str]:
    """Add a record to those that count; return why it is quarantined all the same, if so."""
    battle = one.battle["battle_id"]
    if one.battle["model_a"] == one.battle["model_b"]:
        raise RowError("self-battle", f"{one.battle['model_a']!r} is compared with itself")
    if (battle, one.judge) in judged:
        raise RowError("duplicate-battle", f"{battle!r} came before from judge {one.judge!r}")
    judged[battle, one.judge] = one
    troubles = "; ".join(told.trouble for told in one.told if told.trouble)
    aside = {"battle_id": battle, "reason": "unknown-outcome", "detail": troubles}
    return aside if troubles else {}


def _row(battle: str, judge: str, told: Told) -> dict[str, Any]:
    call = {"judge": judge, "order": told.order}
    said = {"outcome": repr(told.outcome), "answer": told.answer or ""}
    return {
        **call,
        "battle_id": battle,
        "replicate": 0,
        "status": FAILED if told.outcome is None else "ok",
        "recorded_outcome": told.outcome,
        "answer": told.answer,
        "identity": identity_hash({"battle": battle, **call, **said}),
    }


def _table(rows: Iterable[Any], dtypes: Mapping[str, str] = VERDICT_DTYPES) -> pd.DataFrame:
    return typed(pd.DataFrame(list(rows), dtype=object), dtypes)


def battle_of(
    battle_id: str, question: str, model_a: str, model_b: str, **others: Any
) -> dict[str, Any]:
    """Return a battle of two models on a question, which is the unit of dependence too."""
    ids = {"battle_id": battle_id, "question_id": question, "cluster_id": question}
    return {**ids, "model_a": model_a, "model_b": model_b, **others}


def labelled(label: Any, words: str | None) -> str | None:
    """Return an answer whose first line is the published label, and the judge's words after it."""
    first = text_of(label)
    return first if words is None else f"{first or ''}\n{words}"


def joined(*parts: object) -> str:
    """Return an id made of parts, such that other parts make another id."""
    return ":".join(str(part).replace("%", "%25").replace(":", "%3A") for part in parts)


# Layouts

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
        trouble = f"{key}{quoted(published)} is no outcome; expected {expected}"
        return Told(order, None, answer, trouble)


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
    if isinstance(category, str) and category in options.baseline:
        return options.baseline[category]
    known = ", ".join(options.baseline)
    detail = f"category is {category!r}; baselines are known of {known}"
    raise RowError("unknown-baseline", detail)


def _game(game: Any, order: str) -> Told:
    if game is not None and not isinstance(game, dict):
        trouble = f"{quoted(game)} is no outcome; expected a game with a score"
        return Told(order, None, text_of(game), trouble)
    label, words = (game or {}).get("score"), (game or {}).get("judgment")
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
    texts = {key: record.get(key) for key in ("instruction", "output_1", "output_2")}
    for key, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise RowError("unreadable-text", f"{key} is {type(text).__name__}, expected text")
    instruction, *outputs = map(text_of, texts.values())
    if instruction is None:
        raise RowError("missing-instruction", "instruction is null, expected the question")
    models = _names(record, "generator_1", "generator_2")
    content = "\x1f".join(map(repr, (instruction, *models, *outputs)))
    battle = battle_of(
        text_hash(content)[: 2 * _DIGITS],
        f"q-{text_hash(instruction)[:_DIGITS]}",
        *models,
        instruction=instruction,
        completion_a=outputs[0],
        completion_b=outputs[1],
        n_turns=1,
    )
    answer = text_of(record.get("raw_completion"))
    published, expected = record.get("preference"), "1 to 2, or null"
    verdict = _verdict("mean", published, _alpaca_share, expected, answer, "preference: ")
    return Judged(battle, name_of(record, "annotator", "missing-judge"), (verdict,))


def _alpaca_share(preference: Any) -> float | None:
    """Return A's share: preferences run from 1, a win, to 2; a draw is 1.5, or 0 of early files."""
    if preference is None or preference != preference:  # NaN alone differs from itself
        return None
    if isinstance(preference, bool) or not (preference == 0 or 1 <= preference <= 2):
        raise ValueError
    return 2.0 - preference if preference else 0.5


def reference_records(path: Path) -> list[Record]:
    """Return the rows of a table of preferences for models over one reference model."""
    rows = read_layout(path, "reference-battles").to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def reference_battle(record: Mapping[str, Any]) -> Judged:
    """Return a battle of ``model`` (A) against ``reference_model`` (B), with one verdict on it."""
    question, models = id_of(record, "question_id"), _names(record, "model", "reference_model")
    battle = battle_of(joined(question, *models), question, *models, n_turns=1)
    published, expected = record.get("preference"), "0 to 1, or null"
    verdict = _verdict("mean", published, _probability, expected, None, "preference: ")
    return Judged(battle, name_of(record, "judge", "missing-judge"), (verdict,))


def _probability(published: Any) -> float | None:
    """Return a number, as text in a CSV file too; None where there is none."""
    if published is None:
        return None
    share = float(published)
    if isinstance(published, bool) or share < 0 or share > 1:
        raise ValueError
    return None if np.isnan(share) else share


VERDICTS: dict[str, tuple[Any, ...]] = {
    "alpaca-eval": (alpaca_eval,),
    "mt-bench": (mt_bench,),
    "reference-battles": (reference_battle, reference_records),
}
"""Readers of verdicts by name: what converts a record, and what reads the records if not JSON."""
