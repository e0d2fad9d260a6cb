"""From what an endpoint replied to an answer: the scores' text, or a class of failure."""

import json
from typing import Any, NamedTuple

from judgeline.rubric import RubricError, parse_answer, require_own_scores
from resources.judges.judge import Answer, Presentation
from resources.judges.served.prompt import readable


class Reply(NamedTuple):
    """An answer, and why it cannot be read if it cannot."""

    answer: Answer
    reason: str | None


class MalformedReplyError(Exception):
    """A body that is no chat completion: half a reply, or another program's; worth a retry."""


def read_reply(completion: Any, shown: Presentation) -> Reply:
    """Return what a chat completion says about a presentation.

    Only the message that the judge wrote is read. Scores that stand in the presented texts are
    not its own.

    Raises
    ------
    MalformedReplyError
        If there is no message in it.
    """
    choice = require_message(completion).choices[0]
    text = readable(choice.message.content or "")
    failure, reason = _failure(choice, text, shown)
    answer = Answer(
        text or _refused(choice),
        failure,
        *tokens_of(completion),
        log_probabilities=_log_probabilities(choice),
    )
    return Reply(answer, reason)


def require_message(completion: Any) -> Any:
    """Return a chat completion that holds a message; MalformedReplyError for anything else."""
    choices = getattr(completion, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise MalformedReplyError("the reply holds no choices")
    message = getattr(choices[0], "message", None)
    if message is None or not isinstance(message.content, str | None):
        raise MalformedReplyError("the reply holds no message of text")
    return completion


def _failure(choice: Any, text: str, shown: Presentation) -> tuple[str | None, str | None]:
    if choice.finish_reason == "content_filter":
        return "content_filter", None
    if choice.finish_reason == "length":
        return "truncated", None
    if _refused(choice) and not text:
        return "refusal", None
    try:
        rubric = parse_answer(text)
        one, two = shown.first_completion, shown.second_completion
        require_own_scores(rubric, shown.instruction + "\n" + one + two + one)
    except RubricError as error:
        return error.failure_class, str(error)
    return None, None


def _refused(choice: Any) -> str | None:
    refusal = getattr(choice.message, "refusal", None)
    return readable(refusal) if isinstance(refusal, str) and refusal else None


def tokens_of(completion: Any) -> tuple[int, int]:
    """Return the prompt and completion tokens that a reply states; zeros where it does not."""
    usage = getattr(completion, "usage", None)
    asked, said = (getattr(usage, f"{part}_tokens", None) for part in ("prompt", "completion"))
    return asked or 0, said or 0


def _log_probabilities(choice: Any) -> str | None:
    content = getattr(getattr(choice, "logprobs", None), "content", None)
    if not content:
        return None
    return json.dumps(
        [
            [token.token, token.logprob, [[top.token, top.logprob] for top in token.top_logprobs]]
            for token in content
        ]
    )
