"""Verdicts beside battles of our own layout: ``verdicts.parquet`` next to ``battles.parquet``.

`judgeline verdicts import` writes the pair; a table of one's own works as well.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from judgeline.io import (
    REPLY_DTYPES,
    SCORE_COLUMNS,
    VERDICT_DTYPES,
    CorpusRead,
    Fault,
    fault,
    judge_slugs,
    set_aside,
    typed,
)
from judgeline.verdict import HIGHEST_SCORE, LOWEST_SCORE, text_hash
from resources.judges.judge import FAILURES, ORDERS

BATTLES, VERDICTS = "battles.parquet", "verdicts.parquet"

_NEEDED = ("battle_id", "judge", "order", "status")
_CALL = ["battle_id", "judge", "order", "replicate"]
_DETAILS = {
    "incomplete-verdict": "one of {needed} is empty",
    "unknown-battle": "no battle {battle_id!r} in the corpus",
    "unknown-order": "order is {order!r}; expected AB, BA or mean",
    "unknown-status": "status is {status!r}; expected ok, or of a failed verdict {failures}",
    "score-off-scale": "{criterion} is {score:g}; expected {scale}",
    "unknown-outcome": "recorded_outcome is {recorded_outcome}; expected 0 to 1, A's share of the "
    "win",
    "empty-verdict": "ok, with neither all twelve scores nor an outcome instead",
    "duplicate-verdict": "order {order} of battle {battle_id!r} came before from judge {judge!r}",
}


def without_verdicts(paths: Sequence[Path]) -> list[Path]:
    """Return the files that hold battles."""
    kept = [path for path in paths if path.name != VERDICTS]
    if not kept:
        raise ValueError(
            f"{paths[0]} holds verdicts, and no battles lie beside it; name the folder or file of "
            "the battles as location in corpora.yaml"
        )
    return kept


def with_verdicts(found: CorpusRead, paths: Sequence[Path]) -> CorpusRead:
    """Return a corpus with the verdicts that lie beside its files.

    Verdicts that fit no rule are quarantined; one that is ok has all scores, or none and an
    outcome. Columns that are missing are empty, replicates 0.
    """
    beside = [path.with_name(VERDICTS) for path in paths if path.name == BATTLES]
    verdicts, quarantines = [found.verdicts], [found.quarantine]
    for path in beside:
        if path.is_file():
            table = _read(path)
            kept, quarantine = set_aside(table, _faults(table, found.battles))
            verdicts.append(typed(table[kept], VERDICT_DTYPES))
            quarantines.append(quarantine)
    return CorpusRead(
        found.battles,
        pd.concat(quarantines, ignore_index=True),
        pd.concat(verdicts, ignore_index=True),
    )


def _read(path: Path) -> pd.DataFrame:
    published = pd.read_parquet(path)
    if lacking := [name for name in _NEEDED if name not in published]:
        raise ValueError(
            f"{path} lacks {', '.join(lacking)}; a table of verdicts has {', '.join(_NEEDED)} and "
            "either rubric scores or recorded_outcome. Correct it, or give it another name"
        )
    try:
        filled = published.assign(replicate=published.get("replicate", 0))
        table = typed(filled.fillna({"replicate": 0}), VERDICT_DTYPES)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: a column has another type ({error}); correct it") from error
    return table.assign(
        judge=judge_slugs(table["judge"]),
        identity=table["identity"].fillna(_identities(table)),
        row=np.arange(len(table)),
        file=path.name,
    )


def _identities(table: pd.DataFrame) -> pd.Series:
    parts = table.drop(columns=["identity", *REPLY_DTYPES]).astype("str").fillna("")
    texts = ["\x1f".join(row) for row in parts.itertuples(index=False)]
    return pd.Series([text_hash(text) for text in texts], index=table.index, dtype="str")


def _faults(table: pd.DataFrame, battles: pd.DataFrame) -> list[Fault]:
    """Return the rules of a published verdict, each with the rows that break it."""
    outcome, n_scores = table["recorded_outcome"], _points(table).notna().sum(axis=1)
    has_result = n_scores.eq(len(SCORE_COLUMNS)) | (n_scores.eq(0) & outcome.notna())
    broken = {
        "incomplete-verdict": table[list(_NEEDED)].isna().any(axis=1),
        "unknown-battle": ~table["battle_id"].isin(battles["battle_id"]),
        "unknown-order": ~table["order"].isin([*ORDERS, "mean"]),
        "unknown-status": ~table["status"].isin(["ok", *FAILURES]),
        "score-off-scale": _off_scale(table).any(axis=1),
        "unknown-outcome": outcome.notna() & ~outcome.between(0, 1),
        "empty-verdict": table["status"].eq("ok").fillna(value=False) & ~has_result,
        "duplicate-verdict": table.duplicated(_CALL),
    }
    told = _with_words(table)
    return [fault(told, rows, reason, _DETAILS[reason]) for reason, rows in broken.items()]


def _points(table: pd.DataFrame) -> pd.DataFrame:
    return table[list(SCORE_COLUMNS)]


def _off_scale(table: pd.DataFrame) -> pd.DataFrame:
    """Return which scores lie off the rubric's scale; averages between two points are on it."""
    return _points(table).lt(LOWEST_SCORE) | _points(table).gt(HIGHEST_SCORE)


def _with_words(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with the words of its faults' details; of scores the first off scale."""
    first = _off_scale(table).to_numpy().argmax(axis=1)
    return table.assign(
        criterion=np.array(SCORE_COLUMNS)[first],
        score=_points(table).to_numpy()[np.arange(len(table)), first],
        scale=f"{LOWEST_SCORE} to {HIGHEST_SCORE}",
        needed=", ".join(_NEEDED),
        failures=", ".join(FAILURES),
    )
