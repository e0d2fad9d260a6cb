"""Money held back for requests between their submission and their result, which may take a day."""

from types import TracebackType
from typing import Any, Self

from resources.judges.batch.lines import Result
from resources.judges.budget import Budget, Cost
from resources.judges.served.costs import most_of, priced
from resources.judges.served.fields import Price


class Reservations:
    """What a budget holds back by request; a context manager that leaves nothing held.

    What was submitted and has no result when the context ends counts in full: it is carried out
    and billed all the same.
    """

    def __init__(self, budget: Budget, price: Price | None) -> None:
        self._budget, self._price = budget, price
        self._held: dict[str, Cost] = {}
        self._submitted: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for identity, most in self._held.items():
            self._budget.settle(most, most if identity in self._submitted else Cost())

    def reserve(self, identity: str, body: dict[str, Any]) -> bool:
        """Return whether the budget covers a request, and hold back what it may cost."""
        if identity in self._held:
            return True
        most = most_of(body["messages"], body, self._price)
        if not self._budget.reserve(most):
            return False
        self._held[identity] = most
        return True

    def submit(self, identities: list[str]) -> None:
        """Note that requests are about to be submitted."""
        self._submitted.update(identities)

    def settle(self, identity: str, result: Result) -> bool:
        """Replace what is held back for a request by what it cost; return whether it was ours.

        Requests of an earlier run were paid for under its budget, and cost this one nothing.
        """
        most = self._held.pop(identity, None)
        if most is not None:
            self._budget.settle(most, self._cost(result, most))
        return most is not None

    def _cost(self, result: Result, most: Cost) -> Cost:
        answer = result.answer
        if not result.is_billed:
            return Cost()
        if not answer.prompt_tokens:
            return most  # the provider does not say
        return priced(answer.prompt_tokens, answer.completion_tokens, self._price)
