"""Corpora from published files: each file converted, rows that fit no rule set aside."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from judgeline.io import schema
from judgeline.io.layout import Layout, Stated, read_layout
from judgeline.io.published import names
from judgeline.tables.corpus import BATTLE_DTYPES, VERDICT_DTYPES
from judgeline.verdict import readable

T = TypeVar("T")


class Converted(NamedTuple):
    """The battles of one file, a row for each published one, and the faults of some."""

    battles: pd.DataFrame
    faults: list[schema.Fault]


def of_tables(
    convert: Callable[[pd.DataFrame], Converted], optional: str = ""
) -> Callable[[Layout, Sequence[Path], Stated], schema.CorpusRead]:
    """Return the reader of a layout whose files are tables, with optional columns."""
    return lambda layout, paths, _: assemble(
        paths, lambda path: convert(read_layout(path, layout, optional))
    )


def assemble(paths: Sequence[Path], convert: Callable[[Path], Converted]) -> schema.CorpusRead:
    """Return the corpus that files make: clean battles, and the rows set aside with reasons."""
    battles, quarantines = [], []
    for path in paths:
        converted = convert(path)
        table = converted.battles.assign(row=np.arange(len(converted.battles)), file=path.name)
        kept, quarantine = schema.set_aside(
            table, [*schema.missing_models(table), *converted.faults]
        )
        battles.append(schema.typed(table[kept], {**BATTLE_DTYPES, "row": "int64", "file": "str"}))
        quarantines.append(quarantine)
    clean, unclean = clean_battles(pd.concat(battles, ignore_index=True))
    quarantine = schema.in_file_order([*quarantines, unclean], paths)
    return schema.CorpusRead(clean, quarantine, schema.empty(VERDICT_DTYPES))


def clean_battles(raw: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return battles with unique ids, the first sound one of each, and the quarantined others."""
    table = raw.reset_index(drop=True)
    origin = table.assign(row=table.get("row", table.index), file=table.get("file", ""))
    nameless = table["battle_id"].isna()
    alone = schema.self_battles(table)
    sound = table.loc[~(nameless | alone.wrong), "battle_id"]
    again = table.index.isin(sound.index[sound.duplicated()])
    faults = [
        schema.fault(table, nameless, "missing-battle-id", "the id of the battle is empty"),
        alone,
        schema.fault(table, again, "duplicate-battle", "battle {battle_id!r} came before"),
    ]
    kept, quarantine = schema.set_aside(origin, faults)
    return schema.typed(table[kept], BATTLE_DTYPES), quarantine


def identified(
    table: pd.DataFrame, ids: str, cluster: str, models: str = "model_a model_b", **others: Any
) -> pd.DataFrame:
    """Return battles with the question's id as theirs, and as their cluster if none is given."""
    own = names(table[ids])
    model_a, model_b = (names(table[model]) for model in models.split())
    clusters = names(column_of(table, cluster)).fillna(own)
    columns = {"cluster_id": clusters, "model_a": model_a, "model_b": model_b, **others}
    return pd.DataFrame({"battle_id": own, "question_id": own, **columns})


TURN_SEPARATOR = "\n\n"


class Conversation(NamedTuple):
    """The first user turn, all answers, and the number of user turns."""

    instruction: str | None
    completion: str | None
    n_turns: int


def read_conversation(published: Any) -> Conversation:
    """Return the first user turn and all assistant turns of a list, or of JSON that holds one."""
    said: dict[str, list[str]] = {"user": [], "assistant": []}
    for turn in _published_list(published):
        if not isinstance(turn, Mapping) or not isinstance(turn.get("role"), str):
            raise ValueError(f"a turn is {str(turn)[:60]!r}, expected a role and content")
        said.setdefault(turn["role"], []).append(readable(_text(turn.get("content"))))
    asked, answered = said["user"], said["assistant"]
    completion = TURN_SEPARATOR.join(answered) if answered else None
    return Conversation(asked[0] if asked else None, completion, len(asked))


def read_texts(published: Any) -> list[str]:
    """Return the texts of a JSON list of strings, empty where a text is null."""
    listed = _published_list(published)
    if wrong := [text for text in listed if text is not None and not isinstance(text, str)]:
        raise ValueError(f"a text is {type(wrong[0]).__name__}, expected a string")
    return [readable(text or "") for text in listed]


def _published_list(published: Any) -> list[Any]:
    if isinstance(published, str):
        try:
            published = json.loads(published)
        except json.JSONDecodeError as error:
            raise ValueError(f"not JSON ({error.msg} at character {error.pos})") from error
    if isinstance(published, np.ndarray):
        published = published.tolist()
    if not isinstance(published, list):
        raise ValueError(f"{type(published).__name__} instead of a list")
    return published


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    blocks: Iterable[Any] = [content] if isinstance(content, Mapping) else content
    if not isinstance(blocks, (list, np.ndarray)):
        raise ValueError(f"content is {type(content).__name__}, expected text or blocks")
    texts = []
    for block in blocks:
        if not isinstance(block, str | Mapping):
            raise ValueError(f"a block is {type(block).__name__}, expected a type and text")
        of_text = isinstance(block, str) or block.get("type", "text") == "text"
        text = block if isinstance(block, str) else block.get("text")
        if of_text and isinstance(text, str):  # images and the like have none
            texts.append(text)
    return "\n".join(texts)


_SILENCE = Conversation(None, None, 0)


def conversations(table: pd.DataFrame) -> tuple[pd.DataFrame, list[schema.Fault]]:
    """Return the texts and turns of both conversations, and which cannot be read."""
    (read_a, faults_a), (read_b, faults_b) = (
        read_each(table, f"conversation_{side}", read_conversation, _SILENCE) for side in "ab"
    )
    both = list(zip(read_a, read_b, strict=True))
    n_turns = [max(a.n_turns, b.n_turns) or None for a, b in both]
    texts = pd.DataFrame(index=table.index).assign(
        instruction=[(b if a is _SILENCE else a).instruction for a, b in both],
        completion_a=[a.completion for a in read_a],
        completion_b=[b.completion for b in read_b],
        n_turns=pd.array(n_turns, dtype="Int64"),
    )
    return texts, [faults_a, faults_b]


def read_each(
    table: pd.DataFrame, column: str, read: Callable[[Any], T], default: T
) -> tuple[list[T], schema.Fault]:
    """Return a column as `read` has it, nulls as `default`, and the fault of what it refuses."""
    values, wrong, reasons = [], np.zeros(len(table), dtype=bool), []
    for place, published in enumerate(table[column]):
        is_null = published is None or (isinstance(published, float) and np.isnan(published))
        try:
            values.append(default if is_null else read(published))
        except ValueError as error:
            values.append(default)
            wrong[place] = True
            reasons.append(f"{column}: {error}")
    return values, schema.Fault(wrong, "unreadable-text", reasons)


def read_text(published: Any) -> str:
    """Return a text; ValueError for anything else."""
    if not isinstance(published, str):
        raise ValueError(f"{type(published).__name__} instead of a text")
    return readable(published)


def read_times(table: pd.DataFrame) -> tuple[pd.Series, schema.Fault]:
    """Return the times in ``timestamp``, null where there is none, and the fault of any other."""
    published = column_of(table, "timestamp")
    is_read = pd.api.types.is_datetime64_any_dtype(published)
    texts = published if is_read else published.astype("str")
    time = pd.to_datetime(texts, utc=True, errors="coerce", format="ISO8601")
    wrong = published.notna() & time.isna()
    return time, schema.fault(
        table, wrong, "unreadable-time", "timestamp is {timestamp!r}, not ISO 8601"
    )


def is_count(numbers: pd.Series) -> pd.Series:
    """Return which numbers are whole and of a size that turns can have."""
    return numbers.between(1, 1e9) & numbers.mod(1).eq(0)


def column_of(table: pd.DataFrame, name: str) -> pd.Series:
    """Return a column, of nulls where the table lacks it."""
    return table[name] if name in table else pd.Series(None, index=table.index, dtype=object)
