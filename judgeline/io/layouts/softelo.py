"""Released Soft-Elo annotations: human preferences and rubric scores of judges, without texts.

The full release has a file per judge and corpus; the sample has other columns and one judge.
Both code a preference the other way round (0 = A wins); here 1 = A wins, as everywhere.
"""

import ast
import json
import math
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io import schema
from judgeline.io.layout import Layout, Stated, read_layout
from judgeline.io.outcome_codes import require_known_codes
from judgeline.io.published import judge_slugs, languages, names, truths
from judgeline.tables.corpus import BATTLE_DTYPES, SCORE_COLUMNS, VERDICT_DTYPES
from judgeline.verdict import CRITERIA, text_hash, unique_members

RECORDED = "recorded"
"""Slug of the judge of the sample, whose name is not published."""

SCALE = (1.0, 10.0)
_FIXED_CODES = "This layout has 0 where A wins, 0.5 and 1: convert the column"
_LONGEST = 2000
_OPTIONAL = "row_id meta_lang source_dataset instruction_id_hash language parse_error len_a len_b"


def _read(_layout: Layout, paths: Sequence[Path], stated: Stated) -> schema.CorpusRead:
    """Return battles and verdicts of one corpus, of one or several judges.

    The published id is per judge, so a battle is known by ``original_question_id_hash`` and both
    models, in their order; where that hash is empty, by ``instruction_id_hash`` and both models
    and how often they occurred before among the rows of that judge. The sample's id is
    ``row_id``, or the position where it has none. Question and cluster are the hash that is
    there, else the battle.

    A battle is never lost to a bad verdict. Scores that are missing, NaN, off the scale or not
    readable, and unknown judge preferences, give a verdict of status ``parse_error`` without
    scores; its row is also quarantined with the reason, unless the publisher marks it with
    ``parse_error``. A row whose human preference is unknown, or contradicts that of another
    judge's row, is quarantined with its verdict.

    ValueError if the files hold battles of several corpora, two judges share a slug, or preferences
    are of another coding.
    """
    rows = annotations(paths)
    return battles_and_verdicts(rows, paths, with_identities=stated.needs_identities)


def annotations(paths: Sequence[Path]) -> pd.DataFrame:
    """Return the rows of one corpus in the columns of the full release, battles identified."""
    table = pd.concat([_published(path) for path in paths], ignore_index=True)
    sources = sorted(table["source_dataset"].dropna().unique())
    if len(sources) > 1:
        raise ValueError(
            f"the files hold battles of {len(sources)} corpora ({', '.join(sources)}), whose "
            "voters differ; name the files of one of them as location in corpora.yaml"
        )
    return table.assign(**_identified(table), judge=judge_slugs(table["judge"]))


def battles_and_verdicts(
    rows: pd.DataFrame, paths: Sequence[Path], *, with_identities: bool = False
) -> schema.CorpusRead:
    """Return the battles and verdicts in rows of `annotations`: see `_read`."""
    table = rows.assign(human_outcome=_outcome(rows["human_pref"], (0.0, 0.5, 1.0)))
    is_known = table["human_outcome"].notna()
    place = f"{paths[0]}{f' and {len(paths) - 1} more' * (len(paths) > 1)}: column"
    require_known_codes(table["human_pref"], is_known, f"{place} human_pref", _FIXED_CODES)
    sound, broken = _sound(table)
    verdicts, unread = _verdicts(sound, f"{place} judge_pref")
    if with_identities:
        verdicts["identity"] = pd.Series(_identities(sound), dtype=verdicts["identity"].dtype)
    return schema.CorpusRead(
        _battles(sound), schema.in_file_order([*broken, unread], paths), verdicts
    )


def _published(path: Path) -> pd.DataFrame:
    """Return the rows of one file in the columns of the full release."""
    raw = read_layout(path, SOFT_ELO, _OPTIONAL)
    missing = pd.Series(None, index=raw.index, dtype="str")
    is_full = "judge" in raw
    if not is_full and "row_id" not in raw:
        raw["row_id"] = [f"row-{row:06d}" for row in raw.index]
    lengths = {f"length_{s}": raw.get(f"len_{s}", missing) for s in "ab"}
    for name, given in lengths.items():
        lengths[name] = pd.to_numeric(given, errors="coerce")
        if (wrong := (lengths[name].isna() & given.notna()).to_numpy()).any():
            row = int(wrong.argmax())
            raise ValueError(
                f"{path}: len_{name[-1]} is {given.iloc[row]!r} in row {row}; expected a number"
            )
    return pd.DataFrame(
        {
            "row": np.arange(len(raw)),
            "file": path.name,
            **{name: raw[name] for name in SOFT_ELO.columns[1].split()},
            "model_a": names(raw["model_a"]),
            "model_b": names(raw["model_b"]),
            "judge": names(raw["judge"]) if is_full else RECORDED,
            "question": names(raw["original_question_id_hash"]) if is_full else missing,
            "given_id": missing if is_full else names(raw["row_id"]),
            "language": languages(raw.get("language", raw.get("meta_lang", missing))),
            "source_dataset": names(raw.get("source_dataset", missing)),
            "instruction_id_hash": names(raw.get("instruction_id_hash", missing)),
            "parse_error": truths(raw.get("parse_error", missing)),
            **lengths,
        }
    )


def _identified(table: pd.DataFrame) -> dict[str, pd.Series]:
    models = table["model_a"].fillna("") + ":" + table["model_b"].fillna("")
    battle_id = table["given_id"].fillna(table["question"] + ":" + models)
    if battle_id.isna().any():
        asked = table["instruction_id_hash"].fillna("-")
        occurrence = table.groupby([table["judge"], asked, models], dropna=False).cumcount()
        battle_id = battle_id.fillna(asked + ":" + models + ":" + occurrence.astype(str))
    question = table["question"].fillna(table["instruction_id_hash"]).fillna(battle_id)
    return {"battle_id": battle_id, "question_id": question, "cluster_id": question}


def _outcome(published: pd.Series, allowed: Sequence[float]) -> pd.Series:
    """Return A's share of the win from a preference that is 0 where A wins."""
    preference = pd.to_numeric(published, errors="coerce")
    return 1.0 - preference.where(preference.isin(allowed)).astype(float)


def _sound(table: pd.DataFrame) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return the rows with a battle and a judge, each pair once, and the quarantined rows."""
    unknown = table["human_pref"].notna() & table["human_outcome"].isna()
    first_kept, first_broken = schema.set_aside(
        table,
        [
            *schema.missing_models(table),
            schema.fault(table, table["judge"].isna(), "missing-judge", "judge is empty"),
            schema.fault(
                table,
                unknown,
                "unknown-winner",
                "human_pref is {human_pref!r}; expected 0 (A wins), 0.5, 1 (B wins) or empty",
            ),
        ],
    )
    rows = table[first_kept].reset_index(drop=True)
    kept, broken = schema.set_aside(rows, _contradictions(rows))
    return rows[kept].reset_index(drop=True), [first_broken, broken]


def _contradictions(rows: pd.DataFrame) -> list[schema.Fault]:
    alone = schema.self_battles(rows)
    again = rows.assign(alone=alone.wrong).duplicated(["battle_id", "judge", "alone"])
    votes = rows["human_outcome"].mask(alone.wrong | again)
    first = votes.groupby(rows["battle_id"]).transform("first")
    twice = "battle {battle_id!r} came before from judge {judge}"
    torn = "human_pref of battle {battle_id!r} is {human_pref}, which an earlier row contradicts"
    return [
        alone,
        schema.fault(rows, again, "duplicate-battle", twice),
        schema.fault(rows, votes.notna() & votes.ne(first), "conflicting-vote", torn),
    ]


def _battles(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each battle once, with the first known vote and language among its judges' rows.

    The lengths of both answers, of which the texts are not published, stand beside its columns.
    """
    told = rows.groupby("battle_id")[["human_outcome", "language"]].transform("first")
    first = rows.assign(**told).drop_duplicates("battle_id")
    return schema.typed(first, {**BATTLE_DTYPES, "length_a": "float64", "length_b": "float64"})


def _verdicts(rows: pd.DataFrame, place: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return verdicts, and the quarantined rows without readable scores or preference."""
    recorded = _outcome(rows["judge_pref"], (0.0, 0.25, 0.5, 0.75, 1.0))
    marked = rows["parse_error"].to_numpy()
    unmarked = rows["judge_pref"].mask(marked)
    require_known_codes(unmarked, recorded.notna(), place, _FIXED_CODES)
    points, faults = [], []
    for side in "ab":
        scores, reasons = _parsed(rows[f"scores_{side}"])
        points.append(scores)
        sentence = f"scores_{side} is {{scores_{side}!r:.200}}; expected six scores from 1 to 10"
        faults += [
            schema.fault(rows, (reasons == reason) & ~marked, str(reason), sentence)
            for reason in np.unique(reasons[reasons != ""])
        ]
    unknown = (unmarked.notna() & recorded.isna()).to_numpy()
    sentence = "judge_pref is {judge_pref!r}; expected 0 (A wins), 0.25, 0.5, 0.75 or 1"
    faults.append(schema.fault(rows, unknown, "unknown-preference", sentence))
    is_sound, quarantine = schema.set_aside(rows, faults)
    is_read = is_sound & ~marked
    scores = np.where(is_read[:, None], np.hstack(points), np.nan)
    verdicts = pd.DataFrame(scores, columns=list(SCORE_COLUMNS)).assign(
        battle_id=rows["battle_id"],
        judge=rows["judge"],
        order="mean",
        replicate=0,
        status=np.where(is_read, "ok", "parse_error"),
        recorded_outcome=recorded,
    )
    return schema.typed(verdicts, VERDICT_DTYPES), quarantine


def _parsed(published: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of each row, and why it has none; each distinct text is parsed once."""
    codes, texts = pd.factorize(published, use_na_sentinel=False)
    read = [_read_scores(text) for text in texts.tolist()]
    points = np.array([one[0] for one in read], dtype=float).reshape(-1, len(CRITERIA))
    return points[codes], np.array([one[1] for one in read], dtype=object)[codes]


_UNREAD = (math.nan,) * len(CRITERIA)

_POINTS = r"([1-9](?:\.[0-9]{1,20})?|10(?:\.0{1,20})?)"
_USUAL = re.compile(
    r"\{(['\"])" + r", ?\1".join(rf"{name}\1: ?{_POINTS}" for name in CRITERIA) + r"\}"
)
"""Scores on the scale as both releases write them; other JSON and literals are parsed as such."""


def _read_scores(text: Any) -> tuple[tuple[float, ...], str]:
    """Return the scores of a text in the order of the criteria, or NaN and the reason."""
    if not isinstance(text, str) or text.strip() in ("", "{}"):
        return _UNREAD, "no-scores"
    if usual := _USUAL.fullmatch(text):
        return tuple(map(float, usual.groups()[1:])), ""
    scores = _literal(text)
    if not isinstance(scores, dict):
        found_nan = re.search(r"\bnan\b", text, re.IGNORECASE)
        return _UNREAD, "nan-score" if found_nan else "unreadable-scores"
    points: list[Any] = [scores.get(criterion) for criterion in CRITERIA]
    if None in points:
        return _UNREAD, "missing-score"
    if not set(map(type, points)) <= {int, float}:
        return _UNREAD, "unreadable-scores"
    if math.isnan(sum(points)):
        return _UNREAD, "nan-score"
    low, high = SCALE
    on_scale = low <= min(points) and max(points) <= high
    return (tuple(points), "") if on_scale else (_UNREAD, "score-off-scale")


def _literal(text: str) -> Any:
    """Return the value of JSON or of a Python literal, or None; the sample has Python dicts."""
    if len(text) > _LONGEST:
        return None
    for parse in (partial(json.loads, object_pairs_hook=unique_members), _python):
        try:
            return parse(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue  # not this notation; None says that it is neither
    return None


def _python(text: str) -> Any:
    tree = ast.parse(text.strip(), mode="eval")
    keys = [getattr(key, "value", None) for key in getattr(tree.body, "keys", [])]
    unique_members([(str(key), None) for key in keys])
    return ast.literal_eval(tree)


def _identities(rows: pd.DataFrame) -> list[str]:
    """Return a hash of all that was published of each verdict."""
    names = ["judge", "battle_id", "scores_a", "scores_b", "judge_pref"]
    parts = (rows[name].fillna("").astype("str").tolist() for name in names)
    return [text_hash("\x1f".join(row)) for row in zip(*parts, strict=True)]


SOFT_ELO = Layout(
    "softelo-annotations",
    (
        "judge original_question_id_hash model_a model_b human_pref judge_pref scores_a scores_b",
        "model_a model_b human_pref judge_pref scores_a scores_b",
    ),
    corpus=_read,
    is_rated=True,
)
