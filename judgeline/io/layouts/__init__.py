"""The published layouts, one a module: a new one is a file here and a name in `LAYOUTS`."""

from collections.abc import Collection, Sequence
from pathlib import Path

from judgeline.io.formats import LOG, file_columns, files_of
from judgeline.io.layout import NOTHING_STATED, Layout, OtherLayoutError, Stated
from judgeline.io.layouts.alpaca_eval import ALPACA_EVAL
from judgeline.io.layouts.arena_hard import ARENA_HARD
from judgeline.io.layouts.battles import BATTLES
from judgeline.io.layouts.comparia import COMPARIA
from judgeline.io.layouts.deepeval import DEEPEVAL
from judgeline.io.layouts.inspect_logs import INSPECT
from judgeline.io.layouts.judge_arena import JUDGE_ARENA
from judgeline.io.layouts.label_studio import LABEL_STUDIO
from judgeline.io.layouts.labels import JUDGE_BENCH, LANGFUSE
from judgeline.io.layouts.lm_eval import LM_EVAL
from judgeline.io.layouts.lmarena import LMARENA_55K, LMARENA_100K, LMARENA_140K
from judgeline.io.layouts.mt_bench import MT_BENCH
from judgeline.io.layouts.orq_arena import ORQ_ARENA
from judgeline.io.layouts.pandalm import PANDALM, PANDALM_PEOPLE
from judgeline.io.layouts.promptfoo import PROMPTFOO
from judgeline.io.layouts.ratings import RATINGS
from judgeline.io.layouts.reference_battles import REFERENCE_BATTLES
from judgeline.io.layouts.reviews import REVIEWS
from judgeline.io.layouts.runs import LANGSMITH, MLFLOW
from judgeline.io.layouts.single_scores import SINGLE_SCORES, WILDBENCH
from judgeline.io.layouts.softelo import SOFT_ELO
from judgeline.io.schema import CorpusRead, typed
from judgeline.tables.corpus import BATTLE_DTYPES

LAYOUTS = (
    INSPECT, JUDGE_ARENA, PROMPTFOO, DEEPEVAL, LM_EVAL, MLFLOW, LANGSMITH, ORQ_ARENA, REVIEWS,
    PANDALM, PANDALM_PEOPLE, LABEL_STUDIO, WILDBENCH, LMARENA_100K, LMARENA_140K, LMARENA_55K,
    COMPARIA, SOFT_ELO, ARENA_HARD, MT_BENCH, ALPACA_EVAL, REFERENCE_BATTLES, RATINGS, BATTLES,
    SINGLE_SCORES, JUDGE_BENCH, LANGFUSE,
)  # fmt: skip
"""The first that fits a file is the file's."""
READERS = {one.name: one for one in LAYOUTS if one.corpus}
"""Layouts that a corpus is read by, by name."""


def layout_of(columns: Collection[str], suffixes: Collection[str] = ()) -> Layout | None:
    """Return the layout that columns of a file, or the suffixes of several, tell."""
    return next((one for one in LAYOUTS if one.fits(columns, suffixes)), None)


def layout_at(path: Path) -> Layout | None:
    """Return the layout of a file, or of a folder's or pattern's first."""
    files = files_of(path)
    columns = [] if files[0].suffix == LOG else file_columns(files[0])
    return layout_of(columns, {one.suffix for one in files})


def read_files(reader: str, paths: Sequence[Path], stated: Stated = NOTHING_STATED) -> CorpusRead:
    """Return the battles, quarantined rows and verdicts of files of a layout of `READERS`.

    ValueError if they are of another, with the reader that might fit.
    """
    try:
        read = READERS[reader].read(paths, stated)
    except OtherLayoutError as error:
        fitting = [name for name, one in READERS.items() if one.fits(error.found)]
        remedy = f"Reader {' or '.join(fitting)} might fit" if fitting else "No reader fits"
        raise ValueError(
            f"{error}. {remedy}: correct the reader or the location in corpora.yaml."
        ) from error
    return read._replace(battles=typed(read.battles, BATTLE_DTYPES))
