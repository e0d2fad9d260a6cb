"""Remedies for failed answers, by class of failure and by the server's words."""

import re
from collections import Counter

import pandas as pd

MOST_REASONS = 3
"""Reasons that are shown of many."""

REMEDIES = {
    "parse_error": "look at `answer` of these rows: a simpler prompt, or 'structured_output: on'; "
    "where the server was mended, run with --retry parse_error",
    "echo": "the marks, or a value in the judge's 'pattern', stand in a text under judgement: look "
    "at these battles for instructions to the judge; a 'pattern' that few texts hold, such as "
    "'[RESULT] {value}', loses fewer",
    "refusal": "the judge declined: change the prompt, or ask another judge",
    "truncated": "raise 'decoding.max_tokens' (thoughts count too), or lower 'reasoning_effort'",
    "context_overflow": "ask a judge with a longer context, or shorten the prompt",
    "content_filter": "the provider withheld the answer: change its filter, then run with --retry "
    "content_filter, or change the provider",
    "tool_call": "the endpoint offers the judge tools: turn them off there, then run with "
    "--retry tool_call, or in 'extra_body'",
    "other_model": "correct 'model' to the name that the server gives, turn off its fallbacks, or "
    "loosen 'expect_model', then run with --retry other_model",
    "rejected": "the endpoint turns the request down: correct the judge's 'model', 'base_url' or "
    "options in judges.yaml, then run with --retry rejected",
    "unreadable_reply": "no chat completion came: correct 'base_url', or what stands before the "
    "endpoint, then run with --retry unreadable_reply",
}
_UNREACHED = "see whether the endpoint is up, then run again: only these are asked"
_UNFIT = "correct the judge's 'model', 'base_url' or options in judges.yaml, then run again"
_LOCKED = "check the key in the variable that 'api_key_env' names, its rights and its credit"

_STATUS = re.compile(r"HTTP (\d{3})\b")
_MAY_PASS = ("408", "409", "425", "429")


def remedy_text(failure: str, said: str) -> str:
    """Return the remedy of a failure, by its class and the server's words."""
    if may_pass(failure, said):
        return _UNREACHED
    if failure in ("transport", "rejected") and _status(said) in ("401", "402", "403"):
        return _LOCKED
    other = _UNFIT if failure == "transport" else "look at `answer` of these rows"
    return REMEDIES.get(failure, other)


def may_pass(failure: str, said: str) -> bool:
    """Return whether the same request may succeed later without a change by a person."""
    status = _status(said)
    return failure == "transport" and (status[:1] not in ("3", "4") or status in _MAY_PASS)


def reasons_of(failed: pd.DataFrame) -> Counter[tuple[str, str]]:
    """Return how many failed verdicts there are of each class and the server's words."""
    words = failed.reindex(columns=["status", "said"]).astype("str").fillna("")
    return Counter(zip(words["status"], words["said"], strict=True))


def remedies_text(reasons: Counter[tuple[str, str]]) -> str:
    """Return the commonest reasons of failures, each with its remedy."""
    parts = [
        f"{n:,} {failure}{f' ({said})' if said else ''}: {remedy_text(failure, said)}"
        for (failure, said), n in reasons.most_common(MOST_REASONS)
    ]
    return "; ".join(parts) + "." if parts else "Nothing was asked."


def _status(said: str) -> str:
    found = _STATUS.match(said)
    return found[1] if found else ""
