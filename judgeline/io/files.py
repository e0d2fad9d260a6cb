"""Published layouts: the columns that a reader needs; and files written all together or not."""

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from judgeline.io.formats import (
    LOG,
    TEXTS,
    encoding_of,
    file_columns,
    files_of,
    kind_of,
    read_columns,
)

LAYOUTS: dict[str, tuple[str, ...]] = {
    "lmarena-100k": (
        "question_id model_a model_b winner conversation_a conversation_b language tstamp",
    ),
    "lmarena-140k": (
        "id model_a model_b winner evaluation_session_id conversation_a conversation_b language "
        "timestamp",
    ),
    "lmarena-55k": (
        "id model_a model_b prompt response_a response_b winner_model_a winner_model_b winner_tie",
    ),
    "comparia": (
        "conversation_pair_id model_a_name model_b_name chosen_model_name both_equal "
        "conversation_a conversation_b",
    ),
    "softelo-annotations": (
        "judge original_question_id_hash model_a model_b human_pref judge_pref scores_a scores_b",
        "model_a model_b human_pref judge_pref scores_a scores_b",
    ),
    "battles": ("model_a model_b human_outcome", "model_a model_b winner"),
    "arena-hard": ("uid model judge games", "question_id model judge games"),
    "mt-bench": ("question_id model_1 model_2 g1_winner g2_winner judge",),
    "alpaca-eval": ("instruction output_1 output_2 generator_1 generator_2 annotator preference",),
    "reference-battles": ("question_id model reference_model judge preference",),
}
"""Columns that a reader needs; the first layout whose columns are all there is the file's."""
_OURS = ("battles", "softelo-annotations")


def read_layout(path: Path, reader: str, optional: str = "") -> pd.DataFrame:
    """Return the columns of a reader's layout, with the optional ones in the file.

    CSV cells are text, null where empty; other formats keep their types. ValueError if the file is
    empty, cannot be read, or fits no layout of the reader.
    """
    found = file_columns(path)
    if kind_of(path) in TEXTS and not (encoding := encoding_of(path)).startswith("utf"):
        raise ValueError(f"{path} is not UTF-8, and looks like {encoding}; save it as UTF-8")
    needed = layout_of(path, reader, found)
    wanted = [*needed, *(name for name in optional.split() if name in found)]
    table = read_columns(path, wanted, texts=wanted)
    if table.empty:
        raise ValueError(f"{path} holds a header and no rows; download or write it again")
    return table


def layout_of(path: Path, reader: str, found: Sequence[str]) -> list[str]:
    """Return the layout of a reader that some columns fit.

    ValueError if none does, with what is missing, what was found and which reader might fit.
    """
    lacking = {
        name: [[column for column in layout.split() if column not in found] for layout in layouts]
        for name, layouts in LAYOUTS.items()
    }
    for layout, missing in zip(LAYOUTS[reader], lacking[reader], strict=True):
        if not missing:
            return layout.split()
    nearest: list[str] = min(lacking[reader], key=len)
    fitting = [name for name, missing in lacking.items() if [] in missing]
    remedy = f"Reader {' or '.join(fitting)} might fit" if fitting else "No reader fits"
    raise ValueError(
        f"{path} lacks {', '.join(nearest)} for reader {reader!r}; it has "
        f"{', '.join(found[:40]) or 'no columns'}. {remedy}: correct the reader or the location "
        "in corpora.yaml."
    )


def published_layout(path: Path) -> str:
    """Return the published layout of a file, or of a folder's first; empty for battles of ours."""
    file = files_of(path)[0]
    columns = set() if file.suffix == LOG else set(file_columns(file))
    fitting = [
        name
        for name, layouts in LAYOUTS.items()
        if name not in _OURS and any(set(needed.split()) <= columns for needed in layouts)
    ]
    return fitting[0] if fitting else ""


def write_together(
    writers: Mapping[Path, Callable[[Path], object]], *, new: Path | None = None
) -> None:
    """Write all files or none, under temporary names first; FileExistsError if `new` is there."""
    parts = {path: path.with_name(f".{path.name}.{uuid.uuid4().hex}.part") for path in writers}
    is_ours = False
    try:
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write(parts[path])
            with parts[path].open("rb") as written:
                os.fsync(written.fileno())
        if new is not None:
            new.open("x").close()  # of two programs that come here at once, one goes on
            is_ours = True
        for path, part in parts.items():
            part.replace(path)
    finally:
        for part in parts.values():
            if part.exists():
                part.unlink()
        if new is not None and is_ours and not new.stat().st_size:
            new.unlink()
