"""Voters: columns that say whether a person or a judge chose the winner of a battle."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgeline.io.outcome_codes import COUNT, by_value
from judgeline.suggest import ArgumentError

MOST_AGREED = 0.9
"""Share of decided battles above which a judge and people are asked to be two. In eight real sets
people agree with a judge on 66 to 86 %."""
FEWEST_DECIDED = 100
"""Decided battles from which on that share is looked at."""

_SAYS_WHO = {
    *("source", "annotator", "annotators", "annotator_type", "annotator_name", "annotator_model"),
    *("judged_by", "judge_type", "annotated_by", "labeled_by", "labelled_by", "decided_by"),
    *("rated_by", "evaluated_by", "voted_by", "winner_by", "labeler", "labeller", "rater"),
    *("rater_type", "evaluator", "evaluator_type", "evaluator_name", "voter", "voter_type"),
    *("vote_source", "vote_type", "label_source", "label_type", "winner_source", "verdict_source"),
    *("preference_source", "preference_type", "feedback_source", "feedback_type"),
}
"""Columns whose values say who decided on the winner."""
_OF_JUDGES = {
    *("judge_model", "judge_models", "judge_name", "judges", "jury", "jury_votes", "judge_votes"),
    *("majority_verdict", "jury_verdict", "llm_judge", "judge_llm", "evaluator_model"),
    *("judge_reasoning", "judge_explanation", "judge_rationale", "judge_response"),
    *("judge_output", "judge_prompt", "judge_confidence"),
}
"""Columns that a judge alone has; beside them a winner without other verdicts is the judge's."""
_MACHINES = {
    *("llm", "llms", "judge", "judges", "jury", "model", "models", "ai", "machine", "bot"),
    *("auto", "automatic", "automated", "autorater", "synthetic", "lm", "slm", "vlm"),
}
_PEOPLE = {
    *("human", "humans", "people", "person", "user", "users", "expert", "experts", "crowd"),
    *("crowdworker", "worker", "workers", "voter", "voters", "student", "author", "manual"),
}
_FAMILIES = re.compile(
    r"(chat)?gpt-?\d|gpt-|chatgpt|claude|gemini|gemma|llama|(mis|mix)tral|qwen|deepseek|grok|"
    r"command-r|prometheus|pandalm|auto-?j\b|judgelm|vicuna-\d|phi-\d|o[134](-|$)|kimi|glm-|"
    r"skywork|selene|nova-|ernie|text-davinci|palm-?2|(weighted_)?alpaca[_-]eval[_-]\w*gpt"
)


def folded(name: str) -> str:
    """Return the name of a column in small letters, with underscores for blanks and hyphens."""
    return re.sub(r"[\s-]+", "_", name.strip()).casefold()


def says_machine(value: Any) -> bool:
    """Return whether a text says that a judge, not a person, decided: llm-judge, gpt-4, auto."""
    if not isinstance(value, str):
        return False
    text = value.strip().casefold()
    words = {*re.split(r"[^a-z]+", text)}
    if words & _PEOPLE and not words & {"non", "not", "no", "llm", "ai"}:
        return False
    return bool(words & _MACHINES) or bool(_FAMILIES.match(text.rsplit("/", 1)[-1]))


def says_person(value: Any) -> bool:
    """Return whether a text says that a person decided: human, crowd-worker, expert 3."""
    return isinstance(value, str) and bool({*re.split(r"[^a-z]+", value.casefold())} & _PEOPLE)


def columns_of_voters(columns: Mapping[str, str], *, has_verdict: bool) -> list[str]:
    """Return the names of columns whose values may say who decided; `judge` beside no verdict."""
    known = _SAYS_WHO if has_verdict else _SAYS_WHO | {"judge"}
    return [name for name in columns if folded(name) in known]


def columns_of_judges(columns: Mapping[str, str]) -> list[str]:
    """Return the names of columns that a judge alone has."""
    return [name for name in columns if folded(name) in _OF_JUDGES]


def are_machines(values: pd.Series) -> NDArray[np.bool_]:
    """Return which values say that a judge decided; none if a value says neither judge nor person.

    A column of sources such as mt_bench and ai2_arc, or of people's names, is about something else,
    whatever one of its values looks like.
    """
    machine = by_value(values, says_machine)
    is_known = machine | by_value(values, says_person) | values.isna()
    return np.asarray(machine & bool(is_known.all()), dtype=bool)


def refusal(place: object, reason: str, winner: str, stated: Mapping[str, str]) -> ArgumentError:
    """Return the error on a winner that is no vote of people, with the two ways to state it."""
    others = {name: own for name, own in stated.items() if own != winner}
    ways = [{**others, name: winner} for name in ("judge_winner", "human_outcome")]
    return ArgumentError(
        f"{place}: {reason}, so that {winner!r} is no vote of people. If it is the judge's "
        f"verdict, state columns={ways[0]}; if people decided, state columns={ways[1]}",
        "columns",
    )


def question_of(
    vote: str, score: NDArray[np.float64], human: NDArray[np.float64], each: NDArray[np.float64]
) -> str:
    """Return the question whether votes are people's, where these and a judge agree too often.

    `each` says how many battles are alike; the text is empty where nothing is to be asked.
    """
    n_decided, agreed = agreement(score, human, each)
    if n_decided < FEWEST_DECIDED or agreed <= MOST_AGREED:
        return ""
    remedy = "judge_winner" if vote == "winner" else "judge_outcome"
    return (
        f"the judge and {vote} agree in {agreed:.1%} of {n_decided:,} decided battles, and people "
        f"rarely agree with a judge on more than {MOST_AGREED:.0%}: are these votes people's? If "
        f"{vote} is the judge's, state --columns {remedy}={vote}, and rate by votes of people"
    )


def agreement(
    score: NDArray[np.float64], human: NDArray[np.float64], each: NDArray[np.float64]
) -> tuple[int, float]:
    """Return the number of decided battles, and the share in which judge and people agree."""
    decided = np.isin(human, (0.0, 1.0)) & (score != 0)
    n_decided = int(each[decided].sum())
    agreed = each[decided & ((score > 0) == (human == 1))].sum()
    return n_decided, float(agreed / max(n_decided, 1))


def numbers_of(scored: pd.DataFrame) -> tuple[NDArray[np.float64], ...]:
    """Return score differences, votes and numbers of battles of scored battles."""
    score, human = (
        np.asarray(scored[name].to_numpy(dtype=float, na_value=np.nan))
        for name in ("score_difference", "human_outcome")
    )
    each = scored[COUNT].to_numpy(dtype=float) if COUNT in scored else np.ones(len(scored))
    return score, human, each
