"""Ledger of a judge: cost and failures, printed while it runs and recorded at the end."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pandas as pd

from judgeline.report import shortened
from resources.judges.buying import Account
from resources.judges.judge import Judge
from resources.judges.live.fields import Price
from resources.judges.remedies import MOST_REASONS

_SHOWN = 100
_MOST_MODELS = 5


class Ledger:
    """Words and entries about the account of one judge."""

    def __init__(self, slug: str, price: Price | None) -> None:
        self._slug, self._price = slug, price

    def told(self, account: Account) -> str:
        """Return how far a judge is, in a line: rate, time left, failures and what was spent."""
        done = account.n_resumed + account.n_asked
        parts = [f"{self._slug} answered {done:,} of {account.n_calls:,}"]
        if account.seconds > 0:
            rate = account.n_asked / account.seconds
            left = (account.n_needed - account.n_asked) / rate
            parts += [f"{rate:,.1f}/s", f"{_duration(left)} left"]
        if n_failed := account.failed.total():
            parts.append(f"{n_failed:,} failed{_mostly(account)}")
        tokens = account.prompt_tokens + account.completion_tokens
        counted = account.charged.prompt_tokens + account.charged.completion_tokens
        more = f" ({counted:,} counted)" if counted > tokens else ""
        parts.append(f"{tokens:,} tokens{more}{self._money(account)}")
        return ", ".join(parts)

    def entries(self, account: Account, judge: Judge) -> dict[str, Any]:
        """Return the ledger of a finished annotation: calls, tokens, money, failures, endpoint."""
        entries = {
            "n_calls": account.n_calls,
            "n_resumed": account.n_resumed,
            "n_asked": account.n_asked,
            "n_retried": account.n_retried,
            "prompt_tokens_bought": account.prompt_tokens,
            "completion_tokens_bought": account.completion_tokens,
            "tokens_charged": account.charged.prompt_tokens + account.charged.completion_tokens,
            "seconds_asking": round(account.seconds, 3),
            "failures": dict(account.failed),
            "failure_reasons": [
                {"status": status, "said": said, "answers": n}
                for (status, said), n in account.reasons.most_common(MOST_REASONS)
            ],
            "damaged_files": [*account.damaged, *account.unfinished],
        }
        if self._price is not None:
            entries["spent"] = round(account.charged.money, 6)
            entries["currency"] = self._price.currency
        if account.n_asked:
            entries["endpoint"] = _endpoint(judge)
        return entries

    def _money(self, account: Account) -> str:
        if self._price is None:
            return ""
        return f", {account.charged.money:,.4f} {self._price.currency}"


def models_named(answers: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return the commonest models and versions that answers name, with how many name each."""
    named = answers.reindex(columns=["reply_model", "system_fingerprint"])
    return {
        name: named[name].dropna().value_counts().head(_MOST_MODELS).to_dict() for name in named
    }


def several_models_message(named: Mapping[str, Mapping[str, int]]) -> str:
    """Return a warning where answers of one judge name several models or versions, or nothing."""
    several = [
        f"{name} ({', '.join(f'{value} {n:,}' for value, n in counts.items())})"
        for name, counts in named.items()
        if len(counts) > 1
    ]
    if not several:
        return ""
    return (
        f"The answers of this judge differ in {' and '.join(several)}: an alias moved, or a router "
        "asked another model. Name a dated model in config/judges.yaml, or set 'expect_model' to "
        "prefix or exact."
    )


def _mostly(account: Account) -> str:
    """Return the commonest words about failures, where a server had any."""
    spoken = Counter({said: n for (_, said), n in account.reasons.items() if said})
    return f" (mostly: {shortened(spoken.most_common(1)[0][0], _SHOWN)})" if spoken else ""


def _endpoint(judge: Judge) -> Mapping[str, Any]:
    """Return the metadata of a judge's endpoint, and counts of its requests by fate."""
    return {**getattr(judge, "metadata", {}), **getattr(judge, "counts", {})}


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
