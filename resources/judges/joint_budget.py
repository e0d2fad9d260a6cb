"""A budget inside another one: whoever asks stays within both."""

from resources.judges.budget import Budget, Cost


class JointBudget(Budget):
    """Two caps at once, such as that of a run and that of one table in it.

    What is asked is charged to both. `spent` is what was asked through this one.

    Parameters
    ----------
    own : Budget
        The inner cap, of nobody else.
    wider : Budget
        The outer cap, which others draw on too.

    Raises
    ------
    ValueError
        If both are in money, and in different currencies.
    """

    def __init__(self, own: Budget, wider: Budget) -> None:
        if own.money is not None and wider.money is not None and own.currency != wider.currency:
            raise ValueError(
                f"one budget is in {own.currency}, the other in {wider.currency}; write both in "
                "one currency"
            )
        super().__init__(
            _least(own.calls, wider.calls),
            tokens=_least(own.tokens, wider.tokens),
            money=_least(own.money, wider.money),
            currency=own.currency or wider.currency,
        )
        self._own, self._wider = own, wider

    def reserve(self, most: Cost) -> bool:
        """Return whether both caps allow a request of at most this cost, and hold it back."""
        if not self._own.reserve(most):
            self.has_refused = True
            return False
        if not self._wider.reserve(most):
            self._own.settle(most, Cost())
            self.has_refused = True
            return False
        return True

    def settle(self, most: Cost, spent: Cost) -> None:
        """Replace a reservation by what the request did cost, in both."""
        self._own.settle(most, spent)
        self._wider.settle(most, spent)
        with self._lock:
            self.spent = self.spent.plus(spent)

    @property
    def n_open(self) -> int:
        """Reservations in either that are not settled."""
        return max(self._own.n_open, self._wider.n_open)

    def __str__(self) -> str:
        caps = dict.fromkeys(str(one) for one in (self._own, self._wider))
        return " within ".join(cap for cap in caps if cap != "no cap") or "no cap"


def _least(one: float | None, other: float | None) -> float | None:
    known = [cap for cap in (one, other) if cap is not None]
    return min(known) if known else None
