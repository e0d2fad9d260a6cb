"""Gets answers from the store where it has them, and buys the others, within a budget."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd

from judgeline.judges.budget import Budget, Cost, JointBudget, Price
from judgeline.judges.forms.form import Form, Reading, read
from judgeline.judges.judge import Calls, Judge, judge_key
from judgeline.judges.live.fields import is_named
from judgeline.judges.presentation import Answer, Presentation
from judgeline.judges.store.verdicts import VerdictStore
from judgeline.judges.store.writing import VerdictWriter
from judgeline.report import shortened
from judgeline.suggest import ArgumentError
from judgeline.tables.judging import FAILURES
from judgeline.tables.remedies import MOST_REASONS, remedies_text

RETRIED = frozenset({"transport"})
"""Failures that another attempt may mend, and that cost little."""

RETRIED_ONCE = frozenset({"truncated", "parse_error", "echo"})
"""Failures that another attempt rarely mends, and that are paid for each time. A refusal, a
filter or a text that is too long would only be paid for again."""

_CHUNK = 2000
_UNREADABLE = 50  # answers, none of them readable, after which a judge is asked no more
_LONGEST_WORDS = 100
_MOST_MODELS = 5
_FIELDS = tuple(field.name for field in fields(Answer))
_COLUMNS = ("answer", *_FIELDS[1:])


class BudgetError(RuntimeError):
    """The budget ran out before every call was answered; what was bought is stored."""


@dataclass
class Account:
    """Counts of one annotation's calls; battles with equal texts share one.

    Calls that are not made, since their texts let no answer count, are none of them, but `failed`
    in the end. Tokens are of the answers given now. `failed` and `reasons` count those given now
    while it runs, all in the end. The budget is also `charged` for requests that may have been
    billed without an answer. A judge `is_stopped` where none of many answers could be read.
    `seconds` begin where its server could be asked, after `waiting_s` of starting it.
    """

    n_calls: int = 0
    n_resumed: int = 0
    n_needed: int = 0
    n_asked: int = 0
    n_retried: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    charged: Cost = field(default_factory=Cost)
    seconds: float = 0.0
    waiting_s: float = 0.0
    is_stopped: bool = False
    damaged: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()

    def add(self, answer: Answer, status: str) -> None:
        """Count a bought answer."""
        self.n_asked += 1
        self.prompt_tokens += answer.prompt_tokens
        self.completion_tokens += answer.completion_tokens
        if status != "ok":
            self.failed[status] += 1
            self.reasons[status, answer.said or ""] += 1

    def text(self, slug: str, price: Price | None) -> str:
        """Return how far a judge is, in a line: rate, time left, failures and what was spent."""
        parts = [f"{slug} answered {self.n_resumed + self.n_asked:,} of {self.n_calls:,}"]
        if self.seconds > 0:
            rate = self.n_asked / self.seconds
            left = timedelta(seconds=round((self.n_needed - self.n_asked) / rate))
            parts += [f"{rate:,.1f}/s", f"{left} left"]
        if self.waiting_s >= 1:
            parts.append(f"after {self.waiting_s:,.0f} s of starting its server")
        if n_failed := self.failed.total():
            words = Counter({said: n for (_, said), n in self.reasons.items() if said})
            mostly = [shortened(said, _LONGEST_WORDS) for said, _ in words.most_common(1)]
            parts.append(f"{n_failed:,} failed{f' (mostly: {mostly[0]})' if mostly else ''}")
        tokens, counted = self.prompt_tokens + self.completion_tokens, sum(self.charged[1:3])
        more = f" ({counted:,} counted)" if counted > tokens else ""
        money = f", {self.charged.money:,.4f} {price.currency}" if price else ""
        parts.append(f"{tokens:,} tokens{more}{money}")
        return ", ".join(parts)

    def entries(self, judge: Judge, price: Price | None) -> dict[str, Any]:
        """Return the account of a finished annotation: calls, tokens, money, failures, endpoint."""
        entries = {
            "n_calls": self.n_calls,
            "n_resumed": self.n_resumed,
            "n_asked": self.n_asked,
            "n_retried": self.n_retried,
            "prompt_tokens_bought": self.prompt_tokens,
            "completion_tokens_bought": self.completion_tokens,
            "tokens_charged": sum(self.charged[1:3]),
            "seconds_asking": round(self.seconds, 3),
            "seconds_waiting": round(self.waiting_s, 3),
            "failures": dict(self.failed),
            "failure_reasons": [
                {"status": status, "said": said, "answers": n}
                for (status, said), n in self.reasons.most_common(MOST_REASONS)
            ],
            "damaged_files": [*self.damaged, *self.unfinished],
        }
        if price is not None:
            entries |= {"spent": round(self.charged.money, 6), "currency": price.currency}
        if self.n_asked:
            entries["endpoint"] = {**getattr(judge, "metadata", {}), **getattr(judge, "counts", {})}
        return entries


Progress = Callable[[Account], None]

MOST_SECONDS_BETWEEN_WORDS = 30.0


def paced(slug: str, price: Price | None, tell: Callable[[str], None]) -> Progress:
    """Return a callback that reports a judge's progress: often at first, then ever less often."""
    last = 0.0

    def told(account: Account) -> None:
        """Tell how far the judge is, unless that was told just now."""
        nonlocal last
        pause = min(MOST_SECONDS_BETWEEN_WORDS, max(1.0, account.seconds / 20))
        if account.seconds - last < pause and account.n_asked < account.n_needed:
            return
        last = account.seconds
        tell(account.text(slug, price))

    return told


@dataclass
class Buyer:
    """Returns stored answers and buys the missing ones; `account` counts the last call.

    Failures of `retried` are asked for again, however often they were; those of `retried_once` a
    second time and no more. Replicates below `n_covered` belong to another table, which mends and
    pays for them: here they are asked only if they are missing or were lost (`RETRIED`), and a
    judge that nobody can read any more is asked to the end, since that is what such tables watch
    for. `turn` gives a context in which all
    is asked, and which may wait to be entered: a place at the judge's endpoint, say.
    """

    store: VerdictStore
    budget: Budget = field(default_factory=Budget)
    retried: Collection[str] = RETRIED
    retried_once: Collection[str] = RETRIED_ONCE
    on_wait: Callable[[], None] | None = None
    account: Account = field(default_factory=Account)
    n_covered: int = 0
    turn: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext

    def repeating(self, n_covered: int) -> "Buyer":
        """Return a buyer whose replicates below `n_covered` belong to another table."""
        return replace(self, n_covered=n_covered, retried_once=(), account=Account())

    def keeping_failures(self) -> "Buyer":
        """Return a buyer that retries no failure."""
        return replace(self, retried=(), retried_once=(), account=Account())

    def missing(
        self, judge: Judge, presentations: Sequence[Presentation]
    ) -> tuple[list[Presentation], int]:
        """Return the calls that are missing, and the number that the store answers; asks nobody."""
        calls = distinct(map(Calls(judge).identity, presentations), presentations)
        found, _ = self.store.find(judge_key(judge), calls)
        needed = list(self._needed(calls, found).values())
        return needed, len(calls) - len(needed)

    def readings(
        self,
        judge: Judge,
        presentations: Sequence[Presentation],
        *,
        slug: str,
        on_progress: Progress | None = None,
    ) -> Iterator[Reading]:
        """Return a reading per presentation, in their order, once all answers are stored.

        Each call is asked for at most once. A local disk has its answer as soon as it is read,
        object storage within seconds. Of several processes on one machine only one at a time buys
        from a judge. A call whose texts let no answer count fails without being made, at no cost,
        and is not stored.
        """
        named, key = Calls(judge), judge_key(judge)
        identities = list(map(named.identity, presentations))
        calls = distinct(identities, presentations)
        found, needed = pd.DataFrame(), dict[str, Presentation]()
        fresh: dict[str, tuple[str, Any]] = {}
        refused: dict[str, Answer] = {}

        def is_lacking() -> bool:
            nonlocal found, needed, refused
            found, scan = self.store.find(key, calls)
            needed, known = self._needed(calls, found), set(found["identity"])
            refusals = {i: judge.form.refusal(shown) for i, shown in needed.items()}
            refused = {i: answer for i, answer in refusals.items() if answer is not None}
            needed = {i: shown for i, shown in needed.items() if i not in refused}
            n_calls = len(calls) - len(refused)
            self.account = Account(
                n_calls=n_calls,
                n_resumed=n_calls - len(needed),
                n_needed=len(needed),
                n_retried=sum(identity in known for identity in needed),
                damaged=scan.damaged,
                unfinished=scan.unfinished,
            )
            return bool(needed)

        with self.store.buying(key, is_lacking, self.on_wait) as lacking:
            if lacking:
                if acknowledge := getattr(judge, "acknowledge", None):
                    failed = found[found["identity"].isin(set(needed))]
                    acknowledge(dict(zip(failed["identity"], failed["answered_at"], strict=True)))
                is_readable = self.n_covered > 0 or bool(found["status"].eq("ok").any())
                with self.turn():
                    fresh = self._ask(
                        judge, named, needed, slug, on_progress, is_readable=is_readable
                    )
                self._require_all(slug)
                found, _ = self.store.find(key, calls)
        return _in_order(found, identities, presentations, judge.form, fresh, refused)

    def _needed(
        self, calls: Mapping[str, Presentation], found: pd.DataFrame
    ) -> dict[str, Presentation]:
        """Return the calls without an answer, or with a failure that is retried."""
        fates = zip(found["identity"], found["status"], found["n_attempts"], strict=True)
        needed = dict(calls)
        for identity, status, n_attempts in fates:
            is_covered = calls[identity].replicate < self.n_covered
            retried = RETRIED if is_covered else self.retried
            if not is_retried(status, n_attempts, retried, self.retried_once):
                del needed[identity]
        return needed

    def _ask(
        self,
        judge: Judge,
        calls: Calls,
        needed: Mapping[str, Presentation],
        slug: str,
        tell: Progress | None,
        *,
        is_readable: bool,
    ) -> dict[str, tuple[str, Any]]:
        """Store the answers to the needed calls; return status and value of each."""
        account, began, budget = self.account, time.monotonic(), JointBudget([self.budget])
        identities, shown = list(needed), list(needed.values())
        given = once_each(judge.answer(shown, budget), len(shown))
        read_now: dict[str, tuple[str, Any]] = {}
        with (
            VerdictWriter(self.store, judge_key(judge), on_full=budget.close) as writer,
            contextlib.closing(given),
        ):
            for position, reading in given:
                identity = identities[position]
                writer.add(_row(identity, calls.parts(reading.shown), reading, slug))
                account.add(reading.answer, reading.status)
                read_now[identity] = reading.status, reading.value
                account.waiting_s = getattr(judge, "waiting_s", 0.0)
                account.seconds = time.monotonic() - began - account.waiting_s
                account.charged = budget.spent
                is_readable |= reading.status == "ok"
                n_answers = account.n_asked - account.failed["transport"]
                if not is_readable and n_answers >= _UNREADABLE and not account.is_stopped:
                    account.is_stopped = True
                    budget.close()
                if tell:
                    tell(account)
        return read_now

    def _require_all(self, slug: str) -> None:
        account = self.account
        n_missing = account.n_needed - account.n_asked
        if n_missing and account.is_stopped:
            raise RuntimeError(
                f"judge {slug!r}: none of {account.n_asked:,} answers could be read, and "
                f"{n_missing:,} calls were not made. {remedies_text(account.reasons)}"
            )
        if n_missing and not self.budget.has_refused:
            raise RuntimeError(
                f"judge {slug!r} left {n_missing:,} of {account.n_needed:,} presentations without "
                "an answer; what it did answer is kept"
            )
        if n_missing:
            raise BudgetError(
                f"the budget of {self.budget} is spent: {n_missing:,} of the "
                f"{account.n_calls:,} calls to judge {slug!r} are missing ({account.n_asked:,} "
                f"were made now, {account.n_resumed:,} answers were there). Every answer bought is "
                "kept; ask again with a larger budget (budget in Python, --budget, the run tag "
                "judgeline/budget or JUDGELINE_BUDGET), and only the rest is asked for"
            )


def is_retried(
    status: str,
    n_attempts: int,
    retried: Collection[str] = RETRIED,
    retried_once: Collection[str] = RETRIED_ONCE,
) -> bool:
    """Return whether a call of some status is asked again after `n_attempts` attempts."""
    return status in retried or (status in retried_once and n_attempts < 2)


def retried_with(more: Collection[str]) -> frozenset[str]:
    """Return the failures that are asked again each time: `RETRIED`, and more classes by name."""
    if unknown := sorted({*more} - {*FAILURES}):
        raise ArgumentError(
            f"unknown failure class {unknown[0]!r}; known: {', '.join(FAILURES)}", "retry"
        )
    return RETRIED.union(more)


def once_each(
    given: Iterator[tuple[int, Reading]], n_presentations: int
) -> Generator[tuple[int, Reading]]:
    """Yield the readings of a judge; RuntimeError at a second one of a presentation."""
    is_open = bytearray(b"\x01") * n_presentations
    for position, reading in given:
        if not 0 <= position < n_presentations or not is_open[position]:
            raise RuntimeError(
                f"the judge answered presentation {position} of {n_presentations} twice, or was "
                "never shown it"
            )
        is_open[position] = 0
        yield position, reading


def distinct(
    identities: Iterable[str], presentations: Iterable[Presentation]
) -> dict[str, Presentation]:
    """Return the calls by identity, in the order of their first presentations."""
    calls: dict[str, Presentation] = {}
    for identity, shown in zip(identities, presentations, strict=True):
        calls.setdefault(identity, shown)
    return calls


def _row(identity: str, parts: str, reading: Reading, slug: str) -> dict[str, Any]:
    shown, answer = reading.shown, reading.answer
    return {
        "identity": identity,
        "status": reading.status,
        "answered_at": datetime.now(UTC),
        **{column: getattr(answer, name) for column, name in zip(_COLUMNS, _FIELDS, strict=True)},
        "judge": slug,
        "battle_id": shown.battle_id,
        "order": shown.order,
        "replicate": shown.replicate,
        "parts": parts,
    }


def _in_order(
    found: pd.DataFrame,
    identities: Sequence[str],
    presentations: Sequence[Presentation],
    form: Form,
    fresh: Mapping[str, tuple[str, Any]],
    refused: Mapping[str, Answer],
) -> Iterator[Reading]:
    """Yield the answer to each presentation; `fresh` has status and value of those read before.

    Answers of `refused` stand for those of calls that were not made.
    """
    named = pd.Index(identities)
    rows, is_made = pd.Index(found["identity"]).get_indexer(named), ~named.isin([*refused])
    if (n_lost := int((rows[is_made] < 0).sum())) > 0:
        raise RuntimeError(
            f"{n_lost:,} answers that were stored cannot be read back: the verdict store is "
            "damaged. Run again: what cannot be read is asked for again"
        )
    for start in range(0, len(rows), _CHUNK):
        these = slice(start, start + _CHUNK)
        chunk = found.iloc[rows[these][is_made[these]]]
        values = [chunk[name].astype(object).where(chunk[name].notna(), None) for name in _COLUMNS]
        answers = (Answer(*row) for row in zip(*values, strict=True))
        for shown, identity in zip(presentations[these], identities[these], strict=True):
            answer = refused.get(identity) or next(answers)
            known = fresh.get(identity) or read(shown, answer, form)[2:4]
            yield Reading(shown, answer, *known, identity=identity)


def models_named(
    answers: pd.DataFrame, model: str | None = None
) -> tuple[dict[str, dict[str, int]], str]:
    """Return the commonest models and versions that answers name, and a warning.

    It warns if several are named, or one that is not `model` nor a longer form of it.
    """
    columns = answers.reindex(columns=["reply_model", "system_fingerprint"])
    counts = {
        name: columns[name].dropna().value_counts().head(_MOST_MODELS).to_dict() for name in columns
    }
    several = [
        f"{name} ({', '.join(f'{value} {n:,}' for value, n in of.items())})"
        for name, of in counts.items()
        if len(of) > 1
    ]
    differ = (
        f"The answers of this judge differ in {' and '.join(several)}: an alias moved, or a router "
        "asked another model. Name a dated model in judges.yaml, or set 'expect_model' to "
        "prefix or exact."
    )
    others = {name: n for name, n in counts["reply_model"].items() if not is_named(model, name)}
    strange = (
        f"{sum(others.values()):,} answers name {', '.join(others)}, and the judge asks for "
        f"{model}. Correct 'model' in judges.yaml, or set 'expect_model': prefix refuses such "
        "answers, any accepts them."
    )
    return counts, " ".join([differ] * bool(several) + [strange] * bool(others))
