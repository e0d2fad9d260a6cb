"""Logs of Inspect AI: a scorer's score of each sample, a model a log."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from judgeline.io.formats import LOG
from judgeline.io.layout import Given, Layout
from judgeline.io.samples import Score, paired

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer


def _battles(given: Given) -> pd.DataFrame:
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
        question = f"{log.eval.task}/{sample.id}"
        for scorer, score in (sample.scores or {}).items():
            value = score.value
            grade = value if isinstance(value, int | float) else _GRADES.get(str(value))
            yield Score(question, scorer, log.eval.model, path.name, grade)


INSPECT = Layout("inspect", suffix=LOG, battles=_battles, score="value")
