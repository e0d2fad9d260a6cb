"""The budget of a run and that of a corpus for candidates, together."""

import pytest

from judgeline.judges.budget import Budget, Cost, JointBudget


def test_the_smaller_budget_holds_and_both_are_charged() -> None:
    run, own = Budget(calls=100), Budget(calls=2)
    joint = JointBudget([own, run])
    assert [joint.spend(Cost(1, 10, 5)) for _ in range(3)] == [True, True, False]
    assert (joint.has_refused, run.has_refused) == (True, False)
    assert (joint.spent.calls, own.spent.calls, run.spent.calls) == (2, 2, 2)
    assert (str(joint), str(JointBudget([Budget(), Budget()]))) == ("2 calls", "no cap")
    narrow = JointBudget([Budget(calls=50), Budget(calls=1)])
    assert [narrow.spend(Cost(1)) for _ in range(2)] == [True, False]
    assert (narrow.n_open, narrow.calls) == (0, 1)


def test_a_refusal_of_the_wider_budget_holds_nothing_back() -> None:
    own, run = Budget(calls=5), Budget(tokens=10)
    joint = JointBudget([own, run])
    assert [joint.reserve(Cost(1, 6, 0)) for _ in range(2)] == [True, False]  # too many tokens
    assert joint.n_open == 1
    joint.settle(Cost(1, 6, 0), Cost(1, 2, 0))
    assert joint.reserve(Cost(1, 6, 0))
    assert own.spent.calls == 1


def test_a_reservation_of_one_of_two_may_come_back_to_the_other() -> None:
    common = Budget(tokens=10)
    first, second = JointBudget([common]), JointBudget([common])
    assert first.reserve(Cost(1, 8, 0))
    assert not second.reserve(Cost(1, 8, 0))
    assert second.n_open == 1  # it waits for the first, rather than give up
    first.settle(Cost(1, 8, 0), Cost(1, 2, 0))
    assert (second.n_open, second.reserve(Cost(1, 8, 0))) == (0, True)


def test_budgets_in_two_currencies_are_no_budget() -> None:
    with pytest.raises(ValueError, match="in EUR and USD, which cannot be compared"):
        JointBudget([Budget(money=1, currency="USD"), Budget(money=1, currency="EUR")])
    joint = JointBudget([Budget(calls=1), Budget(money=2.0, currency="EUR")])
    assert (joint.money, joint.currency) == (2.0, "EUR")
