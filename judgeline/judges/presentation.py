"""Presentations of battles to a judge, and its answers."""

from dataclasses import dataclass

import pandas as pd

ORDERS: tuple[str, str] = ("AB", "BA")
_TEXTS = ("instruction", "completion_a", "completion_b")


@dataclass(frozen=True, slots=True)
class Presentation:
    """One question with two completions in the order in which the judge sees them.

    Order ``AB`` shows model A's completion first; `replicate` counts repeated runs from 0. The
    model names are for simulations. `question_id` is of presentations with one completion, whose
    `battle_id` is the completion's.
    """

    battle_id: str
    order: str
    replicate: int
    instruction: str
    first_completion: str
    second_completion: str
    first_model: str
    second_model: str
    question_id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Reply to a call: text, or a failure class, or the text of a failed answer; and tokens.

    `log_probabilities` is JSON, ``[[token, logprob, [[token, logprob], ...]], ...]``. The server
    named `reply_model` and `system_fingerprint`; `said` is its reason for a failure, without keys;
    `reasoning` what a judge that thinks thought before its answer.
    """

    text: str | None
    failure: str | None
    prompt_tokens: int
    completion_tokens: int
    log_probabilities: str | None = None
    reply_model: str | None = None
    system_fingerprint: str | None = None
    said: str | None = None
    reasoning: str | None = None


def present(battles: pd.DataFrame, n_replicates: int) -> list[Presentation]:
    """Return every presentation of battles, in their order: replicates, then both orders."""
    require_texts(battles)
    columns = ["battle_id", "instruction", "completion_a", "completion_b", "model_a", "model_b"]
    once: dict[str, str] = {}  # equal texts are one object
    return [
        Presentation(battle, order, replicate, question, *texts, *models)
        for battle, question, text_a, text_b, model_a, model_b in zip(
            *([once.setdefault(text, text) for text in battles[name].tolist()] for name in columns),
            strict=True,
        )
        for replicate in range(n_replicates)
        for order, texts, models in (
            ("AB", (text_a, text_b), (model_a, model_b)),
            ("BA", (text_b, text_a), (model_b, model_a)),
        )
    ]


def require_texts(battles: pd.DataFrame) -> None:
    """Raise ValueError if a battle lacks its question or a completion."""
    silent = battles[list(_TEXTS)].isna().any(axis=1)
    if silent.any():
        battle = battles.loc[silent, "battle_id"].iloc[0]
        raise ValueError(
            f"{int(silent.sum())} of {len(battles)} battles have no text to judge, the first is "
            f"{battle!r}; use a judge of kind 'recorded', or a corpus that publishes its texts"
        )
