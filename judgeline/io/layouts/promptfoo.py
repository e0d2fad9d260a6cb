"""Results of promptfoo (``promptfoo eval --output NAME.json``): a score by assertion and output.

promptfoo/promptfoo, `src/types/index.ts`: `OutputFile`, `EvaluateSummaryV3`, `GradingResult`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from judgeline.io.layout import Given, Layout
from judgeline.io.samples import Score, paired

_VERSION = 3
_PEOPLE = "human"  # a thumb of the viewer, which is no judge's

Graded = Mapping[str, list[float | None]]
"""Scores of one output by assertion."""


def _battles(given: Given) -> pd.DataFrame:
    table = given.read(["evalId", "results"], ["evalId"])
    rows = table[["file", "evalId", "results"]].itertuples(index=False)
    scores = (score for row in rows for score in _scores(*row))
    remedy = "compare several providers or prompts in one evaluation"
    return paired(scores, f"the results in {given.path}", remedy)


def _scores(file: str, evaluation: Any, results: Any) -> Iterator[Score]:
    """Yield the scores of an evaluation; an output lacks one by each assertion it was not given."""
    tests: dict[int, list[tuple[str, Graded]]] = defaultdict(list)
    outputs = _outputs(file, results)
    columns = {(_provider(one), one["promptIdx"]) for one in outputs}
    of_several = [provider for provider, _ in columns]
    for one in outputs:
        name = _provider(one)
        if of_several.count(name) > 1:  # prompts; the viewer numbers its columns from 1
            name = f"{name}, column {one['promptIdx'] + 1}"
        tests[one["testIdx"]].append((name, _graded(one)))
    for test, answers in tests.items():
        for assertion in dict.fromkeys(name for _, graded in answers for name in graded):
            for model, graded in answers:
                for score in graded.get(assertion, [None]):
                    yield Score(f"{evaluation}/{test}", assertion, model, file, score)


def _outputs(file: str, results: Any) -> list[dict[str, Any]]:
    version = results.get("version") if isinstance(results, Mapping) else None
    if version != _VERSION:
        raise ValueError(
            f"{file} holds results of promptfoo of version {version!r}, expected {_VERSION}: write "
            "it again by promptfoo export eval ID --output NAME.json"
        )
    return list(results["results"])


def _provider(output: Mapping[str, Any]) -> str:
    provider = output["provider"]
    return str(provider.get("label") or provider["id"])


def _graded(output: Mapping[str, Any]) -> Graded:
    """Return scores by the metric, or the type, of an assertion; None where its grader failed."""
    found: dict[str, list[float | None]] = defaultdict(list)
    for part in (output.get("gradingResult") or {}).get("componentResults") or []:
        assertion = part.get("assertion") or {}
        if (kind := assertion.get("type", _PEOPLE)) != _PEOPLE:
            failed = (part.get("metadata") or {}).get("graderError")
            found[assertion.get("metric") or kind].append(None if failed else part["score"])
    return found


PROMPTFOO = Layout("promptfoo", ("evalId results config",), battles=_battles)
