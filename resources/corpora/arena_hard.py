"""Judgments of Arena-Hard: every model against one baseline, two games each, five labels.

Which side is which follows the released program (lmarena/arena-hard-auto, `gen_judgment.py` and
`show_result.py`): game 1 shows the baseline as assistant A, game 2 the model. A file does not
name its baseline, so the reader has to be told.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from judgeline.io import VERDICT_LEVELS, CorpusRead
from resources.config.corpora import ArenaHardOptions
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

LABELS: dict[str, float] = {
    label: 0.5 if level == 0 else float(level > 0) for label, level in VERDICT_LEVELS.items()
}
"""Share of the win of the answer shown first, by label."""

_EXPECTED = "A>>B, A>B, A=B, B>A, B>>A or null"


def read_arena_hard(paths: Sequence[Path], options: ArenaHardOptions | None) -> CorpusRead:
    """Return battles of models (A) against the baseline (B), and a verdict per game.

    The published label is the first line of a verdict's answer, with its strength; the judge's
    words follow where the file has them. An outcome knows no strength. A game that is null or has a
    null label is a failed verdict. Files have no texts that could be told apart.
    """
    if options is None:
        raise ValueError(
            "an Arena-Hard file does not name the model it compares with; name it: 'baseline' "
            "under 'arena_hard' in corpora.yaml, or --baseline"
        )
    return read_verdict_files(paths, "arena-hard", partial(_convert, options=options))


def _convert(record: Mapping[str, Any], options: ArenaHardOptions) -> Judged:
    question = id_of(record, "uid", "question_id")
    model = name_of(record, "model", "missing-model")
    baseline = _baseline(record, options)
    games = record.get("games")
    if not isinstance(games, list) or len(games) != 2:
        raise RowError("unreadable-games", "games is no list of two games, one per order")
    orders = ("BA", "AB") if options.baseline_first_in == 1 else ("AB", "BA")
    battle = battle_of(joined(question, model, baseline), question, (model, baseline))
    told = tuple(_told(game, order) for game, order in zip(games, orders, strict=True))
    return Judged(battle, name_of(record, "judge", "missing-judge"), told)


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


def _told(game: Any, order: str) -> Told:
    if game is None:
        return Told(order, None, None)
    if not isinstance(game, dict):
        return Told(order, None, text_of(game), unknown(game, "a game with a score"))
    label, words = game.get("score"), game.get("judgment")
    if isinstance(words, dict) and isinstance(words.get("answer"), str):
        words = words["answer"]  # the second release wraps the text
    answer = labelled(label, text_of(words))
    if label is None:
        return Told(order, None, answer)
    if not isinstance(label, str) or label not in LABELS:
        return Told(order, None, answer, unknown(label, _EXPECTED))
    share = LABELS[label]
    return Told(order, share if order == "AB" else 1 - share, answer)
