"""Gets answers from the store where it has them, and buys the others, within a budget."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

import pandas as pd

from resources.judges.calls import call_identity, call_parts, judge_key, read_answer
from resources.judges.judge import Answer, Judge, Presentation
from resources.verdict_store.store import Scan, VerdictStore
from resources.verdict_store.writing import VerdictWriter

RETRIED = frozenset({"transport", "truncated", "parse_error"})
"""Failures that another attempt may mend. A refusal, a filter or a text that is too long would
only be paid for again."""

_MANY_SHARDS = 64

Progress = Callable[[int, int], None]


class BudgetError(RuntimeError):
    """The budget ran out before every call was answered; what was bought is stored."""


class Budget:
    """A hard cap on answers asked for, shared by everything that draws on it.

    Parameters
    ----------
    limit : int or None
        Most answers; None for no cap.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._spent = 0
        self._lock = threading.Lock()

    def take(self, wanted: int) -> int:
        """Return how many of the wanted answers may be asked for, and count them as asked."""
        with self._lock:
            left = wanted if self.limit is None else max(self.limit - self._spent, 0)
            granted = min(wanted, left)
            self._spent += granted
            return granted


@dataclass
class Account:
    """What became of the calls of one annotation.

    Attributes
    ----------
    n_calls : int
        Different calls; battles with equal texts share one.
    n_resumed : int
        Answered from the store.
    n_asked, n_retried : int
        Asked of the judge, and those of them that had failed before.
    failed : Counter
        Calls without a usable answer, by failure class.
    damaged, unfinished : tuple of str
        Files in the store that hold no answers: damaged, or left by a writer that was killed.
    """

    n_calls: int = 0
    n_resumed: int = 0
    n_asked: int = 0
    n_retried: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    damaged: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


@dataclass
class Buyer:
    """Answers presentations from a store, and through it; its account says what of the last ones.

    Attributes
    ----------
    store : VerdictStore
        Where answers are looked up and kept.
    budget : Budget
        Cap on what is asked for.
    retried : collection of str
        Failure classes that are asked for again.
    """

    store: VerdictStore
    budget: Budget = field(default_factory=Budget)
    retried: Collection[str] = RETRIED
    account: Account = field(default_factory=Account)

    def needed(self, judge: Judge, presentations: Sequence[Presentation]) -> tuple[int, int]:
        """Return how many calls would be made, and how many the store answers; nothing is asked."""
        known = self.store.statuses(judge_key(judge))
        calls = {call_identity(judge, one) for one in presentations}
        n_needed = sum(known.get(call) in (None, *self.retried) for call in calls)
        return n_needed, len(calls) - n_needed

    def answers(
        self,
        judge: Judge,
        presentations: Sequence[Presentation],
        *,
        slug: str,
        on_progress: Progress | None = None,
    ) -> Iterator[Answer]:
        """Yield an answer per presentation, in their order, once all of them are there.

        Each call is asked for at most once, and stored within seconds of its answer.

        Raises
        ------
        BudgetError
            If the budget does not cover what is missing; it is spent to the end first.
        RuntimeError
            If the judge does not answer every presentation once.
        """
        identities = [call_identity(judge, one) for one in presentations]
        calls = dict(zip(reversed(identities), reversed(presentations), strict=True))
        calls = {identity: calls[identity] for identity in dict.fromkeys(identities)}
        found, scan = self.store.find(judge_key(judge), calls)
        known = dict(zip(found["identity"], found["status"], strict=True))
        needed = [i for i in calls if known.get(i) in (None, *self.retried)]
        self.account = _opened(scan, calls, needed, known)
        granted = self.budget.take(len(needed))
        asked = {identity: calls[identity] for identity in needed[:granted]}
        answered = _stored_answers(found)
        answered |= self._ask(judge, asked, slug, on_progress)
        self._require_all(slug, len(needed) - granted)
        self._close(answered)
        return (answered[identity] for identity in identities)

    def _ask(
        self, judge: Judge, asked: dict[str, Presentation], slug: str, on_progress: Progress | None
    ) -> dict[str, Answer]:
        answers: dict[str, Answer] = {}
        account = self.account
        key = judge_key(judge)
        with VerdictWriter(self.store, key) as writer:
            pairs = paired(judge, list(asked.values()))
            for (presentation, answer), identity in zip(pairs, asked, strict=True):
                answers[identity] = _storable(answer)
                row = _row(judge, presentation, answers[identity], slug)
                writer.add({"identity": identity, **row})
                account.n_asked += 1
                if on_progress:
                    on_progress(account.n_resumed + account.n_asked, account.n_calls)
        self.store.compact(key, min_shards=_MANY_SHARDS)
        return answers

    def _require_all(self, slug: str, n_missing: int) -> None:
        if n_missing:
            account = self.account
            raise BudgetError(
                f"the budget of {self.budget.limit:,} calls is spent: {n_missing:,} of the "
                f"{account.n_calls:,} calls to judge {slug!r} are missing ({account.n_asked:,} "
                f"were made now, {account.n_resumed:,} answers were there). Every answer bought is "
                "kept; run the same again with another --budget and only the rest is asked for"
            )

    def _close(self, answered: dict[str, Answer]) -> None:
        statuses = Counter(read_answer(answer)[0] for answer in answered.values())
        del statuses["ok"]
        self.account.failed = statuses


def paired(
    judge: Judge, presentations: Sequence[Presentation]
) -> Iterator[tuple[Presentation, Answer]]:
    """Yield each presentation with its answer, as they come.

    Raises
    ------
    RuntimeError
        If the judge does not answer every presentation once.
    """
    for presentation, answer in zip_longest(presentations, judge.answer(presentations)):
        if presentation is None or answer is None:
            raise RuntimeError(
                f"the judge gave {'more' if presentation is None else 'fewer'} answers than the "
                f"{len(presentations)} presentations it was shown"
            )
        yield presentation, answer


def _opened(
    scan: Scan, calls: Collection[str], needed: Collection[str], known: Collection[str]
) -> Account:
    return Account(
        n_calls=len(calls),
        n_resumed=len(calls) - len(needed),
        n_retried=sum(identity in known for identity in needed),
        damaged=scan.damaged,
        unfinished=scan.unfinished,
    )


def _storable(answer: Answer) -> Answer:
    """Return an answer without the halves of characters that JSON can smuggle into a text."""
    if answer.text is None or answer.text.isascii():
        return answer
    whole = answer.text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return replace(answer, text=whole)


def _row(judge: Judge, presentation: Presentation, answer: Answer, slug: str) -> dict[str, Any]:
    return {
        "status": read_answer(answer)[0],
        "answered_at": datetime.now(UTC),
        "answer": answer.text,
        "failure": answer.failure,
        "log_probabilities": answer.log_probabilities,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "judge": slug,
        "battle_id": presentation.battle_id,
        "order": presentation.order,
        "replicate": presentation.replicate,
        "parts": json.dumps(call_parts(judge, presentation), sort_keys=True),
    }


def _stored_answers(found: pd.DataFrame) -> dict[str, Answer]:
    columns = ("answer", "failure", "prompt_tokens", "completion_tokens", "log_probabilities")
    texts = ("answer", "failure", "log_probabilities")
    values = {name: found[name].astype(object) for name in columns}
    for name in texts:
        values[name] = values[name].where(found[name].notna(), None)
    rows = zip(*(values[name] for name in columns), strict=True)
    return {identity: Answer(*row) for identity, row in zip(found["identity"], rows, strict=True)}
