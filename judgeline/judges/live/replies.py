"""From an endpoint's reply to an answer: a text with its value, or a class of failure."""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from judgeline.judges.forms.evidence import spelling
from judgeline.judges.forms.form import Form, Reading
from judgeline.judges.live.bodies import THOUGHTS
from judgeline.judges.live.errors import BrokenReplyError, MalformedReplyError, StatusError
from judgeline.judges.presentation import Answer, Presentation
from judgeline.verdict import RubricError, readable

R = TypeVar("R")

_MOST_TOKENS = 2**31 - 1

_ENDINGS = frozenset({"stop", "eos", "eos_token", "stop_sequence", "end_turn"})
"""What servers call an answer that came to its end."""

_TOOL_CALL = ("tool_call", "the judge called a tool instead of answering")
_WITHHELD = ("content_filter", None)
_FAILED_ENDS: dict[str, tuple[str, str | None]] = {
    **dict.fromkeys(("content_filter", "sensitive"), _WITHHELD),
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii"), _WITHHELD),
    "length": ("truncated", "the answer reached the limit of its length"),
    "tool_calls": _TOOL_CALL,
    "function_call": _TOOL_CALL,
}
"""Ends of answers that fail, each with its class of failure and the reason.

Gemini and Zhipu have names of their own for what a filter withheld.
"""

_BROKEN_ENDS = frozenset({"error", "network_error"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})


def read_reply(completion: Any, shown: Presentation, form: Form) -> Reading:
    """Return the reading of a chat completion; an unreadable, cut or copied one has a failure."""
    choice = require_message(completion)["choices"][0]
    text = readable(choice["message"].get("content") or "")
    failure, reason = _early_end(choice, text)
    value, place = None, 0
    if failure is None:
        try:
            value, place = form.parse(text), form.place(text) or 0
            form.require_own(value, shown)
        except RubricError as error:
            failure, reason = error.failure_class, str(error)
    answer = Answer(
        text or _refused(choice),
        failure,
        *tokens_of(completion),
        log_probabilities=_log_probabilities(choice, form.n_listed, text, place),
        reply_model=_name_in(completion, "model"),
        system_fingerprint=_name_in(completion, "system_fingerprint"),
        said=reason,
        reasoning=_thoughts(choice["message"]),
    )
    return Reading(shown, answer, failure or "ok", None if failure else value)


def require_message(completion: Any) -> Any:
    """Return a chat completion whose message is a text, made one if it comes in parts.

    An error in place of a completion is a StatusError, of the status that it names, else of 200;
    anything else a MalformedReplyError.
    """
    choices = member(completion, "choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if error := _error_in(completion) or member(choice, "error"):
        raise StatusError(_status_of(error), json.dumps({"error": error}), {})
    if choice is None:
        raise MalformedReplyError("the reply holds no choices", completion)
    message = member(choice, "message")
    if not isinstance(message, dict):
        raise MalformedReplyError("the reply holds no message", completion)
    if isinstance(message.get("content"), str | None):
        return completion
    message = {**message, **_joined(message["content"], completion)}
    return {**completion, "choices": [{**choice, "message": message}]}


def _error_in(completion: Any) -> Any:
    is_error = member(completion, "object") == "error"
    return completion if is_error else member(completion, "error")


def _status_of(error: Any) -> int:
    """Return the HTTP status that an error names; 200, that of its reply, where it names none."""
    named = (str(member(error, name)) for name in ("code", "status", "status_code"))
    return next((int(one) for one in named if re.fullmatch("[45][0-9]{2}", one)), 200)


def _joined(parts: Any, completion: Any) -> dict[str, str]:
    """Return the content that parts add up to, without thoughts; and the refusal if one is."""
    texts = []
    for part in parts if isinstance(parts, list) else [None]:
        if isinstance(refusal := member(part, "refusal"), str):
            return {"content": "", "refusal": refusal}
        is_thought = member(part, "type") in _THOUGHTS or member(part, "thought") is True
        text = "" if is_thought else part if isinstance(part, str) else member(part, "text")
        if not isinstance(text, str):
            raise MalformedReplyError("the message holds what is no text", completion)
        texts.append(text)
    return {"content": "".join(texts)}


def member(value: Any, name: str) -> Any:
    """Return a member of a JSON object of a reply; None where it is missing."""
    return value.get(name) if isinstance(value, dict) else None


def understood(reply: Any, read: Callable[[Any], R]) -> R:
    """Return a reply as `read`; MalformedReplyError for any body that it cannot read."""
    try:
        return read(reply)
    except (MalformedReplyError, StatusError):
        raise
    except Exception as error:  # a form that nobody thought of must not end a run
        what = f"{type(error).__name__}: {error}"
    raise MalformedReplyError(f"the reply cannot be read ({what})", reply)


def _early_end(choice: Any, text: str) -> tuple[str | None, str | None]:
    """Return the failure class and reason of an answer cut short or refused; None for others."""
    finish = choice.get("finish_reason")
    if (end := _FAILED_ENDS.get(str(finish).lower())) is not None:
        return end
    if _refused(choice) and not text:
        return "refusal", None
    if choice["message"].get("tool_calls") and not text:
        return _TOOL_CALL
    if str(finish) in _BROKEN_ENDS:
        raise BrokenReplyError("the provider broke the answer off")
    # a server may state by null that it does not know; leaving the field out states nothing
    is_ended = str(finish).lower() in _ENDINGS or (finish is None and "finish_reason" in choice)
    if not is_ended:
        return "truncated", f"it ended with {str(finish)[:40]!r}, not by itself"
    return None, None


def _refused(choice: Any) -> str | None:
    refusal = choice["message"].get("refusal")
    return readable(refusal) if isinstance(refusal, str) and refusal else None


def _thoughts(message: Any) -> str | None:
    """Return what the judge thought before its answer; None where no text of it was sent."""
    told = (message.get(name) for name in THOUGHTS)
    texts = (readable(one).strip() for one in told if isinstance(one, str))
    return next(filter(None, texts), None)


def _name_in(completion: Any, field: str) -> str | None:
    name = completion.get(field)
    return name if isinstance(name, str) and name else None


def tokens_of(completion: Any) -> tuple[int, int]:
    """Return the prompt and completion tokens that a reply states; zeros where it does not."""
    usage = member(completion, "usage")
    return _count(member(usage, "prompt_tokens")), _count(member(usage, "completion_tokens"))


def answer_bytes(completion: Any) -> int:
    """Return the bytes of the answer in a reply; 0 where there is none to read."""
    try:
        text = require_message(completion)["choices"][0]["message"].get("content")
    except (MalformedReplyError, StatusError):
        return 0
    return len((text or "").encode("utf-8", "surrogatepass"))


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else 0


def _log_probabilities(choice: Any, n_listed: int | None, text: str, place: int) -> str | None:
    """Return log-probabilities as JSON; None if they have another form, which fails no answer.

    What was thought before the answer is left out where `n_listed` is given, and alternatives of
    other tokens than so many from the value's place on.
    """
    content = member(choice.get("logprobs"), "content")
    if not isinstance(content, list) or not content:
        return None
    try:
        said = [_told(token) for token in content]
        spelled = None if n_listed is None else spelling([word for word, _ in said], text)
        start = first = 0
        if spelled is not None:
            start, (first, _) = spelled.span.start, spelled.token_at(place)
        kept = range(first, len(content) if n_listed is None else first + n_listed)
        told = [
            [*one, [_told(top) for top in token.get("top_logprobs") or [] if n in kept]]
            for n, (one, token) in enumerate(zip(said, content, strict=True))
        ]
        return json.dumps(told[start:], allow_nan=False)
    except (AttributeError, TypeError, ValueError):
        return None


def _told(token: Any) -> tuple[str, float]:
    word, log_prob = member(token, "token"), member(token, "logprob")
    if not isinstance(word, str) or not isinstance(log_prob, int | float):
        raise TypeError("no log-probability of a token")
    return readable(word), log_prob
