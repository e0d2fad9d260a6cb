"""Logs of Inspect AI: a scorer's score of each sample, a model a log."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from judgeline.io.formats import LOG
from judgeline.io.layout import Given, Layout
from judgeline.io.samples import Score, of_samples, paired

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


def _battles(given: Given) -> pd.DataFrame:
    if not any(one.suffix == LOG for one in given.files):
        return _of_json(given)
    others = [one.name for one in given.files if one.suffix not in (LOG, ".json")]
    if others:  # of JSON, Inspect AI keeps lists of its own beside the logs
        raise ValueError(
            f"{given.path} holds logs of Inspect AI and {others[0]}: name one kind, such as "
            "'*.eval'"
        )
    logs = [one for one in given.files if one.suffix == LOG]
    place = f"{logs[0]} and the logs beside it"
    scores = (score for path in logs for score in _scores(path))
    return paired(scores, place, "name a folder with the logs of several models")


def _scores(path: Path) -> Iterator[Score]:
    """Yield the scores in a log; one that is neither a grade nor a number is none."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise ValueError(
            f"{path} is a log of Inspect AI, and its reader is not installed; run: "
            "pip install inspect-ai"
        ) from error
    try:
        log = read_eval_log(str(path))
    except Exception as error:  # whatever a damaged archive brings up
        raise ValueError(f"{path} cannot be read as a log of Inspect AI: {error}") from error
    if log.status != "success":
        raise ValueError(
            f"{path} is the log of a run that ended with {log.status!r}; leave it out, or run the "
            "evaluation again"
        )
    for sample in log.samples or []:
        values = {scorer: score.value for scorer, score in (sample.scores or {}).items()}
        yield from _graded(path.name, log.eval.task, log.eval.model, sample.id, values)


def _graded(
    file: str, task: str, model: str, sample: object, values: Mapping[str, object]
) -> Iterator[Score]:
    for scorer, value in values.items():
        grade = value if isinstance(value, int | float) else _GRADES.get(str(value))
        yield Score(f"{task}/{sample}", scorer, model, file, grade)


def _json_scores(file: str, record: Mapping[str, Any]) -> Iterator[Score]:
    """Yield the scores of a log as JSON, or of one of its samples beside the log's head."""
    if record.get("status", "success") != "success":
        raise ValueError(f"{file} is the log of a run that ended with {record['status']!r}")
    head = record["eval"]
    for sample in record.get("samples") or [record]:
        values = {scorer: one.get("value") for scorer, one in (sample.get("scores") or {}).items()}
        yield from _graded(file, head["task"], head["model"], sample["id"], values)


_of_json = of_samples(_json_scores, "name a folder with the logs of several models")

INSPECT = Layout(
    "inspect", ("eval samples", "eval id epoch scores"), suffix=LOG, battles=_battles, score="value"
)
