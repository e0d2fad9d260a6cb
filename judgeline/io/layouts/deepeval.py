"""Test runs of DeepEval: a score by metric and test case, a model a file.

confident-ai/deepeval, `deepeval/test_run/test_run.py`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgeline.io.layout import Layout
from judgeline.io.samples import Score, of_samples


def _scores(file: str, record: Mapping[str, Any]) -> Iterator[Score]:
    """Yield the scores of a run, or of one of its cases; a metric that failed has none."""
    named = (record.get("hyperparameters") or {}).get("model")
    for case in record.get("testCases") or [record]:
        for metric in case.get("metricsData") or []:
            score = None if metric.get("error") else metric.get("score")
            question = str(case.get("input") or case["name"])
            yield Score(question, metric["name"], str(named or Path(file).stem), file, score)


DEEPEVAL = Layout("deepeval", ("testCases", "metricsData"), battles=of_samples(_scores))
