"""A hard cap on the calls, tokens or money of judges."""

import re
import threading
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple, Self

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
        return Cost(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: "Cost") -> "Cost":
        """Return the difference of two costs."""
        return Cost(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Budget:
    """A hard cap on paid requests, on tokens or on money, shared by everything that draws on it.

    The asking side reserves the most that a request can cost before it is sent, and settles what
    it did cost: the cap holds for what is in flight, too. None is no cap. `spent` is what is
    settled, and `has_refused` whether anything was ever refused, if only for the moment.
    """

    def __init__(
        self,
        calls: int | None = None,
        *,
        tokens: int | None = None,
        money: float | None = None,
        currency: str | None = None,
    ) -> None:
        self.calls, self.tokens, self.money, self.currency = calls, tokens, money, currency
        self.spent, self.has_refused = Cost(), False
        self._reserved, self._elsewhere = Cost(), Cost()
        self._n_open, self._is_closed = 0, False
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
        with self._lock:
            fits = not self._is_closed and self._fits(
                self.spent.plus(self._elsewhere).plus(self._reserved).plus(most)
            )
            self.has_refused |= not fits
            if fits:
                self._reserved = self._reserved.plus(most)
                self._n_open += 1
            return fits

    def settle(self, most: Cost, spent: Cost) -> None:
        """Replace a reservation by the cost of the request."""
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
        """Reserve and settle at once; for what is known before, or costs nothing until taken."""
        granted = self.reserve(cost)
        if granted:
            self.settle(cost, cost)
        return granted

    @property
    def n_open(self) -> int:
        """Reservations that are not settled: what they leave over may still be granted."""
        return self._n_open

    def __str__(self) -> str:
        caps = [
            f"{self.calls:,} calls" if self.calls is not None else "",
            f"{self.tokens:,} tokens" if self.tokens is not None else "",
            f"{self.money:,.2f} {self.currency}" if self.money is not None else "",
        ]
        return " and ".join(filter(None, caps)) or "no cap"

    def _fits(self, total: Cost) -> bool:
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
        )
        self._caps = tuple(caps)

    @property
    def n_open(self) -> int:
        """Reservations that are not settled, under any of the caps."""
        return max([self._n_open, *(cap.n_open for cap in self._caps)])

    def reserve(self, most: Cost) -> bool:
        """Return whether every cap has room for a request, and hold it back in each."""
        held: list[Budget] = []
        for cap in self._caps:
            if not cap.reserve(most):
                break
            held.append(cap)
        if len(held) == len(self._caps) and super().reserve(most):
            return True
        for cap in held:
            cap.settle(most, Cost())
        self.has_refused = True
        return False

    def settle(self, most: Cost, spent: Cost) -> None:
        """Replace a reservation by the cost of the request, in each cap."""
        for cap in self._caps:
            cap.settle(most, spent)
        super().settle(most, spent)


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
