"""Exports of one run, a sample a row and a scorer a column: MLflow's, LangSmith's."""

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from judgeline.io.layout import Layout
from judgeline.io.samples import Score, of_samples


def _of_run(
    inputs: str, scores: str, named: str = ""
) -> Callable[[str, Mapping[str, Any]], Iterator[Score]]:
    """Return the scores of a row, by patterns of columns; the run is the model."""

    def found(file: str, record: Mapping[str, Any]) -> Iterator[Score]:
        """Yield the scores of one row."""
        question = "\x1f".join(str(record[key]) for key in record if fnmatchcase(key, inputs))
        model = str(record.get(named) or Path(file).stem)
        for key, score in record.items():
            if fnmatchcase(key, scores) and isinstance(score, int | float | None):
                yield Score(question, key, model, file, score)

    return found


MLFLOW = Layout("mlflow", ("inputs */score",), battles=of_samples(_of_run("inputs", "*/score")))
LANGSMITH = Layout(
    "langsmith",
    ("input.* feedback.*", "inputs.* feedback.*"),
    battles=of_samples(_of_run("input*.*", "feedback.*", "experiment")),
)
