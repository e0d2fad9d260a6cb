"""Results of promptfoo (``promptfoo eval --output NAME.json``): a score by assertion and output.

promptfoo/promptfoo, `src/types/index.ts`: `OutputFile`, `EvaluateSummaryV3`, `GradingResult`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from judgeline.io.layout import Given, Layout
from judgeline.io.samples import OneModelError, Score, paired

_VERSION = 3
_PEOPLE = "human"  # a thumb of the viewer, which is no judge's

Outputs = list[dict[str, Any]]
Graded = Mapping[str, list[float | None]]
"""Scores of one output by assertion."""


def _battles(given: Given) -> pd.DataFrame:
    table = given.read(["evalId", "results"], ["evalId"])
    rows = table[["file", "evalId", "results"]].itertuples(index=False)
    outputs = [(evaluation, file, _outputs(file, results)) for file, evaluation, results in rows]
    scores = (score for row in outputs for score in _scores(*row))
    remedy = "compare several providers or prompts in one evaluation"
    battles = paired(scores, f"the results in {given.path}", remedy)
    rated = [one for row in outputs for one in _scores(*row, people=True)]
    thumbs = [one for one in rated if one.score is not None]
    battles = _voted(battles, thumbs)
    every = [own for _, _, own in outputs]
    battles.attrs["notes"] = [note for note in (_repeats(every), _thumbs(thumbs)) if note]
    return battles


def _voted(battles: pd.DataFrame, thumbs: Sequence[Score]) -> pd.DataFrame:
    """Return battles with a vote where people rated both outputs: alike they tie.

    Ratings that two files of one evaluation have alike count once. ValueError if they differ.
    """
    by_output: dict[tuple[str, str], dict[str, list[Score]]] = defaultdict(dict)
    for one in thumbs:
        by_output[one.question_id, one.model].setdefault(one.file, []).append(one)
    try:
        votes = paired(chain.from_iterable(map(_rated_once, by_output.values())), "people", "")
    except OneModelError:
        return battles
    ahead = np.sign(votes["score_a"] - votes["score_b"])
    sides = ["question_id", "model_a", "model_b"]
    votes = votes.assign(human_outcome=(1 + ahead) / 2)[[*sides, "human_outcome"]]
    return battles.merge(votes, on=sides, how="left")


def _rated_once(by_file: Mapping[str, list[Score]]) -> list[Score]:
    """Return the ratings of one output by one of the files that have any, all being alike."""
    (name, first), *others = by_file.items()
    for other, ratings in others:
        if Counter(one.score for one in ratings) != Counter(one.score for one in first):
            raise ValueError(
                f"{name} and {other} differ in people's ratings of model {first[0].model!r} on "
                f"test {first[0].question_id}: move the older export out of the folder"
            )
    return first


def _scores(
    evaluation: Any, file: str, outputs: Outputs, *, people: bool = False
) -> Iterator[Score]:
    """Yield the scores of an evaluation; an output lacks one by each assertion it was not given.

    Those by `people` are their thumbs, 1 or 0. Tests of equal variables, as ``--repeat`` makes
    them, are one question.
    """
    tests: dict[int, list[tuple[str, Graded]]] = defaultdict(list)
    question = _questions(outputs)
    columns = {(_provider(one), one["promptIdx"]) for one in outputs}
    of_several = [provider for provider, _ in columns]
    for one in outputs:
        name = _provider(one)
        if of_several.count(name) > 1:  # prompts; the viewer numbers its columns from 1
            name = f"{name}, column {one['promptIdx'] + 1}"
        tests[question[one["testIdx"]]].append((name, _graded(one, people=people)))
    for test, answers in tests.items():
        for assertion in dict.fromkeys(name for _, graded in answers for name in graded):
            for model, graded in answers:
                for score in graded.get(assertion, [None]):
                    yield Score(f"{evaluation}/{test}", assertion, model, file, score)


def _questions(outputs: Outputs) -> dict[int, int]:
    """Return, by each test, the first one that has the same variables."""
    first: dict[str, int] = {}
    found = {}
    for one in sorted(outputs, key=lambda output: output["testIdx"]):
        test = one["testIdx"]
        asked = json.dumps(one["vars"], sort_keys=True) if "vars" in one else f"test {test}"
        found[test] = first.setdefault(asked, test)
    return found


def _repeats(every: Sequence[Outputs]) -> str:
    """Return how many tests repeat an earlier one of their evaluation."""
    pairs = [pair for outputs in every for pair in _questions(outputs).items()]
    count = sum(test != first for test, first in pairs)
    text = (
        f"{count:,} of {len(pairs):,} tests have the variables of an earlier one: each is that "
        "question again, and a model's scores on it are averaged"
    )
    return text * bool(count)


def _thumbs(thumbs: Sequence[Score]) -> str:
    """Return how many outputs people have rated in the viewer, those of several files once."""
    by_file = Counter((one.question_id, one.model, one.file) for one in thumbs)
    once = {(question, model): n for (question, model, _), n in by_file.items()}
    count = sum(once.values())
    text = (
        f"{count:,} outputs have a person's rating (type 'human'): two on one test are a vote for "
        "the output that passed, or a tie, and one alone is none. As labels beside the judge's "
        "pass or fail, such ratings give pass rates: judgeline rates"
    )
    return text * bool(count)


def _outputs(file: str, results: Any) -> Outputs:
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


def _graded(output: Mapping[str, Any], *, people: bool) -> Graded:
    """Return scores by the metric, or the type, of an assertion; None where its grader failed."""
    if people:
        thumbs: list[float | None] = [float(part["pass"]) for part in _parts(output, people=True)]
        return {_PEOPLE: thumbs} if thumbs else {}
    found: dict[str, list[float | None]] = defaultdict(list)
    for part in _parts(output, people=False):
        assertion = part["assertion"]
        failed = (part.get("metadata") or {}).get("graderError")
        name = assertion.get("metric") or assertion["type"]
        found[name].append(None if failed else part["score"])
    return found


def _parts(output: Mapping[str, Any], *, people: bool) -> list[Mapping[str, Any]]:
    """Return the graded parts of an output with a type: those by people, or all others."""
    parts = (output.get("gradingResult") or {}).get("componentResults") or []
    kinds = (((part.get("assertion") or {}).get("type"), part) for part in parts)
    return [part for kind, part in kinds if kind and (kind == _PEOPLE) == people]


PROMPTFOO = Layout("promptfoo", ("evalId results config",), battles=_battles, score="score")
