"""Hard caps on the calls, tokens or money of judges, and the cost of a request."""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile
from operator import sub
from statistics import median
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field

_LIMIT = re.compile(
    r"\s*(?P<amount>\d+(?:[_,]\d{3})*(?:\.\d+)?)(?P<scale>[kM]?)\s*(?P<unit>calls|tokens|[A-Z]{3})?\s*"
)
_SCALES = {"": 1, "k": 1_000, "M": 1_000_000}


class Cost(NamedTuple):
    """Cost of calls: paid requests, tokens of both kinds, and money in the judge's currency."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float = 0.0

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum of two costs."""
        calls, prompt, completion, money = other
        return Cost(self[0] + calls, self[1] + prompt, self[2] + completion, self[3] + money)

    def minus(self, other: "Cost") -> "Cost":
        """Return the difference of two costs."""
        return Cost(*map(sub, self, other))


class Budget:
    """A hard cap on paid requests, on tokens or on money, shared by everything that draws on it.

    The most that a request can cost is reserved before it is sent, and its cost settled after: the
    cap holds for what is in flight, too. None is no cap; `spent` is what is settled.
    """

    def __init__(
        self,
        calls: int | None = None,
        *,
        tokens: int | None = None,
        money: float | None = None,
        currency: str | None = None,
        caps: Sequence["Budget"] = (),
    ) -> None:
        self.calls, self.tokens, self.money, self.currency = calls, tokens, money, currency
        self._caps = tuple(caps)
        self.spent, self.has_refused = Cost(), False
        self._reserved, self._elsewhere = Cost(), Cost()
        self._n_open, self._is_closed = 0, False
        self._has_no_cap = calls is None and tokens is None and money is None
        self._lock = threading.Lock()

    @classmethod
    def parse(cls, texts: list[str]) -> Self:
        """Return the budget that ``5000calls``, ``2Mtokens`` and ``12.50USD`` describe together."""
        limits: dict[str, object] = {}
        for text in texts:
            for name, value in _limit(text).items():
                if name in limits:
                    raise ValueError(f"the budget caps {name} twice ({text!r}); keep one of them")
                limits[name] = value
        return cls(**limits)  # type: ignore[arg-type]

    def reserve(self, most: Cost) -> bool:
        """Return whether a request of at most this cost may be sent now, and hold it back."""
        held = list(takewhile(lambda cap: cap.reserve(most), self._caps))
        with self._lock:
            fits = len(held) == len(self._caps) and not self._is_closed
            fits = fits and (self._has_no_cap or self._fits(most))
            self.has_refused |= not fits
            if fits:
                self._reserved = self._reserved.plus(most)
                self._n_open += 1
        for cap in held if not fits else ():
            cap.settle(most, Cost())
        return fits

    def settle(self, most: Cost, spent: Cost) -> None:
        """Replace a reservation by the cost of the request."""
        for cap in self._caps:
            cap.settle(most, spent)
        with self._lock:
            self._reserved = self._reserved.minus(most)
            self._n_open -= 1
            self.spent = self.spent.plus(spent)

    def close(self) -> None:
        """Refuse every further request; those under way are settled as ever."""
        self._is_closed = True

    def count_elsewhere(self, cost: Cost) -> None:
        """Count the spending of others, in all until now, towards the cap."""
        with self._lock:
            self._elsewhere = cost

    def spend(self, cost: Cost) -> bool:
        """Reserve and settle a cost that is known before; return whether the budget covers it."""
        granted = self.reserve(cost)
        if granted:
            self.settle(cost, cost)
        return granted

    @property
    def calls_left(self) -> int | None:
        """Calls that are neither settled here nor counted elsewhere; None without a cap on them."""
        caps = [self, *self._caps]
        left = [
            cap.calls - cap.spent.calls - cap._elsewhere.calls
            for cap in caps
            if cap.calls is not None
        ]
        return min(left, default=None)

    @property
    def n_open(self) -> int:
        """Number of open reservations, whose unused part may still be granted."""
        return max([self._n_open, *(cap.n_open for cap in self._caps)])

    def __str__(self) -> str:
        caps = [
            f"{self.calls:,} calls" if self.calls is not None else "",
            f"{self.tokens:,} tokens" if self.tokens is not None else "",
            f"{self.money:,.2f} {self.currency}" if self.money is not None else "",
        ]
        return " and ".join(filter(None, caps)) or "no cap"

    def _fits(self, most: Cost) -> bool:
        total = self.spent.plus(self._elsewhere).plus(self._reserved).plus(most)
        tokens = total.prompt_tokens + total.completion_tokens
        return (
            (self.calls is None or total.calls <= self.calls)
            and (self.tokens is None or tokens <= self.tokens)
            and (self.money is None or total.money <= self.money + 1e-9)  # sums of floats
        )


class JointBudget(Budget):
    """Several caps at once: a request must fit each of them, and counts towards each.

    Earlier spending counts against its own cap; `spent` begins at nothing.
    """

    def __init__(self, caps: Sequence[Budget]) -> None:
        currencies = sorted({cap.currency for cap in caps if cap.currency is not None})
        if len(currencies) > 1:
            raise ValueError(
                f"the budgets {' and '.join(map(str, caps))} are in {' and '.join(currencies)}, "
                "which cannot be compared; state them in one currency"
            )
        super().__init__(
            min((cap.calls for cap in caps if cap.calls is not None), default=None),
            tokens=min((cap.tokens for cap in caps if cap.tokens is not None), default=None),
            money=min((cap.money for cap in caps if cap.money is not None), default=None),
            currency=currencies[0] if currencies else None,
            caps=caps,
        )


def _limit(text: str) -> dict[str, object]:
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ValueError(
            f"the budget {text!r} is none; write such as 5000calls, 2Mtokens or 12.50USD"
        )
    if found["unit"] is None:
        raise ValueError(
            f"the budget {text!r} has no unit; write {text}calls, {text}tokens, or a currency such "
            f"as {text}USD"
        )
    # in floats 1.001 thousand is no whole number
    amount = Decimal(found["amount"].replace("_", "").replace(",", "")) * _SCALES[found["scale"]]
    unit = found["unit"]
    if unit not in ("calls", "tokens"):
        return {"money": float(amount), "currency": unit}
    if amount != int(amount):
        raise ValueError(f"the budget {text!r} is no whole number of {unit}")
    return {unit: int(amount)}


_ENVELOPE = 64  # tokens that a chat template adds to a message, at most
_LIMITS = ("max_tokens", "max_completion_tokens")
_MOST_BYTES_PER_TOKEN = 8  # prose has three to five, code two to four
_PROSE_BYTES_PER_TOKEN = 6  # up to here no record says that a prompt was not counted
_RECORD = 20, 200  # answers from which a judge's record speaks, and of which it is made


class Price(BaseModel):
    """Price of a million prompt and completion tokens, in a currency of three capital letters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    prompt: float = Field(ge=0, strict=True)
    completion: float = Field(ge=0, strict=True)
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of some tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


def require_price(slug: str, price: Price | None, budget: Budget) -> None:
    """Refuse a budget in money that a judge's price cannot be counted against."""
    if budget.money is None:
        return
    if price is None:
        raise ValueError(
            f"the budget is {budget}, but judge {slug!r} has no price; add "
            "'price_per_million', or cap calls or tokens instead"
        )
    if price.currency != budget.currency:
        raise ValueError(
            f"the budget is in {budget.currency}, the price of judge {slug!r} in "
            f"{price.currency}; use one currency"
        )


def most_of(
    messages: Sequence[Mapping[str, str]], request: dict[str, Any], price: Price | None
) -> Cost:
    """Return the most that a request can cost: a token is at least one byte of its text."""
    schema = json.dumps(request.get("response_format", ""))
    prompt = text_bytes(messages) + len(schema) + _ENVELOPE * len(messages)
    return priced(prompt, max(request.get(name, 0) for name in _LIMITS), price)


def least_tokens(n_bytes: int) -> int:
    """Return the floor under the tokens of a text: fewer were made up, not counted."""
    return n_bytes // _MOST_BYTES_PER_TOKEN


def text_bytes(messages: Sequence[Mapping[str, str]]) -> int:
    """Return the bytes of the texts of messages."""
    return sum(len(message["content"].encode()) for message in messages)


def priced(prompt_tokens: int, completion_tokens: int, price: Price | None) -> Cost:
    """Return the cost of one request by its tokens."""
    money = price.of(prompt_tokens, completion_tokens) if price else 0.0
    return Cost(1, prompt_tokens, completion_tokens, money)


@dataclass(repr=False)
class Meter:
    """Counts requests against a budget: what each may cost before it is sent, and its cost after.

    `counts` is added ``implausible_usage``; the first of it is a warning.
    """

    budget: Budget
    price: Price | None
    counts: Counter[str]
    warn: Callable[[str], None]
    record: list[float] = field(default_factory=list)  # bytes per token of the first prompts

    def cost(self, stated: tuple[int, int], sizes: tuple[int, int], most: Cost) -> Cost:
        """Return the cost of an answered request, by the tokens and the bytes of both its texts.

        Usage that is missing, below a floor of one token per 8 bytes, or less than half of what
        the judge's record has, counts as the reservation `most`. Usage above the reservation is
        clamped to it; an answer longer than the limit counts up to its bytes.
        """
        if not all(stated):
            return most
        limits = most.prompt_tokens, max(most.completion_tokens, sizes[1])
        clamped = min(stated[0], limits[0]), min(stated[1], limits[1])
        is_low = any(n < least_tokens(size) for n, size in zip(stated, sizes, strict=True))
        is_low = is_low or self._is_beside_the_record(sizes[0] / stated[0])
        cost = most if is_low else priced(*clamped, self.price)
        if not is_low and clamped == stated:
            return cost
        if not self.counts["implausible_usage"]:
            self.warn(
                f"implausible usage: the endpoint states {stated[0]:,} + {stated[1]:,} tokens for "
                f"a prompt of {sizes[0]:,} bytes and an answer of {sizes[1]:,} bytes; the budget "
                f"counts "
                f"{cost.prompt_tokens:,} + {cost.completion_tokens:,} instead, and treats every "
                "such answer alike"
            )
        self.counts["implausible_usage"] += 1
        return cost

    def _is_beside_the_record(self, bytes_per_token: float) -> bool:
        """Return whether a prompt has twice the median bytes per token; else record it."""
        least, most = _RECORD
        if bytes_per_token > _PROSE_BYTES_PER_TOKEN and len(self.record) >= least:
            return bytes_per_token > 2 * median(self.record)
        if len(self.record) < most:
            self.record.append(bytes_per_token)
        return False
