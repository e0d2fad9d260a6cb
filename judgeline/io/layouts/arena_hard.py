"""Arena-Hard's judgments: lmarena/arena-hard-auto, `gen_judgment.py` and `show_result.py`."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from judgeline.io import records
from judgeline.io.layout import VERDICTS, Layout, Stated
from judgeline.io.outcome_codes import VERDICT_LEVELS
from judgeline.io.schema import CorpusRead
from judgeline.suggest import quoted

_LABELS: dict[str, float] = {
    label: 0.5 if level == 0 else float(level > 0) for label, level in VERDICT_LEVELS.items()
}
"""Share of the win of the answer shown first, by label."""


def _read(layout: Layout, paths: Sequence[Path], stated: Stated) -> CorpusRead:
    if stated.baseline is None:
        raise ValueError(
            "an Arena-Hard file does not name the model it compares with; name it: 'baseline' "
            "under 'arena_hard' in corpora.yaml, or --baseline"
        )
    first_in = stated.baseline_first_in
    convert = partial(_judged, baseline=stated.baseline, first_in=first_in)
    return records.read_verdict_files(layout, paths, convert)


def _judged(
    record: Mapping[str, Any], baseline: str | Mapping[str, str], first_in: int
) -> records.Judged:
    """Return a battle of a model (A) against the baseline (B), and a verdict per game.

    The game `first_in` shows the baseline first. The published label is the
    first line of a verdict's answer, with its strength, which an outcome does not know; the judge's
    words follow. A game that is null or has a null label is a failed verdict.
    """
    question = records.id_of(record, "uid", "question_id")
    models = (*records.models_of(record, "model"), _baseline(record, baseline))
    games = record.get("games")
    if not isinstance(games, list) or len(games) != 2:
        raise records.RowError("unreadable-games", "games is no list of two games, one per order")
    orders = ("BA", "AB") if first_in == 1 else ("AB", "BA")
    verdicts = tuple(_game(game, order) for game, order in zip(games, orders, strict=True))
    battle = records.battle_of(question, *models)
    return records.Judged(battle, records.name_of(record, "judge", "missing-judge"), verdicts)


def _baseline(record: Mapping[str, Any], named: str | Mapping[str, str]) -> str:
    if isinstance(named, str):
        return named
    category = record.get("category")
    if isinstance(category, str) and category in named:
        return named[category]
    known = ", ".join(named)
    detail = f"category is {category!r}; baselines are known of {known}"
    raise records.RowError("unknown-baseline", detail)


def _game(game: Any, order: str) -> records.PublishedVerdict:
    if game is not None and not isinstance(game, dict):
        trouble = f"{quoted(game)} is no outcome; expected a game with a score"
        return records.PublishedVerdict(order, None, records.text_of(game), trouble)
    label, words = (game or {}).get("score"), (game or {}).get("judgment")
    if isinstance(words, dict) and isinstance(words.get("answer"), str):
        words = words["answer"]  # the second release wraps the text
    shares: dict[str | None, float | None] = {None: None}
    shares |= {name: share if order == "AB" else 1 - share for name, share in _LABELS.items()}
    expected = "A>>B, A>B, A=B, B>A, B>>A or null"
    return records.verdict_of(
        order, label, shares.__getitem__, expected, records.labelled(label, records.text_of(words))
    )


ARENA_HARD = Layout(
    "arena-hard",
    ("uid model judge games", "question_id model judge games"),
    advice=VERDICTS,
    is_rated=True,
    corpus=_read,
)
