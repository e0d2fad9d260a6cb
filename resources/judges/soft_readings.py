"""What answers say, and how probable it was: by their tokens, or by how often it was said."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from judgeline.trust import ScoreDistribution, expected_score
from judgeline.verdict import LETTERS
from resources.judges.forms.choice import ChoiceForm
from resources.judges.forms.form import read_answer
from resources.judges.forms.score import ScoreForm
from resources.judges.judge import Answer, Presentation
from resources.judges.soft_evidence import (
    Told,
    choice_of,
    from_value,
    perplexity_of,
    read_tokens,
    score_of,
)

TARGET_SCALE: tuple[float, float] = (1.0, 10.0)
"""Scale of expected scores: that of the rubric, in points."""


class Run(NamedTuple):
    """One answer: what it was shown, its status, and what it says if it says anything."""

    shown: Presentation
    answer: Answer
    status: str
    said: Any
    told: Told | None


def read_runs(
    shown: Sequence[Presentation], given: Iterable[Answer], form: ScoreForm | ChoiceForm
) -> list[Run]:
    """Return what answers say, each with what it was shown."""
    runs = []
    for one, answer in zip(shown, given, strict=True):
        status, said = read_answer(answer, form)
        told = read_tokens(answer.log_probabilities, answer.text) if status == "ok" else None
        told = from_value(told, form.key)
        runs.append(Run(one, answer, status, said, told))
    return runs


_NO_SCORE = (math.nan, math.nan, "none")


def told_scores(read: Sequence[Run], form: ScoreForm) -> list[tuple[float, float, str]]:
    """Return expected score, what is covered of it and the evidence, by log-probabilities."""
    found = []
    for run in read:
        try:
            if run.told is None:
                raise ValueError("no log-probabilities came with this answer")
            likely = score_of(
                run.told,
                run.said,
                scale=form.scale,
                declared_digits=form.options.digits_per_token,
            )
            mean = expected_score(likely, target=TARGET_SCALE)
            found.append((mean, likely.covered, "log-probabilities"))
        except ValueError:  # nothing is filled in
            found.append(_NO_SCORE)
    return found


def sampled_scores(read: Sequence[Run], form: ScoreForm) -> list[tuple[float, float, str]]:
    """Return the same by how often each number was said of a completion."""
    asked, said = _counts(read)
    means = {key: _mean_of(counts, asked[key], form.scale) for key, counts in said.items()}
    return [
        (*means[_question(run)], "samples") if run.status == "ok" else _NO_SCORE for run in read
    ]


def _mean_of(counts: Counter[Any], n_asked: int, scale: tuple[int, int]) -> tuple[float, float]:
    values = np.array(sorted(counts), dtype=np.int64)
    shares = np.array([counts[int(value)] / n_asked for value in values])
    covered = float(shares.sum())
    likely = ScoreDistribution(scale, values, shares, covered, 0.0)
    return expected_score(likely, target=TARGET_SCALE), covered


_Question = tuple[str, str]


def _question(run: Run) -> _Question:
    """Return what all runs of one presentation have in common."""
    return run.shown.battle_id, run.shown.order


def _counts(read: Sequence[Run]) -> tuple[Counter[_Question], dict[_Question, Counter[Any]]]:
    """Return how often each question was asked, and what was said to it how often."""
    asked = Counter(map(_question, read))
    said: dict[_Question, Counter[Any]] = {}
    for run in read:
        if run.status == "ok":
            said.setdefault(_question(run), Counter())[run.said] += 1
    return asked, said


Chances = tuple[float, float, float]
"""Of the completion shown first, a tie, and the one shown second."""

_Choice = tuple[Chances, float, float | None, str]
_NO_CHANCES: Chances = (math.nan, math.nan, math.nan)


def told_choices(read: Sequence[Run]) -> list[_Choice]:
    """Return chances by position, what is covered, the perplexity and the evidence."""
    found: list[_Choice] = []
    for run in read:
        perplexity = perplexity_of(run.told)
        try:
            if run.told is None:
                raise ValueError("no log-probabilities came with this answer")
            likely = choice_of(run.told, run.said)
            first, tie, second = likely.probabilities.tolist()
            found.append(((first, tie, second), likely.covered, perplexity, "log-probabilities"))
        except ValueError:  # nothing is filled in
            found.append((_NO_CHANCES, math.nan, perplexity, "none"))
    return found


def sampled_choices(read: Sequence[Run]) -> list[_Choice]:
    """Return the same by how often each letter was said of a battle in one order."""
    asked, said = _counts(read)
    found: list[_Choice] = []
    for run in read:
        if run.status != "ok":
            found.append((_NO_CHANCES, math.nan, None, "none"))
            continue
        letters = said[_question(run)]
        first, tie, second = (letters[letter] / letters.total() for letter in LETTERS)
        covered = letters.total() / asked[_question(run)]
        found.append(((first, tie, second), covered, None, "samples"))
    return found
