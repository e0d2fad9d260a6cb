"""Samples of lm-evaluation-harness (``--log_samples``): a metric by document, a folder a model.

EleutherAI/lm-evaluation-harness, `lm_eval/loggers/evaluation_tracker.py`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgeline.io.layout import Layout
from judgeline.io.samples import Score, of_samples


def _scores(file: str, record: Mapping[str, Any]) -> Iterator[Score]:
    """Yield the metrics of a document; the file is ``MODEL/samples_TASK_DATE.jsonl``."""
    path = Path(file)
    task = path.name.removeprefix("samples_").partition(".")[0].rpartition("_")[0]
    way = record.get("filter")
    for metric in record.get("metrics") or ():
        judge = metric if way in (None, "none") else f"{metric},{way}"
        model = path.parent.name or path.stem
        value = record.get(metric)
        score = float(value) if isinstance(value, int | float) else None
        yield Score(f"{task}/{record['doc_id']}", judge, model, model, score)


LM_EVAL = Layout(
    "lm-evaluation-harness",
    ("doc_id target filtered_resps metrics",),
    battles=of_samples(_scores, "name the folder that holds a folder for each model"),
)
