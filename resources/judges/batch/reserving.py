"""Money held back for requests between their submission and their result, which may take a day."""

from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from resources.judges.batch.lines import Result
from resources.judges.budget import Budget, Cost
from resources.judges.live.costs import Usage, counted, most_of, text_bytes
from resources.judges.live.fields import Price


class Reservations:
    """What a budget holds back by request; a context manager that leaves nothing held.

    What was submitted and has no result when the context ends counts in full: it is carried out
    and billed all the same. `counts` is added ``implausible_usage``; the first is a warning.
    """

    def __init__(
        self,
        budget: Budget,
        price: Price | None,
        warn: Callable[[str], None],
        counts: Counter[str],
    ) -> None:
        self._budget, self._price, self._warn, self._counts = budget, price, warn, counts
        self._held: dict[str, tuple[Cost, int]] = {}
        self._submitted: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for identity, (most, _) in self._held.items():
            self._budget.settle(most, most if identity in self._submitted else Cost())

    def reserve(self, identity: str, body: dict[str, Any]) -> bool:
        """Return whether the budget covers a request, and hold back what it may cost."""
        if identity in self._held:
            return True
        most = most_of(body["messages"], body, self._price)
        if not self._budget.reserve(most):
            return False
        self._held[identity] = most, text_bytes(body["messages"])
        return True

    def submit(self, identities: list[str]) -> None:
        """Note that requests are about to be submitted."""
        self._submitted.update(identities)

    def settle(self, identity: str, result: Result) -> bool:
        """Replace what is held back for a request by what it cost; return whether it was ours.

        Requests of an earlier run were paid for under its budget, and cost this one nothing.
        """
        held = self._held.pop(identity, None)
        if held is not None:
            self._budget.settle(held[0], self._cost(result, *held))
        return held is not None

    def _cost(self, result: Result, most: Cost, prompt_bytes: int) -> Cost:
        if not result.is_billed:
            return Cost()
        answer = result.answer
        said = len((answer.text or "").encode("utf-8", "surrogatepass"))
        usage = Usage(answer.prompt_tokens, answer.completion_tokens, prompt_bytes, said)
        cost, implausible = counted(usage, most, self._price)
        if implausible:
            if not self._counts["implausible_usage"]:
                self._warn(implausible)
            self._counts["implausible_usage"] += 1
        return cost
